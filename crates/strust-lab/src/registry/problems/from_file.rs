//! What problems with a data file share: reading it, their metrics, which of their keys have an effect, and f*.

use super::{Metrics, ProblemEntry, Quantity, default_effect, number, text};
use crate::{
    Error,
    data::{parameters::Parameters, paths::path_of},
    registry::entry::{Switch, field_words},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Mutex, PoisonError},
};
use strust_data::{DataError, Labeled, limits, read_labeled_by, read_numbers_by};
use strust_problems::Convex;

/// How the test set of a file is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeldOut {
    /// At random.
    Random,
    /// The last rows.
    Last,
}

field_words!(HeldOut);

/// The rows of a data file with the label in the column `label`; with `rows` > 0 only this number of rows.
pub(super) fn labeled(data: &str, label: &str, rows: u64) -> Result<Labeled, Error> {
    checked(read_labeled_by(path_of(data), label)?, data, rows)
}

/// The same for a regression, whose labels are numbers.
pub(super) fn with_numbers(data: &str, label: &str, rows: u64) -> Result<Labeled, Error> {
    checked(read_numbers_by(path_of(data), label)?, data, rows)
}

fn checked(read: Labeled, data: &str, rows: u64) -> Result<Labeled, Error> {
    let size = FileSize::of(data, &read);
    size.check_weights(1)?;
    Ok(if rows == 0 { read } else { read.thinned(rows as usize)? })
}

/// The size of a data file. A problem must not be far larger than its file: one index of LIBSVM text can be a billion.
pub(super) struct FileSize<'a> {
    path: &'a str,
    pub rows: usize,
    pub columns: usize,
    entries: usize,
}

impl<'a> FileSize<'a> {
    pub fn of(path: &'a str, Labeled { features, .. }: &Labeled) -> Self {
        Self { path, rows: features.rows(), columns: features.columns(), entries: features.stored() }
    }

    /// The size of a dense matrix that was read.
    pub fn of_matrix(path: &'a str, rows: usize, columns: usize) -> Self {
        Self { path, rows, columns, entries: rows.saturating_mul(columns) }
    }

    /// Refuses a model with too many weights for the file: `outputs` for each column.
    pub fn check_weights(&self, outputs: usize) -> Result<(), Error> {
        self.check("the weights", (self.columns, "columns"), (outputs, "outputs"), limits::weights(self.entries))
    }

    /// Refuses a dense matrix that is too large for the file: `columns` × `by`, where `what` says what these are.
    pub fn check_dense(&self, (by, what): (usize, &str)) -> Result<(), Error> {
        self.check("a dense matrix", (self.columns, "columns"), (by, what), limits::dense(self.entries))
    }

    /// Refuses a network with these widths, from the data to the outputs, if it takes too much memory for the file. A number
    /// has `bytes` bytes.
    pub fn check_network(&self, widths: &[usize], bytes: usize) -> Result<(), Error> {
        limits::network(widths, self.rows, bytes, self.entries).map_err(|why| {
            let why = format!("{why}: make `hidden` smaller, or use fewer columns");
            DataError::Contents { path: path_of(self.path), why }.into()
        })
    }

    fn check(&self, of: &str, (a, first): (usize, &str), (b, second): (usize, &str), most: usize) -> Result<(), Error> {
        if a.saturating_mul(b) <= most {
            return Ok(());
        }
        let size = if b == 1 { format!("{a} {first}") } else { format!("{a} {first} × {b} {second}") };
        let why = format!(
            "{size} are too many for {of}: the {} entries of the file allow at most {most} numbers; number the columns \
             without gaps, or use fewer of them",
            self.entries
        );
        Err(DataError::Contents { path: path_of(self.path), why }.into())
    }
}

const OBJECTIVE: (Quantity, &str) = (Quantity::Objective, "objective f(x)");
const GAP: (Quantity, &str) = (Quantity::ObjectiveGap, "objective gap f(x) − f*");
const TRAIN: (Quantity, &str) = (Quantity::TrainAccuracy, "training accuracy");
const TEST: (Quantity, &str) = (Quantity::TestAccuracy, "test accuracy");

/// The metrics of a classifier with the keys `optimum` and `train_accuracy`.
pub(super) fn accuracies(parameters: &Parameters, has_test: bool) -> Metrics {
    match (is_on(parameters, "optimum"), is_on(parameters, "train_accuracy"), has_test) {
        (false, false, false) => &[OBJECTIVE],
        (false, false, true) => &[OBJECTIVE, TEST],
        (false, true, false) => &[OBJECTIVE, TRAIN],
        (false, true, true) => &[OBJECTIVE, TRAIN, TEST],
        (true, false, false) => &[GAP],
        (true, false, true) => &[GAP, TEST],
        (true, true, false) => &[GAP, TRAIN],
        (true, true, true) => &[GAP, TRAIN, TEST],
    }
}

/// Whether a switch is on.
pub(super) fn is_on(parameters: &Parameters, name: &str) -> bool {
    text(parameters, name) == "on"
}

/// Whether a parameter has an effect, for the keys that problems with a data file share.
pub(super) fn effect<P: ProblemEntry>(parameter: &str, parameters: &Parameters) -> bool {
    let from_file = !text(parameters, "data").is_empty();
    let possible = match parameter {
        "label" | "rows" => from_file,
        "split" => number(parameters, "test_share") > 0.0,
        _ => true,
    };
    possible && default_effect::<P>(parameter, parameters)
}

/// The problem with f*, if it is wanted. It is computed once for all jobs with the same data: `config` describes the
/// problem, and `seed` its random part, if it has one.
pub(super) fn with_optimum<F: Convex>(
    f: F,
    wanted: Switch,
    config: &impl Debug,
    seed: Option<u64>,
) -> Result<F, Error> {
    static KNOWN: Mutex<BTreeMap<String, f64>> = Mutex::new(BTreeMap::new());
    if wanted == Switch::Off {
        return Ok(f);
    }
    let key = format!("{config:?} {seed:?}");
    // The lock is held while f* is computed, so that no two jobs compute it. Every entry is whole, even after a panic.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let optimum = match known.get(&key) {
        Some(&optimum) => optimum,
        None => f.minimum()?,
    };
    known.insert(key, optimum);
    Ok(f.with_optimum(optimum))
}

#[cfg(test)]
mod tests;
