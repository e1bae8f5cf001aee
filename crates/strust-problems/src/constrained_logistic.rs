//! Logistic regression on the unit sphere, with linear equations.

use crate::{
    Logistic, Problem,
    any_constraint::any_constraint,
    numerics::{DATA, at_least_one, gaussian, minimum, objective_of, out_of_range},
};
use strust::{
    Error,
    constraints::{Affine, AnyConstraint, Both, ByNewton, Manifold, Retraction, Sphere, both, by_newton},
    vector::Vector,
};

const OWNER: &str = "constrained logistic regression";
/// The streams of A and of the point with ‖x‖ = ½ and Ax = b.
const ROWS: u64 = DATA + 34;
const INSIDE: u64 = DATA + 35;

/// ‖x‖² = 1 and Ax = b.
pub type SphereAndPlane = ByNewton<Both<Sphere<Vec<f64>>, Affine<Vec<f64>>>>;

/// The loss of [`Logistic`], subject to ‖x‖² = 1 and Ax = b with an m×d matrix A.
///
/// The entries of A are independent N(0, 1/d), and b = Ax for a random x with ‖x‖ = ½. So the points with Ax = b and ‖x‖
/// = 1 are a sphere of dimension d − m − 1, which is not empty. The classes may be separable: the loss has a minimum
/// on the sphere. A start does not satisfy the constraint.
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{ConstrainedLogistic, Logistic, Problem};
///
/// let loss = Logistic::separable(200, 12, 0.1, 0)?;
/// let mut f = ConstrainedLogistic::new(loss, 3, 0)?;
/// let (method, start) = (StrSqp::new(StrSqpConfig::default(), f.constraint())?, f.start(0));
/// let report = minimize(&mut f).method(method).full_batch().start(start)?;
/// assert!(report.reason.converged() && report.last.constraint_norm < 1e-8);
/// assert!((report.last.value - f.optimum().unwrap()).abs() < 1e-8);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ConstrainedLogistic {
    loss: Logistic,
    constraint: SphereAndPlane,
}

impl ConstrainedLogistic {
    /// A loss over ℝᵈ, and m = `rows` random linear equations; needs 1 ≤ m < d.
    pub fn new(loss: Logistic, rows: usize, seed: u64) -> Result<Self, Error> {
        let d = loss.start(0).len();
        at_least_one(OWNER, "rows", rows)?;
        if rows >= d {
            return Err(out_of_range(OWNER, "rows", rows, format!("below d = {d}")));
        }
        let mut inside = gaussian(d, 1, seed, INSIDE).col_as_slice(0).to_vec();
        inside.scale(0.5 / inside.norm());
        let matrix = gaussian(d, rows, seed, ROWS);
        let scale = 1.0 / (d as f64).sqrt();
        let row = |j| matrix.col_as_slice(j).iter().map(|a| scale * a).collect::<Vec<_>>();
        let rows: Vec<Vec<f64>> = (0..rows).map(row).collect();
        let right = rows.iter().map(|row| row.dot(&inside)).collect();
        let constraint = by_newton(both(Sphere::new(1.0)?, Affine::new(rows, right)?)?)?;
        Ok(Self { loss, constraint })
    }

    /// The constraint of this problem.
    #[must_use]
    pub fn constraint(&self) -> SphereAndPlane {
        self.constraint.clone()
    }
}

objective_of!(ConstrainedLogistic, loss: Logistic);

impl Problem for ConstrainedLogistic {
    /// Independent components N(0, 1/d).
    fn start(&self, seed: u64) -> Vec<f64> {
        self.loss.start(seed)
    }
    fn feature_scales(&self) -> Option<Vec<f64>> {
        self.loss.feature_scales()
    }
    /// The minimum that [`StrSqp`](strust::methods::StrSqp) finds on the full sum. The loss is convex and the sphere is
    /// not, but no other minimum was found from random starts.
    fn optimum(&self) -> Option<f64> {
        let (mut start, mut constraint) = (self.start(0), self.constraint());
        constraint.restore(&mut start).ok()?;
        minimum(self.loss.clone(), &constraint, start)
    }
    fn any_constraint(&self, _: Retraction) -> Option<AnyConstraint<Vec<f64>>> {
        Some(any_constraint(self.constraint()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;
    use strust::{diagnostics::jacobian_slope, objective::ProductKind, prelude::*};
    use strust_baselines::{Riemannian, RiemannianConfig};

    fn problem(seed: u64) -> ConstrainedLogistic {
        let loss = Logistic::separable(150, 15, 0.1, seed).unwrap().with_wrong_labels(0.1, seed).unwrap();
        ConstrainedLogistic::new(loss, 4, seed).unwrap()
    }

    #[test]
    fn the_contract_of_a_problem_holds() {
        contract::holds(&mut problem(0), 1.95..2.05, 1e-13);
        contract::has_products(&mut problem(0), ProductKind::Hessian, true, 1e-13);
        let f = problem(0);
        let (slope, mismatch) = jacobian_slope(&mut f.constraint(), &f.start(0), &f.start(1), &vec![0.3; 5]);
        assert!((1.9..2.1).contains(&slope) && mismatch < 1e-13, "{slope} {mismatch}");
    }

    #[test]
    fn from_every_start_the_sqp_and_the_riemannian_gradient_reach_the_optimum() {
        let mut f = problem(1);
        let optimum = f.optimum().unwrap();
        for seed in 0..20 {
            let method = StrSqp::new(StrSqpConfig::default(), f.constraint()).unwrap();
            let start = f.start(seed);
            let report = minimize(&mut f).method(method).full_batch().start(start.clone()).unwrap();
            assert!(report.reason.converged(), "{:?}", report.reason);
            assert!((report.last.value - optimum).abs() < 1e-8, "{} {optimum}", report.last.value);
            let config = RiemannianConfig { learning_rate: 0.3, ..Default::default() };
            let method = Riemannian::new(config, f.constraint()).unwrap();
            let report = minimize(&mut f).method(method).full_batch().stop(Stop::steps(1000)).start(start).unwrap();
            assert!((report.last.value - optimum).abs() < 1e-8, "{} {optimum}", report.last.value);
        }
    }

    #[test]
    fn as_many_equations_as_features_are_an_error() {
        let loss = || Logistic::separable(20, 5, 0.1, 0).unwrap();
        let error = ConstrainedLogistic::new(loss(), 5, 0).unwrap_err().to_string();
        assert_eq!(error, "constrained logistic regression: `rows` is 5, but must be below d = 5");
        assert!(ConstrainedLogistic::new(loss(), 0, 0).is_err());
    }
}
