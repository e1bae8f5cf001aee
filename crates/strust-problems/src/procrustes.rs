//! The Procrustes problem: the orthonormal map that fits pairs of points best.

use crate::{
    Problem,
    any_constraint::any_constraint,
    columns::DataColumns,
    numerics::{DATA, START, check_frame, gaussian, minimum, not_negative, random_frame, shape, squarable},
};
use faer::Mat;
use strust::{
    Error,
    constraints::{AnyConstraint, Manifold, Retraction, Stiefel},
    objective::{Evaluation, Objective, ProductKind},
    sample::Sample,
    vector::Vector,
};

const OWNER: &str = "Procrustes problem";
/// The streams of the map and of the noise.
const MAP: u64 = DATA + 32;
const NOISE: u64 = DATA + 33;

/// f(W) = (1/n) Σⱼ ‖Wᵀaⱼ − bⱼ‖² over pairs of points aⱼ ∈ ℝᵈ and bⱼ ∈ ℝᵏ, subject to WᵀW = I.
///
/// If k = d, W is a rotation or reflection, and the minimum is (‖A‖² + ‖B‖² − 2‖ABᵀ‖₁)/n with the sum ‖·‖₁ of singular
/// values. If k < d there is no formula. f depends on W itself, not only on the span of its columns, so projected SGD
/// needs the [polar retraction](Retraction::Polar).
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{Problem, Procrustes};
///
/// let mut f = Procrustes::random(6, 2, 100, 0.1, 0)?;
/// let (method, start) = (StrSqp::new(StrSqpConfig::default(), f.constraint())?, f.start(0));
/// let report = minimize(&mut f).method(method).full_batch().start(start)?;
/// assert!(report.reason.converged());
/// assert!((report.last.value - f.optimum().unwrap()).abs() < 1e-10);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Procrustes {
    from: DataColumns,
    to: Mat<f64>,
    interpolates: bool,
    /// The root mean square of ‖bⱼ‖. A residual is a difference of numbers of this size.
    magnitude: f64,
}

impl Procrustes {
    /// a ~ N(0, I) and b = W*ᵀa + `noise`·ε with a random orthonormal d×k matrix W* and ε ~ N(0, I). Without noise the
    /// data interpolate: f* = 0.
    pub fn random(d: usize, k: usize, n: usize, noise: f64, seed: u64) -> Result<Self, Error> {
        check_frame(OWNER, d, k, n)?;
        not_negative(OWNER, "noise", noise)?;
        let from = gaussian(d, n, seed, DATA);
        let mut to = random_frame(d, k, seed, MAP).transpose() * &from;
        if noise > 0.0 {
            to += noise * gaussian(k, n, seed, NOISE);
        }
        Ok(Self { interpolates: noise == 0.0, ..Self::from_data(from, to)? })
    }

    /// The problem for the columns of A (d×n) and of B (k×n), with k ≤ d.
    pub fn from_data(from: Mat<f64>, to: Mat<f64>) -> Result<Self, Error> {
        let (k, n) = (to.nrows(), from.ncols());
        check_frame(OWNER, from.nrows(), k, n)?;
        shape("B of a Procrustes problem", vec![k, n], Vector::shape(&to))?;
        squarable(OWNER, "A", &from)?;
        squarable(OWNER, "B", &to)?;
        let magnitude = (to.norm_squared() / n as f64).sqrt();
        Ok(Self { from: DataColumns::new(from, k), to, interpolates: false, magnitude })
    }

    /// The constraint WᵀW = I of this problem.
    #[must_use]
    pub fn constraint(&self) -> Stiefel {
        let (d, k) = self.from.size();
        let stiefel = Stiefel::new(d, k).expect("the constructors check the sizes");
        stiefel.with_retraction(Retraction::Polar)
    }
}

impl Objective for Procrustes {
    type Point = Mat<f64>;
    fn terms(&self) -> usize {
        self.to.ncols()
    }
    fn value(&mut self, w: &Mat<f64>, sample: &Sample) -> Evaluation {
        let (residual, b) = (self.from.project(w, sample), sample.len());
        for (j, &i) in sample.indices().iter().enumerate() {
            residual.col_as_slice_mut(j).iter_mut().zip(self.to.col_as_slice(i)).for_each(|(r, b)| *r -= b);
        }
        let value = residual.norm_squared() / b as f64;
        Evaluation::of_squares(value, f64::EPSILON, 2.0 * self.magnitude)
    }
    /// ∇f = (2/b)A(WᵀA − B)ᵀ.
    fn value_and_gradient(&mut self, w: &Mat<f64>, sample: &Sample, gradient: &mut Mat<f64>) -> Evaluation {
        let value = self.value(w, sample);
        self.from.pull_back(2.0, sample, gradient);
        value
    }
    /// (2/b)A(VᵀA)ᵀ, for both kinds.
    fn curvature_product(
        &mut self,
        _: ProductKind,
        _: &Mat<f64>,
        sample: &Sample,
        direction: &Mat<f64>,
        product: &mut Mat<f64>,
    ) -> bool {
        self.from.project(direction, sample);
        self.from.pull_back(2.0, sample, product);
        true
    }
    fn check_point(&self, w: &Mat<f64>) -> Result<(), Error> {
        let (d, k) = self.from.size();
        shape(OWNER, vec![d, k], Vector::shape(w))
    }
}

impl Problem for Procrustes {
    /// A random orthonormal frame.
    fn start(&self, seed: u64) -> Mat<f64> {
        let (d, k) = self.from.size();
        random_frame(d, k, seed, START)
    }
    /// For k < d with noise: the minimum that [`StrSqp`](strust::methods::StrSqp) finds from the orthonormal matrix
    /// nearest to ABᵀ, which is the solution if the points aⱼ are spread evenly in all directions.
    fn optimum(&self) -> Option<f64> {
        if self.interpolates {
            return Some(0.0);
        }
        let from = &self.from.data;
        let mut products = from * self.to.transpose();
        if from.nrows() == self.to.nrows() {
            let nuclear: f64 = products.singular_values().ok()?.iter().sum();
            let squares = from.norm_squared() + self.to.norm_squared();
            return Some((squares - 2.0 * nuclear) / self.terms() as f64);
        }
        self.constraint().restore(&mut products).ok()?;
        minimum(self.clone(), &self.constraint(), products)
    }
    /// Always with the polar retraction: with QR the solution would not be a fixed point of projected SGD.
    fn any_constraint(&self, _: Retraction) -> Option<AnyConstraint<Mat<f64>>> {
        Some(any_constraint(self.constraint()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;
    use strust::{objective::full_value, prelude::*};

    fn best(f: &mut Procrustes) -> f64 {
        let optimum = f.optimum().unwrap();
        let (mut least, constraint) = (f64::INFINITY, f.constraint());
        for seed in 0..5 {
            let (method, start) = (StrSqp::new(StrSqpConfig::default(), constraint.clone()).unwrap(), f.start(seed));
            let report = minimize(&mut *f).method(method).full_batch().stop(Stop::steps(500)).start(start).unwrap();
            assert!(report.reason.converged(), "{:?} {:?}", report.reason, report.last);
            least = least.min(report.last.value);
        }
        least - optimum
    }

    #[test]
    fn the_contract_of_a_problem_holds() {
        let mut f = Procrustes::random(7, 3, 30, 0.2, 0).unwrap();
        contract::holds(&mut f, 1.95..2.05, 1e-13);
        contract::has_products(&mut f, ProductKind::Hessian, true, 1e-13);
        contract::has_products(&mut f, ProductKind::GaussNewton, true, 1e-13);
    }

    #[test]
    fn the_sqp_reaches_the_optimum_from_random_starts_and_never_less() {
        // k < d, k = d, and exact data.
        for (k, noise) in [(3, 0.3), (7, 0.3), (3, 0.0)] {
            let gap = best(&mut Procrustes::random(7, k, 60, noise, 1).unwrap());
            assert!(gap.abs() < 1e-10, "k = {k}, noise {noise}: {gap}");
        }
    }

    #[test]
    fn the_formula_of_a_square_problem_agrees_with_the_computed_minimum() {
        let f = Procrustes::random(4, 4, 50, 0.5, 2).unwrap();
        let mut nearest = &f.from.data * f.to.transpose();
        f.constraint().restore(&mut nearest).unwrap();
        assert!((full_value(&mut f.clone(), &nearest) - f.optimum().unwrap()).abs() < 1e-12);
        assert!((minimum(f.clone(), &f.constraint(), nearest).unwrap() - f.optimum().unwrap()).abs() < 1e-12);
    }

    #[test]
    fn wrong_sizes_are_an_error() {
        assert!(Procrustes::random(2, 3, 10, 0.0, 0).unwrap_err().to_string().contains("in [1, d] = [1, 2]"));
        assert!(Procrustes::random(3, 2, 10, -1.0, 0).is_err());
        assert!(Procrustes::from_data(Mat::zeros(3, 4), Mat::zeros(2, 5)).unwrap_err().to_string().contains("[2, 4]"));
    }
}
