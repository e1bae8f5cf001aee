//! A gradient that is summed in slices, from its end to its start, while the rest of it is still computed.

use super::{GiveSlice, Group, Sharded, sharded::HEAD};
use crate::{
    Error,
    objective::{Evaluation, Objective},
    vector::Vector,
};

/// The ends of a gradient that are worth a sum of their own, from those that an objective can announce: decreasing, each
/// with at least `least` components up to the one before it.
fn worthwhile(announced: Vec<usize>, dimension: usize, least: usize) -> Vec<usize> {
    let mut end = dimension;
    let mut starts = announced;
    starts.retain(|&start| {
        let keep = start > 0 && start.saturating_add(least) <= end;
        end = if keep { start } else { end };
        keep
    });
    starts
}

/// The part of the sums that is not given to the group yet: the numbers of this rank, and the place of those of all.
struct Rest<'a> {
    mine: &'a mut [f64],
    all: &'a mut [f64],
    /// The slices to come.
    starts: std::vec::IntoIter<usize>,
    weight: f64,
}

impl<'a> Rest<'a> {
    /// Gives the slices that begin at component `start` or later.
    fn give<V: Vector>(&mut self, gradient: &V, start: usize, give: &mut GiveSlice<'_, 'a>) {
        while let Some(&next) = self.starts.as_slice().first().filter(|&&next| next >= start) {
            self.starts.next();
            let (rest, mine) = std::mem::take(&mut self.mine).split_at_mut(HEAD + next);
            let (rest_of_all, all) = std::mem::take(&mut self.all).split_at_mut(HEAD + next);
            (self.mine, self.all) = (rest, rest_of_all);
            gradient.components_from(next, self.weight, mine);
            give(mine, all);
        }
    }

    /// Gives the rest, with the numbers before the gradient.
    fn finish<V: Vector>(mut self, head: [f64; HEAD], gradient: &V, give: &mut GiveSlice<'_, 'a>) {
        self.give(gradient, 0, give);
        let (before, first) = self.mine.split_at_mut(HEAD);
        before.copy_from_slice(&head);
        gradient.components_from(0, self.weight, first);
        give(self.mine, self.all);
    }
}

impl<F: Objective, G: Group> Sharded<F, G> {
    /// Sums value, rounding, tag and gradient of the part of this rank, times its share of `whole` terms. Every rank gives
    /// the same slices in the same order, also one without a term.
    pub(super) fn add_gradient(&mut self, x: &F::Point, whole: usize, gradient: &mut F::Point) -> Result<(), Error> {
        let dimension = gradient.dimension();
        let announced = self.inner.sliced().map(|inner| inner.slices()).unwrap_or_default();
        let starts = worthwhile(announced, dimension, self.slice);
        self.traffic.collectives += starts.len() as u64;
        self.count(HEAD + dimension);
        let Self { inner, group, part, sums, total, tag, .. } = self;
        let (weight, tag) = (part.len() as f64 / whole as f64, f64::from(*tag));
        sums.resize(HEAD + dimension, 0.0);
        total.resize(HEAD + dimension, 0.0);
        let mut rest = Some(Rest { mine: &mut sums[..], all: &mut total[..], starts: starts.into_iter(), weight });
        group.sum_in_slices(&mut |give| {
            let Some(mut rest) = rest.take() else { return };
            let f = if part.is_empty() {
                gradient.set_zero();
                Evaluation { value: 0.0, rounding: 0.0 }
            } else if let Some(inner) = inner.sliced() {
                let mut ready = |gradient: &F::Point, start| rest.give(gradient, start, give);
                inner.value_and_gradient_in_slices(x, part, gradient, &mut ready)
            } else {
                inner.value_and_gradient(x, part, gradient)
            };
            rest.finish([weight * f.value, weight * f.rounding, tag, tag * tag], gradient, give);
        })?;
        std::mem::swap(&mut self.sums, &mut self.total);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_large_enough_and_in_order() {
        assert_eq!(worthwhile(vec![900, 850, 500, 20], 1000, 100), [900, 500, 20]);
        assert_eq!(worthwhile(vec![950, 850, 0], 1000, 100), [850]);
        assert_eq!(worthwhile(vec![900, 500], 1000, usize::MAX), [0; 0]);
        assert_eq!(worthwhile(Vec::new(), 1000, 1), [0; 0]);
    }
}
