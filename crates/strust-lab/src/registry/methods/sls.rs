//! SGD with a stochastic line search.

use super::MethodEntry;
use crate::{
    Error,
    registry::Setup,
    stepper::{StepByStep, Stepper},
};
use strust::prelude::*;
use strust_problems::Problem;

pub(super) struct Method;

impl MethodEntry for Method {
    type Config = LineSearchConfig;
    const TITLE: &'static str = "SGD with a stochastic Armijo line search";

    fn stepper<F, C>(config: Self::Config, _: &Setup<F, C>) -> Result<Box<dyn Stepper<F>>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        Ok(Box::new(StepByStep::new(LineSearch::new(config)?)))
    }

    #[cfg(feature = "torch")]
    fn on_gpu(
        config: Self::Config,
        gpu: &super::Gpu,
    ) -> Option<Result<Box<dyn Stepper<strust_torch::ImageClassification>>, Error>> {
        // A line search needs every value on the CPU, so it runs step by step.
        let method = LineSearch::new(config);
        Some(method.map_err(Error::from).map(|method| Box::new(StepByStep::on(method, gpu.device)) as Box<_>))
    }
}
