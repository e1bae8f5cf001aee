use super::{Evaluation, Objective, Peers, ProductKind, Sliced};
use crate::{
    Error,
    sample::{Draws, Sample},
};

/// An objective around another one. Implement this instead of [`Objective`]: everything that it does not define is the
/// inner objective's, so a wrapper cannot lose a part of it. These are functions of `this`, not methods: a call such as
/// `f.terms()` always is [`Objective`]'s.
///
/// ```
/// use strust::{objective::{Evaluation, ObjectiveWrapper}, prelude::*};
///
/// /// Counts the values.
/// struct Counting<F>(F, usize);
///
/// impl<F: Objective> ObjectiveWrapper for Counting<F> {
///     type Inner = F;
///     fn wrapped(&self) -> &F {
///         &self.0
///     }
///     fn wrapped_mut(&mut self) -> &mut F {
///         &mut self.0
///     }
///     fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
///         this.1 += 1;
///         this.0.value(x, sample)
///     }
/// }
///
/// let mut f = Counting(from_terms(1, |_, x: &Vec<f64>, g| { g[0] += x[0]; 0.5 * x[0] * x[0] }), 0);
/// assert_eq!((f.terms(), f.value(&vec![2.0], &Sample::all(1)).value, f.1), (1, 2.0, 1));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an objective",
    note = "implement `Objective` for it, or `ObjectiveWrapper` if it wraps another objective"
)]
pub trait ObjectiveWrapper {
    /// The type of the inner objective.
    type Inner: Objective + ?Sized;

    /// The inner objective.
    fn wrapped(&self) -> &Self::Inner;

    /// The inner objective, to evaluate it.
    fn wrapped_mut(&mut self) -> &mut Self::Inner;

    /// [`Objective::terms`].
    fn terms(this: &Self) -> usize {
        this.wrapped().terms()
    }

    /// [`Objective::value`].
    fn value(this: &mut Self, x: &Point<Self>, sample: &Sample) -> Evaluation {
        this.wrapped_mut().value(x, sample)
    }

    /// [`Objective::value_and_gradient`].
    fn value_and_gradient(this: &mut Self, x: &Point<Self>, sample: &Sample, gradient: &mut Point<Self>) -> Evaluation {
        this.wrapped_mut().value_and_gradient(x, sample, gradient)
    }

    /// [`Objective::curvature_product`].
    fn curvature_product(
        this: &mut Self,
        kind: ProductKind,
        x: &Point<Self>,
        sample: &Sample,
        direction: &Point<Self>,
        product: &mut Point<Self>,
    ) -> bool {
        this.wrapped_mut().curvature_product(kind, x, sample, direction, product)
    }

    /// [`Objective::constraint_norm`].
    fn constraint_norm(this: &mut Self, x: &Point<Self>) -> f64 {
        this.wrapped_mut().constraint_norm(x)
    }

    /// [`Objective::draws`].
    fn draws(this: &Self) -> Option<Draws> {
        this.wrapped().draws()
    }

    /// [`Objective::check_point`].
    fn check_point(this: &Self, x: &Point<Self>) -> Result<(), Error> {
        this.wrapped().check_point(x)
    }

    /// [`Objective::peers`].
    fn peers(this: &mut Self) -> Option<&mut dyn Peers> {
        this.wrapped_mut().peers()
    }

    /// [`Objective::sliced`]. `None` by default, unlike the rest: the slices of the inner objective would go past what this
    /// one does with its gradient.
    fn sliced(_this: &mut Self) -> Option<&mut dyn Sliced<Point = Point<Self>>> {
        None
    }
}

type Point<W> = <<W as ObjectiveWrapper>::Inner as Objective>::Point;

#[deny(clippy::missing_trait_methods, reason = "a wrapper must not lose a part of the inner objective")]
impl<W: ObjectiveWrapper + ?Sized> Objective for W {
    type Point = Point<W>;
    fn terms(&self) -> usize {
        ObjectiveWrapper::terms(self)
    }
    fn value(&mut self, x: &Self::Point, sample: &Sample) -> Evaluation {
        ObjectiveWrapper::value(self, x, sample)
    }
    fn value_and_gradient(&mut self, x: &Self::Point, sample: &Sample, gradient: &mut Self::Point) -> Evaluation {
        ObjectiveWrapper::value_and_gradient(self, x, sample, gradient)
    }
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        x: &Self::Point,
        sample: &Sample,
        direction: &Self::Point,
        product: &mut Self::Point,
    ) -> bool {
        ObjectiveWrapper::curvature_product(self, kind, x, sample, direction, product)
    }
    fn constraint_norm(&mut self, x: &Self::Point) -> f64 {
        ObjectiveWrapper::constraint_norm(self, x)
    }
    fn draws(&self) -> Option<Draws> {
        ObjectiveWrapper::draws(self)
    }
    fn check_point(&self, x: &Self::Point) -> Result<(), Error> {
        ObjectiveWrapper::check_point(self, x)
    }
    fn peers(&mut self) -> Option<&mut dyn Peers> {
        ObjectiveWrapper::peers(self)
    }
    fn sliced(&mut self) -> Option<&mut dyn Sliced<Point = Self::Point>> {
        ObjectiveWrapper::sliced(self)
    }
}

/// Declares pointers to an objective, which are objectives too.
macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<F: Objective + ?Sized> ObjectiveWrapper for $pointer {
            type Inner = F;
            fn wrapped(&self) -> &F {
                self
            }
            fn wrapped_mut(&mut self) -> &mut F {
                self
            }
            fn sliced(this: &mut Self) -> Option<&mut dyn Sliced<Point = F::Point>> {
                (**this).sliced()
            }
        }
    )*};
}
pointers!(&mut F, Box<F>);
