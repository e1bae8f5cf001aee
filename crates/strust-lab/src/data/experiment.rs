//! An experiment as data: which problems, which methods, how many epochs, which seeds.

use super::parameters::Parameters;
use serde::{Deserialize, Serialize};

/// An experiment with every list expanded and every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Its name, also that of the folder of results.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// A paragraph for people.
    pub description: String,
    /// Passes over the data.
    pub epochs: u64,
    /// Terms of a mini-batch.
    pub batch: u64,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// How mini-batches are drawn.
    pub sampling: Sampling,
    /// What is recorded.
    pub records: Records,
    /// The problems.
    pub problems: Vec<ProblemSpec>,
    /// The methods.
    pub methods: Vec<MethodSpec>,
    /// How the best setting of each method is chosen; absent if all settings are run.
    pub tune: Option<Tune>,
}

/// How mini-batches are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampling {
    /// Passes over a fresh permutation.
    #[default]
    Epochs,
    /// Independently, with replacement.
    Replacement,
}

/// What `records.jsonl` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Records {
    /// Every step and every epoch.
    #[default]
    Steps,
    /// Every epoch.
    Epochs,
}

/// A problem of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProblemSpec {
    /// Its name in this experiment.
    pub name: String,
    /// Which problem.
    pub kind: String,
    /// Its parameters, defaults included.
    pub parameters: Parameters,
    /// The checksum of its data file, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

/// A method of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MethodSpec {
    /// Which method.
    pub name: String,
    /// The name, with the settings in which it differs from the others.
    pub label: String,
    /// Its hyperparameters, defaults included.
    pub hyperparameters: Parameters,
    /// The hyperparameters that the grid varies.
    pub varied: Vec<String>,
}

/// A grid search: short runs of every setting, then a full run of the best.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tune {
    /// The metric to make small: its median over the tuning seeds at the end decides.
    pub metric: String,
    /// Epochs of a tuning run.
    pub epochs: u64,
    /// Number of tuning seeds; they differ from those of the experiment.
    pub seeds: u64,
}

impl Tune {
    /// The tuning seeds: far from those of the experiment, so that nothing is tuned on what is reported.
    pub fn seed_list(&self) -> impl Iterator<Item = u64> {
        MAX_SEEDS..MAX_SEEDS + self.seeds
    }
}

/// Seeds of an experiment, and how many of them, stay below this; those of a grid search begin here.
pub const MAX_SEEDS: u64 = 1_000_000;
/// Jobs of an experiment, and settings of a list of lists, at most: a folder is made for each.
pub const MAX_JOBS: usize = 100_000;
/// More epochs than any run can make, and few enough that the number of steps does not overflow.
pub const MAX_EPOCHS: u64 = 1_000_000_000;
