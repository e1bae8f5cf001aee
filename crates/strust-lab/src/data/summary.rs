//! The results of an experiment as in `summary.json`: mean, standard deviation and median over seeds.

use super::{
    benchmark::{SkippedTask, TaskSummary},
    command::CommandLine,
    diagnosis::Diagnosis,
    numbers::numbers,
    parameters::Parameters,
    section::{Check, Section},
    style::FigureStyle,
};
pub use super::{
    solution::{Solution, SolverVerdict},
    spread::Spread,
    tuning::{TriedSetting, Tuning, TuningCost},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The contents of `summary.json`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The experiment's name.
    pub experiment: String,
    /// One line for people.
    pub title: String,
    /// A paragraph for people, without Markdown.
    pub description: String,
    /// The version of strust that ran it.
    pub version: String,
    /// The command line of the run.
    pub command: CommandLine,
    /// The machine of the run.
    pub machine: Machine,
    /// Passes over the data.
    pub epochs: u64,
    /// Terms of a mini-batch.
    pub batch: u64,
    /// One entry per problem.
    pub problems: Vec<ProblemSummary>,
    /// The settings that the grid search tried and chose; absent without a grid search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tuning: Vec<Tuning>,
    /// The tasks of a benchmark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskSummary>,
    /// The tasks of a benchmark that did not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedTask>,
    /// The diagnosis of the first seed of every method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnoses: Vec<Diagnosis>,
    /// How the figures look.
    #[serde(default, skip_serializing_if = "FigureStyle::is_default")]
    pub figures: FigureStyle,
    /// The checks of all sections, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Results other than curves over epochs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<Section>,
}

/// The machine an experiment ran on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system and architecture.
    pub platform: String,
    /// The processor's name.
    pub processor: String,
    /// Its cores.
    pub cores: u64,
    /// Jobs that ran in parallel.
    pub jobs: u64,
    /// The device that networks ran on, as libtorch names it; absent without networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

impl Summary {
    /// The problems with curves over epochs, each with its position. Small problems that are solved on full batches have
    /// none.
    pub fn with_curves(&self) -> impl Iterator<Item = (usize, &ProblemSummary)> {
        self.problems.iter().enumerate().filter(|(_, problem)| !problem.metrics.is_empty())
    }
}

/// One problem and the methods that were run on it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProblemSummary {
    /// The problem's name in the experiment file.
    pub name: String,
    /// In `strust reproduce constrained`: equality, inequality, infeasible, degenerate or data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The kind of problem, for people.
    pub title: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// The quantities on the curves, in the order to show them.
    pub metrics: Vec<Metric>,
    /// One entry per method.
    pub methods: Vec<MethodSummary>,
}

/// A quantity measured after every epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its key in a [`CurvePoint`], such as `objective_gap`.
    pub key: String,
    /// Its name for people, such as `objective gap f(W) − f*`.
    pub label: String,
    /// Whether it is drawn on a logarithmic axis.
    pub log: bool,
}

/// Whether large values of a metric are good: those of an accuracy. All others are errors or losses.
#[must_use]
pub fn higher_is_better(metric: &str) -> bool {
    metric.ends_with("accuracy")
}

/// One method on one problem.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MethodSummary {
    /// The method's name, such as `str-p`.
    pub name: String,
    /// Its label in a figure: the name, with the settings that differ from other entries of the method.
    pub label: String,
    /// All of its hyperparameters, defaults included.
    pub hyperparameters: Parameters,
    /// The seeds that finished.
    pub seeds: Vec<u64>,
    /// One entry per epoch, from 0 (the start).
    pub curve: Vec<CurvePoint>,
    /// The last entry of the curve; absent if no seed finished.
    #[serde(rename = "final")]
    pub last: Option<CurvePoint>,
    /// Share of steps that were accepted, over all seeds.
    #[serde(deserialize_with = "numbers")]
    pub acceptance_rate: f64,
    /// For a trust-region method: the quantities of [`TRUST_REGION`](super::record::TRUST_REGION) in each epoch.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trust_region: BTreeMap<String, Vec<Spread>>,
    /// The seeds that did not finish, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// In `strust reproduce constrained`: how it ended.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub solution: Option<Solution>,
}

/// A failed run, usually by divergence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The error.
    pub error: String,
}

/// All seeds of a method after an epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Passes over the data so far.
    pub epoch: u64,
    /// Seconds spent in steps so far, without measurements.
    pub seconds: Spread,
    /// Mini-batch evaluations so far, mean over seeds.
    pub evaluations: MeanEvaluations,
    /// The metrics by key.
    #[serde(flatten)]
    pub metrics: BTreeMap<String, Spread>,
}

/// Evaluations so far, mean over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeanEvaluations {
    /// Values without a gradient.
    #[serde(deserialize_with = "numbers")]
    pub values: f64,
    /// Values with gradient.
    #[serde(deserialize_with = "numbers")]
    pub gradients: f64,
    /// Products with a curvature matrix.
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "numbers")]
    pub products: f64,
}

impl MeanEvaluations {
    /// The price in forward passes: one for a value, three for a gradient, because a backward pass costs as much as two
    /// forward passes, and four for a product.
    #[must_use]
    pub fn price(&self) -> f64 {
        self.values + 3.0 * self.gradients + 4.0 * self.products
    }

    /// Forward and backward passes: one for a value, two for a gradient, four for a product.
    #[must_use]
    pub fn passes(&self) -> f64 {
        self.values + 2.0 * self.gradients + 4.0 * self.products
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &f64) -> bool {
    *count == 0.0
}
