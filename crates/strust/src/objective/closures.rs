use super::{Evaluation, Objective};
use crate::{sample::Sample, vector::Vector};
use std::marker::PhantomData;

/// An objective from one closure `(x, sample, gradient) -> value`, the mean over the sample.
///
/// If a gradient buffer is passed, it is zeroed; add the gradient to it. This form is the fastest: the closure gets the
/// whole mini-batch, and need not compute a gradient if only a value is needed. [`from_terms`] is shorter to write.
///
/// ```
/// use strust::prelude::*;
/// let mut f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
///     if let Some(g) = g {
///         g[0] = 2.0 * (x[0] - 3.0);
///     }
///     (x[0] - 3.0).powi(2)
/// });
/// assert_eq!(f.value(&vec![1.0], &Sample::range(0..1)).value, 4.0);
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
    /// States that f is a mean of squared residuals, and that each residual is a difference of numbers of size
    /// `magnitude`. Near 0 the rounding error of such an f comes from its residuals. It is far larger than ε·f
    /// ([`Evaluation::of_squares`]).
    ///
    /// ```
    /// use strust::prelude::*;
    /// // ½(10x − 10)² is near x = 1 a difference of two numbers of size 10.
    /// let f = |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
    ///     let r = 10.0 * x[0] - 10.0;
    ///     if let Some(g) = g {
    ///         g[0] = 10.0 * r;
    ///     }
    ///     0.5 * r * r
    /// };
    /// let (solution, all) = (vec![1.0], Sample::range(0..1));
    /// assert_eq!(from_fn(1, f).value(&solution, &all).rounding, 0.0);
    /// assert!(from_fn(1, f).with_residuals(10.0).value(&solution, &all).rounding > 1e-30);
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
    fn value(&mut self, x: &V, sample: &Sample) -> Evaluation {
        Evaluation::of_squares((self.evaluate)(x, sample, None), V::EPSILON, self.magnitude)
    }
    fn value_and_gradient(&mut self, x: &V, sample: &Sample, gradient: &mut V) -> Evaluation {
        gradient.set_zero();
        Evaluation::of_squares((self.evaluate)(x, sample, Some(gradient)), V::EPSILON, self.magnitude)
    }
}

/// An objective from one closure `(i, x, gradient) -> value` for term i of `terms`. Add the term's gradient to
/// `gradient`.
///
/// The objective is the mean over the sampled terms. The closure computes the gradient even if only the value is
/// needed; [`from_fn`] avoids this.
///
/// ```
/// use strust::prelude::*;
/// let y = [1.0, 3.0, 5.0, 7.0];
/// let mut f = from_terms(4, |i, x: &Vec<f64>, g| {
///     let r = x[0] + x[1] * i as f64 - y[i];
///     g[0] += 2.0 * r;
///     g[1] += 2.0 * r * i as f64;
///     r * r
/// });
/// let mut g = vec![0.0; 2];
/// let at = f.value_and_gradient(&vec![0.0, 0.0], &Sample::range(0..2), &mut g);
/// assert_eq!((at.value, g), (5.0, vec![-4.0, -3.0])); // (1² + 3²)/2
/// ```
pub fn from_terms<V, F>(terms: usize, term: F) -> FromTerms<V, F>
where
    V: Vector,
    F: FnMut(usize, &V, &mut V) -> f64,
{
    FromTerms { terms, term, sum: None }
}

/// See [`from_terms`].
#[derive(Debug, Clone)]
pub struct FromTerms<V, F> {
    terms: usize,
    term: F,
    /// Σ ∇fᵢ over the sample.
    sum: Option<V>,
}

impl<V: Vector, F: FnMut(usize, &V, &mut V) -> f64> FromTerms<V, F> {
    /// The mean over the sample, and the sum of the gradients in `self.sum`.
    fn mean(&mut self, x: &V, sample: &Sample) -> Evaluation {
        let gradient = self.sum.get_or_insert_with(|| x.zeros_like());
        gradient.set_zero();
        let (mut sum, mut size) = (0.0, 0.0);
        for &i in sample.indices() {
            let value = (self.term)(i, x, gradient);
            sum += value;
            size += value.abs();
        }
        let scale = 1.0 / sample.len() as f64;
        // Terms of different signs cancel in the sum, but not their errors.
        Evaluation { value: scale * sum, rounding: Evaluation::new(scale * size, V::EPSILON).rounding }
    }
}

impl<V: Vector, F: FnMut(usize, &V, &mut V) -> f64> Objective for FromTerms<V, F> {
    type Point = V;
    fn terms(&self) -> usize {
        self.terms
    }
    fn value(&mut self, x: &V, sample: &Sample) -> Evaluation {
        self.mean(x, sample)
    }
    fn value_and_gradient(&mut self, x: &V, sample: &Sample, gradient: &mut V) -> Evaluation {
        let mean = self.mean(x, sample);
        gradient.set_zero();
        if let Some(sum) = &self.sum {
            gradient.add(1.0 / sample.len() as f64, sum);
        }
        mean
    }
}

/// A least-squares objective f(x) = (1/n) Σ ½rᵢ(x)² from one closure `(i, x, gradient) -> rᵢ(x)` for residual i of
/// `terms`. Add the gradient of the *residual* to `gradient`, which is zeroed before each call.
///
/// The rounding error of each residual is estimated as δᵢ = ε(|⟨∇rᵢ, x⟩| + |rᵢ|). So a run can reach the rounding floor
/// without a call to [`FromFn::with_residuals`].
///
/// ```
/// use strust::prelude::*;
/// let y = [1.0, 3.0, 5.0, 7.0];
/// let mut f = from_residuals(4, |i, x: &Vec<f64>, g| {
///     (g[0], g[1]) = (1.0, i as f64);
///     x[0] + x[1] * i as f64 - y[i]
/// });
/// let mut g = vec![0.0; 2];
/// let at = f.value_and_gradient(&vec![0.0, 0.0], &Sample::range(0..2), &mut g);
/// assert_eq!((at.value, g), (2.5, vec![-2.0, -1.5])); // (½1² + ½3²)/2
/// ```
pub fn from_residuals<V, F>(terms: usize, residual: F) -> FromResiduals<V, F>
where
    V: Vector,
    F: FnMut(usize, &V, &mut V) -> f64,
{
    FromResiduals { terms, residual, slope: None }
}

/// See [`from_residuals`].
#[derive(Debug, Clone)]
pub struct FromResiduals<V, F> {
    terms: usize,
    residual: F,
    /// ∇rᵢ.
    slope: Option<V>,
}

impl<V: Vector, F: FnMut(usize, &V, &mut V) -> f64> FromResiduals<V, F> {
    fn mean(&mut self, x: &V, sample: &Sample, mut gradient: Option<&mut V>) -> Evaluation {
        let scale = 1.0 / sample.len() as f64;
        let slope = self.slope.get_or_insert_with(|| x.zeros_like());
        let (mut sum, mut error) = (0.0, 0.0);
        for &i in sample.indices() {
            slope.set_zero();
            let r = (self.residual)(i, x, slope);
            let delta = V::EPSILON * (slope.dot(x).abs() + r.abs());
            sum += 0.5 * r * r;
            // ½(r + δ)² − ½r²
            error += delta * r.abs() + 0.5 * delta * delta;
            if let Some(g) = gradient.as_deref_mut() {
                g.add(scale * r, slope);
            }
        }
        let sum = Evaluation::new(scale * sum, V::EPSILON);
        Evaluation { rounding: sum.rounding + scale * error, ..sum }
    }
}

impl<V: Vector, F: FnMut(usize, &V, &mut V) -> f64> Objective for FromResiduals<V, F> {
    type Point = V;
    fn terms(&self) -> usize {
        self.terms
    }
    fn value(&mut self, x: &V, sample: &Sample) -> Evaluation {
        self.mean(x, sample, None)
    }
    fn value_and_gradient(&mut self, x: &V, sample: &Sample, gradient: &mut V) -> Evaluation {
        gradient.set_zero();
        self.mean(x, sample, Some(gradient))
    }
}

/// An objective from its value alone, `(x, sample) -> value`, **to try something out**.
///
/// The gradient is approximated by central differences. This takes 2d evaluations per gradient and gives about two
/// thirds of the digits. Write the gradient before you measure speed or accuracy, and check it with
/// [`gradient_slope`](crate::diagnostics::gradient_slope).
///
/// ```
/// use strust::{objective::from_fn_approximate_gradient, prelude::*};
/// let mut f = from_fn_approximate_gradient(1, |x: &Vec<f64>, _: &Sample| 0.5 * (x[0] - 3.0).powi(2) + x[1].powi(4));
/// let report = minimize(&mut f).stop(Stop::steps(200)).start(vec![0.0, 1.0])?;
/// assert!((report.point()[0] - 3.0).abs() < 1e-6);
/// # Ok::<(), strust::Error>(())
/// ```
pub fn from_fn_approximate_gradient<V, F>(terms: usize, value: F) -> ApproximateGradient<V, F>
where
    V: Vector,
    F: FnMut(&V, &Sample) -> f64,
{
    ApproximateGradient { terms, value, shifted: None }
}

/// See [`from_fn_approximate_gradient`].
#[derive(Debug, Clone)]
pub struct ApproximateGradient<V, F> {
    terms: usize,
    value: F,
    /// x with one component shifted.
    shifted: Option<V>,
}

impl<V: Vector, F: FnMut(&V, &Sample) -> f64> Objective for ApproximateGradient<V, F> {
    type Point = V;
    fn terms(&self) -> usize {
        self.terms
    }
    fn value(&mut self, x: &V, sample: &Sample) -> Evaluation {
        Evaluation::new((self.value)(x, sample), V::EPSILON)
    }
    fn value_and_gradient(&mut self, x: &V, sample: &Sample, gradient: &mut V) -> Evaluation {
        let shifted = self.shifted.get_or_insert_with(|| x.zeros_like());
        shifted.copy_from(x);
        let d = x.dimension();
        // A shift of ε^(1/3) times the scale of x minimizes the error of a central difference.
        let mean_size = x.norm() / (d as f64).sqrt();
        let relative = V::EPSILON.cbrt();
        for i in 0..d {
            let here = x.component(i);
            let size = here.abs().max(mean_size);
            let shift = relative * if size > 0.0 { size } else { 1.0 };
            shifted.set_component(i, here + shift);
            let (above, high) = ((self.value)(shifted, sample), shifted.component(i));
            shifted.set_component(i, here - shift);
            let (below, low) = ((self.value)(shifted, sample), shifted.component(i));
            shifted.set_component(i, here);
            // Use the rounded components, not the intended shifts.
            gradient.set_component(i, (above - below) / (high - low));
        }
        self.value(x, sample)
    }
}
