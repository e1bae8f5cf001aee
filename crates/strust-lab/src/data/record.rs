//! The lines of `records.jsonl` and `timings.jsonl`.

use super::numbers::numbers;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, num::NonZeroU64};
use strust::{objective::Evaluations, record::StepRecord};

/// A line of `records.jsonl`. Every byte is a function of the experiment and the seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Line {
    /// A step.
    Step(StepRecord),
    /// The end of an epoch.
    Epoch(EpochRecord),
}

/// The quantities of the trust region that every epoch records: key, label, whether the axis is logarithmic.
pub const TRUST_REGION: [(&str, &str, bool); 4] = [
    ("radius", "radius, at the end", true),
    ("step_length", "mean step length", true),
    ("ratio", "mean ratio, actual / predicted", false),
    ("acceptance", "share of steps accepted", false),
];

/// The state of a run at the end of an epoch. Counts are since the start. A method that has settled makes no more steps, so
/// its later epochs have the same counts and metrics.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EpochRecord {
    /// The epoch; 0 is the start.
    pub epoch: u64,
    /// Steps made.
    pub steps: u64,
    /// Steps accepted.
    pub accepted: u64,
    /// Steps that evaluated nothing ([`Verdict::Skipped`](strust::radius::Verdict::Skipped)).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Evaluations made.
    #[serde(flatten)]
    pub evaluations: Evaluations,
    /// The trust region in this epoch, by the keys of [`TRUST_REGION`]; empty for other methods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "numbers")]
    pub trust_region: BTreeMap<String, f64>,
    /// The metrics, measured on the full sum.
    #[serde(deserialize_with = "numbers")]
    pub metrics: BTreeMap<String, f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// All epochs up to this one are recorded.
pub(crate) const ALL_EPOCHS: u64 = 10_000;

/// Whether the end of an epoch is recorded, in a run of `last` epochs. Of every `every`-th epoch: the first 10,000, after
/// them every tenth up to 100,000, then every hundredth, and so on; and the last one. So files stay small, whatever the number
/// of epochs, and a run that is made longer has the same records.
pub(crate) fn is_recorded(epoch: u64, last: u64, every: NonZeroU64) -> bool {
    epoch == last || (epoch.is_multiple_of(every.get()) && is_sparse(epoch / every, ALL_EPOCHS))
}

/// The recorded epochs of a run, in order.
pub(crate) fn recorded_epochs(last: u64, every: NonZeroU64) -> impl Iterator<Item = u64> {
    let most = last.div_ceil(every.get());
    let places = std::iter::successors(Some(0), move |&place| {
        let next: u64 = (place < most).then(|| place + 1)?;
        Some(next.checked_next_multiple_of(stride(next, ALL_EPOCHS)).map_or(most, |next| next.min(most)))
    });
    places.map(move |place| place.saturating_mul(every.get()).min(last))
}

/// Whether an epoch is one of the first `all`, of every tenth up to 10·`all`, of every hundredth up to 100·`all`, …
pub(crate) fn is_sparse(epoch: u64, all: u64) -> bool {
    epoch.is_multiple_of(stride(epoch, all))
}

fn stride(epoch: u64, all: u64) -> u64 {
    let mut stride = 1;
    while epoch > all.saturating_mul(stride) {
        stride *= 10;
    }
    stride
}

/// A line of `timings.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The epoch.
    pub epoch: u64,
    /// Seconds spent in steps since the start.
    #[serde(deserialize_with = "numbers")]
    pub seconds: f64,
}

#[cfg(test)]
mod sparse_tests {
    use super::*;

    #[test]
    fn a_million_epochs_have_few_records() {
        let one = NonZeroU64::MIN;
        let recorded: Vec<u64> = recorded_epochs(1_000_003, one).collect();
        assert_eq!(recorded.len(), 1 + 10_000 + 9_000 + 9_000 + 1);
        assert_eq!(recorded_epochs(12, one).collect::<Vec<_>>(), (0..=12).collect::<Vec<_>>());
        assert!(recorded_epochs(u64::MAX, one).count() < 200_000);
    }

    #[test]
    fn every_nth_epoch_is_recorded_and_the_last() {
        let listed = |last, every| recorded_epochs(last, NonZeroU64::new(every).unwrap()).collect::<Vec<u64>>();
        assert_eq!(listed(12, 5), [0, 5, 10, 12]);
        assert_eq!(listed(10, 5), [0, 5, 10]);
        assert_eq!(listed(3, 5), [0, 3]);
        for (last, every) in [(1_000_003, 1), (1_000_003, 7), (100_000, 10), (7, u64::MAX)] {
            let recorded = |&epoch: &u64| is_recorded(epoch, last, NonZeroU64::new(every).unwrap());
            assert!(listed(last, every).into_iter().eq((0..=last).filter(recorded)), "{last} {every}");
        }
    }
}
