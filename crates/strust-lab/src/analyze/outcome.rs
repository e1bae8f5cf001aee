//! The outcome of a finished job.

use crate::{
    Error,
    data::{
        plan::{Job, Plan},
        record::{EpochRecord, Line, Timing, is_recorded, recorded_epochs},
        summary::Failure,
    },
    format::plural,
    io::{
        jsonl::{self, RECORDS, TIMINGS},
        results::{job_folder, load_failure},
    },
    registry::{Quantity, problems},
};
use std::{num::NonZeroU64, path::Path};

/// The results of a finished job.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its seed.
    pub seed: u64,
    /// One record per measured epoch, from the start.
    pub epochs: Vec<EpochRecord>,
    /// Seconds spent in steps until the end of each of them.
    pub seconds: Vec<f64>,
}

/// How a job ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It made all its steps.
    Finished(Finished),
    /// It stopped with an error.
    Failed(Failure),
}

/// Reads the outcome of a job, usually by [`outcome`].
pub type Read<'a> = &'a dyn Fn(&Job) -> Result<Outcome, Error>;

/// Reads the outcome of a job of a plan. An unfinished job is an error.
pub fn outcome(folder: &Path, plan: &Plan, job: &Job) -> Result<Outcome, Error> {
    let folder = job_folder(folder, job);
    if let Some(failure) = load_failure(&folder, job.checksum(&plan.experiment))? {
        return Ok(Outcome::Failed(failure));
    }
    if !plan.is_done(job, &folder)? {
        return Err(Error::saved(&folder, "this job is not finished: continue with `strust resume`"));
    }
    let every = plan.experiment.measure_every;
    let epochs = records(jsonl::read(&folder.join(RECORDS), false, is_epoch)?, job, every);
    let seconds = seconds(&jsonl::read(&folder.join(TIMINGS), false, |_| true)?, job, every);
    if epochs.last().is_none_or(|last| last.epoch < job.epochs) || seconds.len() != epochs.len() {
        let done = epochs.last().map_or(0, |last| last.epoch);
        let why = format!("holds {done} of {}: continue with `strust resume`", plural(job.epochs as usize, "epoch"));
        return Err(Error::saved(&folder, why));
    }
    check_epochs(&epochs, job, every).map_err(|why| {
        let why =
            format!("{why}: the records were changed; remove the job's folder and resume; this job then starts again");
        Error::saved(&folder.join(RECORDS), why)
    })?;
    Ok(Outcome::Finished(Finished { seed: job.seed, epochs, seconds }))
}

/// Checks that the records of a job are those of all epochs to measure, in order, each with the metrics of its problem. Records of
/// earlier programs have no checksum.
fn check_epochs(epochs: &[EpochRecord], job: &Job, every: NonZeroU64) -> Result<(), String> {
    let Some(first) = epochs.first() else { return Ok(()) };
    for (record, i) in epochs.iter().zip(recorded_epochs(job.epochs, every)) {
        if record.epoch != i {
            return Err(format!("epoch {} is where epoch {i} was written", record.epoch));
        }
        if !record.metrics.keys().eq(first.metrics.keys()) {
            return Err(format!("epoch {i} has other metrics than the start"));
        }
    }
    let missing = |(quantity, _): &&(Quantity, &str)| !first.metrics.contains_key(quantity.key());
    match problems::quantities(&job.problem).iter().find(missing) {
        Some((quantity, _)) => Err(format!("the metric {} is missing", quantity.key())),
        None => Ok(()),
    }
}

/// Whether a job of a plan has an outcome.
pub fn is_finished(folder: &Path, plan: &Plan, job: &Job) -> Result<bool, Error> {
    let folder = job_folder(folder, job);
    Ok(load_failure(&folder, job.checksum(&plan.experiment))?.is_some() || plan.is_done(job, &folder)?)
}

/// What a job of a plan has recorded so far, finished or not; `None` before the end of its first epoch.
pub(crate) fn so_far(folder: &Path, plan: &Plan, job: &Job) -> Result<Option<Outcome>, Error> {
    let folder = job_folder(folder, job);
    if let Some(failure) = load_failure(&folder, job.checksum(&plan.experiment))? {
        return Ok(Some(Outcome::Failed(failure)));
    }
    let every = plan.experiment.measure_every;
    let mut epochs = records(jsonl::read(&folder.join(RECORDS), true, is_epoch)?, job, every);
    let mut seconds = seconds(&jsonl::read(&folder.join(TIMINGS), true, |_| true)?, job, every);
    // The two logs are written one after the other.
    let both = epochs.len().min(seconds.len());
    epochs.truncate(both);
    seconds.truncate(both);
    Ok((both > 1).then_some(Outcome::Finished(Finished { seed: job.seed, epochs, seconds })))
}

/// The lines of steps are not needed, so they are not parsed.
fn is_epoch(line: &str) -> bool {
    line.starts_with(r#"{"type":"epoch""#)
}

/// The records of a job's epochs. If the run was made longer, the last epoch of the shorter one is left out, unless the longer
/// one records it too.
fn records(lines: Vec<Line>, job: &Job, every: NonZeroU64) -> Vec<EpochRecord> {
    let epoch = |line| match line {
        Line::Epoch(record) => Some(record).filter(|record| is_recorded(record.epoch, job.epochs, every)),
        Line::Step(_) => None,
    };
    lines.into_iter().filter_map(epoch).collect()
}

fn seconds(timings: &[Timing], job: &Job, every: NonZeroU64) -> Vec<f64> {
    let recorded = timings.iter().filter(|timing| is_recorded(timing.epoch, job.epochs, every));
    recorded.map(|timing| timing.seconds).collect()
}
