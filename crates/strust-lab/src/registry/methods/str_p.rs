//! STR-P: the stochastic trust region with a quadratic penalty.

use super::{Common, MethodEntry, ModelKind, StepKind};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = StrPConfig;
    const TITLE: &'static str = "Stochastic trust region with a quadratic penalty, Algorithm 2";
    const CONSTRAINED: bool = true;
    const MODEL: ModelKind = ModelKind::Penalty;
    const STEPS: StepKind = StepKind::Region;

    fn stepper<F, C>(config: Self::Config, common: Common, setup: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(StrP::new(config, setup.constraint(Retraction::Qr)?)?))
    }
}
