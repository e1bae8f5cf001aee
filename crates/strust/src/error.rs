//! Errors: what happened, where, and how to fix it.

use crate::sample::Draws;

/// An error of this crate. A run that uses up its budget is not an error: see [`StopReason`](crate::stop::StopReason).
///
/// [`Self::kind`] groups errors by cause.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A configuration value is outside its range.
    #[error("{owner}: `{field}` is {value}, but must be {allowed}")]
    OutOfRange {
        /// The method, sampler or problem.
        owner: &'static str,
        /// The configuration field.
        field: &'static str,
        /// The given value.
        value: String,
        /// The allowed values, in words.
        allowed: String,
    },
    /// A point, a residual or a matrix has the wrong shape.
    #[error("{place}: expected shape {expected:?}, found {found:?}")]
    Shape {
        /// Where the mismatch was found.
        place: &'static str,
        /// The expected shape.
        expected: Vec<usize>,
        /// The given shape.
        found: Vec<usize>,
    },
    /// The numbers of terms of the sampler and of the objective differ.
    #[error(
        "the sampler draws from {sampler} terms, but the objective has {objective}: create the sampler with \
         `Epochs::over(&f)`, or pass the objective's number of terms"
    )]
    Terms {
        /// Terms of the sampler.
        sampler: usize,
        /// Terms of the objective.
        objective: usize,
    },
    /// The equations of a constraint are linearly dependent.
    #[error("{set}: {why}")]
    DependentRows {
        /// The constraint set.
        set: &'static str,
        /// What is dependent, and what to do.
        why: String,
    },
    /// A saved state, or a vector in it, does not match the type it is loaded into.
    #[error("saved state: {0}")]
    Saved(String),
    /// A sampler draws in another way than the objective assumes.
    #[error("the sampler draws {sampler} terms, but the objective assumes {objective} terms: use the same way in both")]
    Draws {
        /// How the sampler draws.
        sampler: Draws,
        /// How the objective assumes that it draws.
        objective: Draws,
    },
    /// A sampler drew a sample that does not fit the objective.
    #[error("sample {k}: {why}")]
    Sample {
        /// The number of the sample.
        k: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The start cannot be used.
    #[error("start: {why}")]
    Start {
        /// The reason.
        why: String,
    },
    /// The objective is NaN or infinite at the start.
    #[error("the objective is {value} at the start: check the start and the data for NaN, infinity and overflow")]
    NonFiniteStart {
        /// The value.
        value: f64,
    },
    /// The objective is NaN or infinite at a point that was accepted.
    #[error(
        "step {step}: the objective is {value} at the current point. A trial point would have been \
         rejected, but this one was accepted or is the start: check the start and the data for NaN, \
         infinity and overflow"
    )]
    NonFiniteValue {
        /// The step at which it happened.
        step: u64,
        /// The value.
        value: f64,
    },
    /// The gradient is NaN or infinite at a point that was accepted.
    #[error(
        "step {step}: the gradient norm is {norm} at the current point although the objective is \
         finite: check the derivative, and the scale of the data for overflow"
    )]
    NonFiniteGradient {
        /// The step at which it happened.
        step: u64,
        /// The norm.
        norm: f64,
    },
    /// The gradient is so large or so small that its square is no number.
    #[error(
        "step {step}: the gradient norm is {norm:.1e}, and its square {}: multiply the objective, or scale its data, \
         so that gradients are nearer to 1",
        if *norm < 1.0 { "underflows to 0" } else { "overflows" }
    )]
    GradientScale {
        /// The step at which it happened.
        step: u64,
        /// The norm.
        norm: f64,
    },
    /// A product with the matrix of a second-order model is NaN or infinite.
    #[error(
        "step {step}: the curvature of the model along the gradient is {curvature} although the gradient is finite: \
         check the products with the Hessian or the Gauss–Newton matrix, and the scale of the data for overflow"
    )]
    NonFiniteCurvature {
        /// The step at which it happened.
        step: u64,
        /// The curvature.
        curvature: f64,
    },
    /// A product with the Jacobian of a constraint is NaN or infinite.
    #[error(
        "step {step}: the curvature of the penalty along the gradient is {curvature}: check the constraint's \
         Jacobian-vector product, and the scale of the constraint for overflow"
    )]
    NonFiniteJacobian {
        /// The step at which it happened.
        step: u64,
        /// The curvature.
        curvature: f64,
    },
    /// The step of a penalty method is too long for its penalty.
    #[error(
        "step {step}: {method} diverged. With a penalty of {penalty:.3e} its learning rate of {rate:.3e} is too long: use \
         a smaller learning_rate, penalty or growth, or a method that chooses both itself (StrSqp)"
    )]
    PenaltyTooLarge {
        /// The step at which it happened.
        step: u64,
        /// The method.
        method: &'static str,
        /// μ.
        penalty: f64,
        /// η.
        rate: f64,
    },
    /// A point cannot be moved back onto a constraint set.
    #[error("{set}: {why}")]
    Retraction {
        /// The set.
        set: &'static str,
        /// What failed.
        why: String,
    },
    /// The ranks of a run cannot go on together.
    #[error("rank {}: {why}", list(ranks))]
    Ranks {
        /// The ranks that caused it.
        ranks: Vec<usize>,
        /// What they did.
        why: String,
    },
    /// The caller stopped the run while it was measured: see [`Stoppable`](crate::objective::Stoppable).
    #[error("stopped")]
    Stopped,
    /// A matrix decomposition did not converge.
    #[error("{what} did not converge: {fix}")]
    Decomposition {
        /// The decomposition and its matrix.
        what: &'static str,
        /// What to do.
        fix: &'static str,
    },
}

/// Numbers with commas between them.
fn list(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What kind of failure an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The setup is wrong, and no step was made. Examples: a value out of range, a wrong shape or number of terms, or a
    /// start where the objective is not finite.
    Setup,
    /// The run broke down, usually because it diverged. Either a value is not finite at an accepted point, or a step is
    /// so long that its point cannot be moved back onto the constraint set.
    Breakdown,
    /// A numerical routine failed, such as an eigenvalue decomposition that did not converge.
    Numerical,
    /// Another thread or process of the run failed, stalled or came to another result.
    Ranks,
    /// The caller stopped the run.
    Stopped,
}

impl Error {
    /// The kind of this error.
    ///
    /// ```
    /// use strust::{constraints::Affine, prelude::*, Error, ErrorKind};
    /// let rows = vec![vec![1.0, 1.0], vec![2.0, 2.0]];
    /// assert_eq!(Affine::new(rows, vec![1.0, 2.0]).unwrap_err().kind(), ErrorKind::Setup);
    /// assert_eq!(Error::NonFiniteValue { step: 3, value: f64::NAN }.kind(), ErrorKind::Breakdown);
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::OutOfRange { .. }
            | Self::Shape { .. }
            | Self::Terms { .. }
            | Self::Draws { .. }
            | Self::Sample { .. }
            | Self::Start { .. }
            | Self::DependentRows { .. }
            | Self::Saved(_)
            | Self::NonFiniteStart { .. } => ErrorKind::Setup,
            Self::NonFiniteValue { .. }
            | Self::NonFiniteGradient { .. }
            | Self::GradientScale { .. }
            | Self::NonFiniteCurvature { .. }
            | Self::NonFiniteJacobian { .. }
            | Self::PenaltyTooLarge { .. }
            | Self::Retraction { .. } => ErrorKind::Breakdown,
            Self::Decomposition { .. } => ErrorKind::Numerical,
            Self::Ranks { .. } => ErrorKind::Ranks,
            Self::Stopped => ErrorKind::Stopped,
        }
    }
}
