//! An experiment as data: problems, methods, epochs and seeds.

use super::{parameters::Parameters, style::FigureStyle};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// An experiment with every list expanded and every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Its name, also the name of the results folder.
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
    /// Which records are written.
    pub records: Records,
    /// The metrics are measured, and an epoch recorded, at every so many epochs, and at the last one.
    #[serde(default = "every_epoch", skip_serializing_if = "is_every_epoch")]
    pub measure_every: NonZeroU64,
    /// The problems.
    pub problems: Vec<ProblemSpec>,
    /// The methods.
    pub methods: Vec<MethodSpec>,
    /// How the best setting of each method is chosen; absent if all settings are run.
    pub tune: Option<Tune>,
    /// The passes of the first run, if it was lengthened since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_epochs: Option<u64>,
    /// What several ranks share out.
    #[serde(default, skip_serializing_if = "Parallel::is_default")]
    pub parallel: Parallel,
    /// Terms of a block, if sums are added in a fixed order: then records do not depend on the number of ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// How the figures look.
    #[serde(default, skip_serializing_if = "FigureStyle::is_default")]
    pub figures: FigureStyle,
}

fn every_epoch() -> NonZeroU64 {
    NonZeroU64::MIN
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_every_epoch(every: &NonZeroU64) -> bool {
    *every == every_epoch()
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

/// What the ranks of a program that runs under MPI share out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parallel {
    /// The jobs: each runs on one rank.
    #[default]
    Jobs,
    /// The terms of every mini-batch: each job runs on all ranks.
    Data,
}

impl Parallel {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The contents of `records.jsonl`.
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
    /// The name of the problem in the registry.
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
    /// The name of the method in the registry.
    pub name: String,
    /// The name, with the settings that differ from other entries of the method.
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
    /// The metric to minimize: its median over the tuning seeds at the end decides.
    pub metric: String,
    /// Epochs of a tuning run.
    pub epochs: u64,
    /// Number of tuning seeds; they differ from those of the experiment.
    pub seeds: u64,
}

impl Tune {
    /// The tuning seeds. They differ from the seeds of the experiment, so that the reported runs are not used for tuning.
    pub fn seed_list(&self) -> impl Iterator<Item = u64> {
        MAX_SEEDS..MAX_SEEDS + self.seeds
    }
}

/// The seeds of an experiment and their number are below this. The tuning seeds start here.
pub const MAX_SEEDS: u64 = 1_000_000;
/// The maximum number of jobs of an experiment, and of settings in a grid. Each job has a folder.
pub const MAX_JOBS: usize = 100_000;
/// The maximum number of epochs. It prevents an overflow of the number of steps.
pub const MAX_EPOCHS: u64 = 1_000_000_000;
