//! The stochastic augmented Lagrangian.

use super::{Common, MethodEntry, StepKind};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = AugLagConfig;
    const TITLE: &'static str = "Stochastic augmented Lagrangian";
    const CONSTRAINED: bool = true;
    const STEPS: StepKind = StepKind::Rate;

    fn stepper<F, C>(config: Self::Config, common: Common, setup: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(AugLag::new(config, setup.constraint(Retraction::Qr)?)?.schedule(common.schedule)))
    }
}
