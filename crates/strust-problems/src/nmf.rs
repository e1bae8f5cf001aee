//! Nonnegative matrix factorization: bounds on every component.

use crate::{
    Factorization, Problem,
    any_constraint::any_constraint,
    numerics::{DATA, at_least_one, fill, normals, not_negative, objective_of, out_of_range},
};
use faer::Mat;
use strust::{
    Error,
    constraints::{AnyConstraint, Bounds, Retraction},
};

const OWNER: &str = "nonnegative factorization";
/// The stream of the noise.
const NOISE: u64 = DATA + 39;

/// The objective of [`Factorization`], f(U, V) = (1/m) Σ ½‖xᵢ − uᵢVᵀ‖² over the rows xᵢ of X, subject to U ≥ 0 and V ≥ 0.
///
/// The point is the (m+n)×r matrix with U above V. f is not convex, and its minimum is known only for exact data.
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{Nmf, Problem};
///
/// let mut f = Nmf::random(12, 8, 2, 3, 0.0, 0)?;
/// let (method, start) = (StrSqp::new(StrSqpConfig::default(), f.constraint())?, f.start(0));
/// let report = minimize(&mut f).method(method).full_batch().stop(Stop::steps(300)).start(start)?;
/// assert!(f.optimum() == Some(0.0) && report.last.value < 1e-6);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Nmf {
    factorization: Factorization,
    exact: bool,
}

impl Nmf {
    /// X = max(0, U*V*ᵀ + `noise`·ε) with nonnegative factors of the given rank, and factors of r columns. The entries of
    /// U* and V* are absolute values of N(0, 1/√rank).
    pub fn random(m: usize, n: usize, rank: usize, r: usize, noise: f64, seed: u64) -> Result<Self, Error> {
        at_least_one(OWNER, "m", m)?;
        at_least_one(OWNER, "n", n)?;
        at_least_one(OWNER, "rank", rank)?;
        not_negative(OWNER, "noise", noise)?;
        let mut next = normals(seed, DATA);
        let scale = (rank as f64).powf(-0.25);
        let factors: Mat<f64> = fill(m + n, rank, || scale * next().abs());
        let exact = factors.as_ref().subrows(0, m) * factors.as_ref().subrows(m, n).transpose();
        let mut error = normals(seed, NOISE);
        let x = Mat::from_fn(m, n, |i, j| (exact[(i, j)] + noise * error()).max(0.0));
        Ok(Self { exact: noise == 0.0 && r >= rank, ..Self::from_data(&x, r)? })
    }

    /// The problem for any matrix X ≥ 0 and factors of r ≥ 1 columns.
    pub fn from_data(x: &Mat<f64>, r: usize) -> Result<Self, Error> {
        let negative = (0..x.ncols()).find_map(|j| (0..x.nrows()).find(|&i| x[(i, j)] < 0.0).map(|i| (i, j)));
        if let Some((i, j)) = negative {
            return Err(out_of_range(OWNER, "x", format!("{} at row {i}, column {j}", x[(i, j)]), "≥ 0 everywhere"));
        }
        Ok(Self { factorization: Factorization::new(x, r)?, exact: false })
    }

    /// The constraint U, V ≥ 0 of this problem.
    #[must_use]
    pub fn constraint(&self) -> Bounds<Mat<f64>> {
        Bounds::nonnegative(self.factorization.solution())
    }
}

objective_of!(Nmf, factorization: Factorization);

impl Problem for Nmf {
    /// The absolute values of the start of [`Factorization`].
    fn start(&self, seed: u64) -> Mat<f64> {
        let start = self.factorization.start(seed);
        Mat::from_fn(start.nrows(), start.ncols(), |i, j| start[(i, j)].abs())
    }
    /// 0 for exact data, otherwise unknown.
    fn optimum(&self) -> Option<f64> {
        self.exact.then_some(0.0)
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

    #[test]
    fn the_contract_of_a_problem_holds() {
        let mut f = Nmf::random(12, 9, 2, 3, 0.1, 0).unwrap();
        contract::holds(&mut f, 1.95..2.05, 1e-13);
        contract::has_products(&mut f, ProductKind::Hessian, false, 1e-13);
        contract::has_products(&mut f, ProductKind::GaussNewton, true, 1e-13);
    }

    /// The updates of Lee and Seung (2001), which keep factors positive and never increase f.
    fn by_multiplicative_updates(x: &Mat<f64>, start: &Mat<f64>, steps: usize) -> Mat<f64> {
        let (m, n, r) = (x.nrows(), x.ncols(), start.ncols());
        let mut u = start.as_ref().subrows(0, m).to_owned();
        let mut v = start.as_ref().subrows(m, n).to_owned();
        let update = |factor: &mut Mat<f64>, up: &Mat<f64>, down: &Mat<f64>| {
            *factor = Mat::from_fn(factor.nrows(), r, |i, k| factor[(i, k)] * up[(i, k)] / down[(i, k)].max(1e-300));
        };
        for _ in 0..steps {
            let (up, down) = (x * &v, &u * (v.transpose() * &v));
            update(&mut u, &up, &down);
            let (up, down) = (x.transpose() * &u, &v * (u.transpose() * &u));
            update(&mut v, &up, &down);
        }
        Mat::from_fn(m + n, r, |i, k| if i < m { u[(i, k)] } else { v[(i - m, k)] })
    }

    #[test]
    fn the_sqp_fits_noisy_data_as_well_as_multiplicative_updates() {
        let x: Mat<f64> = fill(15, 10, {
            let mut next = normals(3, 0);
            move || next().abs()
        });
        let mut f = Nmf::from_data(&x, 2).unwrap();
        assert_eq!(f.optimum(), None);
        let start = f.start(0);
        let reference = by_multiplicative_updates(&x, &start, 20_000);
        let method = StrSqp::new(StrSqpConfig::default(), f.constraint()).unwrap();
        let report = minimize(&mut f).method(method).full_batch().stop(Stop::steps(500)).start(start).unwrap();
        let (value, expected) = (report.last.value, full_value(&mut f, &reference));
        assert!(report.point().col_iter().all(|column| column.iter().all(|&v| v >= 0.0)));
        assert!((value / expected - 1.0).abs() < 1e-4, "{value}, by updates {expected}");
    }

    #[test]
    fn negative_data_are_an_error_that_names_the_entry() {
        let error = Nmf::from_data(&Mat::from_fn(2, 2, |i, j| 1.0 - (i * j) as f64 * 3.0), 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "nonnegative factorization: `x` is -2 at row 1, column 1, but must be ≥ 0 everywhere"
        );
        assert!(Nmf::random(3, 3, 0, 1, 0.0, 0).is_err() && Nmf::random(3, 3, 1, 1, f64::NAN, 0).is_err());
        assert_eq!(Nmf::random(5, 5, 3, 2, 0.0, 0).unwrap().optimum(), None);
    }
}
