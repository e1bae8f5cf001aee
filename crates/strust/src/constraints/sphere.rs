use super::{Constraint, Manifold};
use crate::{
    Error,
    config::{Range, out_of_range},
    vector::Vector,
};
use std::marker::PhantomData;

/// The sphere ‖x‖ = r, as c(x) = ‖x‖² − r².
///
/// ```
/// use strust::{constraints::{Manifold, Sphere}, prelude::*};
/// let mut sphere = Sphere::<Vec<f64>>::new(2.0)?;
/// let mut x = vec![3.0, 4.0];
/// sphere.restore(&mut x)?;
/// assert_eq!(x, [1.2000000000000002, 1.6]);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sphere<V> {
    radius: f64,
    point: PhantomData<fn(&V)>,
}

impl<V: Vector> Sphere<V> {
    /// The sphere of the given radius, which must be positive.
    pub fn new(radius: f64) -> Result<Self, Error> {
        let range = Range::above(0.0);
        if !range.contains(radius) {
            return Err(out_of_range("sphere", "radius", radius, range));
        }
        Ok(Self { radius, point: PhantomData })
    }
}

impl<V: Vector> Constraint for Sphere<V> {
    type Point = V;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0]
    }
    fn residual(&mut self, x: &V, c: &mut Vec<f64>) {
        c[0] = x.norm_squared() - self.radius * self.radius;
    }
    fn jvp(&mut self, x: &V, v: &V, out: &mut Vec<f64>) {
        out[0] = 2.0 * x.dot(v);
    }
    fn add_vjp(&mut self, x: &V, a: f64, y: &Vec<f64>, out: &mut V) {
        out.add(2.0 * a * y[0], x);
    }
    /// 2yv.
    fn add_second_order_product(&mut self, _: &V, a: f64, y: &Vec<f64>, v: &V, out: &mut V) -> bool {
        self.add_vjp(v, a, y, out);
        true
    }
    fn rounding(&self, _: &V, norm: f64) -> f64 {
        V::EPSILON * (norm + self.radius * self.radius)
    }
}

impl<V: Vector> Manifold for Sphere<V> {
    fn project_tangent(&mut self, x: &V, v: &mut V) -> Result<(), Error> {
        let along = x.dot(v) / x.norm_squared();
        v.add(-along, x);
        Ok(())
    }
    fn restore(&mut self, x: &mut V) -> Result<(), Error> {
        let norm = x.norm();
        if !(norm.is_finite() && norm > 0.0) {
            return Err(Error::Retraction {
                set: "sphere",
                why: format!("a point of norm {norm} has no nearest point on the sphere: use a smaller step"),
            });
        }
        let y = x.clone();
        x.scale_add(0.0, self.radius / norm, &y);
        Ok(())
    }
}
