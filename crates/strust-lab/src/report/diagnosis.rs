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
        (diagnosis.method) @if many { " on " (diagnosis.problem) }
        @if let Some(verdict) = diagnosis.verdict { ": " (verdict) }
        " " span.quiet { "seed " (diagnosis.seed) ", " (diagnosis.state) }
    };
    html! {
        (heading(level, &title))
        @if !diagnosis.why.is_empty() { p { (capitalized(&diagnosis.why)) "." } }
        dl { @for finding in &diagnosis.findings { div { dt { (finding.about) } dd { (finding.text) } } } }
        (change(diagnosis))
    }
}

fn change(diagnosis: &Diagnosis) -> Markup {
    html! {
        @if let Some(remedy) = &diagnosis.remedy {
            p {
                "What to change: set " code { (remedy.set.join(" ")) } ", because " (remedy.reason)
                ". Expected: " (remedy.effect) "."
            }
            p { code { (remedy.command) } }
        }
        @if let Some(outlook) = diagnosis.outlook() { p { (outlook) } }
        @if !diagnosis.advice.is_empty() {
            p { "What to change:" }
            ul { @for text in &diagnosis.advice { li { (text) } } }
        }
    }
}

/// The text with a capital first letter.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}
