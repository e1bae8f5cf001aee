//! Results for publication, without checkpoints, single steps and local paths.

use super::{load_summary, write_summary};
use crate::{
    Error,
    analyze::{Finished, Outcome, outcome},
    data::{plan::Plan, record::EpochRecord, summary::Failure},
    io::{
        atomic,
        results::{holds_run, load_summary_file},
    },
    report::in_the_way,
};
use serde::Serialize;
use std::path::Path;

/// A line of the published `records.jsonl`.
#[derive(Serialize)]
#[serde(untagged)]
enum PublishedLine<'a> {
    /// A job at the end of an epoch, and its seconds in steps so far.
    Epoch {
        job: &'a str,
        #[serde(flatten)]
        record: &'a EpochRecord,
        seconds: f64,
    },
    /// A failed job.
    Failed { job: &'a str, error: &'a str },
}

const FILES: [&str; 4] = ["records.jsonl", "summary.json", "summary.csv", "report.html"];

/// The lines of the published `records.jsonl`.
#[derive(Default)]
pub(crate) struct PublishedRecords(Vec<u8>);

impl PublishedRecords {
    /// Adds every epoch of a job, or only the last one.
    pub fn add(&mut self, job: &str, outcome: &Outcome, only_last: bool) -> Result<(), Error> {
        match outcome {
            Outcome::Failed(Failure { error, .. }) => self.line(&PublishedLine::Failed { job, error }),
            Outcome::Finished(Finished { epochs, seconds, .. }) => {
                let first = if only_last { epochs.len().saturating_sub(1) } else { 0 };
                let lines = epochs.iter().zip(seconds).skip(first);
                lines
                    .map(|(record, &seconds)| PublishedLine::Epoch { job, record, seconds })
                    .try_for_each(|line| self.line(&line))
            }
        }
    }

    fn line(&mut self, line: &PublishedLine) -> Result<(), Error> {
        serde_json::to_writer(&mut self.0, line).map_err(|e| Error::saved(Path::new(FILES[0]), e.to_string()))?;
        self.0.push(b'\n');
        Ok(())
    }

    /// Writes them into a folder.
    pub fn write(&self, to: &Path) -> Result<(), Error> {
        atomic::write(&to.join(FILES[0]), &self.0)
    }
}

/// Checks that results may be published to a folder: only earlier published files may be replaced.
pub(crate) fn check_publish(to: &Path) -> Result<(), Error> {
    if holds_run(to) {
        return Err(Error::saved(to, "this is the folder of a run: choose another folder to publish to"));
    }
    if load_summary_file(to).is_err()
        && let Some(path) = FILES.iter().map(|file| to.join(file)).find(|path| path.exists())
    {
        return Err(in_the_way(&path));
    }
    Ok(())
}

/// Writes the summary, the report with its figures, and one line per job and epoch into a folder.
pub fn publish(folder: &Path, to: &Path) -> Result<(), Error> {
    let plan = Plan::load(folder)?;
    let summary = load_summary(folder)?;
    check_publish(to)?;
    let mut records = PublishedRecords::default();
    for job in &plan.jobs {
        records.add(&job.name, &outcome(folder, &plan, job)?, false)?;
    }
    atomic::make_folder(to)?;
    records.write(to)?;
    write_summary(to, &summary)
}
