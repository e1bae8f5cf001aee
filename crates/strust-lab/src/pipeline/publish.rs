//! Results for publication, without checkpoints, single steps and local paths.

use super::{load_summary, write_summary};
use crate::{
    Error,
    analyze::{Finished, Outcome, outcome},
    data::{plan::Plan, record::EpochRecord, summary::Failure},
    io::{
        atomic,
        results::{has_plan, is_theory, load_summary_file},
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

/// Writes the summary, the report with its figures, and one line per job and epoch into a folder.
pub fn publish(folder: &Path, to: &Path) -> Result<(), Error> {
    if is_theory(folder) {
        return Err(Error::saved(folder, "--publish is not needed for checks of the theory: copy the folder instead"));
    }
    let plan = Plan::load(folder)?;
    let summary = load_summary(folder)?;
    if has_plan(to) || is_theory(to) {
        return Err(Error::saved(to, "this is the folder of a run: choose another folder to publish to"));
    }
    // Only earlier published files may be replaced.
    if load_summary_file(to).is_err()
        && let Some(path) = FILES.iter().map(|file| to.join(file)).find(|path| path.exists())
    {
        return Err(in_the_way(&path));
    }
    let mut records = Vec::new();
    let mut line = |line: &PublishedLine| {
        serde_json::to_writer(&mut records, line).map_err(|e| Error::saved(to, e.to_string()))?;
        records.push(b'\n');
        Ok::<(), Error>(())
    };
    for job in &plan.jobs {
        match outcome(folder, &plan, job)? {
            Outcome::Failed(Failure { error, .. }) => line(&PublishedLine::Failed { job: &job.name, error: &error })?,
            Outcome::Finished(Finished { epochs, seconds, .. }) => {
                for (record, &seconds) in epochs.iter().zip(&seconds) {
                    line(&PublishedLine::Epoch { job: &job.name, record, seconds })?;
                }
            }
        }
    }
    atomic::make_folder(to)?;
    atomic::write(&to.join("records.jsonl"), &records)?;
    write_summary(to, &summary)
}
