//! Runs a plan: jobs side by side, each resumable, then summary, figures and report.

use crate::{
    Error,
    experiment::{MethodSpec, ProblemSpec},
    files, job,
    plan::{Job, Plan},
    progress::Progress,
    report, summarise,
    summary::{Failure, Summary},
};
use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// How to run a plan.
pub struct Options<'a> {
    /// Jobs side by side.
    pub jobs: usize,
    /// How long a job runs before it is saved again. A kill loses at most this much work, never the results.
    pub save_every: Duration,
    /// Set to stop cleanly.
    pub interrupt: &'a AtomicBool,
    /// Who shows the progress.
    pub progress: &'a dyn Progress,
}

/// The folder of a job.
#[must_use]
pub fn job_folder(folder: &Path, job: &Job) -> PathBuf {
    folder.join("runs").join(&job.name)
}

/// Starts a plan in a folder, which must be new or empty.
pub fn start(folder: &Path, plan: &mut Plan, options: &Options) -> Result<Summary, Error> {
    if folder.join("plan.json").exists() {
        let why =
            "the folder already holds a run: go on with it by `strust resume`, or choose another folder with --out";
        return Err(Error::saved(folder, why));
    }
    files::make_folder(folder)?;
    let mut entries = std::fs::read_dir(folder).map_err(Error::io("read", folder))?;
    if entries.next().is_some() {
        return Err(Error::saved(folder, "the folder is not empty: choose another one with --out"));
    }
    plan.save(folder)?;
    go_on(folder, plan, options)
}

/// Goes on with the plan of a folder.
pub fn resume(folder: &Path, options: &Options) -> Result<Summary, Error> {
    let mut plan = Plan::load(folder)?;
    let version = env!("CARGO_PKG_VERSION");
    if plan.version != version {
        let why = format!(
            "planned by strust {}, but this is {version}: results may differ; run it anew, or resume with that version",
            plan.version
        );
        return Err(Error::saved(&folder.join("plan.json"), why));
    }
    go_on(folder, &mut plan, options)
}

fn go_on(folder: &Path, plan: &mut Plan, options: &Options) -> Result<Summary, Error> {
    if let Some(tune) = plan.experiment.tune.clone() {
        let search: Vec<Job> = plan.jobs.iter().filter(|job| job.tuning).cloned().collect();
        run_all(folder, plan, &search, "grid search", options)?;
        let chosen: Vec<(ProblemSpec, MethodSpec)> = summarise::choose(folder, plan, &tune)?;
        plan.add_chosen(&chosen);
        plan.save(folder)?;
    }
    let jobs: Vec<Job> = plan.jobs.iter().filter(|job| !job.tuning).cloned().collect();
    run_all(folder, plan, &jobs, "runs", options)?;
    let summary = summarise::summary(folder, plan, options.jobs)?;
    files::write_json(&folder.join("summary.json"), &summary)?;
    files::write(&folder.join("summary.csv"), summarise::csv(&summary).as_bytes())?;
    write_report(folder, std::slice::from_ref(&summary))?;
    Ok(summary)
}

/// The summary of a finished run, made anew from its records.
pub fn load_summary(folder: &Path) -> Result<Summary, Error> {
    let plan = Plan::load(folder)?;
    // The machine is the one that ran it, not the one that draws.
    let path = folder.join("summary.json");
    let earlier = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Summary>(&text).ok());
    let mut summary = summarise::summary(folder, &plan, 1)?;
    if let Some(earlier) = earlier {
        summary.machine = earlier.machine;
    }
    Ok(summary)
}

/// Writes a file whole or not at all.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    files::write(path, bytes)
}

/// Draws figures and page of one or several summaries into a folder.
pub fn write_report(folder: &Path, summaries: &[Summary]) -> Result<(), Error> {
    let figures = folder.join("figures");
    files::make_folder(&figures)?;
    for summary in summaries {
        for (stem, figure) in report::figures(summary) {
            let stem = if summaries.len() > 1 { format!("{}-{stem}", summary.experiment) } else { stem };
            files::write(&figures.join(format!("{stem}.svg")), figure.svg(crate::figure::Theme::File).as_bytes())?;
            let path = figures.join(format!("{stem}.png"));
            let png = figure.png(2.0).map_err(|e| Error::saved(&path, e.to_string()))?;
            files::write(&path, &png)?;
        }
    }
    files::write(&folder.join("report.html"), report::html(summaries).as_bytes())
}

/// Jobs are taken in order by as many threads as asked for. What a job computes does not depend on the others.
fn run_all(folder: &Path, plan: &Plan, jobs: &[Job], stage: &str, options: &Options) -> Result<(), Error> {
    options.progress.begin(stage, jobs.len());
    let next = AtomicUsize::new(0);
    let fatal: Mutex<Option<Error>> = Mutex::new(None);
    let stop = || options.interrupt.load(Ordering::Relaxed) || fatal.lock().is_ok_and(|error| error.is_some());
    let worker = || {
        while !stop() {
            let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            if let Err(error) = run_one(folder, plan, job, options) {
                fatal.lock().expect("no thread panics while it holds this").get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, jobs.len().max(1)) {
            scope.spawn(worker);
        }
    });
    match fatal.into_inner().expect("no thread panics while it holds this") {
        Some(error) => Err(error),
        None if options.interrupt.load(Ordering::Relaxed) => Err(Error::Interrupted),
        None => Ok(()),
    }
}

/// Runs a job. A method that breaks down is a result, written down; everything else is an error.
fn run_one(folder: &Path, plan: &Plan, job: &Job, options: &Options) -> Result<(), Error> {
    let folder = job_folder(folder, job);
    let mut context = job::Context {
        job,
        experiment: &plan.experiment,
        folder: folder.clone(),
        interrupt: options.interrupt,
        save_every: options.save_every,
        progress: options.progress.job(&job.name),
    };
    // In a grid search a setting that diverges is nothing to alarm anybody with.
    let shown = |error: &str| (!job.tuning).then(|| error.to_string());
    if let Some(failure) = failure(&folder)? {
        context.progress.end(shown(&failure.error).as_deref());
        return Ok(());
    }
    match job::run(&mut context) {
        Ok(()) => context.progress.end(None),
        Err(Error::Method(error)) if error.is_breakdown() => {
            let failure = Failure { seed: job.seed, error: error.to_string() };
            files::make_folder(&folder)?;
            files::write_json(&folder.join("failed.json"), &failure)?;
            context.progress.end(shown(&failure.error).as_deref());
        }
        Err(error) => {
            context.progress.end(Some(&error.to_string()));
            return Err(error);
        }
    }
    Ok(())
}

/// How a job broke down, if it did.
pub(crate) fn failure(folder: &Path) -> Result<Option<Failure>, Error> {
    let path = folder.join("failed.json");
    match std::fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|e| Error::saved(&path, e.to_string())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", &path)(e)),
    }
}
