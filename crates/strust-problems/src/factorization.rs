//! Low-rank matrix factorization with any degree of over-parameterization.

use crate::{
    Problem,
    numerics::{
        DATA, Evaluate, START, at_least_one, axpy, dot, evaluated, fill, finite, normals, out_of_range, rms, shape,
    },
};
use faer::Mat;
use strust::{
    Error,
    objective::{Evaluation, ProductKind},
    sample::Sample,
};

const OWNER: &str = "matrix factorization";

/// f(U, V) = (1/m) Σ ½‖xᵢ − uᵢVᵀ‖², with one term per row xᵢ of the m×n matrix X; U is m×r and V is n×r.
///
/// The point is the (m+n)×r matrix with U above V. Equivalently f = ‖X − UVᵀ‖²/(2m). f is not convex, but every local
/// minimum is global. The minimum is (σ²_{r+1} + σ²_{r+2} + …)/(2m), from the smallest singular values of X. It is 0 if
/// r is at least the rank of X; then every term is 0 at a solution. A sampled term changes its own row of U and all of
/// V.
///
/// ```
/// use strust::{objective::full_value, prelude::*};
/// use strust_problems::{Factorization, Problem};
///
/// // A 30×20 matrix of rank 2, with factors of rank 4.
/// let mut problem = Factorization::exact(30, 20, 2, 4, 0)?;
/// assert_eq!(problem.optimum(), Some(0.0));
/// let solution = problem.solution().clone();
/// assert!(full_value(&mut problem, &solution) < 1e-25);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Factorization {
    /// Xᵀ, so that a row of X is contiguous.
    rows: Mat<f64>,
    solution: Mat<f64>,
    optimum: f64,
    /// The standard deviation of the entries of a start.
    start_scale: f64,
    /// The root mean square of ‖xᵢ‖.
    row_norm: f64,
    residual: Vec<f64>,
    /// The derivative of the residual along a direction.
    along: Vec<f64>,
}

impl Factorization {
    /// The problem for any finite matrix X and factors of r ≥ 1 columns. Solution and optimum come from the singular
    /// value decomposition of X, which costs O(mn·min(m, n)).
    pub fn new(x: &Mat<f64>, r: usize) -> Result<Self, Error> {
        let (m, n) = (x.nrows(), x.ncols());
        at_least_one(OWNER, "rows", m)?;
        at_least_one(OWNER, "columns", n)?;
        at_least_one(OWNER, "r", r)?;
        finite(OWNER, "x", x)?;
        let svd = x.thin_svd().map_err(|_| {
            out_of_range(OWNER, "x", "a matrix whose singular values did not converge", "better scaled")
        })?;
        let (u, sigma, v) = (svd.U(), svd.S().column_vector(), svd.V());
        let kept = r.min(sigma.nrows());
        // U√Σ above V√Σ. The factors are balanced, so f is equally steep in both.
        let solution = Mat::from_fn(m + n, r, |i, k| match (k < kept, i < m) {
            (false, _) => 0.0,
            (_, true) => u[(i, k)] * sigma[k].sqrt(),
            (_, false) => v[(i - m, k)] * sigma[k].sqrt(),
        });
        // `fold`, because the `sum` of an empty iterator is −0.
        let tail = (kept..sigma.nrows()).fold(0.0, |sum, k| sum + sigma[k] * sigma[k]);
        Ok(Self::with_answer(x.transpose().to_owned(), solution, tail / (2.0 * m as f64)))
    }

    /// X = U*V*ᵀ of the given rank, with factors of r ≥ rank columns: f* = 0.
    ///
    /// The entries of U* and V* are independent N(0, 1/√rank), so the entries of X have mean 0 and variance 1. Each
    /// term is ½‖xᵢ‖² ≈ n/2 at the origin, for any rank.
    pub fn exact(m: usize, n: usize, rank: usize, r: usize, seed: u64) -> Result<Self, Error> {
        at_least_one(OWNER, "m", m)?;
        at_least_one(OWNER, "n", n)?;
        if rank == 0 || rank > m.min(n) {
            return Err(out_of_range(OWNER, "rank", rank, format!("in [1, {}]", m.min(n))));
        }
        if r < rank {
            return Err(out_of_range(OWNER, "r", r, format!("≥ {rank}, the rank")));
        }
        let mut next = normals(seed, DATA);
        let scale = (rank as f64).powf(-0.25);
        let factors: Mat<f64> = fill(m + n, rank, || scale * next());
        let rows = factors.as_ref().subrows(m, n) * factors.as_ref().subrows(0, m).transpose();
        let solution = Mat::from_fn(m + n, r, |i, k| if k < rank { factors[(i, k)] } else { 0.0 });
        Ok(Self::with_answer(rows, solution, 0.0))
    }

    fn with_answer(rows: Mat<f64>, solution: Mat<f64>, optimum: f64) -> Self {
        let (n, m) = (rows.nrows(), rows.ncols());
        let row_norm = rms((0..m).map(|i| dot(rows.col_as_slice(i), rows.col_as_slice(i)).sqrt()));
        // An entry of UVᵀ has variance r·s⁴ if the factors have standard deviation s. It should equal the variance of
        // X.
        let entry = row_norm / (n as f64).sqrt();
        let start_scale = if entry > 0.0 { entry.sqrt() } else { 1.0 } * (solution.ncols() as f64).powf(-0.25);
        Self { rows, solution, optimum, start_scale, row_norm, residual: vec![0.0; n], along: vec![0.0; n] }
    }

    /// A minimizer, U above V. It is not unique: UQ and VQ⁻ᵀ are minimizers for any invertible Q.
    #[must_use]
    pub fn solution(&self) -> &Mat<f64> {
        &self.solution
    }
    /// Xᵀ, with one column for each term.
    #[must_use]
    pub fn data(&self) -> &Mat<f64> {
        &self.rows
    }
}

impl Evaluate for Factorization {
    type Point = Mat<f64>;

    fn count(&self) -> usize {
        self.rows.ncols()
    }
    fn check(&self, x: &Mat<f64>) -> Result<(), Error> {
        let expected = vec![self.solution.nrows(), self.solution.ncols()];
        shape("point of matrix factorization (U above V)", expected, vec![x.nrows(), x.ncols()])
    }
    #[inline(always)]
    fn evaluate(&mut self, x: &Mat<f64>, sample: &Sample, mut gradient: Option<&mut Mat<f64>>) -> f64 {
        let (m, r) = (self.rows.ncols(), x.ncols());
        let scale = 1.0 / sample.len() as f64;
        let residual = &mut self.residual[..];
        let mut sum = 0.0;
        for &i in sample.indices() {
            // uᵢVᵀ − xᵢ
            residual.iter_mut().zip(self.rows.col_as_slice(i)).for_each(|(e, x)| *e = -x);
            for k in 0..r {
                let (u, v) = x.col_as_slice(k).split_at(m);
                axpy(u[i], v, residual);
            }
            sum += dot(residual, residual);
            if let Some(gradient) = gradient.as_deref_mut() {
                for k in 0..r {
                    let (u, v) = x.col_as_slice(k).split_at(m);
                    let (gu, gv) = gradient.col_as_slice_mut(k).split_at_mut(m);
                    gu[i] += scale * dot(residual, v);
                    axpy(scale * u[i], residual, gv);
                }
            }
        }
        0.5 * scale * sum
    }
    /// A row's residual e = uᵢVᵀ − xᵢ has the derivative ė = pᵢVᵀ + uᵢQᵀ along the direction P above Q. The Gauss–Newton
    /// matrix gives ėV to row i of U and uᵢᵀė to V; the Hessian also eQ and pᵢᵀe.
    #[inline(always)]
    fn add_product(&mut self, kind: ProductKind, x: &Mat<f64>, sample: &Sample, d: &Mat<f64>, out: &mut Mat<f64>) {
        let (m, r) = (self.rows.ncols(), x.ncols());
        let scale = 1.0 / sample.len() as f64;
        let (residual, along) = (&mut self.residual[..], &mut self.along[..]);
        for &i in sample.indices() {
            residual.iter_mut().zip(self.rows.col_as_slice(i)).for_each(|(e, x)| *e = -x);
            along.fill(0.0);
            for k in 0..r {
                let ((u, v), (p, q)) = (x.col_as_slice(k).split_at(m), d.col_as_slice(k).split_at(m));
                axpy(p[i], v, along);
                axpy(u[i], q, along);
                if kind == ProductKind::Hessian {
                    axpy(u[i], v, residual);
                }
            }
            for k in 0..r {
                let ((u, v), (p, q)) = (x.col_as_slice(k).split_at(m), d.col_as_slice(k).split_at(m));
                let (of_u, of_v) = out.col_as_slice_mut(k).split_at_mut(m);
                of_u[i] += scale * dot(along, v);
                axpy(scale * u[i], along, of_v);
                if kind == ProductKind::Hessian {
                    of_u[i] += scale * dot(residual, q);
                    axpy(scale * p[i], residual, of_v);
                }
            }
        }
    }
    /// Near a good fit uᵢVᵀ ≈ xᵢ. The residual of a row has an error of about ε‖xᵢ‖ from the products, and another one
    /// because the point itself is rounded.
    fn rounded(&self, value: f64) -> Evaluation {
        Evaluation::of_squares(value, f64::EPSILON, 2.0 * self.row_norm)
    }
}

evaluated!([] Factorization, Mat<f64>);

impl Problem for Factorization {
    /// Independent normal entries of mean 0. Their size makes the entries of UVᵀ as large as those of X.
    fn start(&self, seed: u64) -> Mat<f64> {
        let mut next = normals(seed, START);
        fill(self.solution.nrows(), self.solution.ncols(), || self.start_scale * next())
    }
    fn optimum(&self) -> Option<f64> {
        Some(self.optimum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;
    use strust::{objective::full_value, prelude::*};

    fn random(m: usize, n: usize, seed: u64) -> Mat<f64> {
        fill(m, n, normals(seed, 0))
    }

    #[test]
    fn the_contract_of_a_problem_holds() {
        contract::holds(&mut Factorization::exact(12, 9, 2, 4, 0).unwrap(), 1.95..2.05, 1e-13);
        contract::holds(&mut Factorization::new(&random(12, 9, 1), 3).unwrap(), 1.95..2.05, 1e-13);
    }

    #[test]
    fn the_products_are_those_of_the_gradients() {
        for mut f in [Factorization::exact(12, 9, 2, 4, 0).unwrap(), Factorization::new(&random(12, 9, 1), 3).unwrap()]
        {
            contract::has_products(&mut f, ProductKind::Hessian, false, 1e-13);
            contract::has_products(&mut f, ProductKind::GaussNewton, true, 1e-13);
        }
        // Without residuals both are the same.
        let mut f = Factorization::exact(12, 9, 2, 4, 0).unwrap();
        let (x, v) = (f.solution().clone(), f.start(3));
        let (mut hessian, mut gauss_newton) = (x.zeros_like(), x.zeros_like());
        f.curvature_product(ProductKind::Hessian, &x, &Sample::range(0..12), &v, &mut hessian);
        f.curvature_product(ProductKind::GaussNewton, &x, &Sample::range(0..12), &v, &mut gauss_newton);
        gauss_newton.add(-1.0, &hessian);
        assert!(gauss_newton.norm() < 1e-13 * hessian.norm());
    }

    #[test]
    fn the_gradient_vanishes_at_the_known_solution() {
        for (m, n, r) in [(12, 9, 3), (9, 12, 3), (6, 5, 5), (5, 6, 8)] {
            let mut problem = Factorization::new(&random(m, n, 2), r).unwrap();
            let solution = problem.solution().clone();
            contract::solves(&mut problem, &solution, 1e-13);
            assert_eq!(problem.optimum().unwrap() > 0.0, r < m.min(n));
        }
        let mut exact = Factorization::exact(12, 9, 2, 4, 0).unwrap();
        let solution = exact.solution().clone();
        contract::solves(&mut exact, &solution, 1e-14);
    }

    #[test]
    fn the_optimum_is_the_tail_of_the_singular_values() {
        let x = Mat::from_fn(4, 3, |i, j| if i == j { [5.0, 3.0, 1.0][i] } else { 0.0 });
        let optimum = |r| Factorization::new(&x, r).unwrap().optimum().unwrap();
        assert!((optimum(1) - 10.0 / 8.0).abs() < 1e-14);
        assert!((optimum(2) - 1.0 / 8.0).abs() < 1e-14);
        assert_eq!(optimum(3).to_bits(), 0);
    }

    #[test]
    fn data_and_start_have_the_documented_scale() {
        let (m, n) = (200, 150);
        for (rank, r) in [(1, 1), (3, 10)] {
            let mut problem = Factorization::exact(m, n, rank, r, 5).unwrap();
            // ½‖xᵢ‖² ≈ n/2 at the origin, and twice that at a start, which is independent of X.
            let origin = full_value(&mut problem, &Mat::zeros(m + n, r)) / n as f64;
            let start = problem.start(0);
            let ratio = full_value(&mut problem, &start) / n as f64 / origin;
            assert!((0.3..0.8).contains(&origin) && (1.4..2.8).contains(&ratio), "{origin} {ratio}");
        }
    }

    #[test]
    fn str_converges_on_an_over_parameterized_factorization() {
        let mut problem = Factorization::exact(40, 20, 2, 6, 1).unwrap();
        let start = problem.start(1);
        let stop = Stop::gradient_norm(1e-6).or(Stop::epochs(2000));
        let mut method = Str::new(StrConfig::default()).unwrap();
        let report = minimize(&mut problem)
            .method(&mut method)
            .sampler(Epochs::new(40, 8, 1).unwrap())
            .stop(&stop)
            .start(start)
            .unwrap();
        assert_eq!(report.reason, StopReason::GradientNorm);
        assert!(report.last.value < 1e-10, "value {}", report.last.value);
        let evaluations = report.evaluations.values + report.evaluations.gradients;
        assert!(evaluations < 2_000, "{evaluations} evaluations");
    }

    #[test]
    fn wrong_sizes_are_errors() {
        let message = |m, n, rank, r| Factorization::exact(m, n, rank, r, 0).unwrap_err().to_string();
        assert_eq!(message(0, 3, 1, 1), "matrix factorization: `m` is 0, but must be ≥ 1");
        assert_eq!(message(4, 3, 4, 4), "matrix factorization: `rank` is 4, but must be in [1, 3]");
        assert_eq!(message(4, 3, 2, 1), "matrix factorization: `r` is 1, but must be ≥ 2, the rank");
        assert!(Factorization::new(&Mat::zeros(2, 0), 1).unwrap_err().to_string().contains("`columns` is 0"));
        assert!(Factorization::new(&Mat::zeros(2, 2), 0).unwrap_err().to_string().contains("`r` is 0"));
        assert!(Factorization::new(&Mat::full(2, 2, f64::NAN), 1).unwrap_err().to_string().contains("NaN at row 0"));
        let problem = Factorization::exact(4, 3, 1, 2, 0).unwrap();
        assert!(problem.check_point(&Mat::zeros(2, 7)).is_err());
    }
}
