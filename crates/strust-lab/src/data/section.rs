//! Parts of a report that are not curves over epochs: text, figures, tables, and checks of claims.

use super::{figure::Figure, numbers::number_or_nan};
use serde::{Deserialize, Serialize};

/// How a measured number must relate to its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Not above it.
    #[default]
    AtMost,
    /// Not below it.
    AtLeast,
    /// Near it.
    Near,
}

impl Relation {
    /// As a sign.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::AtMost => "≤",
            Self::AtLeast => "≥",
            Self::Near => "≈",
        }
    }
}

/// A claim, what was measured, and whether it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The claim.
    pub name: String,
    /// What was measured; NaN (null in JSON) if nothing could be measured, so that the claim is [open](Check::is_open).
    #[serde(deserialize_with = "number_or_nan")]
    pub measured: f64,
    /// The bound that the claim sets.
    #[serde(deserialize_with = "number_or_nan")]
    pub bound: f64,
    /// Whether `measured` is claimed to be at most, at least or about `bound`.
    #[serde(default)]
    pub claim: Relation,
    /// Whether it holds; never for a claim that is open.
    pub holds: bool,
    /// What was measured over what, and what it means.
    pub why: String,
}

impl Check {
    /// A claim of the form measured ≤ bound.
    #[must_use]
    pub fn at_most(name: impl Into<String>, measured: f64, bound: f64, why: impl Into<String>) -> Self {
        Self { name: name.into(), measured, bound, claim: Relation::AtMost, holds: measured <= bound, why: why.into() }
    }
    /// A claim of the form measured ≥ bound.
    #[must_use]
    pub fn at_least(name: impl Into<String>, measured: f64, bound: f64, why: impl Into<String>) -> Self {
        Self { name: name.into(), measured, bound, claim: Relation::AtLeast, holds: measured >= bound, why: why.into() }
    }
    /// A claim of the form |measured − predicted| < within.
    #[must_use]
    pub fn near(name: impl Into<String>, measured: f64, predicted: f64, within: f64, why: impl Into<String>) -> Self {
        let holds = (measured - predicted).abs() < within;
        Self { name: name.into(), measured, bound: predicted, claim: Relation::Near, holds, why: why.into() }
    }
    /// A claim that could not be measured, and why.
    #[must_use]
    pub fn open(name: impl Into<String>, bound: f64, why: impl Into<String>) -> Self {
        Self { name: name.into(), measured: f64::NAN, bound, claim: Relation::AtMost, holds: false, why: why.into() }
    }
    /// Whether nothing could be measured: the claim neither holds nor fails.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.measured.is_nan()
    }
    /// In a word.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match self {
            _ if self.holds => "holds",
            _ if self.is_open() => "open",
            _ => "fails",
        }
    }
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
