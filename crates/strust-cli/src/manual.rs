//! Completions of shells and manual pages, made from the arguments.

use crate::{CommandFailure, CommandResult, args::Args, session::print_data, usage};
use clap::CommandFactory;
use clap_complete::Shell;

/// `strust completions`.
pub fn completions(shell: Shell) -> CommandResult {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "strust", &mut text);
    print_data(&String::from_utf8_lossy(&text))
}

/// `strust man`: the page strust(1), or strust-NAME(1) of a command.
pub fn page(name: Option<&str>) -> CommandResult {
    let mut program = Args::command();
    program.build();
    let command = match name {
        None => program,
        Some(name) => match program.find_subcommand(name) {
            Some(command) => command.clone(),
            None => return usage(format!("'{name}' is no command; `strust --help` lists all")),
        },
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut text)
        .map_err(|error| CommandFailure::Failed(format!("cannot write the page: {error}")))?;
    print_data(&String::from_utf8_lossy(&text))
}
