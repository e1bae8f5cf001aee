//! Runs the jobs of a plan in parallel. Every job can be resumed.

mod check;
mod job;
mod measure;
pub(crate) mod prepare;
mod progress;
pub(crate) mod workers;

pub(crate) use check::check;
pub use progress::{JobProgress, RunProgress, Silent};
pub use workers::panic_text;

use crate::{
    Error,
    data::plan::{Job, Plan},
    io::{atomic, results::job_folder},
};
use std::{path::Path, sync::atomic::AtomicBool, time::Duration};

/// How to run a plan.
pub struct Options<'a> {
    /// Jobs in parallel.
    pub jobs: usize,
    /// The time between two checkpoints of a job. A killed job loses at most this much work.
    pub save_every: Duration,
    /// Set this to stop cleanly.
    pub interrupt: &'a AtomicBool,
    /// Shows the progress.
    pub progress: &'a dyn RunProgress,
}

/// Runs jobs, each with its plan. The result of a job does not depend on other jobs.
pub(crate) fn run_jobs(folder: &Path, stage: &str, jobs: &[(&Plan, &Job)], options: &Options) -> Result<(), Error> {
    options.progress.begin(stage, jobs.len());
    workers::run_all(jobs, options, |(plan, job), halt| job::run(folder, plan, job, halt, options))
}

/// Runs the jobs of several plans in one pool.
pub(crate) fn run_plans<'a>(
    folder: &Path,
    stage: &str,
    plans: impl IntoIterator<Item = &'a Plan>,
    options: &Options,
) -> Result<(), Error> {
    let jobs: Vec<(&Plan, &Job)> =
        plans.into_iter().flat_map(|plan| plan.jobs.iter().map(move |job| (plan, job))).collect();
    for (_, job) in &jobs {
        atomic::sweep(&job_folder(folder, job));
    }
    run_jobs(folder, stage, &jobs, options)
}
