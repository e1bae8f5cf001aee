//! TaskRuns a benchmark: the grid searches of all tasks in one pool, then all runs in one pool.

use super::{
    compare::{Choice, TaskRuns, Trajectory, setting},
    sections,
};
use crate::{
    Error,
    analyze::{outcome, search},
    data::{
        benchmark::{BenchmarkSpec, Entrant, Role, Task, TaskSummary},
        command::CommandLine,
        experiment::{Experiment, Tune},
        plan::{Job, Plan},
        style::FigureStyle,
        summary::{Machine, Summary},
    },
    io::{
        atomic, data_file,
        lock::lock,
        results::{self, benchmark_file, check_empty, check_name},
        stream,
    },
    pipeline::{self, GRID_SEARCH, RUNS},
    registry::problems,
    report,
    run::{
        self, Options,
        prepare::{Prepared, Purpose, prepare},
    },
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::Path,
};
use strust_problems::Problem;

/// The contents of `benchmark.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkPlan {
    /// The version of strust that made it.
    pub version: String,
    /// The command line of the run.
    pub command: CommandLine,
    /// The machine of the run.
    pub machine: Machine,
    /// The benchmark.
    pub benchmark: BenchmarkSpec,
}

/// The plans of a task: one for each grid search (`None` for a method that is not tuned), and one for the runs.
struct TaskPlans {
    searches: Vec<Option<(Plan, Tune)>>,
    runs: Plan,
}

impl BenchmarkPlan {
    /// The plan of a benchmark.
    #[must_use]
    pub fn new(benchmark: BenchmarkSpec, command: CommandLine, machine: Machine) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").into(), command, machine, benchmark }
    }

    /// Reads `benchmark.json`.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let path = benchmark_file(folder);
        let text = stream::read_saved(&path).map_err(Error::io("read", &path))?;
        let plan: Self = serde_json::from_slice(&text)
            .map_err(|e| Error::saved(&path, format!("this is not a plan of this version of strust: {e}")))?;
        check_name(&path, &plan.benchmark.name)?;
        let one =
            |task: &Task| task.experiment.problems.len() == 1 && task.entrants.iter().all(|e| !e.settings.is_empty());
        if plan.benchmark.tasks.iter().all(one) { Ok(plan) } else { Err(Error::saved(&path, "the plan was edited")) }
    }

    fn plan(&self, experiment: Experiment) -> Plan {
        Plan::new(experiment, self.command.clone(), self.machine.clone())
    }

    /// The plans of a task before the grid search. The runs do not have the chosen settings yet.
    fn plans(&self, task: &Task) -> TaskPlans {
        let search = |entrant: &Entrant| {
            let metric = problems::metrics(&task.experiment.problems[0])[0].key.clone();
            let tune = Tune { metric, epochs: task.experiment.epochs, seeds: self.benchmark.tuning_seeds };
            let (methods, experiment) = (entrant.settings.clone(), task.experiment.clone());
            (self.plan(Experiment { methods, tune: Some(tune.clone()), ..experiment }), tune)
        };
        let searches = task.entrants.iter().map(|entrant| (entrant.role == Role::Tuned).then(|| search(entrant)));
        TaskPlans { searches: searches.collect(), runs: self.runs(task, &[]) }
    }

    /// The runs of a task: the method under test, its variations, the baselines without tuning and the chosen settings.
    fn runs(&self, task: &Task, choices: &[Choice]) -> Plan {
        let Task { experiment, entrants, variations, .. } = task;
        let mut plan = self.plan(experiment.clone());
        for &seed in &experiment.seeds {
            let mut add =
                |method, epochs| plan.jobs.push(Job::new(false, &experiment.problems[0], method, seed, epochs));
            for (i, entrant) in entrants.iter().enumerate() {
                let epochs = match entrant.role {
                    // A little longer, to see whether it arrives a little later.
                    Role::Tested => experiment.epochs + experiment.epochs.div_ceil(10),
                    Role::Tuned | Role::Untuned => experiment.epochs,
                };
                let method = match (entrant.role, choices.get(i)) {
                    (Role::Tuned, None) => None,
                    (_, choice) => setting(entrant, choice.unwrap_or(&None)),
                };
                if let Some(method) = method {
                    add(method, epochs);
                }
            }
            for variation in variations {
                add(&variation.method, experiment.epochs);
            }
        }
        plan
    }

    /// The choices of all grid searches of a task.
    fn choose(folder: &Path, plans: &TaskPlans) -> Result<Vec<Choice>, Error> {
        let choose = |one: &Option<(Plan, Tune)>| {
            let Some((plan, tune)) = one else { return Ok(None) };
            // There is one problem and one method.
            Ok(search(plan, tune, &|job| outcome(folder, plan, job))?.into_iter().next())
        };
        plans.searches.iter().map(choose).collect()
    }

    /// The results of all tasks.
    fn compare(&self, folder: &Path) -> Result<Vec<(TaskSummary, Vec<Trajectory>)>, Error> {
        let one = |task: &Task| {
            let choices = Self::choose(folder, &self.plans(task))?;
            let plan = self.runs(task, &choices);
            let optima = optima(task, &plan)?;
            let runs = TaskRuns {
                task,
                choices: &choices,
                plan: &plan,
                read: &|job| outcome(folder, &plan, job),
                optimum: &|seed| optima.get(&seed).copied().unwrap_or(0.0),
            };
            runs.compare()
        };
        self.benchmark.tasks.iter().map(one).collect()
    }

    fn summary(&self, folder: &Path) -> Result<Summary, Error> {
        let BenchmarkSpec { name, title, description, skipped, .. } = &self.benchmark;
        let (tasks, curves): (Vec<_>, Vec<_>) = self.compare(folder)?.into_iter().unzip();
        let (sections, checks) = sections::all(name, &tasks, &curves, skipped);
        Ok(Summary {
            experiment: name.clone(),
            title: title.clone(),
            description: description.clone(),
            version: self.version.clone(),
            command: self.command.clone(),
            machine: self.machine.clone(),
            epochs: 0,
            batch: 0,
            problems: Vec::new(),
            tuning: Vec::new(),
            tasks,
            skipped: skipped.clone(),
            diagnoses: Vec::new(),
            figures: FigureStyle::default(),
            checks,
            sections,
        })
    }
}

/// The optimum of a problem.
struct FindOptimum;

impl Purpose for FindOptimum {
    type Output = Option<f64>;
    fn with<F: Problem<Point: Send> + 'static>(self, prepared: Prepared<F>) -> Result<Option<f64>, Error> {
        Ok(prepared.f.optimum())
    }
}

/// The optimum of every seed, if the records have the gap to it: methods are compared by the objective.
fn optima(task: &Task, plan: &Plan) -> Result<BTreeMap<u64, f64>, Error> {
    let mut optima = BTreeMap::new();
    if problems::metrics(&task.experiment.problems[0])[0].key != "objective_gap" {
        return Ok(optima);
    }
    for job in &plan.jobs {
        if let Entry::Vacant(place) = optima.entry(job.seed) {
            let optimum = prepare(job, &plan.experiment, Path::new(""), FindOptimum)?;
            // Metrics are those of the loss without its factor.
            place.insert(optimum.unwrap_or(0.0) / problems::scale(&job.problem));
        }
    }
    Ok(optima)
}

/// Starts a benchmark in a folder, which must be new or empty.
pub fn start(folder: &Path, plan: &BenchmarkPlan, options: &Options) -> Result<Summary, Error> {
    let plans: Vec<TaskPlans> = plan.benchmark.tasks.iter().map(|task| plan.plans(task)).collect();
    for TaskPlans { runs, .. } in &plans {
        options.team.meanwhile(|| run::check(runs))?;
    }
    let all = plans.iter().flat_map(|plans| plans.searches.iter().flatten().map(|(plan, _)| plan).chain([&plans.runs]));
    pipeline::check_names(all)?;
    atomic::make_folder(folder)?;
    let _lock = lock(folder)?;
    check_empty(folder)?;
    atomic::write_json(&benchmark_file(folder), plan)?;
    finish(folder, plan, options)
}

/// Resumes the benchmark of a folder: finished jobs are not run again.
pub fn resume(folder: &Path, options: &Options) -> Result<Summary, Error> {
    let plan = BenchmarkPlan::load(folder)?;
    let _lock = lock(folder)?;
    pipeline::check_version(&plan.version, &benchmark_file(folder))?;
    results::sweep(folder);
    for task in &plan.benchmark.tasks {
        task.experiment.problems.iter().try_for_each(data_file::check_unchanged)?;
    }
    finish(folder, &plan, options)
}

/// The summary of a finished benchmark, computed from its records.
pub fn load_summary(folder: &Path) -> Result<Summary, Error> {
    BenchmarkPlan::load(folder)?.summary(folder)
}

fn finish(folder: &Path, plan: &BenchmarkPlan, options: &Options) -> Result<Summary, Error> {
    let tasks = &plan.benchmark.tasks;
    let plans: Vec<TaskPlans> = tasks.iter().map(|task| plan.plans(task)).collect();
    let searches: Vec<&Plan> = plans.iter().flat_map(|plans| plans.searches.iter().flatten().map(|(p, _)| p)).collect();
    run::run_plans(folder, GRID_SEARCH, searches, options)?;
    let with_choice = |(task, plans)| Ok(plan.runs(task, &BenchmarkPlan::choose(folder, plans)?));
    let runs: Vec<Plan> = options.team.meanwhile(|| tasks.iter().zip(&plans).map(with_choice).collect())?;
    run::run_plans(folder, RUNS, &runs, options)?;
    options.team.meanwhile(|| {
        let summary = plan.summary(folder)?;
        write(folder, &summary)?;
        Ok(summary)
    })
}

fn write(folder: &Path, summary: &Summary) -> Result<(), Error> {
    atomic::write_json(&folder.join("summary.json"), summary)?;
    atomic::write(&folder.join("summary.csv"), report::csv::tasks(summary).as_bytes())?;
    report::write(folder, std::slice::from_ref(summary))
}

/// Writes the summary, the report with its figures, and the last record of every job into a folder.
pub fn publish(folder: &Path, to: &Path) -> Result<(), Error> {
    let plan = BenchmarkPlan::load(folder)?;
    let summary = plan.summary(folder)?;
    pipeline::check_publish(to)?;
    let mut records = pipeline::PublishedRecords::default();
    for task in &plan.benchmark.tasks {
        let plans = plan.plans(task);
        let runs = plan.runs(task, &BenchmarkPlan::choose(folder, &plans)?);
        for plan in plans.searches.iter().flatten().map(|(plan, _)| plan).chain([&runs]) {
            for job in &plan.jobs {
                records.add_last(&job.name, &outcome(folder, plan, job)?)?;
            }
        }
    }
    atomic::make_folder(to)?;
    records.write(to)?;
    write(to, &summary)
}
