//! The commands for suites and benchmarks in a program without them, such as that of the Python package.

use crate::{
    CommandFailure, CommandResult,
    args::{BenchArgs, Reproducible, Runs, Shared},
};
use std::path::Path;
use strust_lab::{experiment::ExperimentText, io::results::suite_in, suite::SuiteKind};

/// No suites.
#[cfg(feature = "mpi")]
pub const SUITES: [SuiteKind; 0] = [];

/// The names with which those of built-in suites begin.
const BUILT_IN: [&str; 5] = ["theory", "zero-tuning", "kernels", "second-order", "constrained"];

fn missing(what: &str) -> CommandFailure {
    CommandFailure::Failed(format!(
        "{what} is not part of this program, which has no suites and benchmarks. Clone the repository of strust and run \
         there: cargo install --path crates/strust-cli"
    ))
}

/// Fails if a folder holds a suite.
pub fn kind_in(folder: &Path) -> CommandResult<Option<SuiteKind>> {
    suite_in(folder)
        .map_or(Ok(None), |what| Err(missing(&format!("{}: showing and resuming {what}", folder.display()))))
}

/// Reads an experiment file, or the built-in experiment of that name.
pub fn open(file: &Path) -> CommandResult<ExperimentText> {
    let is_suite = file.to_str().is_some_and(|file| BUILT_IN.iter().any(|name| file.starts_with(name)));
    ExperimentText::open(file).map_err(|error| match error {
        _ if is_suite && !file.exists() => missing(&format!("`strust run {}`", file.display())),
        error => error.into(),
    })
}

/// Fails for suites.
pub fn reproduce(what: Reproducible, _: bool, _: Option<&Path>, _: &Runs, _: &Shared) -> CommandResult {
    let name = clap::ValueEnum::to_possible_value(&what).map_or(String::new(), |value| value.get_name().into());
    Err(missing(&format!("`strust reproduce {name}`")))
}

/// `false` for an experiment; fails for suites.
pub fn run(text: &ExperimentText, _: &Runs, _: &Shared) -> CommandResult<bool> {
    let is_suite = ["theory", "task"].iter().any(|key| text.has_key(key));
    if is_suite { Err(missing(&format!("the suite of {}", text.file.display()))) } else { Ok(false) }
}

/// Fails.
pub fn bench(_: &BenchArgs, _: &Shared) -> CommandResult {
    Err(missing("`strust bench`"))
}
