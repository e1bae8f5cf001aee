use std::time::Duration;

/// What the processes of a run agree on after a step. One process agrees with itself, so most objectives ignore it;
/// [`Sharded`](crate::ranks::Sharded) makes these fields the same on every rank.
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
