//! The diagnosis that `strust diagnose` and the report show.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The diagnosis of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The problem's name in the experiment.
    pub problem: String,
    /// The method's label.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// Whether the job is finished, is running or stopped, or failed.
    pub state: String,
    /// The findings.
    pub findings: Vec<Finding>,
    /// What to change; empty if there is nothing to change.
    pub advice: Vec<String>,
}

/// A sentence, and the numbers behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The topic, in a word or two.
    pub about: String,
    /// The sentence.
    pub text: String,
    /// Its finite numbers by name.
    pub numbers: BTreeMap<String, f64>,
}
