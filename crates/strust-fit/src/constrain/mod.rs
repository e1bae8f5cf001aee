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
    linear::LinearModel,
    newton::{GAP, QuadraticModel, has_matrix, minimum_over},
    ranks::Ranks,
    terms::{ModelTerms, RowInputs},
    train::{Trained, TrainingEnd, TrainingLimits, check_ranks, dealt},
    weights::Weights,
};
use serde::{Deserialize, Serialize};
use set::WeightSet;
use std::ops::ControlFlow;
use strust::{
    methods::{StrSqp, StrSqpConfig, StrSqpState},
    minimize,
    objective::{Objective, from_terms},
    record::StepRecord,
    run::Report,
    stop::{Stop, StopReason},
};

/// Steps of `StrSqp`, if the user names no number.
const MOST_STEPS: u64 = 1000;
/// Products of a step of `StrSqp` at most, where they cost little.
const MOST_PRODUCTS: u64 = 1000;
/// Constraints whose cost is computed: each takes another fit.
const MOST_COSTS: usize = 10;
/// The largest violation of a saved model.
pub const VIOLATION: f64 = 1e-9;

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

/// The rows of a linear or logistic model, on all ranks.
pub(crate) struct ConstrainedRows<'a, R> {
    pub(crate) terms: ModelTerms<'a, R>,
    /// The rows of the file that are terms.
    pub(crate) of_file: &'a [usize],
    pub(crate) ranks: &'a Ranks<'a>,
    /// cⱼ.
    pub(crate) factors: &'a [f64],
}

/// Fits a linear or logistic model whose weights satisfy some rules. It has converged where f is above the minimum by at
/// most the share `gap` of it.
pub(crate) fn constrained<R: RowInputs + Sync>(
    rows: &ConstrainedRows<'_, R>,
    rules: &[WeightRule],
    gap: f64,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let start = feasible(rules, rows.factors)?.ok_or_else(|| contradiction(rules, rows.factors))?;
    Ok(fit_from(rows, &rules.iter().collect::<Vec<_>>(), start, gap, limits)?.trained)
}

/// Each step of Newton's method is a small problem with the constraints of the large one, which `StrSqp` solves without the
/// rows. With too many inputs for a matrix, it uses all rows in each of its steps.
fn fit_from<R: RowInputs + Sync>(
    rows: &ConstrainedRows<'_, R>,
    rules: &[&WeightRule],
    start: Vec<f64>,
    gap: f64,
    limits: &mut TrainingLimits<'_>,
) -> Result<ConstrainedFit, Error> {
    let ConstrainedRows { terms, of_file, ranks, factors } = *rows;
    let set = WeightSet::new(rules, factors)?.expect("the start satisfies the rules");
    if !has_matrix(factors.len(), terms.outputs) {
        let mut f = limits.stoppable(dealt(LinearModel::new(terms), of_file, ranks));
        let (mut trained, solution) = solved(&mut f, set.clone(), start, limits)?;
        set.polish(&mut trained.weights.flat);
        let multipliers = set.of_rules(solution.state.multipliers(), solution.state.bound_multipliers());
        return Ok(ConstrainedFit { trained, value: solution.last.value, multipliers });
    }
    let (mut multipliers, mut is_solved) = (vec![0.0; rules.len()], false);
    // The tolerance is relative to the largest gradient, so the first point must not be the solution.
    let from = start.clone();
    let over = &mut |mut model: QuadraticModel| {
        let config = StrSqpConfig { products: MOST_PRODUCTS, ..StrSqpConfig::default() };
        let method = StrSqp::new(config, set.clone())?;
        let report =
            minimize(&mut model).method(method).full_batch().stop(Stop::epochs(MOST_STEPS)).start(from.clone())?;
        multipliers = set.of_rules(report.state.multipliers(), report.state.bound_multipliers());
        is_solved = report.reason.converged();
        let mut x = report.point().clone();
        set.polish(&mut x);
        Ok(x)
    };
    let (mut trained, value) = minimum_over(terms, start, Some(over), gap, ranks, limits)?;
    if trained.end == TrainingEnd::Converged && !is_solved {
        trained.end = TrainingEnd::Epochs;
    }
    Ok(ConstrainedFit { trained, value, multipliers })
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
pub(crate) fn effects<R: RowInputs + Sync>(
    rows: &ConstrainedRows<'_, R>,
    rules: &[WeightRule],
    x: &[f64],
    limits: &mut TrainingLimits<'_>,
) -> Result<Vec<ConstraintEffect>, Error> {
    let factors = rows.factors;
    let start = feasible(rules, factors)?.unwrap_or_else(|| x.to_vec());
    let mut solve = |without: Option<usize>| {
        let kept = rules.iter().enumerate().filter(|(k, _)| Some(*k) != without).map(|(_, rule)| rule);
        fit_from(rows, &kept.collect::<Vec<_>>(), start.clone(), GAP, limits)
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

type SqpReport = Report<StrSqpState<Vec<f64>>>;

/// Minimizes f by `StrSqp` on all terms.
fn solved(
    f: &mut impl Objective<Point = Vec<f64>>,
    set: WeightSet,
    start: Vec<f64>,
    limits: &mut TrainingLimits<'_>,
) -> Result<(Trained, SqpReport), Error> {
    let (mut curve, mut interrupted, batch) = (Vec::new(), false, f.terms());
    let mut now = Weights { widths: vec![start.len() - 1, 1], flat: Vec::new() };
    let stop = Stop::epochs(limits.epochs.unwrap_or(MOST_STEPS));
    let run = minimize(f).method(StrSqp::new(StrSqpConfig::default(), set)?).full_batch().stop(stop);
    let report = run
        .observe(|record: &StepRecord, x: &Vec<f64>| {
            let epoch = (record.k + 1) as f64;
            now.flat.clone_from(x);
            curve.extend(limits.learned(epoch, &now));
            (limits.report)(epoch, record.value);
            interrupted = (limits.interrupted)();
            if interrupted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .start(start)?;
    check_ranks(report.breakdown.as_ref())?;
    let end = match report.reason {
        // Also if another rank was stopped.
        StopReason::Observer => TrainingEnd::Interrupted,
        _ if interrupted => TrainingEnd::Interrupted,
        _ if report.breakdown.is_some() => TrainingEnd::Breakdown,
        reason if reason.converged() => TrainingEnd::Converged,
        _ => TrainingEnd::Epochs,
    };
    let weights = Weights { flat: report.point().clone(), ..now };
    Ok((Trained { weights, free: None, curve, end, epochs: report.steps as f64, batch, errors: None }, report))
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
}
