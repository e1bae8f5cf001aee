//! Prodigy.

use super::{Common, MethodEntry};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = ProdigyConfig;
    const TITLE: &'static str = "Prodigy: Adam with an estimated distance as its rate";

    fn stepper<F, C>(config: Self::Config, common: Common, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(Prodigy::new(config)?.schedule(common.schedule)))
    }

    #[cfg(feature = "torch")]
    fn on_gpu(
        config: Self::Config,
        common: Common,
        gpu: &super::Gpu,
    ) -> Option<Result<Box<dyn Stepper<strust_torch::ImageClassification>>, Error>> {
        use strust::methods::ProdigyState;
        let stepper = |method: Prodigy<_>| {
            common.stepper_on(method.schedule(common.schedule), gpu.device, |state, device| ProdigyState {
                x: state.x.to_device(device),
                start: state.start.to_device(device),
                mean: state.mean.to_device(device),
                square: state.square.to_device(device),
                sum: state.sum.to_device(device),
                ..state
            })
        };
        Some(Prodigy::new(config).map(stepper).map_err(Error::from))
    }
}
