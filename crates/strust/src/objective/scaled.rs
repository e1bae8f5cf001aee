use super::{Consensus, Evaluation, Objective, ProductKind};
use crate::{
    Error,
    sample::{Draws, Sample},
    vector::Vector,
};

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

impl<F: Objective> Objective for Scaled<F> {
    type Point = F::Point;
    fn terms(&self) -> usize {
        self.inner.terms()
    }
    fn value(&mut self, x: &F::Point, sample: &Sample) -> Evaluation {
        let f = self.inner.value(x, sample);
        self.scaled(f)
    }
    fn value_and_gradient(&mut self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        let f = self.inner.value_and_gradient(x, sample, gradient);
        // A pass over the gradient that would change nothing is skipped.
        if !self.is_one() {
            gradient.scale(self.scale);
        }
        self.scaled(f)
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
        if made && !self.is_one() {
            product.scale(self.scale);
        }
        made
    }
    fn slices(&self) -> Vec<usize> {
        // Another factor changes the gradient at the end.
        if self.is_one() { self.inner.slices() } else { Vec::new() }
    }
    fn value_and_gradient_in_slices(
        &mut self,
        x: &F::Point,
        sample: &Sample,
        gradient: &mut F::Point,
        ready: &mut dyn FnMut(&F::Point, usize),
    ) -> Evaluation {
        if self.is_one() {
            self.inner.value_and_gradient_in_slices(x, sample, gradient, ready)
        } else {
            self.value_and_gradient(x, sample, gradient)
        }
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
