//! Computes the summary from the records: mean, standard deviation and median over seeds.

use super::{
    outcome::{Finished, Outcome, Read},
    tune,
};
use crate::{
    Error,
    data::{
        experiment::{MethodSpec, ProblemSpec},
        plan::{Job, Plan, ProblemSize},
        record::{EpochRecord, TRUST_REGION, is_sparse},
        summary::{CurvePoint, MeanEvaluations, MethodSummary, ProblemSummary, Spread, Summary},
    },
    format::{plain, plural},
    registry::problems,
    statistics::spread,
};
use std::collections::BTreeMap;

/// The summary of all jobs that do not belong to a grid search.
pub fn summary(plan: &Plan, read: Read) -> Result<Summary, Error> {
    let e = &plan.experiment;
    let mut problems = Vec::new();
    let mut by_problem: BTreeMap<&str, Vec<Vec<&Job>>> = BTreeMap::new();
    for jobs in plan.by_method(false) {
        by_problem.entry(&jobs[0].problem.name).or_default().push(jobs);
    }
    for problem in &e.problems {
        let mut methods: Vec<MethodSummary> = Vec::new();
        for jobs in by_problem.remove(problem.name.as_str()).unwrap_or_default() {
            let outcomes: Vec<Outcome> = jobs.iter().map(|job| read(job)).collect::<Result<_, _>>()?;
            methods.push(method_summary(&jobs[0].method, outcomes, e.tune.is_some()));
        }
        problems.push(ProblemSummary {
            name: problem.name.clone(),
            kind: None,
            title: title(problem, plan.sizes.get(&problem.name)),
            parameters: problems::with_effect(&problem.kind, &problem.parameters),
            metrics: problems::metrics(problem),
            methods,
        });
    }
    let tuning = match &e.tune {
        Some(tune) => tune::search(plan, tune, read)?.into_iter().map(|(tuning, _)| tuning).collect(),
        None => Vec::new(),
    };
    Ok(Summary {
        experiment: e.name.clone(),
        title: e.title.clone(),
        description: e.description.clone(),
        version: plan.version.clone(),
        command: plan.command.clone(),
        machine: plan.machine.clone(),
        epochs: e.epochs,
        batch: e.batch,
        problems,
        tuning,
        figures: e.figures.clone(),
        ..Summary::default()
    })
}

fn title(problem: &ProblemSpec, size: Option<&ProblemSize>) -> String {
    let shown = problems::with_effect(&problem.kind, &problem.parameters);
    let shown: Vec<_> = shown.iter().map(|(key, value)| format!("{key} = {}", plain(value))).collect();
    let size = size
        .map(|s| format!("; {}, {}", plural(s.terms, "term"), plural(s.parameters, "parameter")))
        .unwrap_or_default();
    format!("{} ({}{size})", problem.kind, shown.join(", "))
}

fn method_summary(spec: &MethodSpec, outcomes: Vec<Outcome>, tuned: bool) -> MethodSummary {
    let (mut finished, mut failures) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Outcome::Finished(f) => finished.push(f),
            Outcome::Failed(f) => failures.push(f),
        }
    }
    let curve = curve(&finished);
    let total = |count: fn(&EpochRecord) -> u64| -> f64 {
        finished.iter().filter_map(|f| f.epochs.last()).map(|r| count(r) as f64).sum()
    };
    let steps = total(|r| r.steps.saturating_sub(r.skipped));
    // One number per seed and epoch. A quantity that a seed lacks is omitted.
    let over_epochs = |key: &str| -> Option<Vec<Spread>> {
        let at = |i: usize| -> Option<Vec<f64>> {
            finished.iter().map(|f| f.epochs[i].trust_region.get(key).copied()).collect()
        };
        shown(&finished).skip(1).map(|i| at(i).map(|numbers| spread(&numbers))).collect()
    };
    let trust_region = TRUST_REGION.iter().filter_map(|(key, ..)| Some(((*key).to_string(), over_epochs(key)?)));
    MethodSummary {
        name: spec.name.clone(),
        // After a grid search a method has one setting, so its name is enough. Otherwise the label names the setting.
        label: if tuned { spec.name.clone() } else { spec.label.clone() },
        hyperparameters: spec.hyperparameters.clone(),
        seeds: finished.iter().map(|f| f.seed).collect(),
        last: curve.last().cloned(),
        acceptance_rate: if steps > 0.0 { total(|r| r.accepted) / steps } else { 1.0 },
        trust_region: trust_region.filter(|(_, spreads)| !spreads.is_empty()).collect(),
        curve,
        failures,
        solution: None,
    }
}

fn curve(finished: &[Finished]) -> Vec<CurvePoint> {
    let Some(first) = finished.first() else { return Vec::new() };
    let over = |i: usize, number: &dyn Fn(&EpochRecord) -> f64| -> Vec<f64> {
        finished.iter().map(|f| number(&f.epochs[i])).collect()
    };
    let point = |i: usize| {
        let seconds = spread(&finished.iter().map(|f| f.seconds[i]).collect::<Vec<f64>>());
        // A metric that a seed lacks is omitted.
        let in_all = |key: &&String| finished.iter().all(|f| f.epochs[i].metrics.contains_key(*key));
        let metrics = first.epochs[i].metrics.keys().filter(in_all);
        CurvePoint {
            epoch: first.epochs[i].epoch,
            seconds,
            evaluations: MeanEvaluations {
                values: spread(&over(i, &|r| r.evaluations.values as f64)).mean,
                gradients: spread(&over(i, &|r| r.evaluations.gradients as f64)).mean,
                products: spread(&over(i, &|r| r.evaluations.products as f64)).mean,
            },
            metrics: metrics.map(|key| (key.clone(), spread(&over(i, &|r| r.metrics[key])))).collect(),
        }
    };
    shown(finished).map(point).collect()
}

/// A summary has all epochs up to this one, then every tenth, and so on.
const ALL_SHOWN: u64 = 1_000;

/// The records that a curve shows, by their place. A report of a long run must still open in a browser.
fn shown(finished: &[Finished]) -> impl Iterator<Item = usize> {
    let epochs: &[EpochRecord] = finished.first().map_or(&[], |first| &first.epochs);
    let last = epochs.len().saturating_sub(1);
    (0..epochs.len()).filter(move |&i| i == last || is_sparse(epochs[i].epoch, ALL_SHOWN))
}
