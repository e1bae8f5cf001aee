//! The errors of this crate. Each message states what happened, where, and how to fix it.

use std::path::PathBuf;

/// An error of this crate. Errors of the methods are [`strust::Error`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The requested device cannot be used.
    #[error("device `{wanted}` cannot be used: {why}")]
    Device {
        /// The requested device.
        wanted: String,
        /// The reason, and how to fix it.
        why: String,
    },
    /// A model's parameters have another type than the objective's vector.
    #[error(
        "parameter `{name}` is {found:?}, but {expected:?} is required: use `VarStore::float` or `VarStore::double`, \
         or name the other type, as in `TorchObjective::<f64, _>`"
    )]
    Kind {
        /// The parameter.
        name: String,
        /// The required kind.
        expected: tch::Kind,
        /// The kind of the parameter.
        found: tch::Kind,
    },
    /// The model has no trainable parameter.
    #[error("the model has no trainable parameter: make its layers before the objective, from the same `VarStore`")]
    NoParameters,
    /// No parameter has this name.
    #[error("there is no parameter `{name}`; there are {known}")]
    UnknownParameter {
        /// The requested name.
        name: String,
        /// The names of all parameters.
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
        /// How to fix it.
        advice: &'static str,
    },
    /// A model file cannot be read or written, or does not fit the model.
    #[error("model file {}: {why}", path.display())]
    ModelFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The images, or the network, do not fit.
    #[error("images: {0}")]
    Images(String),
    /// A text, or the shape of its model, does not fit.
    #[error("text: {0}")]
    Text(String),
    /// A checkpoint does not fit the model.
    #[error("checkpoint: {0}")]
    Checkpoint(String),
    /// A step cannot be captured as a CUDA graph, or the graph failed.
    #[error("CUDA graph: {0}")]
    Graph(String),
    /// An error of the library.
    #[error(transparent)]
    Method(#[from] strust::Error),
}
