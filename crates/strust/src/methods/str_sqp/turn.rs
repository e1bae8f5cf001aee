//! Who makes the next pass over the data: mini-batches, or the full sum.

use super::constants::{FIRST_PASSES, UNJUDGED};
use crate::{objective::Evaluations, record::StepRecord, sample::Sample};

/// Whose turn it is: mini-batches, or the full sum.
///
/// Against noise, the average of e passes without replacement has an error f − f* of order 1/e², so t more passes leave
/// (e/(e + t))² of it. The full sum is tried at the end of a pass that noise has limited, and goes on as long as the
/// reduction that its model predicts falls faster than this, or f itself falls faster. If not, mini-batches go on from its
/// point. A step on the full sum costs a pass, so the samples of this pass are drawn but not used: their steps evaluate
/// nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Turn {
    /// Passes that mini-batches have made.
    pub(crate) passes: u64,
    /// Terms in the samples of this pass.
    pub(crate) terms: usize,
    /// The number of passes after which the full sum is tried next.
    pub(crate) next: u64,
    /// Terms that steps on the full sum have used and that samples have not brought yet.
    pub(crate) owed: usize,
    /// f and ‖∇f‖ before the last of these steps.
    pub(crate) before: (f64, f64),
    /// What is known while the full sum has its turn.
    pub(crate) whole: Option<WholePhase>,
}
crate::saved!([] Turn { passes, terms, next, owed, before, whole });

/// The turn of the full sum.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WholePhase {
    /// The largest reduction that the models of its first steps have predicted.
    pub(crate) first: f64,
    /// Steps so far.
    pub(crate) steps: u64,
}
crate::saved!([] WholePhase { first, steps });

impl Turn {
    /// Counts the terms of a sample. The full sum gets the turn at the end of a pass if noise limits mini-batches.
    pub(super) fn count(&mut self, sample: &Sample, terms: usize, limited_by_noise: bool) {
        self.terms += sample.len();
        if self.terms < terms {
            return;
        }
        self.terms -= terms;
        self.passes += 1;
        if limited_by_noise && self.passes >= self.next.max(FIRST_PASSES) {
            self.next = 2 * self.passes;
            self.whole = Some(WholePhase::default());
        }
    }

    /// Whether the full sum has its turn and has made no step yet.
    pub(super) fn is_first(&self) -> bool {
        self.whole.is_some_and(|phase| phase.steps == 0)
    }

    /// Notes a step on the full sum. Mini-batches get the turn back if such steps do not pay.
    pub(super) fn count_full_step(&mut self, record: &StepRecord, predicted: f64, terms: usize, sample: &Sample) {
        let Some(phase) = &mut self.whole else { return };
        phase.steps += 1;
        if phase.steps <= UNJUDGED {
            phase.first = phase.first.max(predicted);
        }
        let reduction = self.before.0 - record.value;
        self.before = (record.value, record.gradient_norm);
        // A step on a mini-batch has one value beside its gradient.
        let Evaluations { values, gradients, .. } = record.evaluations;
        self.owed = (values.max(gradients) as usize * terms).saturating_sub(sample.len());
        let passes = (self.passes + phase.steps) as f64;
        let left = (self.passes as f64 / passes).powi(2) * phase.first;
        // A pass of mini-batches would remove 2/(e + t) of what is left.
        let pays = predicted <= left || reduction >= 2.0 / passes * left;
        if phase.steps > UNJUDGED && !pays {
            self.whole = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who has the turn after steps on the full sum that found these values and predicted these reductions.
    fn after(steps: &[(f64, f64)]) -> Turn {
        let sample = Sample::range(0..10);
        let mut turn = Turn { passes: 3, ..Turn::default() };
        (0..10).for_each(|_| turn.count(&sample, 100, true));
        assert_eq!((turn.passes, turn.next, turn.whole.is_some()), (4, 8, true));
        for &(value, predicted) in steps {
            turn.count_full_step(&StepRecord::plain(0, value, 1.0, 1.0, 1.0), predicted, 100, &sample);
            assert_eq!(turn.owed, 90, "the sample of the step has brought 10 of the 100 terms");
        }
        turn
    }

    #[test]
    fn the_full_sum_keeps_the_turn_while_its_prediction_falls() {
        assert!(after(&[(1.0, 1.0), (1.0, 0.5), (1.0, 0.3), (1.0, 0.2), (1.0, 0.1)]).whole.is_some());
    }

    #[test]
    fn the_full_sum_keeps_the_turn_while_f_falls() {
        assert!(after(&[(5.0, 1.0), (4.0, 2.0), (3.0, 3.0), (2.0, 4.0), (1.0, 5.0)]).whole.is_some());
    }

    #[test]
    fn mini_batches_get_the_turn_back_where_the_full_sum_does_not_pay() {
        assert!(after(&[(1.0, 1.0); 3]).whole.is_some());
        assert!(after(&[(1.0, 1.0); 4]).whole.is_none());
    }

    #[test]
    fn without_noise_there_is_nothing_to_try() {
        let mut turn = Turn::default();
        (0..100).for_each(|_| turn.count(&Sample::range(0..10), 10, false));
        assert_eq!((turn.passes, turn.whole), (100, None));
    }
}
