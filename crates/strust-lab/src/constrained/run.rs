//! Runs the study: the parts on small problems in one pool, then the grid searches of all tasks, then their runs.

use super::{
    parts::{Part, PartInput},
    reference::{ReferenceFile, ReferenceProblem},
    settings::ConstrainedSettings,
    tasks::{self, Tasks},
};
use crate::{
    Error,
    analyze::outcome,
    data::{
        benchmark::{BenchmarkSpec, Task},
        command::CommandLine,
        experiment::Experiment,
        plan::Plan,
        style::FigureStyle,
        summary::{Machine, Summary},
    },
    experiment::built_in,
    io::{
        atomic, data_file,
        lock::lock,
        results::{self, CHECKS, check_empty, check_name, constrained_file},
        stream,
    },
    pipeline::{self, GRID_SEARCH, RUNS},
    report,
    run::{
        self, Options, RunProgress,
        orders::PoolKind,
        workers::{Halt, Tick, run_all},
    },
    zero_tuning::Resources,
};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The contents of `constrained.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConstrainedPlan {
    /// The version of strust that made it.
    pub version: String,
    /// The command line of the run.
    pub command: CommandLine,
    /// The machine of the run.
    pub machine: Machine,
    /// How much runs on small problems.
    pub settings: ConstrainedSettings,
    /// The results of other programs.
    pub reference: Vec<ReferenceProblem>,
    /// The tasks with data.
    pub benchmark: BenchmarkSpec,
}

impl ConstrainedPlan {
    /// The built-in tasks. Those whose data, library or device is missing are skipped.
    pub fn tasks(resources: &Resources) -> Result<BenchmarkSpec, Error> {
        let (name, text) = built_in::CONSTRAINED;
        BenchmarkSpec::parse_tasks(Path::new(name), text, resources, true)
    }

    /// The plan of a study.
    #[must_use]
    pub fn new(
        settings: ConstrainedSettings,
        reference: Option<ReferenceFile>,
        benchmark: BenchmarkSpec,
        command: CommandLine,
        machine: Machine,
    ) -> Self {
        let reference = reference.map(|reference| reference.problems).unwrap_or_default();
        Self { version: env!("CARGO_PKG_VERSION").into(), command, machine, settings, reference, benchmark }
    }

    /// Reads `constrained.json`.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let path = constrained_file(folder);
        let text = stream::read_saved(&path).map_err(Error::io("read", &path))?;
        let plan: Self = serde_json::from_slice(&text)
            .map_err(|e| Error::saved(&path, format!("this is not a plan of this version of strust: {e}")))?;
        check_name(&path, &plan.benchmark.name)?;
        let one =
            |task: &Task| task.experiment.problems.len() == 1 && task.entrants.iter().all(|e| !e.settings.is_empty());
        if plan.benchmark.tasks.iter().all(one) { Ok(plan) } else { Err(Error::saved(&path, "the plan was edited")) }
    }

    fn input(&self) -> PartInput<'_> {
        PartInput { settings: &self.settings, reference: &self.reference }
    }

    fn plan(&self, experiment: Experiment) -> Plan {
        Plan::new(experiment, self.command.clone(), self.machine.clone())
    }

    fn with_tasks<T>(&self, run: impl FnOnce(Tasks) -> T) -> T {
        run(Tasks { tuning_seeds: self.benchmark.tuning_seeds, plan: &|experiment| self.plan(experiment) })
    }

    /// The plans of all grid searches, one list for each task.
    fn searches(&self) -> Vec<Vec<Plan>> {
        let of = |task: &Task| {
            let searches = self.with_tasks(|tasks| tasks.searches(task));
            searches.into_iter().flatten().map(|(plan, _)| plan).collect()
        };
        self.benchmark.tasks.iter().map(of).collect()
    }

    /// The plans of all runs, after the grid searches.
    fn runs(&self, folder: &Path) -> Result<Vec<Plan>, Error> {
        let of = |task: &Task| {
            self.with_tasks(|tasks| {
                let chosen = Tasks::choose(folder, &tasks.searches(task))?;
                Ok(tasks.runs(task, &chosen))
            })
        };
        self.benchmark.tasks.iter().map(of).collect()
    }

    fn summary(&self, folder: &Path) -> Result<Summary, Error> {
        let BenchmarkSpec { name, title, description, tasks, skipped, .. } = &self.benchmark;
        let largest = |of: fn(&Experiment) -> u64| tasks.iter().map(|task| of(&task.experiment)).max().unwrap_or(0);
        let mut summary = Summary {
            experiment: name.clone(),
            title: title.clone(),
            description: description.clone(),
            version: self.version.clone(),
            command: self.command.clone(),
            machine: self.machine.clone(),
            epochs: largest(|experiment| experiment.epochs),
            batch: largest(|experiment| experiment.batch),
            problems: Vec::new(),
            tuning: Vec::new(),
            tasks: Vec::new(),
            skipped: Vec::new(),
            diagnoses: Vec::new(),
            figures: FigureStyle::default(),
            checks: Vec::new(),
            sections: Vec::new(),
        };
        for part in Part::ALL {
            part.add_to(&mut summary, folder, self.input())?;
        }
        self.with_tasks(|all| tasks::add_to(&mut summary, all, folder, (tasks, skipped)))?;
        summary.checks = summary.sections.iter().flat_map(|section| section.checks.clone()).collect();
        Ok(summary)
    }
}

/// Starts a study in a folder, which must be new or empty.
pub fn start(folder: &Path, plan: &ConstrainedPlan, options: &Options) -> Result<Summary, Error> {
    let mut plans = plan.searches().concat();
    for task in &plan.benchmark.tasks {
        let runs =
            plan.plan(Experiment { methods: vec![task.entrants[0].settings[0].clone()], ..task.experiment.clone() });
        options.team.meanwhile(|| run::check(&runs))?;
        plans.push(runs);
    }
    pipeline::check_names(&plans)?;
    atomic::make_folder(folder)?;
    let _lock = lock(folder)?;
    check_empty(folder)?;
    atomic::write_json(&constrained_file(folder), plan)?;
    finish(folder, plan, options)
}

/// Resumes the study of a folder: finished parts and jobs are not run again.
pub fn resume(folder: &Path, options: &Options) -> Result<Summary, Error> {
    let plan = ConstrainedPlan::load(folder)?;
    let _lock = lock(folder)?;
    pipeline::check_version(&plan.version, &constrained_file(folder))?;
    results::sweep(folder);
    for task in &plan.benchmark.tasks {
        task.experiment.problems.iter().try_for_each(data_file::check_unchanged)?;
    }
    finish(folder, &plan, options)
}

/// The summary of a finished study, from its parts and records.
pub fn load_summary(folder: &Path) -> Result<Summary, Error> {
    ConstrainedPlan::load(folder)?.summary(folder)
}

fn finish(folder: &Path, plan: &ConstrainedPlan, options: &Options) -> Result<Summary, Error> {
    atomic::make_folder(&atomic::inside(folder, [CHECKS])?)?;
    options.progress.begin("checks", Part::ALL.len());
    let (progress, pool) = (options.progress, || options.pool(PoolKind::Constrained, folder, plan));
    let parts: Vec<usize> = (0..Part::ALL.len()).collect();
    run_all(&parts, pool, options, |&part, halt| run_part(folder, plan, part, halt, progress))?;
    run::run_plans(folder, GRID_SEARCH, &plan.searches().concat(), options)?;
    let runs = options.team.meanwhile(|| plan.runs(folder))?;
    run::run_plans(folder, RUNS, &runs, options)?;
    options.team.meanwhile(|| {
        let summary = plan.summary(folder)?;
        write(folder, &summary)?;
        Ok(summary)
    })
}

/// Runs the part with this number, unless it is already done.
pub(crate) fn run_part(
    folder: &Path,
    plan: &ConstrainedPlan,
    part: usize,
    halt: Halt,
    progress: &dyn RunProgress,
) -> Result<(), Error> {
    let part = Part::ALL[part];
    let mut tick = Tick::new(progress.job(part.name()), halt);
    if let Err(error) = part.run(folder, plan.input(), &mut tick) {
        tick.pace.stop();
        return Err(error);
    }
    tick.pace.now(1, 1);
    tick.pace.end(None);
    Ok(())
}

fn write(folder: &Path, summary: &Summary) -> Result<(), Error> {
    atomic::write_json(&folder.join("summary.json"), summary)?;
    atomic::write(&folder.join("summary.csv"), report::csv::solutions(summary).as_bytes())?;
    report::write(folder, std::slice::from_ref(summary))
}

/// Writes the summary, the report with its figures, and the last record of every job into a folder.
pub fn publish(folder: &Path, to: &Path) -> Result<(), Error> {
    let plan = ConstrainedPlan::load(folder)?;
    let summary = plan.summary(folder)?;
    pipeline::check_publish(to)?;
    let mut records = pipeline::PublishedRecords::default();
    for plan in plan.searches().concat().iter().chain(&plan.runs(folder)?) {
        for job in &plan.jobs {
            records.add_last(&job.name, &outcome(folder, plan, job)?)?;
        }
    }
    atomic::make_folder(to)?;
    records.write(to)?;
    write(to, &summary)
}
