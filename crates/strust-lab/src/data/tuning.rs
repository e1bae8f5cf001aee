//! The results of a grid search.

use super::{numbers::numbers, parameters::Parameters};
use serde::{Deserialize, Serialize};

/// The settings tried and chosen for one method on one problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// The problem.
    pub problem: String,
    /// The method.
    pub method: String,
    /// The key of the metric that decides, and the number of epochs.
    pub metric: String,
    /// Settings tried, best first.
    pub tried: Vec<TriedSetting>,
    /// The cost in runs, evaluations and seconds.
    pub cost: TuningCost,
}

/// One setting of a grid search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriedSetting {
    /// The parameters that the grid varies.
    pub setting: Parameters,
    /// The median of the metric over seeds at the end; absent if a seed failed.
    pub score: Option<f64>,
}

/// The cost of a grid search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TuningCost {
    /// The number of runs: settings times seeds.
    pub runs: u64,
    /// The number of failed runs. Their cost is not counted below.
    pub failed: u64,
    /// Gradient evaluations.
    pub gradients: u64,
    /// Values without a gradient.
    pub values: u64,
    /// Seconds.
    #[serde(deserialize_with = "numbers")]
    pub seconds: f64,
}
