//! STR-SQP: an exact penalty, minimized through its dual.

use super::{Common, MethodEntry};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = StrSqpConfig;
    const TITLE: &'static str = "Trust region with an exact penalty, minimized through its dual: no penalty to choose";
    const CONSTRAINED: bool = true;

    fn stepper<F, C>(config: Self::Config, common: Common, setup: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(StrSqp::new(config, setup.constraint(Retraction::Qr)?)?))
    }
}
