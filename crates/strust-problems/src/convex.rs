//! f* of convex problems, computed.

use crate::{Problem, numerics::out_of_range};
use strust::{
    Error,
    constraints::Bounds,
    methods::{StrSqp, StrSqpConfig},
    minimize,
    objective::{Objective, full_value_and_gradient},
    stop::Stop,
    vector::{Elementwise, Vector},
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

/// The most steps. Each is a gradient of the full sum, or two.
const STEPS: u64 = 5000;
/// A gradient is small if it is this many times smaller than at the start. The error of f is of the order of its square.
const SMALL: f64 = 1e-7;

/// The minimum of a convex function without constraints, and where: by [`StrSqp`] on the full sum, which is L-BFGS
/// there.
pub(crate) fn unconstrained_minimum<F>(owner: &'static str, mut f: F, start: F::Point) -> Result<(F::Point, f64), Error>
where
    F: Objective<Point: Elementwise>,
{
    let mut gradient = start.zeros_like();
    full_value_and_gradient(&mut f, &start, &mut gradient);
    let at_start = gradient.norm();
    let method = StrSqp::new(StrSqpConfig { tolerance: 1e-12 }, free(&start)?)?;
    let report = minimize(&mut f).method(method).full_batch().stop(Stop::steps(STEPS)).start(start)?;
    let x = report.point().clone();
    let value = full_value_and_gradient(&mut f, &x, &mut gradient);
    if gradient.norm() <= SMALL * at_start {
        return Ok((x, value));
    }
    let found = format!("not reached in {STEPS} steps");
    let allowed = "a minimum that the function attains: use a regularizer, or standardize the features";
    Err(out_of_range(owner, "optimum", found, allowed))
}

/// Bounds that no point violates.
fn free<V: Vector>(like: &V) -> Result<Bounds<V>, Error> {
    let (mut lower, mut upper) = (like.zeros_like(), like.zeros_like());
    for i in 0..like.dimension() {
        lower.set_component(i, f64::NEG_INFINITY);
        upper.set_component(i, f64::INFINITY);
    }
    Bounds::new(lower, upper)
}
