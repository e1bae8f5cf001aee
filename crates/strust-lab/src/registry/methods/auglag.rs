//! The stochastic augmented Lagrangian.

use super::MethodEntry;
use crate::{
    Error,
    registry::Setup,
    stepper::{StepByStep, Stepper},
};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = AugLagConfig;
    const TITLE: &'static str = "Stochastic augmented Lagrangian";
    const CONSTRAINED: bool = true;

    fn stepper<F, C>(config: Self::Config, setup: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(Box::new(StepByStep::new(AugLag::new(config, setup.constraint(Retraction::Qr)?)?)))
    }
}
