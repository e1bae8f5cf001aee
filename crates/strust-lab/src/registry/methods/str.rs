//! STR: the stochastic trust region.

use super::{Common, MethodEntry, ModelKind, StepKind};
use crate::{Error, registry::Setup, stepper::Stepper};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = StrConfig;
    const NAME: &'static str = "str";
    const TITLE: &'static str = "Stochastic trust region, Algorithm 1";
    const MODEL: ModelKind = ModelKind::Identity;
    const STEPS: StepKind = StepKind::Region;

    fn stepper<F, C>(config: Self::Config, common: Common, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(common.stepper(Str::new(config)?))
    }

    #[cfg(feature = "torch")]
    fn on_gpu(
        config: Self::Config,
        _: Common,
        gpu: &super::Gpu,
    ) -> Option<Result<Box<dyn Stepper<strust_torch::ImageClassification>>, Error>> {
        use crate::stepper::Captured;
        use strust_torch::DeviceStr;
        Some(Ok(Box::new(Captured::<DeviceStr<f32>>::new(config, gpu.batch, gpu.terms, gpu.launch))))
    }
}
