use super::{Evaluation, Objective, ProductKind};
use crate::{sample::Sample, vector::Vector};

/// An objective that takes all of its terms, in pieces of the size of the sample, and its products with a curvature matrix
/// from some of them: with the Gauss–Newton matrix if the objective has it, otherwise with the Hessian.
pub(crate) struct EveryTerm<'a, F: Objective + ?Sized> {
    pub f: &'a mut F,
    /// The terms of the products.
    pub curvature: &'a Sample,
    pub space: &'a mut EveryTermSpace<F::Point>,
}

/// Scratch space of [`EveryTerm`].
#[derive(Debug, Clone)]
pub(crate) struct EveryTermSpace<V> {
    sum: V,
    piece: Sample,
}

impl<V: Vector> EveryTermSpace<V> {
    pub fn like(x: &V) -> Self {
        Self { sum: x.zeros_like(), piece: Sample::default() }
    }
}

impl<V: Vector> EveryTermSpace<V> {
    /// A vector that holds nothing between evaluations.
    pub fn spare(&mut self) -> &mut V {
        &mut self.sum
    }
}

/// Calls `evaluate` with the terms in pieces of at most `most` and with their share of all terms, until it returns NaN: the
/// sum is NaN then, whatever the other terms are.
fn in_pieces(terms: usize, most: usize, mut evaluate: impl FnMut(std::ops::Range<usize>, f64) -> f64) {
    for start in (0..terms).step_by(most) {
        let end = (start + most).min(terms);
        if evaluate(start..end, (end - start) as f64 / terms as f64).is_nan() {
            return;
        }
    }
}

impl<F: Objective + ?Sized> Objective for EveryTerm<'_, F> {
    type Point = F::Point;
    fn terms(&self) -> usize {
        self.f.terms()
    }
    fn value(&mut self, x: &F::Point, sample: &Sample) -> Evaluation {
        let mut sum = Evaluation { value: 0.0, rounding: 0.0 };
        in_pieces(self.f.terms(), sample.len(), |terms, weight| {
            self.space.piece.set_range(terms);
            sum.add(weight, self.f.value(x, &self.space.piece));
            sum.value
        });
        sum
    }
    fn value_and_gradient(&mut self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        let mut sum = Evaluation { value: 0.0, rounding: 0.0 };
        gradient.set_zero();
        in_pieces(self.f.terms(), sample.len(), |terms, weight| {
            self.space.piece.set_range(terms);
            sum.add(weight, self.f.value_and_gradient(x, &self.space.piece, &mut self.space.sum));
            gradient.add(weight, &self.space.sum);
            sum.value
        });
        sum
    }
    fn curvature_product(
        &mut self,
        _: ProductKind,
        x: &F::Point,
        sample: &Sample,
        direction: &F::Point,
        product: &mut F::Point,
    ) -> bool {
        let mut exact = true;
        product.set_zero();
        in_pieces(self.curvature.len(), sample.len(), |part, weight| {
            let EveryTermSpace { sum, piece } = &mut *self.space;
            piece.set_part(self.curvature, part);
            let mut multiply = |kind| self.f.curvature_product(kind, x, piece, direction, sum);
            exact = exact && (multiply(ProductKind::GaussNewton) || multiply(ProductKind::Hessian));
            product.add(weight, sum);
            0.0
        });
        exact
    }
}
