//! The compiled part of the Python package `strust`. The package people see is in `python/src/strust`.

// PyO3 hands arguments over by value.
#![allow(clippy::needless_pass_by_value)]

mod array;
mod constraints;
mod diagnostics;
mod estimators;
mod exception;
mod expectation;
mod function;
mod methods;
mod objective;
mod problems;
mod run;
mod target;

use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
};
use std::ffi::OsString;
use strust::methods::Learned;

/// `strust._native`.
#[pymodule(gil_used = true)]
mod _native {
    #[pymodule_export]
    use super::estimators::{fit_model, input_units, stream_model};
    #[pymodule_export]
    use super::{
        auto_parts,
        diagnostics::{
            diagnose_folder, measure_curvature, measure_gradient_slope, measure_jacobian_slope, measure_kkt,
            measure_strong_growth,
        },
        problems::{
            Problem, least_squares, load_digits, logistic, mlp, random_least_squares, softmax, spiked_subspace,
            subspace,
        },
        program,
        run::{convert_state, minimize, point_of_state},
    };
    #[allow(non_upper_case_globals)]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    const METHODS: &[&str] = super::methods::NAMES;
}

/// Runs the program `strust` with these arguments and returns its exit code.
#[pyfunction]
fn program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| strust_cli::program(arguments))
}

/// Numbers by name, in their order.
type NamedNumbers = Vec<(&'static str, f64)>;

/// The parts of `Auto` that `strust.torch` repeats on a device: the constants, the numbers at the start, and the kernels.
#[pyfunction]
fn auto_parts() -> (NamedNumbers, NamedNumbers, String) {
    let numbers = Learned::NAMES.into_iter().zip(Learned::default().numbers()).collect();
    (Learned::CONSTANTS.to_vec(), numbers, Learned::cuda_source())
}

/// An error of the library as an exception: wrong arguments are a `ValueError`.
fn error(error: strust::Error) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        strust::ErrorKind::Setup => PyValueError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}
