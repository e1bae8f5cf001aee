//! Riemannian gradient descent.

use super::{Common, MethodEntry, StepKind};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = RiemannianConfig;
    const TITLE: &'static str = "Riemannian gradient descent";
    const CONSTRAINED: bool = true;
    const STEPS: StepKind = StepKind::Rate;

    fn stepper<F, C>(config: Self::Config, common: Common, setup: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        let manifold = setup.constraint(config.retraction)?;
        Ok(common.stepper(Riemannian::new(config, manifold)?.schedule(common.schedule)))
    }
}
