//! Everything that can go wrong: what, where, and how to mend it.

/// An error of this crate. Running out of budget is not one: see [`StopReason`](crate::stop::StopReason).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A configuration value lies outside its range.
    #[error("{owner}: `{field}` is {value}, but must be {allowed}")]
    OutOfRange {
        /// The method, sampler or problem that was configured.
        owner: &'static str,
        /// The configuration field.
        field: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are allowed, in words.
        allowed: String,
    },
    /// A point, a residual or a matrix has the wrong shape.
    #[error("{place}: expected shape {expected:?}, found {found:?}")]
    Shape {
        /// Where the mismatch was seen.
        place: &'static str,
        /// The shape that fits.
        expected: Vec<usize>,
        /// The shape that was given.
        found: Vec<usize>,
    },
    /// The objective is NaN or infinite at a point that was accepted.
    #[error(
        "step {step}: the objective is {value} at the current point. A trial point would have been \
         rejected, but this one was accepted or is the start: check the start and the data for NaN, \
         infinity and overflow"
    )]
    NonFiniteValue {
        /// The step at which it was seen.
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
        /// The step at which it was seen.
        step: u64,
        /// The norm.
        norm: f64,
    },
    /// The model's curvature along the gradient is NaN or infinite.
    #[error(
        "step {step}: the model curvature along the gradient is {curvature}: check the constraint's Jacobian-vector product"
    )]
    NonFiniteCurvature {
        /// The step at which it was seen.
        step: u64,
        /// The curvature.
        curvature: f64,
    },
    /// A point cannot be brought back onto a constraint set.
    #[error("{set}: {why}")]
    Retraction {
        /// The set.
        set: &'static str,
        /// What failed.
        why: String,
    },
    /// A saved vector does not fit the type it is loaded into.
    #[error("saved vector: {0}")]
    Saved(String),
}

impl Error {
    /// Whether a run broke down on the way, by divergence as a rule, rather than being set up wrongly.
    #[must_use]
    pub fn is_breakdown(&self) -> bool {
        matches!(
            self,
            Self::NonFiniteValue { .. }
                | Self::NonFiniteGradient { .. }
                | Self::NonFiniteCurvature { .. }
                | Self::Retraction { .. }
        )
    }
}
