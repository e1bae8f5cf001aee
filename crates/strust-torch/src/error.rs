//! Everything that can go wrong here: what, where, and how to mend it.

use std::path::PathBuf;

/// An error of this crate; the methods' own are [`strust::Error`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device that was asked for cannot be used.
    #[error("device `{wanted}` cannot be used: {why}")]
    Device {
        /// The device that was asked for.
        wanted: String,
        /// Why not, and what to do.
        why: String,
    },
    /// A model's parameters are of another type than the vector that is to hold them.
    #[error(
        "parameter `{name}` is {found:?}, but {expected:?} is wanted: use `VarStore::float` or `VarStore::double`, \
         or name the other type, as in `TorchObjective::<f64, _>`"
    )]
    Kind {
        /// The parameter.
        name: String,
        /// The kind that is wanted.
        expected: tch::Kind,
        /// The kind it has.
        found: tch::Kind,
    },
    /// There is nothing to train.
    #[error("the model has no trainable parameter: make its layers before the objective, from the same `VarStore`")]
    NoParameters,
    /// A name that no parameter has.
    #[error("there is no parameter `{name}`; there are {known}")]
    UnknownParameter {
        /// The name that was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A weight cannot have orthonormal columns.
    #[error(
        "`{name}` as a {rows}×{columns} matrix has more columns than rows, so they cannot be orthonormal: {advice}"
    )]
    TooWide {
        /// The parameter.
        name: String,
        /// Rows of the matrix.
        rows: i64,
        /// Columns of the matrix.
        columns: i64,
        /// What to ask for instead.
        advice: &'static str,
    },
    /// A model file cannot be read, written, or does not fit the model.
    #[error("model file {}: {why}", path.display())]
    ModelFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Images, or a network for them, that do not fit.
    #[error("images: {0}")]
    Images(String),
    /// A checkpoint does not fit the model.
    #[error("checkpoint: {0}")]
    Checkpoint(String),
    /// A step could not be captured as a CUDA graph, or the graph did not run.
    #[error("CUDA graph: {0}")]
    Graph(String),
    /// An error of the library.
    #[error(transparent)]
    Method(#[from] strust::Error),
}
