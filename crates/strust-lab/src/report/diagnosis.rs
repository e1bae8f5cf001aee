//! The diagnosis of every method.

use super::parts::heading;
use crate::data::{diagnosis::Diagnosis, summary::Summary};
use maud::{Markup, html};

/// The section with the diagnoses; empty if there are none.
pub(super) fn section(summary: &Summary, level: usize) -> Markup {
    let many = summary.problems.len() > 1;
    html! {
        @if !summary.diagnoses.is_empty() {
            section.diagnosis {
                (heading(level, &html! { "Diagnosis" }))
                p.explain {
                    "The first seed of every method, from its records and its last checkpoint. " code { "strust diagnose" }
                    " reports the same for any job, also while it runs."
                }
                @for diagnosis in &summary.diagnoses { (one(diagnosis, many, level + 1)) }
            }
        }
    }
}

fn one(diagnosis: &Diagnosis, many: bool, level: usize) -> Markup {
    let title = html! {
        (diagnosis.method) @if many { " on " (diagnosis.problem) } " "
        span.quiet { "seed " (diagnosis.seed) ", " (diagnosis.state) }
    };
    html! {
        (heading(level, &title))
        dl { @for finding in &diagnosis.findings { div { dt { (finding.about) } dd { (finding.text) } } } }
        @if !diagnosis.advice.is_empty() {
            p { "What to change:" }
            ul { @for text in &diagnosis.advice { li { (text) } } }
        }
    }
}
