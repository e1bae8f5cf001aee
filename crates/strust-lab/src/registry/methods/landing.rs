//! The landing method.

use super::{Common, MethodEntry, StepKind};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = LandingConfig;
    const TITLE: &'static str = "Landing: SGD along the constraint, attracted by it, without retractions";
    const CONSTRAINED: bool = true;
    const STEPS: StepKind = StepKind::Rate;

    fn stepper<F, C>(config: Self::Config, common: Common, setup: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        let constraint = setup.constraint(Retraction::Qr)?;
        Ok(common.stepper(Landing::new(config, constraint)?.schedule(common.schedule)))
    }
}
