//! Runs the steps of a method: one at a time, or by a stepper that makes many at a time, as on a GPU.

mod step_by_step;

pub(crate) use step_by_step::StepByStep;

use crate::{Error, io::checkpoint::Checkpoint};
use strust::{methods::State, objective::Objective, record::StepRecord, samplers::Sampler, saved::Saved};

/// Where a method is.
pub(crate) struct Position<'a, P> {
    /// The number of steps made.
    pub steps: u64,
    /// The method's answer.
    pub x: &'a P,
    /// Whether x is an average ([`State::is_averaged`]). What a problem keeps from step to step does not belong to x then.
    pub averaged: bool,
}

impl<'a, P> Position<'a, P> {
    pub fn of(state: &'a impl State<Point = P>) -> Self {
        Self { steps: state.steps(), x: state.point(), averaged: state.is_averaged() }
    }
}

/// A method on `F`. It owns the method's state and hides its type.
pub(crate) trait Stepper<F: Objective> {
    /// Starts at x.
    fn start(&mut self, f: &mut F, x: F::Point) -> Result<(), Error>;
    /// Resumes from a checkpoint.
    fn resume(&mut self, f: &mut F, saved: &Checkpoint) -> Result<(), Error>;
    /// Makes at least one step and at most `most`. It stops when the method has settled. It calls `proceed` from time to time with the number of steps made, and stops if that returns false. It adds the records of all steps, even if an error follows.
    fn advance(
        &mut self,
        f: &mut F,
        sampler: &mut dyn Sampler,
        most: u64,
        proceed: &mut dyn FnMut(u64) -> bool,
        records: &mut Vec<StepRecord>,
    ) -> Result<(), Error>;
    /// Whether the method has found a reason to stop ([`State::settled`]). Call it only after a start.
    fn is_settled(&self) -> bool;
    /// A hash of the method's state, which must be the same on every rank. A stepper that runs on one rank has none.
    fn fingerprint(&self) -> u64 {
        0
    }
    /// The current position. Call it only after a start.
    fn current(&mut self, f: &mut F) -> Position<'_, F::Point>;
    /// The method's state, for a checkpoint. Call it only after a start.
    fn state(&mut self, f: &mut F) -> Saved;
}

pub(crate) const STARTED: &str = "a stepper is started before it is used";
