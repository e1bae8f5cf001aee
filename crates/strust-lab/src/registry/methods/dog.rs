//! DoG.

use super::{Common, MethodEntry};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = DoGConfig;
    const TITLE: &'static str = "DoG: SGD with distance over gradients as its rate";

    fn stepper<F, C>(config: Self::Config, common: Common, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(DoG::new(config)?.schedule(common.schedule)))
    }

    #[cfg(feature = "torch")]
    fn on_gpu(
        config: Self::Config,
        common: Common,
        gpu: &super::Gpu,
    ) -> Option<Result<Box<dyn Stepper<strust_torch::ImageClassification>>, Error>> {
        use strust::methods::DoGState;
        let stepper = |method: DoG<_>| {
            common.stepper_on(method.schedule(common.schedule), gpu.device, |state, device| DoGState {
                x: state.x.to_device(device),
                start: state.start.to_device(device),
                ..state
            })
        };
        Some(DoG::new(config).map(stepper).map_err(Error::from))
    }
}
