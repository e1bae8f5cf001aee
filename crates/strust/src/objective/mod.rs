//! A finite sum f(x) = (1/n) Σ fᵢ(x), evaluated on samples.
//!
//! | to get an objective | use |
//! |---|---|
//! | from one term at a time | [`from_terms`] |
//! | from one residual at a time | [`from_residuals`] |
//! | from a whole mini-batch at a time | [`from_fn`], or implement [`Objective`] |
//! | without a gradient, to try something out | [`from_fn_approximate_gradient`] |
//! | with a penalty for constraints | [`Penalized`] |
//! | multiplied by a number | [`Scaled`] |
//! | with products for second-order methods | [`with_products`] |
//! | that counts its evaluations | [`Counted`] |
//! | whose measurements can be stopped | [`Stoppable`] |
//! | whose samples are shared out among threads or machines | [`Sharded`](crate::ranks::Sharded) |

mod all_terms;
mod closures;
mod consensus;
mod counted;
mod evaluation;
mod every_term;
mod penalized;
mod products;
mod scaled;
mod stoppable;

pub(crate) use all_terms::AllTerms;
pub use closures::{
    ApproximateGradient, FromFn, FromResiduals, FromTerms, from_fn, from_fn_approximate_gradient, from_residuals,
    from_terms,
};
pub use consensus::Consensus;
pub use counted::{Counted, Evaluations};
pub use evaluation::Evaluation;
pub(crate) use every_term::{EveryTerm, EveryTermSpace};
pub use penalized::{Penalized, PenaltyScratch};
pub use products::{ProductKind, WithProducts, with_products};
pub use scaled::Scaled;
pub use stoppable::Stoppable;

use crate::{
    Error,
    sample::{Draws, Sample},
    vector::Vector,
};

/// A finite sum evaluated on samples.
///
/// `value` and `value_and_gradient` must be pure functions of `(x, sample)`: the same arguments give the same number,
/// and an evaluation at a trial point has no side effects. `&mut self` is for scratch space only.
pub trait Objective {
    /// The type of x.
    type Point: Vector;

    /// The number n of terms.
    fn terms(&self) -> usize;

    /// The mean of the sampled terms at x, with its rounding error.
    fn value(&mut self, x: &Self::Point, sample: &Sample) -> Evaluation;

    /// The mean of the sampled terms at x, with its rounding error. Its gradient overwrites `gradient`.
    fn value_and_gradient(&mut self, x: &Self::Point, sample: &Sample, gradient: &mut Self::Point) -> Evaluation;

    /// product ← H·direction for the mean of the sampled terms at x, where H is the matrix of this kind. Returns false if the
    /// objective has no such products, as by default; `product` may hold anything then. Products of one sample belong to
    /// one symmetric matrix.
    fn curvature_product(
        &mut self,
        _kind: ProductKind,
        _x: &Self::Point,
        _sample: &Sample,
        _direction: &Self::Point,
        _product: &mut Self::Point,
    ) -> bool {
        false
    }

    /// Places at which the gradient can be cut, from the last to the first: the components from such a place on are ready
    /// before those below it, as those of the last layers of a network are. None by default.
    fn slices(&self) -> Vec<usize> {
        Vec::new()
    }

    /// [`Self::value_and_gradient`] that calls `ready(gradient, place)` as soon as all components from `place` on have their
    /// final bits, so that [`Sharded`](crate::ranks::Sharded) can send them while the rest is computed. It may leave out
    /// any of [`Self::slices`], which then count as ready at the end, as all do by default.
    fn value_and_gradient_in_slices(
        &mut self,
        x: &Self::Point,
        sample: &Sample,
        gradient: &mut Self::Point,
        _ready: &mut dyn FnMut(&Self::Point, usize),
    ) -> Evaluation {
        self.value_and_gradient(x, sample, gradient)
    }

    /// ‖c(x)‖ of a constraint inside this objective, such as the penalty of [`Penalized`]; 0 without one. A point where it
    /// is large never counts as converged.
    fn constraint_norm(&mut self, _x: &Self::Point) -> f64 {
        0.0
    }

    /// How the samples must be drawn, if it matters to this objective. A run checks its sampler against this.
    fn draws(&self) -> Option<Draws> {
        None
    }

    /// Checks that x has the shape this objective is defined on.
    fn check_point(&self, _x: &Self::Point) -> Result<(), Error> {
        Ok(())
    }

    /// Agrees with the other processes of the run, if there are any. A run calls this after every step.
    fn agree(&mut self, _consensus: &mut Consensus) -> Result<(), Error> {
        Ok(())
    }

    /// Why evaluations are NaN, if the objective itself failed. A run reports it instead of the NaN.
    fn failure(&self) -> Option<Error> {
        None
    }
}

impl<F: Objective + ?Sized> Objective for &mut F {
    type Point = F::Point;
    fn terms(&self) -> usize {
        (**self).terms()
    }
    fn value(&mut self, x: &F::Point, sample: &Sample) -> Evaluation {
        (**self).value(x, sample)
    }
    fn value_and_gradient(&mut self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        (**self).value_and_gradient(x, sample, gradient)
    }
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        x: &F::Point,
        sample: &Sample,
        direction: &F::Point,
        product: &mut F::Point,
    ) -> bool {
        (**self).curvature_product(kind, x, sample, direction, product)
    }
    fn slices(&self) -> Vec<usize> {
        (**self).slices()
    }
    fn value_and_gradient_in_slices(
        &mut self,
        x: &F::Point,
        sample: &Sample,
        gradient: &mut F::Point,
        ready: &mut dyn FnMut(&F::Point, usize),
    ) -> Evaluation {
        (**self).value_and_gradient_in_slices(x, sample, gradient, ready)
    }
    fn constraint_norm(&mut self, x: &F::Point) -> f64 {
        (**self).constraint_norm(x)
    }
    fn draws(&self) -> Option<Draws> {
        (**self).draws()
    }
    fn check_point(&self, x: &F::Point) -> Result<(), Error> {
        (**self).check_point(x)
    }
    fn agree(&mut self, consensus: &mut Consensus) -> Result<(), Error> {
        (**self).agree(consensus)
    }
    fn failure(&self) -> Option<Error> {
        (**self).failure()
    }
}

/// Terms per evaluation when the full sum is measured: enough for fast products, few enough for the memory.
const PIECE: usize = 512;

/// Calls `piece` with samples of at most `most` terms and with their share of all terms, until it returns NaN: the sum is
/// NaN then, whatever the other terms are. All ranks have the same bits, so all of them end at the same piece.
fn over_pieces(terms: usize, most: usize, mut piece: impl FnMut(&Sample, f64) -> f64) {
    let mut start = 0;
    while start < terms {
        let end = (start + most).min(terms);
        if piece(&Sample::range(start..end), (end - start) as f64 / terms as f64).is_nan() {
            return;
        }
        start = end;
    }
}

/// f(x) over all terms.
pub fn full_value<F: Objective + ?Sized>(f: &mut F, x: &F::Point) -> f64 {
    value_in_pieces(f, x, PIECE).value
}

/// f(x) and ∇f(x) over all terms; the gradient overwrites `gradient`.
pub fn full_value_and_gradient<F: Objective + ?Sized>(f: &mut F, x: &F::Point, gradient: &mut F::Point) -> f64 {
    value_and_gradient_in_pieces(f, x, gradient, PIECE).value
}

fn value_in_pieces<F: Objective + ?Sized>(f: &mut F, x: &F::Point, most: usize) -> Evaluation {
    let mut sum = Evaluation { value: 0.0, rounding: 0.0 };
    over_pieces(f.terms(), most, |sample, weight| {
        sum.add(weight, f.value(x, sample));
        sum.value
    });
    sum
}

fn value_and_gradient_in_pieces<F: Objective + ?Sized>(
    f: &mut F,
    x: &F::Point,
    gradient: &mut F::Point,
    most: usize,
) -> Evaluation {
    let mut sum = Evaluation { value: 0.0, rounding: 0.0 };
    let mut piece = x.zeros_like();
    gradient.set_zero();
    over_pieces(f.terms(), most, |sample, weight| {
        sum.add(weight, f.value_and_gradient(x, sample, &mut piece));
        gradient.add(weight, &piece);
        sum.value
    });
    sum
}
