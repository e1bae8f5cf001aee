//! A stepper of a problem, for the same problem in a wrapper.

use super::{Position, Stepper};
use crate::{
    Error,
    any_problem::AnyProblem,
    io::checkpoint::{Checkpoint, Head},
};
use std::path::Path;
use strust::{
    objective::Objective,
    ranks::{Group, Sharded},
    record::StepRecord,
    samplers::Sampler,
};
use strust_problems::Problem;

/// Runs on the problem inside [`AnyProblem`] inside [`Sharded`], for a rank that is alone.
pub(crate) struct OnInner<F: Objective> {
    pub inner: Box<dyn Stepper<F>>,
}

impl<F: Problem + 'static, G: Group> Stepper<Sharded<AnyProblem<F::Point>, G>> for OnInner<F> {
    fn start(&mut self, f: &mut Sharded<AnyProblem<F::Point>, G>, x: F::Point) -> Result<(), Error> {
        self.inner.start(f.inner_mut().inner_mut(), x)
    }
    fn resume(&mut self, f: &mut Sharded<AnyProblem<F::Point>, G>, saved: &Checkpoint) -> Result<(), Error> {
        self.inner.resume(f.inner_mut().inner_mut(), saved)
    }
    fn advance(
        &mut self,
        f: &mut Sharded<AnyProblem<F::Point>, G>,
        sampler: &mut dyn Sampler,
        most: u64,
        proceed: &mut dyn FnMut(u64) -> bool,
        records: &mut Vec<StepRecord>,
    ) -> Result<(), Error> {
        self.inner.advance(f.inner_mut().inner_mut(), sampler, most, proceed, records)
    }
    fn is_settled(&self) -> bool {
        self.inner.is_settled()
    }
    fn current(&mut self, f: &mut Sharded<AnyProblem<F::Point>, G>) -> Position<'_, F::Point> {
        self.inner.current(f.inner_mut().inner_mut())
    }
    fn save(&mut self, f: &mut Sharded<AnyProblem<F::Point>, G>, head: &Head, path: &Path) -> Result<(), Error> {
        self.inner.save(f.inner_mut().inner_mut(), head, path)
    }
}
