//! The loss of a model on a mini-batch, as an objective of the library.

mod products;
mod supervised;
mod table;

pub use supervised::{SupervisedLoss, supervised};
pub use table::TableLoss;

use crate::{Component, Error, Flat, ModelParameters, cuda::hold_off_capture, sample_queue::SampleQueue};
use std::{
    cell::RefCell,
    fmt,
    path::Path,
    sync::{
        Mutex, PoisonError, RwLockReadGuard,
        atomic::{AtomicU64, Ordering},
    },
};
use strust::{
    objective::{Evaluation, Objective, ProductKind},
    sample::Sample,
    vector::Vector,
};
use tch::{Kind, Reduction, Tensor, nn::VarStore, no_grad};

/// A running statistic that is large beside every real one, and a power of two. See
/// [`TorchObjective::recompute_statistics`].
const LARGE: f64 = 1_048_576.0;

/// libtorch has one random generator for all threads. A thread holds this lock from seeding it until its numbers are
/// drawn.
static GENERATOR: Mutex<()> = Mutex::new(());

/// Seeds libtorch's generator and runs `draw`, while no other thread uses the generator. Use it to initialize a model
/// reproducibly, without an effect on evaluations in other threads.
///
/// Do not nest it, do not call it in a loss, which holds the generator already, and do not evaluate a loss in it.
pub fn seeded<R>(seed: u64, draw: impl FnOnce() -> R) -> R {
    // While another thread captures, the generator of a GPU cannot draw for this one.
    let _held = hold_off_capture();
    seeded_here(seed, draw)
}

/// The same for a thread that already holds off captures.
fn seeded_here<R>(seed: u64, draw: impl FnOnce() -> R) -> R {
    let _held = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    reseed(seed);
    draw()
}

/// The mean loss of a model on a sample, as a function of its parameters.
///
/// The same sample always defines the same function. The generator is seeded from the sample before each evaluation, so
/// augmentation and dropout repeat. Batch-norm uses the statistics of the sample's own batch.
///
/// Each step makes one evaluation with a gradient, and only that one updates the running statistics. They stay
/// unchanged after an evaluation of the value only (a trial), after a loss that is not finite, and for a sample without
/// a seed, with which the library measures the full sum ([`Sample::range`]). A batch function should not augment a
/// sample without a seed. If a loss draws numbers for such a sample, they are the same each time.
///
/// Products with the curvature of a sample ([`Objective::curvature_product`]) differentiate twice: the Hessian of any
/// loss, the Gauss–Newton matrix of a loss with [outputs](BatchLoss::outputs), such as that of [`supervised`]. They use the
/// batch and the dropout masks of the sample, and leave the running statistics unchanged. A model with an operation that
/// libtorch cannot differentiate twice has no products.
///
/// After an evaluation the model has its parameters back. [`set`](Self::set) writes the result of a run into the model.
#[derive(Debug)]
pub struct TorchObjective<T, L> {
    parameters: ModelParameters<T>,
    terms: usize,
    loss: L,
    /// The id of the last [`DeviceRun`](crate::DeviceRun) that was started on it.
    run: u64,
    /// The kinds of products that the model turned out not to have.
    without_products: Vec<ProductKind>,
}

/// The source of a step's batch: a sample on the host, or [`Queued`].
pub trait BatchSource<L> {
    /// Prepares the batch for all evaluations of a step.
    fn prepare(&self, _loss: &mut L) {}
    /// The mean loss on the batch.
    fn mean(&self, loss: &mut L) -> Tensor;
    /// The outputs on the batch, if the loss has any.
    fn outputs<'a>(&self, loss: &'a mut L) -> Option<ModelOutputs<'a>>;
    /// Whether a step updates the running statistics.
    fn moves_statistics(&self) -> bool;
    /// A guard to hold during an evaluation, so that no other thread captures.
    fn held(&self) -> Option<RwLockReadGuard<'static, ()>>;
}

impl<L: BatchLoss> BatchSource<L> for Sample {
    fn mean(&self, loss: &mut L) -> Tensor {
        if loss.draws() { seeded_here(generator_seed(self), || loss.mean(self)) } else { loss.mean(self) }
    }
    fn outputs<'a>(&self, loss: &'a mut L) -> Option<ModelOutputs<'a>> {
        if loss.draws() { seeded_here(generator_seed(self), || loss.outputs(self)) } else { loss.outputs(self) }
    }
    fn moves_statistics(&self) -> bool {
        !self.measures()
    }
    fn held(&self) -> Option<RwLockReadGuard<'static, ()>> {
        Some(hold_off_capture())
    }
}

/// The next batch that is queued on the device.
pub(crate) struct Queued<'a, B> {
    queue: &'a SampleQueue,
    taken: RefCell<Option<B>>,
}

impl<'a, B> Queued<'a, B> {
    pub fn new(queue: &'a SampleQueue) -> Self {
        Self { queue, taken: RefCell::new(None) }
    }
    fn with<R>(&self, use_it: impl FnOnce(&B) -> R) -> R {
        use_it(self.taken.borrow().as_ref().expect("a step prepares its batch first"))
    }
}

impl<L: QueuedLoss> BatchSource<L> for Queued<'_, L::Batch> {
    fn prepare(&self, loss: &mut L) {
        self.taken.replace(Some(no_grad(|| loss.planned(&self.queue.take()))));
    }
    fn mean(&self, loss: &mut L) -> Tensor {
        self.with(|batch| loss.mean_on(batch))
    }
    fn outputs<'a>(&self, loss: &'a mut L) -> Option<ModelOutputs<'a>> {
        self.with(|batch| loss.outputs_on(batch))
    }
    fn moves_statistics(&self) -> bool {
        true
    }
    /// No guard: the evaluation may be part of a capture, and [`DeviceRun`](crate::DeviceRun) holds the lock itself.
    fn held(&self) -> Option<RwLockReadGuard<'static, ()>> {
        None
    }
}

/// A loss whose batches can be queued on the device, so that a step needs nothing from the host.
/// [`DeviceRun`](crate::DeviceRun) captures such steps.
///
/// Only plans are copied from the host. [`planned`](Self::planned) and [`mean_on`](Self::mean_on) launch the same
/// operations with the same shapes each time, on memory that stays in place. They read no number from the device: no
/// random numbers, no `double_value`, no `nonzero`, no boolean mask as an index, no branch on a value.
pub trait QueuedLoss: BatchLoss {
    /// A batch on the device.
    type Batch;
    /// The numbers from which the device makes the batch of a sample. Samples of the same size have as many.
    fn plan(&self, sample: &Sample) -> Vec<i64>;
    /// The batch of a plan that is on the device.
    fn planned(&self, plan: &Tensor) -> Self::Batch;
    /// The mean loss on a batch in training mode, as a tensor of one number.
    fn mean_on(&mut self, batch: &Self::Batch) -> Tensor;
    /// [`BatchLoss::outputs`] on a batch.
    fn outputs_on(&mut self, _batch: &Self::Batch) -> Option<ModelOutputs<'_>> {
        None
    }
}

/// The outputs of a model on a batch, and its mean loss as a function of them.
pub struct ModelOutputs<'a> {
    /// The outputs, such as logits, in training mode.
    pub outputs: Tensor,
    /// The mean loss, convex in the outputs, as a tensor of one number.
    pub loss: Box<dyn Fn(&Tensor) -> Tensor + 'a>,
}

impl fmt::Debug for ModelOutputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelOutputs({:?})", self.outputs.size())
    }
}

/// The mean loss of a model on a sample: a closure, or the loss of a problem of this crate.
pub trait BatchLoss {
    /// The mean loss in training mode, as a tensor of one number.
    fn mean(&mut self, sample: &Sample) -> Tensor;
    /// The outputs of the model on a sample and their loss, for the Gauss–Newton matrix. It evaluates the model as
    /// [`mean`](Self::mean) does. None by default; then there is no such matrix.
    fn outputs(&mut self, _sample: &Sample) -> Option<ModelOutputs<'_>> {
        None
    }
    /// Whether it draws from libtorch's generator. If so, the generator is seeded first, and other threads wait for it.
    fn draws(&self) -> bool {
        true
    }
}

impl<L: FnMut(&Sample) -> Tensor> BatchLoss for L {
    fn mean(&mut self, sample: &Sample) -> Tensor {
        self(sample)
    }
}

impl<T: Component, L: FnMut(&Sample) -> Tensor> TorchObjective<T, L> {
    /// An objective over the variables of `store`. `loss` evaluates the model in training mode on a sample and returns
    /// the mean loss as a tensor of one number. The sum has `terms` terms.
    pub fn new(store: &VarStore, terms: usize, loss: L) -> Result<Self, Error> {
        Self::over(store, terms, loss)
    }
}

impl<T: Component, L: BatchLoss> TorchObjective<T, L> {
    /// [`new`](Self::new) for any loss. Rust infers the argument type of a closure only in `new`.
    pub fn over(store: &VarStore, terms: usize, loss: L) -> Result<Self, Error> {
        Ok(Self { parameters: ModelParameters::new(store)?, terms, loss, run: 0, without_products: Vec::new() })
    }

    /// The model's parameters.
    #[must_use]
    pub fn parameters(&self) -> &ModelParameters<T> {
        &self.parameters
    }
    /// A copy of the model's parameters: the start of a run.
    #[must_use]
    pub fn point(&self) -> Flat<T> {
        self.parameters.flat().clone()
    }
    /// Writes a point into the model.
    pub fn set(&mut self, x: &Flat<T>) {
        self.parameters.set(x);
    }
    /// Writes a point and the model's buffers as a safetensors file ([`ModelParameters::save`]).
    pub fn save(&mut self, path: &Path, x: &Flat<T>) -> Result<(), Error> {
        self.check_point(x)?;
        self.elsewhere(|f| {
            f.set(x);
            f.parameters.save(path)
        })
    }
    /// Reads such a file into the model and returns the point.
    pub fn load(&mut self, path: &Path) -> Result<Flat<T>, Error> {
        self.parameters.load(path)?;
        Ok(self.point())
    }
    /// The id of a new run, which no other run has.
    pub(crate) fn begin_run(&mut self) -> u64 {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        self.run = RUNS.fetch_add(1, Ordering::Relaxed);
        self.run
    }
    pub(crate) fn run(&self) -> u64 {
        self.run
    }
    pub(crate) fn parameters_mut(&mut self) -> &mut ModelParameters<T> {
        &mut self.parameters
    }
    pub(crate) fn loss(&self) -> &L {
        &self.loss
    }
    pub(crate) fn loss_mut(&mut self) -> &mut L {
        &mut self.loss
    }
    /// Evaluates at x. The model keeps the parameters x.
    pub(crate) fn value_at(&mut self, x: &Flat<T>, sample: &Sample) -> f64 {
        self.set(x);
        self.value_here(sample).double_value(&[])
    }
    /// The same with the gradient.
    pub(crate) fn value_and_gradient_at(&mut self, x: &Flat<T>, sample: &Sample, gradient: &mut Flat<T>) -> f64 {
        self.set(x);
        self.value_and_gradient_here(sample, gradient).double_value(&[])
    }

    /// The value at the model's own parameters, in double precision, on the device.
    pub(crate) fn value_here(&mut self, on: &impl BatchSource<L>) -> Tensor {
        let _held = on.held();
        let buffers = self.parameters.snapshot();
        let value = no_grad(|| self.forward(on));
        self.parameters.restore(&buffers);
        value.to_kind(Kind::Double)
    }
    /// The value and the gradient at the model's own parameters. If the value is not finite, the running statistics
    /// stay unchanged.
    pub(crate) fn value_and_gradient_here(&mut self, on: &impl BatchSource<L>, gradient: &mut Flat<T>) -> Tensor {
        let _held = on.held();
        on.prepare(&mut self.loss);
        let buffers = self.parameters.snapshot();
        let value = self.forward(on);
        self.parameters.gradient(&value, gradient);
        let value = value.detach().to_kind(Kind::Double);
        if on.moves_statistics() {
            self.parameters.restore_unless(&value.isfinite(), &buffers);
        } else {
            self.parameters.restore(&buffers);
        }
        value
    }
    fn forward(&mut self, on: &impl BatchSource<L>) -> Tensor {
        let value = on.mean(&mut self.loss);
        assert_eq!(value.numel(), 1, "the loss is the mean over the batch: one number, not {:?}", value.size());
        value.reshape([0_i64; 0])
    }
    /// Computes the running statistics of batch-norm anew at x: the mean, over some training samples, of the means and
    /// variances of their batches. (PyTorch does this with `momentum=None`.) The parameters and all other buffers stay
    /// unchanged.
    ///
    /// Steps update the running statistics at the points where they take gradients. Use this function before you
    /// evaluate or save another point, such as an average of iterates.
    pub fn recompute_statistics(&mut self, x: &Flat<T>, samples: impl IntoIterator<Item = Sample>) {
        let mut statistics = self.parameters.statistics();
        let mut samples = samples.into_iter().peekable();
        if statistics.is_empty() || samples.peek().is_none() {
            return;
        }
        let buffers = self.parameters.snapshot();
        // A pass in training mode sets r ← (1 − m)·r + m·b, where b belongs to its batch. A pass from r = 0 leaves m·b.
        // The layers do not reveal m, but a pass from a large r leaves (1 − m)·r, up to rounding.
        let mut pass = |f: &mut Self, sample: &Sample, from: f64| -> Vec<Tensor> {
            let _held = hold_off_capture();
            no_grad(|| {
                for r in &mut statistics {
                    let _ = r.fill_(from);
                }
                let _ = f.forward(sample);
                statistics.iter().map(|r| r.to_kind(Kind::Double).copy()).collect()
            })
        };
        let (momenta, means) = self.elsewhere(|f| {
            f.set(x);
            let first = samples.next().expect("there is a sample");
            let far = pass(f, &first, LARGE);
            let mut sums = pass(f, &first, 0.0);
            let momenta: Vec<Tensor> = far.iter().zip(&sums).map(|(far, near)| 1.0 - (far - near) / LARGE).collect();
            let mut count = 1.0;
            for sample in samples {
                sums.iter_mut().zip(pass(f, &sample, 0.0)).for_each(|(sum, one)| *sum += one);
                count += 1.0;
            }
            let means: Vec<Tensor> = sums.iter().zip(&momenta).map(|(sum, m)| sum / (m * count)).collect();
            (momenta, means)
        });
        self.parameters.restore(&buffers);
        for ((r, mean), m) in statistics.iter_mut().zip(&means).zip(&momenta) {
            // Statistics that never move, with m = 0, are kept.
            r.copy_(&mean.where_self(&m.gt(0.0), &r.to_kind(Kind::Double)));
        }
    }
    /// Evaluates, then restores the model's parameters.
    pub(crate) fn elsewhere<R>(&mut self, evaluate: impl FnOnce(&mut Self) -> R) -> R {
        let own = self.point();
        let result = evaluate(self);
        self.set(&own);
        result
    }
}

/// The mean cross-entropy of logits and classes, in the precision of the logits. tch's own function always uses single
/// precision.
pub fn cross_entropy(logits: &Tensor, classes: &Tensor) -> Tensor {
    logits.cross_entropy_loss::<Tensor>(classes, None, Reduction::Mean, -100, 0.0)
}

/// The seed is 0 for a sample without one, so that a loss that draws numbers is still a function of the sample.
fn generator_seed(sample: &Sample) -> u64 {
    sample.seed().unwrap_or(0)
}

fn reseed(seed: u64) {
    tch::manual_seed(seed.cast_signed());
}

impl<T: Component, L: BatchLoss> Objective for TorchObjective<T, L> {
    type Point = Flat<T>;

    fn terms(&self) -> usize {
        self.terms
    }
    fn value(&mut self, x: &Flat<T>, sample: &Sample) -> Evaluation {
        Evaluation::new(self.elsewhere(|f| f.value_at(x, sample)), T::EPSILON)
    }
    fn value_and_gradient(&mut self, x: &Flat<T>, sample: &Sample, gradient: &mut Flat<T>) -> Evaluation {
        Evaluation::new(self.elsewhere(|f| f.value_and_gradient_at(x, sample, gradient)), T::EPSILON)
    }
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        x: &Flat<T>,
        sample: &Sample,
        direction: &Flat<T>,
        product: &mut Flat<T>,
    ) -> bool {
        self.elsewhere(|f| {
            f.set(x);
            f.product_here(kind, sample, direction, product)
        })
    }
    fn check_point(&self, x: &Flat<T>) -> Result<(), strust::Error> {
        let (expected, found) = (self.parameters.flat().shape(), x.shape());
        if expected != found {
            return Err(strust::Error::Shape { place: "model", expected, found });
        }
        Ok(())
    }
}
