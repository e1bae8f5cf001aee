//! Constraints c(x) = 0, c(x) ≤ 0 and lower ≤ x ≤ upper, and the sets they describe.

mod affine;
mod bounds;
mod by_newton;
mod combined;
mod frames;
mod generalized_stiefel;
pub(crate) mod least_squares;
mod simplex;
mod sphere;
mod stiefel;
mod wrapper;

pub use affine::Affine;
pub use bounds::Bounds;
pub use by_newton::{ByNewton, by_newton};
pub use combined::{AtMost, Both, at_most, both};
pub use frames::{Frame, Frames};
pub use generalized_stiefel::GeneralizedStiefel;
pub use simplex::Simplex;
pub use sphere::Sphere;
pub use stiefel::{Retraction, Stiefel};
pub use wrapper::ConstraintWrapper;

use crate::{Error, config::out_of_range, vector::Vector};
use faer::Mat;
use std::{cell::RefCell, marker::PhantomData};

/// A set whose type is hidden. Its residual is a matrix.
pub type AnyConstraint<P> = Box<dyn Manifold<Point = P, Residual = Mat<f64>> + Send>;

/// c(x) = 0, given by its value and by products with its Jacobian J. J itself is never formed.
///
/// The three functions must be pure functions of their arguments. `&mut self` is for scratch space only.
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
    /// out ← out + a·J(x)ᵀ·y. It adds, because `out` holds a gradient.
    fn add_vjp(&mut self, x: &Self::Point, a: f64, y: &Self::Residual, out: &mut Self::Point);
    /// out ← out + a·Σ yᵢ∇²cᵢ(x)·v, for the Hessian of a penalty or a Lagrangian. Returns false if the constraint has no such
    /// products, as by default; `out` may hold anything then. Where c is quadratic this is [`Self::add_vjp`] at v.
    fn add_second_order_product(
        &mut self,
        _x: &Self::Point,
        _a: f64,
        _y: &Self::Residual,
        _v: &Self::Point,
        _out: &mut Self::Point,
    ) -> bool {
        false
    }

    /// The size of the rounding error in c(x), given `norm` = ‖c(x)‖. The default is ε·‖c‖. A constraint that is a
    /// difference of larger numbers, such as WᵀW − I, should return a larger error.
    fn rounding(&self, _x: &Self::Point, norm: f64) -> f64 {
        // The residual may have a wider type than the point from which it is computed.
        Self::Point::EPSILON.max(Self::Residual::EPSILON) * norm
    }
    /// The number of equations that repeat others. For example, WᵀW = I contains each off-diagonal equation twice. They
    /// do not count for constraint qualifications: [`jacobian`](crate::diagnostics::jacobian) ignores this number of
    /// smallest singular values.
    fn redundant(&self) -> usize {
        0
    }
    /// Whether row `row` of c(x) must be 0 or at most 0. By default every row is an equation.
    fn sense(&self, _row: usize) -> Sense {
        Sense::Equal
    }
    /// lower ≤ x ≤ upper, in addition to the rows. By default there are no bounds.
    fn bounds(&self) -> Option<&Bounds<Self::Point>> {
        None
    }
    /// Checks that x has the shape this constraint is defined on.
    fn check_point(&self, _x: &Self::Point) -> Result<(), Error> {
        Ok(())
    }
}

/// Checks that a method for equations gets no inequality and no bound.
pub fn check_equations<C: Constraint + ?Sized>(method: &'static str, constraint: &C) -> Result<(), Error> {
    if constraint.bounds().is_some() {
        return Err(out_of_range(method, "constraint", "bounds of x", "equations; for bounds use StrSqp"));
    }
    let rows = constraint.new_residual().dimension();
    match (0..rows).find(|&row| constraint.sense(row) != Sense::Equal) {
        None => Ok(()),
        Some(row) => Err(out_of_range(method, "constraint", format!("row {row} ≤ 0"), "= 0; for ≤ use StrSqp")),
    }
}

/// What a row of a constraint demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// cᵢ(x) = 0.
    Equal,
    /// cᵢ(x) ≤ 0.
    AtMost,
}

/// A set {x : c(x) = 0} with a tangent space and a retraction. With bounds, these belong to the face that x is on.
pub trait Manifold: Constraint {
    /// v ← its orthogonal projection onto the tangent space {v : J(x)v = 0} at x. x must be on the set.
    fn project_tangent(&mut self, x: &Self::Point, v: &mut Self::Point) -> Result<(), Error>;
    /// Moves a nearby point back onto the set. If x is on the set and p is tangent, p ↦ restore(x + p) is a retraction.
    fn restore(&mut self, x: &mut Self::Point) -> Result<(), Error>;
}

/// A constraint on vectors with `rows` components from three closures over slices: c(x), J(x)v and J(x)ᵀy. The first two
/// write all components of their output; the third one adds to it.
///
/// ```
/// use strust::prelude::*;
/// // x₀·x₁ = 1
/// let mut c = constraint_from_fn(1,
///     |x, c| c[0] = x[0] * x[1] - 1.0,
///     |x, v, out| out[0] = x[1] * v[0] + x[0] * v[1],
///     |x, y, out| { out[0] += x[1] * y[0]; out[1] += x[0] * y[0]; })
///     .with_magnitude(1.0); // c is a difference of numbers near 1
/// let mut residual = c.new_residual();
/// c.residual(&vec![2.0, 3.0], &mut residual);
/// assert_eq!(residual, [5.0]);
/// assert_eq!(c.rounding(&vec![1.0, 1.0], 0.0), f64::EPSILON);
/// ```
///
/// A run checks the closures at its start: a row that the first or the second one leaves out is an error.
pub fn constraint_from_fn<R, P, Q>(
    rows: usize,
    residual: R,
    jvp: P,
    vjp: Q,
) -> ConstraintFromFn<Vec<f64>, OnSlices<R, P, Q>>
where
    R: FnMut(&[f64], &mut [f64]),
    P: FnMut(&[f64], &[f64], &mut [f64]),
    Q: FnMut(&[f64], &[f64], &mut [f64]),
{
    ConstraintFromFn::new(rows, OnSlices(residual, jvp, vjp))
}

/// [`constraint_from_fn`] on points of any type. The closures get the point itself, and rows as slices.
pub fn constraint_on_points<V, R, P, Q>(
    rows: usize,
    residual: R,
    jvp: P,
    vjp: Q,
) -> ConstraintFromFn<V, OnPoints<R, P, Q>>
where
    V: Vector,
    R: FnMut(&V, &mut [f64]),
    P: FnMut(&V, &V, &mut [f64]),
    Q: FnMut(&V, &[f64], &mut V),
{
    ConstraintFromFn::new(rows, OnPoints(residual, jvp, vjp))
}

/// The three closures of a [`ConstraintFromFn`].
pub trait ConstraintClosures<V> {
    /// c ← c(x).
    fn residual(&mut self, x: &V, c: &mut [f64]);
    /// out ← J(x)·v.
    fn jvp(&mut self, x: &V, v: &V, out: &mut [f64]);
    /// out ← out + J(x)ᵀ·y.
    fn add_vjp(&mut self, x: &V, y: &[f64], out: &mut V);
}

/// The closures of [`constraint_from_fn`].
#[derive(Debug, Clone)]
pub struct OnSlices<R, P, Q>(R, P, Q);

impl<R, P, Q> ConstraintClosures<Vec<f64>> for OnSlices<R, P, Q>
where
    R: FnMut(&[f64], &mut [f64]),
    P: FnMut(&[f64], &[f64], &mut [f64]),
    Q: FnMut(&[f64], &[f64], &mut [f64]),
{
    fn residual(&mut self, x: &Vec<f64>, c: &mut [f64]) {
        self.0(x, c);
    }
    fn jvp(&mut self, x: &Vec<f64>, v: &Vec<f64>, out: &mut [f64]) {
        self.1(x, v, out);
    }
    fn add_vjp(&mut self, x: &Vec<f64>, y: &[f64], out: &mut Vec<f64>) {
        self.2(x, y, out);
    }
}

/// The closures of [`constraint_on_points`].
#[derive(Debug, Clone)]
pub struct OnPoints<R, P, Q>(R, P, Q);

impl<V, R, P, Q> ConstraintClosures<V> for OnPoints<R, P, Q>
where
    R: FnMut(&V, &mut [f64]),
    P: FnMut(&V, &V, &mut [f64]),
    Q: FnMut(&V, &[f64], &mut V),
{
    fn residual(&mut self, x: &V, c: &mut [f64]) {
        self.0(x, c);
    }
    fn jvp(&mut self, x: &V, v: &V, out: &mut [f64]) {
        self.1(x, v, out);
    }
    fn add_vjp(&mut self, x: &V, y: &[f64], out: &mut V) {
        self.2(x, y, out);
    }
}

/// A NaN that no computation makes: a component that holds it was not written.
const UNWRITTEN: f64 = f64::from_bits(0x7ff8_dead_beef_0001);

/// The error if a closure has left out a row.
fn check_written(rows: &[f64], closure: &str) -> Result<(), Error> {
    let left_out = rows.iter().position(|row| row.to_bits() == UNWRITTEN.to_bits());
    left_out.map_or(Ok(()), |row| {
        let allowed = format!("the number of rows that the closure for {closure} writes: it leaves out row {row}");
        Err(out_of_range("constraint_from_fn", "rows", rows.len(), allowed))
    })
}

/// See [`constraint_from_fn`].
#[derive(Debug, Clone)]
pub struct ConstraintFromFn<V, M> {
    /// a·y, because the third closure has no argument a.
    scaled: Vec<f64>,
    /// In a cell, because a check calls them too.
    closures: RefCell<M>,
    magnitude: f64,
    redundant: usize,
    point: PhantomData<fn(&V)>,
}

impl<V, M> ConstraintFromFn<V, M> {
    fn new(rows: usize, closures: M) -> Self {
        let (scaled, closures) = (vec![0.0; rows], RefCell::new(closures));
        Self { scaled, closures, magnitude: 0.0, redundant: 0, point: PhantomData }
    }
    /// States that c(x) is a difference of numbers with norm `magnitude`: its rounding error is ε(‖c‖ + magnitude). The
    /// default ε·‖c‖ is too small where c is near 0.
    #[must_use]
    pub fn with_magnitude(self, magnitude: f64) -> Self {
        Self { magnitude, ..self }
    }
    /// States that `count` of the equations repeat others ([`Constraint::redundant`]).
    ///
    /// ```
    /// use faer::Mat;
    /// use strust::{constraints::constraint_on_points, diagnostics::jacobian};
    /// // WᵀW = I for a 3×2 matrix has four equations. The two off the diagonal are the same.
    /// let gram = |a: &Mat<f64>, b: &Mat<f64>, out: &mut [f64]| {
    ///     let product = a.transpose() * b;
    ///     (0..4).for_each(|i| out[i] = product[(i / 2, i % 2)]);
    /// };
    /// let mut c = constraint_on_points(4,
    ///     move |w: &Mat<f64>, c| { gram(w, w, c); c[0] -= 1.0; c[3] -= 1.0; },
    ///     move |w, v, out| {
    ///         let mut other = vec![0.0; 4];
    ///         gram(w, v, out);
    ///         gram(v, w, &mut other);
    ///         out.iter_mut().zip(other).for_each(|(a, b)| *a += b);
    ///     },
    ///     |w, y, out| {
    ///         let y = Mat::from_fn(2, 2, |i, j| y[2 * i + j] + y[2 * j + i]);
    ///         *out += w * y;
    ///     })
    ///     .with_redundant(1);
    /// let w = Mat::from_fn(3, 2, |i, j| f64::from(u8::from(i == j)));
    /// assert!(jacobian(&mut c, &w)?.licq);
    /// # Ok::<(), strust::Error>(())
    /// ```
    #[must_use]
    pub fn with_redundant(self, count: usize) -> Self {
        Self { redundant: count, ..self }
    }
}

impl<V: Vector, M: ConstraintClosures<V>> Constraint for ConstraintFromFn<V, M> {
    type Point = V;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0; self.scaled.len()]
    }
    fn residual(&mut self, x: &V, c: &mut Vec<f64>) {
        self.closures.get_mut().residual(x, c);
    }
    fn jvp(&mut self, x: &V, v: &V, out: &mut Vec<f64>) {
        self.closures.get_mut().jvp(x, v, out);
    }
    fn add_vjp(&mut self, x: &V, a: f64, y: &Vec<f64>, out: &mut V) {
        // Not `scale_add(0, …)`: 0 · NaN is NaN, and one bad residual would stay forever.
        self.scaled.set_zero();
        self.scaled.add(a, y);
        self.closures.get_mut().add_vjp(x, &self.scaled, out);
    }
    fn check_point(&self, x: &V) -> Result<(), Error> {
        let (mut closures, mut rows) = (self.closures.borrow_mut(), vec![UNWRITTEN; self.scaled.len()]);
        closures.residual(x, &mut rows);
        check_written(&rows, "c(x)")?;
        rows.fill(UNWRITTEN);
        closures.jvp(x, &x.zeros_like(), &mut rows);
        check_written(&rows, "J(x)v")
    }
    fn rounding(&self, _: &V, norm: f64) -> f64 {
        V::EPSILON.max(f64::EPSILON) * (norm + self.magnitude)
    }
    fn redundant(&self) -> usize {
        self.redundant
    }
}
