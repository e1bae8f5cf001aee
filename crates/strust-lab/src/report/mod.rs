//! One self-contained page for one or several summaries: figures, tables, tuning, and where the numbers come from.

#![allow(
    clippy::format_collect,
    clippy::format_push_string,
    reason = "text is built once a report; markup reads best as a format string"
)]

mod curves;
mod diagnosis;
mod format;
mod sections;
mod tables;
mod tuning;

use crate::figure::{escape, stylesheet};
use crate::summary::{ProblemSummary, Summary};
pub use curves::figures;
use curves::{Curve, of_problem, panels};
use format::pairs;
pub use format::plain_number;
pub(crate) use format::plural;
use std::collections::BTreeSet;

const CSS: &str = include_str!("page.css");
const JS: &str = include_str!("page.js");
/// Nothing is loaded from anywhere, whatever a name or a title may contain.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// In the head of every report.
const GENERATOR: &str = concat!("strust ", env!("CARGO_PKG_VERSION"));

/// Whether a page is a report that this program, in whatever version, has written.
pub(crate) fn is_ours(page: &[u8]) -> bool {
    String::from_utf8_lossy(page).contains("<meta name=\"generator\" content=\"strust ")
}

/// The report of some summaries as an HTML page.
#[must_use]
pub fn html(summaries: &[Summary]) -> String {
    let (title, body) = match summaries {
        [one] => (one.title.clone(), format!("{}{}", contents(&links(one, 0)), article(one, 0, None))),
        many => (format!("Comparison of {}", plural(many.len(), "run")), several(many)),
    };
    let title = escape(&title);
    let lead = if let [one] = summaries { paragraph(&one.description) } else { String::new() };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"{GENERATOR}\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{}{CSS}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n{lead}</header>\n<main>\n{body}</main>\n\
         <script>\n{JS}</script>\n</body>\n</html>\n",
        stylesheet(),
    )
}

fn paragraph(text: &str) -> String {
    if text.trim().is_empty() { String::new() } else { format!("<p class=\"lead\">{}</p>\n", escape(text.trim())) }
}

/// A link for every problem of a summary, with its text.
fn links(summary: &Summary, run: usize) -> Vec<(String, String)> {
    let problems = summary.problems.iter().enumerate();
    let problems = problems.map(|(i, problem)| (problem_id(run, i), problem.title.clone()));
    problems.chain(sections::links(summary, run)).collect()
}

fn problem_id(run: usize, problem: usize) -> String {
    format!("run-{}-problem-{}", run + 1, problem + 1)
}

/// The table of contents; a single entry needs none.
fn contents(links: &[(String, String)]) -> String {
    if links.len() < 2 {
        return String::new();
    }
    let item = |(id, text): &(String, String)| format!("<li><a href=\"#{id}\">{}</a></li>\n", escape(text));
    format!("<nav aria-label=\"Contents\">\n<ul>\n{}</ul>\n</nav>\n", links.iter().map(item).collect::<String>())
}

/// Several runs: first what they have in common in one figure, then one after the other.
fn several(summaries: &[Summary]) -> String {
    let names = run_names(summaries);
    let common = comparisons(summaries, &names);
    let mut links: Vec<_> =
        if common.is_empty() { vec![] } else { vec![("together".into(), "All runs together".into())] };
    links.extend(names.iter().enumerate().map(|(i, name)| (format!("run-{}", i + 1), name.clone())));
    let articles = summaries.iter().zip(&names).enumerate().map(|(i, (summary, name))| article(summary, i, Some(name)));
    format!("{}{common}{}", contents(&links), articles.collect::<String>())
}

/// The names of the experiments, numbered where the same experiment was run more than once.
fn run_names(summaries: &[Summary]) -> Vec<String> {
    let same =
        |summary: &Summary, of: &[Summary]| of.iter().filter(|other| other.experiment == summary.experiment).count();
    let name = |(i, summary): (usize, &Summary)| match same(summary, summaries) {
        1 => summary.experiment.clone(),
        _ => format!("{}, run {}", summary.experiment, same(summary, &summaries[..=i])),
    };
    summaries.iter().enumerate().map(name).collect()
}

/// A problem of a run, with the name of the run.
type Named<'a> = (&'a ProblemSummary, &'a str);

/// Problems that several runs share, by name, parameters and metrics, with the methods of all of them in one figure.
fn comparisons(summaries: &[Summary], names: &[String]) -> String {
    let keys = |problem: &ProblemSummary| problem.metrics.iter().map(|metric| metric.key.clone()).collect::<Vec<_>>();
    let mut groups: Vec<Vec<Named>> = vec![];
    for (summary, name) in summaries.iter().zip(names) {
        for problem in &summary.problems {
            let same = |(first, _): &Named| {
                first.name == problem.name && first.parameters == problem.parameters && keys(first) == keys(problem)
            };
            match groups.iter_mut().find(|group| group.iter().all(same)) {
                Some(group) => group.push((problem, name)),
                None => groups.push(vec![(problem, name)]),
            }
        }
    }
    groups.retain(|group| group.len() > 1);
    if groups.is_empty() {
        return String::new();
    }
    let sections: String =
        groups.iter().enumerate().map(|(i, group)| together(group, &format!("together-{}", i + 1))).collect();
    format!("<section id=\"together\">\n<h2>All runs together</h2>\n{sections}</section>\n")
}

/// The methods of all runs of a problem, each labeled with its run.
fn together(group: &[Named], id: &str) -> String {
    let Some((first, _)) = group.first() else { return String::new() };
    let mut curves = vec![];
    for (problem, name) in group {
        curves
            .extend(problem.methods.iter().map(|method| Curve { label: format!("{} ({name})", method.label), method }));
    }
    let figures = panels(&first.title, &first.metrics, &curves, id, 4);
    format!("<section>\n<h3>{} {}</h3>\n{EXPLANATION}{figures}</section>\n", escape(&first.title), tag(&first.name))
}

const EXPLANATION: &str = "<p class=\"explain\">Lines are means over seeds; bands reach one standard deviation to both sides. \
    On a logarithmic axis, the faint part of a band goes down to the mean less one deviation, or to the bottom if that is not positive.</p>\n";

/// A name as it stands in files, beside its title.
fn tag(name: &str) -> String {
    format!("<code class=\"tag\">{}</code>", escape(name))
}

/// Everything about one summary. With a name it is one of several and gets a heading of its own.
fn article(summary: &Summary, run: usize, name: Option<&String>) -> String {
    let level = if name.is_some() { 3 } else { 2 };
    let head = name.map_or(String::new(), |name| {
        format!("<h2>{} {}</h2>\n{}", escape(&summary.title), tag(name), paragraph(&summary.description))
    });
    let problems = summary.problems.iter().enumerate().map(|(i, one)| problem(one, &problem_id(run, i), level));
    format!(
        "<article id=\"run-{}\">\n{head}{}{}{}{}{}</article>\n",
        run + 1,
        problems.collect::<String>(),
        sections::all(summary, run, level),
        diagnosis::section(summary, level),
        tuning::section(summary, level),
        provenance(summary)
    )
}

fn problem(problem: &ProblemSummary, id: &str, level: usize) -> String {
    let below = level + 1;
    format!(
        "<section id=\"{id}\">\n<h{level}>{} {}</h{level}>\n<p class=\"parameters\">{}</p>\n{EXPLANATION}{}\
         <h{below}>Final values</h{below}>\n{}{}<h{below}>Settings</h{below}>\n{}</section>\n",
        escape(&problem.title),
        tag(&problem.name),
        pairs(&problem.parameters),
        panels(&problem.title, &problem.metrics, &of_problem(problem), &format!("{id}-axis"), below),
        tables::finals(problem),
        tables::failures(problem, below),
        tables::settings(problem),
    )
}

/// Where the numbers come from.
fn provenance(summary: &Summary) -> String {
    let machine = &summary.machine;
    let methods = || summary.problems.iter().flat_map(|problem| &problem.methods);
    let finished = methods().flat_map(|method| method.seeds.iter().copied());
    let failed = methods().flat_map(|method| method.failures.iter().map(|failure| failure.seed));
    let seeds: Vec<String> = finished.chain(failed).collect::<BTreeSet<_>>().iter().map(u64::to_string).collect();
    let mut facts = vec![
        ("machine", format!("{}, {}", escape(&machine.processor), escape(&machine.platform))),
        ("cores", format!("{}, {} side by side", machine.cores, plural(machine.jobs as usize, "job"))),
        ("version", format!("strust {}", escape(&summary.version))),
        ("command", format!("<code>{}</code>", escape(&summary.command))),
    ];
    if !summary.problems.is_empty() {
        facts.extend([
            ("epochs", summary.epochs.to_string()),
            ("batch", summary.batch.to_string()),
            ("seeds", if seeds.is_empty() { "none".into() } else { seeds.join(", ") }),
        ]);
    }
    if let Some(device) = &machine.device {
        facts.insert(2, ("device", escape(device)));
    }
    let facts: String =
        facts.iter().map(|(name, fact)| format!("<div><dt>{name}</dt><dd>{fact}</dd></div>\n")).collect();
    format!("<footer>\n<dl>\n{facts}</dl>\n</footer>\n")
}
