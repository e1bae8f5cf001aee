//! The program `strust`: fit data files; run, resume and report optimization experiments.
//!
//! Exit codes: 0 done, 1 failed or stopped, 2 wrong usage.
//!
//! It is a library with one function, because the Python package has the same program.

mod args;
mod commands;
mod data;
mod diagnose;
mod download;
mod fit;
mod fit_constraints;
mod fit_fair;
mod fit_page;
mod inspect;
mod manual;
mod network;
mod predict;
mod predictions;
mod ranks;
mod screen;
mod session;
mod show;
mod signals;
#[cfg(feature = "suites")]
mod suites;
#[cfg(not(feature = "suites"))]
#[path = "without_suites.rs"]
mod suites;
mod tables;

use args::{Args, Command};
use clap::Parser;
use std::ffi::OsString;

/// The result of a command.
type CommandResult<T = ()> = Result<T, CommandFailure>;

/// Why the program ends early.
enum CommandFailure {
    /// A command failed: exit code 1.
    Failed(String),
    /// The command line is wrong: exit code 2.
    Usage(String),
    /// The reader closed the output. This is no error: exit code 0.
    Quiet,
}

/// Fails with exit code 1.
fn failure<T>(why: impl Into<String>) -> CommandResult<T> {
    Err(CommandFailure::Failed(why.into()))
}

/// Fails with exit code 2.
fn usage<T>(why: impl Into<String>) -> CommandResult<T> {
    Err(CommandFailure::Usage(why.into()))
}

impl From<strust_lab::Error> for CommandFailure {
    fn from(error: strust_lab::Error) -> Self {
        match error {
            strust_lab::Error::Overwrite(why) => Self::Usage(why),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<strust_fit::Error> for CommandFailure {
    fn from(error: strust_fit::Error) -> Self {
        match error {
            strust_fit::Error::Option(why) => Self::Usage(why),
            error => Self::Failed(error.to_string()),
        }
    }
}

/// When a GPU fails, the binding of libtorch panics. The job reports the failure, so the stack trace is not printed.
fn silence_gpu_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = strust_lab::run::panic_text(panic.payload());
        if text.and_then(strust_lab::device::gpu_failure).is_none() {
            usual(panic);
        }
    }));
}

/// Runs the program with these arguments, of which the first one is its own name, and returns the exit code. It takes over Ctrl-C, and `--help` and wrong
/// arguments exit the process: call it once, as the last thing a process does.
pub fn program(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    silence_gpu_panics();
    let arguments: Vec<_> = arguments.into_iter().collect();
    let args = Args::try_parse_from(&arguments).unwrap_or_else(|error| ranks::exit_for(&args::with_place(error)));
    session::remember(&arguments);
    ranks::run(args)
}

/// Ends the process at once, with this exit code. With libtorch its exit handlers do not run: they can hang.
pub fn leave(code: u8) -> ! {
    strust_lab::device::leave(code)
}

/// Runs a command and returns the exit code.
fn execute(Args { command, shared }: Args) -> u8 {
    let outcome = match command {
        Command::Reproduce { what, quick, reference, runs } => {
            commands::reproduce(what, quick, reference.as_deref(), &runs, &shared)
        }
        Command::Run { file, runs } => commands::run(&file, &runs, &shared),
        Command::Train { file, save, method, seed, run, network } => {
            network::train(&file, &save, &method, seed, run, network, &shared)
        }
        Command::Fit(args) => fit::run(&args, &shared),
        Command::Predict(args) => predict::predict(&args, &shared),
        Command::Inspect { model, per_deviation } => inspect::inspect(&model, per_deviation, &shared),
        Command::Evaluate { model, rows: Some(rows), unchecked, network } => {
            predict::evaluate(&model, &rows, unchecked, &network, &shared)
        }
        Command::Evaluate { model, rows: None, unchecked, network } => {
            network::evaluate(&model, unchecked, &network, &shared)
        }
        Command::Resume { folder, epochs, jobs, saving } => commands::resume(&folder, epochs, jobs, saving, &shared),
        Command::Report { folders, publish: Some(to), .. } => commands::publish(&folders, &to, &shared),
        Command::Report { folders, markdown: false, latex: false, into: None, out, figures, .. } => {
            commands::report(&folders, out, &figures, &shared)
        }
        Command::Report { folders, at, into, mean, latex, figures, .. } => {
            commands::tables(&folders, &tables::Tables { at, mean, latex }, into.as_deref(), &figures)
        }
        Command::Diagnose { folder } => diagnose::run(&folder, &shared),
        Command::List { name } => commands::list(name.as_deref(), &shared),
        Command::Bench(args) => suites::bench(&args, &shared),
        Command::Data { set, to, from } => data::run(set, &to, from.as_deref(), &shared),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { name } => manual::page(name.as_deref()),
    };
    let (why, code) = match outcome {
        Ok(()) | Err(CommandFailure::Quiet) => return 0,
        Err(CommandFailure::Failed(why)) => (why, 1),
        Err(CommandFailure::Usage(why)) => (why, 2),
    };
    // All ranks fail together.
    if session::team().leads() {
        show::error(&why, &shared);
    }
    code
}
