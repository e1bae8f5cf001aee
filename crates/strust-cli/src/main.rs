//! The program `strust`; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(strust_cli::program(std::env::args_os()))
}
