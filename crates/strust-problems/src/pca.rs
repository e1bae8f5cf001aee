//! Principal components: a constraint that is active.

use crate::{
    Problem,
    any_constraint::any_constraint,
    columns::DataColumns,
    numerics::{DATA, START, centered, check_frame, gaussian, out_of_range, random_frame, shape, squarable},
};
use faer::{Mat, Side};
use strust::{
    Error,
    constraints::{AnyConstraint, Retraction, Stiefel},
    objective::{Evaluation, Objective, ProductKind},
    sample::Sample,
    vector::Vector,
};

const OWNER: &str = "principal components";
/// The stream of the directions of the data.
const BASIS: u64 = DATA + 30;

/// f(W) = −(1/2n) Σⱼ ‖Wᵀxⱼ‖² over the centered columns xⱼ of a d×n matrix, subject to WᵀW = I.
///
/// Without the constraint f has no minimum, so the multipliers are not 0, and the solution of a penalty method is off by
/// O(1/μ). The minimum is −½ times the sum of the k largest eigenvalues of XXᵀ/n, attained at their eigenvectors. f
/// depends only on the span of the columns of W.
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{Pca, Problem};
///
/// let mut f = Pca::decaying(20, 2, 200, 0.7, 1)?;
/// let (method, start) = (StrSqp::new(StrSqpConfig::default(), f.constraint())?, f.start(1));
/// let report = minimize(&mut f).method(method).full_batch().start(start)?;
/// assert!(report.reason.converged());
/// assert!((report.last.value - f.optimum().unwrap()).abs() < 1e-12);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pca {
    columns: DataColumns,
}

impl Pca {
    /// n Gaussian points in ℝᵈ with the standard deviation `decay`ʲ along the j-th of d random orthonormal directions,
    /// j = 0, …, d − 1, with 0 < `decay` ≤ 1.
    pub fn decaying(d: usize, k: usize, n: usize, decay: f64, seed: u64) -> Result<Self, Error> {
        check_frame(OWNER, d, k, n)?;
        if !(decay > 0.0 && decay <= 1.0) {
            return Err(out_of_range(OWNER, "decay", decay, "in (0, 1]"));
        }
        let basis = random_frame(d, d, seed, BASIS);
        let mut coordinates = gaussian(d, n, seed, DATA);
        for j in 0..n {
            let mut size = 1.0;
            for z in coordinates.col_as_slice_mut(j) {
                *z *= size;
                size *= decay;
            }
        }
        Self::from_data(&(basis * coordinates), k)
    }

    /// k principal components of the columns of a d×n matrix. The columns are centered first.
    pub fn from_data(columns: &Mat<f64>, k: usize) -> Result<Self, Error> {
        check_frame(OWNER, columns.nrows(), k, columns.ncols())?;
        squarable(OWNER, "data", columns)?;
        Ok(Self { columns: DataColumns::new(centered(columns), k) })
    }

    /// The constraint WᵀW = I of this problem.
    #[must_use]
    pub fn constraint(&self) -> Stiefel {
        let (d, k) = self.size();
        Stiefel::new(d, k).expect("the constructors check the sizes")
    }

    /// The covariance XXᵀ/n.
    pub(crate) fn covariance(&self) -> Mat<f64> {
        let data = &self.columns.data;
        let mut covariance = data * data.transpose();
        covariance *= faer::Scale(1.0 / data.ncols() as f64);
        covariance
    }

    /// −½ times the sum of the k largest eigenvalues of a symmetric matrix; `None` if they do not converge.
    pub(crate) fn largest_eigenvalues(&self, matrix: &Mat<f64>) -> Option<f64> {
        let eigenvalues = matrix.self_adjoint_eigenvalues(Side::Lower).ok()?;
        Some(-0.5 * eigenvalues[eigenvalues.len() - self.size().1..].iter().sum::<f64>())
    }

    pub(crate) fn size(&self) -> (usize, usize) {
        self.columns.size()
    }
}

impl Objective for Pca {
    type Point = Mat<f64>;
    fn terms(&self) -> usize {
        self.columns.data.ncols()
    }
    fn value(&mut self, w: &Mat<f64>, sample: &Sample) -> Evaluation {
        let squares = self.columns.project(w, sample).norm_squared();
        Evaluation::new(-0.5 * squares / sample.len() as f64, f64::EPSILON)
    }
    /// ∇f = −(1/b)X(WᵀX)ᵀ.
    fn value_and_gradient(&mut self, w: &Mat<f64>, sample: &Sample, gradient: &mut Mat<f64>) -> Evaluation {
        let value = self.value(w, sample);
        self.columns.pull_back(-1.0, sample, gradient);
        value
    }
    /// f is quadratic, so the Hessian's product is the gradient at the direction. There is no Gauss–Newton matrix, because
    /// the loss is concave in WᵀX.
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        _: &Mat<f64>,
        sample: &Sample,
        direction: &Mat<f64>,
        product: &mut Mat<f64>,
    ) -> bool {
        if kind == ProductKind::GaussNewton {
            return false;
        }
        self.columns.project(direction, sample);
        self.columns.pull_back(-1.0, sample, product);
        true
    }
    fn check_point(&self, w: &Mat<f64>) -> Result<(), Error> {
        let (d, k) = self.size();
        shape(OWNER, vec![d, k], Vector::shape(w))
    }
}

impl Problem for Pca {
    /// A random orthonormal frame.
    fn start(&self, seed: u64) -> Mat<f64> {
        let (d, k) = self.size();
        random_frame(d, k, seed, START)
    }
    fn optimum(&self) -> Option<f64> {
        self.largest_eigenvalues(&self.covariance())
    }
    fn any_constraint(&self, retraction: Retraction) -> Option<AnyConstraint<Mat<f64>>> {
        Some(any_constraint(self.constraint().with_retraction(retraction)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;
    use strust::{objective::full_value, prelude::*};

    #[test]
    fn the_contract_of_a_problem_holds() {
        contract::holds(&mut Pca::decaying(9, 3, 30, 0.8, 0).unwrap(), 1.95..2.05, 1e-13);
    }

    #[test]
    fn only_the_hessian_has_products() {
        let mut f = Pca::decaying(9, 3, 30, 0.8, 0).unwrap();
        contract::has_products(&mut f, ProductKind::Hessian, false, 1e-13);
        let (w, mut product) = (f.start(0), f.start(1));
        assert!(!f.curvature_product(ProductKind::GaussNewton, &w, &Sample::range(0..30), &w, &mut product));
    }

    #[test]
    fn the_optimum_is_attained_at_the_top_eigenvectors_and_only_there() {
        let mut f = Pca::decaying(12, 3, 80, 0.8, 3).unwrap();
        let optimum = f.optimum().unwrap();
        let covariance = f.covariance();
        let eigen = covariance.self_adjoint_eigen(Side::Lower).unwrap();
        let top = Mat::from_fn(12, 3, |i, j| eigen.U()[(i, 11 - j)]);
        assert!((full_value(&mut f, &top) / optimum - 1.0).abs() < 1e-12);
        for seed in 0..20 {
            let w = f.start(seed);
            assert!(full_value(&mut f, &w) > optimum);
        }
    }

    #[test]
    fn the_multipliers_are_not_zero_so_a_penalty_is_off_and_the_sqp_is_not() {
        let mut f = Pca::decaying(20, 2, 200, 0.7, 1).unwrap();
        let (optimum, start) = (f.optimum().unwrap(), f.start(1));
        let sqp = StrSqp::new(StrSqpConfig::default(), f.constraint()).unwrap();
        let report = minimize(&mut f).method(sqp).full_batch().start(start.clone()).unwrap();
        assert!(report.reason.converged() && report.last.constraint_norm < 1e-9);
        assert!((report.last.value - optimum).abs() < 1e-12);
        assert!(report.state.multipliers().to_vec().norm() > 0.1);
        let penalty = StrP::new(StrPConfig::default(), f.constraint()).unwrap();
        let report = minimize(&mut f).method(penalty).full_batch().stop(Stop::steps(2000)).start(start).unwrap();
        assert!(report.last.constraint_norm > 1e-3, "{:?}", report.last);
    }

    #[test]
    fn wrong_sizes_are_an_error_that_names_the_range() {
        let error = Pca::decaying(5, 6, 10, 0.5, 0).unwrap_err().to_string();
        assert_eq!(error, "principal components: `k` is 6, but must be in [1, d] = [1, 5]");
        assert!(Pca::decaying(5, 2, 10, 1.5, 0).unwrap_err().to_string().contains("in (0, 1]"));
        assert!(Pca::decaying(5, 2, 0, 0.5, 0).is_err());
        assert!(Pca::from_data(&Mat::from_fn(3, 3, |_, _| f64::NAN), 1).is_err());
    }
}
