//! Totals of a running job.

use super::record::is_zero;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strust::{objective::Evaluations, radius::Verdict, record::StepRecord};

/// Totals of a job so far.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Evaluations.
    pub evaluations: Evaluations,
    /// Accepted steps.
    pub accepted: u64,
    /// Steps that evaluated nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// The last epoch that was recorded, if the method has settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<u64>,
    /// Seconds spent in steps.
    pub seconds: f64,
    /// The trust region in the current epoch.
    pub epoch: EpochTotals,
}

/// Sums over the steps of a trust region since the end of the last epoch.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct EpochTotals {
    steps: u64,
    accepted: u64,
    radius: f64,
    step_length: f64,
    ratio: f64,
    ratios: u64,
}

impl EpochTotals {
    /// Counts a step of a trust-region method; steps of other methods are ignored.
    pub fn add(&mut self, record: &StepRecord) {
        let Some(region) = &record.region else { return };
        self.steps += 1;
        self.accepted += u64::from(record.verdict == Verdict::Accepted);
        self.radius = region.radius;
        self.step_length += record.step_length;
        if let Some(ratio) = region.ratio {
            self.ratio += ratio;
            self.ratios += 1;
        }
    }

    /// The epoch's numbers by the keys of [`TRUST_REGION`](super::record::TRUST_REGION); empty without steps.
    pub fn numbers(&self) -> BTreeMap<String, f64> {
        let steps = self.steps as f64;
        let numbers = [
            ("radius", (self.steps > 0).then_some(self.radius)),
            ("step_length", (self.steps > 0).then_some(self.step_length / steps)),
            ("ratio", (self.ratios > 0).then_some(self.ratio / self.ratios as f64)),
            ("acceptance", (self.steps > 0).then_some(self.accepted as f64 / steps)),
        ];
        numbers.into_iter().filter_map(|(key, number)| Some((key.to_string(), number?))).collect()
    }
}
