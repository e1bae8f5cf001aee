use super::{Evaluation, Objective, ObjectiveWrapper, ProductKind, Sliced};
use crate::{sample::Sample, vector::Vector};

/// s·f(x) for a number s > 0, with the rounding error of f multiplied too. With s = 1 every bit is that of f.
///
/// ```
/// use strust::{objective::{Objective, Scaled, from_terms}, sample::Sample};
/// let f = from_terms(2, |i, x: &Vec<f64>, g| {
///     let residual = x[0] - i as f64;
///     g[0] += residual;
///     0.5 * residual * residual
/// });
/// let (mut scaled, mut g) = (Scaled::new(f, 8.0), vec![0.0]);
/// assert_eq!(scaled.value_and_gradient(&vec![3.0], &Sample::range(0..1), &mut g).value, 36.0);
/// assert_eq!(g, [24.0]);
/// ```
#[derive(Debug, Clone)]
pub struct Scaled<F> {
    inner: F,
    scale: f64,
}

impl<F> Scaled<F> {
    /// Multiplies `inner` by `scale`.
    pub fn new(inner: F, scale: f64) -> Self {
        Self { inner, scale }
    }
    /// s.
    pub fn scale(&self) -> f64 {
        self.scale
    }
    /// f.
    pub fn inner(&self) -> &F {
        &self.inner
    }
    /// f, to change or evaluate it.
    pub fn inner_mut(&mut self) -> &mut F {
        &mut self.inner
    }
    #[allow(clippy::float_cmp, reason = "only exactly 1 changes nothing")]
    fn is_one(&self) -> bool {
        self.scale == 1.0
    }
    fn scaled(&self, f: Evaluation) -> Evaluation {
        Evaluation { value: self.scale * f.value, rounding: self.scale * f.rounding }
    }
}

impl<F: Objective> ObjectiveWrapper for Scaled<F> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        &self.inner
    }
    fn wrapped_mut(&mut self) -> &mut F {
        &mut self.inner
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
        let f = this.inner.value(x, sample);
        this.scaled(f)
    }
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        let f = this.inner.value_and_gradient(x, sample, gradient);
        // A pass over the gradient that would change nothing is skipped.
        if !this.is_one() {
            gradient.scale(this.scale);
        }
        this.scaled(f)
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
        if made && !this.is_one() {
            product.scale(this.scale);
        }
        made
    }
    fn sliced(this: &mut Self) -> Option<&mut dyn Sliced<Point = F::Point>> {
        // Another factor changes the gradient at the end.
        if this.is_one() { this.inner.sliced() } else { None }
    }
}
