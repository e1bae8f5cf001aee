//! Constraints made of others: inequalities, and several at once.

use super::{Bounds, Constraint, ConstraintWrapper, Sense};
use crate::{Error, vector::Vector};

/// c(x) ≤ 0 for every row of a constraint, instead of c(x) = 0.
///
/// ```
/// use strust::{constraints::{at_most, Sphere}, prelude::*};
/// // The point of the unit disk nearest to (3, 4).
/// let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
///     let r = [x[0] - 3.0, x[1] - 4.0];
///     g[0] += 2.0 * r[0];
///     g[1] += 2.0 * r[1];
///     r[0] * r[0] + r[1] * r[1]
/// });
/// let disk = at_most(Sphere::new(1.0)?);
/// let report = minimize(&mut f).method(StrSqp::new(StrSqpConfig::default(), disk)?).full_batch().start(vec![0.0, 0.1])?;
/// assert!(report.reason.converged());
/// assert!((report.point()[0] - 0.6).abs() < 1e-6 && (report.point()[1] - 0.8).abs() < 1e-6);
/// # Ok::<(), strust::Error>(())
/// ```
pub fn at_most<C: Constraint>(constraint: C) -> AtMost<C> {
    AtMost(constraint)
}

/// See [`at_most`].
#[derive(Debug, Clone)]
pub struct AtMost<C>(C);

impl<C: Constraint> ConstraintWrapper for AtMost<C> {
    type Inner = C;
    fn wrapped(&self) -> &C {
        &self.0
    }
    fn wrapped_mut(&mut self) -> &mut C {
        &mut self.0
    }
    fn sense(_this: &Self, _row: usize) -> Sense {
        Sense::AtMost
    }
}

/// Two constraints at once: first the rows of the first, then those of the second, and the bounds of both.
///
/// ```
/// use strust::{constraints::{both, Affine, Sphere}, prelude::*};
/// let mut c = both(Sphere::new(1.0)?, Affine::new(vec![vec![1.0, 1.0]], vec![1.0])?)?;
/// let mut residual = c.new_residual();
/// c.residual(&vec![0.0, 2.0], &mut residual);
/// assert_eq!(residual, [3.0, 1.0]);
/// # Ok::<(), strust::Error>(())
/// ```
pub fn both<A, B>(first: A, second: B) -> Result<Both<A, B>, Error>
where
    A: Constraint,
    B: Constraint<Point = A::Point>,
{
    let parts = (first.new_residual(), second.new_residual());
    let bounds = match (first.bounds(), second.bounds()) {
        (Some(first), Some(second)) => Some(first.intersect(second)?),
        (one, other) => one.or(other).cloned(),
    };
    Ok(Both { first, second, parts, bounds })
}

/// See [`both`].
#[derive(Debug, Clone)]
pub struct Both<A: Constraint, B: Constraint> {
    first: A,
    second: B,
    parts: (A::Residual, B::Residual),
    bounds: Option<Bounds<A::Point>>,
}

impl<A: Constraint, B: Constraint> Both<A, B> {
    /// The rows of the first constraint.
    fn rows(&self) -> usize {
        self.parts.0.dimension()
    }
    fn join(&self, out: &mut [f64]) {
        let (first, second) = out.split_at_mut(self.rows());
        first.iter_mut().enumerate().for_each(|(i, out)| *out = self.parts.0.component(i));
        second.iter_mut().enumerate().for_each(|(i, out)| *out = self.parts.1.component(i));
    }
    fn split(&mut self, y: &[f64]) {
        let (first, second) = y.split_at(self.rows());
        first.iter().enumerate().for_each(|(i, &y)| self.parts.0.set_component(i, y));
        second.iter().enumerate().for_each(|(i, &y)| self.parts.1.set_component(i, y));
    }
}

impl<A: Constraint, B: Constraint<Point = A::Point>> Constraint for Both<A, B> {
    type Point = A::Point;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0; self.rows() + self.parts.1.dimension()]
    }
    fn residual(&mut self, x: &A::Point, c: &mut Vec<f64>) {
        self.first.residual(x, &mut self.parts.0);
        self.second.residual(x, &mut self.parts.1);
        self.join(c);
    }
    fn jvp(&mut self, x: &A::Point, v: &A::Point, out: &mut Vec<f64>) {
        self.first.jvp(x, v, &mut self.parts.0);
        self.second.jvp(x, v, &mut self.parts.1);
        self.join(out);
    }
    fn add_vjp(&mut self, x: &A::Point, a: f64, y: &Vec<f64>, out: &mut A::Point) {
        self.split(y);
        self.first.add_vjp(x, a, &self.parts.0, out);
        self.second.add_vjp(x, a, &self.parts.1, out);
    }
    fn add_second_order_product(
        &mut self,
        x: &A::Point,
        a: f64,
        y: &Vec<f64>,
        v: &A::Point,
        out: &mut A::Point,
    ) -> bool {
        self.split(y);
        self.first.add_second_order_product(x, a, &self.parts.0, v, out)
            && self.second.add_second_order_product(x, a, &self.parts.1, v, out)
    }
    /// At most the sum of both: each norm is at most the whole one.
    fn rounding(&self, x: &A::Point, norm: f64) -> f64 {
        self.first.rounding(x, norm) + self.second.rounding(x, norm)
    }
    fn redundant(&self) -> usize {
        self.first.redundant() + self.second.redundant()
    }
    fn sense(&self, row: usize) -> Sense {
        let rows = self.rows();
        if row < rows { self.first.sense(row) } else { self.second.sense(row - rows) }
    }
    fn bounds(&self) -> Option<&Bounds<A::Point>> {
        self.bounds.as_ref()
    }
    fn check_point(&self, x: &A::Point) -> Result<(), Error> {
        self.first.check_point(x)?;
        self.second.check_point(x)
    }
}
