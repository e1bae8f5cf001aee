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

/// Runs the jobs of a plan that belong to its grid search, or the others. The result of a job does not depend on other
/// jobs.
pub(crate) fn run_jobs(folder: &Path, plan: &Plan, tuning: bool, options: &Options) -> Result<(), Error> {
    let jobs: Vec<&Job> = plan.jobs.iter().filter(|job| job.tuning == tuning).collect();
    options.progress.begin(if tuning { "grid search" } else { "runs" }, jobs.len());
    workers::run_all(&jobs, options, |job, halt| job::run(folder, plan, job, halt, options))
}
