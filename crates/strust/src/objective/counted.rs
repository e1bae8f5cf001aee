use super::{Consensus, Evaluation, Objective, ProductKind};
use crate::{
    Error,
    sample::{Draws, Sample},
};
use serde::{Deserialize, Serialize};

/// The number of mini-batch evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evaluations {
    /// Values alone: trial points.
    pub values: u64,
    /// Values with a gradient.
    pub gradients: u64,
    /// Products with a curvature matrix.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub products: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Evaluations {
    /// Their price in forward passes over a mini-batch: a value is one, a gradient three, because a backward pass costs as
    /// much as two forward passes, and a product four.
    #[must_use]
    pub fn price(&self) -> f64 {
        self.values as f64 + 3.0 * self.gradients as f64 + 4.0 * self.products as f64
    }
}

impl std::ops::AddAssign for Evaluations {
    fn add_assign(&mut self, other: Self) {
        self.values += other.values;
        self.gradients += other.gradients;
        self.products += other.products;
    }
}

/// Counts the evaluations of the objective it wraps.
#[derive(Debug, Clone)]
pub struct Counted<F> {
    inner: F,
    evaluations: Evaluations,
}

impl<F> Counted<F> {
    /// Starts at zero.
    pub fn new(inner: F) -> Self {
        Self { inner, evaluations: Evaluations::default() }
    }
    /// The count so far.
    pub fn evaluations(&self) -> Evaluations {
        self.evaluations
    }
    /// Returns the wrapped objective.
    pub fn into_inner(self) -> F {
        self.inner
    }
}

impl<F: Objective> Objective for Counted<F> {
    type Point = F::Point;
    fn terms(&self) -> usize {
        self.inner.terms()
    }
    fn value(&mut self, x: &F::Point, sample: &Sample) -> Evaluation {
        self.evaluations.values += 1;
        self.inner.value(x, sample)
    }
    fn value_and_gradient(&mut self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        self.evaluations.gradients += 1;
        self.inner.value_and_gradient(x, sample, gradient)
    }
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        x: &F::Point,
        sample: &Sample,
        direction: &F::Point,
        product: &mut F::Point,
    ) -> bool {
        let made = self.inner.curvature_product(kind, x, sample, direction, product);
        self.evaluations.products += u64::from(made);
        made
    }
    fn slices(&self) -> Vec<usize> {
        self.inner.slices()
    }
    fn value_and_gradient_in_slices(
        &mut self,
        x: &F::Point,
        sample: &Sample,
        gradient: &mut F::Point,
        ready: &mut dyn FnMut(&F::Point, usize),
    ) -> Evaluation {
        self.evaluations.gradients += 1;
        self.inner.value_and_gradient_in_slices(x, sample, gradient, ready)
    }
    fn constraint_norm(&mut self, x: &F::Point) -> f64 {
        self.inner.constraint_norm(x)
    }
    fn draws(&self) -> Option<Draws> {
        self.inner.draws()
    }
    fn check_point(&self, x: &F::Point) -> Result<(), Error> {
        self.inner.check_point(x)
    }
    fn agree(&mut self, consensus: &mut Consensus) -> Result<(), Error> {
        self.inner.agree(consensus)
    }
    fn failure(&self) -> Option<Error> {
        self.inner.failure()
    }
}
