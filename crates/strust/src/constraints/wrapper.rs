use super::{Bounds, Constraint, Manifold, Sense};
use crate::Error;

/// A constraint around another one. Implement this instead of [`Constraint`]: everything that it does not define is the
/// inner constraint's, so a wrapper cannot lose a part of it. These are functions of `this`, not methods: a call such as
/// `c.redundant()` always is [`Constraint`]'s.
///
/// ```
/// use strust::{constraints::{ConstraintWrapper, Sense, Sphere}, prelude::*};
///
/// /// Counts the products with Jᵀ.
/// struct Counting<C>(C, usize);
///
/// impl<C: Constraint> ConstraintWrapper for Counting<C> {
///     type Inner = C;
///     fn wrapped(&self) -> &C {
///         &self.0
///     }
///     fn wrapped_mut(&mut self) -> &mut C {
///         &mut self.0
///     }
///     fn add_vjp(this: &mut Self, x: &C::Point, a: f64, y: &C::Residual, out: &mut C::Point) {
///         this.1 += 1;
///         this.0.add_vjp(x, a, y, out);
///     }
/// }
///
/// let mut c = Counting(at_most(Sphere::new(1.0)?), 0);
/// c.add_vjp(&vec![1.0, 0.0], 1.0, &vec![1.0], &mut vec![0.0; 2]);
/// assert_eq!((c.1, c.sense(0)), (1, Sense::AtMost));
/// # Ok::<(), strust::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a constraint",
    note = "implement `Constraint` for it, or `ConstraintWrapper` if it wraps another constraint"
)]
pub trait ConstraintWrapper {
    /// The type of the inner constraint.
    type Inner: Constraint + ?Sized;

    /// The inner constraint.
    fn wrapped(&self) -> &Self::Inner;

    /// The inner constraint, to evaluate it.
    fn wrapped_mut(&mut self) -> &mut Self::Inner;

    /// [`Constraint::new_residual`].
    fn new_residual(this: &Self) -> Residual<Self> {
        this.wrapped().new_residual()
    }
    /// [`Constraint::residual`].
    fn residual(this: &mut Self, x: &Point<Self>, c: &mut Residual<Self>) {
        this.wrapped_mut().residual(x, c);
    }
    /// [`Constraint::jvp`].
    fn jvp(this: &mut Self, x: &Point<Self>, v: &Point<Self>, out: &mut Residual<Self>) {
        this.wrapped_mut().jvp(x, v, out);
    }
    /// [`Constraint::add_vjp`].
    fn add_vjp(this: &mut Self, x: &Point<Self>, a: f64, y: &Residual<Self>, out: &mut Point<Self>) {
        this.wrapped_mut().add_vjp(x, a, y, out);
    }
    /// [`Constraint::add_second_order_product`].
    fn add_second_order_product(
        this: &mut Self,
        x: &Point<Self>,
        a: f64,
        y: &Residual<Self>,
        v: &Point<Self>,
        out: &mut Point<Self>,
    ) -> bool {
        this.wrapped_mut().add_second_order_product(x, a, y, v, out)
    }
    /// [`Constraint::rounding`].
    fn rounding(this: &Self, x: &Point<Self>, norm: f64) -> f64 {
        this.wrapped().rounding(x, norm)
    }
    /// [`Constraint::redundant`].
    fn redundant(this: &Self) -> usize {
        this.wrapped().redundant()
    }
    /// [`Constraint::sense`].
    fn sense(this: &Self, row: usize) -> Sense {
        this.wrapped().sense(row)
    }
    /// [`Constraint::bounds`].
    fn bounds(this: &Self) -> Option<&Bounds<Point<Self>>> {
        this.wrapped().bounds()
    }
    /// [`Constraint::check_point`].
    fn check_point(this: &Self, x: &Point<Self>) -> Result<(), Error> {
        this.wrapped().check_point(x)
    }
}

type Point<W> = <<W as ConstraintWrapper>::Inner as Constraint>::Point;
type Residual<W> = <<W as ConstraintWrapper>::Inner as Constraint>::Residual;

#[deny(clippy::missing_trait_methods, reason = "a wrapper must not lose a part of the inner constraint")]
impl<W: ConstraintWrapper + ?Sized> Constraint for W {
    type Point = Point<W>;
    type Residual = Residual<W>;
    fn new_residual(&self) -> Self::Residual {
        ConstraintWrapper::new_residual(self)
    }
    fn residual(&mut self, x: &Self::Point, c: &mut Self::Residual) {
        ConstraintWrapper::residual(self, x, c);
    }
    fn jvp(&mut self, x: &Self::Point, v: &Self::Point, out: &mut Self::Residual) {
        ConstraintWrapper::jvp(self, x, v, out);
    }
    fn add_vjp(&mut self, x: &Self::Point, a: f64, y: &Self::Residual, out: &mut Self::Point) {
        ConstraintWrapper::add_vjp(self, x, a, y, out);
    }
    fn add_second_order_product(
        &mut self,
        x: &Self::Point,
        a: f64,
        y: &Self::Residual,
        v: &Self::Point,
        out: &mut Self::Point,
    ) -> bool {
        ConstraintWrapper::add_second_order_product(self, x, a, y, v, out)
    }
    fn rounding(&self, x: &Self::Point, norm: f64) -> f64 {
        ConstraintWrapper::rounding(self, x, norm)
    }
    fn redundant(&self) -> usize {
        ConstraintWrapper::redundant(self)
    }
    fn sense(&self, row: usize) -> Sense {
        ConstraintWrapper::sense(self, row)
    }
    fn bounds(&self) -> Option<&Bounds<Self::Point>> {
        ConstraintWrapper::bounds(self)
    }
    fn check_point(&self, x: &Self::Point) -> Result<(), Error> {
        ConstraintWrapper::check_point(self, x)
    }
}

/// Declares pointers to a constraint, which are constraints too.
macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<C: Constraint + ?Sized> ConstraintWrapper for $pointer {
            type Inner = C;
            fn wrapped(&self) -> &C {
                self
            }
            fn wrapped_mut(&mut self) -> &mut C {
                self
            }
        }
        impl<C: Manifold + ?Sized> Manifold for $pointer {
            fn project_tangent(&mut self, x: &C::Point, v: &mut C::Point) -> Result<(), Error> {
                (**self).project_tangent(x, v)
            }
            fn restore(&mut self, x: &mut C::Point) -> Result<(), Error> {
                (**self).restore(x)
            }
        }
    )*};
}
pointers!(&mut C, Box<C>);
