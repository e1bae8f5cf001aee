//! The one error type.

use std::path::{Path, PathBuf};
use strust_problems::ReadError;

/// Why a model could not be fitted, saved, read or applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The optimization could not start.
    #[error(transparent)]
    Library(strust::Error),
    /// A line of a table is wrong.
    #[error("{path}:{line}: {why}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong, and how to fix it.
        why: String,
    },
    /// The contents of a file are wrong.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, and how to fix it.
        why: String,
    },
    /// An option does not fit the data.
    #[error("{0}")]
    Option(String),
    /// The caller stopped the work before there was a result.
    #[error("stopped; nothing was written")]
    Interrupted,
}

impl From<strust::Error> for Error {
    fn from(error: strust::Error) -> Self {
        match error {
            strust::Error::Stopped => Self::Interrupted,
            error => Self::Library(error),
        }
    }
}

impl Error {
    pub(crate) fn file(path: &Path, why: impl Into<String>) -> Self {
        Self::File { path: path.into(), why: why.into() }
    }
    pub(crate) fn line(path: &Path, line: u64, why: impl Into<String>) -> Self {
        Self::Line { path: path.into(), line, why: why.into() }
    }
}
