//! What a run says of itself, in plain words, each sentence with its number: from the records it has written, and from the point of
//! its last checkpoint, measured anew.

mod examine;
mod read;
mod words;

pub use examine::Examination;
pub(crate) use examine::look;
use read::Seen;

use crate::{
    Error,
    conduct::{self, job_folder},
    job, network,
    plan::{Job, Plan},
    progress::Silent,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Duration,
};

/// The diagnosis of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The problem's name in the experiment.
    pub problem: String,
    /// The method's label.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// Whether it is finished, running or stopped, or broke down.
    pub state: String,
    /// What was found.
    pub findings: Vec<Finding>,
    /// What to change; empty if nothing.
    pub advice: Vec<String>,
}

/// A sentence, and the numbers behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about, in a word or two.
    pub about: String,
    /// The sentence.
    pub text: String,
    /// Its numbers by name; what is not finite is absent.
    pub numbers: BTreeMap<String, f64>,
}

/// How much a diagnosis may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// What a report can afford: networks are not evaluated again.
    Report,
    /// What somebody who asks can wait for.
    Asked,
}

/// Diagnoses the first seed of every method of a folder of results, or the one job of a job's folder. The run may still be going on.
pub fn diagnose(folder: &Path) -> Result<Vec<Diagnosis>, Error> {
    if crate::theory::is_theory(folder) {
        return Err(Error::saved(folder, "these are checks of the theory, and there is no run to diagnose in them"));
    }
    // A job's folder lies in `runs` of the folder of results.
    let above = folder.parent().and_then(Path::parent).filter(|_| !folder.join("plan.json").exists());
    let Some(results) = above.filter(|above| above.join("plan.json").is_file()) else {
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

/// The first seed of every method on every problem; of a grid search, what it led to.
pub(crate) fn of_plan(folder: &Path, plan: &Plan, effort: Effort) -> Result<Vec<Diagnosis>, Error> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    let mut found = Vec::new();
    let tuned = plan.jobs.iter().any(|job| !job.tuning);
    for job in plan.jobs.iter().filter(|job| !(tuned && job.tuning)) {
        let which = (job.problem.name.as_str(), job.method.label.as_str());
        if !seen.contains(&which) {
            seen.push(which);
            found.push(of_job(folder, plan, job, effort)?);
        }
    }
    Ok(found)
}

fn of_job(folder: &Path, plan: &Plan, job: &Job, effort: Effort) -> Result<Diagnosis, Error> {
    let folder = job_folder(folder, job);
    let broken = conduct::failure(&folder, job.checksum(&plan.experiment))?;
    let seen = Seen::read(&folder.join("records.jsonl"), job)?;
    let state = match (&broken, seen.epochs >= job.epochs) {
        (Some(failure), _) => format!("broke down: {}", failure.error),
        (None, true) => "finished".into(),
        (None, false) => format!("running or stopped, {} of {} epochs", seen.epochs, job.epochs),
    };
    let (mut examined, mut note) = (None, None);
    if effort == Effort::Report && network::is_network(&job.problem) {
        note = Some("a network is not evaluated again for a report; `strust diagnose` does".to_string());
    } else if seen.epochs > 0 || seen.iterations.steps() > 0 {
        // Whatever is wrong with the point is no reason to keep the rest back.
        match examine(plan, job, folder, effort) {
            Ok(found) => examined = found,
            Err(error) => note = Some(error.to_string()),
        }
    }
    let (findings, advice) = words::say(&seen, examined.as_ref(), note.as_deref(), job, broken.is_some());
    Ok(Diagnosis {
        problem: job.problem.name.clone(),
        method: job.method.label.clone(),
        seed: job.seed,
        state,
        findings,
        advice,
    })
}

/// Sets the problem up again and looks at the point of the last checkpoint; `None` if there is none.
fn examine(plan: &Plan, job: &Job, folder: PathBuf, effort: Effort) -> Result<Option<Examination>, Error> {
    let never = AtomicBool::new(false);
    let mut found = None;
    let mut context = job::Context {
        job,
        experiment: &plan.experiment,
        folder,
        interrupt: [&never, &never],
        save_every: Duration::MAX,
        check: false,
        examine: Some((effort, &mut found)),
        progress: Box::new(Silent),
    };
    job::run(&mut context)?;
    drop(context);
    Ok(found)
}
