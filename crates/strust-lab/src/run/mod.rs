//! Runs the jobs of a plan in parallel. Every job can be resumed.

mod check;
mod items;
mod job;
mod measure;
pub(crate) mod orders;
pub(crate) mod prepare;
mod progress;
mod spread;
pub(crate) mod workers;

pub(crate) use check::check;
pub use check::optimum;
pub(crate) use job::{JobWatch, join, run as run_job};
pub use progress::{JobEvent, RunProgress, Silent};
pub use workers::panic_text;

use crate::{
    Error,
    data::{
        experiment::Parallel,
        plan::{Job, Plan},
    },
    io::results::seal,
    team::Team,
};
use job::Together;
use orders::{Order, Pool};
use serde::Serialize;
use std::{path::Path, sync::atomic::AtomicBool, time::Duration};
use strust::ranks::Group;
use workers::{FirstError, Halt};

/// The kind of a pool of jobs.
pub(crate) const JOBS: &str = "jobs";

/// The message about an item that a pool does not have.
pub(crate) fn no_item(item: usize) -> String {
    format!("there is no item {item} in the pool of rank 0: start the same program on all ranks")
}

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
    /// The ranks that share the work.
    pub team: &'a Team,
}

impl Options<'_> {
    /// A pool for the other ranks.
    pub(crate) fn pool(&self, kind: &str, folder: &Path, plan: &impl Serialize) -> Pool {
        let plan = serde_json::to_string(plan).expect("a plan is plain data");
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.into());
        let &Self { jobs, save_every, .. } = self;
        Pool { kind: kind.into(), seal: seal(folder), folder: absolute, plan, together: false, jobs, save_every }
    }
}

/// The items of a pool of jobs: plans, each with those of its jobs that run, in the same order.
fn pooled(jobs: &[(&Plan, &Job)]) -> Vec<Plan> {
    let same = |a: &(&Plan, &Job), b: &(&Plan, &Job)| std::ptr::eq(a.0, b.0);
    let with = |jobs: &[(&Plan, &Job)]| Plan {
        jobs: jobs.iter().map(|(_, job)| (*job).clone()).collect(),
        ..jobs[0].0.clone()
    };
    jobs.chunk_by(same).map(with).collect()
}

/// Runs jobs, each with its plan. The result of a job does not depend on other jobs.
pub(crate) fn run_jobs(folder: &Path, stage: &str, jobs: &[(&Plan, &Job)], options: &Options) -> Result<(), Error> {
    options.progress.begin(stage, jobs.len());
    let watch = JobWatch { progress: options.progress, save_every: options.save_every };
    let pool = || options.pool(JOBS, folder, &pooled(jobs));
    if options.team.size() == 1 || jobs.iter().all(|(plan, _)| plan.experiment.parallel == Parallel::Jobs) {
        let run = |(plan, job): &(&Plan, &Job), halt: Halt| job::run(folder, plan, job, None, halt, watch);
        return workers::run_all(jobs, pool, options, run);
    }
    let (team, error) = (options.team, FirstError::default());
    team.round(Order::Begin(Pool { together: true, ..pool() }))?;
    for (item, (plan, job)) in jobs.iter().enumerate() {
        let together = Together { team, item };
        if let Err(why) = job::run(folder, plan, job, Some(together), error.halt(options.interrupt), watch) {
            error.put(why);
            break;
        }
    }
    if !team.is_broken() {
        team.round(Order::End)?;
    }
    error.into_inner().map_or(Ok(()), Err)
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
    run_jobs(folder, stage, &jobs, options)
}
