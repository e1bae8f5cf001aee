use std::path::{Path, PathBuf};

/// An error of an experiment: what happened, where, and how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The experiment file is wrong.
    #[error("{}{}: {why}", file.display(), line.map(|l| format!(":{l}")).unwrap_or_default())]
    Experiment {
        /// The file.
        file: PathBuf,
        /// The line, if it is known.
        line: Option<usize>,
        /// What is wrong and how to fix it.
        why: String,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {doing} {}: {source}{}", path.display(), hint(source))]
    Io {
        /// The attempted operation.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file of an earlier run cannot be used.
    #[error("{}: {why}", path.display())]
    Saved {
        /// The file.
        path: PathBuf,
        /// The reason and the fix.
        why: String,
    },
    /// A data file could not be read.
    #[error(transparent)]
    Read(#[from] strust_data::DataError),
    /// A run failed, usually by divergence.
    #[error(transparent)]
    Method(#[from] strust::Error),
    /// The settings of a plan do not fit this program.
    #[error("{0}")]
    Misfit(String),
    /// A problem of the experiment cannot be set up.
    #[error("problem `{problem}`: {why}")]
    Problem {
        /// Its name in the experiment.
        problem: String,
        /// What is wrong.
        why: String,
    },
    /// A command would write over one of its inputs, or twice to one file.
    #[error("{0}")]
    Overwrite(String),
    /// A network cannot be run.
    #[error("{0}")]
    Network(String),
    /// Ranks failed, or do not fit together.
    #[error("{0}")]
    Ranks(String),
    /// The user asked to stop; everything is saved.
    #[error("interrupted")]
    Interrupted,
}

fn hint(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::StorageFull => {
            ". Free some space and repeat the command; continue a run that had started with `strust resume`. What was saved is whole"
        }
        std::io::ErrorKind::PermissionDenied => {
            ". Choose a place where you may write, such as another folder with --out"
        }
        _ => "",
    }
}

impl Error {
    /// For `map_err`: adds the operation and the file.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing, path: path.into(), source }
    }
    /// A file or folder of an earlier run that cannot be used.
    pub fn saved(path: &Path, why: impl Into<String>) -> Self {
        Self::Saved { path: path.into(), why: why.into() }
    }
}
