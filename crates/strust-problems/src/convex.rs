//! f* of convex problems, computed.

use crate::{Problem, numerics::out_of_range};
use strust::{
    Error,
    objective::{Objective, full_value, full_value_and_gradient},
    vector::Vector,
};

/// A convex problem. Its minimum can be computed, so that a run can be compared with it.
///
/// ```
/// use strust_problems::{Convex, Logistic, Problem};
/// let f = Logistic::separable(100, 5, 0.5, 0)?.with_regularization(0.1)?;
/// let optimum = f.minimum()?;
/// let f = f.with_optimum(optimum);
/// assert!(f.optimum() > Some(0.0));
/// # Ok::<(), strust::Error>(())
/// ```
pub trait Convex: Problem + Sized {
    /// Computes f*, the same for every call.
    fn minimum(&self) -> Result<f64, Error>;
    /// The same problem with a known [`optimum`](Problem::optimum), from [`minimum`](Self::minimum).
    #[must_use]
    fn with_optimum(self, optimum: f64) -> Self;
}

/// A convex function with products with its Hessian.
pub(crate) trait Curved: Objective {
    /// What [`Self::add_product`] needs to know of x.
    fn curvature(&self, x: &Self::Point) -> Vec<f64>;
    /// out ← out + ∇²f(x)·v, on the full sum.
    fn add_product(&self, curvature: &[f64], v: &Self::Point, out: &mut Self::Point);
    /// Whether f falls towards its infimum 0 along the ray from 0 through x, so that it has no minimum.
    fn falls_to_zero(&self, x: &Self::Point) -> bool;
}

/// The most Newton steps. Where f approaches its infimum along a ray, each step divides the gap by about e.
const STEPS: usize = 100;
/// The most products with the Hessian in a step.
const PRODUCTS: usize = 1000;
/// The relative error of f*. It is near the rounding error of f.
const TOLERANCE: f64 = 1e-14;
/// The same if a smaller one is not reached: f approaches its infimum slowly, or its values do not resolve more.
const ACCEPTED: f64 = 1e-10;

/// The minimum of a convex function, or its infimum 0, by Newton's method from 0 with conjugate gradients:
///
/// ```text
/// ∇²f(x)·p ≈ −∇f(x);   x ← x + tp with the first t = 1, ½, ¼, … for which f(x + tp) ≤ f(x) + 10⁻⁴·t·∇f(x)ᵀp
/// ```
///
/// f(x) − f* is about ½|∇f(x)ᵀp|. A step costs a gradient and at most 1000 products with the Hessian, each about as
/// expensive as a gradient.
pub(crate) fn minimum_by_newton<F: Curved>(owner: &'static str, mut f: F, mut x: F::Point) -> Result<f64, Error> {
    let mut gradient = x.zeros_like();
    let mut at_start = None;
    let mut best = None;
    for _ in 0..STEPS {
        let value = full_value_and_gradient(&mut f, &x, &mut gradient);
        if f.falls_to_zero(&x) {
            return Ok(0.0);
        }
        let norm = gradient.norm();
        let relative = norm / *at_start.get_or_insert(norm);
        let curvature = f.curvature(&x);
        let p = conjugate_gradients(&f, &curvature, &gradient, relative.sqrt().min(0.1));
        let slope = gradient.dot(&p);
        if -slope <= TOLERANCE * value {
            return Ok(value);
        }
        best = (-slope <= ACCEPTED * value).then_some(value);
        let trial = |t: f64| {
            let mut trial = x.clone();
            trial.add(t, &p);
            trial
        };
        let falls = |t: &f64| full_value(&mut f, &trial(*t)) <= value + 1e-4 * t * slope;
        match (0..30).map(|k| 0.5_f64.powi(k)).find(falls) {
            Some(t) => x = trial(t),
            None => break,
        }
    }
    if let Some(value) = best {
        return Ok(value);
    }
    let allowed = "a minimum that the function attains: use a regularizer, or standardize the features";
    Err(out_of_range(owner, "optimum", "not reached", allowed))
}

/// p with ‖∇²f·p + g‖ ≤ `tolerance`·‖g‖, or the last p before the limit or a direction without curvature.
fn conjugate_gradients<F: Curved>(f: &F, curvature: &[f64], gradient: &F::Point, tolerance: f64) -> F::Point {
    let (mut p, mut product) = (gradient.zeros_like(), gradient.zeros_like());
    let mut residual = gradient.clone();
    residual.scale(-1.0);
    let mut direction = residual.clone();
    let mut square = residual.norm_squared();
    let small = tolerance * tolerance * square;
    for k in 0..PRODUCTS {
        product.set_zero();
        f.add_product(curvature, &direction, &mut product);
        let along = direction.dot(&product);
        if along.is_nan() || along <= 0.0 {
            return if k == 0 { direction } else { p };
        }
        p.add(square / along, &direction);
        residual.add(-square / along, &product);
        let next = residual.norm_squared();
        if next <= small {
            break;
        }
        direction.scale(next / square);
        direction.add(1.0, &residual);
        square = next;
    }
    p
}
