//! A problem of any type. Every method is compiled once per type of point, not once per problem: that would take minutes.

use std::any::Any;
use strust::{
    Error,
    objective::{Consensus, Evaluation, Objective, ProductKind},
    sample::{Draws, Sample},
    vector::Elementwise,
};
use strust_problems::Problem;

/// A problem over points of type `P`.
pub(crate) struct AnyProblem<P> {
    problem: Box<dyn Erased<P>>,
}

trait Erased<P>: Problem<Point = P> {
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<F: Problem + 'static> Erased<F::Point> for F {
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl<P: Elementwise> AnyProblem<P> {
    pub fn new(problem: impl Problem<Point = P> + 'static) -> Self {
        Self { problem: Box::new(problem) }
    }

    /// The problem itself.
    ///
    /// # Panics
    /// If it has another type than it was made with.
    pub fn inner_mut<F: 'static>(&mut self) -> &mut F {
        self.problem.as_any_mut().downcast_mut().expect("a problem keeps its type")
    }
}

impl<P: Elementwise> Objective for AnyProblem<P> {
    type Point = P;
    fn terms(&self) -> usize {
        self.problem.terms()
    }
    fn value(&mut self, x: &P, sample: &Sample) -> Evaluation {
        self.problem.value(x, sample)
    }
    fn value_and_gradient(&mut self, x: &P, sample: &Sample, gradient: &mut P) -> Evaluation {
        self.problem.value_and_gradient(x, sample, gradient)
    }
    fn curvature_product(&mut self, kind: ProductKind, x: &P, sample: &Sample, direction: &P, product: &mut P) -> bool {
        self.problem.curvature_product(kind, x, sample, direction, product)
    }
    fn slices(&self) -> Vec<usize> {
        self.problem.slices()
    }
    fn value_and_gradient_in_slices(
        &mut self,
        x: &P,
        sample: &Sample,
        gradient: &mut P,
        ready: &mut dyn FnMut(&P, usize),
    ) -> Evaluation {
        self.problem.value_and_gradient_in_slices(x, sample, gradient, ready)
    }
    fn constraint_norm(&mut self, x: &P) -> f64 {
        self.problem.constraint_norm(x)
    }
    fn draws(&self) -> Option<Draws> {
        self.problem.draws()
    }
    fn check_point(&self, x: &P) -> Result<(), Error> {
        self.problem.check_point(x)
    }
    fn agree(&mut self, consensus: &mut Consensus) -> Result<(), Error> {
        self.problem.agree(consensus)
    }
    fn failure(&self) -> Option<Error> {
        self.problem.failure()
    }
}

impl<P: Elementwise> Problem for AnyProblem<P> {
    fn start(&self, seed: u64) -> P {
        self.problem.start(seed)
    }
    fn optimum(&self) -> Option<f64> {
        self.problem.optimum()
    }
    fn scale(&self) -> f64 {
        self.problem.scale()
    }
    fn feature_scales(&self) -> Option<Vec<f64>> {
        self.problem.feature_scales()
    }
    fn extra_state(&self) -> Vec<u8> {
        self.problem.extra_state()
    }
    fn restore_extra_state(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.problem.restore_extra_state(bytes)
    }
    fn recompute_extra_state(&mut self, x: &P) {
        self.problem.recompute_extra_state(x);
    }
}
