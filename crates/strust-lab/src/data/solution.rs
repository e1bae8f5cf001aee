//! The result of a solver on a constrained problem.

use serde::{Deserialize, Serialize};

/// How a solver ended on a constrained problem, and how good its point is. A number that is unknown is null.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Solution {
    /// Whether f is the known optimum to 1e-6, relative to max(1, |f*|), and no constraint is violated by more than 1e-6.
    /// For an infeasible problem: whether the verdict is right.
    pub solved: bool,
    /// What the solver reported.
    pub verdict: SolverVerdict,
    /// Gradients of f; the median over seeds on mini-batches.
    pub gradients: u64,
    /// |f − f*|, relative to max(1, |f*|); on mini-batches the median of |f − f*| over seeds.
    pub objective_error: Option<f64>,
    /// The largest violation of a row or a bound; on mini-batches the median of ‖c‖ over seeds.
    pub constraint_norm: Option<f64>,
    /// The KKT residual: the largest of ‖∇f + Jᵀy + z‖, the violation, wrong signs of multipliers and complementarity.
    pub kkt: Option<f64>,
}

/// What a solver reported about a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SolverVerdict {
    /// A KKT point.
    Converged,
    /// The constraints contradict each other.
    Infeasible,
    /// A feasible point without multipliers.
    NoQualification,
    /// No more progress.
    Stalled,
    /// The budget is used up.
    Budget,
    /// Something was not finite, or the solver failed.
    BrokeDown,
}

words! {
    SolverVerdict: Converged = "converged", Infeasible = "infeasible", NoQualification = "no qualification",
    Stalled = "stalled", Budget = "budget", BrokeDown = "broke down",
}
