use super::{Evaluation, Objective, ObjectiveWrapper, ProductKind};
use crate::sample::Sample;

/// The number of mini-batch evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Evaluations {
    /// Values alone: trial points.
    pub values: u64,
    /// Values with a gradient.
    pub gradients: u64,
    /// Products with a curvature matrix.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "is_zero"))]
    pub products: u64,
}

#[cfg(feature = "serde")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Evaluations {
    /// All of them.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.values + self.gradients + self.products
    }
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

impl<F: Objective> ObjectiveWrapper for Counted<F> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        &self.inner
    }
    fn wrapped_mut(&mut self) -> &mut F {
        &mut self.inner
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
        this.evaluations.values += 1;
        this.inner.value(x, sample)
    }
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        this.evaluations.gradients += 1;
        this.inner.value_and_gradient(x, sample, gradient)
    }
    fn curvature_product(
        this: &mut Self,
        kind: ProductKind,
        x: &F::Point,
        sample: &Sample,
        direction: &F::Point,
        product: &mut F::Point,
    ) -> bool {
        let made = this.inner.curvature_product(kind, x, sample, direction, product);
        this.evaluations.products += u64::from(made);
        made
    }
}
