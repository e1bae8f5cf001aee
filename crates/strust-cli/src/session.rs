//! Shared by the commands that run something: the number of jobs, Ctrl-C and the final output.

use crate::{
    CommandFailure,
    args::{Jobs, Saving, Shared},
    show, tables,
};
use std::{
    cell::RefCell,
    ffi::OsString,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use strust::ranks::Group as _;
use strust_lab::{
    Error,
    data::{
        experiment::Experiment,
        summary::{Summary, Tuning},
    },
    format::plural,
    run::Options,
    team::Team,
};

/// Prints to standard output. If the reader has closed it, the program ends without an error.
pub fn print(text: &str) -> Result<(), CommandFailure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Err(CommandFailure::Quiet),
        Err(e) => Err(CommandFailure::Failed(format!("cannot write to standard output: {e}"))),
    }
}

/// A value as indented JSON.
pub fn json(value: &impl serde::Serialize) -> Result<String, CommandFailure> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|e| CommandFailure::Failed(e.to_string()))
}

/// The number of jobs in parallel, and the time between two checkpoints.
pub type RunPace = (usize, Duration);

pub fn pace(given: Jobs, saving: Saving, experiment: &Experiment) -> Result<RunPace, CommandFailure> {
    Ok((jobs(given, experiment), save_every(saving)?))
}

/// The number of jobs: by default one per core. On a GPU it is one, because only the user knows how many fit into its
/// memory.
pub fn jobs(given: Jobs, experiment: &Experiment) -> usize {
    jobs_on(given, experiment.on_gpu())
}

/// The number of jobs if networks are on a GPU, or not.
pub fn jobs_on(given: Jobs, on_gpu: bool) -> usize {
    // Ranks run in parallel already.
    if on_gpu || team().size() > 1 { given.jobs.map_or(1, |jobs| jobs as usize) } else { all_cores(given) }
}

/// The requested number of jobs, or one per core.
pub fn all_cores(given: Jobs) -> usize {
    if team().size() > 1 {
        jobs_on(given, false)
    } else {
        given.jobs.map_or_else(strust_lab::cores, |jobs| jobs as usize)
    }
}

pub fn save_every(Saving { save_every }: Saving) -> Result<Duration, CommandFailure> {
    Duration::try_from_secs_f64(save_every)
        .map_err(|_| CommandFailure::Usage(format!("--save-every is {save_every}, but must be ≥ 0")))
}

pub fn resume_command(folder: &Path) -> String {
    format!("strust resume {}", quoted(&folder.display().to_string()))
}

/// A flag that Ctrl-C sets. A second Ctrl-C exits at once. This is safe because every file is complete at any time.
pub fn interrupt() -> Result<Arc<AtomicBool>, CommandFailure> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            crate::leave(1);
        }
    })
    .map_err(|e| CommandFailure::Failed(format!("cannot handle Ctrl-C: {e}")))?;
    Ok(interrupt)
}

/// Runs to the end and shows the results. `again` is the command that resumes a stopped run.
pub fn conclude(
    folder: &Path,
    shared: &Shared,
    (jobs, save_every): RunPace,
    again: &str,
    run: impl FnOnce(&Options) -> Result<Summary, Error>,
) -> Result<(), CommandFailure> {
    let interrupt = interrupt()?;
    let outcome = {
        let progress = show::progress(shared);
        run(&Options { jobs, save_every, interrupt: &interrupt, progress: progress.as_ref(), team: &team() })
    };
    let summary = outcome.map_err(|error| match error {
        Error::Interrupted => CommandFailure::Failed(format!("stopped. Everything is saved; resume with: {again}")),
        error => error.into(),
    })?;
    if shared.json {
        print(&json(&summary)?)?;
    } else if !shared.quiet {
        print(&tables::overview(&summary, shared))?;
        print(&format!("Report: {}\n", folder.join("report.html").display()))?;
    }
    // In a comparison, a baseline that diverges is a result.
    if !summary.sections.is_empty() {
        return Ok(());
    }
    let without_choice = |tuning: &&Tuning| tuning.tried.first().is_none_or(|best| best.score.is_none());
    if let Some(tuning) = summary.tuning.iter().find(without_choice) {
        let why = format!("every setting of {} failed on {}; choose other settings", tuning.method, tuning.problem);
        return Err(CommandFailure::Failed(why));
    }
    let failed: usize = summary.problems.iter().flat_map(|p| &p.methods).map(|m| m.failures.len()).sum();
    if failed > 0 {
        let runs = plural(failed, "run");
        let report = folder.join("report.html");
        return Err(CommandFailure::Failed(format!("{runs} failed; see {} for the reasons", report.display())));
    }
    Ok(())
}

/// The first free path of NAME, NAME-2, NAME-3, …
pub fn unused(parent: &Path, name: &str, free: impl Fn(&Path) -> bool) -> PathBuf {
    let mut path = parent.join(name);
    let mut number = 1;
    while !free(&path) {
        number += 1;
        path = parent.join(format!("{name}-{number}"));
    }
    path
}

thread_local! {
    /// The ranks that the program runs on. They belong to the main thread, as MPI does.
    static TEAM: RefCell<Team> = RefCell::new(Team::alone());
}

/// The ranks that the program runs on.
pub fn team() -> Team {
    TEAM.with_borrow(Team::clone)
}

/// Sets the ranks that the program runs on.
#[cfg(feature = "mpi")]
pub fn set_team(team: Team) {
    TEAM.set(team);
}

/// The command line, quoted for a shell.
static COMMAND_LINE: OnceLock<String> = OnceLock::new();

/// Keeps the arguments for [`command_line`]. Those of the process may be an interpreter's.
pub fn remember(arguments: &[OsString]) {
    let quoted = arguments.iter().skip(1).map(|arg| quoted(&arg.to_string_lossy()));
    COMMAND_LINE.get_or_init(|| std::iter::once("strust".into()).chain(quoted).collect::<Vec<_>>().join(" "));
}

/// The command line, quoted for a shell.
pub fn command_line() -> String {
    COMMAND_LINE.get().cloned().unwrap_or_default()
}

fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) { arg.into() } else { format!("'{}'", arg.replace('\'', r"'\''")) }
}
