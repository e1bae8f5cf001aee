//! The figures of a report: every metric over every measure of cost, and the trust region.

use super::{
    parts::{framed, heading},
    tuning::dependence,
};
use crate::{
    data::{
        record::TRUST_REGION,
        style::CurveAverage,
        summary::{CurvePoint, MethodSummary, Metric, ProblemSummary, Spread, Summary, higher_is_better},
    },
    figure::{Figure, Point, Series},
    format::figure_name,
};
use maud::{Markup, html};
use std::collections::BTreeSet;

/// A method in a figure; its position in the list is its color.
pub(super) struct Curve<'a> {
    pub label: String,
    pub method: &'a MethodSummary,
}

/// The quantity of the horizontal axis.
#[derive(Clone, Copy)]
struct Against {
    /// For file names and classes.
    key: &'static str,
    label: &'static str,
    of: fn(&CurvePoint) -> f64,
}

const EPOCHS: Against = Against { key: "epoch", label: "epoch", of: |at| at.epoch as f64 };
const SECONDS: Against = Against { key: "seconds", label: "seconds", of: |at| at.seconds.median };
const GRADIENTS: Against =
    Against { key: "gradients", label: "gradient evaluations", of: |at| at.evaluations.gradients };
const PASSES: Against =
    Against { key: "passes", label: "forward and backward passes", of: |at| at.evaluations.passes() };

/// Networks count passes; other objectives count gradients.
fn axes(curves: &[Curve]) -> [Against; 3] {
    let network = |at: &CurvePoint| at.metrics.contains_key("forwards");
    let passes = curves.iter().filter_map(|curve| curve.method.last.as_ref()).any(network);
    [EPOCHS, SECONDS, if passes { PASSES } else { GRADIENTS }]
}

/// All figures of a summary, each with a name for its file: `problem-metric-axis`.
#[must_use]
pub fn figures(summary: &Summary) -> Vec<(String, Figure)> {
    let mut all = vec![];
    for problem in &summary.problems {
        let title =
            if is_named(problem) { problem.title.clone() } else { format!("{}: {}", problem.name, problem.title) };
        let curves = of_problem(problem);
        for metric in &problem.metrics {
            for against in axes(&curves) {
                let stem = format!("{}-{}-{}", problem.name, metric.key, against.key);
                all.push((stem, figure(&title, metric, against, &curves, summary.figures.average)));
            }
        }
        for (key, figure) in trust_region(&title, &curves, summary.figures.average) {
            all.push((format!("{}-{key}-epoch", problem.name), figure));
        }
        all.extend(dependence(summary, problem).map(|figure| (format!("{}-sensitivity", problem.name), figure)));
    }
    let sections = summary.sections.iter().flat_map(|section| &section.figures);
    all.extend(sections.map(|shown| (shown.stem.clone(), shown.figure.clone())));
    let mut taken = BTreeSet::new();
    for (stem, _) in &mut all {
        *stem = distinct(figure_name(stem), &taken);
        taken.insert(stem.clone());
    }
    all
}

/// The name, numbered if it is already used.
fn distinct(name: String, taken: &BTreeSet<String>) -> String {
    let numbered = (2_usize..).map(|copy| format!("{name}-{copy}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(name)
}

/// Whether the title of a problem starts with its name, as it does by default.
pub(super) fn is_named(problem: &ProblemSummary) -> bool {
    problem.title.starts_with(&problem.name)
}

/// The methods of a problem, in order.
pub(super) fn of_problem(problem: &ProblemSummary) -> Vec<Curve<'_>> {
    problem.methods.iter().map(|method| Curve { label: method.label.clone(), method }).collect()
}

/// The median with both quartiles, or the mean with one standard deviation to both sides. The band of a share stays
/// within [0, 1].
fn point(x: f64, spread: &Spread, average: CurveAverage, share: bool) -> Point {
    let Spread { mean, std, median, quartiles } = *spread;
    match (average, quartiles) {
        (CurveAverage::Median, Some((low, high))) => Point { x, y: median, low, high },
        _ if share => Point { x, y: mean, low: (mean - std).max(0.0), high: (mean + std).min(1.0) },
        _ => Point { x, y: mean, low: mean - std, high: mean + std },
    }
}

/// What lines and bands show.
pub(super) fn explanation(curves: &[Curve], average: CurveAverage) -> &'static str {
    let last =
        |curve: &Curve| curve.method.last.as_ref().is_none_or(|at| at.metrics.values().all(|s| s.quartiles.is_some()));
    if average == CurveAverage::Median && curves.iter().all(last) {
        "Lines are medians over seeds; bands reach from the lower to the upper quartile. Click a name in a legend to hide \
         its line."
    } else {
        "Lines are means over seeds; bands reach one standard deviation to both sides. On a logarithmic axis, the faint \
         part of a band goes down to the mean less one deviation, or to the bottom if that is not positive."
    }
}

/// At most so many series of a figure have a name and a color.
const MOST_NAMED: usize = 12;

/// With too many series, only those with the best last values keep their names and colors.
fn fold(mut series: Vec<Series>, metric: &str) -> Vec<Series> {
    if series.len() <= MOST_NAMED {
        return series;
    }
    let last = |series: &Series| {
        let value = series.points.last().map_or(f64::NAN, |point| point.y);
        let cost = if higher_is_better(metric) { -value } else { value };
        if cost.is_nan() { f64::INFINITY } else { cost }
    };
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by(|&a, &b| last(&series[a]).total_cmp(&last(&series[b])));
    for &worse in &order[MOST_NAMED..] {
        series[worse].color = Series::OTHERS;
    }
    series
}

fn figure(title: &str, metric: &Metric, against: Against, curves: &[Curve], average: CurveAverage) -> Figure {
    let share = higher_is_better(&metric.key);
    let series = curves.iter().enumerate().map(|(color, curve)| {
        let points = curve.method.curve.iter();
        let points =
            points.filter_map(|at| Some(point((against.of)(at), at.metrics.get(&metric.key)?, average, share)));
        Series { name: curve.label.clone(), color, points: points.collect() }
    });
    let series = fold(series.collect(), &metric.key);
    Figure::new(title, (against.label, false), (&metric.label, metric.log), series)
}

/// The trust region of the methods that have one, in the same colors as in the other figures.
fn trust_region(title: &str, curves: &[Curve], average: CurveAverage) -> Vec<(&'static str, Figure)> {
    let of = |&(key, label, log): &(&'static str, &str, bool)| {
        let series = curves.iter().enumerate().filter_map(|(color, Curve { label, method })| {
            let spreads = method.trust_region.get(key)?;
            // There is no entry for the start: the last entry belongs to the last epoch.
            let first = method.curve.len().saturating_sub(spreads.len());
            let epochs = method.curve.iter().skip(first).map(|at| at.epoch as f64);
            let points = epochs.zip(spreads).map(|(epoch, spread)| point(epoch, spread, average, key == "acceptance"));
            Some(Series { name: label.clone(), color, points: points.collect() })
        });
        let series = fold(series.collect(), key);
        (!series.is_empty()).then(|| (key, Figure::new(title, ("epoch", false), (label, log), series)))
    };
    TRUST_REGION.iter().filter_map(of).collect()
}

/// The figures of some methods in a page: all metrics in a row, one panel per horizontal axis, and buttons to choose the
/// panel. It works without scripts: a checked button shows the panel after it. `id` is unique in the page; `level` is the
/// level of the headings.
pub(super) fn panels(
    title: &str,
    metrics: &[Metric],
    curves: &[Curve],
    average: CurveAverage,
    id: &str,
    level: usize,
) -> Markup {
    let region = trust_region(title, curves, average);
    html! {
        @if !metrics.is_empty() {
            div.curves role="group" aria-label="Curves" {
                span.axis { "Against" }
                @for (i, against) in axes(curves).into_iter().enumerate() { (button(against, i == 0, id)) }
                @for against in axes(curves) {
                    div class={ "panel at-" (against.key) } {
                        (panel_title(level, against.label))
                        div.figures {
                            @for metric in metrics { (framed(&figure(title, metric, against, curves, average))) }
                        }
                    }
                }
            }
        }
        @if !region.is_empty() {
            (heading(level, &html! { "The trust region" }))
            div.figures { @for (_, figure) in &region { (framed(figure)) } }
        }
    }
}

fn button(against: Against, checked: bool, id: &str) -> Markup {
    let Against { key, label, .. } = against;
    html! {
        input type="radio" name=(id) id={ (id) "-" (key) } class={ "to-" (key) } checked[checked];
        label for={ (id) "-" (key) } { (label) }
    }
}

fn panel_title(level: usize, label: &str) -> Markup {
    html! {
        @if level == 3 { h3.panel-title { "Against " (label) } } @else { h4.panel-title { "Against " (label) } }
    }
}
