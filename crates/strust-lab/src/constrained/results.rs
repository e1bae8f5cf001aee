//! The results of a part, and the beginnings of sections and tables.

use crate::data::{section::Section, summary::ProblemSummary};
use serde::{Deserialize, Serialize};

/// The results of a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PartResults {
    /// For `problems` in the summary.
    pub problems: Vec<ProblemSummary>,
    pub section: Section,
}

/// A section of the report without contents.
pub(super) fn section(name: &str, title: &str, description: &str) -> Section {
    Section::new(&format!("constrained-{name}"), title, description)
}

/// The cells of a row of a table.
pub(super) fn cells(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_string()).collect()
}
