//! The one error type.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why data could not be read, or a model not be fitted, saved or applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The file cannot be opened or read, or its compressed data is truncated or damaged.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system or of the decompressor.
        #[source]
        cause: io::Error,
    },
    /// A line of LIBSVM text is malformed.
    #[error("{path}:{line}:{column}: {why}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The character in the line, from 1.
        column: u64,
        /// What is wrong.
        why: String,
    },
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
    /// A binary file is malformed.
    #[error("{path}: at byte {offset}: {why}")]
    Binary {
        /// The file.
        path: PathBuf,
        /// The byte, from 0, after decompression.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// The contents of a file or folder are wrong.
    #[error("{path}: {why}")]
    Contents {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong, and how to fix it.
        why: String,
    },
    /// The extension of the name belongs to no known format.
    #[error("{path}: unknown extension; known are {understood}, each also with .gz or .xz")]
    Ending {
        /// The file.
        path: PathBuf,
        /// The known extensions.
        understood: &'static str,
    },
    /// The data or the optimization are refused.
    #[error(transparent)]
    Library(strust::Error),
    /// An option does not fit the data.
    #[error("{0}")]
    Option(String),
    /// The caller stopped the work before there was a result.
    #[error("stopped; nothing was written")]
    Interrupted,
}

impl From<strust::Error> for DataError {
    fn from(error: strust::Error) -> Self {
        match error {
            strust::Error::Stopped => Self::Interrupted,
            error => Self::Library(error),
        }
    }
}

impl DataError {
    /// A file cannot be opened or read.
    pub fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        move |cause| Self::Io { path: path.into(), cause }
    }
    /// The contents of a file are wrong.
    pub fn file(path: &Path, why: impl Into<String>) -> Self {
        Self::Contents { path: path.into(), why: why.into() }
    }
    /// A line of a table is wrong.
    pub fn line(path: &Path, line: u64, why: impl Into<String>) -> Self {
        Self::Line { path: path.into(), line, why: why.into() }
    }
}
