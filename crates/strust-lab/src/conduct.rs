//! Runs a plan: jobs side by side, each resumable, then summary, figures and report.

use crate::{
    Error,
    diagnose::{self, Effort},
    experiment::{MethodSpec, ProblemSpec},
    files, job, network,
    plan::{Job, Plan},
    progress::{Progress, Silent},
    report, summarize,
    summary::{Failure, Summary},
};
use serde::{Deserialize, Serialize};
use std::{
    any::Any,
    fs::{File, TryLockError},
    panic::AssertUnwindSafe,
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
    check(plan)?;
    files::make_folder(folder)?;
    let _lock = lock(folder)?;
    if folder.join("plan.json").exists() {
        let why =
            "the folder already holds a run: go on with it by `strust resume`, or choose another folder with --out";
        return Err(Error::saved(folder, why));
    }
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
    let _lock = lock(folder)?;
    let version = env!("CARGO_PKG_VERSION");
    if plan.version != version {
        let why = format!(
            "planned by strust {}, but this is {version}: results may differ; run it anew, or resume with that version",
            plan.version
        );
        return Err(Error::saved(&folder.join("plan.json"), why));
    }
    // What killed programs left, wherever they were writing.
    let jobs = plan.jobs.iter().map(|job| job_folder(folder, job));
    jobs.chain([folder.into(), folder.join("figures")]).for_each(|folder| files::sweep(&folder));
    let done = |job: &Job| job::is_done(&job_folder(folder, job), job, &plan.experiment);
    if !plan.jobs.iter().map(done).collect::<Result<Vec<_>, _>>()?.into_iter().all(|done| done) {
        plan.experiment.problems.iter().try_for_each(ProblemSpec::check_data)?;
    }
    go_on(folder, &mut plan, options)
}

/// Sets up every problem once, before anything is written: what is wrong with it is better known now than in an hour.
fn check(plan: &Plan) -> Result<(), Error> {
    let never = AtomicBool::new(false);
    for problem in &plan.experiment.problems {
        let Some(job) = plan.jobs.iter().find(|job| job.problem.name == problem.name) else { continue };
        let mut context = job::Context {
            job,
            experiment: &plan.experiment,
            folder: PathBuf::new(),
            interrupt: [&never, &never],
            save_every: Duration::MAX,
            check: true,
            examine: None,
            progress: Box::new(Silent),
        };
        caught(|| job::run(&mut context)).map_err(|error| match error {
            Error::Read(error) => Error::Read(error),
            error => {
                let data = crate::experiment::data_file(&problem.parameters);
                let of = data.map(|data| format!("{}: ", data.display())).unwrap_or_default();
                Error::Problem { problem: problem.name.clone(), why: format!("{of}{error}") }
            }
        })?;
    }
    Ok(())
}

/// A panic is a fault of ours, or a GPU's; it ends the job, not the program with all its other jobs unsaved.
fn caught(run: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let why = panic_text(&*panic).unwrap_or("no reason given");
        if let Some(why) = network::gpu_failure(why) {
            return Err(Error::Network(why));
        }
        Err(Error::Problem { problem: "internal".into(), why: format!("this should not have happened: {why}") })
    })
}

/// What a panic says, if it is words.
#[must_use]
pub fn panic_text(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied())
}

/// Only one program at a time works in a folder. The lock ends with the program, however it ends.
pub(crate) fn lock(folder: &Path) -> Result<File, Error> {
    // A folder can be locked itself; where it cannot be opened, a file in it is.
    let file = if cfg!(unix) { File::open(folder) } else { File::create(folder.join(".lock")) };
    let file = file.map_err(Error::io("open", folder))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(Error::saved(folder, "another strust is working in this folder: wait for it, or stop it first"))
        }
        // A file system without locks is no reason not to work.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

fn go_on(folder: &Path, plan: &mut Plan, options: &Options) -> Result<Summary, Error> {
    if let Some(tune) = plan.experiment.tune.clone() {
        let search: Vec<Job> = plan.jobs.iter().filter(|job| job.tuning).cloned().collect();
        run_all(folder, plan, &search, "grid search", options)?;
        let chosen: Vec<(ProblemSpec, MethodSpec)> = summarize::choose(folder, plan, &tune)?;
        plan.add_chosen(&chosen);
        plan.save(folder)?;
    }
    let jobs: Vec<Job> = plan.jobs.iter().filter(|job| !job.tuning).cloned().collect();
    run_all(folder, plan, &jobs, "runs", options)?;
    let mut summary = summarize::summary(folder, plan)?;
    summary.diagnoses = diagnose::of_plan(folder, plan, Effort::Report)?;
    files::write_json(&folder.join("summary.json"), &summary)?;
    files::write(&folder.join("summary.csv"), summarize::csv(&summary).as_bytes())?;
    write_report(folder, std::slice::from_ref(&summary))?;
    Ok(summary)
}

/// The summary of a finished run, made anew from its records, or of one that was published.
pub fn load_summary(folder: &Path) -> Result<Summary, Error> {
    if folder.join("plan.json").exists() || !folder.join("summary.json").exists() {
        let plan = Plan::load(folder)?;
        let mut summary = summarize::summary(folder, &plan)?;
        summary.diagnoses = diagnose::of_plan(folder, &plan, Effort::Report)?;
        return Ok(summary);
    }
    load_published(folder)
}

/// The summary that was published into a folder.
pub(crate) fn load_published(folder: &Path) -> Result<Summary, Error> {
    let path = folder.join("summary.json");
    let text = std::fs::read(&path).map_err(Error::io("read", &path))?;
    serde_json::from_slice(&text).map_err(|e| Error::saved(&path, format!("this is no summary of strust: {e}")))
}

/// Writes a file whole or not at all.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    files::write(path, bytes)
}

/// Whether a file can be written: its folder is there and lets one be made.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    files::check_writable(path)
}

/// Whether a report of the runs in `of` may be written into a folder: it replaces what strust wrote there, and nothing else.
pub fn check_report_place(folder: &Path, of: &[PathBuf]) -> Result<(), Error> {
    let same = |run: &PathBuf| run.canonicalize().ok() == folder.canonicalize().ok();
    let run = ["plan.json", "theory.json"].iter().any(|file| folder.join(file).exists());
    if run && !(of.len() == 1 && of.iter().all(same)) {
        return Err(Error::saved(
            folder,
            "this is the folder of a run, which has a report of its own: choose another one",
        ));
    }
    let page = folder.join("report.html");
    match std::fs::read(&page) {
        Ok(text) if !report::is_ours(&text) => Err(in_the_way(&page)),
        _ => Ok(()),
    }
}

pub(crate) fn in_the_way(path: &Path) -> Error {
    Error::saved(path, "strust did not write this file, and would replace it: choose another folder")
}

/// Draws figures and page of one or several summaries into a folder.
pub fn write_report(folder: &Path, summaries: &[Summary]) -> Result<(), Error> {
    let figures = folder.join("figures");
    files::make_folder(&figures)?;
    for (i, summary) in summaries.iter().enumerate() {
        let same = summaries.iter().filter(|other| other.experiment == summary.experiment).count();
        for (stem, figure) in report::figures(summary) {
            let stem = match (summaries.len(), same) {
                (1, _) => stem,
                (_, 1) => format!("{}-{stem}", summary.experiment),
                _ => format!("{}-run{}-{stem}", summary.experiment, i + 1),
            };
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
    let halt = AtomicBool::new(false);
    let worker = || {
        while !options.interrupt.load(Ordering::Relaxed) && !halt.load(Ordering::Relaxed) {
            let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            if let Err(error) = run_one(folder, plan, job, &halt, options) {
                halt.store(true, Ordering::Relaxed);
                let mut first = fatal.lock().expect("no thread panics while it holds this");
                // That it was stopped explains nothing; why a saving failed does.
                if matches!(*first, None | Some(Error::Interrupted)) {
                    *first = Some(error);
                }
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
fn run_one(folder: &Path, plan: &Plan, job: &Job, halt: &AtomicBool, options: &Options) -> Result<(), Error> {
    let folder = job_folder(folder, job);
    let mut context = job::Context {
        job,
        experiment: &plan.experiment,
        folder: folder.clone(),
        interrupt: [options.interrupt, halt],
        save_every: options.save_every,
        check: false,
        examine: None,
        progress: options.progress.job(&job.name),
    };
    // In a grid search a setting that diverges is nothing to alarm anybody with.
    let shown = |error: &str| (!job.tuning).then(|| error.to_string());
    let id = job.checksum(&plan.experiment);
    if let Some(failure) = failure(&folder, id)? {
        context.progress.end(shown(&failure.error).as_deref());
        return Ok(());
    }
    match caught(|| job::run(&mut context)) {
        Ok(()) => context.progress.end(None),
        Err(Error::Method(error)) if error.is_breakdown() => {
            let failure = Failed { job: id, failure: Failure { seed: job.seed, error: error.to_string() } };
            files::make_folder(&folder)?;
            files::write_json(&folder.join("failed.json"), &failure)?;
            context.progress.end(shown(&failure.failure.error).as_deref());
        }
        Err(error) => {
            context.progress.stop();
            return Err(error);
        }
    }
    Ok(())
}

/// The whole of `failed.json`.
#[derive(Serialize, Deserialize)]
struct Failed {
    /// The checksum of the job.
    job: u64,
    #[serde(flatten)]
    failure: Failure,
}

/// How the job with that checksum broke down, if it did.
pub(crate) fn failure(folder: &Path, job: u64) -> Result<Option<Failure>, Error> {
    let path = folder.join("failed.json");
    match std::fs::read(&path) {
        Ok(text) => match serde_json::from_slice::<Failed>(&text) {
            Ok(failed) if failed.job == job => Ok(Some(failed.failure)),
            Ok(_) => Err(Error::saved(&path, "belongs to other settings: remove the job's folder and resume")),
            Err(e) => Err(Error::saved(&path, format!("{e}: remove the job's folder and resume"))),
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", &path)(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_gpu_is_no_fault_of_ours() {
        let of = |text: &str| {
            let text = text.to_string();
            caught(|| std::panic::panic_any(text)).unwrap_err()
        };
        let full = of("called `Result::unwrap()` on an `Err` value: Torch(\"CUDA out of memory. Tried to allocate\")");
        assert!(matches!(&full, Error::Network(why) if why.contains("`strust resume`")), "{full}");
        assert!(of("index out of bounds").to_string().contains("this should not have happened: index out of bounds"));
    }
}
