//! The targets: one function for each kind of file. Errors are expected; panics are not.

mod data;
mod results;
mod saved;

/// The targets by name.
pub const ALL: [(&str, fn(&[u8])); 18] = [
    ("libsvm", data::libsvm),
    ("csv", data::csv),
    ("npy", data::npy),
    ("idx", data::idx),
    ("gz", data::gz),
    ("xz", data::xz),
    ("mnist", data::mnist),
    ("cifar", data::cifar),
    ("archive", data::archive),
    ("table", data::table),
    ("json-lines", data::json_lines),
    ("model", saved::model),
    ("state", saved::state),
    ("experiment", results::experiment),
    ("plan", results::plan),
    ("records", results::records),
    ("checkpoint", results::checkpoint),
    ("summary", results::summary),
];
