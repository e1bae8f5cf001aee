//! Sections of a report that are not curves over epochs, and their checks.

use super::parts::{heading, table, tag, titled};
use crate::{
    data::{
        section::{Check, Section, Table},
        summary::Summary,
    },
    format::{plain_number, plural},
};
use maud::{Markup, html};

/// A link for every section.
pub(super) fn links(summary: &Summary, run: usize) -> Vec<(String, String)> {
    summary.sections.iter().enumerate().map(|(i, section)| (id(run, i), section.title.clone())).collect()
}

fn id(run: usize, section: usize) -> String {
    format!("run-{}-section-{}", run + 1, section + 1)
}

/// All checks in one table, then each section.
pub(super) fn all(summary: &Summary, run: usize, level: usize) -> Markup {
    let held = summary.checks.iter().filter(|check| check.holds).count();
    let open = match summary.checks.iter().filter(|check| check.is_open()).count() {
        0 => String::new(),
        1 => " 1 is open: its last column gives the reason.".into(),
        open => format!(" {open} are open: their last column gives the reason."),
    };
    let several = summary.sections.iter().filter(|section| !section.checks.is_empty()).count() > 1;
    html! {
        @if !summary.sections.is_empty() {
            section.checks {
                (heading(level, &html! { "What was checked" }))
                p { (held) " of " (plural(summary.checks.len(), "claim")) " hold." (open) }
                (checks(&summary.checks))
            }
            @for (i, section) in summary.sections.iter().enumerate() { (one(section, several, &id(run, i), level)) }
        }
    }
}

/// One section. Its checks are shown only if `several` sections have some: otherwise they are in the table of all checks.
pub(super) fn one(section: &Section, several: bool, id: &str, level: usize) -> Markup {
    html! {
        section id=(id) {
            (heading(level, &html! { (section.title) @if !section.name.is_empty() { " " (tag(&section.name)) } }))
            @if !section.description.is_empty() { p.explain { (section.description) } }
            @for text in &section.findings { p { (text) } }
            div.figures { @for shown in &section.figures { (titled(&shown.figure, &shown.caption)) } }
            @for table in &section.tables { (texts(table)) }
            @if several && !section.checks.is_empty() { (checks(&section.checks)) }
        }
    }
}

fn texts(Table { caption, header, rows }: &Table) -> Markup {
    let cell = |i: usize, text: &String| html! { @if i == 0 { th scope="row" { (text) } } @else { td { (text) } } };
    let head = html! { tr { @for head in header { th scope="col" { (head) } } } };
    let body = html! { @for row in rows { tr { @for (i, text) in row.iter().enumerate() { (cell(i, text)) } } } };
    table("numbers", caption, &html! { (caption) }, &head, &body)
}

fn checks(checks: &[Check]) -> Markup {
    let title = "Claims, measured";
    let head = html! {
        tr {
            @for head in ["claim", "measured", "bound", "verdict"] { th scope="col" { (head) } }
            th.left scope="col" { "why" }
        }
    };
    let body = html! {
        @for check in checks {
            tr {
                th.claim scope="row" { (check.name) }
                td { (plain_number(check.measured)) }
                td { (check.claim.sign()) " " (plain_number(check.bound)) }
                td class=(if check.holds { "yes" } else { "no" }) { (check.verdict()) }
                td.left { (check.why) }
            }
        }
    };
    table("numbers", title, &html! { (title) }, &head, &body)
}
