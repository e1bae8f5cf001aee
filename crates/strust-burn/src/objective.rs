//! A module and a loss as an objective of the library, for one step.

use crate::{Error, Parameters, Place, parameters::Others};
use burn::{module::Module, tensor::Tensor};
use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};
use strust::{
    objective::{Evaluation, Objective},
    sample::Sample,
};

/// The loss of a module on the batch of a step, as a function of its parameters.
///
/// The generator of the device is seeded before each evaluation, so that dropout draws the same mask. Each evaluation has
/// running statistics of its own.
///
/// A mistake in the closure [unwinds](raise), because NaN would change the state of the method.
pub struct StepLoss<'a, V, M, L> {
    parameters: &'a Parameters,
    module: &'a M,
    loss: L,
    /// The running statistics after the first evaluation with a gradient and a finite value.
    pub statistics: Option<Others>,
    vector: PhantomData<V>,
}

/// Ends a step. Without unwinding it ends the program.
fn raise(mistake: Error) -> ! {
    #[cfg(not(panic = "unwind"))]
    eprintln!("{mistake}");
    resume_unwind(Box::new(mistake))
}

/// The result of a function, or the mistake that has ended it.
pub fn until_mistake<R>(work: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|thrown| Err(*thrown.downcast().unwrap_or_else(|panic| resume_unwind(panic))))
}

impl<'a, V: Place, M: Module, L: FnMut(&M) -> Tensor<1>> StepLoss<'a, V, M, L> {
    pub fn new(parameters: &'a Parameters, module: &'a M, loss: L) -> Self {
        Self { parameters, module, loss, statistics: None, vector: PhantomData }
    }
    /// The module with the parameters x and with statistics of its own, and the loss there.
    fn at(&mut self, x: &V, sample: &Sample, tracked: bool) -> (M, Tensor<1>) {
        let module = self.parameters.put(self.module.clone().train(), x, tracked);
        self.parameters.device().seed(sample.seed().unwrap_or(0));
        let loss = (self.loss)(&module);
        match loss.dims()[0] {
            1 => (module, if loss.dtype() == V::DTYPE { loss } else { loss.cast(V::DTYPE) }),
            found => raise(Error::NotOneNumber { found }),
        }
    }
}

impl<V: Place, M: Module, L: FnMut(&M) -> Tensor<1>> Objective for StepLoss<'_, V, M, L> {
    type Point = V;

    /// Batches come without an end, so no method asks for the full sum.
    fn terms(&self) -> usize {
        usize::MAX
    }
    fn value(&mut self, x: &V, sample: &Sample) -> Evaluation {
        let (_, loss) = self.at(x, sample, false);
        Evaluation::new(loss.into_scalar(), V::EPSILON)
    }
    fn value_and_gradient(&mut self, x: &V, sample: &Sample, gradient: &mut V) -> Evaluation {
        let (module, loss) = self.at(x, sample, true);
        if !loss.is_tracked() {
            raise(Error::Detached);
        }
        let pieces = self.parameters.gradient(&module, &loss.backward()).unwrap_or_else(|mistake| raise(mistake));
        let value = gradient.overwrite(pieces, loss.inner());
        if value.is_finite() && self.statistics.is_none() {
            self.statistics = Some(self.parameters.others(&module));
        }
        Evaluation::new(value, V::EPSILON)
    }
    fn check_point(&self, x: &V) -> Result<(), strust::Error> {
        let (expected, found) = (vec![self.parameters.len()], x.shape());
        if expected == found { Ok(()) } else { Err(strust::Error::Shape { place: "module", expected, found }) }
    }
}
