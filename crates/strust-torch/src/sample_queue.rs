//! Samples that are queued on the device.

use crate::{BatchLoss, ModelOutputs, QueuedLoss, cuda};
use strust::sample::Sample;
use tch::{Device, Kind, Tensor, no_grad};

/// Rows of numbers on the device, one per step. The index of the next row is also on the device, so that taking a row
/// is the same operation each time.
///
/// ```
/// use strust_torch::SampleQueue;
/// let mut queue = SampleQueue::new(2, 3, tch::Device::Cpu);
/// queue.fill(&[1, 2, 3, 4, 5, 6]);
/// queue.take();
/// assert_eq!(Vec::<i64>::try_from(queue.take())?, [4, 5, 6]);
/// # Ok::<(), tch::TchError>(())
/// ```
#[derive(Debug)]
pub struct SampleQueue {
    rows: Tensor,
    next: Tensor,
}

impl SampleQueue {
    /// Room for `rows` rows of `width` numbers.
    #[must_use]
    pub fn new(rows: usize, width: usize, device: Device) -> Self {
        let rows = Tensor::zeros([rows as i64, width as i64], (Kind::Int64, device));
        Self { rows, next: Tensor::zeros([1], (Kind::Int64, device)) }
    }
    /// Copies rows to the device, in one copy. The first of them is the next row.
    pub fn fill(&mut self, numbers: &[i64]) {
        let rows = upload(numbers, self.rows.device()).view([-1, self.rows.size()[1]]);
        self.rows.narrow(0, 0, rows.size()[0]).copy_(&rows);
        let _ = self.next.zero_();
    }
    /// Takes the next row.
    pub fn take(&mut self) -> Tensor {
        let row = self.rows.index_select(0, &self.next).squeeze_dim(0);
        let _ = self.next.g_add_scalar_(1);
        row
    }
}

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
    queue: Option<SampleQueue>,
    taken: Option<(Tensor, Tensor)>,
}

impl<M: Fn(&Tensor) -> Tensor, L: Fn(&Tensor, &Tensor) -> Tensor> TableLoss<M, L> {
    /// Row i of `inputs` and of `targets` is term i.
    pub fn new(inputs: Tensor, targets: Tensor, model: M, loss: L) -> Self {
        Self { inputs, targets, model, loss, queue: None, taken: None }
    }
    fn rows(&self, rows: &Tensor) -> (Tensor, Tensor) {
        no_grad(|| (self.inputs.index_select(0, rows), self.targets.index_select(0, rows)))
    }
    fn batch(&self, sample: &Sample) -> (Tensor, Tensor) {
        self.rows(&upload(&indices(sample).collect::<Vec<_>>(), self.inputs.device()))
    }
    fn outputs_on(&self, inputs: &Tensor, targets: Tensor) -> ModelOutputs<'_> {
        ModelOutputs { outputs: (self.model)(inputs), loss: Box::new(move |outputs| (self.loss)(outputs, &targets)) }
    }
}

/// Copies numbers to a device. A GPU copies them from pinned memory, and the host does not wait.
pub(crate) fn upload(numbers: &[i64], device: Device) -> Tensor {
    let here = Tensor::from_slice(numbers);
    match device {
        Device::Cuda(_) => cuda::pinned(&here).to_device_(device, Kind::Int64, true, false),
        _ => here.to_device(device),
    }
}

fn indices(sample: &Sample) -> impl Iterator<Item = i64> {
    sample.indices().iter().map(|&i| i as i64)
}

impl<M: Fn(&Tensor) -> Tensor, L: Fn(&Tensor, &Tensor) -> Tensor> BatchLoss for TableLoss<M, L> {
    fn mean(&mut self, sample: &Sample) -> Tensor {
        let (inputs, targets) = self.batch(sample);
        (self.loss)(&(self.model)(&inputs), &targets)
    }
    fn outputs(&mut self, sample: &Sample) -> Option<ModelOutputs<'_>> {
        let (inputs, targets) = self.batch(sample);
        Some(self.outputs_on(&inputs, targets))
    }
    fn draws(&self) -> bool {
        false
    }
}

impl<M: Fn(&Tensor) -> Tensor, L: Fn(&Tensor, &Tensor) -> Tensor> QueuedLoss for TableLoss<M, L> {
    fn reserve(&mut self, steps: usize, batch: usize) {
        self.queue = Some(SampleQueue::new(steps, batch, self.inputs.device()));
    }
    fn queue(&mut self, samples: &[Sample]) {
        let rows: Vec<i64> = samples.iter().flat_map(indices).collect();
        self.queue.as_mut().expect("`reserve` was called").fill(&rows);
    }
    fn advance(&mut self) {
        self.taken = None;
        let rows = self.queue.as_mut().expect("`reserve` was called").take();
        self.taken = Some(self.rows(&rows));
    }
    fn mean_queued(&mut self) -> Tensor {
        let (inputs, targets) = self.taken.as_ref().expect("`advance` was called");
        (self.loss)(&(self.model)(inputs), targets)
    }
    fn outputs_queued(&mut self) -> Option<ModelOutputs<'_>> {
        let (inputs, targets) = self.taken.as_ref().expect("`advance` was called");
        Some(self.outputs_on(inputs, targets.shallow_clone()))
    }
}
