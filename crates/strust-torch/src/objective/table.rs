//! Supervised learning from tables on the device.

use super::{BatchLoss, ModelOutputs, QueuedLoss};
use crate::sample_queue::upload;
use strust::sample::Sample;
use tch::{Tensor, no_grad};

/// Supervised learning from tensors on the model's device, with one row per term. `model` is the forward pass in
/// training mode; `loss` is the mean loss of outputs and targets.
///
/// Neither may draw from libtorch's generator (no dropout): a captured step could not draw the same numbers for its
/// trial.
///
/// ```
/// use strust::prelude::*;
/// use strust_torch::{DeviceMethod, DeviceRun, DeviceStr, Launch, TableLoss, TorchObjective, seeded};
/// use tch::{Device, Kind, Tensor, nn, nn::Module};
///
/// // y = x₀ − 2x₁ from 32 points.
/// let store = nn::VarStore::new(Device::Cpu);
/// let net = seeded(0, || nn::linear(store.root(), 2, 1, Default::default()));
/// let x = seeded(1, || Tensor::randn([32, 2], (Kind::Float, Device::Cpu)));
/// let y = x.matmul(&Tensor::from_slice(&[1.0_f32, -2.0]).view([2, 1]));
/// let loss = TableLoss::new(x, y, move |x| net.forward(x), |out, y| out.mse_loss(y, tch::Reduction::Mean));
/// let mut f = TorchObjective::<f32, _>::over(&store, 32, loss)?;
///
/// let method = DeviceStr::start(StrConfig::default(), &f, 400)?;
/// let mut run = DeviceRun::new(&mut f, method, 8, 400, Launch::Eager);
/// run.steps(&mut f, &mut Epochs::new(32, 8, 0)?, 400)?;
/// assert!(run.method().records()?.last().unwrap().value < 1e-8);
/// # Ok::<(), strust_torch::Error>(())
/// ```
#[derive(Debug)]
pub struct TableLoss<M, L> {
    inputs: Tensor,
    targets: Tensor,
    model: M,
    loss: L,
}

impl<M: Fn(&Tensor) -> Tensor, L: Fn(&Tensor, &Tensor) -> Tensor> TableLoss<M, L> {
    /// Row i of `inputs` and of `targets` is term i.
    pub fn new(inputs: Tensor, targets: Tensor, model: M, loss: L) -> Self {
        Self { inputs, targets, model, loss }
    }
    fn batch(&self, sample: &Sample) -> (Tensor, Tensor) {
        self.planned(&upload(&self.plan(sample), self.inputs.device()))
    }
}

impl<M: Fn(&Tensor) -> Tensor, L: Fn(&Tensor, &Tensor) -> Tensor> BatchLoss for TableLoss<M, L> {
    fn mean(&mut self, sample: &Sample) -> Tensor {
        let batch = self.batch(sample);
        self.mean_on(&batch)
    }
    fn outputs(&mut self, sample: &Sample) -> Option<ModelOutputs<'_>> {
        let batch = self.batch(sample);
        self.outputs_on(&batch)
    }
    fn draws(&self) -> bool {
        false
    }
}

impl<M: Fn(&Tensor) -> Tensor, L: Fn(&Tensor, &Tensor) -> Tensor> QueuedLoss for TableLoss<M, L> {
    type Batch = (Tensor, Tensor);
    fn plan(&self, sample: &Sample) -> Vec<i64> {
        sample.indices().iter().map(|&i| i as i64).collect()
    }
    fn planned(&self, rows: &Tensor) -> (Tensor, Tensor) {
        no_grad(|| (self.inputs.index_select(0, rows), self.targets.index_select(0, rows)))
    }
    fn mean_on(&mut self, (inputs, targets): &(Tensor, Tensor)) -> Tensor {
        (self.loss)(&(self.model)(inputs), targets)
    }
    fn outputs_on(&mut self, (inputs, targets): &(Tensor, Tensor)) -> Option<ModelOutputs<'_>> {
        let (outputs, targets) = ((self.model)(inputs), targets.shallow_clone());
        Some(ModelOutputs { outputs, loss: Box::new(move |outputs| (self.loss)(outputs, &targets)) })
    }
}
