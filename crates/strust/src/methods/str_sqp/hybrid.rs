//! Mini-batches first and the full sum last.

use super::{StrSqp, StrSqpState, batch::restore, memory::LagrangianCurvature, scaled::ScaledRows};
use crate::{
    Error,
    constraints::Constraint,
    objective::{AllTerms, Evaluations, Objective},
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
                let record = StepRecord::plain(state.k, turn.before.0, turn.before.1, 0.0, 0.0);
                state.k += 1;
                Ok(StepRecord { evaluations: Evaluations::default(), ..record })
            }
            Some(turn) if turn.whole.is_some() => self.step_on_whole(f, state, sample, g),
            _ => {
                let record = self.step_on_batch(f, state, sample, g)?;
                if let Some(batch) = &mut state.batch {
                    let limited_by_noise = batch.calm == 0 && batch.averaged > 0;
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
            state.memory = LagrangianCurvature::new(batch.curvature);
            state.most_violation = 2.0 * state.largest.1;
        }
        state.x.copy_from(&batch.iterate);
        let (mut record, predicted) = match self.step_on_all(&mut AllTerms(f), state, sample, 0, g) {
            Ok(step) => step,
            Err(error) => {
                state.batch = Some(batch);
                return Err(error);
            }
        };
        batch.turn.note(&record, predicted, f.terms(), sample);
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
