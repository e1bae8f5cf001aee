use super::{Consensus, Evaluation, Objective};
use crate::{
    Error,
    sample::{Draws, Sample},
};

/// A matrix that describes the curvature of the mean of sampled terms at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProductKind {
    /// The Hessian ∇²f, which may be indefinite.
    Hessian,
    /// The Gauss–Newton matrix JᵀBJ of a loss of outputs, f = ℓ(F(x)), where J is the Jacobian of the outputs and B ⪰ 0 the
    /// Hessian of the loss in them. It is never indefinite, and equals the Hessian if F is linear.
    GaussNewton,
}

/// An objective with a function for its products; see [`with_products`].
#[derive(Debug, Clone)]
pub struct WithProducts<F, P> {
    inner: F,
    kind: ProductKind,
    product: P,
}

/// Adds products with a curvature matrix to an objective: `product(x, sample, v, out)` sets `out` to Hv, where H is the mean
/// over the sampled terms.
///
/// ```
/// use strust::{objective::{ProductKind, with_products}, prelude::*};
/// // f(x) = ½ Σ jxⱼ² has the Hessian diag(1, 2, …).
/// let f = from_terms(1, |_, x: &Vec<f64>, g| {
///     (0..x.len()).for_each(|j| g[j] += (j + 1) as f64 * x[j]);
///     (0..x.len()).map(|j| 0.5 * (j + 1) as f64 * x[j] * x[j]).sum()
/// });
/// let hessian = |_: &Vec<f64>, _: &Sample, v: &Vec<f64>, out: &mut Vec<f64>| {
///     (0..v.len()).for_each(|j| out[j] = (j + 1) as f64 * v[j]);
/// };
/// let mut f = with_products(f, ProductKind::Hessian, hessian);
/// let report = minimize(&mut f).method(StrNewton::default()).full_batch().stop(Stop::gradient_norm(1e-9)).start(vec![1.0; 9])?;
/// assert!(report.reason.converged() && report.steps < 20);
/// # Ok::<(), strust::Error>(())
/// ```
pub fn with_products<F, P>(inner: F, kind: ProductKind, product: P) -> WithProducts<F, P>
where
    F: Objective,
    P: FnMut(&F::Point, &Sample, &F::Point, &mut F::Point),
{
    WithProducts { inner, kind, product }
}

impl<F, P> Objective for WithProducts<F, P>
where
    F: Objective,
    P: FnMut(&F::Point, &Sample, &F::Point, &mut F::Point),
{
    type Point = F::Point;
    fn terms(&self) -> usize {
        self.inner.terms()
    }
    fn value(&mut self, x: &F::Point, sample: &Sample) -> Evaluation {
        self.inner.value(x, sample)
    }
    fn value_and_gradient(&mut self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
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
        if kind != self.kind {
            return self.inner.curvature_product(kind, x, sample, direction, product);
        }
        (self.product)(x, sample, direction, product);
        true
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
