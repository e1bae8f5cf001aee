//! Sections of a report that are not curves over epochs, and their checks.

use super::parts::{heading, table, tag, titled};
use crate::{
    data::{
        section::{Check, Section, Table, TableBar},
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
            div.tables { @for table in &section.tables { (texts(table)) } }
            @if several && !section.checks.is_empty() { (checks(&section.checks)) }
        }
    }
}

fn texts(Table { caption, header, rows, bars }: &Table) -> Markup {
    let (low, high) = bars
        .iter()
        .fold((0.0_f64, 0.0_f64), |(low, high), bar| (low.min(bar.from).min(bar.to), high.max(bar.from).max(bar.to)));
    let head = html! {
        tr {
            @for (i, head) in header.iter().enumerate() {
                @if i == 1 && !bars.is_empty() { td {} }
                th scope="col" { (head) }
            }
        }
    };
    let body = html! {
        @for (k, row) in rows.iter().enumerate() {
            tr {
                @for (i, text) in row.iter().enumerate() {
                    @if i == 0 { th scope="row" { (text) } } @else { td { (text) } }
                    @if let (0, Some(drawn)) = (i, bars.get(k)) { td.bar { (bar(drawn, low, high)) } }
                }
            }
        }
    };
    table("numbers", caption, &html! { (caption) }, &head, &body)
}

/// A bar between the ends of the scale of its table, with a line at 0. Screen readers ignore it, because the cells have its
/// numbers.
fn bar(TableBar { from, to, at }: &TableBar, low: f64, high: f64) -> Markup {
    // Room for half of a point at both ends.
    let place = |value: f64| 4.0 + 136.0 * (value - low) / (high - low).max(f64::MIN_POSITIVE);
    let (start, end) = (place(from.min(*to)), place(from.max(*to)));
    let (height, y) = if at.is_some() { (2, 7) } else { (10, 3) };
    html! {
        svg.bar viewBox="0 0 144 16" aria-hidden="true" {
            line.zero x1=(tenths(place(0.0))) x2=(tenths(place(0.0))) y1="0" y2="16" {}
            rect x=(tenths(start)) y=(y) width=(tenths(end - start)) height=(height) {}
            @if let Some(at) = at { circle cx=(tenths(place(*at))) cy="8" r="3.5" {} }
        }
    }
}

fn tenths(pixels: f64) -> String {
    format!("{pixels:.1}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_share_a_scale_that_contains_zero() {
        let bar = |from: f64, to: f64, at: Option<f64>| TableBar { from, to, at };
        let rows = ["a", "b"].map(|name| vec![name.to_string(), "1".into()]).to_vec();
        let table = Table::new("Bars", "name | number", rows);
        let shown = texts(&Table { bars: vec![bar(0.0, 3.0, None), bar(-1.0, 1.0, Some(0.0))], ..table }).into_string();
        // From −1 to 3 are 136 pixels.
        assert!(shown.contains("<rect x=\"38.0\" y=\"3\" width=\"102.0\" height=\"10\">"), "{shown}");
        assert!(shown.contains("<rect x=\"4.0\" y=\"7\" width=\"68.0\" height=\"2\">"), "{shown}");
        assert!(shown.contains("<circle cx=\"38.0\" cy=\"8\" r=\"3.5\">"), "{shown}");
        assert_eq!(shown.matches("<td").count(), 5, "one is the empty head of the bars");
    }
}
