//! Schedule-Free AdamW.

use super::{Common, MethodEntry, StepKind};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = ScheduleFreeAdamWConfig;
    const TITLE: &'static str = "Schedule-Free AdamW: averaging in place of a schedule";
    const STEPS: StepKind = StepKind::Normalized;

    fn stepper<F, C>(config: Self::Config, common: Common, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(ScheduleFreeAdamW::new(config)?.schedule(common.schedule)))
    }
}
