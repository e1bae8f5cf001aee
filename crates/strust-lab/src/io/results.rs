//! The files of a results folder and of its jobs.

use super::{
    atomic,
    checkpoint::Checkpoint,
    jsonl::{self, RECORDS, TIMINGS},
    stream,
};
use crate::{
    Error,
    data::{
        checksum,
        experiment::MAX_EPOCHS,
        plan::{Job, Plan},
        record::Timing,
        summary::{Failure, Summary},
    },
    format::{NAME_RULE, control_character, is_name},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    path::{Path, PathBuf},
};

const PLAN: &str = "plan.json";
/// The plan files of suites, and what a folder with one of them holds.
pub const SUITES: [(&str, &str); 4] = [
    ("theory.json", "checks of the theory"),
    ("benchmark.json", "a benchmark"),
    ("constrained.json", "many problems"),
    ("fairness.json", "a study of fairness"),
];
const JOBS: &str = "runs";
/// The folder of the figures.
pub(crate) const FIGURES: &str = "figures";
/// The folder of the parts of a study.
pub(crate) const CHECKS: &str = "checks";
const CHECKPOINT: &str = "checkpoint.bin";
const FAILED: &str = "failed.json";

/// The folder of a job.
#[must_use]
pub fn job_folder(folder: &Path, job: &Job) -> PathBuf {
    folder.join(JOBS).join(&job.name)
}

/// The same, to write into it.
pub(crate) fn job_folder_to_write(folder: &Path, job: &Job) -> Result<PathBuf, Error> {
    atomic::inside(folder, [JOBS, &job.name])
}

/// The files that strust writes into a folder of results, apart from those in its folders.
pub fn own_files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    const OTHERS: [&str; 5] = ["summary.json", "summary.csv", "report.html", "comparison.csv", RECORDS];
    plan_files().chain(OTHERS).map(|name| folder.join(name))
}

/// Removes temporary files that killed programs left in a folder of results.
pub(crate) fn sweep(folder: &Path) {
    atomic::sweep(folder);
    let jobs = std::fs::read_dir(folder.join(JOBS)).into_iter().flatten().flatten().map(|job| job.file_name());
    let jobs = jobs.map(|job| atomic::inside(folder, [OsStr::new(JOBS), &job]));
    let others = [FIGURES, CHECKS].map(|name| atomic::inside(folder, [name]));
    // Behind a link are files of others.
    jobs.chain(others).flatten().for_each(|inner| atomic::sweep(&inner));
}

/// The checkpoint of the job in a folder.
pub(crate) fn checkpoint_file(folder: &Path) -> PathBuf {
    folder.join(CHECKPOINT)
}

/// The names of plan files.
fn plan_files() -> impl Iterator<Item = &'static str> {
    std::iter::once(PLAN).chain(SUITES.map(|(file, _)| file))
}

/// Whether a folder holds a run of an experiment.
pub(crate) fn has_plan(folder: &Path) -> bool {
    folder.join(PLAN).exists()
}

/// What the folder of a suite holds, in words; `None` if it is not one.
#[must_use]
pub fn suite_in(folder: &Path) -> Option<&'static str> {
    SUITES.into_iter().find(|(file, _)| folder.join(file).is_file()).map(|(_, what)| what)
}

/// Whether a folder holds a run of any kind.
pub(crate) fn holds_run(folder: &Path) -> bool {
    has_plan(folder) || suite_in(folder).is_some()
}

/// The checksum of the plan file in a folder: two folders with the same one are the same folder.
pub(crate) fn seal(folder: &Path) -> Option<u64> {
    plan_files().find_map(|file| stream::read_saved(&folder.join(file)).ok()).map(|plan| checksum(&plan))
}

/// Checks that a new run may start in a folder: it is empty.
pub(crate) fn check_empty(folder: &Path) -> Result<(), Error> {
    if holds_run(folder) {
        let why =
            "the folder already holds a run: continue it with `strust resume`, or choose another folder with --out";
        return Err(Error::saved(folder, why));
    }
    // A program that was killed while it wrote its plan has left a temporary file and nothing else.
    atomic::sweep(folder);
    if !is_empty(folder).map_err(Error::io("read", folder))? {
        return Err(Error::saved(folder, "the folder is not empty: choose another one with --out"));
    }
    Ok(())
}

/// Whether a folder has nothing but temporary files of killed writers.
fn is_empty(folder: &Path) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        if !atomic::is_temporary(&entry?.file_name()) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Plan {
    /// Writes `plan.json`.
    pub fn save(&self, folder: &Path) -> Result<(), Error> {
        atomic::write_json(&folder.join(PLAN), self)
    }

    /// Reads `plan.json`.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(PLAN);
        if let (Some(what), false) = (suite_in(folder), has_plan(folder)) {
            let why = format!("this folder holds {what}, not one experiment: `strust report` shows the results");
            return Err(Error::saved(folder, why));
        }
        let text = stream::read_saved(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound if !folder.exists() => Error::saved(folder, "there is no such folder"),
            std::io::ErrorKind::NotADirectory => Error::saved(folder, "this is a file, not a results folder"),
            std::io::ErrorKind::NotFound if folder.join("summary.json").exists() => Error::saved(
                folder,
                "these are published results: `strust report` shows them, but there is no run here",
            ),
            std::io::ErrorKind::NotFound if is_empty(folder).unwrap_or(false) => Error::saved(
                folder,
                "this is not a results folder: it has no plan.json. If a run was stopped before its plan was written, \
                 start it again with `strust run` and --out",
            ),
            std::io::ErrorKind::NotFound => Error::saved(folder, "this is not a results folder: it has no plan.json"),
            _ => Error::io("read", &path)(e),
        })?;
        let plan: Self = serde_json::from_slice(&text)
            .map_err(|e| Error::saved(&path, format!("this is not a plan of this version of strust: {e}")))?;
        check_name(&path, &plan.experiment.name)?;
        // A job's name is a path: an edited name could refer to any folder.
        let edited = |job: &Job| !job.has_right_name() || !(1..=MAX_EPOCHS).contains(&job.epochs);
        let different: BTreeSet<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
        if different.len() < plan.jobs.len().max(1) || plan.jobs.iter().any(edited) {
            return Err(Error::saved(&path, "the plan was edited: its jobs do not match its settings"));
        }
        Ok(plan)
    }

    /// Whether a job of this plan, in its own `folder`, is done and its logs are complete.
    pub(crate) fn is_done(&self, job: &Job, folder: &Path) -> Result<bool, Error> {
        let Some(saved) = Checkpoint::load(&checkpoint_file(folder), job.checksum(&self.experiment))? else {
            return Ok(false);
        };
        if !saved.done {
            return Ok(false);
        }
        let lengthened = self.experiment.first_epochs.is_some() && !job.tuning;
        for (name, mark) in [RECORDS, TIMINGS].iter().zip(saved.logs()) {
            let path = folder.join(name);
            // A lengthened run that was stopped before its next checkpoint has longer logs. The job cuts them off.
            if lengthened && std::fs::metadata(&path).is_ok_and(|data| data.len() > mark.length) {
                return Ok(false);
            }
            mark.check_end(&path)?;
        }
        if lengthened {
            let timings: Vec<Timing> = jsonl::read(&folder.join(TIMINGS), false, |_| true)?;
            return Ok(timings.last().is_some_and(|last| last.epoch >= job.epochs));
        }
        Ok(true)
    }
}

/// The summary in a folder.
pub(crate) fn load_summary_file(folder: &Path) -> Result<Summary, Error> {
    let path = folder.join("summary.json");
    let text = stream::read_saved(&path).map_err(Error::io("read", &path))?;
    let summary: Summary = serde_json::from_slice(&text)
        .map_err(|e| Error::saved(&path, format!("this is not a summary of strust: {e}")))?;
    check_name(&path, &summary.experiment)?;
    let problems = summary.problems.iter();
    let names = problems.flat_map(|problem| {
        let methods = problem.methods.iter().flat_map(|method| [&method.name, &method.label]);
        let metrics = problem.metrics.iter().flat_map(|metric| [&metric.key, &metric.label]);
        [&problem.name, &problem.title].into_iter().chain(methods).chain(metrics)
    });
    if let Some(found) = names.chain([&summary.title]).find_map(|name| control_character(name, false)) {
        return Err(Error::saved(
            &path,
            format!("the file was edited: a name in it has the control character {found}"),
        ));
    }
    Ok(summary)
}

/// Checks the name of an experiment that was read from a file. Names become parts of paths, and the file may come from
/// somebody else.
pub(crate) fn check_name(path: &Path, name: &str) -> Result<(), Error> {
    if is_name(name) {
        return Ok(());
    }
    Err(Error::saved(path, format!("the file was edited: the name {name:?} {NAME_RULE}")))
}

/// The contents of `failed.json`.
#[derive(Serialize, Deserialize)]
struct Failed {
    /// The checksum of the job.
    job: u64,
    #[serde(flatten)]
    failure: Failure,
}

/// Saves the failure of the job with this checksum.
pub(crate) fn save_failure(folder: &Path, job: u64, failure: &Failure) -> Result<(), Error> {
    atomic::make_folder(folder)?;
    atomic::write_json(&folder.join(FAILED), &Failed { job, failure: failure.clone() })
}

/// The failure of the job with this checksum, if it failed.
pub(crate) fn load_failure(folder: &Path, job: u64) -> Result<Option<Failure>, Error> {
    let path = folder.join(FAILED);
    let Some(text) = stream::read_if_there(&path)? else { return Ok(None) };
    match serde_json::from_slice::<Failed>(&text) {
        Ok(failed) if failed.job == job => Ok(Some(failed.failure)),
        Ok(_) => Err(Error::saved(&path, "belongs to other settings: remove the job's folder and resume")),
        Err(e) => Err(Error::saved(&path, format!("{e}: remove the job's folder and resume"))),
    }
}
