//! The loss of supervised learning, from its parts.

use super::{BatchLoss, ModelOutputs, TorchObjective, generator_seed, reseed};
use crate::{Component, Error};
use std::fmt;
use strust::sample::Sample;
use tch::{Tensor, nn::VarStore, no_grad};

type MakeBatch<'a> = Box<dyn FnMut(&Sample) -> (Tensor, Tensor) + 'a>;
type LossOf<'a> = Box<dyn Fn(&Tensor, &Tensor) -> Tensor + 'a>;

/// The mean loss on a sample, as created by [`supervised`].
pub struct SupervisedLoss<'a> {
    batch: MakeBatch<'a>,
    model: Box<dyn Fn(&Tensor) -> Tensor + 'a>,
    loss: LossOf<'a>,
    /// The batch of the last sample. All evaluations of a step use the same batch.
    last: Option<(Sample, Tensor, Tensor)>,
}

impl SupervisedLoss<'_> {
    /// Makes the batch of a sample, and returns the outputs of the model.
    fn forward(&mut self, sample: &Sample) -> Tensor {
        if self.last.as_ref().is_none_or(|(of, ..)| of != sample) {
            let (inputs, targets) = no_grad(|| (self.batch)(sample));
            self.last = Some((sample.clone(), inputs, targets));
        }
        let (_, inputs, _) = self.last.as_ref().expect("set above");
        // Seeded again, so that dropout does not depend on whether the batch was computed or reused.
        reseed(!generator_seed(sample));
        (self.model)(inputs)
    }
    fn of_outputs(&self, outputs: &Tensor) -> Tensor {
        let (_, _, targets) = self.last.as_ref().expect("a forward pass makes a batch");
        (self.loss)(outputs, targets)
    }
}

impl BatchLoss for SupervisedLoss<'_> {
    fn mean(&mut self, sample: &Sample) -> Tensor {
        let outputs = self.forward(sample);
        self.of_outputs(&outputs)
    }
    fn outputs(&mut self, sample: &Sample) -> Option<ModelOutputs<'_>> {
        let outputs = self.forward(sample);
        Some(ModelOutputs { outputs, loss: Box::new(|outputs| self.of_outputs(outputs)) })
    }
}

impl fmt::Debug for SupervisedLoss<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisedLoss").finish_non_exhaustive()
    }
}

/// An objective from the parts of supervised learning: `batch` returns the inputs and targets of a sample, with
/// augmentation drawn from libtorch's generator or from the sample's seed; `model` is the forward pass in training
/// mode; `loss` is the mean loss of outputs and targets. The batch of a sample is computed once for all evaluations of
/// a step.
pub fn supervised<'a, T: Component>(
    store: &VarStore,
    terms: usize,
    batch: impl FnMut(&Sample) -> (Tensor, Tensor) + 'a,
    model: impl Fn(&Tensor) -> Tensor + 'a,
    loss: impl Fn(&Tensor, &Tensor) -> Tensor + 'a,
) -> Result<TorchObjective<T, SupervisedLoss<'a>>, Error> {
    let loss = SupervisedLoss { batch: Box::new(batch), model: Box::new(model), loss: Box::new(loss), last: None };
    TorchObjective::over(store, terms, loss)
}
