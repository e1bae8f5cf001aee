//! What to fit.

use crate::{
    constrain::WeightConstraint,
    fair::FairOptions,
    saved::ModelFamily,
    task::{RegressionChoice, TaskChoice},
};

/// The widths of the hidden layers, if the user names none.
pub const HIDDEN: &[usize] = &[100];

/// What to fit.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub struct FitOptions {
    /// The column to predict; `None` for the labels of LIBSVM text and images.
    pub target: Option<String>,
    /// The task; inferred by default.
    pub task: Option<TaskChoice>,
    /// The kind of model; by default the linear one of the task.
    pub model: Option<ModelFamily>,
    /// The widths of the hidden layers of a network.
    pub hidden: Vec<usize>,
    /// Whether to fit the linear model and a network to a part of the training rows, and to take the better one.
    pub choose_model: bool,
    /// How a number is learned.
    pub regression: RegressionChoice,
    /// The share of rows to hold out, in [0, 1). By default a fifth, and none of fewer than 200 rows, which are scored by
    /// cross-validation.
    pub test_share: Option<f64>,
    /// The seed of the split, the start and the mini-batches.
    pub seed: u64,
    /// The most epochs.
    pub epochs: Option<u64>,
    /// L in f = (1/n)(Σ loss + (L/2)‖W‖²). By default 1, and 0 for constrained regressions.
    pub l2: Option<f64>,
    /// Whether to choose L by cross-validation instead.
    pub choose_l2: bool,
    /// Whether the model has intercepts.
    pub intercept: bool,
    /// Whether features are standardized.
    pub standardize: bool,
    /// Constraints on the weights.
    pub constraint: WeightConstraint,
    /// Bounds on differences between groups, and on rates.
    pub fair: FairOptions,
    /// Columns that are no inputs, but may have the groups.
    pub leave_out: Vec<String>,
    /// Columns to keep, also if they number the rows.
    pub keep: Vec<String>,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            target: None,
            task: None,
            model: None,
            hidden: HIDDEN.to_vec(),
            choose_model: false,
            regression: RegressionChoice::default(),
            test_share: None,
            seed: 0,
            epochs: None,
            l2: None,
            choose_l2: false,
            intercept: true,
            standardize: true,
            constraint: WeightConstraint::default(),
            fair: FairOptions::default(),
            leave_out: Vec::new(),
            keep: Vec::new(),
        }
    }
}
