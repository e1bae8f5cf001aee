//! Mini-batches first and the full sum last.

use super::{StrSqp, StrSqpState, batch::restore, memory::LagrangianCurvature, scaled::ScaledRows};
use crate::{
    Error,
    constraints::Constraint,
    objective::{AllTerms, AllTermsSpace, Objective},
    record::StepRecord,
    sample::Sample,
    vector::Vector,
};

impl<C: Constraint> StrSqp<C> {
    /// A step of whoever has the turn.
    pub(super) fn step_in_turn<F: Objective<Point = C::Point>>(
        &mut self,
        f: &mut F,
        state: &mut StrSqpState<F::Point>,
        sample: &Sample,
        g: &mut F::Point,
    ) -> Result<StepRecord, Error> {
        let turn = state.batch.as_mut().map(|batch| &mut batch.turn);
        match turn {
            Some(turn) if turn.owed > 0 => {
                turn.owed = turn.owed.saturating_sub(sample.len());
                state.k += 1;
                Ok(StepRecord::skipped(state.k - 1))
            }
            Some(turn) if turn.whole.is_some() => {
                // The trials of such a step change its state, so they change a copy: the full sum costs more than a copy.
                let mut next = state.clone();
                let record = self.step_on_whole(f, &mut next, sample, g)?;
                *state = next;
                Ok(record)
            }
            _ => {
                let record = self.step_on_batch(f, state, sample, g)?;
                if let Some(batch) = &mut state.batch {
                    let limited_by_noise = batch.calm == 0 && batch.learned.accepted > 0;
                    batch.turn.count(sample, f.terms(), limited_by_noise);
                }
                Ok(record)
            }
        }
    }

    /// A step on the full sum, in place of the samples of a pass.
    fn step_on_whole<F: Objective<Point = C::Point>>(
        &mut self,
        f: &mut F,
        state: &mut StrSqpState<F::Point>,
        sample: &Sample,
        g: &mut F::Point,
    ) -> Result<StepRecord, Error> {
        let Some(mut batch) = state.batch.take() else { unreachable!("the full sum gets its turn from mini-batches") };
        if batch.turn.is_first() {
            batch.iterate.copy_from(&state.x);
        }
        if state.memory.curvature == 0.0 {
            state.memory = LagrangianCurvature::new(batch.learned.curvature.unwrap_or(0.0));
            state.most_violation = state.largest.1;
        }
        state.x.copy_from(&batch.iterate);
        let mut space = self.space.take().unwrap_or_else(|| AllTermsSpace::like(&state.x));
        let mut all = AllTerms { f, space: &mut space };
        let (mut record, predicted) = self.step_on_all(&mut all, state, sample, 0, g)?;
        self.space = Some(space);
        batch.turn.count_full_step(&record, predicted, f.terms(), sample);
        let pieces = f.terms().div_ceil(sample.len()) as u64;
        record.evaluations.values *= pieces;
        record.evaluations.gradients *= pieces;
        batch.iterate.copy_from(&state.x);
        // As with mini-batches, the answer is on the constraints.
        let scaled = ScaledRows::new(&mut self.constraint, &state.weights);
        let active =
            state.scaled_multipliers(&scaled).iter().map(|&y| f64::from(u8::from(y != 0.0))).collect::<Vec<_>>();
        restore(&mut state.x, &scaled, &active, state.largest.1);
        state.batch = Some(batch);
        Ok(record)
    }
}
