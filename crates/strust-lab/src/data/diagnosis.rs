//! The diagnosis that `strust diagnose` and the report show.

use super::{command::CommandLine, numbers::numbers};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// The diagnosis of one job: the verdict, the evidence, and one change.
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
    /// The verdict; absent before the first epoch, and in results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<RunVerdict>,
    /// The reason for the verdict, in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The findings.
    pub findings: Vec<Finding>,
    /// What to change; absent if there is nothing to change, or if no setting helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// The advice of older versions, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
}

impl Diagnosis {
    /// The last sentence of the text, if there is no change to name.
    #[must_use]
    pub fn outlook(&self) -> Option<&'static str> {
        match (&self.remedy, self.verdict?) {
            (Some(_), _) => None,
            (None, RunVerdict::Converged) => Some("Nothing to change."),
            (None, RunVerdict::StillImproving | RunVerdict::TooEarly) => {
                Some("Nothing to change yet: let the run finish.")
            }
            (None, _) => Some("No setting of this experiment is known to help: look at the data and the problem."),
        }
    }
}

/// How a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunVerdict {
    /// What remains is at most a thousandth of the start, and the constraint is satisfied.
    Converged,
    /// It reaches this with at most ten times the epochs.
    StillImproving,
    /// It moves, but would need more epochs than that.
    TooSlow,
    /// It no longer falls, and more than a thousandth remains.
    Stuck,
    /// It bounces, or moves away.
    Unstable,
    /// The constraint is violated, and this does not improve in time.
    Infeasible,
    /// It fits the training set far better than the test set.
    Overfits,
    /// It has too few epochs to show a trend.
    TooEarly,
    /// What remains cannot be measured.
    Unclear,
    /// It ended with an error.
    BrokeDown,
}

words! {
    RunVerdict: Converged = "converged", StillImproving = "still improving", TooSlow = "too slow", Stuck = "stuck",
    Unstable = "unstable", Infeasible = "infeasible", Overfits = "overfits", TooEarly = "too early", Unclear = "unclear",
    BrokeDown = "broke down",
}

impl fmt::Display for RunVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// One change that the program can carry out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// The settings, as `--set` takes them.
    pub set: Vec<String>,
    /// The command with these settings.
    pub command: CommandLine,
    /// Why this change.
    pub reason: String,
    /// What it will do.
    pub effect: String,
}

/// A sentence, and the numbers behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The topic, in a word or two.
    pub about: String,
    /// The sentence.
    pub text: String,
    /// Its finite numbers by name.
    #[serde(deserialize_with = "numbers")]
    pub numbers: BTreeMap<String, f64>,
}

impl Finding {
    /// A sentence with its numbers; those that are not finite are left out.
    pub(crate) fn new(about: &str, text: impl Into<String>, numbers: &[(&str, f64)]) -> Self {
        let numbers = numbers.iter().filter(|(_, value)| value.is_finite());
        let numbers = numbers.map(|(name, value)| ((*name).to_string(), *value)).collect();
        Self { about: about.into(), text: text.into(), numbers }
    }
}
