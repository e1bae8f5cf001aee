use super::{Evaluation, Objective, ProductKind};
use crate::{sample::Sample, vector::Vector};

/// An objective that takes all of its terms, in pieces of the size of the sample and with its seed. So it needs no more
/// memory than a mini-batch, its evaluations are counted in mini-batches, and dropout is that of the step.
pub(crate) struct AllTerms<'a, F: Objective + ?Sized> {
    pub f: &'a mut F,
    /// The terms of products with a curvature matrix: with the Gauss–Newton matrix if the objective has it, otherwise with
    /// the Hessian. `None`: no products.
    pub curvature: Option<&'a Sample>,
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
    /// A vector that holds nothing between evaluations.
    pub fn spare(&mut self) -> &mut V {
        &mut self.sum
    }
}

/// Calls `evaluate` with `terms` in pieces of the size of `like`, with its seed, and with the share of each piece, until it
/// returns NaN: the sum is NaN then, whatever the other terms are. All ranks have the same bits, so all of them end at the
/// same piece.
fn over_pieces(
    mut terms: impl ExactSizeIterator<Item = usize>,
    like: &Sample,
    piece: &mut Sample,
    mut evaluate: impl FnMut(&Sample, f64) -> f64,
) {
    let total = terms.len() as f64;
    while terms.len() > 0 {
        piece.set_terms_of(like, terms.by_ref().take(like.len().max(1)));
        if evaluate(piece, piece.len() as f64 / total).is_nan() {
            return;
        }
    }
}

/// f(x) over all terms, in pieces like this sample.
pub(super) fn value<F: Objective + ?Sized>(f: &mut F, x: &F::Point, like: &Sample, piece: &mut Sample) -> Evaluation {
    let mut sum = Evaluation { value: 0.0, rounding: 0.0 };
    over_pieces(0..f.terms(), like, piece, |sample, weight| {
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
    over_pieces(0..f.terms(), like, &mut space.piece, |sample, weight| {
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
    fn curvature_product(
        this: &mut Self,
        _: ProductKind,
        x: &F::Point,
        sample: &Sample,
        direction: &F::Point,
        product: &mut F::Point,
    ) -> bool {
        let Some(curvature) = this.curvature else { return false };
        let AllTermsSpace { sum, piece } = &mut *this.space;
        let mut exact = true;
        product.set_zero();
        over_pieces(curvature.indices().iter().copied(), sample, piece, |piece, weight| {
            let mut multiply = |kind| this.f.curvature_product(kind, x, piece, direction, sum);
            exact = exact && (multiply(ProductKind::GaussNewton) || multiply(ProductKind::Hessian));
            product.add(weight, sum);
            0.0
        });
        exact
    }
}
