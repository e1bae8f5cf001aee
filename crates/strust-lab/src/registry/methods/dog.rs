//! DoG.

use super::{Common, MethodEntry};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = DoGConfig;
    const TITLE: &'static str = "DoG: SGD with distance over gradients as its rate";

    fn stepper<F, C>(config: Self::Config, common: Common, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(DoG::new(config)?.schedule(common.schedule)))
    }
}
