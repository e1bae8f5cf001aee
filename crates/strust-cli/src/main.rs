//! The program `strust`; see the library.

fn main() {
    strust_cli::leave(strust_cli::program(std::env::args_os()))
}
