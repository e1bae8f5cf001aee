//! The record of a step.

use crate::{
    models::Exit,
    objective::Evaluations,
    radius::{Change, Verdict},
};

/// One step of any method. Fields that do not apply to the method are absent. A number that is not finite is null in
/// JSON, and NaN when it is read, or absent where it may be absent.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StepRecord {
    /// The step's number, from 0.
    pub k: u64,
    /// The function that the method minimizes, on the sample of the step, at the point before the step.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "number_or_nan"))]
    pub value: f64,
    /// The norm of its gradient at this point.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "number_or_nan"))]
    pub gradient_norm: f64,
    /// The factor of the direction: a for STR, the learning rate for SGD, the step size found by a line search.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "number_or_nan"))]
    pub step_size: f64,
    /// ‖p‖ of the proposed step.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "number_or_nan"))]
    pub step_length: f64,
    /// Whether the step was accepted.
    pub verdict: Verdict,
    /// Data of the trust region.
    #[cfg_attr(feature = "serde", serde(flatten, skip_serializing_if = "Option::is_none"))]
    pub region: Option<RegionRecord>,
    /// ‖c‖ at the point before the step.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub constraint_norm: Option<f64>,
    /// Mini-batch evaluations of f made by this step.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub evaluations: Evaluations,
}

/// Reads null as NaN: JSON has no NaN and no infinity, and both are written as null. Every number of a record needs it.
#[cfg(feature = "serde")]
fn number_or_nan<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let number: Option<f64> = serde::Deserialize::deserialize(from)?;
    Ok(number.unwrap_or(f64::NAN))
}

impl StepRecord {
    /// The record of a step without a test: always accepted, with one gradient.
    #[must_use]
    pub fn plain(k: u64, value: f64, gradient_norm: f64, step_size: f64, step_length: f64) -> Self {
        Self {
            k,
            value,
            gradient_norm,
            step_size,
            step_length,
            verdict: Verdict::Accepted,
            region: None,
            constraint_norm: None,
            evaluations: Evaluations { values: 0, gradients: 1, products: 0 },
        }
    }

    /// The record of a step that evaluated nothing ([`Verdict::Skipped`]). Its value and its gradient are NaN, so a
    /// comparison with them is false.
    #[must_use]
    pub fn skipped(k: u64) -> Self {
        let (verdict, evaluations) = (Verdict::Skipped, Evaluations::default());
        Self { verdict, evaluations, ..Self::plain(k, f64::NAN, f64::NAN, 0.0, 0.0) }
    }
}

/// The data of the trust region in a [`StepRecord`].
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RegionRecord {
    /// The radius of the step.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "number_or_nan"))]
    pub radius: f64,
    /// What bounded the step.
    pub exit: Exit,
    /// The value at the trial point; absent if it was not finite or if there was no trial.
    pub trial: Option<f64>,
    /// The predicted reduction.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "number_or_nan"))]
    pub predicted: f64,
    /// Actual over predicted reduction; absent if the trial value was not finite or if there was no trial.
    pub ratio: Option<f64>,
    /// What happened to the radius.
    pub change: Change,
}
