//! What bounds between groups and on rates do, in words.

use crate::tables::{number, shown_share};
use std::collections::BTreeSet;
use strust_fit::{
    fair::GroupQuantity,
    fair_report::{ColumnRates, Estimate, FairEffect, FairPoint, FairReport, GroupRates},
};
use strust_lab::{
    data::section::{Section, Shown, Table},
    figure::{Figure, Point, Series},
};

/// The quantities of a table besides the bounded ones, if the groups have them.
const SHOWN: [GroupQuantity; 5] = [
    GroupQuantity::Score,
    GroupQuantity::Rate,
    GroupQuantity::TruePositive,
    GroupQuantity::FalsePositive,
    GroupQuantity::Loss,
];

/// Sentences about the bounds and their cost. `is_share`: whether scores are shares, and not numbers in the units of a target.
pub fn lines(report: &FairReport, is_share: bool) -> Vec<String> {
    let line = |effect: &FairEffect| {
        let held_out = effect.held_out.map(|of| format!(", {} on held-out rows", plus_minus(&of)));
        format!(
            "{}: {} on the training rows{}; {} without it",
            effect.text,
            missed(effect),
            held_out.unwrap_or_default(),
            number(effect.free)
        )
    };
    report.effects.iter().map(line).chain([cost(report, is_share)]).collect()
}

/// A value, and whether it is above its bound, as a rate may be by one row.
fn missed(effect: &FairEffect) -> String {
    let too_large =
        if effect.training > effect.bound + 1e-6 { " (above the bound, by at most one row of a group)" } else { "" };
    format!("{}{too_large}", number(effect.training))
}

fn plus_minus(of: &Estimate) -> String {
    format!("{} ± {}", number(of.value), number(0.5 * (of.high - of.low)))
}

/// What the bounds cost.
fn cost(report: &FairReport, is_share: bool) -> String {
    let Some(free) = report.free else { return "the fit without bounds satisfies them: they cost nothing".into() };
    let name = if is_share { "accuracy" } else { "R²" };
    let of = |point: &FairPoint| {
        let score = point.held_out.map_or(point.training, |of| of.value);
        if is_share { shown_share(score) } else { format!("{score:.4}") }
    };
    let rows = if free.held_out.is_some() { "held-out" } else { "training" };
    // A network has not reached the minimum.
    let change = if report.cost < 0.0 { "higher" } else { "lower" };
    format!(
        "cost: {name} {} instead of {} on {rows} rows; without bounds the loss on the training rows would be {:.1} % {change}",
        of(&report.fit),
        of(&free),
        100.0 * report.cost.abs()
    )
}

/// The rates of the groups of a column, with a header, including those of the `bounded` quantities.
pub fn rates(column: &ColumnRates, bounded: &BTreeSet<GroupQuantity>) -> Vec<Vec<String>> {
    let has = |quantity: &&GroupQuantity| {
        column.groups.iter().any(|group| group.quantities.iter().any(|(other, _)| other == *quantity))
    };
    let others = bounded.iter().filter(|quantity| !SHOWN.contains(quantity));
    let shown: Vec<GroupQuantity> = SHOWN.iter().chain(others).filter(has).copied().collect();
    let header = [column.column.clone(), "rows".into()].into_iter().chain(shown.iter().map(|q| q.name().to_string()));
    let row = |group: &GroupRates| {
        let cell = |quantity: &GroupQuantity| {
            let found = group.quantities.iter().find(|(other, _)| other == quantity);
            found.map_or("–".into(), |(_, of)| interval(of))
        };
        [group.group.clone(), group.rows.to_string()].into_iter().chain(shown.iter().map(cell)).collect()
    };
    std::iter::once(header.collect()).chain(column.groups.iter().map(row)).collect()
}

fn interval(of: &Estimate) -> String {
    // One row has no standard error.
    let end = |value: f64| if value.is_nan() { "–".into() } else { number(value) };
    format!("{} ({} to {})", number(of.value), end(of.low), end(of.high))
}

/// The part of the report about the bounds.
pub fn section(report: &FairReport, judged: &str, is_share: bool) -> Section {
    let row = |effect: &FairEffect| {
        let held_out = effect.held_out.map_or("–".into(), |of| interval(&of));
        vec![effect.text.replace('`', ""), missed(effect), number(effect.free), held_out]
    };
    let caption = "Largest differences between two groups, and rates. Held-out rows have 95 % intervals: those of two groups \
                   may differ by chance.";
    let header = "bound | training rows | training rows without bounds | held-out rows";
    let effects = Table::new(caption, header, report.effects.iter().map(row).collect());
    let bounded = report.effects.iter().map(|effect| effect.quantity).collect();
    let by_group = report.columns.iter().map(|column| {
        let mut rows = rates(column, &bounded);
        let header = rows.remove(0);
        let caption = format!("The {judged}s by {}, with 95 % intervals.", column.column);
        Table { header, ..Table::new(caption, "", rows) }
    });
    let tables = std::iter::once(effects).chain(by_group).collect();
    let figures = curve(report, is_share).into_iter().collect();
    let description = "A bound holds on the training rows. On new rows the difference varies, and is a little larger.";
    let findings = vec![cost(report, is_share) + "."];
    Section { findings, figures, tables, ..Section::new("", "What the bounds between groups do", description) }
}

/// The accuracy against the first bound.
fn curve(report: &FairReport, is_share: bool) -> Option<Shown> {
    let name = if is_share { "accuracy" } else { "R²" };
    let (axis, unit) = if is_share { ("accuracy, %", 100.0) } else { ("R²", 1.0) };
    let training = report.curve.iter().map(|point| (point.bound, unit * point.training));
    let training = Series::line("training rows", 0, training);
    let held_out = |point: &FairPoint| {
        let of = point.held_out?;
        Some(Point { x: point.bound, y: unit * of.value, low: unit * of.low, high: unit * of.high })
    };
    let judged: Vec<Point> = report.curve.iter().filter_map(held_out).collect();
    let y = report.fit.held_out.map_or(report.fit.training, |of| of.value);
    let chosen = Series::dots("this model", 2, [(report.fit.bound, unit * y)]);
    let of_judged = (!judged.is_empty()).then(|| Series { name: "held-out rows".into(), color: 1, points: judged });
    let series = [Some(training), of_judged, Some(chosen)].into_iter().flatten().collect();
    let first = report.effects[0].text.replace('`', "");
    let what = first.rsplit_once(" ≤").map_or(&*first, |(what, _)| what);
    let caption = format!(
        "The {name} of fits with other bounds. The last one on the right is the fit without bounds. The band is the 95 % \
         interval of one fit: all fits are measured on the same rows, so the differences between them are more exact."
    );
    let figure = Figure::new(format!("{name} against the bound"), (what, false), (axis, false), series);
    (report.curve.len() > 1).then(|| Shown::new("fairness", caption, figure))
}
