//! PoNoS.

use super::{Common, MethodEntry, StepKind};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = PonosConfig;
    const TITLE: &'static str = "PoNoS: a nonmonotone line search from a Polyak step";
    const STEPS: StepKind = StepKind::Search;

    fn stepper<F, C>(config: Self::Config, common: Common, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(Ponos::new(config)?))
    }
}
