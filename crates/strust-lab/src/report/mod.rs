//! One self-contained page for one or several summaries: figures, tables, tuning and the origin of the numbers.

pub(crate) mod csv;
mod curves;
mod diagnosis;
mod names;
mod parts;
mod sections;
mod tables;
mod tuning;
mod write;

pub use curves::figures;
pub use tuning::at_edge;
pub(crate) use write::in_the_way;
pub use write::{check_place, check_replaceable, write};

use crate::{
    data::{
        section::Section,
        style::{CurveAverage, FigureStyle},
        summary::{MethodSummary, ProblemSummary, Summary},
    },
    figure::stylesheet,
    format::plural,
};
use curves::{explanation, is_named, of_problem, panels};
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};
use names::run_names;
use parts::{heading, pairs, tag};
use std::collections::BTreeSet;

const CSS: &str = include_str!("page.css");
const JS: &str = include_str!("page.js");
/// The page loads nothing, whatever a name or a title may contain.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The generator in the head of every report.
const GENERATOR: &str = concat!("strust ", env!("CARGO_PKG_VERSION"));

/// Whether a page is a report of any version of strust.
fn is_ours(page: &[u8]) -> bool {
    String::from_utf8_lossy(page).contains("<meta name=\"generator\" content=\"strust ")
}

/// The summaries with a style of their figures: methods renamed and in order.
#[must_use]
pub fn arranged(mut summaries: Vec<Summary>, style: &FigureStyle) -> Vec<Summary> {
    let is = |method: &MethodSummary, wanted: &String| method.label == *wanted || method.name == *wanted;
    let place = |method: &MethodSummary| style.order.iter().position(|wanted| is(method, wanted)).unwrap_or(usize::MAX);
    for summary in &mut summaries {
        summary.figures.clone_from(style);
        for methods in summary.problems.iter_mut().map(|problem| &mut problem.methods) {
            methods.sort_by_key(place);
            for method in methods {
                method.label = match style.labels.get(&method.label) {
                    Some(label) => label.clone(),
                    None => renamed(method, style),
                };
            }
        }
    }
    summaries
}

/// The label of a method with a new name: the settings in it stay.
fn renamed(method: &MethodSummary, style: &FigureStyle) -> String {
    let settings = method.label.strip_prefix(method.name.as_str());
    match (style.labels.get(&method.name), settings) {
        (Some(name), Some(settings)) => format!("{name}{settings}"),
        (Some(name), None) => name.clone(),
        (None, _) => method.label.clone(),
    }
}

/// The report of some summaries as an HTML page.
#[must_use]
pub fn html(summaries: &[Summary]) -> String {
    let (title, body) = match summaries {
        [one] => (one.title.clone(), markup! { (contents(&links(one, 0))) (article(one, 0, None)) }),
        many => (format!("Comparison of {}", plural(many.len(), "run")), several(many)),
    };
    let description = if let [one] = summaries { one.description.as_str() } else { "" };
    page(&title, description, &body)
}

/// A page of sections that belong to no run, with facts about their origin at the end.
///
/// ```
/// let page = strust_lab::report::page_of_sections("A fit", "What it is.", &[], &[("version".into(), "1".into())]);
/// assert!(page.contains("<h1>A fit</h1>") && page.contains("<dt>version</dt>"));
/// ```
#[must_use]
pub fn page_of_sections(title: &str, description: &str, sections: &[Section], facts: &[(String, String)]) -> String {
    let body = markup! {
        article {
            @for (i, section) in sections.iter().enumerate() { (sections::one(section, false, &format!("section-{}", i + 1), 2)) }
            footer { dl { @for (name, fact) in facts { div { dt { (name) } dd { (fact) } } } } }
        }
    };
    page(title, description, &body)
}

/// The whole page around its contents.
fn page(title: &str, description: &str, body: &Markup) -> String {
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(GENERATOR);
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(stylesheet())) (PreEscaped(CSS)) }
            }
            body {
                header {
                    h1 { (title) }
                    (lead(description))
                }
                main { (body) }
                script { (PreEscaped(JS)) }
            }
        }
    };
    page.into_string() + "\n"
}

fn lead(text: &str) -> Markup {
    markup! { @if !text.trim().is_empty() { p.lead { (text.trim()) } } }
}

/// A link for every problem of a summary, with its text.
fn links(summary: &Summary, run: usize) -> Vec<(String, String)> {
    let problems = summary.with_curves().map(|(i, problem)| (problem_id(run, i), problem.title.clone()));
    problems.chain(sections::links(summary, run)).collect()
}

fn problem_id(run: usize, problem: usize) -> String {
    format!("run-{}-problem-{}", run + 1, problem + 1)
}

/// The table of contents; empty for a single entry.
fn contents(links: &[(String, String)]) -> Markup {
    markup! {
        @if links.len() > 1 {
            nav aria-label="Contents" {
                ul { @for (id, text) in links { li { a href={ "#" (id) } { (text) } } } }
            }
        }
    }
}

/// Several runs: first their common problems in shared figures, then each run.
fn several(summaries: &[Summary]) -> Markup {
    let names = run_names(summaries);
    let groups = shared_problems(summaries);
    let average = summaries.first().map_or_else(CurveAverage::default, |summary| summary.figures.average);
    let mut links: Vec<(String, String)> = Vec::new();
    if !groups.is_empty() {
        links.push(("together".into(), "All runs together".into()));
    }
    links.extend(names.iter().enumerate().map(|(i, name)| (format!("run-{}", i + 1), name.clone())));
    markup! {
        (contents(&links))
        @if !groups.is_empty() {
            section id="together" {
                h2 { "All runs together" }
                @for (i, group) in groups.iter().enumerate() {
                    (problem(group, average, &format!("together-{}", i + 1), 3))
                }
            }
        }
        @for (i, (summary, name)) in summaries.iter().zip(&names).enumerate() { (article(summary, i, Some(name))) }
    }
}

/// A problem of a run, with the name of the run.
type Named<'a> = (&'a ProblemSummary, &'a str);

/// The problems that several runs share, by name, parameters and metrics.
fn common<'a>(summaries: &'a [Summary], names: &'a [String]) -> Vec<Vec<Named<'a>>> {
    let keys = |problem: &ProblemSummary| problem.metrics.iter().map(|metric| metric.key.clone()).collect::<Vec<_>>();
    let mut groups: Vec<Vec<Named>> = vec![];
    for (summary, name) in summaries.iter().zip(names) {
        for (_, problem) in summary.with_curves() {
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
    groups
}

/// A problem with the methods of all runs, each labeled with its run.
fn merged(group: &[Named]) -> ProblemSummary {
    let labeled = |method: &MethodSummary, name: &str| MethodSummary {
        label: format!("{} ({name})", method.label),
        ..method.clone()
    };
    let methods = group.iter().flat_map(|(problem, name)| problem.methods.iter().map(|method| labeled(method, name)));
    ProblemSummary { methods: methods.collect(), ..group[0].0.clone() }
}

/// The problems that several runs share, with the methods of all runs.
fn shared_problems(summaries: &[Summary]) -> Vec<ProblemSummary> {
    common(summaries, &run_names(summaries)).iter().map(|group| merged(group)).collect()
}

/// Everything about one summary. With a name, it is one of several and has a heading.
fn article(summary: &Summary, run: usize, name: Option<&String>) -> Markup {
    let level = if name.is_some() { 3 } else { 2 };
    markup! {
        article id={ "run-" (run + 1) } {
            @if let Some(name) = name {
                h2 { (summary.title) @if summary.title != *name { " " (tag(name)) } }
                (lead(&summary.description))
            }
            @for (i, one) in summary.with_curves() {
                (problem(one, summary.figures.average, &problem_id(run, i), level))
            }
            (sections::all(summary, run, level))
            (diagnosis::section(summary, level))
            (tuning::section(summary, level))
            (provenance(summary))
        }
    }
}

fn problem(problem: &ProblemSummary, average: CurveAverage, id: &str, level: usize) -> Markup {
    let below = level + 1;
    let curves = of_problem(problem);
    markup! {
        section id=(id) {
            (heading(level, &markup! { (problem.title) @if !is_named(problem) { " " (tag(&problem.name)) } }))
            p.parameters { (pairs(&problem.parameters)) }
            p.explain { (explanation(&curves, average)) }
            (panels(&problem.title, &problem.metrics, &curves, average, &format!("{id}-axis"), below))
            (heading(below, &markup! { "Final values" }))
            (tables::finals(problem))
            (tables::tolerances(problem, below))
            (tables::failures(problem, below))
            (heading(below, &markup! { "Settings" }))
            (tables::settings(problem))
        }
    }
}

/// The origin of the numbers.
fn provenance(summary: &Summary) -> Markup {
    let machine = &summary.machine;
    let methods = || summary.problems.iter().flat_map(|problem| &problem.methods);
    let finished = methods().flat_map(|method| method.seeds.iter().copied());
    let failed = methods().flat_map(|method| method.failures.iter().map(|failure| failure.seed));
    let seeds: Vec<String> = finished.chain(failed).collect::<BTreeSet<_>>().iter().map(u64::to_string).collect();
    let fact = |name: &str, fact: &str| markup! { div { dt { (name) } dd { (fact) } } };
    markup! {
        footer {
            dl {
                (fact("machine", &format!("{}, {}", machine.processor, machine.platform)))
                (fact("cores", &format!("{}, {} in parallel", machine.cores, plural(machine.jobs as usize, "job"))))
                @if let Some(device) = &machine.device { (fact("device", device)) }
                (fact("version", &format!("strust {}", summary.version)))
                div { dt { "command" } dd { code { (summary.command) } } }
                @if summary.with_curves().next().is_some() {
                    (fact("epochs", &summary.epochs.to_string()))
                    (fact("batch", &summary.batch.to_string()))
                    (fact("seeds", &if seeds.is_empty() { "none".into() } else { seeds.join(", ") }))
                }
            }
        }
    }
}
