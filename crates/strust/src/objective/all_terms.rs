use super::{Evaluation, Objective, ProductKind};
use crate::{sample::Sample, vector::Vector};

/// An objective that takes all of its terms, in pieces of the size of the sample and with its seed. So it needs no more
/// memory than a mini-batch, its evaluations are counted in mini-batches, and dropout is that of the step.
pub(crate) struct AllTerms<'a, F: Objective + ?Sized> {
    pub f: &'a mut F,
    pub space: &'a mut AllTermsSpace<F::Point>,
}

/// Scratch space of [`AllTerms`].
#[derive(Debug, Clone)]
pub(crate) struct AllTermsSpace<V> {
    sum: V,
    piece: Sample,
}

impl<V: Vector> AllTermsSpace<V> {
    pub fn like(x: &V) -> Self {
        Self { sum: x.zeros_like(), piece: Sample::default() }
    }
}

/// Calls `evaluate` with all terms in pieces of the size of `like`, with its seed, and with the share of each piece, until
/// it returns NaN: the sum is NaN then, whatever the other terms are. All ranks have the same bits, so all of them end at
/// the same piece.
fn over_pieces(terms: usize, like: &Sample, piece: &mut Sample, mut evaluate: impl FnMut(&Sample, f64) -> f64) {
    let mut left = 0..terms;
    while !left.is_empty() {
        piece.set_terms_of(like, left.by_ref().take(like.len().max(1)));
        if evaluate(piece, piece.len() as f64 / terms as f64).is_nan() {
            return;
        }
    }
}

/// f(x) over all terms, in pieces like this sample.
pub(super) fn value<F: Objective + ?Sized>(f: &mut F, x: &F::Point, like: &Sample, piece: &mut Sample) -> Evaluation {
    let mut sum = Evaluation { value: 0.0, rounding: 0.0 };
    over_pieces(f.terms(), like, piece, |sample, weight| {
        sum.add(weight, f.value(x, sample));
        sum.value
    });
    sum
}

/// The same with its gradient.
pub(super) fn value_and_gradient<F: Objective + ?Sized>(
    f: &mut F,
    x: &F::Point,
    like: &Sample,
    space: &mut AllTermsSpace<F::Point>,
    gradient: &mut F::Point,
) -> Evaluation {
    let mut sum = Evaluation { value: 0.0, rounding: 0.0 };
    gradient.set_zero();
    over_pieces(f.terms(), like, &mut space.piece, |sample, weight| {
        sum.add(weight, f.value_and_gradient(x, sample, &mut space.sum));
        gradient.add(weight, &space.sum);
        sum.value
    });
    sum
}

impl<F: Objective + ?Sized> super::ObjectiveWrapper for AllTerms<'_, F> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        self.f
    }
    fn wrapped_mut(&mut self) -> &mut F {
        self.f
    }
    fn value(this: &mut Self, x: &F::Point, sample: &Sample) -> Evaluation {
        value(this.f, x, sample, &mut this.space.piece)
    }
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        value_and_gradient(this.f, x, sample, this.space, gradient)
    }
    /// None: products of the inner objective are those of its sample.
    fn curvature_product(
        _: &mut Self,
        _: ProductKind,
        _: &F::Point,
        _: &Sample,
        _: &F::Point,
        _: &mut F::Point,
    ) -> bool {
        false
    }
}
