//! Parts of a report that are no curves over epochs: text, figures, tables, and checks of claims.

use crate::figure::Figure;
use serde::{Deserialize, Deserializer, Serialize};

/// A claim, what was measured, and whether it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The claim.
    pub name: String,
    /// What was measured.
    #[serde(deserialize_with = "number_or_nan")]
    pub measured: f64,
    /// What the claim says of it.
    #[serde(deserialize_with = "number_or_nan")]
    pub bound: f64,
    /// Whether it holds.
    pub holds: bool,
    /// Of what, over what, and what to make of it.
    pub why: String,
}

impl Check {
    /// A claim of the form measured ≤ bound.
    #[must_use]
    pub fn at_most(name: impl Into<String>, measured: f64, bound: f64, why: impl Into<String>) -> Self {
        Self { name: name.into(), measured, bound, holds: measured <= bound, why: why.into() }
    }
    /// A claim of the form measured ≥ bound.
    #[must_use]
    pub fn at_least(name: impl Into<String>, measured: f64, bound: f64, why: impl Into<String>) -> Self {
        Self { name: name.into(), measured, bound, holds: measured >= bound, why: why.into() }
    }
    /// What is claimed of the measured number and the bound.
    #[must_use]
    pub fn relation(&self) -> &'static str {
        if self.holds == (self.measured <= self.bound) { "≤" } else { "≥" }
    }
}

/// JSON has no NaN and no infinity: both are written as null.
pub(crate) fn number_or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

/// A figure with the name of its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// The name of its file, without ending.
    pub stem: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// The figure.
    pub figure: Figure,
}

/// A table of texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// The heads of its columns.
    pub header: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

/// One part of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// The experiment it belongs to.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What it is about.
    pub description: String,
    /// What was found, a paragraph each.
    pub findings: Vec<String>,
    /// Its figures.
    pub figures: Vec<Shown>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// What it checked.
    pub checks: Vec<Check>,
}
