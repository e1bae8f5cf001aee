//! Linear least squares, with a known solution.

use crate::{
    Convex, Problem,
    numerics::{
        DATA, Evaluate, START, at_least_one, axpy, dot, evaluated, fill, finite, normals, not_negative, out_of_range,
        rms, shape,
    },
};
use faer::Mat;
use strust::{
    Error,
    objective::{Evaluation, ProductKind},
    sample::Sample,
    vector::Real,
};
use strust_data::loss::OutputLoss;

mod from_data;

const OWNER: &str = "least squares";

/// f(x) = (1/n) Σ ½(aᵢᵀx − bᵢ)², with one term per row of A.
///
/// If b = Ax* for some x*, the problem interpolates: every term is 0 at x*. In this setting STR converges with a
/// constant radius. With noise no point makes every term 0, and methods end in a neighborhood of x*.
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{LeastSquares, Problem};
///
/// let mut problem = LeastSquares::<f64>::interpolating(60, 6, 1)?;
/// let start = problem.start(1);
/// let report = minimize(&mut problem).method(Str::new(StrConfig::default())?).sampler(Epochs::new(60, 6, 1)?).stop(Stop::gradient_norm(1e-10).or(Stop::epochs(1000))).start(start)?;
/// assert!(report.reason.converged());
/// let solution = problem.solution().unwrap();
/// assert!(report.point().iter().zip(solution).all(|(x, y)| (x - y).abs() < 1e-8));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LeastSquares<T: Real = f64> {
    /// Aᵀ, so that a row of A is contiguous.
    rows: Mat<T>,
    targets: Vec<T>,
    solution: Option<Vec<T>>,
    /// f*, if it is known.
    optimum: Option<f64>,
    magnitude: f64,
    /// The rows and targets of the test set.
    test: Option<(Mat<T>, Vec<T>)>,
}

/// See [`LeastSquares::constants`].
#[derive(Debug, Clone, PartialEq)]
pub struct Constants {
    /// Lᵢ = ‖aᵢ‖² of every term. The constant of a mini-batch is at most the largest of its terms.
    pub lipschitz: Vec<f64>,
    /// L_f = σ_max(A)²/n.
    pub mean_lipschitz: f64,
    /// ρ of single terms drawn independently: the supremum of E‖∇fᵢ‖²/‖∇f‖² over all x with ∇f(x) ≠ 0, for an
    /// interpolating problem. With noise it is infinite.
    pub rho: f64,
}

impl<T: Real> LeastSquares<T> {
    /// The problem for an n×d matrix A and n targets b. [`Self::solved`] computes the solution.
    ///
    /// ```
    /// use faer::Mat;
    /// use strust_problems::{LeastSquares, Problem};
    /// // The line through (0, 1), (1, 3), (2, 5).
    /// let a = Mat::from_fn(3, 2, |i, j| if j == 0 { 1.0 } else { i as f64 });
    /// let problem = LeastSquares::new(&a, vec![1.0, 3.0, 5.0])?.solved()?;
    /// let x = problem.solution().unwrap();
    /// assert!((x[0] - 1.0).abs() < 1e-12 && (x[1] - 2.0).abs() < 1e-12);
    /// assert!(problem.optimum().unwrap() < 1e-24);
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn new(a: &Mat<T>, b: Vec<T>) -> Result<Self, Error> {
        finite(OWNER, "a", a)?;
        Self::from_rows(a.transpose().to_owned(), b)
    }

    /// A has independent entries N(0, 1/d), x* has entries N(0, 1), and b = Ax*. So f* = 0, up to the rounding of b.
    ///
    /// For n ≥ d the solution is unique. For n < d, x* is one of many solutions.
    pub fn interpolating(n: usize, d: usize, seed: u64) -> Result<Self, Error> {
        Self::gaussian(n, d, None, 0.0, seed)
    }

    /// Like [`Self::interpolating`] or, with `noise` > 0, [`Self::noisy`], but the Hessian AᵀA/n has the given condition
    /// number: the ratio of its largest to its smallest positive eigenvalue. The eigenvalues are spaced evenly on a
    /// logarithmic scale, their directions are random, and their sum is 1, as it is for Gaussian rows on average.
    ///
    /// ```
    /// use strust_problems::LeastSquares;
    /// let problem = LeastSquares::<f64>::conditioned(40, 10, 1e4, 0.0, 0)?;
    /// // The largest of the eigenvalues 1, 10^(-4/9), …, 1e-4 over their sum.
    /// let sum: f64 = (0..10).map(|k| 1e4_f64.powf(-f64::from(k) / 9.0)).sum();
    /// assert!((problem.constants()?.mean_lipschitz * sum - 1.0).abs() < 1e-12);
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn conditioned(n: usize, d: usize, condition: f64, noise: f64, seed: u64) -> Result<Self, Error> {
        if !(condition.is_finite() && condition >= 1.0) {
            return Err(out_of_range(OWNER, "condition", condition, "finite and ≥ 1"));
        }
        if n.min(d) < 2 && condition > 1.0 {
            let allowed = "1, because the Hessian has one positive eigenvalue: use n ≥ 2 and d ≥ 2";
            return Err(out_of_range(OWNER, "condition", condition, allowed));
        }
        not_negative(OWNER, "noise", noise)?;
        let problem = Self::gaussian(n, d, Some(condition), noise, seed)?;
        if noise == 0.0 { Ok(problem) } else { problem.solved() }
    }

    /// Like [`Self::interpolating`], with independent noise N(0, noise²) added to every target. The solution is the
    /// least-squares solution of smallest norm, not the x* before the noise.
    ///
    /// ```
    /// use strust_problems::{LeastSquares, Problem};
    /// let problem = LeastSquares::<f64>::noisy(1000, 10, 0.1, 0)?;
    /// // f* is near noise²/2.
    /// assert!((problem.optimum().unwrap() - 0.005).abs() < 0.001);
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn noisy(n: usize, d: usize, noise: f64, seed: u64) -> Result<Self, Error> {
        not_negative(OWNER, "noise", noise)?;
        Self::gaussian(n, d, None, noise, seed)?.solved()
    }

    /// Without noise the solution is the x* that made b. With noise it is unknown.
    fn gaussian(n: usize, d: usize, condition: Option<f64>, noise: f64, seed: u64) -> Result<Self, Error> {
        at_least_one(OWNER, "n", n)?;
        at_least_one(OWNER, "d", d)?;
        let mut next = normals(seed, DATA);
        let scale = 1.0 / (d as f64).sqrt();
        let rows = fill(d, n, || scale * next());
        let rows = match condition {
            Some(condition) => with_condition(&rows, condition)?,
            None => rows,
        };
        let solution: Vec<T> = (0..d).map(|_| T::from_f64(next())).collect();
        let targets = (0..n).map(|i| T::from_f64(dot(rows.col_as_slice(i), &solution) + noise * next())).collect();
        let (solution, optimum) = (noise == 0.0).then_some((solution, 0.0)).unzip();
        Ok(Self { solution, optimum, ..Self::from_rows(rows, targets)? })
    }

    fn from_rows(rows: Mat<T>, targets: Vec<T>) -> Result<Self, Error> {
        at_least_one(OWNER, "rows", rows.ncols())?;
        at_least_one(OWNER, "columns", rows.nrows())?;
        shape("targets of least squares", vec![rows.ncols()], vec![targets.len()])?;
        if let Some(i) = targets.iter().position(|&b| !b.into().is_finite()) {
            let value: f64 = targets[i].into();
            return Err(out_of_range(OWNER, "b", format!("{value} at row {i}"), "finite everywhere"));
        }
        // Near a good fit aᵢᵀx ≈ bᵢ, so every residual is a difference of two numbers of the size of b. It has an error
        // of about ε|bᵢ| from the products, and another one because x + p is rounded to components of T.
        let magnitude = 2.0 * rms(targets.iter().map(|&b| b.into()));
        Ok(Self { rows, targets, solution: None, optimum: None, magnitude, test: None })
    }

    /// Computes the solution of smallest norm, x* = A⁺b, from the singular values in `f64`: O(nd·min(n, d)).
    pub fn solved(mut self) -> Result<Self, Error> {
        let (d, n) = (self.rows.nrows(), self.rows.ncols());
        let a = Mat::from_fn(n, d, |i, j| self.rows[(j, i)].into());
        let b = Mat::from_fn(n, 1, |i, _| self.targets[i].into());
        let svd = a.thin_svd().map_err(not_converged)?;
        let (sigma, mut coefficients) = (svd.S().column_vector(), svd.U().transpose() * &b);
        // A singular value below this is a rounding error. The solution of smallest norm has no component along its
        // direction.
        let floor = T::EPSILON * n.max(d) as f64 * sigma[0];
        for k in 0..coefficients.nrows() {
            coefficients[(k, 0)] = if sigma[k] > floor { coefficients[(k, 0)] / sigma[k] } else { 0.0 };
        }
        let x = svd.V() * coefficients;
        let optimum = 0.5 * (&a * &x - &b).squared_norm_l2() / n as f64;
        self.solution = Some(x.col_as_slice(0).iter().map(|&v| T::from_f64(v)).collect());
        self.optimum = Some(optimum);
        Ok(self)
    }

    /// The exact constants of the paper's analysis, from the singular values: O(nd·min(n, d)).
    ///
    /// ```
    /// use faer::Mat;
    /// use strust_problems::LeastSquares;
    /// // Two equations x₀ = 0 and 2x₁ = 0, so ∇f = (x₀, 4x₁)/2.
    /// let a = Mat::from_fn(2, 2, |i, j| if i == j { 1.0 + i as f64 } else { 0.0 });
    /// let constants = LeastSquares::new(&a, vec![0.0, 0.0])?.constants()?;
    /// assert_eq!(constants.lipschitz, [1.0, 4.0]);
    /// assert!((constants.mean_lipschitz - 2.0).abs() < 1e-14);
    /// // (x₀² + 16x₁²)/2 over (x₀² + 16x₁²)/4
    /// assert!((constants.rho - 2.0).abs() < 1e-14);
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn constants(&self) -> Result<Constants, Error> {
        let (d, n) = (self.rows.nrows(), self.rows.ncols());
        let lipschitz: Vec<f64> = (0..n).map(|i| dot(self.rows.col_as_slice(i), self.rows.col_as_slice(i))).collect();
        let a = Mat::<f64>::from_fn(n, d, |i, j| self.rows[(j, i)].into());
        let svd = a.thin_svd().map_err(not_converged)?;
        let (u, sigma) = (svd.U(), svd.S().column_vector());
        let floor = T::EPSILON * n.max(d) as f64 * sigma[0];
        let rank = (0..sigma.nrows()).take_while(|&k| sigma[k] > floor).count();
        // With e = x − x* = Vy and z = Σ²y/n: ∇f = Vz and E‖∇fᵢ‖² = n·zᵀ(Σ⁻¹Uᵀ diag(‖aᵢ‖²) UΣ⁻¹)z.
        let weighted = Mat::from_fn(n, rank, |i, k| lipschitz[i].sqrt() * u[(i, k)] / sigma[k]);
        let largest = weighted.singular_values().ok().and_then(|values| values.first().copied()).unwrap_or(0.0);
        Ok(Constants { mean_lipschitz: sigma[0] * sigma[0] / n as f64, rho: n as f64 * largest * largest, lipschitz })
    }

    /// x*, if it is known.
    #[must_use]
    pub fn solution(&self) -> Option<&[T]> {
        self.solution.as_deref()
    }
    /// Aᵀ, with one column for each term, and b.
    #[must_use]
    pub fn data(&self) -> (&Mat<T>, &[T]) {
        (&self.rows, &self.targets)
    }
}

/// The matrix with new singular values: their squares are spaced evenly on a logarithmic scale, the largest is
/// `condition` times the smallest, and their sum is the number of columns.
fn with_condition<T: Real>(rows: &Mat<T>, condition: f64) -> Result<Mat<T>, Error> {
    let (d, n) = (rows.nrows(), rows.ncols());
    let matrix = Mat::<f64>::from_fn(d, n, |i, j| rows[(i, j)].into());
    let svd = matrix.thin_svd().map_err(not_converged)?;
    let rank = n.min(d);
    let square = |k: usize| condition.powf(-(k as f64) / (rank.max(2) - 1) as f64);
    let unit = n as f64 / (0..rank).map(square).sum::<f64>();
    let scaled = Mat::from_fn(d, rank, |i, k| svd.U()[(i, k)] * (unit * square(k)).sqrt());
    let product = scaled * svd.V().transpose();
    Ok(Mat::from_fn(d, n, |i, j| T::from_f64(product[(i, j)])))
}

fn not_converged<E>(_: E) -> Error {
    out_of_range(OWNER, "a", "a matrix whose singular values did not converge", "better scaled")
}

impl<T: Real> Evaluate for LeastSquares<T> {
    type Point = Vec<T>;

    fn count(&self) -> usize {
        self.rows.ncols()
    }
    fn check(&self, x: &Vec<T>) -> Result<(), Error> {
        shape("point of least squares", vec![self.rows.nrows()], vec![x.len()])
    }
    #[inline(always)]
    fn evaluate(&mut self, x: &Vec<T>, sample: &Sample, mut gradient: Option<&mut Vec<T>>) -> f64 {
        let scale = 1.0 / sample.len() as f64;
        let mut sum = 0.0;
        for &i in sample.indices() {
            let row = self.rows.col_as_slice(i);
            let mut z = [dot(row, x)];
            OutputLoss::Squares.add(&mut z, self.targets[i].into(), scale, &mut sum);
            if let Some(gradient) = gradient.as_deref_mut() {
                axpy(T::from_f64(z[0]), row, gradient);
            }
        }
        scale * sum
    }
    /// (1/b) Σ aᵢaᵢᵀv, for both kinds.
    #[inline(always)]
    fn add_product(&mut self, _: ProductKind, _: &Vec<T>, sample: &Sample, v: &Vec<T>, out: &mut Vec<T>) {
        let scale = 1.0 / sample.len() as f64;
        for &i in sample.indices() {
            let row = self.rows.col_as_slice(i);
            axpy(T::from_f64(scale * dot(row, v)), row, out);
        }
    }
    fn rounded(&self, value: f64) -> Evaluation {
        Evaluation::of_squares(value, T::EPSILON, self.magnitude)
    }
}

evaluated!([T: Real] LeastSquares<T>, Vec<T>);

impl<T: Real> Problem for LeastSquares<T> {
    /// Independent components N(0, 1).
    fn start(&self, seed: u64) -> Vec<T> {
        let mut next = normals(seed, START);
        (0..self.rows.nrows()).map(|_| T::from_f64(next())).collect()
    }
    fn feature_scales(&self) -> Option<Vec<f64>> {
        Some((0..self.rows.nrows()).map(|j| rms((0..self.rows.ncols()).map(|i| self.rows[(j, i)].into()))).collect())
    }
    fn optimum(&self) -> Option<f64> {
        self.optimum
    }
    /// The mean of (aᵢᵀx − bᵢ)².
    fn test_metric(&mut self, x: &Vec<T>) -> Option<f64> {
        let (rows, targets) = self.test.as_ref()?;
        let square = |(i, &b): (usize, &T)| (dot(rows.col_as_slice(i), x) - b.into()).powi(2);
        Some(targets.iter().enumerate().map(square).sum::<f64>() / targets.len() as f64)
    }
}

impl<T: Real> Convex for LeastSquares<T> {
    /// From the singular values, as in [`Self::solved`].
    fn minimum(&self) -> Result<f64, Error> {
        Ok(self.clone().solved()?.optimum.expect("a solved problem has an optimum"))
    }
    fn with_optimum(self, optimum: f64) -> Self {
        Self { optimum: Some(optimum), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;
    use strust::prelude::*;

    #[test]
    fn the_products_are_those_of_the_gradients() {
        let mut double = LeastSquares::<f64>::noisy(30, 7, 0.3, 0).unwrap();
        contract::has_products(&mut double, ProductKind::Hessian, true, 1e-13);
        let mut single = LeastSquares::<f32>::noisy(30, 7, 0.3, 0).unwrap();
        contract::has_products(&mut single, ProductKind::Hessian, true, 1e-5);
    }

    #[test]
    fn the_contract_of_a_problem_holds_in_both_precisions() {
        contract::holds(&mut LeastSquares::<f64>::interpolating(30, 7, 0).unwrap(), 1.95..2.05, 1e-14);
        contract::holds(&mut LeastSquares::<f64>::noisy(5, 20, 0.3, 1).unwrap(), 1.95..2.05, 1e-14);
        contract::holds(&mut LeastSquares::<f32>::interpolating(30, 7, 0).unwrap(), 1.8..2.2, 1e-6);
    }

    #[test]
    fn the_gradient_vanishes_at_the_known_solution() {
        let solves = |mut problem: LeastSquares<f64>, tolerance| {
            let x = problem.solution().unwrap().to_vec();
            contract::solves(&mut problem, &x, tolerance);
        };
        solves(LeastSquares::interpolating(40, 10, 3).unwrap(), 1e-15);
        solves(LeastSquares::interpolating(10, 40, 3).unwrap(), 1e-15);
        solves(LeastSquares::noisy(40, 10, 0.5, 3).unwrap(), 1e-14);
        solves(LeastSquares::noisy(10, 40, 0.5, 3).unwrap(), 1e-14);
        let mut single = LeastSquares::<f32>::noisy(40, 10, 0.5, 3).unwrap();
        let x = single.solution().unwrap().to_vec();
        contract::solves(&mut single, &x, 1e-6);
    }

    #[test]
    fn the_hessian_has_the_given_condition_and_the_solution_is_known() {
        for (n, d) in [(30, 8), (8, 30), (12, 12)] {
            for condition in [1.0, 1e3, 1e8] {
                let mut f = LeastSquares::<f64>::conditioned(n, d, condition, 0.0, 2).unwrap();
                let a = f.rows.transpose().to_owned();
                let sigma = a.singular_values().unwrap();
                let squares: Vec<f64> = sigma.iter().map(|s| s * s / n as f64).collect();
                assert!((squares[0] / squares[n.min(d) - 1] / condition - 1.0).abs() < 1e-6, "{squares:?}");
                assert!((squares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                let step = squares[1] / squares[0];
                assert!(squares.windows(2).all(|w| (w[1] / w[0] / step - 1.0).abs() < 1e-6), "{squares:?}");
                let x = f.solution().unwrap().to_vec();
                contract::solves(&mut f, &x, 1e-15);
                contract::holds(&mut f, 1.95..2.05, 1e-13);
                let mut noisy = LeastSquares::<f64>::conditioned(n, d, condition, 0.1, 2).unwrap();
                assert_eq!(noisy.rows, f.rows);
                // With a small eigenvalue the solution is large: about noise/σ.
                let x = noisy.solution().unwrap().to_vec();
                contract::solves(&mut noisy, &x, 1e-13 * condition.sqrt());
                assert_eq!(noisy.optimum().unwrap() > 1e-4, n > d);
            }
        }
        let mut single = LeastSquares::<f32>::conditioned(30, 8, 1e4, 0.1, 2).unwrap();
        contract::holds(&mut single, 1.8..2.2, 1e-6);
    }

    #[test]
    fn a_condition_that_cannot_be_is_an_error() {
        let message = |n, condition| LeastSquares::<f64>::conditioned(n, 4, condition, 0.0, 0).unwrap_err().to_string();
        assert_eq!(message(5, 0.5), "least squares: `condition` is 0.5, but must be finite and ≥ 1");
        assert!(message(5, f64::INFINITY).contains("`condition` is inf"));
        assert!(message(1, 10.0).contains("`condition` is 10, but must be 1, because the Hessian has one positive"));
        assert!(LeastSquares::<f64>::conditioned(1, 4, 1.0, 0.0, 0).is_ok());
        assert!(
            LeastSquares::<f64>::conditioned(5, 4, 2.0, -1.0, 0).unwrap_err().to_string().contains("`noise` is -1")
        );
    }

    #[test]
    fn a_rank_deficient_matrix_has_a_solution_of_smallest_norm() {
        // Two equal columns share the weight.
        let a = Mat::from_fn(4, 2, |i, _| i as f64 + 1.0);
        let problem = LeastSquares::new(&a, vec![2.0, 4.0, 6.0, 8.0]).unwrap().solved().unwrap();
        let x = problem.solution().unwrap();
        assert!(x.iter().all(|v| (v - 1.0).abs() < 1e-12), "{x:?}");
        let zero = LeastSquares::new(&Mat::zeros(3, 2), vec![1.0; 3]).unwrap().solved().unwrap();
        assert_eq!((zero.solution(), zero.optimum()), (Some(&[0.0, 0.0][..]), Some(0.5)));
    }

    #[test]
    fn the_strong_growth_constant_is_the_supremum_of_rho() {
        use strust::{diagnostics::strong_growth, sample::Draws};
        for (n, d) in [(30, 8), (12, 40)] {
            let mut problem = LeastSquares::<f64>::interpolating(n, d, 1).unwrap();
            let constants = problem.constants().unwrap();
            let mut largest: f64 = 0.0;
            // After gradient descent only the directions of small curvature remain, where ρ is largest.
            let mut x = problem.start(0);
            for _ in 0..20_000 {
                let mut g = x.zeros_like();
                strust::objective::full_value_and_gradient(&mut problem, &x, &mut g);
                x.add(-1.0 / constants.mean_lipschitz, &g);
                if g.norm() < 1e-9 {
                    break;
                }
                largest = largest.max(strong_growth(&mut problem, &x).rho(1, Draws::Independent));
            }
            assert!(
                largest <= constants.rho * (1.0 + 1e-9) && largest > 0.3 * constants.rho,
                "{largest} {}",
                constants.rho
            );
        }
    }

    #[test]
    fn str_converges_to_the_solution_of_an_interpolating_problem() {
        let (n, batch) = (200, 20);
        for seed in 0..5 {
            let mut problem = LeastSquares::<f64>::interpolating(n, 20, seed).unwrap();
            let start = problem.start(seed);
            let stop = Stop::gradient_norm(1e-10).or(Stop::epochs(1000));
            let mut method = Str::new(StrConfig::default()).unwrap();
            let mut sampler = Epochs::new(n, batch, seed).unwrap();
            let report =
                minimize(&mut problem).method(&mut method).sampler(&mut sampler).stop(&stop).start(start).unwrap();
            assert_eq!(report.reason, StopReason::GradientNorm);
            let mut error = report.point().clone();
            error.add(-1.0, &problem.solution().unwrap().to_vec());
            assert!(error.norm() < 1e-8, "distance {}", error.norm());
            let evaluations = report.evaluations.values + report.evaluations.gradients;
            assert!(evaluations < 3_000, "{evaluations} evaluations");
        }
    }

    #[test]
    fn str_at_the_rounding_floor_accepts_steps_and_keeps_its_radius() {
        fn floor<T: Real>() -> (f64, f64, f64) {
            let mut problem = LeastSquares::<T>::interpolating(50, 5, 2).unwrap();
            let start = problem.start(2);
            let mut method = Str::new(StrConfig::default()).unwrap();
            let mut sampler = Epochs::new(50, 10, 2).unwrap();
            let report = minimize(&mut problem)
                .method(&mut method)
                .sampler(&mut sampler)
                .stop(Stop::epochs(1000))
                .start(start)
                .unwrap();
            (report.last.value, report.state.radius(), report.acceptance_rate())
        }
        for ((value, radius, rate), epsilon) in [(floor::<f64>(), f64::EPSILON), (floor::<f32>(), f32::EPSILON.into())]
        {
            assert!(value < 10.0 * epsilon * epsilon, "value {value}");
            assert!(radius > 1e-3, "radius {radius}");
            assert!(rate > 0.9, "acceptance {rate}");
        }
    }

    #[test]
    fn wrong_sizes_and_numbers_are_errors() {
        let message = |result: Result<LeastSquares<f64>, Error>| result.unwrap_err().to_string();
        assert_eq!(message(LeastSquares::interpolating(0, 3, 0)), "least squares: `n` is 0, but must be ≥ 1");
        assert_eq!(
            message(LeastSquares::new(&Mat::zeros(3, 0), vec![0.0; 3])),
            "least squares: `columns` is 0, but must be ≥ 1"
        );
        assert_eq!(
            message(LeastSquares::new(&Mat::zeros(3, 2), vec![0.0; 2])),
            "targets of least squares: expected shape [3], found [2]"
        );
        assert!(message(LeastSquares::new(&Mat::zeros(1, 2), vec![f64::NAN])).contains("`b` is NaN at row 0"));
        let a = Mat::from_fn(2, 2, |i, j| if (i, j) == (1, 0) { f64::INFINITY } else { 0.0 });
        assert!(message(LeastSquares::new(&a, vec![0.0; 2])).contains("`a` is inf at row 1, column 0"));
        assert!(message(LeastSquares::noisy(3, 2, -1.0, 0)).contains("`noise` is -1"));
        let problem = LeastSquares::<f64>::interpolating(3, 2, 0).unwrap();
        assert!(problem.check_point(&vec![0.0; 3]).is_err());
    }
}
