//! Generalized eigenvalues: principal components that are orthonormal in another inner product.

use crate::{
    Pca, Problem,
    any_constraint::any_constraint,
    numerics::{DATA, START, objective_of, out_of_range, random_frame},
};
use faer::Mat;
use strust::{
    Error,
    constraints::{AnyConstraint, ByNewton, GeneralizedStiefel, Retraction, by_newton},
};

const OWNER: &str = "generalized eigenvalues";
/// The stream of the eigenvectors of B.
const METRIC: u64 = DATA + 31;

/// The objective of [`Pca`], f(W) = −(1/2n) Σⱼ ‖Wᵀxⱼ‖², subject to WᵀBW = I with a symmetric positive definite B.
///
/// The minimum is −½ times the sum of the k largest eigenvalues λ of XXᵀ/n·v = λBv.
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{GeneralizedEigenvalues, Pca, Problem};
///
/// let mut f = GeneralizedEigenvalues::new(Pca::decaying(20, 2, 200, 0.7, 1)?, 10.0, 1)?;
/// let (method, start) = (StrSqp::new(StrSqpConfig::default(), f.constraint())?, f.start(1));
/// let report = minimize(&mut f).method(method).full_batch().start(start)?;
/// assert!(report.reason.converged());
/// assert!((report.last.value - f.optimum().unwrap()).abs() < 1e-11);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GeneralizedEigenvalues {
    pca: Pca,
    metric: Mat<f64>,
    /// B^(−1/2).
    inverse_root: Mat<f64>,
}

impl GeneralizedEigenvalues {
    /// The data of `pca`, and a random B with eigenvalues from 1 to 1/`condition`, evenly spread in their logarithms;
    /// `condition` is in [1, 10¹²].
    pub fn new(pca: Pca, condition: f64, seed: u64) -> Result<Self, Error> {
        // Beyond that, rounding can make B indefinite.
        if !(1.0..=1e12).contains(&condition) {
            return Err(out_of_range(OWNER, "condition", condition, "in [1, 1e12]"));
        }
        let (d, _) = pca.size();
        let vectors = random_frame(d, d, seed, METRIC);
        let power = |exponent: f64| {
            let scaled = Mat::from_fn(d, d, |i, j| {
                let place = if d == 1 { 0.0 } else { j as f64 / (d - 1) as f64 };
                vectors[(i, j)] * condition.powf(-place * exponent)
            });
            let product = scaled * vectors.transpose();
            // Exactly symmetric.
            Mat::from_fn(d, d, |i, j| product[(i.max(j), i.min(j))])
        };
        Ok(Self { pca, metric: power(1.0), inverse_root: power(-0.5) })
    }

    /// The constraint WᵀBW = I of this problem.
    #[must_use]
    pub fn constraint(&self) -> ByNewton<GeneralizedStiefel> {
        let set = GeneralizedStiefel::new(self.metric.clone(), self.pca.size().1);
        set.and_then(by_newton).expect("B is symmetric and positive definite, and the sizes were checked")
    }
}

objective_of!(GeneralizedEigenvalues, pca: Pca);

impl Problem for GeneralizedEigenvalues {
    /// B^(−1/2)Q with a random orthonormal frame Q, so that WᵀBW = I.
    fn start(&self, seed: u64) -> Mat<f64> {
        let (d, k) = self.pca.size();
        &self.inverse_root * random_frame(d, k, seed, START)
    }
    fn optimum(&self) -> Option<f64> {
        self.pca.largest_eigenvalues(&(&self.inverse_root * self.pca.covariance() * &self.inverse_root))
    }
    fn any_constraint(&self, _: Retraction) -> Option<AnyConstraint<Mat<f64>>> {
        Some(any_constraint(self.constraint()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;
    use strust::{
        objective::{ProductKind, full_value},
        prelude::*,
    };
    use strust_baselines::{Riemannian, RiemannianConfig};

    fn problem(condition: f64) -> GeneralizedEigenvalues {
        GeneralizedEigenvalues::new(Pca::decaying(12, 3, 80, 0.8, 3).unwrap(), condition, 4).unwrap()
    }

    #[test]
    fn the_contract_of_a_problem_holds() {
        contract::holds(&mut problem(10.0), 1.95..2.05, 1e-12);
        contract::has_products(&mut problem(10.0), ProductKind::Hessian, false, 1e-13);
    }

    #[test]
    fn a_start_satisfies_the_constraint_and_is_not_below_the_optimum() {
        for condition in [1.0, 10.0, 1e4] {
            let mut f = problem(condition);
            let (mut set, optimum) = (f.constraint(), f.optimum().unwrap());
            for seed in 0..20 {
                let (w, mut c) = (f.start(seed), set.new_residual());
                set.residual(&w, &mut c);
                assert!(c.norm() < 1e-11, "{}", c.norm());
                assert!(full_value(&mut f, &w) > optimum);
            }
        }
        let plain = Pca::decaying(12, 3, 80, 0.8, 3).unwrap().optimum().unwrap();
        assert!((problem(1.0).optimum().unwrap() / plain - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_sqp_and_the_riemannian_gradient_reach_the_optimum() {
        let mut f = problem(10.0);
        let (optimum, start) = (f.optimum().unwrap(), f.start(1));
        let sqp = StrSqp::new(StrSqpConfig::default(), f.constraint()).unwrap();
        let report = minimize(&mut f).method(sqp).full_batch().start(start.clone()).unwrap();
        assert!(report.reason.converged());
        assert!((report.last.value - optimum).abs() < 1e-11, "{} {optimum}", report.last.value);
        let riemannian = Riemannian::new(RiemannianConfig::default(), f.constraint()).unwrap();
        let report = minimize(&mut f).method(riemannian).full_batch().stop(Stop::steps(3000)).start(start).unwrap();
        assert!((report.last.value - optimum).abs() < 1e-8 && report.last.constraint_norm < 1e-13);
    }

    #[test]
    fn a_condition_below_one_is_an_error() {
        let pca = Pca::decaying(5, 2, 10, 0.8, 0).unwrap();
        let error = GeneralizedEigenvalues::new(pca, 0.5, 0).unwrap_err().to_string();
        assert_eq!(error, "generalized eigenvalues: `condition` is 0.5, but must be in [1, 1e12]");
    }
}
