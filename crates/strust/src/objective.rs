//! A finite sum f(x) = (1/n) Σ fᵢ(x), seen through samples.

use crate::{Error, constraints::Constraint, sample::Sample, vector::Vector};
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// A finite sum seen through samples.
///
/// `value` and `value_and_gradient` are pure functions of `(x, sample)`: the same arguments give the same
/// number, and an evaluation at a trial point leaves no trace. `&mut self` is for scratch space only.
pub trait Objective {
    /// The type of x.
    type Point: Vector;

    /// The number n of terms.
    fn terms(&self) -> usize;

    /// The mean of the sampled terms at x.
    fn value(&mut self, x: &Self::Point, sample: &Sample) -> f64;

    /// The mean of the sampled terms at x, and its gradient, which overwrites `gradient`.
    fn value_and_gradient(&mut self, x: &Self::Point, sample: &Sample, gradient: &mut Self::Point) -> f64;

    /// The size of the rounding error in a computed `value`, added to both reductions so that their ratio
    /// tends to 1 where neither can be resolved (Conn, Gould and Toint 2000, §17.4.2).
    ///
    /// The default is 10ε·|value|, right for a sum of terms of one sign. A sum of squared residuals that tend
    /// to 0 should say more: the residuals themselves carry an error (see [`residual_rounding`]).
    fn rounding(&self, value: f64) -> f64 {
        SLACK * Self::Point::EPSILON * value.abs()
    }

    /// vᵀHv for the model's curvature H at x. The default is H = I, Algorithm 1; a penalized objective adds
    /// μ‖Jv‖², Algorithm 2.
    fn curvature(&mut self, _x: &Self::Point, v: &Self::Point) -> f64 {
        v.norm_squared()
    }

    /// Whether x has the shape this objective is defined on.
    fn check_point(&self, _x: &Self::Point) -> Result<(), Error> {
        Ok(())
    }
}

impl<F: Objective + ?Sized> Objective for &mut F {
    type Point = F::Point;
    fn terms(&self) -> usize {
        (**self).terms()
    }
    fn value(&mut self, x: &F::Point, sample: &Sample) -> f64 {
        (**self).value(x, sample)
    }
    fn value_and_gradient(&mut self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> f64 {
        (**self).value_and_gradient(x, sample, gradient)
    }
    fn rounding(&self, value: f64) -> f64 {
        (**self).rounding(value)
    }
    fn curvature(&mut self, x: &F::Point, v: &F::Point) -> f64 {
        (**self).curvature(x, v)
    }
    fn check_point(&self, x: &F::Point) -> Result<(), Error> {
        (**self).check_point(x)
    }
}

/// Rounding errors of size ε·|value| that a computed sum may hold: the constant of Conn, Gould and Toint. With 1 the
/// radius still collapsed on 6 of 20 least-squares problems in `f32` (tests/library/rounding.rs), with 10 on none.
const SLACK: f64 = 10.0;

/// The rounding error of a mean of squared residuals r whose parts are of size `magnitude`:
/// each residual is off by about δ = ε·magnitude, so ‖r‖² is off by 2δ‖r‖ + δ², and its sum by 10ε‖r‖².
#[must_use]
pub fn residual_rounding(epsilon: f64, magnitude: f64, value: f64) -> f64 {
    let delta = epsilon * magnitude;
    SLACK * epsilon * value.abs() + 2.0 * delta * value.abs().sqrt() + delta * delta
}

/// An objective from one closure `(x, sample, gradient) -> value`. The gradient, when it is asked for,
/// arrives as zero and is to be added to.
///
/// ```
/// use strust::prelude::*;
/// let mut f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
///     if let Some(g) = g {
///         g[0] = 2.0 * (x[0] - 3.0);
///     }
///     (x[0] - 3.0).powi(2)
/// });
/// assert_eq!(f.value(&vec![1.0], &Sample::range(0..1)), 4.0);
/// ```
pub fn from_fn<V, F>(terms: usize, evaluate: F) -> FromFn<V, F>
where
    V: Vector,
    F: FnMut(&V, &Sample, Option<&mut V>) -> f64,
{
    FromFn { terms, evaluate, magnitude: 0.0, point: PhantomData }
}

/// See [`from_fn`].
#[derive(Debug, Clone)]
pub struct FromFn<V, F> {
    terms: usize,
    evaluate: F,
    magnitude: f64,
    point: PhantomData<fn(&V)>,
}

impl<V, F> FromFn<V, F> {
    /// Says that f is a mean of squared residuals whose parts are of size `magnitude`. Where such an f is near 0 its rounding errors are those
    /// of the residuals ([`residual_rounding`]), far above those of a number of its own size.
    ///
    /// ```
    /// use strust::prelude::*;
    /// // ½(10x − 10)²: near x = 1 a difference of two numbers of size 10.
    /// let f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
    ///     let r = 10.0 * x[0] - 10.0;
    ///     if let Some(g) = g {
    ///         g[0] = 10.0 * r;
    ///     }
    ///     0.5 * r * r
    /// });
    /// assert_eq!(f.rounding(0.0), 0.0);
    /// assert!(f.with_residuals(10.0).rounding(0.0) > 1e-30);
    /// ```
    #[must_use]
    pub fn with_residuals(self, magnitude: f64) -> Self {
        Self { magnitude, ..self }
    }
}

impl<V: Vector, F: FnMut(&V, &Sample, Option<&mut V>) -> f64> Objective for FromFn<V, F> {
    type Point = V;
    fn terms(&self) -> usize {
        self.terms
    }
    fn value(&mut self, x: &V, sample: &Sample) -> f64 {
        (self.evaluate)(x, sample, None)
    }
    fn value_and_gradient(&mut self, x: &V, sample: &Sample, gradient: &mut V) -> f64 {
        gradient.set_zero();
        (self.evaluate)(x, sample, Some(gradient))
    }
    fn rounding(&self, value: f64) -> f64 {
        residual_rounding(V::EPSILON, self.magnitude, value)
    }
}

/// How many mini-batch evaluations were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evaluations {
    /// Values alone: trial points.
    pub values: u64,
    /// Values with a gradient.
    pub gradients: u64,
}

impl std::ops::AddAssign for Evaluations {
    fn add_assign(&mut self, other: Self) {
        self.values += other.values;
        self.gradients += other.gradients;
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
    /// The objective itself, back.
    pub fn into_inner(self) -> F {
        self.inner
    }
}

impl<F: Objective> Objective for Counted<F> {
    type Point = F::Point;
    fn terms(&self) -> usize {
        self.inner.terms()
    }
    fn value(&mut self, x: &F::Point, sample: &Sample) -> f64 {
        self.evaluations.values += 1;
        self.inner.value(x, sample)
    }
    fn value_and_gradient(&mut self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> f64 {
        self.evaluations.gradients += 1;
        self.inner.value_and_gradient(x, sample, gradient)
    }
    fn rounding(&self, value: f64) -> f64 {
        self.inner.rounding(value)
    }
    fn curvature(&mut self, x: &F::Point, v: &F::Point) -> f64 {
        self.inner.curvature(x, v)
    }
    fn check_point(&self, x: &F::Point) -> Result<(), Error> {
        self.inner.check_point(x)
    }
}

/// φᵢ(x) = fᵢ(x) + (μ/2)‖c(x)‖², with the model curvature I + μJᵀJ: the objective of Algorithm 2.
///
/// It may own the pieces or borrow them (`&mut F` is an objective too).
#[derive(Debug)]
pub struct Penalized<F: Objective, C: Constraint<Point = F::Point>> {
    objective: F,
    constraint: C,
    penalty: f64,
    scratch: PenaltyScratch<C::Residual>,
    gradient_norm: f64,
    last_rounding: f64,
}

/// Working space of [`Penalized`], handed from one borrow to the next so that a step does not allocate.
#[derive(Debug, Clone)]
pub struct PenaltyScratch<R> {
    residual: R,
    product: R,
}

impl<R: Vector> PenaltyScratch<R> {
    /// Working space for a constraint.
    pub fn new(constraint: &impl Constraint<Residual = R>) -> Self {
        let residual = constraint.new_residual();
        Self { product: residual.zeros_like(), residual }
    }
}

impl<F: Objective, C: Constraint<Point = F::Point>> Penalized<F, C> {
    /// Penalizes `objective` with weight μ = `penalty`.
    pub fn new(objective: F, constraint: C, penalty: f64) -> Self {
        let scratch = PenaltyScratch::new(&constraint);
        Self::with_scratch(objective, constraint, penalty, scratch)
    }
    /// The same over working space from an earlier one.
    pub fn with_scratch(objective: F, constraint: C, penalty: f64, scratch: PenaltyScratch<C::Residual>) -> Self {
        Self { objective, constraint, penalty, scratch, gradient_norm: f64::NAN, last_rounding: 0.0 }
    }
    /// ‖c‖ where the gradient was evaluated last; NaN before.
    pub fn gradient_constraint_norm(&self) -> f64 {
        self.gradient_norm
    }
    /// The working space, for the next one.
    pub fn into_scratch(self) -> PenaltyScratch<C::Residual> {
        self.scratch
    }

    /// φ from f, and ‖c‖; c stays in the scratch space.
    fn penalize(&mut self, x: &F::Point, value: f64) -> (f64, f64) {
        self.constraint.residual(x, &mut self.scratch.residual);
        let norm = self.scratch.residual.norm();
        let c_rounding = self.constraint.rounding(norm);
        self.last_rounding = self.objective.rounding(value) + self.penalty * c_rounding * (norm + 0.5 * c_rounding);
        (value + 0.5 * self.penalty * norm * norm, norm)
    }
}

impl<F: Objective, C: Constraint<Point = F::Point>> Objective for Penalized<F, C> {
    type Point = F::Point;
    fn terms(&self) -> usize {
        self.objective.terms()
    }
    fn value(&mut self, x: &F::Point, sample: &Sample) -> f64 {
        let value = self.objective.value(x, sample);
        self.penalize(x, value).0
    }
    fn value_and_gradient(&mut self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> f64 {
        let value = self.objective.value_and_gradient(x, sample, gradient);
        let penalized;
        (penalized, self.gradient_norm) = self.penalize(x, value);
        self.constraint.add_vjp(x, self.penalty, &self.scratch.residual, gradient);
        penalized
    }
    /// The error of f and of the penalty at the point evaluated last, which is not a function of their sum.
    fn rounding(&self, _value: f64) -> f64 {
        self.last_rounding
    }
    fn curvature(&mut self, x: &F::Point, v: &F::Point) -> f64 {
        self.constraint.jvp(x, v, &mut self.scratch.product);
        self.objective.curvature(x, v) + self.penalty * self.scratch.product.norm_squared()
    }
    fn check_point(&self, x: &F::Point) -> Result<(), Error> {
        self.objective.check_point(x)?;
        self.constraint.check_point(x)
    }
}

/// Terms evaluated at once when the full sum is measured: large enough for fast products, small enough for memory.
const PIECE: usize = 512;

fn over_pieces(terms: usize, mut piece: impl FnMut(&Sample, f64)) {
    let mut start = 0;
    while start < terms {
        let end = (start + PIECE).min(terms);
        piece(&Sample::range(start..end), (end - start) as f64 / terms as f64);
        start = end;
    }
}

/// f(x) over all terms.
pub fn full_value<F: Objective + ?Sized>(f: &mut F, x: &F::Point) -> f64 {
    let mut sum = 0.0;
    over_pieces(f.terms(), |sample, weight| sum += weight * f.value(x, sample));
    sum
}

/// f(x) and ∇f(x) over all terms; the gradient overwrites `gradient`.
pub fn full_value_and_gradient<F: Objective + ?Sized>(f: &mut F, x: &F::Point, gradient: &mut F::Point) -> f64 {
    let mut sum = 0.0;
    let mut piece = x.zeros_like();
    gradient.set_zero();
    over_pieces(f.terms(), |sample, weight| {
        sum += weight * f.value_and_gradient(x, sample, &mut piece);
        gradient.add(weight, &piece);
    });
    sum
}
