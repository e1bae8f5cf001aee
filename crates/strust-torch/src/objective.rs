//! The loss of a model on a mini-batch as the library's objective.

use crate::{Component, Error, Flat, Parameters, cuda::beside_no_capture};
use std::sync::{
    Mutex, PoisonError, RwLockReadGuard,
    atomic::{AtomicU64, Ordering},
};
use strust::{objective::Objective, sample::Sample, vector::Vector};
use tch::{Kind, Reduction, Tensor, nn::VarStore, no_grad};

/// libtorch has one random generator for all threads: whoever seeds it keeps it until the numbers are drawn.
static GENERATOR: Mutex<()> = Mutex::new(());

/// Runs `draw` with libtorch's generator seeded and to itself: how to initialize a model reproducibly, and without
/// disturbing an evaluation in another thread.
///
/// It is not to be nested, nor called by a loss, which has the generator already; nor is a loss to be evaluated in it.
pub fn seeded<R>(seed: u64, draw: impl FnOnce() -> R) -> R {
    // The generator of a GPU draws nothing for this thread while another one captures.
    let _held = beside_no_capture();
    seeded_here(seed, draw)
}

/// The same for a thread that sees to it that no other one captures.
fn seeded_here<R>(seed: u64, draw: impl FnOnce() -> R) -> R {
    let _held = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    reseed(seed);
    draw()
}

/// The mean loss of a model on a sample, as a function of its parameters.
///
/// The same sample is the same function. The generator is seeded from the sample before each evaluation, so augmentation
/// and dropout repeat; batch-norm uses the statistics of the sample's own batch. An evaluation with a gradient, which
/// each step makes once, moves the running statistics; a value alone, which is a trial, leaves them as they were, and
/// so does a sample without a seed, by which the library measures the full sum ([`Sample::range`]), and a loss that is
/// not finite. Augmentation is to be left out where the sample has no seed; what a loss draws nevertheless is the same
/// each time.
///
/// After an evaluation the model has the parameters it had before. [`set`](Self::set) gives it the result of a run.
#[derive(Debug)]
pub struct TorchObjective<T, L> {
    parameters: Parameters<T>,
    terms: usize,
    loss: L,
    /// The last [`DeviceRun`](crate::DeviceRun) that was started on it.
    run: u64,
}

/// Where the batch of a step comes from: a sample on the host, or [`Queued`].
pub trait Source<L> {
    /// Makes the batch; all evaluations of a step use it.
    fn prepare(&self, _loss: &mut L) {}
    /// The mean loss on it.
    fn mean(&self, loss: &mut L) -> Tensor;
    /// Whether the running statistics move with a step.
    fn moves_statistics(&self) -> bool;
    /// Held while it is evaluated: no other thread captures then.
    fn held(&self) -> Option<RwLockReadGuard<'static, ()>>;
}

impl<L: BatchLoss> Source<L> for Sample {
    fn mean(&self, loss: &mut L) -> Tensor {
        if loss.draws() { seeded_here(generator_seed(self), || loss.mean(self)) } else { loss.mean(self) }
    }
    fn moves_statistics(&self) -> bool {
        self.seed().is_some()
    }
    fn held(&self) -> Option<RwLockReadGuard<'static, ()>> {
        Some(beside_no_capture())
    }
}

/// The next of the batches that wait on the device.
#[derive(Debug, Clone, Copy)]
pub struct Queued;

impl<L: QueuedLoss> Source<L> for Queued {
    fn prepare(&self, loss: &mut L) {
        no_grad(|| loss.advance());
    }
    fn mean(&self, loss: &mut L) -> Tensor {
        loss.mean_queued()
    }
    fn moves_statistics(&self) -> bool {
        true
    }
    /// The run sees to it: these may be part of a capture.
    fn held(&self) -> Option<RwLockReadGuard<'static, ()>> {
        None
    }
}

/// A loss whose batches can wait on the device, so that a step needs nothing of the host: what
/// [`DeviceRun`](crate::DeviceRun) captures.
///
/// [`queue`](Self::queue) alone may bring something from the host. The other two give the device the same operations
/// with the same shapes each time, on memory that stays where it is, and look at no number on the device: nothing
/// random, no `double_value`, no `nonzero`, no boolean mask as an index, no branch on a value.
pub trait QueuedLoss: BatchLoss {
    /// Makes room for the samples of `steps` steps, each of `batch` terms. It is called once, before all others.
    fn reserve(&mut self, steps: usize, batch: usize);
    /// Brings the samples of the next steps to the device, in place of those that were there.
    fn queue(&mut self, samples: &[Sample]);
    /// Makes the batch of the next sample.
    fn advance(&mut self);
    /// The mean loss on it in training mode, as a tensor of one number.
    fn mean_queued(&mut self) -> Tensor;
}

/// The mean loss of a model on a sample: a closure, or the loss of a problem of this crate.
pub trait BatchLoss {
    /// The mean loss in training mode, as a tensor of one number.
    fn mean(&mut self, sample: &Sample) -> Tensor;
    /// Whether it draws from libtorch's generator, which is then seeded for it and kept from other threads.
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
    /// An objective over the variables of `store`; `loss` evaluates the model, in training mode, on a sample and gives
    /// the mean loss as a tensor of one number. The sum has `terms` terms.
    pub fn new(store: &VarStore, terms: usize, loss: L) -> Result<Self, Error> {
        Self::over(store, terms, loss)
    }
}

impl<T: Component, L: BatchLoss> TorchObjective<T, L> {
    /// [`new`](Self::new) for any loss; the argument of a closure is inferred there and not here.
    pub fn over(store: &VarStore, terms: usize, loss: L) -> Result<Self, Error> {
        Ok(Self { parameters: Parameters::new(store)?, terms, loss, run: 0 })
    }

    /// The model's parameters: `objective.parameters().flat().clone()` is a start.
    #[must_use]
    pub fn parameters(&self) -> &Parameters<T> {
        &self.parameters
    }
    /// The start: a copy of the model's parameters.
    #[must_use]
    pub fn point(&self) -> Flat<T> {
        self.parameters.flat().clone()
    }
    /// Writes a point into the model.
    pub fn set(&mut self, x: &Flat<T>) {
        self.parameters.set(x);
    }
    /// A number no other run has.
    pub(crate) fn begin_run(&mut self) -> u64 {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        self.run = RUNS.fetch_add(1, Ordering::Relaxed);
        self.run
    }
    pub(crate) fn run(&self) -> u64 {
        self.run
    }
    pub(crate) fn parameters_mut(&mut self) -> &mut Parameters<T> {
        &mut self.parameters
    }
    pub(crate) fn loss(&self) -> &L {
        &self.loss
    }
    pub(crate) fn loss_mut(&mut self) -> &mut L {
        &mut self.loss
    }
    /// Evaluates at x and leaves the model there.
    pub(crate) fn value_at(&mut self, x: &Flat<T>, sample: &Sample) -> f64 {
        self.set(x);
        self.value_here(sample).double_value(&[])
    }
    /// The same with the gradient.
    pub(crate) fn value_and_gradient_at(&mut self, x: &Flat<T>, sample: &Sample, gradient: &mut Flat<T>) -> f64 {
        self.set(x);
        self.value_and_gradient_here(sample, gradient).double_value(&[])
    }

    /// The value at the model's own parameters, in double precision, left on the device.
    pub(crate) fn value_here(&mut self, on: &impl Source<L>) -> Tensor {
        let _held = on.held();
        let buffers = self.parameters.snapshot();
        let value = no_grad(|| self.forward(on));
        self.parameters.restore(&buffers);
        value.to_kind(Kind::Double)
    }
    /// The value and the gradient at the model's own parameters; a value that is not finite leaves the running statistics
    /// as they were.
    pub(crate) fn value_and_gradient_here(&mut self, on: &impl Source<L>, gradient: &mut Flat<T>) -> Tensor {
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
    fn forward(&mut self, on: &impl Source<L>) -> Tensor {
        let value = on.mean(&mut self.loss);
        assert_eq!(value.numel(), 1, "the loss is the mean over the batch: one number, not {:?}", value.size());
        value.reshape([0_i64; 0])
    }
    /// Evaluates, then gives the model its parameters back.
    fn elsewhere<R>(&mut self, evaluate: impl FnOnce(&mut Self) -> R) -> R {
        let own = self.point();
        let result = evaluate(self);
        self.set(&own);
        result
    }
}

/// The mean loss on a sample, as [`supervised`] makes it.
pub type Loss<'a> = Box<dyn FnMut(&Sample) -> Tensor + 'a>;

/// An objective from the parts of supervised learning: `batch` gives inputs and targets of a sample (with its
/// augmentation drawn from libtorch's generator or from the sample's seed), `model` is the forward pass in training
/// mode, `loss` the mean loss of outputs and targets. A sample's batch is made once for all evaluations of a step.
pub fn supervised<'a, T: Component>(
    store: &VarStore,
    terms: usize,
    mut batch: impl FnMut(&Sample) -> (Tensor, Tensor) + 'a,
    model: impl Fn(&Tensor) -> Tensor + 'a,
    loss: impl Fn(&Tensor, &Tensor) -> Tensor + 'a,
) -> Result<TorchObjective<T, Loss<'a>>, Error> {
    let mut last: Option<(Sample, Tensor, Tensor)> = None;
    let evaluate: Loss<'a> = Box::new(move |sample: &Sample| {
        if last.as_ref().is_none_or(|(of, ..)| of != sample) {
            let (inputs, targets) = no_grad(|| batch(sample));
            last = Some((sample.clone(), inputs, targets));
        }
        let (_, inputs, targets) = last.as_ref().expect("set above");
        // Again, so that the model's dropout does not depend on whether the batch was made or kept.
        reseed(!generator_seed(sample));
        loss(&model(inputs), targets)
    });
    TorchObjective::new(store, terms, evaluate)
}

/// The mean cross-entropy of logits and classes, in the precision of the logits (tch's own is always in single).
pub fn cross_entropy(logits: &Tensor, classes: &Tensor) -> Tensor {
    logits.cross_entropy_loss::<Tensor>(classes, None, Reduction::Mean, -100, 0.0)
}

/// A sample without a seed has nothing to draw; a loss that draws nevertheless stays a function of the sample.
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
    fn value(&mut self, x: &Flat<T>, sample: &Sample) -> f64 {
        self.elsewhere(|f| f.value_at(x, sample))
    }
    fn value_and_gradient(&mut self, x: &Flat<T>, sample: &Sample, gradient: &mut Flat<T>) -> f64 {
        self.elsewhere(|f| f.value_and_gradient_at(x, sample, gradient))
    }
    fn check_point(&self, x: &Flat<T>) -> Result<(), strust::Error> {
        let (expected, found) = (self.parameters.flat().shape(), x.shape());
        if expected != found {
            return Err(strust::Error::Shape { place: "model", expected, found });
        }
        Ok(())
    }
}
