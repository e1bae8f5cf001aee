use super::{Evaluation, Objective, value_and_gradient_in_pieces, value_in_pieces};
use crate::sample::Sample;

/// An objective that takes all of its terms, in pieces of the size of the sample. So it needs no more memory than a
/// mini-batch, and its evaluations are counted in mini-batches.
pub(crate) struct AllTerms<'a, F: ?Sized>(pub &'a mut F);

impl<F: Objective + ?Sized> Objective for AllTerms<'_, F> {
    type Point = F::Point;
    fn terms(&self) -> usize {
        self.0.terms()
    }
    fn value(&mut self, x: &F::Point, sample: &Sample) -> Evaluation {
        value_in_pieces(self.0, x, sample.len())
    }
    fn value_and_gradient(&mut self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        value_and_gradient_in_pieces(self.0, x, gradient, sample.len())
    }
}
