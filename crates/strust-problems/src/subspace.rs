//! Orthogonal subspace fitting: the constrained experiment of the paper's section 5.2.

use crate::{
    Problem,
    any_constraint::any_constraint,
    numerics::{START, centered, check_frame, gaussian, not_negative, random_frame, shape, squarable},
};
use faer::{Accum, Mat, Par, Side, linalg::matmul::matmul};
use strust::products::{Beside, Picked, inner, product, residual_norm_squared};
use strust::{
    Error,
    constraints::{AnyConstraint, Retraction, Stiefel},
    objective::{Evaluation, Objective, ProductKind},
    sample::Sample,
    vector::{Real, Vector},
};

/// f(W) = (1/n) Σⱼ ‖(I − WWᵀ)xⱼ‖² over the columns xⱼ of a d×n matrix, subject to WᵀW = I.
///
/// The paper writes the sum as one Frobenius norm. A mini-batch method needs the mean, and with the mean the paper's
/// learning rates work. The minimum over orthonormal W is the sum of the d − k smallest eigenvalues of XXᵀ/n, attained
/// at the top-k eigenvectors. It is also the minimum over *all* W, so a penalty of any weight is exact on this problem.
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{Problem, subspace::SubspaceFit};
///
/// let mut f = SubspaceFit::<f64>::spiked(30, 3, 200, 0.0, 1)?;
/// let mut method = StrP::new(StrPConfig::default(), f.constraint())?;
/// let start = f.start(1);
/// let report = minimize(&mut f).method(&mut method).sampler(Epochs::new(200, 32, 1)?).stop(Stop::epochs(15)).start(start)?;
/// assert!(report.last.value < 1e-20 && report.last.constraint_norm < 1e-10);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SubspaceFit<T: Real = f64> {
    data: Mat<T>,
    k: usize,
    /// Whether the optimum is 0. For other data it is an eigenvalue problem, solved on demand.
    exact: bool,
    /// The root mean square of ‖xⱼ‖. A residual is a difference of numbers of this size.
    magnitude: f64,
    scratch: Scratch<T>,
}

/// For a batch X of b columns: A = WᵀX, WᵀW, 2I − WᵀW, and the factors M above S of the gradient XM + WS.
#[derive(Debug, Clone)]
struct Scratch<T> {
    coordinates: Mat<T>,
    gram: Mat<T>,
    factors: Mat<T>,
    /// For a product along V: VᵀX, and VᵀW, later VᵀW + WᵀV.
    along: Mat<T>,
    cross: Mat<T>,
    /// The factors M above S above T of the product XM + WS + VT.
    product_factors: Mat<T>,
}

impl<T: Real> SubspaceFit<T> {
    /// The spiked model of Dar et al. (2020), centered: x = Uz + ε with U a random d×k orthonormal basis, z ~ N(0, I)
    /// and ε ~ N(0, noise²·I). Without noise the data are exactly in a k-dimensional subspace, and the minimum is 0.
    pub fn spiked(d: usize, k: usize, n: usize, noise: f64, seed: u64) -> Result<Self, Error> {
        check_frame(OWNER, d, k, n)?;
        not_negative(OWNER, "noise", noise)?;
        let basis = random_frame(d, k, seed, BASIS);
        let coordinates = gaussian(k, n, seed, COORDINATES);
        let mut data = &basis * &coordinates;
        if noise > 0.0 {
            data += noise * gaussian(d, n, seed, NOISE);
        }
        Ok(Self { exact: noise == 0.0, ..Self::from_data(&data, k)? })
    }

    /// Fits a k-dimensional subspace to the columns of a d×n matrix. The columns are centered first.
    pub fn from_data(columns: &Mat<f64>, k: usize) -> Result<Self, Error> {
        let (d, n) = (columns.nrows(), columns.ncols());
        check_frame(OWNER, d, k, n)?;
        squarable(OWNER, "data", columns)?;
        let data = centered(columns);
        let magnitude = (data.squared_norm_l2() / n as f64).sqrt();
        let data = Mat::from_fn(d, n, |i, j| T::from_f64(data[(i, j)]));
        Ok(Self { data, k, exact: false, magnitude, scratch: Scratch::new(k) })
    }

    /// The constraint WᵀW = I of this problem.
    #[must_use]
    pub fn constraint(&self) -> Stiefel<T> {
        Stiefel::new(self.data.nrows(), self.k).expect("`new` checks the sizes")
    }

    /// ‖X − WA‖²/b. A = WᵀX stays in the scratch space. The residual is computed explicitly: ‖X‖² − ‖A‖² would lose all
    /// digits below 1e-16.
    fn evaluate(&mut self, w: &Mat<T>, sample: &Sample) -> Evaluation {
        let (k, b) = (self.k, sample.len());
        let x = Picked { matrix: &self.data, indices: sample.indices() };
        let s = &mut self.scratch;
        s.reserve(k, b);
        inner(w, &x, &mut s.coordinates);
        let value = residual_norm_squared(&x, w, &s.coordinates) / b as f64;
        // A residual is the difference of two vectors of the size of a column. One of them is rounded twice.
        Evaluation::of_squares(value, T::EPSILON, 2.0 * self.magnitude)
    }
}

impl<T: Real> Scratch<T> {
    fn new(k: usize) -> Self {
        Self {
            coordinates: Mat::zeros(k, 0),
            gram: Mat::zeros(k, k),
            factors: Mat::zeros(k, k),
            along: Mat::zeros(k, 0),
            cross: Mat::zeros(k, k),
            product_factors: Mat::zeros(2 * k, k),
        }
    }

    /// Makes space for a batch of b columns. This does not allocate within the capacity of earlier batches.
    fn reserve(&mut self, k: usize, b: usize) {
        if self.coordinates.ncols() != b {
            self.coordinates.resize_with(k, b, |_, _| T::default());
            self.factors.resize_with(b + k, k, |_, _| T::default());
        }
    }
}

impl<T: Real> Objective for SubspaceFit<T> {
    type Point = Mat<T>;
    fn terms(&self) -> usize {
        self.data.ncols()
    }
    fn value(&mut self, w: &Mat<T>, sample: &Sample) -> Evaluation {
        self.evaluate(w, sample)
    }
    /// ∇f = −(2/b)(RAᵀ + X(WᵀR)ᵀ) with R = X − WA. This equals X·M + W·S with M = −(2/b)Aᵀ(2I − WᵀW) and S = (2/b)AAᵀ,
    /// which takes one product of d rows instead of three and has an error of the same size.
    fn value_and_gradient(&mut self, w: &Mat<T>, sample: &Sample, gradient: &mut Mat<T>) -> Evaluation {
        let value = self.evaluate(w, sample);
        let Scratch { coordinates: a, gram, factors, .. } = &mut self.scratch;
        let b = sample.len();
        let scale = T::from_f64(2.0 / b as f64);
        strust::products::gram(w, gram);
        for j in 0..self.k {
            gram[(j, j)] -= T::from_f64(2.0);
        }
        let (m, s) = factors.split_at_row_mut(b);
        matmul(m, Accum::Replace, a.transpose(), &*gram, scale, Par::Seq);
        matmul(s, Accum::Replace, &*a, a.transpose(), scale, Par::Seq);
        product(&Beside(&Picked { matrix: &self.data, indices: sample.indices() }, w), factors, gradient);
        value
    }
    /// With A = WᵀX, C = VᵀX, G = WᵀW and K = VᵀW, the derivative of R = X − WA is Ṙ = −(VA + WC). Both products have the
    /// form XM + WS + VT with T = (2/b)AAᵀ:
    ///
    /// | | M·b/2 | S·b/2 |
    /// |---|---|---|
    /// | Hessian: the derivative of the gradient | Cᵀ(G − 2I) + Aᵀ(K + Kᵀ) | CAᵀ + ACᵀ |
    /// | Gauss–Newton: −(2/b)(ṘAᵀ + XṘᵀW) | CᵀG + AᵀK | CAᵀ |
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        w: &Mat<T>,
        sample: &Sample,
        direction: &Mat<T>,
        product: &mut Mat<T>,
    ) -> bool {
        let (k, b) = (self.k, sample.len());
        let x = Picked { matrix: &self.data, indices: sample.indices() };
        let s = &mut self.scratch;
        s.reserve(k, b);
        let Scratch { coordinates: a, along: c, gram, cross, product_factors, .. } = s;
        if c.ncols() != b {
            c.resize_with(k, b, |_, _| T::default());
            product_factors.resize_with(b + 2 * k, k, |_, _| T::default());
        }
        inner(w, &x, a);
        inner(direction, &x, c);
        inner(direction, w, cross);
        strust::products::gram(w, gram);
        let (m, rest) = product_factors.split_at_row_mut(b);
        let (mut m, (mut s, t)) = (m, rest.split_at_row_mut(k));
        let scale = T::from_f64(2.0 / b as f64);
        matmul(s.as_mut(), Accum::Replace, &*c, a.transpose(), scale, Par::Seq);
        matmul(t, Accum::Replace, &*a, a.transpose(), scale, Par::Seq);
        if kind == ProductKind::Hessian {
            matmul(s, Accum::Add, &*a, c.transpose(), scale, Par::Seq);
            for j in 0..k {
                gram[(j, j)] -= T::from_f64(2.0);
                for i in 0..=j {
                    let sum = cross[(i, j)] + cross[(j, i)];
                    (cross[(i, j)], cross[(j, i)]) = (sum, sum);
                }
            }
        }
        matmul(m.as_mut(), Accum::Replace, c.transpose(), &*gram, scale, Par::Seq);
        matmul(m, Accum::Add, a.transpose(), &*cross, scale, Par::Seq);
        strust::products::product(&Beside(&Beside(&x, w), direction), product_factors, product);
        true
    }
    fn check_point(&self, w: &Mat<T>) -> Result<(), Error> {
        shape(OWNER, vec![self.data.nrows(), self.k], Vector::shape(w))
    }
}

impl<T: Real> Problem for SubspaceFit<T> {
    /// A random orthonormal frame.
    fn start(&self, seed: u64) -> Mat<T> {
        let frame = random_frame(self.data.nrows(), self.k, seed, START);
        Mat::from_fn(frame.nrows(), frame.ncols(), |i, j| T::from_f64(frame[(i, j)]))
    }
    fn optimum(&self) -> Option<f64> {
        if self.exact { Some(0.0) } else { tail_of_spectrum(&self.data, self.k) }
    }
    fn any_constraint(&self, retraction: Retraction) -> Option<AnyConstraint<Mat<T>>> {
        Some(any_constraint(self.constraint().with_retraction(retraction)))
    }
}

/// The sum of all but the k largest eigenvalues of XXᵀ/n, from the smaller of the two Gram matrices. They are summed
/// directly, because a difference would cancel. `None` if the eigenvalues do not converge.
fn tail_of_spectrum<T: Real>(data: &Mat<T>, k: usize) -> Option<f64> {
    let n = data.ncols();
    let data = Mat::from_fn(data.nrows(), n, |i, j| data[(i, j)].into());
    let gram = if data.nrows() <= n { &data * data.transpose() } else { data.transpose() * &data };
    let eigenvalues = gram.self_adjoint_eigenvalues(Side::Lower).ok()?;
    let tail = eigenvalues.len().saturating_sub(k);
    Some(eigenvalues[..tail].iter().map(|e| e.max(0.0)).sum::<f64>() / n as f64)
}

/// One stream of random numbers for each purpose, so that they do not depend on each other.
const BASIS: u64 = START + 1;
const COORDINATES: u64 = START + 2;
const NOISE: u64 = START + 3;

const OWNER: &str = "subspace fitting";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;
    use strust::{diagnostics::gradient_slope, objective::full_value};

    #[test]
    fn the_gradient_passes_the_slope_check() {
        let mut f = SubspaceFit::<f64>::spiked(12, 3, 20, 0.3, 5).unwrap();
        let w = gaussian(12, 3, 8, START);
        let slope = gradient_slope(&mut f, &w, &gaussian(12, 3, 9, START), &Sample::range(2..9));
        assert!((1.9..2.1).contains(&slope), "{slope}");
    }

    #[test]
    fn the_products_are_those_of_the_gradients() {
        // Away from WᵀW = I, so that every part of the formulas counts.
        let mut f = SubspaceFit::<f64>::spiked(12, 3, 20, 0.3, 5).unwrap();
        let w = gaussian(12, 3, 8, START);
        contract::has_products_at(&mut f, &w, ProductKind::Hessian, false, 1e-13);
        contract::has_products_at(&mut f, &w, ProductKind::GaussNewton, true, 1e-13);
        let mut f = SubspaceFit::<f32>::spiked(12, 3, 20, 0.3, 5).unwrap();
        contract::has_products(&mut f, ProductKind::Hessian, false, 1e-5);
        contract::has_products(&mut f, ProductKind::GaussNewton, true, 1e-5);
    }

    #[test]
    fn the_gauss_newton_form_is_the_square_of_the_change_of_the_residuals() {
        let mut f = SubspaceFit::<f64>::spiked(12, 3, 20, 0.3, 5).unwrap();
        let [w, u, v] = [8, 9, 10].map(|seed| gaussian(12, 3, seed, START));
        let change = |v: &Mat<f64>| v * (w.transpose() * &f.data) + &w * (v.transpose() * &f.data);
        let expected = 2.0 / 20.0 * change(&u).dot(&change(&v));
        let mut product = w.zeros_like();
        assert!(f.curvature_product(ProductKind::GaussNewton, &w, &Sample::range(0..20), &v, &mut product));
        assert!((u.dot(&product) / expected - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_minimum_is_at_the_top_eigenvectors() {
        let mut f = SubspaceFit::<f64>::spiked(15, 4, 60, 0.2, 3).unwrap();
        let optimum = f.optimum().unwrap();
        let gram = &f.data * f.data.transpose();
        let eigen = gram.self_adjoint_eigen(Side::Lower).unwrap();
        let top = Mat::from_fn(15, 4, |i, j| eigen.U()[(i, 14 - j)]);
        assert!((full_value(&mut f, &top) / optimum - 1.0).abs() < 1e-12);
        for seed in 0..20 {
            let w = f.start(seed);
            assert!(full_value(&mut f, &w) > optimum);
        }
    }

    #[test]
    fn the_computed_optimum_of_exact_data_is_zero() {
        let f = SubspaceFit::<f64>::spiked(40, 3, 30, 0.0, 3).unwrap();
        assert_eq!(f.optimum(), Some(0.0));
        assert!(tail_of_spectrum(&f.data, 3).unwrap() < 1e-14);
    }

    #[test]
    fn single_precision_agrees_with_double() {
        let (mut single, mut double) = (
            SubspaceFit::<f32>::spiked(20, 2, 10, 0.1, 1).unwrap(),
            SubspaceFit::<f64>::spiked(20, 2, 10, 0.1, 1).unwrap(),
        );
        let sample = Sample::range(0..10);
        let (a, b) = (single.start(4), double.start(4));
        assert!((single.value(&a, &sample).value / double.value(&b, &sample).value - 1.0).abs() < 1e-5);
    }

    #[test]
    fn wrong_sizes_are_an_error_that_names_the_range() {
        let error = SubspaceFit::<f64>::spiked(5, 6, 10, 0.0, 0).unwrap_err().to_string();
        assert_eq!(error, "subspace fitting: `k` is 6, but must be in [1, d] = [1, 5]");
        assert!(SubspaceFit::<f64>::spiked(5, 2, 0, 0.0, 0).is_err());
        assert!(SubspaceFit::<f64>::spiked(5, 2, 10, f64::NAN, 0).is_err());
        assert!(SubspaceFit::<f64>::from_data(&Mat::from_fn(3, 3, |_, _| f64::INFINITY), 1).is_err());
        assert!(SubspaceFit::<f64>::from_data(&Mat::zeros(3, 3), 1).is_ok());
    }

    #[test]
    fn data_whose_squares_under_or_overflow_are_an_error_that_names_the_cause() {
        let data = |scale: f64| scale * gaussian(12, 20, 1, START);
        for scale in [1e-160, 1e-80, 1e80, 1e160] {
            let error = SubspaceFit::<f64>::from_data(&data(scale), 3).unwrap_err().to_string();
            let says = error.contains("at its largest entry, but must be in [1e-75, 1e75]");
            assert!(says && error.contains("multiply the data by a constant"), "{error}");
        }
        // Near the limits everything is finite, and the optimum is that of the data.
        let optimum = |scale| SubspaceFit::<f64>::from_data(&data(scale), 3).unwrap().optimum().unwrap();
        for scale in [1e-74, 1e74] {
            let mut f = SubspaceFit::<f64>::from_data(&data(scale), 3).unwrap();
            let (w, mut g) = (f.start(0), f.start(1));
            let value = f.value_and_gradient(&w, &Sample::range(0..20), &mut g);
            assert!(value.value.is_normal() && value.rounding.is_normal() && g.norm_squared().is_normal());
            assert!((optimum(scale) / scale / scale / optimum(1.0) - 1.0).abs() < 1e-10);
        }
    }
}
