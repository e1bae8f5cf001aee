//! Equality constraints c(x) = 0, and the sets they describe.

mod affine;
mod sphere;
mod stiefel;

pub use affine::Affine;
pub use sphere::Sphere;
pub use stiefel::{Retraction, Stiefel};

use crate::{Error, vector::Vector};
use std::marker::PhantomData;

/// c(x) = 0 by its value and by products with its Jacobian J, which is never formed.
///
/// `&mut self` is for scratch space only: all three are pure functions of their arguments.
pub trait Constraint {
    /// The type of x.
    type Point: Vector;
    /// The type of c(x).
    type Residual: Vector;

    /// A zero of the shape of c(x). Allocates.
    fn new_residual(&self) -> Self::Residual;
    /// c ← c(x).
    fn residual(&mut self, x: &Self::Point, c: &mut Self::Residual);
    /// out ← J(x)·v.
    fn jvp(&mut self, x: &Self::Point, v: &Self::Point, out: &mut Self::Residual);
    /// out ← out + a·J(x)ᵀ·y: it is always a gradient that this is added to.
    fn add_vjp(&mut self, x: &Self::Point, a: f64, y: &Self::Residual, out: &mut Self::Point);

    /// The size of the rounding error in c(x), given ‖c(x)‖. The default is relative, ε·‖c‖; a constraint
    /// that is a difference of larger numbers, such as WᵀW − I, should say so.
    fn rounding(&self, norm: f64) -> f64 {
        // The residual may be wider than the point it is computed from.
        Self::Point::EPSILON.max(Self::Residual::EPSILON) * norm
    }
    /// Equations that repeat others by the way c is written, as the symmetric WᵀW = I states each off-diagonal one twice.
    /// No qualification of the constraints can count these: [`jacobian`](crate::diagnostics::jacobian) leaves as many of
    /// the smallest singular values out.
    fn redundant(&self) -> usize {
        0
    }
    /// Whether x has the shape this constraint is defined on.
    fn check_point(&self, _x: &Self::Point) -> Result<(), Error> {
        Ok(())
    }
}

impl<C: Constraint + ?Sized> Constraint for &mut C {
    type Point = C::Point;
    type Residual = C::Residual;
    fn new_residual(&self) -> C::Residual {
        (**self).new_residual()
    }
    fn residual(&mut self, x: &C::Point, c: &mut C::Residual) {
        (**self).residual(x, c);
    }
    fn jvp(&mut self, x: &C::Point, v: &C::Point, out: &mut C::Residual) {
        (**self).jvp(x, v, out);
    }
    fn add_vjp(&mut self, x: &C::Point, a: f64, y: &C::Residual, out: &mut C::Point) {
        (**self).add_vjp(x, a, y, out);
    }
    fn rounding(&self, norm: f64) -> f64 {
        (**self).rounding(norm)
    }
    fn redundant(&self) -> usize {
        (**self).redundant()
    }
    fn check_point(&self, x: &C::Point) -> Result<(), Error> {
        (**self).check_point(x)
    }
}

/// A smooth set {x : c(x) = 0} that a point can be moved along.
pub trait Manifold: Constraint {
    /// v ← its orthogonal projection onto the tangent space at x, {v : J(x)v = 0}; x lies on the set.
    fn project_tangent(&mut self, x: &Self::Point, v: &mut Self::Point) -> Result<(), Error>;
    /// Moves a nearby point back onto the set. With x on the set and p tangent, p ↦ restore(x + p) is a retraction.
    fn restore(&mut self, x: &mut Self::Point) -> Result<(), Error>;
}

/// A constraint with m components from three closures: c(x), J(x)v, and J(x)ᵀy, which is to be added to its output.
///
/// ```
/// use strust::prelude::*;
/// // x₀·x₁ = 1
/// let mut c = constraint_from_fn(1,
///     |x: &Vec<f64>, c: &mut Vec<f64>| c[0] = x[0] * x[1] - 1.0,
///     |x, v, out| out[0] = x[1] * v[0] + x[0] * v[1],
///     |x, y, out| { out[0] += x[1] * y[0]; out[1] += x[0] * y[0]; });
/// let mut residual = c.new_residual();
/// c.residual(&vec![2.0, 3.0], &mut residual);
/// assert_eq!(residual, [5.0]);
/// ```
pub fn constraint_from_fn<V: Vector>(
    len: usize,
    residual: impl FnMut(&V, &mut Vec<f64>),
    jvp: impl FnMut(&V, &V, &mut Vec<f64>),
    vjp: impl FnMut(&V, &Vec<f64>, &mut V),
) -> impl Constraint<Point = V, Residual = Vec<f64>> {
    FromFn { scaled: vec![0.0; len], maps: (residual, jvp, vjp), point: PhantomData }
}

struct FromFn<V, M> {
    /// a·y, for the closure that knows no a.
    scaled: Vec<f64>,
    maps: M,
    point: PhantomData<fn(&V)>,
}

impl<V, R, P, Q> Constraint for FromFn<V, (R, P, Q)>
where
    V: Vector,
    R: FnMut(&V, &mut Vec<f64>),
    P: FnMut(&V, &V, &mut Vec<f64>),
    Q: FnMut(&V, &Vec<f64>, &mut V),
{
    type Point = V;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0; self.scaled.len()]
    }
    fn residual(&mut self, x: &V, c: &mut Vec<f64>) {
        (self.maps.0)(x, c);
    }
    fn jvp(&mut self, x: &V, v: &V, out: &mut Vec<f64>) {
        (self.maps.1)(x, v, out);
    }
    fn add_vjp(&mut self, x: &V, a: f64, y: &Vec<f64>, out: &mut V) {
        self.scaled.scale_add(0.0, a, y);
        (self.maps.2)(x, &self.scaled, out);
    }
}
