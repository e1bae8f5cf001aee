//! The diagnosis of a run: a verdict, the evidence in sentences with numbers, and one change.
//!
//! `read` computes statistics of the records, and `examine` measures the last checkpoint on the full sum. `facts`
//! combines both, `judge` derives the verdict and its cause, `remedy` the change, and `sentences` the text.

mod course;
mod examine;
mod facts;
mod judge;
mod read;
mod reference;
mod region;
mod remedy;
mod sentences;
mod solution;

pub use crate::data::diagnosis::{Diagnosis, Finding, Remedy, RunVerdict};
pub use examine::{Examination, FeatureSizes, Generalization};
pub use reference::ReferencePoint;

use facts::Facts;
use read::RecordStats;

use crate::{
    Error,
    data::plan::{Job, Plan},
    io::{
        jsonl::RECORDS,
        results::{has_plan, job_folder, load_failure},
    },
    registry::problems::is_network,
};
use std::{collections::BTreeSet, path::Path};

/// How much a diagnosis may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// For a report: networks are not evaluated again.
    Report,
    /// For `strust diagnose`: everything is measured.
    Asked,
}

/// Diagnoses the first seed of every method in a results folder, or the job of a job's folder. The run may still be in
/// progress.
pub fn diagnose(folder: &Path) -> Result<Vec<Diagnosis>, Error> {
    // A job's folder is in `runs` of the results folder, which a relative path may not name.
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.into());
    let folder = whole.as_path();
    let above = folder.parent().and_then(Path::parent).filter(|_| !has_plan(folder));
    let Some(results) = above.filter(|above| has_plan(above)) else {
        let plan = Plan::load(folder)?;
        return of_plan(folder, &plan, Effort::Asked);
    };
    let plan = Plan::load(results)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    match plan.jobs.iter().find(|job| job.name == name) {
        Some(job) => Ok(vec![of_job(results, &plan, job, Effort::Asked)?]),
        None => Err(Error::saved(folder, format!("the plan of {} has no job of this name", results.display()))),
    }
}

/// The first seed of every method on every problem; after a grid search, only of the settings it chose.
pub(crate) fn of_plan(folder: &Path, plan: &Plan, effort: Effort) -> Result<Vec<Diagnosis>, Error> {
    let mut done: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut found = Vec::new();
    let tuned = plan.jobs.iter().any(|job| !job.tuning);
    for job in plan.jobs.iter().filter(|job| !(tuned && job.tuning)) {
        let which = (job.problem.name.as_str(), job.method.label.as_str());
        if done.insert(which) {
            found.push(of_job(folder, plan, job, effort)?);
        }
    }
    Ok(found)
}

fn of_job(folder: &Path, plan: &Plan, job: &Job, effort: Effort) -> Result<Diagnosis, Error> {
    let folder = job_folder(folder, job);
    let broken = load_failure(&folder, job.checksum(&plan.experiment))?;
    let stats = RecordStats::read(&folder.join(RECORDS), job)?;
    let state = match (&broken, stats.epochs >= job.epochs) {
        (Some(failure), _) => format!("failed: {}", failure.error),
        (None, true) => "finished".into(),
        (None, false) => format!("unfinished, at epoch {} of {}", stats.epochs, job.epochs),
    };
    let (mut examined, mut note) = (None, None);
    if effort == Effort::Report && is_network(&job.problem) {
        note = Some("a report does not evaluate networks again; use `strust diagnose`".to_string());
    } else if broken.is_some() || stats.epochs > 0 || stats.iterations.steps() > 0 {
        // A failure here must not hide the rest of the diagnosis.
        match examine::examine(plan, job, &folder, effort, broken.is_some()) {
            Ok(found) => examined = found,
            Err(error) => note = Some(error.to_string()),
        }
    }
    let failure = broken.as_ref().map(|failure| failure.error.as_str());
    let facts = Facts::new(&plan.experiment, job, &stats, examined.as_ref(), failure);
    let judged = judge::judge(&facts);
    Ok(Diagnosis {
        problem: job.problem.name.clone(),
        method: job.method.label.clone(),
        seed: job.seed,
        state,
        verdict: judged.map(|(verdict, _)| verdict),
        why: judged.map_or_else(String::new, |(verdict, cause)| sentences::why(&facts, verdict, cause)),
        findings: sentences::compose(&facts, note.as_deref()),
        remedy: judged.and_then(|(_, cause)| remedy::remedy(&facts, cause, &plan.command)),
        advice: Vec::new(),
    })
}
