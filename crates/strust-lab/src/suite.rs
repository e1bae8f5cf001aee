//! Suites: studies of many experiments and checks in one folder. A suite is planned, run, resumed, summarized and
//! published as one experiment is. This module runs any [`Suite`]; strust-suites has them.
//!
//! ```text
//! SuitePlan (S::FILE) → checks (checks/NAME.json) → grid searches → runs → Summary → report.html
//! ```
//!
//! A check depends only on its settings. It is written when it is finished, so a stopped suite resumes with the next one.

pub use crate::run::workers::Tick;

use crate::{
    Error,
    data::{
        checksum,
        command::CommandLine,
        experiment::Experiment,
        plan::Plan,
        section::Section,
        summary::{Machine, ProblemSummary, Summary},
    },
    io::{
        atomic, data_file,
        lock::lock,
        results::{self, CHECKS, check_empty, check_name},
        stream,
    },
    pipeline::{self, GRID_SEARCH, RUNS},
    run::{
        self, JobEvent, Options, RunProgress,
        workers::{Halt, run_all},
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::path::{Path, PathBuf};

/// A study of many experiments and checks.
pub trait Suite: Serialize + DeserializeOwned + Sync + Sized {
    /// The name of its plan file, one of [`SUITES`](results::SUITES).
    const FILE: &'static str;
    /// The word for a check in messages.
    const CHECK: &'static str = "part";

    /// The names in the plan: of the suite, then of what becomes files.
    fn names(&self) -> Vec<&str>;
    /// Whether a plan that was read from a file can be one that the program wrote.
    fn is_plausible(&self) -> bool {
        true
    }
    /// Whether a network is on a GPU.
    fn on_gpu(&self) -> bool {
        false
    }
    /// The names of the checks.
    fn checks(&self) -> Vec<&str> {
        Vec::new()
    }
    /// All that a check depends on, as JSON.
    fn check_settings(&self, _check: usize) -> serde_json::Result<Vec<u8>> {
        Ok(Vec::new())
    }
    /// Computes a check.
    fn run_check(&self, check: usize, _tick: &mut Tick) -> Result<CheckResults, Error> {
        Err(Error::Misfit(format!("there is no check {check}")))
    }
    /// The plans of all grid searches. In a folder, a grid may have grown as the finished jobs there decide; the jobs of
    /// earlier plans stay.
    fn searches(_plan: &SuitePlan<Self>, _folder: Option<&Path>) -> Result<Vec<Plan>, Error> {
        Ok(Vec::new())
    }
    /// The plans of all runs, with what the grid searches in a folder chose. Without a folder, only the runs that do not
    /// depend on a grid search.
    fn runs(_plan: &SuitePlan<Self>, _folder: Option<&Path>) -> Result<Vec<Plan>, Error> {
        Ok(Vec::new())
    }
    /// The summary of a finished suite.
    fn summary(plan: &SuitePlan<Self>, folder: &Path, checks: Vec<CheckResults>) -> Result<Summary, Error>;
    /// The contents of `summary.csv`.
    fn csv(summary: &Summary) -> String;
}

/// A suite with the origin of its results: the contents of its plan file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuitePlan<S> {
    /// The version of strust that made it.
    pub version: String,
    /// The command line of the run.
    pub command: CommandLine,
    /// The machine of the run.
    pub machine: Machine,
    /// The suite.
    #[serde(flatten)]
    pub suite: S,
}

/// The results of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckResults {
    /// Its section of the report.
    pub section: Section,
    /// Its problems in the summary.
    pub problems: Vec<ProblemSummary>,
}

/// The contents of `checks/NAME.json`.
#[derive(Serialize, Deserialize)]
struct SavedCheck {
    /// The checksum of the settings.
    settings: u64,
    section: Section,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    problems: Vec<ProblemSummary>,
}

impl<S: Suite> SuitePlan<S> {
    /// The plan of a suite.
    #[must_use]
    pub fn new(suite: S, command: CommandLine, machine: Machine) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").into(), command, machine, suite }
    }

    /// Reads the plan file of a folder.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(S::FILE);
        let text = stream::read_saved(&path).map_err(Error::io("read", &path))?;
        let plan: Self = serde_json::from_slice(&text)
            .map_err(|e| Error::saved(&path, format!("this is not a plan of this version of strust: {e}")))?;
        plan.suite.names().into_iter().try_for_each(|name| check_name(&path, name))?;
        if plan.suite.is_plausible() { Ok(plan) } else { Err(Error::saved(&path, "the plan was edited")) }
    }

    /// The plan of an experiment of this suite.
    #[must_use]
    pub fn plan(&self, experiment: Experiment) -> Plan {
        Plan::new(experiment, self.command.clone(), self.machine.clone())
    }

    /// A summary without results.
    #[must_use]
    pub fn summary(&self, title: &str, description: &str) -> Summary {
        Summary {
            experiment: self.suite.names().first().copied().unwrap_or_default().into(),
            title: title.into(),
            description: description.into(),
            version: self.version.clone(),
            command: self.command.clone(),
            machine: self.machine.clone(),
            ..Summary::default()
        }
    }

    /// Starts the suite in a folder, which must be new or empty.
    pub fn start(&self, folder: &Path, options: &Options) -> Result<Summary, Error> {
        let runs = S::runs(self, None)?;
        for plan in &runs {
            options.team.meanwhile(|| run::check(plan))?;
        }
        pipeline::check_names(S::searches(self, None)?.iter().chain(&runs))?;
        atomic::make_folder(folder)?;
        let _lock = lock(folder)?;
        check_empty(folder)?;
        atomic::write_json(&folder.join(S::FILE), self)?;
        self.finish(folder, options)
    }

    /// Resumes the suite of a folder: finished checks and jobs are not run again.
    pub fn resume(folder: &Path, options: &Options) -> Result<Summary, Error> {
        let plan = Self::load(folder)?;
        let _lock = lock(folder)?;
        pipeline::check_version(&plan.version, &folder.join(S::FILE))?;
        results::sweep(folder);
        for runs in S::runs(&plan, None)? {
            runs.experiment.problems.iter().try_for_each(data_file::check_unchanged)?;
        }
        plan.finish(folder, options)
    }

    /// The summary of a finished suite, from its checks and records.
    pub fn load_summary(folder: &Path) -> Result<Summary, Error> {
        Self::load(folder)?.summarize(folder)
    }

    /// Writes the summary, the report with its figures, and the last record of every job into a folder.
    pub fn publish(folder: &Path, to: &Path) -> Result<(), Error> {
        let plan = Self::load(folder)?;
        let mut plans = S::searches(&plan, Some(folder))?;
        plans.extend(S::runs(&plan, Some(folder))?);
        if plans.is_empty() {
            return Err(Error::saved(folder, "--publish is not needed for checks: copy the folder instead"));
        }
        let summary = plan.summarize(folder)?;
        pipeline::publish_plans(folder, to, &plans, &summary, &S::csv(&summary), true)
    }

    fn finish(&self, folder: &Path, options: &Options) -> Result<Summary, Error> {
        let (progress, checks) = (options.progress, self.suite.checks().len());
        if checks > 0 {
            atomic::make_folder(&atomic::inside(folder, [CHECKS])?)?;
            progress.begin(CHECKS, checks);
            let items: Vec<usize> = (0..checks).collect();
            let pool = || options.pool(S::FILE, folder, self);
            run_all(&items, pool, options, |&check, halt| self.run_check(folder, check, halt, progress))?;
        }
        let mut planned = 0;
        loop {
            let searches = options.team.meanwhile(|| S::searches(self, Some(folder)))?;
            let jobs = searches.iter().map(|search| search.jobs.len()).sum();
            if jobs == planned {
                break;
            }
            planned = jobs;
            run::run_plans(folder, GRID_SEARCH, &searches, options)?;
        }
        let runs = options.team.meanwhile(|| S::runs(self, Some(folder)))?;
        if !runs.is_empty() {
            run::run_plans(folder, RUNS, &runs, options)?;
        }
        options.team.meanwhile(|| {
            let summary = self.summarize(folder)?;
            pipeline::write_summary(folder, &summary, &S::csv(&summary))?;
            Ok(summary)
        })
    }

    fn summarize(&self, folder: &Path) -> Result<Summary, Error> {
        let mut checks = Vec::new();
        for check in 0..self.suite.checks().len() {
            checks.push(self.load_check(folder, check)?.ok_or_else(|| {
                let why = format!("this {} is not finished: continue with `strust resume`", S::CHECK);
                Error::saved(&self.check_file(folder, check), why)
            })?);
        }
        S::summary(self, folder, checks)
    }

    fn check_file(&self, folder: &Path, check: usize) -> PathBuf {
        folder.join(CHECKS).join(format!("{}.json", self.suite.checks()[check]))
    }

    fn settings(&self, check: usize) -> u64 {
        checksum(&self.suite.check_settings(check).expect("settings are plain data"))
    }

    /// The results of a finished check.
    fn load_check(&self, folder: &Path, check: usize) -> Result<Option<CheckResults>, Error> {
        let path = self.check_file(folder, check);
        let Some(text) = stream::read_if_there(&path)? else { return Ok(None) };
        match serde_json::from_slice::<SavedCheck>(&text) {
            Ok(SavedCheck { settings, section, problems }) if settings == self.settings(check) => {
                Ok(Some(CheckResults { section, problems }))
            }
            Ok(_) => Err(Error::saved(&path, "this file belongs to other settings: remove it and resume")),
            Err(e) => Err(Error::saved(&path, format!("{e}: remove it and resume"))),
        }
    }
}

/// The checks of a suite whose type is hidden, for a rank that works for rank 0.
pub(crate) trait RunChecks {
    /// Computes a check, unless it is already done.
    fn run_check(&self, folder: &Path, check: usize, halt: Halt, progress: &dyn RunProgress) -> Result<(), Error>;
}

impl<S: Suite> RunChecks for SuitePlan<S> {
    fn run_check(&self, folder: &Path, check: usize, halt: Halt, progress: &dyn RunProgress) -> Result<(), Error> {
        let names = self.suite.checks();
        let name = names.get(check).ok_or_else(|| Error::Ranks(run::no_item(check)))?;
        let mut tick = Tick::new(progress, name, halt);
        if self.load_check(folder, check)?.is_none() {
            let computed = self.suite.run_check(check, &mut tick).inspect_err(|_| tick.pace.show(&JobEvent::Stop))?;
            let CheckResults { section, problems } = computed;
            let saved = SavedCheck { settings: self.settings(check), section, problems };
            atomic::write_json(&self.check_file(folder, check), &saved)?;
        }
        tick.pace.now(1, 1);
        tick.pace.show(&JobEvent::End(None));
        Ok(())
    }
}

/// A kind of suite, for commands that find one in a folder.
#[derive(Clone, Copy)]
pub struct SuiteKind {
    pub(crate) file: &'static str,
    /// Resumes the suite of a folder.
    pub resume: fn(&Path, &Options) -> Result<Summary, Error>,
    /// The summary of a finished suite.
    pub load_summary: fn(&Path) -> Result<Summary, Error>,
    /// Writes the results of a folder into another one.
    pub publish: fn(&Path, &Path) -> Result<(), Error>,
    /// Whether the suite of a folder has a network on a GPU.
    pub on_gpu: fn(&Path) -> Result<bool, Error>,
    pub(crate) checks: fn(&[u8]) -> serde_json::Result<Box<dyn RunChecks + Sync>>,
}

impl SuiteKind {
    /// The kind of a type of suites.
    #[must_use]
    pub const fn of<S: Suite + 'static>() -> Self {
        Self {
            file: S::FILE,
            resume: SuitePlan::<S>::resume,
            load_summary: SuitePlan::<S>::load_summary,
            publish: SuitePlan::<S>::publish,
            on_gpu: |folder| Ok(SuitePlan::<S>::load(folder)?.suite.on_gpu()),
            checks: |plan| Ok(Box::new(serde_json::from_slice::<SuitePlan<S>>(plan)?)),
        }
    }

    /// Whether a folder holds a suite of this kind.
    #[must_use]
    pub fn is_in(&self, folder: &Path) -> bool {
        folder.join(self.file).is_file()
    }
}
