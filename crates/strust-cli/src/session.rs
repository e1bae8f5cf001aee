//! What commands that run something have in common: the pace, the interruption, the output at the end.

use crate::{
    Failure,
    args::{Jobs, Saving, Shared},
    show, tables,
};
use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use strust_lab::{
    Error,
    data::{experiment::Experiment, summary::Summary},
    format::plural,
    run::Options,
};

/// Prints to the standard output; a reader that went away ends the program quietly.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::Quiet),
        Err(e) => Err(Failure::Failed(format!("cannot write to the standard output: {e}"))),
    }
}

/// A value as indented JSON.
pub fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|e| Failure::Failed(e.to_string()))
}

/// Jobs in parallel, and the time between two savings.
pub type Pace = (usize, Duration);

pub fn pace(given: Jobs, saving: Saving, experiment: &Experiment) -> Result<Pace, Failure> {
    Ok((jobs(given, experiment), save_every(saving)?))
}

/// All cores; on a GPU one job, because only the user knows how many fit into its memory.
pub fn jobs(given: Jobs, experiment: &Experiment) -> usize {
    if experiment.on_gpu() { given.jobs.map_or(1, |jobs| jobs as usize) } else { all_cores(given) }
}

/// As many jobs as asked for, or as there are cores.
pub fn all_cores(given: Jobs) -> usize {
    given.jobs.map_or_else(strust_lab::cores, |jobs| jobs as usize)
}

pub fn save_every(Saving { save_every }: Saving) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(save_every)
        .map_err(|_| Failure::Usage(format!("--save-every is {save_every}, but must be ≥ 0")))
}

pub fn resume_command(folder: &Path) -> String {
    format!("strust resume {}", quoted(&folder.display().to_string()))
}

/// Runs to the end and shows the results; `again` is the command that resumes after a stop.
pub fn conclude(
    folder: &Path,
    shared: &Shared,
    (jobs, save_every): Pace,
    again: &str,
    go: impl FnOnce(&Options) -> Result<Summary, Error>,
) -> Result<(), Failure> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    // The second Ctrl-C does not wait; files are whole at any moment.
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
    })
    .map_err(|e| Failure::Failed(format!("cannot watch for Ctrl-C: {e}")))?;

    let outcome = {
        let progress = show::progress(shared);
        go(&Options { jobs, save_every, interrupt: &interrupt, progress: progress.as_ref() })
    };
    let summary = outcome.map_err(|error| match error {
        Error::Interrupted => Failure::Failed(format!("stopped. Everything is saved; resume with: {again}")),
        error => error.into(),
    })?;
    if shared.json {
        print(&json(&summary)?)?;
    } else if !shared.quiet {
        print(&tables::overview(&summary, shared))?;
        print(&format!("Report: {}\n", folder.join("report.html").display()))?;
    }
    let failed: usize = summary.problems.iter().flat_map(|p| &p.methods).map(|m| m.failures.len()).sum();
    if failed > 0 {
        let runs = plural(failed, "run");
        let report = folder.join("report.html");
        return Err(Failure::Failed(format!("{runs} broke down; {} says which and why", report.display())));
    }
    Ok(())
}

/// The first of NAME, NAME-2, NAME-3 … that is free.
pub fn unused(parent: &Path, name: &str, free: impl Fn(&Path) -> bool) -> PathBuf {
    let mut path = parent.join(name);
    let mut number = 1;
    while !free(&path) {
        number += 1;
        path = parent.join(format!("{name}-{number}"));
    }
    path
}

/// The command as it would be typed again.
pub fn command_line() -> String {
    std::iter::once("strust".into())
        .chain(std::env::args().skip(1).map(|arg| quoted(&arg)))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) { arg.into() } else { format!("'{}'", arg.replace('\'', r"'\''")) }
}
