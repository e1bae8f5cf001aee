//! Parts of a report that are not curves over epochs: text, figures, tables, and checks of claims.

use super::{figure::Figure, numbers::numbers};
use serde::{Deserialize, Serialize};

/// How a measured number must relate to its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// At most the bound.
    #[default]
    AtMost,
    /// At least the bound.
    AtLeast,
    /// About the bound.
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

/// A claim, its measurement, and whether it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The claim.
    pub name: String,
    /// The measured value. It is NaN (null in JSON) if the measurement was impossible; the claim is then
    /// [open](Check::is_open).
    #[serde(deserialize_with = "numbers")]
    pub measured: f64,
    /// The bound of the claim.
    #[serde(deserialize_with = "numbers")]
    pub bound: f64,
    /// Whether `measured` is claimed to be at most, at least or about `bound`.
    #[serde(default)]
    pub claim: Relation,
    /// Whether it holds; false if the claim is open.
    pub holds: bool,
    /// How it was measured, and what it means.
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
    /// Whether the claim is open: it neither holds nor fails, because the measurement was impossible.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.measured.is_nan()
    }
    /// The verdict as a word.
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
    /// A sentence about its contents.
    pub caption: String,
    /// The figure.
    pub figure: Figure,
}

impl Shown {
    /// A figure with the name of its file and a sentence.
    #[must_use]
    pub fn new(stem: impl Into<String>, caption: impl Into<String>, figure: Figure) -> Self {
        Self { stem: stem.into(), caption: caption.into(), figure }
    }
}

/// A table of texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// A sentence about its contents.
    pub caption: String,
    /// The headings of its columns.
    pub header: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
    /// A bar for each row, drawn behind its first cell; empty for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<TableBar>,
}

/// A bar of a row. All bars of a table have the same scale, and it contains 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TableBar {
    /// One end.
    pub from: f64,
    /// The other end.
    pub to: f64,
    /// A point in between: then the bar is thin, an interval around the point.
    pub at: Option<f64>,
}

impl Table {
    /// A table whose columns are named in one line, with ` | ` between them.
    #[must_use]
    pub fn new(caption: impl Into<String>, columns: &str, rows: Vec<Vec<String>>) -> Self {
        let header = columns.split(" | ").map(String::from).collect();
        Self { caption: caption.into(), header, rows, bars: Vec::new() }
    }
    /// The same with more columns, whose names may be anything.
    #[must_use]
    pub fn and_columns(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.header.extend(more);
        self
    }
}

/// One part of a report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Section {
    /// The experiment it belongs to.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// Its topic.
    pub description: String,
    /// The findings, one paragraph each.
    pub findings: Vec<String>,
    /// Its figures.
    pub figures: Vec<Shown>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Its checks.
    pub checks: Vec<Check>,
}

impl Section {
    /// A section without contents.
    #[must_use]
    pub fn new(name: &str, title: &str, description: &str) -> Self {
        Self { name: name.into(), title: title.into(), description: description.into(), ..Self::default() }
    }
}
