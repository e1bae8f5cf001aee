//! STR with a limited-memory SR1 matrix.

use super::{Common, MethodEntry, StepKind};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = StrLsr1Config;
    const TITLE: &'static str =
        "Stochastic trust region with a limited-memory SR1 matrix from gradients on the same sample";
    const STEPS: StepKind = StepKind::Region;

    fn stepper<F, C>(config: Self::Config, common: Common, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(StrLsr1::new(config)?))
    }
}
