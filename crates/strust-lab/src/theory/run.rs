//! Runs theory experiments in parallel. Each section is written when it is finished.

use super::Theory;
use crate::{
    Error,
    data::{
        checksum,
        command::CommandLine,
        section::Section,
        style::FigureStyle,
        summary::{Machine, Summary},
    },
    io::{
        atomic,
        lock::lock,
        results::{self, CHECKS, check_empty, check_name, theory_file},
        stream,
    },
    report,
    run::{
        Options, RunProgress,
        orders::PoolKind,
        workers::{Halt, Tick, run_all},
    },
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The contents of `theory.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TheoryPlan {
    /// The version of strust that made it.
    pub version: String,
    /// The command line of the run.
    pub command: CommandLine,
    /// The machine of the run.
    pub machine: Machine,
    /// Its name, also the name of the results folder.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The experiments.
    pub experiments: Vec<Theory>,
}

impl TheoryPlan {
    /// The plan of some experiments.
    #[must_use]
    pub fn new(name: &str, title: &str, experiments: Vec<Theory>, command: CommandLine, machine: Machine) -> Self {
        let version = env!("CARGO_PKG_VERSION").into();
        Self { version, command, machine, name: name.into(), title: title.into(), experiments }
    }

    fn load(folder: &Path) -> Result<Self, Error> {
        let path = theory_file(folder);
        let text = stream::read_saved(&path).map_err(Error::io("read", &path))?;
        let plan: Self = serde_json::from_slice(&text)
            .map_err(|e| Error::saved(&path, format!("this is not a plan of this version of strust: {e}")))?;
        check_name(&path, &plan.name)?;
        plan.experiments.iter().try_for_each(|theory| check_name(&path, &theory.name))?;
        Ok(plan)
    }

    fn summary(&self, sections: Vec<Section>) -> Summary {
        Summary {
            experiment: self.name.clone(),
            title: self.title.clone(),
            description: String::new(),
            version: self.version.clone(),
            command: self.command.clone(),
            machine: self.machine.clone(),
            epochs: 0,
            batch: 0,
            problems: Vec::new(),
            tuning: Vec::new(),
            tasks: Vec::new(),
            skipped: Vec::new(),
            diagnoses: Vec::new(),
            figures: FigureStyle::default(),
            checks: sections.iter().flat_map(|section| section.checks.clone()).collect(),
            sections,
        }
    }
}

/// The contents of `checks/NAME.json`: a section and the checksum of its settings.
#[derive(Serialize, Deserialize)]
struct SavedSection {
    settings: u64,
    section: Section,
}

fn settings(theory: &Theory) -> u64 {
    checksum(&serde_json::to_vec(theory).expect("settings are plain data"))
}

fn path(folder: &Path, theory: &Theory) -> PathBuf {
    folder.join(CHECKS).join(format!("{}.json", theory.name))
}

/// Starts a plan in a folder, which must be new or empty.
pub fn start(folder: &Path, plan: &TheoryPlan, options: &Options) -> Result<Summary, Error> {
    atomic::make_folder(folder)?;
    let _lock = lock(folder)?;
    check_empty(folder)?;
    atomic::write_json(&theory_file(folder), plan)?;
    finish(folder, plan, options)
}

/// Resumes the plan of a folder: finished experiments are not run again.
pub fn resume(folder: &Path, options: &Options) -> Result<Summary, Error> {
    let plan = TheoryPlan::load(folder)?;
    let _lock = lock(folder)?;
    results::sweep(folder);
    finish(folder, &plan, options)
}

/// The summary of a finished run.
pub fn load_summary(folder: &Path) -> Result<Summary, Error> {
    let plan = TheoryPlan::load(folder)?;
    let section = |theory: &Theory| {
        load(folder, theory)?.ok_or_else(|| {
            Error::saved(&path(folder, theory), "this experiment is not finished: continue with `strust resume`")
        })
    };
    let sections = plan.experiments.iter().map(section).collect::<Result<Vec<_>, _>>()?;
    Ok(plan.summary(sections))
}

fn load(folder: &Path, theory: &Theory) -> Result<Option<Section>, Error> {
    let path = path(folder, theory);
    match stream::read_saved(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", &path)(e)),
        Ok(text) => match serde_json::from_slice::<SavedSection>(&text) {
            Ok(saved) if saved.settings == settings(theory) => Ok(Some(saved.section)),
            Ok(_) => Err(Error::saved(&path, "this file belongs to other settings: remove it and resume")),
            Err(e) => Err(Error::saved(&path, format!("{e}: remove it and resume"))),
        },
    }
}

fn finish(folder: &Path, plan: &TheoryPlan, options: &Options) -> Result<Summary, Error> {
    atomic::make_folder(&atomic::inside(folder, [CHECKS])?)?;
    options.progress.begin("checks", plan.experiments.len());
    let (progress, pool) = (options.progress, || options.pool(PoolKind::Theory, folder, plan));
    run_all(&plan.experiments, pool, options, |theory, halt| run_one(folder, theory, halt, progress))?;
    options.team.meanwhile(|| {
        let summary = load_summary(folder)?;
        atomic::write_json(&folder.join("summary.json"), &summary)?;
        atomic::write(&folder.join("summary.csv"), report::csv::checks(&summary).as_bytes())?;
        report::write(folder, std::slice::from_ref(&summary))?;
        Ok(summary)
    })
}

/// Runs an experiment of a plan, unless it is already done.
pub(crate) fn run_one(folder: &Path, theory: &Theory, halt: Halt, progress: &dyn RunProgress) -> Result<(), Error> {
    let mut tick = Tick::new(progress.job(&theory.name), halt);
    if load(folder, theory)?.is_none() {
        match theory.run(&mut tick) {
            Ok(section) => {
                atomic::write_json(&path(folder, theory), &SavedSection { settings: settings(theory), section })?;
            }
            Err(error) => {
                tick.pace.stop();
                return Err(error);
            }
        }
    }
    tick.pace.now(1, 1);
    tick.pace.end(None);
    Ok(())
}
