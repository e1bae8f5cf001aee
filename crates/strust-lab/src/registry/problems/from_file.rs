//! What problems with a data file share: reading it, their metrics, which of their keys have an effect, and f*.

use super::{ProblemEntry, Quantity, default_effect, number, text, words};
use crate::{Error, data::parameters::Parameters, registry::entry::Switch};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fmt::Debug,
    path::Path,
    sync::{Mutex, PoisonError},
};
use strust_problems::{Convex, Labeled, read_labeled_by};

/// How the test set of a file is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeldOut {
    /// At random.
    Random,
    /// The last rows.
    Last,
}

words!(HeldOut);

/// The rows of a data file with the label in the column `label`; with `rows` > 0 only this number of rows.
pub(super) fn labeled(data: &str, label: &str, rows: u64) -> Result<Labeled, Error> {
    let data = read_labeled_by(Path::new(data), label)?;
    Ok(if rows == 0 { data } else { data.thinned(rows as usize)? })
}

const OBJECTIVE: (Quantity, &str) = (Quantity::Objective, "objective f(x)");
const GAP: (Quantity, &str) = (Quantity::ObjectiveGap, "objective gap f(x) − f*");
const TRAIN: (Quantity, &str) = (Quantity::TrainAccuracy, "training accuracy");
const TEST: (Quantity, &str) = (Quantity::TestAccuracy, "test accuracy");

/// The metrics of a classifier with the keys `optimum` and `train_accuracy`.
pub(super) fn accuracies(parameters: &Parameters, has_test: bool) -> &'static [(Quantity, &'static str)] {
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
