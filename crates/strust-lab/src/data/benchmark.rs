//! The results of a benchmark in `summary.json`: a method without tuning beside tuned ones, on each task.

use super::{numbers::numbers, parameters::Parameters, spread::Spread, tuning::TriedSetting};
use serde::{Deserialize, Serialize};

/// The development half may guide the design of a method; the test half only judges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Half {
    /// For design.
    Development,
    /// For judgment.
    Test,
}

words!(Half: Development = "development", Test = "test");

/// How a method takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The method that the benchmark judges, with its defaults.
    Tested,
    /// A baseline whose rate is chosen for each task.
    Tuned,
    /// A baseline with its defaults.
    Untuned,
}

words!(Role: Tested = "tested", Tuned = "tuned", Untuned = "untuned");

/// What the methods of a task are judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Judge {
    /// The final objective.
    #[default]
    Objective,
    /// The steps to 1e-3 of the objective at the start, and the test metric. For a loss that has no minimum: the final
    /// objective then only depends on how far a method goes.
    Steps,
}

words!(Judge: Objective = "objective", Steps = "steps");

impl Judge {
    /// A number in a table, with its unit.
    #[must_use]
    pub fn with_unit(self, number: String) -> String {
        match self {
            Self::Objective => number,
            Self::Steps => number + " steps",
        }
    }
}

/// A task that does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedTask {
    /// Its name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Its half of the tasks.
    pub half: Half,
    /// What is missing, and how to get it.
    pub why: String,
}

/// The results of a task.
///
/// Values are objectives at the end, medians over seeds, or, on a task that is judged by them, the steps to 1e-3 of the
/// start; a failed seed counts as infinite. An infinite or unknown number is absent. In ratios, values below 1e-28 of the start count as 1e-28 of the start: they are zero up to rounding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskSummary {
    /// Its name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Its half of the tasks.
    pub half: Half,
    /// The kind of problem and its parameters.
    pub problem: String,
    /// What the methods are judged by.
    #[serde(default)]
    pub judge: Judge,
    /// Passes over the data.
    pub epochs: u64,
    /// Terms of a mini-batch.
    pub batch: u64,
    /// Steps of a run.
    pub steps: u64,
    /// The objective at the start.
    #[serde(deserialize_with = "numbers")]
    pub start: f64,
    /// The best tuned baseline; absent if all of them failed.
    pub best_tuned: Option<BestTuned>,
    /// The value of the method under test.
    #[serde(rename = "auto")]
    pub tested: Option<f64>,
    /// That over the value of the best tuned baseline.
    pub ratio: Option<f64>,
    /// Steps of the method under test to the best tuned value, over the steps of the best tuned baseline to it.
    pub steps_ratio: Option<f64>,
    /// Whether steps count as well as the value: the best tuned value is below 1e-6 of the start, or it is steps.
    pub to_zero: bool,
    /// Whether the ratio is at most 1.05, or, if the loss goes to zero, the ratio of steps at most 1.1. On a task that is
    /// judged by steps, the test metric must hold, too.
    pub within: bool,
    /// The same with 1.15 in place of 1.05.
    pub nearly_within: bool,
    /// The objective of the method under test after as many passes as the best tuned baseline used, over that
    /// baseline's.
    pub ratio_at_equal_passes: Option<f64>,
    /// The results on test data; absent without them.
    pub test: Option<TestComparison>,
    /// The cost of a step of the method under test, in steps of SGD; a backward pass counts as two forward passes.
    pub price: Option<f64>,
    /// All methods.
    pub methods: Vec<EntrantSummary>,
    /// The method under test with one constant changed.
    pub variations: Vec<VariationSummary>,
}

/// The best tuned baseline of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BestTuned {
    /// Its value.
    #[serde(deserialize_with = "numbers")]
    pub value: f64,
    /// Its label.
    pub method: String,
    /// Its chosen setting.
    pub setting: Parameters,
}

/// The method under test beside the best tuned baseline, on test data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestComparison {
    /// The key of the metric.
    pub metric: String,
    /// The method under test.
    #[serde(rename = "auto")]
    pub tested: Spread,
    /// The best tuned baseline.
    pub best_tuned: Spread,
    /// Whether the mean of the method under test is worse by at most one standard deviation (the root mean square of both).
    pub holds: bool,
}

/// The results of a method on a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntrantSummary {
    /// Its label.
    pub label: String,
    /// How it took part.
    pub role: Role,
    /// The setting of the runs: all that differs from the defaults. Absent if every setting of the grid failed.
    pub setting: Option<Parameters>,
    /// Its value.
    pub value: Option<f64>,
    /// That over the best tuned value.
    pub ratio: Option<f64>,
    /// Steps to the best tuned value, over those of the best tuned baseline.
    pub steps_ratio: Option<f64>,
    /// The cost of a step in steps of SGD.
    pub price: Option<f64>,
    /// The final test metric.
    pub test: Option<Spread>,
    /// Seeds that failed.
    pub failed: u64,
    /// Whether the chosen rate is the smallest or the largest of the grid.
    pub at_edge: bool,
    /// The grid search, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedSetting>,
}

/// The result of a variation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariationSummary {
    /// The constant.
    pub parameter: String,
    /// Its default.
    #[serde(deserialize_with = "numbers")]
    pub default: f64,
    /// Its value.
    #[serde(deserialize_with = "numbers")]
    pub setting: f64,
    /// The value of the method.
    pub value: Option<f64>,
    /// That over the best tuned value.
    pub ratio: Option<f64>,
    /// Whether it is [within](TaskSummary::within) the goal.
    pub within: bool,
}
