use super::{Constraint, stiefel::symmetrize};
use crate::products::{add_product, inner, product};
use crate::{
    Error,
    config::out_of_range,
    vector::{Real, Vector},
};
use faer::{Mat, Side};

/// d×k matrices whose columns are orthonormal in the inner product of a symmetric positive definite matrix B, as
/// c(W) = WᵀBW − I.
///
/// J(W)V = WᵀBV + VᵀBW and J(W)ᵀY = BW(Y + Yᵀ). [`by_newton`](super::by_newton) makes a manifold of it.
///
/// ```
/// use faer::Mat;
/// use strust::{constraints::GeneralizedStiefel, prelude::*};
/// let metric = Mat::from_fn(2, 2, |i, j| if i == j { 4.0 } else { 0.0 });
/// let mut c = GeneralizedStiefel::new(metric, 1)?;
/// let mut residual = c.new_residual();
/// c.residual(&Mat::from_fn(2, 1, |i, _| [0.0, 0.5][i]), &mut residual);
/// assert_eq!(residual[(0, 0)], 0.0);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GeneralizedStiefel<T: Real = f64> {
    metric: Mat<T>,
    /// BW or BV.
    product: Mat<T>,
    square: Mat<T>,
}

impl<T: Real> GeneralizedStiefel<T> {
    /// The set for a d×d matrix B and k columns; needs 1 ≤ k ≤ d.
    pub fn new(metric: Mat<T>, k: usize) -> Result<Self, Error> {
        let d = metric.nrows();
        if metric.ncols() != d {
            return Err(Error::Shape { place: OWNER, expected: vec![d, d], found: Vector::shape(&metric) });
        }
        if k == 0 || k > d {
            return Err(out_of_range(OWNER, "k", k, format!("in [1, {d}]")));
        }
        let off = (0..d).flat_map(|j| (0..j).map(move |i| (i, j))).find(|&(i, j)| {
            let (above, below): (f64, f64) = (metric[(i, j)].into(), metric[(j, i)].into());
            above.to_bits() != below.to_bits()
        });
        if let Some((i, j)) = off {
            return Err(out_of_range(OWNER, "B", format!("not symmetric at ({i}, {j})"), "symmetric"));
        }
        let double = Mat::from_fn(d, d, |i, j| metric[(i, j)].into());
        if double.llt(Side::Lower).is_err() {
            return Err(out_of_range(OWNER, "B", "not positive definite", "positive definite"));
        }
        Ok(Self { metric, product: Mat::zeros(d, k), square: Mat::zeros(k, k) })
    }
}

const OWNER: &str = "generalized Stiefel manifold";

impl<T: Real> Constraint for GeneralizedStiefel<T> {
    type Point = Mat<T>;
    type Residual = Mat<T>;
    fn new_residual(&self) -> Mat<T> {
        self.square.zeros_like()
    }
    fn residual(&mut self, x: &Mat<T>, c: &mut Mat<T>) {
        product(&self.metric, x, &mut self.product);
        inner(x, &self.product, c);
        // Rounding must not make it asymmetric.
        symmetrize(c, 0.5);
        for j in 0..c.ncols() {
            c[(j, j)] -= T::from_f64(1.0);
        }
    }
    fn jvp(&mut self, x: &Mat<T>, v: &Mat<T>, out: &mut Mat<T>) {
        product(&self.metric, v, &mut self.product);
        inner(x, &self.product, out);
        symmetrize(out, 1.0);
    }
    fn add_vjp(&mut self, x: &Mat<T>, a: f64, y: &Mat<T>, out: &mut Mat<T>) {
        self.square.copy_from(y);
        symmetrize(&mut self.square, a);
        product(x, &self.square, &mut self.product);
        add_product(&self.metric, &self.product, out);
    }
    /// BV(Y + Yᵀ).
    fn add_second_order_product(&mut self, _: &Mat<T>, a: f64, y: &Mat<T>, v: &Mat<T>, out: &mut Mat<T>) -> bool {
        self.add_vjp(v, a, y, out);
        true
    }
    /// The matrix WᵀBW − I is symmetric.
    fn redundant(&self) -> usize {
        let k = self.square.ncols();
        k * (k - 1) / 2
    }
    /// Each of the k² entries is a difference of numbers near 1, sums of numbers that are larger if B is badly
    /// conditioned.
    fn rounding(&self, x: &Mat<T>, norm: f64) -> f64 {
        T::EPSILON * (norm + self.metric.norm() * x.norm_squared())
    }
    fn check_point(&self, x: &Mat<T>) -> Result<(), Error> {
        let (expected, found) = (Vector::shape(&self.product), Vector::shape(x));
        if expected == found { Ok(()) } else { Err(Error::Shape { place: OWNER, expected, found }) }
    }
}
