//! Schedule-Free SGD.

use super::{Common, MethodEntry};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = ScheduleFreeSgdConfig;
    const TITLE: &'static str = "Schedule-Free SGD: averaging in place of a schedule";

    fn stepper<F, C>(config: Self::Config, common: Common, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(ScheduleFreeSgd::new(config)?.schedule(common.schedule)))
    }

    #[cfg(feature = "torch")]
    fn on_gpu(
        config: Self::Config,
        common: Common,
        gpu: &super::Gpu,
    ) -> Option<Result<Box<dyn Stepper<strust_torch::ImageClassification>>, Error>> {
        use strust::methods::ScheduleFreeSgdState;
        let stepper = |method: ScheduleFreeSgd<_>| {
            common.stepper_on(method.schedule(common.schedule), gpu.device, |state, device| ScheduleFreeSgdState {
                x: state.x.to_device(device),
                z: state.z.to_device(device),
                ..state
            })
        };
        Some(ScheduleFreeSgd::new(config).map(stepper).map_err(Error::from))
    }
}
