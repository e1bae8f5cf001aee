//! Sections of a report that are no curves over epochs, and the checks they make.

use super::curves::titled;
use super::format::{plain_number, plural};
use super::tables::boxed;
use crate::figure::escape;
use crate::section::{Check, Section, Table};
use crate::summary::Summary;

/// A link for every section.
pub(super) fn links(summary: &Summary, run: usize) -> Vec<(String, String)> {
    summary.sections.iter().enumerate().map(|(i, section)| (id(run, i), section.title.clone())).collect()
}

fn id(run: usize, section: usize) -> String {
    format!("run-{}-section-{}", run + 1, section + 1)
}

/// All checks in one table, then section by section.
pub(super) fn all(summary: &Summary, run: usize, level: usize) -> String {
    if summary.sections.is_empty() {
        return String::new();
    }
    let held = summary.checks.iter().filter(|check| check.holds).count();
    let open = match summary.checks.iter().filter(|check| check.is_open()).count() {
        0 => String::new(),
        1 => " 1 is open: its last column says why.".into(),
        open => format!(" {open} are open: their last column says why."),
    };
    let overview = format!(
        "<section class=\"checks\">\n<h{level}>What was checked</h{level}>\n<p>{held} of {} hold.{open}</p>\n{}</section>\n",
        plural(summary.checks.len(), "claim"),
        checks(&summary.checks)
    );
    let sections = summary.sections.iter().enumerate().map(|(i, section)| one(section, &id(run, i), level));
    overview + &sections.collect::<String>()
}

fn one(section: &Section, id: &str, level: usize) -> String {
    let figures: String = section.figures.iter().map(|shown| titled(&shown.figure, &shown.caption)).collect();
    let findings: String = section.findings.iter().map(|text| format!("<p>{}</p>\n", escape(text))).collect();
    format!(
        "<section id=\"{id}\">\n<h{level}>{} <code class=\"tag\">{}</code></h{level}>\n<p class=\"explain\">{}</p>\n{findings}\
         <div class=\"figures\">\n{figures}</div>\n{}{}</section>\n",
        escape(&section.title),
        escape(&section.name),
        escape(&section.description),
        section.tables.iter().map(table).collect::<String>(),
        checks(&section.checks),
    )
}

fn table(table: &Table) -> String {
    let heads: String = table.header.iter().map(|head| format!("<th scope=\"col\">{}</th>", escape(head))).collect();
    let row = |row: &Vec<String>| {
        let cell = |(i, cell): (usize, &String)| match i {
            0 => format!("<th scope=\"row\">{}</th>", escape(cell)),
            _ => format!("<td>{}</td>", escape(cell)),
        };
        format!("<tr>{}</tr>\n", row.iter().enumerate().map(cell).collect::<String>())
    };
    let rows: String = table.rows.iter().map(row).collect();
    let caption = escape(&table.caption);
    let html = format!(
        "<table class=\"numbers\">\n<caption><span>{caption}</span></caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
    );
    boxed(&html, &caption)
}

fn checks(checks: &[Check]) -> String {
    let row = |check: &Check| {
        let (class, verdict) = (if check.holds { "yes" } else { "no" }, check.verdict());
        format!(
            "<tr><th scope=\"row\" class=\"claim\">{}</th><td>{}</td><td>{} {}</td><td class=\"{class}\">{verdict}</td><td class=\"left\">{}</td></tr>\n",
            escape(&check.name),
            plain_number(check.measured),
            check.claim.sign(),
            plain_number(check.bound),
            escape(&check.why)
        )
    };
    let heads = ["measured", "bound", "verdict"].map(|head| format!("<th scope=\"col\">{head}</th>")).concat();
    let html = format!(
        "<table class=\"numbers\">\n<caption><span>Claims, measured</span></caption>\n<thead><tr><th scope=\"col\">claim</th>{heads}\
         <th scope=\"col\" class=\"left\">why</th></tr></thead>\n<tbody>\n{}</tbody>\n</table>\n",
        checks.iter().map(row).collect::<String>()
    );
    boxed(&html, "Claims, measured")
}
