//! Tasks with data: STR-SQP without tuning beside tuned baselines, on mini-batches.

use super::{
    ConstrainedSuite, section,
    solve::{SOLVED, as_method},
};
use crate::{
    distinct,
    prelude::*,
    tasks::{BenchmarkSpec, Choice, Contest, Entrant, Rules, Task},
};
use std::{collections::BTreeMap, path::Path};
use strust_lab::{
    Error,
    analyze::{self, Outcome, outcome},
    data::{
        benchmark::{Role, SkippedTask},
        experiment::MethodSpec,
        plan::{Job, Plan},
        record::EpochRecord,
        summary::{ProblemSummary, Solution, SolverVerdict, Summary, Tuning},
    },
    registry::problems,
    suite::SuitePlan,
};

/// The kind of a task among the problems.
const KIND: &str = "data";
/// ‖c‖ at the answer of the method under test.
const FEASIBLE: f64 = 1e-12;
/// The suboptimality of the method under test, over that of the best tuned one.
const FACTOR: f64 = 2.0;
/// Suboptimality below this share of that of the start counts as this share: it is zero up to rounding.
const ZERO: f64 = 1e-14;

/// The metric of a problem whose optimum is known.
const GAP: &str = "objective_gap";
const VIOLATION: &str = "constraint_norm";

/// The competition on the tasks of a study.
pub(super) fn contest(plan: &SuitePlan<ConstrainedSuite>) -> Contest<'_, ConstrainedSuite> {
    let rules = Rules {
        metric: score_name,
        scored: |_, outcome, name| with_score(outcome, name),
        tested_epochs: |epochs| epochs,
    };
    Contest { plan, benchmark: &plan.suite.benchmark, rules }
}

/// The results of a task, with its grid searches.
fn summarize(
    contest: &Contest<ConstrainedSuite>,
    folder: &Path,
    task: &Task,
) -> Result<(ProblemSummary, Vec<Tuning>), Error> {
    let chosen = contest.choices(folder, task)?;
    let plan = contest.runs(task, &chosen);
    let read = |job: &Job| outcome(folder, &plan, job);
    let summary = analyze::summary(&plan, &read)?;
    let mut problem = summary.problems.into_iter().next().expect("a task has one problem");
    problem.kind = Some(KIND.into());
    problem.title = format!("{}: {}", task.title, problem.title);
    let finals = finals(&plan, &read)?;
    let mut methods = Vec::new();
    for (entrant, chosen) in task.entrants.iter().zip(&chosen) {
        let label = entrant.label.as_str();
        let setting = entrant.setting(chosen);
        let solution = solution(task, setting, &finals);
        let ran = problem.methods.iter().find(|method| setting.is_some_and(|setting| setting.label == method.label));
        let mut method = ran.cloned().unwrap_or_else(|| as_method(label, solution));
        (method.name, method.label, method.solution) = (label.into(), label.into(), Some(solution));
        methods.push(method);
    }
    problem.methods = methods;
    let named = |(entrant, chosen): (&Entrant, Choice)| {
        chosen.map(|(tuning, _)| Tuning { method: entrant.label.clone(), ..tuning })
    };
    Ok((problem, task.entrants.iter().zip(chosen).filter_map(named).collect()))
}

fn is_gap(task: &Task) -> bool {
    problems::metrics(&task.experiment.problems[0])[0].key == GAP
}

/// What grid searches minimize. A violated constraint counts, because f may be below its optimum there.
fn score_name(task: &Task) -> String {
    if is_gap(task) { "|f − f*| + ‖c‖".into() } else { "f + ‖c‖".into() }
}

/// The objective of a record, or its distance from the optimum, and ‖c‖.
fn measured(record: &EpochRecord) -> (f64, f64) {
    let of = |key: &str| record.metrics.get(key).copied();
    let objective = of(GAP).map(f64::abs).or_else(|| of("objective")).or_else(|| of("train_loss"));
    (objective.unwrap_or(f64::NAN), of(VIOLATION).unwrap_or(0.0))
}

/// Adds the score to the last record.
fn with_score(mut outcome: Outcome, name: &str) -> Outcome {
    if let Outcome::Finished(finished) = &mut outcome
        && let Some(last) = finished.epochs.last_mut()
    {
        let (objective, violation) = measured(last);
        last.metrics.insert(name.into(), objective + violation);
    }
    outcome
}

/// The end of a run.
struct Final {
    label: String,
    seed: u64,
    /// The objective or its distance from the optimum, ‖c‖, and the gradients; `None` if it failed.
    end: Option<(f64, f64, f64)>,
}

fn finals(plan: &Plan, read: &dyn Fn(&Job) -> Result<Outcome, Error>) -> Result<Vec<Final>, Error> {
    let of = |job: &Job| {
        let end = match read(job)? {
            Outcome::Failed(_) => None,
            Outcome::Finished(finished) => finished.epochs.last().map(|last| {
                let (objective, violation) = measured(last);
                (objective, violation, last.evaluations.gradients as f64)
            }),
        };
        Ok(Final { label: job.method.label.clone(), seed: job.seed, end })
    };
    plan.jobs.iter().map(of).collect()
}

/// The best objective of a feasible point, by seed.
fn best_known(finals: &[Final]) -> BTreeMap<u64, f64> {
    let mut best = BTreeMap::new();
    for one in finals {
        if let Some((objective, violation, _)) = one.end
            && violation <= SOLVED
        {
            let known = best.entry(one.seed).or_insert(objective);
            *known = objective.min(*known);
        }
    }
    best
}

/// Medians over seeds, where a failed seed is infinite.
fn solution(task: &Task, setting: Option<&MethodSpec>, finals: &[Final]) -> Solution {
    let is_gap = is_gap(task);
    let best = if is_gap { BTreeMap::new() } else { best_known(finals) };
    let mine: Vec<&Final> =
        finals.iter().filter(|one| setting.is_some_and(|setting| setting.label == one.label)).collect();
    let error = |one: &Final| one.end.map(|(f, ..)| if is_gap { f } else { f - best.get(&one.seed).unwrap_or(&f) });
    let median = |of: &dyn Fn(&Final) -> Option<f64>| {
        let values: Vec<f64> = mine.iter().map(|one| of(one).unwrap_or(f64::INFINITY)).collect();
        Some(upper_median(&values)).filter(|value| value.is_finite())
    };
    let objective_error = median(&error);
    let constraint_norm = median(&|one| one.end.map(|(_, violation, _)| violation));
    let small = |value: Option<f64>| value.is_some_and(|value| value <= SOLVED);
    Solution {
        solved: is_gap && small(objective_error) && small(constraint_norm),
        verdict: if objective_error.is_some() { SolverVerdict::Budget } else { SolverVerdict::BrokeDown },
        gradients: median(&|one| one.end.map(|(.., gradients)| gradients)).unwrap_or(0.0) as u64,
        objective_error,
        constraint_norm,
        kkt: None,
    }
}

/// The section of all tasks; `None` without any.
pub(super) fn show(
    tasks: &[Task],
    problems: &[ProblemSummary],
    tuning: &[Tuning],
    skipped: &[SkippedTask],
) -> Option<Section> {
    let mut tables = vec![results(problems)];
    tables.extend(rates(problems, tuning));
    if !skipped.is_empty() {
        let row = |task: &SkippedTask| vec![task.name.clone(), task.title.clone(), task.why.clone()];
        tables.push(Table::new(
            format!("{} skipped", plural(skipped.len(), "task")),
            "task | title | why",
            skipped.iter().map(row).collect(),
        ));
    }
    (!tasks.is_empty() || !skipped.is_empty()).then(|| Section {
        tables,
        checks: tasks.iter().zip(problems).flat_map(|(task, problem)| checks(task, problem)).collect(),
        ..section(
            "data",
            "Problems with data",
            "Mini-batches, the same number of epochs for every method. STR-SQP has its default. Every baseline tries seven \
             rates on other seeds and runs with the one whose |f − f*| + ‖c‖ is smallest: a violated constraint counts, \
             because f may be below its optimum there. If the optimum is not known, f* is the best objective of a \
             feasible point in these runs. Numbers are medians over seeds; a failed seed is infinite.",
        )
    })
}

/// A table with a row for each task and a column for each method.
fn by_method(
    caption: &str,
    problems: &[ProblemSummary],
    labels: &[&str],
    cell: impl Fn(&ProblemSummary, &str) -> String,
) -> Table {
    let row = |problem: &ProblemSummary| {
        std::iter::once(problem.name.clone()).chain(labels.iter().map(|label| cell(problem, label))).collect()
    };
    Table::new(caption, "task", problems.iter().map(row).collect()).and_columns(labels.iter().map(ToString::to_string))
}

fn solution_of<'a>(problem: &'a ProblemSummary, label: &str) -> Option<&'a Solution> {
    problem.methods.iter().find(|method| method.label == label).and_then(|method| method.solution.as_ref())
}

fn results(problems: &[ProblemSummary]) -> Table {
    let labels = distinct(problems.iter().flat_map(|problem| &problem.methods).map(|method| &method.label));
    by_method("|f − f*| / ‖c‖ at the end", problems, &labels, |problem, label| {
        match solution_of(problem, label) {
            None => NOTHING.into(),
            Some(Solution { objective_error: Some(error), constraint_norm: Some(violation), .. }) => {
                format!("{} / {}", brief(*error), brief(*violation))
            }
            Some(_) => SolverVerdict::BrokeDown.word().into(),
        }
    })
}

/// The chosen rates; `None` if nothing is tuned.
fn rates(problems: &[ProblemSummary], tuning: &[Tuning]) -> Option<Table> {
    let labels = distinct(tuning.iter().map(|one| &one.method));
    let cell = |problem: &ProblemSummary, label: &str| {
        let Some(mine) = tuning.iter().find(|one| one.problem == problem.name && one.method == label) else {
            return NOTHING.into();
        };
        match mine.tried.first().filter(|best| best.score.is_some()) {
            Some(best) => best.setting.values().map(plain).collect::<Vec<_>>().join(", "),
            None => "failed".into(),
        }
    };
    (!labels.is_empty()).then(|| by_method("The chosen rates", problems, &labels, cell))
}

/// |f − f*| at the start.
fn start(problem: &ProblemSummary) -> Option<f64> {
    let curve = problem.methods.iter().find_map(|method| method.curve.first())?;
    curve.metrics.get(GAP).map(|gap| gap.median.abs())
}

fn checks(task: &Task, problem: &ProblemSummary) -> Vec<Check> {
    let name = &problem.name;
    let label = |role: Role| task.entrants.iter().filter(move |one| one.role == role).map(|one| one.label.as_str());
    let tested = label(Role::Tested).next().unwrap_or_default();
    let mine = solution_of(problem, tested);
    let violation = mine.and_then(|solution| solution.constraint_norm);
    let (norm, why) = violation.map_or((f64::INFINITY, "it broke down"), |norm| (norm, "at the answer"));
    let mut checks = vec![Check::at_most(format!("{name}: ‖c‖ of {tested}"), norm, FEASIBLE, why)];
    let error = |label: &str| {
        let solution = solution_of(problem, label)?;
        Some(solution.objective_error? + solution.constraint_norm?)
    };
    let best = label(Role::Tuned).filter_map(|label| Some((error(label)?, label))).min_by(|a, b| a.0.total_cmp(&b.0));
    let claim = format!("{name}: suboptimality of {tested} over that of the best tuned method");
    let Some((best, by)) = best else { return checks };
    checks.push(match (start(problem), error(tested)) {
        (Some(start), Some(mine)) => {
            let zero = ZERO * start;
            let why = format!("{} and {} of {by}; the violation of constraints is added", brief(mine), brief(best));
            Check::at_most(claim, mine.max(zero) / best.max(zero), FACTOR, why)
        }
        (Some(_), None) => Check::at_most(claim, f64::INFINITY, FACTOR, format!("{tested} broke down")),
        (None, _) => Check::open(claim, FACTOR, "the optimum is not known"),
    });
    checks
}

/// Adds the problems and grid searches of all tasks to a summary.
pub(super) fn add_to(summary: &mut Summary, plan: &SuitePlan<ConstrainedSuite>, folder: &Path) -> Result<(), Error> {
    let BenchmarkSpec { tasks, skipped, .. } = &plan.suite.benchmark;
    let contest = contest(plan);
    let (mut problems, mut tuning) = (Vec::new(), Vec::new());
    for task in tasks {
        let (problem, searches) = summarize(&contest, folder, task)?;
        problems.push(problem);
        tuning.extend(searches);
    }
    summary.sections.extend(show(tasks, &problems, &tuning, skipped));
    summary.problems.extend(problems);
    summary.tuning.extend(tuning);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::Resources;
    use strust_lab::{
        analyze::Finished,
        data::summary::{CurvePoint, MeanEvaluations},
        statistics::spread,
    };

    fn record(metrics: &[(&str, f64)]) -> EpochRecord {
        let metrics = metrics.iter().map(|(key, value)| ((*key).to_string(), *value)).collect();
        EpochRecord { metrics, ..EpochRecord::default() }
    }

    #[test]
    fn the_built_in_tasks_have_constraints_and_seven_rates_for_every_baseline() {
        let benchmark = ConstrainedSuite::tasks(&Resources::default()).unwrap();
        assert!(benchmark.tasks.len() >= 2);
        for task in &benchmark.tasks {
            assert_eq!((task.entrants[0].label.as_str(), task.entrants[0].role), ("str-sqp", Role::Tested));
            let tuned = task.entrants.iter().filter(|entrant| entrant.role == Role::Tuned);
            assert!(tuned.into_iter().all(|entrant| entrant.settings.len() == 7), "{}", task.title);
        }
    }

    #[test]
    fn a_violated_constraint_and_an_objective_below_the_optimum_make_the_score_worse() {
        let score = |metrics: &[(&str, f64)]| {
            let finished = Finished { seed: 0, epochs: vec![record(metrics)], seconds: vec![0.0] };
            let Outcome::Finished(finished) = with_score(Outcome::Finished(finished), "score") else {
                panic!("finished")
            };
            finished.epochs[0].metrics["score"]
        };
        assert!((score(&[(GAP, -0.25), (VIOLATION, 0.5)]) - 0.75).abs() < 1e-15);
        assert!((score(&[("objective", -2.0), (VIOLATION, 0.5)]) + 1.5).abs() < 1e-15);
    }

    #[test]
    fn the_best_known_objective_is_that_of_a_feasible_point() {
        let end = |label: &str, seed, f, violation| Final { label: label.into(), seed, end: Some((f, violation, 8.0)) };
        let finals = [
            end("a", 0, 3.0, 0.0),
            end("b", 0, 1.0, 0.5),
            end("c", 0, 2.0, 1e-9),
            Final { label: "a".into(), seed: 1, end: None },
        ];
        assert_eq!(best_known(&finals), BTreeMap::from([(0, 2.0)]));
    }

    #[test]
    fn medians_count_failed_seeds_as_infinite_and_checks_compare_with_the_best_tuned_method() {
        let task = ConstrainedSuite::tasks(&Resources::default()).unwrap().tasks.remove(0);
        let setting = |i: usize| task.entrants[i].settings.first();
        let label = |i: usize| setting(i).unwrap().label.clone();
        let end = |i: usize, seed, f, violation| Final { label: label(i), seed, end: Some((f, violation, 8.0)) };
        let mut finals: Vec<Final> = (0..3).map(|seed| end(0, seed, 4e-7, 1e-15)).collect();
        finals.extend((0..3).map(|seed| end(1, seed, 1e-7, 3e-7)));
        finals.extend([Final { label: label(2), seed: 0, end: None }, Final { label: label(2), seed: 1, end: None }]);
        finals.push(end(2, 2, 0.0, 0.0));
        let solutions = [0, 1, 2].map(|i| solution(&task, setting(i), &finals));
        assert!(solutions[0].solved && solutions[0].verdict == SolverVerdict::Budget && solutions[0].gradients == 8);
        assert_eq!((solutions[2].verdict, solutions[2].objective_error), (SolverVerdict::BrokeDown, None));
        let mut problem = ProblemSummary {
            name: "p".into(),
            kind: Some(KIND.into()),
            methods: (0..3).map(|i| as_method(&task.entrants[i].label, solutions[i])).collect(),
            ..ProblemSummary::default()
        };
        let found = checks(&task, &problem);
        assert!(found[0].holds && found[1].is_open(), "without curves the optimum is not known: {found:?}");
        let spread = spread(&[1.0]);
        problem.methods[0].curve.push(CurvePoint {
            epoch: 0,
            seconds: spread,
            evaluations: MeanEvaluations { values: 0.0, gradients: 0.0, products: 0.0 },
            metrics: BTreeMap::from([(GAP.to_string(), spread)]),
        });
        let found = checks(&task, &problem);
        // The violation of the tuned method is added: 1e-7 + 3e-7.
        assert!((found[1].measured - 1.0).abs() < 1e-6 && found[1].holds, "{found:?}");
    }
}
