//! The summary of a run that is still going on or was stopped.

use crate::{
    Error,
    analyze::{
        Finished, Outcome,
        diagnose::{Effort, of_plan},
        so_far, summary,
    },
    data::{
        plan::{Job, Plan},
        summary::Summary,
    },
    io::results::job_folder,
};
use std::{collections::BTreeMap, path::Path};

/// The summary of an unfinished run, from what it has recorded. A method is shown by its finished seeds; before the
/// first one is finished, by all seeds up to the epoch that all of them have reached.
pub(super) fn summarize(folder: &Path, plan: &Plan) -> Result<Summary, Error> {
    let (mut shown, mut outcomes, mut done) = (plan.clone(), BTreeMap::new(), 0);
    shown.jobs.clear();
    for jobs in plan.by_method(false) {
        let mut seeds = Vec::new();
        for job in jobs {
            if let Some(outcome) = so_far(folder, plan, job)? {
                seeds.push((job, outcome, plan.is_done(job, &job_folder(folder, job))?));
            }
        }
        done += seeds.iter().filter(|(_, outcome, finished)| *finished || is_failed(outcome)).count();
        if seeds.iter().any(|(_, _, finished)| *finished) {
            seeds.retain(|(_, outcome, finished)| *finished || is_failed(outcome));
        }
        let finished = |outcome: &Outcome| match outcome {
            Outcome::Finished(Finished { epochs, .. }) => Some(epochs.len()),
            Outcome::Failed(_) => None,
        };
        let shortest = seeds.iter().filter_map(|(_, outcome, _)| finished(outcome)).min().unwrap_or(0);
        for (job, mut outcome, _) in seeds {
            if let Outcome::Finished(Finished { epochs, seconds, .. }) = &mut outcome {
                epochs.truncate(shortest);
                seconds.truncate(shortest);
            }
            shown.jobs.push(job.clone());
            outcomes.insert(job.name.clone(), outcome);
        }
    }
    if shown.jobs.is_empty() {
        let why = "no run has finished an epoch yet: continue with `strust resume`, or wait";
        return Err(Error::saved(folder, why));
    }
    let read = |job: &Job| match outcomes.get(&job.name) {
        Some(outcome) => Ok(outcome.clone()),
        None => crate::analyze::outcome(folder, plan, job),
    };
    // The grid search is complete, because its choices run.
    let tuning = plan.jobs.iter().filter(|job| job.tuning).cloned();
    shown.jobs.extend(tuning);
    let mut summary = summary(&shown, &read)?;
    let all = plan.jobs.iter().filter(|job| !job.tuning).count();
    summary.title = format!("{} (unfinished)", summary.title);
    let text = format!(
        "Unfinished: {done} of {} done. A method is shown by its finished seeds, or by what its seeds have reached.",
        if all == 1 { "1 run is".into() } else { format!("{all} runs are") }
    );
    summary.description = format!("{text}\n\n{}", summary.description).trim().into();
    summary.diagnoses = of_plan(folder, plan, Effort::Report)?;
    summary.diagnoses.retain(|diagnosis| diagnosis.verdict.is_some());
    Ok(summary)
}

fn is_failed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(_))
}
