//! Adam.

use super::{Common, MethodEntry};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = AdamConfig;
    const TITLE: &'static str = "Adam; AdamW with weight_decay";

    fn stepper<F, C>(config: Self::Config, common: Common, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(Adam::new(config)?.schedule(common.schedule)))
    }

    #[cfg(feature = "torch")]
    fn on_gpu(
        config: Self::Config,
        common: Common,
        gpu: &super::Gpu,
    ) -> Option<Result<Box<dyn Stepper<strust_torch::ImageClassification>>, Error>> {
        use crate::stepper::Captured;
        use strust_torch::OnDevice;
        // The captured step has a constant rate, no weight decay and no average.
        if common != Common::default() || config.weight_decay > 0.0 {
            let method = Adam::new(config).map(|adam| adam.schedule(common.schedule));
            return Some(method.map(|method| common.stepper_on(method, gpu.device, OnDevice::on)).map_err(Error::from));
        }
        Some(Ok(Box::new(Captured::<strust_torch::DeviceAdam<f32>>::new(config, gpu.batch, gpu.terms, gpu.launch))))
    }
}
