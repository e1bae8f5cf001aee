use super::{Evaluation, Objective};
use crate::{Error, sample::Sample};
use std::time::Duration;

/// The other processes of a run: [`Objective::peers`]. [`Sharded`](crate::ranks::Sharded) is one.
pub trait Peers {
    /// Agrees with the other processes. A run calls this after every step.
    fn agree(&mut self, consensus: &mut Consensus) -> Result<(), Error>;
    /// Why evaluations are NaN, if it is because the processes could not work together. A run reports it instead of the NaN.
    fn failure(&mut self) -> Option<Error>;
}

/// What the processes of a run agree on after a step. A [`Peers`] makes these fields the same in every process.
pub struct Consensus<'a> {
    /// Steps made.
    pub steps: u64,
    /// Time since the start. It becomes the mean of all ranks, so that a limit on time ends all of them at the same step.
    pub elapsed: Duration,
    /// Whether an observer stops the run. It becomes true if it is true on any rank.
    pub stop: bool,
    /// A hash of the state, which must be the same on every rank.
    pub fingerprint: &'a dyn Fn() -> u64,
}

/// An objective that computes its gradient from the end to the start, so that [`Sharded`](crate::ranks::Sharded) can send
/// the last components while the rest is computed: [`Objective::sliced`].
pub trait Sliced: Objective {
    /// Places at which the gradient can be cut, from the last to the first: the components from such a place on are ready
    /// before those below it, as those of the last layers of a network are.
    fn slices(&self) -> Vec<usize>;

    /// [`Objective::value_and_gradient`] that calls `ready(gradient, place)` as soon as all components from `place` on have
    /// their final bits. It may leave out any of [`Self::slices`], which then count as ready at the end.
    fn value_and_gradient_in_slices(
        &mut self,
        x: &Self::Point,
        sample: &Sample,
        gradient: &mut Self::Point,
        ready: &mut dyn FnMut(&Self::Point, usize),
    ) -> Evaluation;
}
