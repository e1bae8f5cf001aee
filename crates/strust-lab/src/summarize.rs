//! From records to the summary: mean, standard deviation and median over seeds; the choice of a grid search.

use crate::{
    Error,
    catalog::that_count,
    conduct::{failure, job_folder},
    experiment::{MethodSpec, ProblemSpec, Tune, plain},
    job::{is_done, metrics},
    plan::{Job, Plan},
    record::{EpochRecord, Line, TRUST_REGION, Timing},
    summary::{
        CurvePoint, Failure, MeanEvaluations, MethodSummary, Parameters, ProblemSummary, Spread, Summary, Trial,
        Tuning, TuningCost,
    },
};
use std::{
    fmt::Write as _,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

/// What a finished job left.
pub struct Finished {
    seed: u64,
    pub epochs: Vec<EpochRecord>,
    pub seconds: Vec<f64>,
}

pub enum Outcome {
    Finished(Finished),
    Failed(Failure),
}

fn lines<T: serde::de::DeserializeOwned>(path: &Path, keep: impl Fn(&str) -> bool) -> Result<Vec<T>, Error> {
    let file = BufReader::new(File::open(path).map_err(Error::io("read", path))?);
    let mut values = Vec::new();
    for (i, line) in file.lines().enumerate() {
        let line = line.map_err(Error::io("read", path))?;
        if keep(&line) {
            let value = serde_json::from_str(&line).map_err(|e| Error::saved(path, format!("line {}: {e}", i + 1)))?;
            values.push(value);
        }
    }
    Ok(values)
}

pub fn outcome(folder: &Path, plan: &Plan, job: &Job) -> Result<Outcome, Error> {
    let folder = job_folder(folder, job);
    if let Some(failure) = failure(&folder, job.checksum(&plan.experiment))? {
        return Ok(Outcome::Failed(failure));
    }
    if !is_done(&folder, job, &plan.experiment)? {
        return Err(Error::saved(&folder, "this job is not finished: go on with `strust resume`"));
    }
    // Steps are many and not needed here; their lines are passed over unparsed.
    let epochs: Vec<EpochRecord> = lines(&folder.join("records.jsonl"), |line| line.starts_with(r#"{"type":"epoch""#))?
        .into_iter()
        .filter_map(|line| match line {
            Line::Epoch(record) => Some(record),
            Line::Step(_) => None,
        })
        .collect();
    let seconds: Vec<f64> =
        lines::<Timing>(&folder.join("timings.jsonl"), |_| true)?.iter().map(|t| t.seconds).collect();
    if epochs.len() as u64 != job.epochs + 1 || seconds.len() != epochs.len() {
        let why =
            format!("holds {} of {} epochs: go on with `strust resume`", epochs.len().saturating_sub(1), job.epochs);
        return Err(Error::saved(&folder, why));
    }
    Ok(Outcome::Finished(Finished { seed: job.seed, epochs, seconds }))
}

/// The summary of all jobs that are no part of a grid search.
pub fn summary(folder: &Path, plan: &Plan) -> Result<Summary, Error> {
    let e = &plan.experiment;
    let mut problems = Vec::new();
    for problem in &e.problems {
        let mut methods: Vec<MethodSummary> = Vec::new();
        let mine = |job: &&Job| !job.tuning && job.problem.name == problem.name;
        let mut specs: Vec<&MethodSpec> = Vec::new();
        for job in plan.jobs.iter().filter(mine) {
            if !specs.iter().any(|s| s.label == job.method.label) {
                specs.push(&job.method);
            }
        }
        for spec in specs {
            let outcomes = plan.jobs.iter().filter(mine).filter(|job| job.method.label == spec.label);
            let outcomes: Vec<Outcome> = outcomes.map(|job| outcome(folder, plan, job)).collect::<Result<_, _>>()?;
            methods.push(method_summary(spec, outcomes, e.tune.is_some()));
        }
        problems.push(ProblemSummary {
            name: problem.name.clone(),
            title: title(problem),
            parameters: that_count(&problem.kind, &problem.parameters),
            metrics: metrics(&problem.kind),
            methods,
        });
    }
    let tuning = match &e.tune {
        Some(tune) => search(folder, plan, tune)?.into_iter().map(|(tuning, _)| tuning).collect(),
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
        diagnoses: Vec::new(),
        checks: Vec::new(),
        sections: Vec::new(),
    })
}

fn title(problem: &ProblemSpec) -> String {
    let shown = that_count(&problem.kind, &problem.parameters);
    let shown: Vec<_> = shown.iter().map(|(key, value)| format!("{key} = {}", plain(value))).collect();
    format!("{} ({})", problem.kind, shown.join(", "))
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
    let steps = total(|r| r.steps);
    let epochs = finished.first().map_or(0, |f| f.epochs.len());
    // One number a seed and epoch; where a seed lacks one, the quantity is left out.
    let over_epochs = |key: &str| -> Option<Vec<Spread>> {
        let at = |i: usize| -> Option<Vec<f64>> {
            finished.iter().map(|f| f.epochs[i].trust_region.get(key).copied()).collect()
        };
        (1..epochs).map(|i| at(i).map(|numbers| spread(&numbers))).collect()
    };
    let trust_region = TRUST_REGION.iter().filter_map(|(key, ..)| Some(((*key).to_string(), over_epochs(key)?)));
    MethodSummary {
        name: spec.name.clone(),
        // What a grid search chose is the method; only where all settings are shown do they need telling apart.
        label: if tuned { spec.name.clone() } else { spec.label.clone() },
        hyperparameters: spec.hyperparameters.clone(),
        seeds: finished.iter().map(|f| f.seed).collect(),
        last: curve.last().cloned(),
        acceptance_rate: if steps > 0.0 { total(|r| r.accepted) / steps } else { 1.0 },
        trust_region: trust_region.filter(|(_, spreads)| !spreads.is_empty()).collect(),
        curve,
        failures,
    }
}

fn curve(finished: &[Finished]) -> Vec<CurvePoint> {
    let Some(first) = finished.first() else { return Vec::new() };
    let over = |i: usize, number: &dyn Fn(&EpochRecord) -> f64| -> Vec<f64> {
        finished.iter().map(|f| number(&f.epochs[i])).collect()
    };
    let point = |i: usize| {
        let seconds = spread(&finished.iter().map(|f| f.seconds[i]).collect::<Vec<f64>>());
        let metrics = first.epochs[i].metrics.keys();
        CurvePoint {
            epoch: first.epochs[i].epoch,
            seconds,
            evaluations: MeanEvaluations {
                values: spread(&over(i, &|r| r.evaluations.values as f64)).mean,
                gradients: spread(&over(i, &|r| r.evaluations.gradients as f64)).mean,
            },
            metrics: metrics.map(|key| (key.clone(), spread(&over(i, &|r| r.metrics[key])))).collect(),
        }
    };
    (0..first.epochs.len()).map(point).collect()
}

/// Mean, sample standard deviation and median of at least one number.
fn spread(values: &[f64]) -> Spread {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let std = if values.len() > 1 {
        (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
    } else {
        0.0
    };
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 { sorted[middle] } else { 0.5 * (sorted[middle - 1] + sorted[middle]) };
    Spread { mean, std, median }
}

/// What the grid search found, best setting first, with that setting; one entry a problem and method.
fn search(folder: &Path, plan: &Plan, tune: &Tune) -> Result<Vec<(Tuning, Option<MethodSpec>)>, Error> {
    let e = &plan.experiment;
    let mut names: Vec<&str> = Vec::new();
    for method in &e.methods {
        if !names.contains(&method.name.as_str()) {
            names.push(&method.name);
        }
    }
    let mut found = Vec::new();
    for problem in &e.problems {
        for name in &names {
            let settings: Vec<&MethodSpec> = e.methods.iter().filter(|m| m.name == *name).collect();
            let mut cost = TuningCost { runs: 0, failed: 0, gradients: 0, values: 0, seconds: 0.0 };
            let mut tried = Vec::new();
            for method in &settings {
                let mine =
                    |job: &&Job| job.tuning && job.problem.name == problem.name && job.method.label == method.label;
                let (mut scores, before) = (Vec::new(), cost.failed);
                for job in plan.jobs.iter().filter(mine) {
                    cost.runs += 1;
                    match outcome(folder, plan, job)? {
                        Outcome::Failed(_) => cost.failed += 1,
                        Outcome::Finished(f) => {
                            let last = f.epochs.last().expect("a finished job has its start at least");
                            cost.values += last.evaluations.values;
                            cost.gradients += last.evaluations.gradients;
                            cost.seconds += f.seconds.last().copied().unwrap_or(0.0);
                            scores.extend(last.metrics.get(&tune.metric));
                        }
                    }
                }
                let score = (cost.failed == before && !scores.is_empty()).then(|| spread(&scores).median);
                tried.push((Trial { setting: differing(method, &settings), score }, *method));
            }
            let rank = |trial: &Trial| trial.score.unwrap_or(f64::INFINITY);
            tried.sort_by(|(a, _), (b, _)| rank(a).total_cmp(&rank(b)));
            let best = tried.first().filter(|(trial, _)| trial.score.is_some()).map(|(_, method)| (*method).clone());
            let tuning = Tuning {
                problem: problem.name.clone(),
                method: (*name).to_string(),
                metric: format!("{} after {} epochs", tune.metric, tune.epochs),
                tried: tried.into_iter().map(|(trial, _)| trial).collect(),
                cost,
            };
            found.push((tuning, best));
        }
    }
    Ok(found)
}

/// The hyperparameters that tell a setting from the others of its method.
fn differing(method: &MethodSpec, settings: &[&MethodSpec]) -> Parameters {
    let differs = |key: &String| settings.iter().any(|s| s.hyperparameters.get(key) != method.hyperparameters.get(key));
    method.hyperparameters.iter().filter(|(key, _)| differs(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// The best setting of every method on every problem; a method whose every setting failed has none.
pub(crate) fn choose(folder: &Path, plan: &Plan, tune: &Tune) -> Result<Vec<(ProblemSpec, MethodSpec)>, Error> {
    let found = search(folder, plan, tune)?;
    let problem = |name: &str| plan.experiment.problems.iter().find(|p| p.name == name).cloned();
    Ok(found.into_iter().filter_map(|(tuning, best)| Some((problem(&tuning.problem)?, best?))).collect())
}

/// The curves as a table: one row a problem, method and epoch.
#[must_use]
pub fn csv(summary: &Summary) -> String {
    let mut keys: Vec<&str> = Vec::new();
    for metric in summary.problems.iter().flat_map(|p| &p.metrics) {
        if !keys.contains(&metric.key.as_str()) {
            keys.push(&metric.key);
        }
    }
    let mut text = String::from("problem,method,epoch,seeds,seconds_mean,seconds_std,values,gradients");
    for key in &keys {
        let _ = write!(text, ",{key}_mean,{key}_std,{key}_median");
    }
    text.push('\n');
    for problem in &summary.problems {
        for method in &problem.methods {
            for point in &method.curve {
                let CurvePoint { epoch, seconds, evaluations, metrics } = point;
                let _ = write!(
                    text,
                    "{},{},{epoch},{},{},{},{},{}",
                    quoted(&problem.name),
                    quoted(&method.label),
                    method.seeds.len(),
                    seconds.mean,
                    seconds.std,
                    evaluations.values,
                    evaluations.gradients
                );
                for key in &keys {
                    let _ = match metrics.get(*key) {
                        Some(s) => write!(text, ",{:e},{:e},{:e}", s.mean, s.std, s.median),
                        None => write!(text, ",,,"),
                    };
                }
                text.push('\n');
            }
        }
    }
    text
}

/// A field of a CSV file: quoted where it has to be.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_mean_sample_deviation_and_median() {
        let s = spread(&[1.0, 2.0, 6.0]);
        assert_eq!((s.mean, s.median), (3.0, 2.0));
        assert!((s.std - 7.0_f64.sqrt()).abs() < 1e-15);
        assert_eq!(spread(&[4.0]), Spread { mean: 4.0, std: 0.0, median: 4.0 });
        assert_eq!(spread(&[1.0, 3.0]), Spread { mean: 2.0, std: 2.0_f64.sqrt(), median: 2.0 });
    }

    #[test]
    fn csv_fields_with_commas_and_quotes_are_quoted() {
        assert_eq!(quoted("a"), "a");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
