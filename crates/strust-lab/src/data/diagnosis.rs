//! What `strust diagnose` and the report say about a run.

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
    /// Whether the job is finished, is running or was stopped, or broke down.
    pub state: String,
    /// What was found.
    pub findings: Vec<Finding>,
    /// What to change; empty if nothing.
    pub advice: Vec<String>,
}

/// A sentence, and the numbers behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The topic, in a word or two.
    pub about: String,
    /// The sentence.
    pub text: String,
    /// Its numbers by name; numbers that are not finite are absent.
    pub numbers: BTreeMap<String, f64>,
}
