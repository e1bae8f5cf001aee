use super::{
    Constraint, Manifold,
    bounds::{Bounds, filled, hold},
};
use crate::{
    Error,
    config::{Range, out_of_range},
    vector::Vector,
};

/// The simplex {x ≥ 0, Σxᵢ = total}: shares, weights of a mixture, probabilities.
///
/// ```
/// use strust::{constraints::{Manifold, Simplex}, prelude::*};
/// // The shares nearest to (0.9, 0.4, −0.5).
/// let mut simplex = Simplex::new(&vec![0.0; 3], 1.0)?;
/// let mut x = vec![0.9_f64, 0.4, -0.5];
/// simplex.restore(&mut x)?;
/// assert!((x[0] - 0.75).abs() < 1e-15 && (x[1] - 0.25).abs() < 1e-15 && x[2] == 0.0);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Simplex<V> {
    total: f64,
    ones: V,
    bounds: Bounds<V>,
}

impl<V: Vector> Simplex<V> {
    /// The simplex of points of the shape of `x` whose components add up to `total`, which must be positive.
    pub fn new(x: &V, total: f64) -> Result<Self, Error> {
        let range = Range::above(0.0);
        if !range.contains(total) {
            return Err(out_of_range("simplex", "total", total, range));
        }
        if x.dimension() == 0 {
            return Err(out_of_range("simplex", "dimension", 0, Range::at_least(1.0)));
        }
        Ok(Self { total, ones: filled(x, 1.0), bounds: Bounds::nonnegative(x) })
    }
}

impl<V: Vector> Constraint for Simplex<V> {
    type Point = V;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0]
    }
    fn residual(&mut self, x: &V, c: &mut Vec<f64>) {
        c[0] = self.ones.dot(x) - self.total;
    }
    fn jvp(&mut self, _x: &V, v: &V, out: &mut Vec<f64>) {
        out[0] = self.ones.dot(v);
    }
    fn add_vjp(&mut self, _x: &V, a: f64, y: &Vec<f64>, out: &mut V) {
        out.add(a * y[0], &self.ones);
    }
    /// c is linear.
    fn add_second_order_product(&mut self, _: &V, _: f64, _: &Vec<f64>, _: &V, _: &mut V) -> bool {
        true
    }
    fn rounding(&self, _: &V, norm: f64) -> f64 {
        V::EPSILON * (norm + self.total)
    }
    fn bounds(&self) -> Option<&Bounds<V>> {
        Some(&self.bounds)
    }
    fn check_point(&self, x: &V) -> Result<(), Error> {
        let (expected, found) = (self.ones.shape(), x.shape());
        if expected == found { Ok(()) } else { Err(Error::Shape { place: "simplex, point", expected, found }) }
    }
}

impl<V: Vector> Manifold for Simplex<V> {
    /// The tangent space of the face that x is on.
    fn project_tangent(&mut self, x: &V, v: &mut V) -> Result<(), Error> {
        let held = hold(&self.bounds, x, v);
        let free = self.ones.dimension() - held.len();
        if free > 0 {
            let mean = self.ones.dot(v) / free as f64;
            v.add(-mean, &self.ones);
            for i in held {
                v.set_component(i, 0.0);
            }
        }
        Ok(())
    }
    /// x ← the nearest point max(0, x − t), where t makes the sum right.
    fn restore(&mut self, x: &mut V) -> Result<(), Error> {
        let mut sorted: Vec<f64> = (0..x.dimension()).map(|i| x.component(i)).collect();
        if sorted.iter().any(|x| !x.is_finite()) {
            let why = "the point is not finite: the step was too long, use a smaller one".into();
            return Err(Error::Retraction { set: "simplex", why });
        }
        sorted.sort_by(|a, b| b.total_cmp(a));
        // The nearest point does not depend on a number added to all components. Relative to the largest one the sum has
        // no rounding error, even if the point is far away.
        let largest = sorted[0];
        for x in &mut sorted {
            *x -= largest;
        }
        x.add(-largest, &self.ones);
        let (mut sum, mut shift) = (0.0, 0.0);
        for (i, x) in sorted.iter().enumerate() {
            sum += x;
            let t = (sum - self.total) / (i + 1) as f64;
            if *x <= t {
                break;
            }
            shift = t;
        }
        x.add(-shift, &self.ones);
        self.bounds.clip(x);
        Ok(())
    }
}
