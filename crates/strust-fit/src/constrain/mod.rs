//! Fits with constraints on the weights, by `StrSqp` on all rows.
//!
//! A constraint holds for the weights in the units of the file: wⱼ multiplies the number in the file (or the 0 or 1 of a
//! category), and the prediction is Σwⱼvⱼ + b in the units of the target, or the logit of the second class. The model
//! computes with standardized features, so wⱼ = cⱼxⱼ with cⱼ = deviation of the target/scale of feature j.

mod rules;
mod set;

pub(crate) use rules::{WeightRule, input_names, numbered};

use crate::{
    Error,
    train::{Trained, TrainingEnd, TrainingLimits, check_ranks},
    weights::Weights,
};
use serde::{Deserialize, Serialize};
use set::WeightSet;
use std::ops::ControlFlow;
use strust::{
    constraints::Constraint,
    methods::{StrSqp, StrSqpConfig, StrSqpState},
    minimize,
    objective::{Objective, from_terms},
    record::StepRecord,
    run::Report,
    stop::{Stop, StopReason},
    vector::{Elementwise, Vector},
};

/// Steps over all rows, if the user names no number.
const MOST_STEPS: u64 = 1000;
/// Constraints whose cost is computed: each takes another fit.
const MOST_COSTS: usize = 10;
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WeightConstraint {
    /// wⱼ ≥ 0.
    pub nonnegative: bool,
    /// Σwⱼ = 1.
    pub sum_to_one: bool,
    /// Σwⱼ² = 1.
    pub unit_norm: bool,
    /// Rules such as `age >= 0`, `0 <= age <= 1` and `2*age - 0.5*hours <= 3`, with the names of columns or inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

impl WeightConstraint {
    /// Whether there is a constraint.
    #[must_use]
    pub fn is_active(&self) -> bool {
        *self != Self::default()
    }

    /// How far weights in the units of the file are from satisfying the constraint, apart from its named rules.
    #[must_use]
    pub fn violation(&self, weights: &[f64]) -> f64 {
        let unnamed = Self { rules: Vec::new(), ..self.clone() };
        let rules = WeightRule::all(&unnamed, &numbered(weights.len())).expect("there is no name to look up");
        violation(&rules, weights)
    }
}

/// How far weights in the units of the file are from satisfying some rules.
pub(crate) fn violation(rules: &[WeightRule], weights: &[f64]) -> f64 {
    rules.iter().fold(0.0, |most, rule| most.max(rule.violation(weights)))
}

/// A model that satisfies its rules.
struct ConstrainedFit {
    trained: Trained,
    /// f at the solution.
    value: f64,
    /// By how much f would fall for each unit by which a rule is relaxed.
    multipliers: Vec<f64>,
}

/// Fits a linear or logistic model whose weights satisfy some rules. `factors` are the cⱼ, and f is a function of the
/// weights of all inputs and the intercept.
pub(crate) fn constrained(
    f: &mut dyn Objective<Point = Vec<f64>>,
    rules: &[WeightRule],
    factors: &[f64],
    end: FullSumEnd,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let start = feasible(rules, factors)?.ok_or_else(|| contradiction(rules, factors))?;
    Ok(fit_from(f, &rules.iter().collect::<Vec<_>>(), factors, start, end, limits)?.trained)
}

fn fit_from(
    f: &mut dyn Objective<Point = Vec<f64>>,
    rules: &[&WeightRule],
    factors: &[f64],
    start: Vec<f64>,
    end: FullSumEnd,
    limits: &mut TrainingLimits<'_>,
) -> Result<ConstrainedFit, Error> {
    let set = WeightSet::new(rules, factors)?.expect("the start satisfies the rules");
    let (terms, mut f) = (f.terms(), limits.stoppable(f));
    let (mut trained, solution) =
        solved(&mut f, Box::new(set.clone()), start, &[factors.len(), 1], terms, end, limits)?;
    set.polish(&mut trained.weights.flat);
    let multipliers = set.of_rules(solution.state.multipliers(), solution.state.bound_multipliers());
    Ok(ConstrainedFit { trained, value: solution.last.value, multipliers })
}

/// The point nearest to equal weights that satisfies the rules; `None` if none is found.
fn feasible(rules: &[WeightRule], factors: &[f64]) -> Result<Option<Vec<f64>>, Error> {
    let demands = |source: &str| rules.iter().any(|rule| rule.source == source);
    let inputs = factors.len() as f64;
    let size = match (demands("--unit-norm"), demands("--sum-to-one")) {
        (true, _) => 1.0 / inputs.sqrt(),
        (_, true) => 1.0 / inputs,
        _ => 0.0,
    };
    let start: Vec<f64> = factors.iter().map(|c| size / c).chain([0.0]).collect();
    nearest_point(&rules.iter().collect::<Vec<_>>(), factors, start)
}

/// The point nearest to another that satisfies the rules; `None` if none is found.
fn nearest_point(rules: &[&WeightRule], factors: &[f64], from: Vec<f64>) -> Result<Option<Vec<f64>>, Error> {
    let Some(set) = WeightSet::new(rules, factors)? else { return Ok(None) };
    let (center, mut start) = (from.clone(), from);
    // Where the gradient is 0, the method has no scale for its first step. The intercept is free.
    start[factors.len()] += 1.0;
    let mut distance = from_terms(1, move |_, x: &Vec<f64>, gradient: &mut Vec<f64>| {
        let parts = gradient.iter_mut().zip(x).zip(&center);
        parts.map(|((g, x), center)| (*g += x - center, 0.5 * (x - center).powi(2)).1).sum()
    });
    let method = StrSqp::new(StrSqpConfig::default(), set.clone())?;
    let report = minimize(&mut distance).method(method).full_batch().stop(Stop::epochs(MOST_STEPS)).start(start)?;
    let mut x = report.point().clone();
    set.polish(&mut x);
    let weights: Vec<f64> = x.iter().zip(factors).map(|(x, c)| x * c).collect();
    Ok(rules.iter().all(|rule| rule.violation(&weights) <= VIOLATION).then_some(x))
}

/// The error that names rules without a common point. None of them can be left out.
fn contradiction(rules: &[WeightRule], factors: &[f64]) -> Error {
    let mut kept: Vec<&str> = rules.iter().map(|rule| rule.source.as_str()).collect();
    kept.dedup();
    for source in kept.clone() {
        let fewer: Vec<&WeightRule> =
            rules.iter().filter(|rule| rule.source != source && kept.contains(&rule.source.as_str())).collect();
        let start = vec![0.0; factors.len() + 1];
        if matches!(nearest_point(&fewer, factors, start), Ok(None)) {
            kept.retain(|other| *other != source);
        }
    }
    let named: Vec<String> = kept.iter().map(|source| format!("`{source}`")).collect();
    Error::Option(match named.as_slice() {
        [only] => format!("no weights satisfy {only}: relax it"),
        [first @ .., last] => format!("no weights satisfy {} and {last} together: relax one of them", first.join(", ")),
        [] => "no weights satisfy the constraints: relax one of them".into(),
    })
}

/// What a constraint does to a fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConstraintEffect {
    /// The constraint in the units of the file.
    pub text: String,
    /// Whether it holds with equality.
    pub active: bool,
    /// By how much the loss would fall at first for each unit by which it is relaxed.
    pub multiplier: f64,
    /// The share by which the loss would be lower without it; `None` if that was not computed.
    pub cost: Option<f64>,
}

/// What each rule does to the fit with the weights x: fits again without each of the active rules, at most
/// [`MOST_COSTS`]. The bounds of `--nonnegative` that are not active are left out.
pub(crate) fn effects(
    f: &mut dyn Objective<Point = Vec<f64>>,
    rules: &[WeightRule],
    factors: &[f64],
    x: &[f64],
    limits: &mut TrainingLimits<'_>,
) -> Result<Vec<ConstraintEffect>, Error> {
    let mut solve = |without: Option<usize>| {
        let kept = rules.iter().enumerate().filter(|(k, _)| Some(*k) != without).map(|(_, rule)| rule);
        fit_from(f, &kept.collect::<Vec<_>>(), factors, x.to_vec(), FullSumEnd::default(), limits)
    };
    let fit = solve(None)?;
    let weights: Vec<f64> = x.iter().zip(factors).map(|(x, c)| x * c).collect();
    let active: Vec<bool> = rules.iter().map(|rule| rule.is_at_limit(&weights)).collect();
    // Those with the largest force on the weights of the model.
    let force = |&k: &usize| fit.multipliers[k].abs() * rules[k].largest_coefficient(factors);
    let mut order: Vec<usize> = (0..rules.len()).filter(|&k| active[k]).collect();
    order.sort_by(|a, b| force(b).total_cmp(&force(a)));
    let mut costs = vec![None; rules.len()];
    for &k in order.iter().take(MOST_COSTS) {
        let without = solve(Some(k))?;
        if without.trained.end == TrainingEnd::Interrupted {
            break;
        }
        costs[k] = Some(((fit.value - without.value) / fit.value).max(0.0));
    }
    let shown = |k: &usize| active[*k] || rules[*k].source != "--nonnegative";
    let effect = |k: usize| ConstraintEffect {
        text: rules[k].text.clone(),
        active: active[k],
        multiplier: fit.multipliers[k].abs(),
        cost: costs[k],
    };
    Ok((0..rules.len()).filter(shown).map(effect).collect())
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
) -> Result<(Trained, Report<StrSqpState<V>>), Error> {
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
    Ok((Trained { weights, curve, end, epochs, batch, errors: None }, report))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_satisfies_the_rules_if_that_is_possible() {
        let names: Vec<_> = ["a", "b"].iter().enumerate().map(|(j, name)| (name.to_string(), j..j + 1)).collect();
        let start = |rules: &[&str]| {
            let rules = rules.iter().map(ToString::to_string).collect();
            let rules = WeightRule::all(&WeightConstraint { rules, ..WeightConstraint::default() }, &names).unwrap();
            feasible(&rules, &[3.0, 1e-3]).unwrap()
        };
        for rules in [&["a + b <= -2"][..], &["a + b = 0.5", "b <= 0.1"], &["a - b >= 1", "b >= 7", "a <= 8"]] {
            assert!(start(rules).is_some(), "{rules:?}");
        }
        for rules in [&["a >= 1", "a <= 0"][..], &["a + b <= -2", "a >= 0", "b >= 0"]] {
            assert_eq!(start(rules), None, "{rules:?}");
        }
    }

    #[test]
    fn a_function_settles_if_twenty_steps_hardly_change_it() {
        let values: Vec<f64> = (0..100).map(|k| 1.0 + 0.5_f64.powi(k)).collect();
        let first = (0..100).find(|&k| settled(values[..=k].iter().copied(), 1e-6));
        assert_eq!(first, Some(40), "the first of 21 values differs by at most 1e-6");
        assert!(!settled(values[..20].iter().map(|_| 1.0), 1e-9), "20 values are 19 steps");
    }
}
