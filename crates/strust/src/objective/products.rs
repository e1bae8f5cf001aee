use super::{Objective, ObjectiveWrapper, ProductKind, Sliced};
use crate::sample::Sample;

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
/// use strust::{methods::StrNewton, objective::{with_products, ProductKind}, prelude::*};
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

impl<F, P> ObjectiveWrapper for WithProducts<F, P>
where
    F: Objective,
    P: FnMut(&F::Point, &Sample, &F::Point, &mut F::Point),
{
    type Inner = F;
    fn wrapped(&self) -> &F {
        &self.inner
    }
    fn wrapped_mut(&mut self) -> &mut F {
        &mut self.inner
    }
    fn curvature_product(
        this: &mut Self,
        kind: ProductKind,
        x: &F::Point,
        sample: &Sample,
        direction: &F::Point,
        product: &mut F::Point,
    ) -> bool {
        if kind != this.kind {
            return this.inner.curvature_product(kind, x, sample, direction, product);
        }
        (this.product)(x, sample, direction, product);
        true
    }
    fn sliced(this: &mut Self) -> Option<&mut dyn Sliced<Point = F::Point>> {
        this.inner.sliced()
    }
}
