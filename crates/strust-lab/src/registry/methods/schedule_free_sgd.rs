//! Schedule-Free SGD.

use super::{Common, MethodEntry, StepKind};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = ScheduleFreeSgdConfig;
    const TITLE: &'static str = "Schedule-Free SGD: averaging in place of a schedule";
    const STEPS: StepKind = StepKind::Rate;

    fn stepper<F, C>(config: Self::Config, common: Common, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(ScheduleFreeSgd::new(config)?.schedule(common.schedule)))
    }
}
