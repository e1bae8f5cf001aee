use super::{Constraint, Manifold};
use crate::products::{add_product, gram, inner};
use crate::{
    Error,
    config::{FieldValue, Range, out_of_range},
    vector::{Real, Vector},
};
use faer::{Accum, Mat, Par, linalg::matmul::matmul};

/// How a matrix near the Stiefel manifold is moved onto it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Retraction {
    /// The factor Q of the QR decomposition with positive diagonal of R.
    #[default]
    Qr,
    /// The orthogonal factor Y(YᵀY)^(−1/2) of the polar decomposition: the nearest point.
    Polar,
}

impl FieldValue for Retraction {
    fn number(&self) -> Option<f64> {
        None
    }
}

/// d×k matrices with orthonormal columns, as c(W) = WᵀW − I.
///
/// J(W)V = WᵀV + VᵀW and J(W)ᵀY = W(Y + Yᵀ).
///
/// ```
/// use faer::Mat;
/// use strust::{constraints::{Manifold, Stiefel}, prelude::*};
/// let mut stiefel = Stiefel::new(3, 1)?;
/// let mut w = Mat::from_fn(3, 1, |i, _| [2.0, 0.0, 0.0][i]);
/// stiefel.restore(&mut w)?;
/// assert_eq!(w[(0, 0)], 1.0);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Stiefel<T: Real = f64> {
    rows: usize,
    retraction: Retraction,
    square: Mat<T>,
}

impl<T: Real> Stiefel<T> {
    /// The manifold of d×k matrices; needs 1 ≤ k ≤ d. Retracts by QR.
    pub fn new(d: usize, k: usize) -> Result<Self, Error> {
        if k == 0 || k > d {
            return Err(out_of_range("Stiefel manifold", "k", k, Range::closed(1.0, d as f64)));
        }
        Ok(Self { rows: d, retraction: Retraction::Qr, square: Mat::zeros(k, k) })
    }
    /// The same manifold with another retraction.
    #[must_use]
    pub fn with_retraction(self, retraction: Retraction) -> Self {
        Self { retraction, ..self }
    }

    fn polar(x: &Mat<T>) -> Result<Mat<T>, Error> {
        // Use the singular value decomposition UΣVᵀ. An eigendecomposition of YᵀY would square the condition number if
        // the matrix is far from the manifold.
        if !x.norm_squared().is_finite() {
            return Err(deficient("is not finite"));
        }
        let svd = x.thin_svd().map_err(|_| Error::Decomposition {
            what: "the singular value decomposition of the matrix to retract",
            fix: "the step was probably too long, use a smaller one",
        })?;
        let (largest, smallest): (f64, f64) = (svd.S()[0].into(), svd.S()[x.ncols() - 1].into());
        if smallest <= rank_tolerance(x) * largest {
            return Err(deficient("is rank deficient"));
        }
        Ok(svd.U() * svd.V().transpose())
    }

    fn qr(x: &Mat<T>) -> Result<Mat<T>, Error> {
        if !x.norm_squared().is_finite() {
            return Err(deficient("is not finite"));
        }
        let qr = x.qr();
        let r = qr.thin_R();
        let k = r.ncols();
        let largest = (0..k).fold(0.0_f64, |a, j| a.max(r[(j, j)].into().abs()));
        let mut q = qr.compute_thin_Q();
        for j in 0..k {
            let pivot: f64 = r[(j, j)].into();
            if pivot.abs() <= rank_tolerance(x) * largest {
                return Err(deficient("is rank deficient"));
            }
            if pivot < 0.0 {
                q.col_as_slice_mut(j).iter_mut().for_each(|v| *v = -*v);
            }
        }
        Ok(q)
    }
}

/// Pivots and singular values below this fraction of the largest are rounding errors.
fn rank_tolerance<T: Real>(x: &Mat<T>) -> f64 {
    T::EPSILON * x.nrows() as f64
}

fn deficient(why: &str) -> Error {
    Error::Retraction {
        set: "Stiefel manifold",
        why: format!("the matrix to retract {why}: the step was too long, use a smaller one"),
    }
}

/// square ← (square + squareᵀ)·scale.
pub(super) fn symmetrize<T: Real>(square: &mut Mat<T>, scale: f64) {
    let scale = T::from_f64(scale);
    for j in 0..square.ncols() {
        for i in 0..=j {
            let sum = (square[(i, j)] + square[(j, i)]) * scale;
            square[(i, j)] = sum;
            square[(j, i)] = sum;
        }
    }
}

impl<T: Real> Constraint for Stiefel<T> {
    type Point = Mat<T>;
    type Residual = Mat<T>;
    fn new_residual(&self) -> Mat<T> {
        self.square.zeros_like()
    }
    fn residual(&mut self, x: &Mat<T>, c: &mut Mat<T>) {
        gram(x, c);
        for j in 0..c.ncols() {
            c[(j, j)] -= T::from_f64(1.0);
        }
    }
    fn jvp(&mut self, x: &Mat<T>, v: &Mat<T>, out: &mut Mat<T>) {
        inner(x, v, out);
        symmetrize(out, 1.0);
    }
    fn add_vjp(&mut self, x: &Mat<T>, a: f64, y: &Mat<T>, out: &mut Mat<T>) {
        self.square.copy_from(y);
        symmetrize(&mut self.square, a);
        add_product(x, &self.square, out);
    }
    /// V(Y + Yᵀ).
    fn add_second_order_product(&mut self, _: &Mat<T>, a: f64, y: &Mat<T>, v: &Mat<T>, out: &mut Mat<T>) -> bool {
        self.add_vjp(v, a, y, out);
        true
    }
    /// The matrix WᵀW − I is symmetric.
    fn redundant(&self) -> usize {
        let k = self.square.ncols();
        k * (k - 1) / 2
    }
    /// Each of the k² entries is a difference of numbers near 1.
    fn rounding(&self, _: &Mat<T>, norm: f64) -> f64 {
        T::EPSILON * (norm + self.square.ncols() as f64)
    }
    fn check_point(&self, x: &Mat<T>) -> Result<(), Error> {
        let (expected, found) = (vec![self.rows, self.square.ncols()], Vector::shape(x));
        if expected != found {
            return Err(Error::Shape { place: "Stiefel manifold", expected, found });
        }
        Ok(())
    }
}

impl<T: Real> Manifold for Stiefel<T> {
    /// V − W·sym(WᵀV).
    fn project_tangent(&mut self, x: &Mat<T>, v: &mut Mat<T>) -> Result<(), Error> {
        inner(x, v, &mut self.square);
        symmetrize(&mut self.square, 0.5);
        matmul(v, Accum::Add, x, &self.square, T::from_f64(-1.0), Par::Seq);
        Ok(())
    }
    fn restore(&mut self, x: &mut Mat<T>) -> Result<(), Error> {
        *x = match self.retraction {
            Retraction::Qr => Self::qr(x)?,
            Retraction::Polar => Self::polar(x)?,
        };
        Ok(())
    }
}
