//! STR: the stochastic trust region.

use super::{MethodEntry, ModelKind};
use crate::{
    Error,
    registry::Setup,
    stepper::{StepByStep, Stepper},
};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = StrConfig;
    const NAME: &'static str = "str";
    const TITLE: &'static str = "Stochastic trust region, Algorithm 1";
    const MODEL: ModelKind = ModelKind::Identity;

    fn stepper<F, C>(config: Self::Config, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(Box::new(StepByStep::new(Str::new(config)?)))
    }

    #[cfg(feature = "torch")]
    fn on_gpu(
        config: Self::Config,
        gpu: &super::Gpu,
    ) -> Option<Result<Box<dyn Stepper<strust_torch::ImageClassification>>, Error>> {
        use crate::stepper::Captured;
        Some(Ok(Box::new(Captured::<strust_torch::DeviceStr<f32>>::new(config, gpu.batch, gpu.terms, gpu.launch))))
    }
}
