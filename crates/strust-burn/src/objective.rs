//! A module and a loss as an objective of the library, for one step.

use crate::{Error, Parameters, Place, parameters::Others};
use burn::{module::Module, tensor::Tensor};
use std::marker::PhantomData;
use strust::{
    objective::{Evaluation, Objective},
    sample::Sample,
};

/// The loss of a module on the batch of a step, as a function of its parameters.
///
/// The generator of the device is seeded before each evaluation, so that dropout draws the same mask. Only the first
/// evaluation with a gradient and a finite value moves running statistics.
pub struct StepLoss<'a, V, M, L> {
    parameters: &'a Parameters,
    module: &'a M,
    loss: L,
    /// Whether running statistics have moved.
    moved: bool,
    /// The first mistake in the closure. To the method, its value is NaN.
    pub mistake: Option<Error>,
    vector: PhantomData<V>,
}

impl<'a, V: Place, M: Module, L: FnMut(&M) -> Tensor<1>> StepLoss<'a, V, M, L> {
    pub fn new(parameters: &'a Parameters, module: &'a M, loss: L) -> Self {
        Self { parameters, module, loss, moved: false, mistake: None, vector: PhantomData }
    }
    /// The loss at x, read by a function that also gets the module with the parameters x.
    fn at(
        &mut self,
        x: &V,
        sample: &Sample,
        tracked: bool,
        read: impl FnOnce(&M, Tensor<1>) -> Result<f64, Error>,
    ) -> f64 {
        let module = self.parameters.put(self.module.clone(), x, tracked);
        self.parameters.device().seed(sample.seed().unwrap_or(0));
        let loss = (self.loss)(&module);
        let value = match loss.dims()[0] {
            1 => read(&module, if loss.dtype() == V::DTYPE { loss } else { loss.cast(V::DTYPE) }),
            found => Err(Error::NotOneNumber { found }),
        };
        value.unwrap_or_else(|mistake| {
            self.mistake.get_or_insert(mistake);
            f64::NAN
        })
    }
    fn restore(&self, others: &Others) {
        drop(others.restore(self.module.clone()));
    }
}

impl<V: Place, M: Module, L: FnMut(&M) -> Tensor<1>> Objective for StepLoss<'_, V, M, L> {
    type Point = V;

    /// Batches come without an end, so no method asks for the full sum.
    fn terms(&self) -> usize {
        usize::MAX
    }
    fn value(&mut self, x: &V, sample: &Sample) -> Evaluation {
        let others = self.parameters.others(self.module);
        let value = self.at(x, sample, false, |_, loss| Ok(loss.into_scalar()));
        self.restore(&others);
        Evaluation::new(value, V::EPSILON)
    }
    fn value_and_gradient(&mut self, x: &V, sample: &Sample, gradient: &mut V) -> Evaluation {
        let others = self.parameters.others(self.module);
        let parameters = self.parameters;
        let value = self.at(x, sample, true, |module, loss| {
            if !loss.is_tracked() {
                return Err(Error::Detached);
            }
            let pieces = parameters.gradient(module, &loss.backward())?;
            Ok(gradient.overwrite(pieces, loss.inner()))
        });
        if self.moved || !value.is_finite() {
            self.restore(&others);
        }
        self.moved |= value.is_finite();
        Evaluation::new(value, V::EPSILON)
    }
    fn check_point(&self, x: &V) -> Result<(), strust::Error> {
        let (expected, found) = (vec![self.parameters.len()], x.shape());
        if expected == found { Ok(()) } else { Err(strust::Error::Shape { place: "module", expected, found }) }
    }
}
