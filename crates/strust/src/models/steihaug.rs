//! Truncated conjugate gradients for m(p) = gᵀp + ½pᵀHp inside ‖p‖ ≤ Δ (Steihaug 1983, Toint 1981).

use super::Exit;
use crate::vector::Vector;

/// Why the conjugate gradients ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InnerExit {
    /// The gradient of the model is small enough.
    Interior,
    /// The next point is outside of the region: the step ends at its boundary.
    Boundary,
    /// H is not positive along the next direction: the step follows it to the boundary.
    NegativeCurvature,
    /// All products that were allowed are used.
    Budget,
    /// A product was not finite: the step is the one before it.
    NotFinite,
    /// g = 0: there is no step.
    Stationary,
}

impl InnerExit {
    /// What determined the length of the step.
    #[must_use]
    pub fn exit(self) -> Exit {
        match self {
            Self::Interior | Self::Budget | Self::NotFinite => Exit::Interior,
            Self::Boundary | Self::NegativeCurvature => Exit::Boundary,
            Self::Stationary => Exit::Stationary,
        }
    }
}

/// The outcome of [`steihaug`]. The step is p = −d with d in [`CgSpace::solution`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TruncatedStep {
    /// ‖p‖.
    pub length: f64,
    /// m(0) − m(p), never negative: a sum of the reductions of all inner steps.
    pub predicted: f64,
    /// Products with H.
    pub products: u64,
    /// Why it ended.
    pub exit: InnerExit,
}

/// Four vectors for [`steihaug`], made once.
#[derive(Debug, Clone)]
pub struct CgSpace<V> {
    /// d: approximately H⁻¹g, or a step to the boundary.
    pub solution: V,
    residual: V,
    direction: V,
    product: V,
}

impl<V: Vector> CgSpace<V> {
    /// Space for vectors of this shape.
    pub fn new(like: &V) -> Self {
        let zero = || like.zeros_like();
        Self { solution: zero(), residual: zero(), direction: zero(), product: zero() }
    }
}

/// Approximately minimizes m(−d) = −gᵀd + ½dᵀHd over ‖d‖ ≤ `radius` by conjugate gradients from d = 0. It ends where the
/// model's gradient is at most `tolerance`·‖g‖, at the boundary, or after `most` products. `multiply(v, out)` sets
/// out = Hv and returns an error if it cannot.
///
/// Its first point is the Cauchy point, and each further step reduces the model. So the reduction is at least that of the
/// Cauchy step, which is all that the theory needs.
///
/// ```
/// use strust::models::{CgSpace, InnerExit, steihaug};
/// let g = vec![1.0, 10.0];
/// let mut space = CgSpace::new(&g);
/// let h = |v: &Vec<f64>, out: &mut Vec<f64>| {
///     (out[0], out[1]) = (v[0], 10.0 * v[1]);
///     Ok::<(), strust::Error>(())
/// };
/// let step = steihaug(&g, 101.0, 100.0, 1e-10, 50, &mut space, h)?; // ‖g‖² = 101
/// assert_eq!((step.products, step.exit), (2, InnerExit::Interior));
/// assert!((space.solution[0] - 1.0).abs() < 1e-9 && (space.solution[1] - 1.0).abs() < 1e-9);
/// # Ok::<(), strust::Error>(())
/// ```
pub fn steihaug<V: Vector, E>(
    gradient: &V,
    gradient_squared: f64,
    radius: f64,
    tolerance: f64,
    most: u64,
    space: &mut CgSpace<V>,
    mut multiply: impl FnMut(&V, &mut V) -> Result<(), E>,
) -> Result<TruncatedStep, E> {
    let CgSpace { solution: d, residual: r, direction: q, product: hq } = space;
    d.set_zero();
    let mut step = TruncatedStep { length: 0.0, predicted: 0.0, products: 0, exit: InnerExit::Budget };
    if gradient_squared == 0.0 {
        return Ok(TruncatedStep { exit: InnerExit::Stationary, ..step });
    }
    r.copy_from(gradient);
    q.copy_from(gradient);
    let (mut rr, goal) = (gradient_squared, tolerance * tolerance * gradient_squared);
    // ‖d‖², dᵀq and ‖q‖², by their recurrences.
    let (mut dd, mut dq, mut qq) = (0.0, 0.0, gradient_squared);
    while step.products < most.max(1) {
        multiply(q, hq)?;
        step.products += 1;
        let curvature = q.dot(hq);
        if !curvature.is_finite() {
            step.exit = InnerExit::NotFinite;
            break;
        }
        let a = rr / curvature;
        let (negative, outside) = (curvature <= 0.0, dd + a * (2.0 * dq + a * qq) >= radius * radius);
        if negative || outside || !a.is_finite() {
            // ‖d + tq‖ = Δ, without cancellation.
            let (gap, root) =
                ((radius * radius - dd).max(0.0), (dq * dq + qq * (radius * radius - dd).max(0.0)).sqrt());
            let t = if dq > 0.0 { gap / (dq + root) } else { (root - dq) / qq };
            d.add(t, q);
            // Here t ≤ a or the curvature is not positive, so the bracket is at least half of rr.
            step.predicted += t * (rr - 0.5 * t * curvature);
            step.exit = if negative { InnerExit::NegativeCurvature } else { InnerExit::Boundary };
            break;
        }
        d.add(a, q);
        r.add(-a, hq);
        step.predicted += 0.5 * a * rr;
        dd += a * (2.0 * dq + a * qq);
        let new = r.norm_squared();
        if new <= goal {
            step.exit = InnerExit::Interior;
            break;
        }
        let b = new / rr;
        dq = b * (dq + a * qq);
        qq = new + b * b * qq;
        q.scale_add(b, 1.0, r);
        rr = new;
    }
    step.length = d.norm();
    Ok(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const D: usize = 6;

    /// A symmetric matrix and a vector of small numbers.
    fn problem() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
        (prop::collection::vec(-2.0..2.0_f64, D * D), prop::collection::vec(-3.0..3.0_f64, D))
            .prop_map(|(a, g)| ((0..D * D).map(|k| 0.5 * (a[k] + a[k % D * D + k / D])).collect(), g))
    }

    fn times(h: &[f64], v: &[f64]) -> Vec<f64> {
        (0..D).map(|i| (0..D).map(|j| h[i * D + j] * v[j]).sum()).collect()
    }

    fn solve(h: &[f64], g: &Vec<f64>, radius: f64, most: u64) -> (TruncatedStep, Vec<f64>) {
        let mut space = CgSpace::new(g);
        let multiply = |v: &Vec<f64>, out: &mut Vec<f64>| {
            out.copy_from_slice(&times(h, v));
            Ok::<(), ()>(())
        };
        let step = steihaug(g, g.norm_squared(), radius, 1e-9, most, &mut space, multiply).unwrap();
        (step, space.solution)
    }

    /// m(0) − m(−d).
    fn reduction(h: &[f64], g: &Vec<f64>, d: &Vec<f64>) -> f64 {
        g.dot(d) - 0.5 * d.dot(&times(h, d))
    }

    proptest! {
        #[test]
        fn the_step_is_inside_predicts_its_reduction_and_is_no_worse_than_the_cauchy_step(
            (h, g) in problem(), radius in 1e-3..10.0_f64,
        ) {
            prop_assume!(g.norm() > 1e-3);
            let (step, d) = solve(&h, &g, radius, 50);
            prop_assert!(step.length <= radius * (1.0 + 1e-9));
            let found = reduction(&h, &g, &d);
            prop_assert!((found - step.predicted).abs() <= 1e-9 * (1.0 + found.abs()), "{} is {found}", step.predicted);
            let cauchy = super::super::cauchy_step(g.norm_squared(), g.dot(&times(&h, &g)), radius);
            prop_assert!(step.predicted >= cauchy.predicted * (1.0 - 1e-9));
        }

        #[test]
        fn more_products_never_reduce_less(( h, g) in problem(), radius in 1e-3..10.0_f64) {
            prop_assume!(g.norm() > 1e-3);
            let mut before = (0.0, 0.0);
            for most in 1..=D as u64 {
                let (step, _) = solve(&h, &g, radius, most);
                prop_assert!(step.predicted >= before.0 && step.length >= before.1 * (1.0 - 1e-9), "{most} products");
                before = (step.predicted, step.length);
            }
        }
    }

    #[test]
    fn special_matrices_have_their_exits() {
        let diagonal =
            |h: [f64; D]| (0..D * D).map(|k| if k / D == k % D { h[k / D] } else { 0.0 }).collect::<Vec<_>>();
        let g = vec![1.0; D];
        let exit = |h: &[f64], radius: f64| solve(h, &g, radius, 50).0.exit;
        assert_eq!(exit(&diagonal([1.0; D]), 100.0), InnerExit::Interior);
        assert_eq!(exit(&diagonal([1.0; D]), 0.1), InnerExit::Boundary);
        assert_eq!(exit(&diagonal([0.0; D]), 5.0), InnerExit::NegativeCurvature);
        assert_eq!(exit(&diagonal([-1.0; D]), 5.0), InnerExit::NegativeCurvature);
        assert_eq!(exit(&diagonal([f64::NAN; D]), 5.0), InnerExit::NotFinite);
        let (step, d) = solve(&diagonal([1.0; D]), &vec![0.0; D], 1.0, 50);
        assert_eq!((step.exit, step.products, d), (InnerExit::Stationary, 0, vec![0.0; D]));
        // Two different eigenvalues need two products.
        let (step, _) = solve(&diagonal([1.0, 1.0, 1.0, 1e6, 1e6, 1e6]), &g, 100.0, 50);
        assert_eq!((step.exit, step.products), (InnerExit::Interior, 2));
        let (step, _) = solve(&diagonal([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), &g, 100.0, 3);
        assert_eq!((step.exit, step.products), (InnerExit::Budget, 3));
    }
}
