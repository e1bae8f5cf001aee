//! The experiment files of the suites, which are built into the program, by name.

use std::path::Path;
use strust_lab::{Error, experiment::ExperimentText};

/// Reads an experiment file, or the built-in experiment or suite of that name.
pub fn open(file: &Path) -> Result<ExperimentText, Error> {
    ExperimentText::open_among(file, &[THEORY, BENCHMARKS].concat())
}

/// The theory experiments, in the order of the report.
pub const THEORY: &[(&str, &str)] = &[
    ("theory-strong-growth", include_str!("../experiments/theory-strong-growth.toml")),
    ("theory-step-length", include_str!("../experiments/theory-step-length.toml")),
    ("theory-rejections", include_str!("../experiments/theory-rejections.toml")),
    ("theory-second-order", include_str!("../experiments/theory-second-order.toml")),
    ("theory-rate", include_str!("../experiments/theory-rate.toml")),
    ("theory-penalty", include_str!("../experiments/theory-penalty.toml")),
    ("theory-failures", include_str!("../experiments/theory-failures.toml")),
];

/// The benchmarks.
pub const BENCHMARKS: &[(&str, &str)] = &[
    ("zero-tuning", include_str!("../experiments/zero-tuning.toml")),
    ("kernels", include_str!("../experiments/kernels.toml")),
    ("second-order", include_str!("../experiments/second-order.toml")),
];

/// The tasks with data of the study of constrained problems.
pub const CONSTRAINED: (&str, &str) = ("constrained", include_str!("../experiments/constrained.toml"));
