//! The benchmark: a method without tuning beside baselines that are tuned for each task.
//!
//! ```text
//! experiments/zero-tuning.toml → BenchmarkSpec → grid searches → runs → TaskSummary → sections → report.html
//! ```
//!
//! The jobs of all tasks run in one pool.

mod compare;
mod figures;
mod measures;
mod sections;

use crate::tasks::{BenchmarkSpec, Contest, Rules, Task, competing_suite};
use compare::{TaskRuns, Trajectory};
use measures::steps_score;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt::Write as _,
    path::Path,
};
use strust_lab::{
    Error,
    analyze::{Outcome, outcome},
    data::{
        benchmark::{Judge, TaskSummary},
        plan::Plan,
        summary::Summary,
    },
    format::{csv_field, plain},
    registry::problems,
    run::optimum,
    suite::{CheckResults, Suite, SuitePlan},
};

/// The suite of a benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkSuite {
    /// The benchmark.
    pub benchmark: BenchmarkSpec,
}

fn contest(plan: &SuitePlan<BenchmarkSuite>) -> Contest<'_, BenchmarkSuite> {
    let rules = Rules {
        metric: |task| match task.judge {
            Judge::Objective => objective_key(task),
            Judge::Steps => "steps".into(),
        },
        scored: with_score,
        // A little longer, to see whether it arrives a little later.
        tested_epochs: |epochs| epochs + epochs.div_ceil(10),
    };
    Contest { plan, benchmark: &plan.suite.benchmark, rules }
}

/// The key of the metric that runs minimize.
fn objective_key(task: &Task) -> String {
    problems::metrics(&task.experiment.problems[0])[0].key.clone()
}

/// Adds the score of a task that is judged by steps to the last record.
fn with_score(task: &Task, mut outcome: Outcome, name: &str) -> Outcome {
    if let (Judge::Steps, Outcome::Finished(finished)) = (task.judge, &mut outcome) {
        let key = objective_key(task);
        let curve: Vec<_> = finished.epochs.iter().map(|at| (at.steps as f64, at.metrics[&key])).collect();
        if let Some(last) = finished.epochs.last_mut() {
            last.metrics.insert(name.into(), steps_score(&curve));
        }
    }
    outcome
}

impl Suite for BenchmarkSuite {
    const FILE: &'static str = "benchmark.json";

    competing_suite!(benchmark, contest);
    fn summary(plan: &SuitePlan<Self>, folder: &Path, _: Vec<CheckResults>) -> Result<Summary, Error> {
        let BenchmarkSpec { name, title, description, skipped, .. } = &plan.suite.benchmark;
        let results = plan.suite.benchmark.tasks.iter().map(|task| compare(plan, folder, task));
        let (tasks, curves): (Vec<_>, Vec<_>) = results.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let (sections, checks) = sections::all(name, &tasks, &curves, skipped);
        Ok(Summary { tasks, skipped: skipped.clone(), checks, sections, ..plan.summary(title, description) })
    }
    /// One row per task and method.
    fn csv(summary: &Summary) -> String {
        let mut text = String::from(
            "task,half,judge,method,role,setting,value,ratio,steps_ratio,price,test_mean,test_std,failed,at_edge\n",
        );
        let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
        for task in &summary.tasks {
            for method in &task.methods {
                let setting = method.setting.iter().flatten().map(|(key, value)| format!("{key}={}", plain(value)));
                let _ = writeln!(
                    text,
                    "{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                    csv_field(&task.name),
                    task.half.word(),
                    task.judge.word(),
                    csv_field(&method.label),
                    method.role.word(),
                    csv_field(&setting.collect::<Vec<_>>().join(" ")),
                    number(method.value),
                    number(method.ratio),
                    number(method.steps_ratio),
                    number(method.price),
                    number(method.test.map(|test| test.mean)),
                    number(method.test.map(|test| test.std)),
                    method.failed,
                    method.at_edge
                );
            }
        }
        text
    }
}

/// The results of a task, and the curve of every method.
fn compare(
    plan: &SuitePlan<BenchmarkSuite>,
    folder: &Path,
    task: &Task,
) -> Result<(TaskSummary, Vec<Trajectory>), Error> {
    let contest = contest(plan);
    let choices = contest.choices(folder, task)?;
    let plan = contest.runs(task, &choices);
    let optima = optima(task, &plan)?;
    let read = |job: &_| outcome(folder, &plan, job);
    let optimum = |seed| optima.get(&seed).copied().unwrap_or(0.0);
    TaskRuns { task, choices: &choices, plan: &plan, read: &read, optimum: &optimum }.compare()
}

/// The optimum of every seed, if the records have the gap to it: methods are compared by the objective.
fn optima(task: &Task, plan: &Plan) -> Result<BTreeMap<u64, f64>, Error> {
    let mut optima = BTreeMap::new();
    if objective_key(task) != "objective_gap" {
        return Ok(optima);
    }
    for job in &plan.jobs {
        if let Entry::Vacant(place) = optima.entry(job.seed) {
            // Metrics are those of the loss without its factor.
            place.insert(optimum(job, &plan.experiment)?.unwrap_or(0.0) / problems::scale(&job.problem));
        }
    }
    Ok(optima)
}
