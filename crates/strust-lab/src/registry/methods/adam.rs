//! Adam.

use super::{Common, MethodEntry, StepKind};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = AdamConfig;
    const TITLE: &'static str = "Adam; AdamW with weight_decay";
    const STEPS: StepKind = StepKind::Normalized;

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
        use strust_torch::DeviceAdam;
        let stepper = Captured::<DeviceAdam<f32>>::new(config, gpu.batch, gpu.terms, gpu.launch);
        Some(Ok(Box::new(stepper.with(move |method| method.schedule(common.schedule)))))
    }
}
