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
//! | around another one, with a part of it changed | implement [`ObjectiveWrapper`] |

mod all_terms;
mod closures;
mod counted;
mod evaluation;
mod peers;
mod penalized;
mod product_kind;
mod products;
mod scaled;
mod stoppable;
mod wrapper;

pub(crate) use all_terms::{AllTerms, AllTermsSpace};
pub use closures::{
    ApproximateGradient, FromFn, FromResiduals, FromTerms, from_fn, from_fn_approximate_gradient, from_residuals,
    from_terms,
};
pub use counted::{Counted, Evaluations};
pub use evaluation::Evaluation;
pub use peers::{Consensus, Peers, Sliced};
pub use penalized::{Penalized, PenaltyScratch};
pub use product_kind::ProductKind;
pub use products::{WithProducts, with_products};
pub use scaled::Scaled;
pub use stoppable::Stoppable;
pub use wrapper::ObjectiveWrapper;

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

    /// The other processes that share the work of this objective; `None` if there are none.
    fn peers(&mut self) -> Option<&mut dyn Peers> {
        None
    }

    /// This objective, if it computes its gradient from the end to the start, so that other processes can get the end of it
    /// early; otherwise `None`.
    fn sliced(&mut self) -> Option<&mut dyn Sliced<Point = Self::Point>> {
        None
    }
}

/// Terms per evaluation when the full sum is measured: enough for fast products, few enough for the memory.
pub const PIECE: usize = 512;

/// f(x) over all terms.
pub fn full_value<F: Objective + ?Sized>(f: &mut F, x: &F::Point) -> f64 {
    full_value_in_pieces(f, x, PIECE)
}

/// f(x) over all terms, with `piece` terms per evaluation. All ranks must use the same number.
pub fn full_value_in_pieces<F: Objective + ?Sized>(f: &mut F, x: &F::Point, piece: usize) -> f64 {
    all_terms::value(f, x, &Sample::range(0..piece), &mut Sample::default()).value
}

/// f(x) and ∇f(x) over all terms; the gradient overwrites `gradient`.
pub fn full_value_and_gradient<F: Objective + ?Sized>(f: &mut F, x: &F::Point, gradient: &mut F::Point) -> f64 {
    all_terms::value_and_gradient(f, x, &Sample::range(0..PIECE), &mut AllTermsSpace::like(x), gradient).value
}
