//! STR with the Gauss–Newton matrix of the sample.

use super::{Common, MethodEntry, StepKind};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = StrNewtonConfig;
    const NAME: &'static str = "str-gauss-newton";
    const TITLE: &'static str = "Stochastic trust region with the Gauss–Newton matrix of the sample";
    const STEPS: StepKind = StepKind::Region;

    fn stepper<F, C>(config: Self::Config, common: Common, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(StrNewton::gauss_newton(config)?))
    }
}
