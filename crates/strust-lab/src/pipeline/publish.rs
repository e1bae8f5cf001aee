//! Results for publication, without checkpoints, single steps and local paths.

use super::{load_summary, write_summary};
use crate::{
    Error,
    analyze::{Finished, Outcome, outcome},
    data::{
        plan::Plan,
        record::EpochRecord,
        summary::{Failure, Summary},
    },
    io::{
        atomic,
        results::{holds_run, load_summary_file},
    },
    report::{csv, in_the_way},
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

/// Adds the lines of a job: every epoch, or only the last one.
fn add(job: &str, outcome: &Outcome, only_last: bool, lines: &mut Vec<u8>) -> serde_json::Result<()> {
    let mut add = |line: &PublishedLine| {
        serde_json::to_writer(&mut *lines, line)?;
        lines.push(b'\n');
        Ok(())
    };
    match outcome {
        Outcome::Failed(Failure { error, .. }) => add(&PublishedLine::Failed { job, error }),
        Outcome::Finished(Finished { epochs, seconds, .. }) => {
            let first = if only_last { epochs.len().saturating_sub(1) } else { 0 };
            let records = epochs.iter().zip(seconds).skip(first);
            records
                .map(|(record, &seconds)| PublishedLine::Epoch { job, record, seconds })
                .try_for_each(|line| add(&line))
        }
    }
}

/// Checks that results may be published to a folder: only earlier published files may be replaced.
fn check_publish(to: &Path) -> Result<(), Error> {
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
    publish_plans(folder, to, [&plan], &summary, &csv::curves(&summary), false)
}

/// The same for the jobs of several plans, with these contents of `summary.csv`; `only_last`: one line per job.
pub(crate) fn publish_plans<'a>(
    folder: &Path,
    to: &Path,
    plans: impl IntoIterator<Item = &'a Plan>,
    summary: &Summary,
    csv: &str,
    only_last: bool,
) -> Result<(), Error> {
    check_publish(to)?;
    let (records, mut lines) = (to.join(FILES[0]), Vec::new());
    for (plan, job) in plans.into_iter().flat_map(|plan| plan.jobs.iter().map(move |job| (plan, job))) {
        let added = add(&job.name, &outcome(folder, plan, job)?, only_last, &mut lines);
        added.map_err(|e| Error::saved(&records, e.to_string()))?;
    }
    atomic::make_folder(to)?;
    atomic::write(&records, &lines)?;
    write_summary(to, summary, csv)
}
