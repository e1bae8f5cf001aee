//! The compiled part of the Python package `strust`. The package people see is in `python/src/strust`.

mod estimators;

use pyo3::prelude::*;
use std::ffi::OsString;

/// `strust._native`.
#[pymodule(gil_used = true)]
mod _native {
    #[pymodule_export]
    use super::estimators::{fit_frame, fit_model, input_units, stream_frame, stream_model};
    #[pymodule_export]
    use super::program;
    #[allow(non_upper_case_globals)]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// Runs the program `strust` with these arguments and returns its exit code.
#[pyfunction]
fn program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| strust_cli::program(arguments))
}
