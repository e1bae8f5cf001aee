//! The whole pipeline of an experiment: check, run, summarize, diagnose, report.

mod publish;
mod unfinished;

pub use publish::publish;
pub(crate) use publish::publish_plans;

use crate::{
    Error,
    analyze::{
        self,
        diagnose::{Effort, of_plan},
        outcome,
    },
    data::{
        plan::{Job, Plan},
        summary::Summary,
    },
    io::{
        atomic, data_file,
        lock::lock,
        results::{self, check_empty, has_plan, job_folder, load_failure, load_summary_file},
    },
    report,
    run::{self, Options},
};
use std::{collections::BTreeMap, path::Path};

/// The names of the stages, for the progress.
pub(crate) const GRID_SEARCH: &str = "grid search";
pub(crate) const RUNS: &str = "runs";

/// Starts a plan in a folder, which must be new or empty.
pub fn start(folder: &Path, plan: &mut Plan, options: &Options) -> Result<Summary, Error> {
    plan.sizes = options.team.meanwhile(|| run::check(plan))?;
    check_names([&*plan])?;
    atomic::make_folder(folder)?;
    let _lock = lock(folder)?;
    check_empty(folder)?;
    plan.save(folder)?;
    finish(folder, plan, options)
}

/// Checks the names of the jobs of all plans in a folder. File systems accept names of at most 255 bytes: a run with a
/// longer one could start, but never finish. A plan names its own jobs apart, but not those of others.
pub(crate) fn check_names<'a>(plans: impl IntoIterator<Item = &'a Plan>) -> Result<(), Error> {
    const MOST: usize = 240;
    let mut owners = BTreeMap::new();
    for job in plans.into_iter().flat_map(|plan| &plan.jobs) {
        let wrong = |why| Err(Error::Problem { problem: job.problem.name.clone(), why });
        if job.name.len() > MOST {
            return wrong(format!(
                "the folder of a job would have a name of {} characters, but at most {MOST} are allowed: give problems \
                 a shorter `name`, or use fewer lists",
                job.name.len()
            ));
        }
        let owner = *owners.entry(&job.name).or_insert(&job.problem.name);
        if *owner != job.problem.name {
            return wrong(format!("a job would have the folder `{}` of `{owner}`: choose another name", job.name));
        }
    }
    Ok(())
}

/// A run resumes only with the version that planned it.
pub(crate) fn check_version(planned: &str, file: &Path) -> Result<(), Error> {
    let version = env!("CARGO_PKG_VERSION");
    if planned == version {
        return Ok(());
    }
    let why = format!(
        "planned by strust {planned}, but this is {version}: results may differ; run the experiment again, or resume with that version"
    );
    Err(Error::saved(file, why))
}

/// Lengthens the runs of a folder to so many epochs; [`resume`] then continues them.
pub fn lengthen(folder: &Path, epochs: u64) -> Result<(), Error> {
    let mut plan = Plan::load(folder)?;
    let _lock = lock(folder)?;
    check_version(&plan.version, &folder.join("plan.json"))?;
    plan.lengthen(epochs).map_err(|why| Error::saved(folder, why))?;
    plan.save(folder)
}

/// Resumes the plan of a folder.
pub fn resume(folder: &Path, options: &Options) -> Result<Summary, Error> {
    let mut plan = Plan::load(folder)?;
    let _lock = lock(folder)?;
    check_version(&plan.version, &folder.join("plan.json"))?;
    results::sweep(folder);
    let done = |job: &Job| plan.is_done(job, &job_folder(folder, job));
    if !plan.jobs.iter().map(done).collect::<Result<Vec<_>, _>>()?.into_iter().all(|done| done) {
        plan.experiment.problems.iter().try_for_each(data_file::check_unchanged)?;
    }
    finish(folder, &mut plan, options)
}

fn finish(folder: &Path, plan: &mut Plan, options: &Options) -> Result<Summary, Error> {
    if let Some(tune) = plan.experiment.tune.clone() {
        run::run_jobs(folder, GRID_SEARCH, &jobs(plan, true), options)?;
        let chosen = options.team.meanwhile(|| analyze::choose(plan, &tune, &|job| outcome(folder, plan, job)))?;
        plan.add_chosen(&chosen);
        plan.save(folder)?;
    }
    run::run_jobs(folder, RUNS, &jobs(plan, false), options)?;
    options.team.meanwhile(|| {
        let summary = summarize(folder, plan)?;
        write_summary(folder, &summary, &report::csv::curves(&summary))?;
        Ok(summary)
    })
}

/// The jobs of the grid search, or the others.
fn jobs(plan: &Plan, tuning: bool) -> Vec<(&Plan, &Job)> {
    plan.jobs.iter().filter(|job| job.tuning == tuning).map(|job| (plan, job)).collect()
}

fn summarize(folder: &Path, plan: &Plan) -> Result<Summary, Error> {
    let mut summary = analyze::summary(plan, &|job| outcome(folder, plan, job))?;
    summary.diagnoses = of_plan(folder, plan, Effort::Report)?;
    Ok(summary)
}

/// Writes the summary, also as CSV, and its report.
pub(crate) fn write_summary(folder: &Path, summary: &Summary, csv: &str) -> Result<(), Error> {
    atomic::write_json(&folder.join("summary.json"), summary)?;
    atomic::write(&folder.join("summary.csv"), csv.as_bytes())?;
    report::write(folder, &report::arranged(vec![summary.clone()], &summary.figures))
}

/// The summary of a finished run, computed from its records, or of published results.
pub fn load_summary(folder: &Path) -> Result<Summary, Error> {
    if has_plan(folder) || !folder.join("summary.json").exists() {
        return summarize(folder, &Plan::load(folder)?);
    }
    load_summary_file(folder)
}

/// The same, also of a run that is still going on or was stopped: of what it has recorded.
pub fn load_summary_so_far(folder: &Path) -> Result<Summary, Error> {
    if !has_plan(folder) {
        return load_summary(folder);
    }
    let plan = Plan::load(folder)?;
    for job in &plan.jobs {
        let folder_of_job = job_folder(folder, job);
        let failed = load_failure(&folder_of_job, job.checksum(&plan.experiment))?.is_some();
        if !failed && !plan.is_done(job, &folder_of_job)? {
            return unfinished::summarize(folder, &plan);
        }
    }
    // Between the grid search and the runs of its choices, no job is unfinished, but the run is.
    if plan.jobs.iter().all(|job| job.tuning) { unfinished::summarize(folder, &plan) } else { load_summary(folder) }
}
