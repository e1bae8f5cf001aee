//! Shared by the commands that run something: the number of jobs, Ctrl-C and the final output.

use crate::{
    CommandFailure, CommandResult,
    args::{Jobs, Saving, Shared},
    failure, show,
    signals::on_stop,
    tables,
};
use std::{
    cell::RefCell,
    ffi::{OsStr, OsString},
    fmt::Write as _,
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
        command::CommandLine,
        experiment::Experiment,
        summary::{Summary, Tuning},
    },
    format::plural,
    run::Options,
    team::Team,
};

/// Prints text for people to standard output, without the control characters that it may have from files of others. If
/// the reader has closed it, the program ends without an error.
pub fn print(text: &str) -> CommandResult {
    print_data(&show::harmless(text))
}

/// Prints data for programs to standard output, as they are.
pub fn print_data(text: &str) -> CommandResult {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Err(CommandFailure::Quiet),
        Err(e) => failure(format!("cannot write to standard output: {e}")),
    }
}

/// Prints a value as JSON.
pub fn print_json(value: &impl serde::Serialize) -> CommandResult {
    print_data(&json(value)?)
}

/// A value as indented JSON. Control characters beyond ASCII are escaped too: a terminal obeys some of them.
fn json(value: &impl serde::Serialize) -> CommandResult<String> {
    Ok(escaped(&serde_json::to_string_pretty(value).map_err(|e| CommandFailure::Failed(e.to_string()))?))
}

/// JSON text whose control characters beyond ASCII are escaped, with a line break at its end.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        match c {
            '\u{7f}'..='\u{9f}' => {
                let _ = write!(shown, "\\u{:04x}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown.push('\n');
    shown
}

/// The number of jobs in parallel, and the time between two checkpoints.
pub type RunPace = (usize, Duration);

pub fn pace(given: Jobs, saving: Saving, experiment: &Experiment) -> CommandResult<RunPace> {
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
    let usual = || if on_gpu || team().size() > 1 { 1 } else { strust_lab::cores() };
    given.jobs.map_or_else(usual, |jobs| jobs as usize)
}

pub fn save_every(Saving { save_every }: Saving) -> CommandResult<Duration> {
    Duration::try_from_secs_f64(save_every)
        .map_err(|_| CommandFailure::Usage(format!("--save-every is {save_every}, but must be ≥ 0")))
}

pub fn resume_command(folder: &Path) -> CommandLine {
    CommandLine::new([OsStr::new("strust"), OsStr::new("resume"), folder.as_os_str()])
}

/// A flag that Ctrl-C sets. A second Ctrl-C exits at once. This is safe because every file is complete at any time.
pub fn interrupt() -> CommandResult<Arc<AtomicBool>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    on_stop(move || {
        if flag.swap(true, Ordering::Relaxed) {
            crate::leave(1);
        }
    })?;
    Ok(interrupt)
}

/// Runs to the end and shows the results. `again` is the command that resumes a stopped run.
pub fn conclude(
    folder: &Path,
    shared: &Shared,
    (jobs, save_every): RunPace,
    again: &CommandLine,
    run: impl FnOnce(&Options) -> Result<Summary, Error>,
) -> CommandResult {
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
        print_json(&summary)?;
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
        return failure(why);
    }
    let failed: usize = summary.problems.iter().flat_map(|p| &p.methods).map(|m| m.failures.len()).sum();
    if failed > 0 {
        let runs = plural(failed, "run");
        let report = folder.join("report.html");
        return failure(format!("{runs} failed; see {} for the reasons", report.display()));
    }
    Ok(())
}

/// The folder of results: the one that the user chose, or a new one of its own in `runs`.
pub struct ResultsFolder {
    path: PathBuf,
    /// Folders that this program made, inner ones first. They are removed if nothing is written into them.
    made: Vec<PathBuf>,
}

impl ResultsFolder {
    /// The folder `out`; without it, the first of NAME, NAME-2, NAME-3, … in `runs` that does not exist. That one is made
    /// at once, so that programs that start at the same time have different folders.
    pub fn new(out: Option<PathBuf>, name: &str) -> CommandResult<Self> {
        let mut made = Vec::new();
        if let Some(path) = out {
            return Ok(Self { path, made });
        }
        let failed = |path: &Path, e: std::io::Error| {
            let why = format!("cannot create the folder {}: {e}. Choose another one with --out", path.display());
            CommandFailure::Failed(why)
        };
        let parent = Path::new("runs");
        match std::fs::create_dir(parent) {
            Ok(()) => made.push(parent.into()),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(failed(parent, e)),
        }
        loop {
            let path = unused(parent, name, |path| !path.exists());
            match std::fs::create_dir(&path) {
                Ok(()) => {
                    made.insert(0, path.clone());
                    return Ok(Self { path, made });
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(failed(&path, e)),
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ResultsFolder {
    fn drop(&mut self) {
        for folder in &self.made {
            // This fails if the folder has contents, as it should.
            let _ = std::fs::remove_dir(folder);
        }
    }
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

/// How to get a program that runs under MPI.
#[cfg(not(feature = "mpi"))]
pub const WITHOUT_MPI: &str = "was built without MPI. Install an MPI library (Debian: apt-get install libopenmpi-dev \
                               openmpi-bin libclang-dev) and run: cargo build --release -p strust-cli --features mpi";

/// The command line.
static COMMAND_LINE: OnceLock<CommandLine> = OnceLock::new();

/// Keeps the arguments for [`command_line`]. Those of the process may be an interpreter's.
pub fn remember(arguments: &[OsString]) {
    let words = std::iter::once(OsStr::new("strust")).chain(arguments.iter().skip(1).map(AsRef::as_ref));
    COMMAND_LINE.get_or_init(|| CommandLine::new(words));
}

/// The command line.
pub fn command_line() -> CommandLine {
    COMMAND_LINE.get().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_sequences_of_the_program_itself_reach_the_terminal() {
        let text = "\x1b[1mtitle\x1b[0m\ta\x1b[31mb\x07\u{9b}2J\u{202e}c\r\nd\re\n";
        let expected = "\x1b[1mtitle\x1b[0m\ta\u{fffd}[31mb\u{fffd}\u{fffd}2J\u{fffd}c\r\nd\u{fffd}e\n";
        assert_eq!(show::harmless(text), expected);
        assert_eq!(json(&"\x1b\u{9b}é").unwrap_or_default(), "\"\\u001b\\u009bé\"\n");
    }
}
