//! Constraints whose type is hidden.

use faer::Mat;
use strust::{
    Error,
    constraints::{AnyConstraint, Bounds, Constraint, Manifold, Sense},
    vector::{Dense, Real},
};

/// A constraint without its type.
pub(crate) fn any_constraint<C>(constraint: C) -> AnyConstraint<C::Point>
where
    C: Manifold<Residual: Dense + Send> + Send + 'static,
{
    Box::new(InMatrix { residual: constraint.new_residual(), inner: constraint })
}

/// A constraint whose residual is a matrix of f64 with the same columns.
struct InMatrix<C: Constraint> {
    inner: C,
    residual: C::Residual,
}

impl<C: Constraint<Residual: Dense>> InMatrix<C> {
    /// out ← the residual.
    fn read(&self, out: &mut Mat<f64>) {
        for j in 0..self.residual.parts() {
            out.part_mut(j).iter_mut().zip(self.residual.part(j)).for_each(|(to, &from)| *to = from.into());
        }
    }
    /// The residual ← y.
    fn write(&mut self, y: &Mat<f64>) {
        for j in 0..self.residual.parts() {
            self.residual.part_mut(j).iter_mut().zip(y.part(j)).for_each(|(to, &from)| *to = Real::from_f64(from));
        }
    }
}

#[deny(clippy::missing_trait_methods, reason = "a wrapper must not lose a part of the inner constraint")]
impl<C: Constraint<Residual: Dense>> Constraint for InMatrix<C> {
    type Point = C::Point;
    type Residual = Mat<f64>;
    fn new_residual(&self) -> Mat<f64> {
        let rows = if self.residual.parts() == 0 { 0 } else { self.residual.part(0).len() };
        Mat::zeros(rows, self.residual.parts())
    }
    fn residual(&mut self, x: &C::Point, c: &mut Mat<f64>) {
        self.inner.residual(x, &mut self.residual);
        self.read(c);
    }
    fn jvp(&mut self, x: &C::Point, v: &C::Point, out: &mut Mat<f64>) {
        self.inner.jvp(x, v, &mut self.residual);
        self.read(out);
    }
    fn add_vjp(&mut self, x: &C::Point, a: f64, y: &Mat<f64>, out: &mut C::Point) {
        self.write(y);
        self.inner.add_vjp(x, a, &self.residual, out);
    }
    fn add_second_order_product(
        &mut self,
        x: &C::Point,
        a: f64,
        y: &Mat<f64>,
        v: &C::Point,
        out: &mut C::Point,
    ) -> bool {
        self.write(y);
        self.inner.add_second_order_product(x, a, &self.residual, v, out)
    }
    fn rounding(&self, x: &C::Point, norm: f64) -> f64 {
        self.inner.rounding(x, norm)
    }
    fn redundant(&self) -> usize {
        self.inner.redundant()
    }
    fn sense(&self, row: usize) -> Sense {
        self.inner.sense(row)
    }
    fn bounds(&self) -> Option<&Bounds<C::Point>> {
        self.inner.bounds()
    }
    fn check_point(&self, x: &C::Point) -> Result<(), Error> {
        self.inner.check_point(x)
    }
}

impl<C: Manifold<Residual: Dense>> Manifold for InMatrix<C> {
    fn project_tangent(&mut self, x: &C::Point, v: &mut C::Point) -> Result<(), Error> {
        self.inner.project_tangent(x, v)
    }
    fn restore(&mut self, x: &mut C::Point) -> Result<(), Error> {
        self.inner.restore(x)
    }
}
