//! Results to keep and to show: without checkpoints, single steps and paths of the machine they were made on.

use crate::{
    Error,
    conduct::{in_the_way, load_published, load_summary, write_report},
    files,
    plan::Plan,
    record::EpochRecord,
    summarize::{self, Finished, Outcome},
    summary::Failure,
};
use serde::Serialize;
use std::path::Path;

/// A line of the published `records.jsonl`.
#[derive(Serialize)]
#[serde(untagged)]
enum Published<'a> {
    /// A job after an epoch, and the seconds it has spent in steps.
    Epoch {
        job: &'a str,
        #[serde(flatten)]
        record: &'a EpochRecord,
        seconds: f64,
    },
    /// A job that broke down.
    Failed { job: &'a str, error: &'a str },
}

const FILES: [&str; 4] = ["records.jsonl", "summary.json", "summary.csv", "report.html"];

/// Writes the summary, the report with its figures, and one line an epoch of every job into a folder.
pub fn publish(folder: &Path, to: &Path) -> Result<(), Error> {
    if crate::theory::is_theory(folder) {
        return Err(Error::saved(
            folder,
            "checks of the theory leave nothing that is not worth keeping: copy the folder as it is",
        ));
    }
    let plan = Plan::load(folder)?;
    let summary = load_summary(folder)?;
    if to.join("plan.json").exists() {
        return Err(Error::saved(to, "this is the folder of a run: choose another one to publish into"));
    }
    // What was published there before is replaced, and nothing else is.
    if load_published(to).is_err()
        && let Some(path) = FILES.iter().map(|file| to.join(file)).find(|path| path.exists())
    {
        return Err(in_the_way(&path));
    }
    let mut records = Vec::new();
    let mut line = |line: &Published| {
        serde_json::to_writer(&mut records, line).map_err(|e| Error::saved(to, e.to_string()))?;
        records.push(b'\n');
        Ok::<(), Error>(())
    };
    for job in &plan.jobs {
        match summarize::outcome(folder, &plan, job)? {
            Outcome::Failed(Failure { error, .. }) => line(&Published::Failed { job: &job.name, error: &error })?,
            Outcome::Finished(Finished { epochs, seconds, .. }) => {
                for (record, &seconds) in epochs.iter().zip(&seconds) {
                    line(&Published::Epoch { job: &job.name, record, seconds })?;
                }
            }
        }
    }
    files::make_folder(to)?;
    files::write(&to.join("records.jsonl"), &records)?;
    files::write_json(&to.join("summary.json"), &summary)?;
    files::write(&to.join("summary.csv"), summarize::csv(&summary).as_bytes())?;
    write_report(to, std::slice::from_ref(&summary))
}
