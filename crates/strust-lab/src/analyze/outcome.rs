//! The outcome of a finished job.

use crate::{
    Error,
    data::{
        plan::{Job, Plan},
        record::{EpochRecord, Line, Timing},
        summary::Failure,
    },
    io::{
        jsonl::{self, RECORDS, TIMINGS},
        results::{job_folder, load_failure},
    },
    registry::{Quantity, problems},
};
use std::path::Path;

/// The results of a finished job.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    pub seed: u64,
    /// One record per epoch, from the start.
    pub epochs: Vec<EpochRecord>,
    /// Seconds spent in steps until the end of each epoch.
    pub seconds: Vec<f64>,
}

/// How a job ended.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Finished(Finished),
    Failed(Failure),
}

/// Reads the outcome of a job, usually by [`outcome`].
pub(crate) type Read<'a> = &'a dyn Fn(&Job) -> Result<Outcome, Error>;

/// Reads the outcome of a job of a plan. An unfinished job is an error.
pub(crate) fn outcome(folder: &Path, plan: &Plan, job: &Job) -> Result<Outcome, Error> {
    let folder = job_folder(folder, job);
    if let Some(failure) = load_failure(&folder, job.checksum(&plan.experiment))? {
        return Ok(Outcome::Failed(failure));
    }
    if !plan.is_done(job, &folder)? {
        return Err(Error::saved(&folder, "this job is not finished: continue with `strust resume`"));
    }
    let epochs = records(jsonl::read(&folder.join(RECORDS), is_epoch)?);
    let timings: Vec<Timing> = jsonl::read(&folder.join(TIMINGS), |_| true)?;
    let seconds: Vec<f64> = timings.iter().map(|timing| timing.seconds).collect();
    if epochs.len() as u64 != job.epochs.saturating_add(1) || seconds.len() != epochs.len() {
        let done = epochs.len().saturating_sub(1);
        let why = format!("holds {done} of {} epochs: continue with `strust resume`", job.epochs);
        return Err(Error::saved(&folder, why));
    }
    check_epochs(&epochs, job).map_err(|why| {
        let why =
            format!("{why}: the records were changed; remove the job's folder and resume; this job then starts again");
        Error::saved(&folder.join(RECORDS), why)
    })?;
    Ok(Outcome::Finished(Finished { seed: job.seed, epochs, seconds }))
}

/// Checks that the records of a job are those of all its epochs, in order, each with the metrics of its problem. Records of
/// earlier programs have no checksum.
fn check_epochs(epochs: &[EpochRecord], job: &Job) -> Result<(), String> {
    let Some(first) = epochs.first() else { return Ok(()) };
    for (i, record) in epochs.iter().enumerate() {
        if record.epoch != i as u64 {
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

/// What a job of a plan has recorded so far, finished or not; `None` before the end of its first epoch.
pub(crate) fn so_far(folder: &Path, plan: &Plan, job: &Job) -> Result<Option<Outcome>, Error> {
    let folder = job_folder(folder, job);
    if let Some(failure) = load_failure(&folder, job.checksum(&plan.experiment))? {
        return Ok(Some(Outcome::Failed(failure)));
    }
    let mut epochs = records(jsonl::read_so_far(&folder.join(RECORDS), is_epoch)?);
    let timings: Vec<Timing> = jsonl::read_so_far(&folder.join(TIMINGS), |_| true)?;
    let mut seconds: Vec<f64> = timings.iter().map(|timing| timing.seconds).collect();
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

fn records(lines: Vec<Line>) -> Vec<EpochRecord> {
    let epoch = |line| match line {
        Line::Epoch(record) => Some(record),
        Line::Step(_) => None,
    };
    lines.into_iter().filter_map(epoch).collect()
}
