//! Auto: the default method.

use super::{Common, MethodEntry};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = AutoConfig;
    const TITLE: &'static str = "The default: schedule-free trust region with learned curvature, no learning rate";

    fn stepper<F, C>(config: Self::Config, common: Common, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(Auto::new(config)?))
    }

    #[cfg(feature = "torch")]
    fn on_gpu(
        config: Self::Config,
        _: Common,
        gpu: &super::Gpu,
    ) -> Option<Result<Box<dyn Stepper<strust_torch::ImageClassification>>, Error>> {
        use crate::stepper::Captured;
        use strust_torch::DeviceAuto;
        Some(Ok(Box::new(Captured::<DeviceAuto<f32>>::new(config, gpu.batch, gpu.terms, gpu.launch))))
    }
}
