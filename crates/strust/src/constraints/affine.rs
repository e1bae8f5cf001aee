use super::{Constraint, Manifold};
use crate::{
    Error,
    config::{Range, out_of_range},
    vector::Vector,
};
use faer::{Mat, Side, linalg::solvers::Llt, prelude::Solve};

/// The affine set {x : ⟨aⱼ, x⟩ = bⱼ for every row j}, that is Ax = b.
///
/// The rows have the type of x, so A can act on slices, columns and matrices.
///
/// ```
/// use strust::{constraints::{Affine, Manifold}, prelude::*};
/// let mut plane = Affine::new(vec![vec![1.0, 1.0]], vec![2.0])?;
/// let mut x = vec![3.0_f64, 1.0];
/// plane.restore(&mut x)?;
/// assert!((x[0] - 2.0).abs() < 1e-15 && x[1].abs() < 1e-15);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Affine<V> {
    rows: Vec<V>,
    right: Vec<f64>,
    gram: Llt<f64>,
    /// (‖A‖, ‖b‖).
    norms: (f64, f64),
    product: Vec<f64>,
}

impl<V: Vector> Affine<V> {
    /// The set Ax = b; the rows must be linearly independent.
    pub fn new(rows: Vec<V>, right: Vec<f64>) -> Result<Self, Error> {
        let m = rows.len();
        if m == 0 {
            return Err(out_of_range("affine constraint", "rows", m, Range::at_least(1.0)));
        }
        if let Some(bad) = right.iter().find(|b| !b.is_finite()) {
            return Err(out_of_range("affine constraint", "right-hand side", bad, "finite"));
        }
        if right.len() != m {
            return Err(Error::Shape {
                place: "affine constraint, right-hand side",
                expected: vec![m],
                found: vec![right.len()],
            });
        }
        if let Some(row) = rows.iter().find(|row| row.shape() != rows[0].shape()) {
            return Err(Error::Shape {
                place: "affine constraint, rows",
                expected: rows[0].shape(),
                found: row.shape(),
            });
        }
        let gram = Mat::from_fn(m, m, |i, j| rows[i].dot(&rows[j]));
        let dependent = || Error::DependentRows {
            set: "affine set",
            why: "the rows of A are linearly dependent or not finite: remove the redundant ones".into(),
        };
        let factor = gram.llt(Side::Lower).map_err(|_| dependent())?;
        // A dependent system can pass the factorization because of rounding. Then its pivots are tiny.
        let pivots = || (0..m).map(|i| factor.L()[(i, i)].powi(2) / gram[(i, i)]);
        // A pivot is a squared sine of an angle. Rows that are rounded to `f32` are dependent only up to its ε.
        let smallest = 4.0 * m as f64 * f64::EPSILON.max(V::EPSILON * V::EPSILON);
        if pivots().any(|p| p.is_nan() || p < smallest) {
            return Err(dependent());
        }
        let norms = (rows.iter().map(V::norm_squared).sum::<f64>().sqrt(), right.norm());
        Ok(Self { product: vec![0.0; m], rows, right, gram: factor, norms })
    }

    /// x ← x − Aᵀ(AAᵀ)⁻¹y.
    fn subtract_least_norm(&self, y: &[f64], x: &mut V) {
        let multipliers = self.gram.solve(Mat::from_fn(y.len(), 1, |i, _| y[i]));
        for (i, row) in self.rows.iter().enumerate() {
            x.add(-multipliers[(i, 0)], row);
        }
    }
}

impl<V: Vector> Constraint for Affine<V> {
    type Point = V;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0; self.rows.len()]
    }
    fn residual(&mut self, x: &V, c: &mut Vec<f64>) {
        for ((c, row), b) in c.iter_mut().zip(&self.rows).zip(&self.right) {
            *c = row.dot(x) - b;
        }
    }
    fn jvp(&mut self, _x: &V, v: &V, out: &mut Vec<f64>) {
        for (out, row) in out.iter_mut().zip(&self.rows) {
            *out = row.dot(v);
        }
    }
    fn add_vjp(&mut self, _x: &V, a: f64, y: &Vec<f64>, out: &mut V) {
        for (y, row) in y.iter().zip(&self.rows) {
            out.add(a * y, row);
        }
    }
    /// c is linear.
    fn add_second_order_product(&mut self, _: &V, _: f64, _: &Vec<f64>, _: &V, _: &mut V) -> bool {
        true
    }
    /// Relative to ‖A‖‖x‖ + ‖b‖, because c is a difference of numbers of this size. An absolute bound would depend on
    /// the scale of x.
    fn rounding(&self, x: &V, norm: f64) -> f64 {
        V::EPSILON * (norm + (self.norms.0 * x.norm() + self.norms.1))
    }
    fn check_point(&self, x: &V) -> Result<(), Error> {
        let (expected, found) = (self.rows[0].shape(), x.shape());
        if expected != found {
            return Err(Error::Shape { place: "affine constraint, point", expected, found });
        }
        Ok(())
    }
}

impl<V: Vector> Manifold for Affine<V> {
    fn project_tangent(&mut self, x: &V, v: &mut V) -> Result<(), Error> {
        let mut product = std::mem::take(&mut self.product);
        self.jvp(x, v, &mut product);
        self.subtract_least_norm(&product, v);
        self.product = product;
        Ok(())
    }
    fn restore(&mut self, x: &mut V) -> Result<(), Error> {
        let mut product = std::mem::take(&mut self.product);
        self.residual(x, &mut product);
        self.subtract_least_norm(&product, x);
        self.product = product;
        Ok(())
    }
}
