//! The lines of `records.jsonl` and `timings.jsonl`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

/// The state of a run at the end of an epoch. Counts are since the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// The epoch; 0 is the start.
    pub epoch: u64,
    /// Steps made.
    pub steps: u64,
    /// Steps accepted.
    pub accepted: u64,
    /// Evaluations made.
    #[serde(flatten)]
    pub evaluations: Evaluations,
    /// The trust region in this epoch, by the keys of [`TRUST_REGION`]; empty for other methods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trust_region: BTreeMap<String, f64>,
    /// The metrics, measured on the full sum.
    pub metrics: BTreeMap<String, f64>,
}

/// A line of `timings.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The epoch.
    pub epoch: u64,
    /// Seconds spent in steps since the start.
    pub seconds: f64,
}
