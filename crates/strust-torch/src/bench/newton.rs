//! The time of a step with products, beside that of its passes alone.

use super::{EpochBarrier, synthetic, time_epochs};
use crate::{
    BatchLoss, DeviceMethod, DeviceNewton, Error, Flat, Launch, TorchObjective,
    cuda::OwnStream,
    device_method::{sealed::DeviceStep, vector},
    device_records::DeviceProgress,
    objective::BatchSource,
};
use serde::Serialize;
use std::sync::Barrier;
use strust::{
    methods::{StrNewtonConfig, StrNewtonState},
    models::NewtonMemory,
    objective::ProductKind,
    radius::RegionConfig,
    record::StepRecord,
};
use strust_problems::Problem;
use tch::Device;

/// The result of [`newton`].
#[derive(Debug, Clone, Serialize)]
pub struct NewtonSpeed {
    /// Milliseconds of the median step of [`DeviceNewton`].
    pub step_ms: f64,
    /// The same for its passes alone: a gradient, the products, and a value.
    pub passes_ms: f64,
    /// The time of the step divided by that of its passes.
    pub ratio: f64,
    /// Why the steps were not replayed from a graph.
    pub why_eager: Option<String>,
}

/// Measures steps of [`DeviceNewton`] with `products` products on synthetic images of CIFAR-10's shape, and the same passes
/// without the method. `shape` is the batch size, the steps per round and the number of rounds. One more round runs
/// before the measurement.
///
/// ```no_run
/// use strust_torch::{Launch, bench};
/// let speed = bench::newton(tch::Device::Cuda(0), Launch::Graph, 10, [128, 50, 5])?;
/// println!("a step takes {:.2} of its passes", speed.ratio);
/// # Ok::<(), strust_torch::Error>(())
/// ```
pub fn newton(device: Device, launch: Launch, products: u64, shape: [usize; 3]) -> Result<NewtonSpeed, Error> {
    // Short steps, so that all numbers stay finite.
    let region = RegionConfig { initial_radius: 0.1, max_radius: 0.1, ..RegionConfig::with_curvature() };
    let config = StrNewtonConfig { products, region, ..Default::default() };
    let (step_ms, why_eager) = time::<DeviceNewton<f32>>(device, config.clone(), launch, shape)?;
    let (passes_ms, _) = time::<Passes>(device, config, launch, shape)?;
    Ok(NewtonSpeed { step_ms, passes_ms, ratio: step_ms / passes_ms, why_eager })
}

/// Milliseconds of the median step of a method, and why it was not captured.
fn time<M: DeviceMethod<f32>>(
    device: Device,
    config: M::Config,
    launch: Launch,
    shape: [usize; 3],
) -> Result<(f64, Option<String>), Error> {
    let [batch, steps, rounds] = shape;
    let _stream = OwnStream::on(device);
    let mut problem = synthetic(batch * steps, device)?;
    let point = problem.start(0);
    let f = problem.objective();
    f.set(&point);
    let mut turns = EpochBarrier { together: &Barrier::new(1), left: rounds };
    let timed = time_epochs::<M>(f, config, launch, shape, &mut turns)?;
    let seconds = timed.epochs.iter().map(|(begin, end)| end.duration_since(*begin).as_secs_f64());
    Ok((1e3 * super::median(seconds) / steps as f64, timed.why_eager))
}

/// The passes of [`DeviceNewton`] and nothing else: x never changes.
#[derive(Debug)]
struct Passes {
    products: u64,
    gradient: Flat<f32>,
    product: Flat<f32>,
    progress: DeviceProgress,
}

impl DeviceMethod<f32> for Passes {
    type Config = StrNewtonConfig;
    type State = StrNewtonState<Flat<f32>>;

    fn at<L: BatchLoss>(
        config: StrNewtonConfig,
        f: &TorchObjective<f32, L>,
        _: Option<&Self::State>,
        read_every: usize,
    ) -> Result<Self, strust::Error> {
        let read = |k, row: &[f64]| Ok(StepRecord::plain(k, row[0], 0.0, 0.0, 0.0));
        let progress = DeviceProgress::new(0, read_every, 2, f.parameters().device(), read);
        Ok(Self { products: config.products, gradient: vector(f, None), product: vector(f, None), progress })
    }
    fn state<L: BatchLoss>(&mut self, f: &TorchObjective<f32, L>) -> StrNewtonState<Flat<f32>> {
        StrNewtonState::from_parts(f.point(), 0.1, self.progress.k(), NewtonMemory::default())
    }
}

impl DeviceStep<f32> for Passes {
    fn progress(&mut self) -> &mut DeviceProgress {
        &mut self.progress
    }
    fn advance<L: BatchLoss>(&mut self, f: &mut TorchObjective<f32, L>, on: &impl BatchSource<L>) {
        let value = f.value_and_gradient_here(on, &mut self.gradient);
        for _ in 0..self.products {
            f.product_here(ProductKind::Hessian, on, &self.gradient, &mut self.product);
        }
        let trial = f.value_here(on);
        self.progress.write(&[&value, &trial]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_and_its_passes_are_timed() {
        tch::set_num_threads(1);
        let speed = newton(Device::Cpu, Launch::Graph, 2, [2, 2, 1]).unwrap();
        assert!(speed.step_ms > 0.0 && (speed.ratio * speed.passes_ms / speed.step_ms - 1.0).abs() < 1e-12);
        assert_eq!(speed.why_eager.as_deref(), Some("CUDA graph: Cpu is no GPU"));
    }
}
