//! Fits with constraints on the weights, by `StrSqp` on all rows.
//!
//! A constraint holds for the weights in the units of the file: wⱼ multiplies the number in the file (or the 0 or 1 of a
//! category), and the prediction is Σwⱼvⱼ + b in the units of the target, or the logit of the second class. The model
//! computes with standardized features, so wⱼ = cⱼxⱼ with cⱼ = deviation of the target/scale of feature j.

use crate::{
    Error,
    train::{Trained, TrainingEnd, TrainingLimits, check_ranks},
    weights::Weights,
};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use strust::{
    constraints::{Affine, Bounds, Constraint, both, constraint_from_fn},
    methods::{StrSqp, StrSqpConfig},
    minimize,
    objective::Objective,
    record::StepRecord,
    stop::{Stop, StopReason},
    vector::{Elementwise, Vector},
};

/// Steps over all rows, if the user names no number.
const MOST_STEPS: u64 = 1000;
/// The largest violation of a saved model.
pub const VIOLATION: f64 = 1e-9;

/// Steps after which f is compared.
const PATIENCE: usize = 20;

/// Whether a function has settled, from its values by step: the last 20 steps changed it by less than a tolerance, relative
/// to itself. What is left are directions in which the rows say nothing.
pub(crate) fn settled(mut values: impl DoubleEndedIterator<Item = f64>, tolerance: f64) -> bool {
    let Some(now) = values.next_back() else { return false };
    values.nth_back(PATIENCE - 1).is_some_and(|earlier| (now - earlier).abs() <= tolerance * now.abs())
}

/// When a fit on all rows ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FullSumEnd {
    /// The relative tolerance of the gradient.
    pub(crate) tolerance: f64,
    /// The tolerance within which f settles, if that ends the fit, too.
    pub(crate) settled: Option<f64>,
}

impl Default for FullSumEnd {
    fn default() -> Self {
        Self { tolerance: StrSqpConfig::default().tolerance, settled: None }
    }
}

/// Constraints on the weights of a model with one output. Intercepts are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WeightConstraint {
    /// wⱼ ≥ 0.
    pub nonnegative: bool,
    /// Σwⱼ = 1.
    pub sum_to_one: bool,
    /// Σwⱼ² = 1.
    pub unit_norm: bool,
}

impl WeightConstraint {
    /// Whether there is a constraint.
    #[must_use]
    pub fn is_active(self) -> bool {
        self != Self::default()
    }

    /// How far weights in the units of the file are from satisfying the constraint.
    #[must_use]
    pub fn violation(self, weights: &[f64]) -> f64 {
        let negative = weights.iter().fold(0.0_f64, |most, w| most.max(-w));
        let sum = (weights.iter().sum::<f64>() - 1.0).abs();
        let norm = (weights.iter().map(|w| w * w).sum::<f64>().sqrt() - 1.0).abs();
        let counted = [(self.nonnegative, negative), (self.sum_to_one, sum), (self.unit_norm, norm)];
        counted.iter().filter(|(counts, _)| *counts).fold(0.0, |most, (_, violation)| most.max(*violation))
    }
}

/// Fits a linear or logistic model whose weights satisfy a constraint. `factors` are the cⱼ, and f is a function of the
/// weights of all inputs and the intercept.
pub(crate) fn constrained(
    f: &mut dyn Objective<Point = Vec<f64>>,
    constraint: WeightConstraint,
    factors: &[f64],
    end: FullSumEnd,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let size = factors.len() + 1;
    let lower: Vec<f64> =
        (0..size).map(|j| if j < size - 1 && constraint.nonnegative { 0.0 } else { f64::NEG_INFINITY }).collect();
    let mut all: HiddenConstraint<_, _> = Box::new(Bounds::new(lower, vec![f64::INFINITY; size])?);
    if constraint.sum_to_one {
        all = Box::new(both(all, Affine::new(vec![[factors, &[0.0]].concat()], vec![1.0])?)?);
    }
    if constraint.unit_norm {
        let squares: Vec<f64> = factors.iter().map(|c| c * c).chain([0.0]).collect();
        let (one, two) = (squares.clone(), squares.clone());
        let norm = constraint_from_fn(
            1,
            move |x, c| c[0] = 0.5 * (weighted(&squares, x, x) - 1.0),
            move |x, v, out| out[0] = weighted(&one, x, v),
            move |x, y, out| {
                out.iter_mut().zip(&two).zip(x).for_each(|((out, c), x)| *out += y[0] * c * x);
            },
        );
        all = Box::new(both(all, norm.with_magnitude(1.0))?);
    }
    // A start on the constraints, or near them: equal weights.
    let equal = factors.len() as f64;
    let equal = if constraint.unit_norm { equal.sqrt() } else { equal };
    let mut start: Vec<f64> = factors.iter().map(|c| 1.0 / (equal * c)).chain([0.0]).collect();
    if !constraint.sum_to_one && !constraint.unit_norm {
        start.fill(0.0);
    }
    let (terms, mut f) = (f.terms(), limits.stoppable(f));
    let mut trained = solved(&mut f, all, start, &[factors.len(), 1], terms, end, limits)?;
    polish(&mut trained.weights.flat, constraint, factors);
    Ok(trained)
}

/// Σ cⱼxⱼvⱼ.
fn weighted(c: &[f64], x: &[f64], v: &[f64]) -> f64 {
    c.iter().zip(x).zip(v).map(|((c, x), v)| c * x * v).sum()
}

/// A constraint whose type is hidden, so that the method is compiled once for each type of point.
type HiddenConstraint<V, R> = Box<dyn Constraint<Point = V, Residual = R>>;

/// Minimizes f by `StrSqp` on batches of this many terms; with all of them, f may also settle.
pub(crate) fn solved<V: Elementwise, R: Vector>(
    mut f: &mut dyn Objective<Point = V>,
    constraint: HiddenConstraint<V, R>,
    start: V,
    widths: &[usize],
    batch: usize,
    end: FullSumEnd,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let terms = f.terms();
    let method = StrSqp::new(StrSqpConfig { tolerance: end.tolerance, ..StrSqpConfig::default() }, constraint)?;
    let (mut curve, mut values, mut interrupted, mut has_settled) = (Vec::new(), Vec::new(), false, false);
    let mut now = Weights { widths: widths.to_vec(), flat: start.components() };
    let stop = Stop::epochs(limits.epochs.unwrap_or(MOST_STEPS));
    let run = minimize(&mut f).method(method).seed(limits.seed).stop(stop);
    let run = if batch == terms { run.full_batch() } else { run.batch(batch) };
    let report = run
        .observe(|record: &StepRecord, x: &V| {
            let epoch = (record.k + 1) as f64;
            values.push(record.value);
            now.flat = x.components();
            curve.extend(limits.learned(epoch, &now));
            (limits.report)(epoch, record.value);
            interrupted = (limits.interrupted)();
            let values = values.iter().copied();
            has_settled = end.settled.is_some_and(|tolerance| batch == terms && settled(values, tolerance));
            if interrupted || has_settled { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .start(start)?;
    check_ranks(report.breakdown.as_ref())?;
    let end = match report.reason {
        _ if interrupted => TrainingEnd::Interrupted,
        StopReason::Observer if has_settled => TrainingEnd::Converged,
        // Another rank was stopped.
        StopReason::Observer => TrainingEnd::Interrupted,
        _ if report.breakdown.is_some() => TrainingEnd::Breakdown,
        reason if reason.converged() => TrainingEnd::Converged,
        _ => TrainingEnd::Epochs,
    };
    let epochs = report.steps as f64 / terms.div_ceil(batch) as f64;
    let weights = Weights { widths: widths.to_vec(), flat: report.point().components() };
    Ok(Trained { weights, curve, end, epochs, batch, errors: None })
}

/// Removes the last rounding errors of one equality, in the units of the file.
fn polish(x: &mut [f64], constraint: WeightConstraint, factors: &[f64]) {
    let x = &mut x[..factors.len()];
    let raw = |x: &[f64]| -> Vec<f64> { x.iter().zip(factors).map(|(x, c)| x * c).collect() };
    match (constraint.sum_to_one, constraint.unit_norm) {
        (true, false) => {
            let w = raw(x);
            let missing = 1.0 - w.iter().sum::<f64>();
            // In proportion to the weights, so that a weight of 0 stays 0.
            let sizes: f64 = w.iter().map(|w| w.abs()).sum();
            for x in x {
                *x += x.abs() * missing / sizes;
            }
        }
        (false, true) => {
            let norm = raw(x).iter().map(|w| w * w).sum::<f64>().sqrt();
            for x in x {
                *x /= norm;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::settled;

    #[test]
    fn a_function_settles_if_twenty_steps_hardly_change_it() {
        let values: Vec<f64> = (0..100).map(|k| 1.0 + 0.5_f64.powi(k)).collect();
        let first = (0..100).find(|&k| settled(values[..=k].iter().copied(), 1e-6));
        assert_eq!(first, Some(40), "the first of 21 values differs by at most 1e-6");
        assert!(!settled(values[..20].iter().map(|_| 1.0), 1e-9), "20 values are 19 steps");
    }
}
