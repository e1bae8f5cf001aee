//! A method of the library, one step at a time.

use super::{Position, STARTED, Stepper};
use crate::{Error, io::checkpoint::Checkpoint};
use strust::{
    methods::{Method, State},
    objective::Objective,
    record::StepRecord,
    run::next_step,
    sample::Sample,
    samplers::Sampler,
    saved::{Save, Saved, fingerprint},
};

/// A method of the library and its state.
pub(crate) struct StepByStep<M, S> {
    method: M,
    state: Option<S>,
    sample: Sample,
}

impl<M, S> StepByStep<M, S> {
    pub fn new(method: M) -> Self {
        Self { method, state: None, sample: Sample::default() }
    }
}

impl<F: Objective, M: Method<F>> Stepper<F> for StepByStep<M, M::State> {
    fn start(&mut self, f: &mut F, x: F::Point) -> Result<(), Error> {
        self.state = Some(self.method.init(f, x)?);
        Ok(())
    }
    fn resume(&mut self, _: &mut F, saved: &Checkpoint) -> Result<(), Error> {
        self.state = Some(self.method.restore(&saved.state).map_err(|error| saved.refuse(error))?);
        Ok(())
    }
    fn advance(
        &mut self,
        f: &mut F,
        sampler: &mut dyn Sampler,
        _: u64,
        _: &mut dyn FnMut(u64) -> bool,
        records: &mut Vec<StepRecord>,
    ) -> Result<(), Error> {
        let state = self.state.as_mut().expect(STARTED);
        records.push(next_step(&mut self.method, f, state, sampler, &mut self.sample)?);
        Ok(())
    }
    fn is_settled(&self) -> bool {
        self.state.as_ref().expect(STARTED).settled().is_some()
    }
    fn fingerprint(&self) -> u64 {
        fingerprint(self.state.as_ref().expect(STARTED))
    }
    fn current(&mut self, _: &mut F) -> Position<'_, F::Point> {
        Position::of(self.state.as_ref().expect(STARTED))
    }
    fn state(&mut self, _: &mut F) -> Saved {
        self.state.as_ref().expect(STARTED).save()
    }
}
