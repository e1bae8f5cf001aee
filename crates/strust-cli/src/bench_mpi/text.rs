//! The tables of `strust bench mpi`.

use super::{
    measure::{Measured, Sums},
    predict,
    predict::Prediction,
};
use crate::{
    args::Shared,
    scaling::Machines,
    show::{heading, table},
};

/// Seconds with a fitting unit.
pub fn seconds(value: f64) -> String {
    match value {
        v if v < 1e-3 => format!("{:.1} µs", 1e6 * v),
        v if v < 1.0 => format!("{:.1} ms", 1e3 * v),
        v => format!("{v:.2} s"),
    }
}

pub fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}

pub fn all(m: &Measured, machines: &Machines, predictions: &[Prediction], shared: &Shared) -> String {
    let parts = [
        ("Speed on this machine, one thread for each rank", speeds(m)),
        ("What a step of two ranks gives to collectives, counted and by the formula", traffic(m)),
        ("Sums on this machine: α + β·bytes", sums(m)),
        ("The model beside runs on this machine; the delay is added to each collective", checks(m)),
        ("A step of two ranks with the gradient in one sum, and in slices during the evaluation", overlaps(m)),
        ("The model of a cluster: its inputs", predict::inputs(m, machines)),
        ("The model of a cluster, not a measurement: time of a step, part of the ranks that is used", {
            predict::steps(predictions)
        }),
        ("Where the model stops to scale, and what would help", predict::limits(predictions)),
    ];
    parts.map(|(title, text)| format!("{}\n{text}", heading(title, shared))).join("\n")
}

fn speeds(m: &Measured) -> String {
    let mut rows = vec![row(["", "without MPI", "1 rank", "2 ranks", "overhead", "2 ranks over 1", "at best"])];
    for s in &m.speeds {
        let mut cells = vec![s.workload.to_string()];
        cells.extend(s.seconds.map(|t| format!("{:.2} steps/s", 1.0 / t)));
        cells.push(format!("{:.1} %", 100.0 * s.overhead));
        cells.extend([s.speedup, s.best_speedup].map(|ratio| format!("{ratio:.2}×")));
        rows.push(cells);
    }
    table(&rows)
}

fn traffic(m: &Measured) -> String {
    let mut rows = vec![row(["", "collectives", "formula", "numbers", "formula"])];
    for s in &m.speeds {
        let numbers = [s.collectives, s.expected_collectives, s.numbers, s.expected_numbers];
        rows.push([vec![s.workload.to_string()], numbers.map(|v| format!("{v}")).to_vec()].concat());
    }
    table(&rows)
}

fn sums(m: &Measured) -> String {
    let mut rows = vec![row(["bytes", "2 ranks", "4 ranks"])];
    for (i, (bytes, two)) in m.sums[0].times.iter().enumerate() {
        rows.push(vec![format!("{bytes}"), seconds(*two), seconds(m.sums[1].times[i].1)]);
    }
    let fit = |f: fn(&Sums) -> String| m.sums.iter().map(f).collect::<Vec<_>>();
    rows.push([row(["α"]), fit(|s| seconds(s.fitted.latency))].concat());
    rows.push([row(["1/β"]), fit(|s| format!("{:.2} GB/s", 1e-9 / s.fitted.seconds_per_byte))].concat());
    table(&rows)
}

fn overlaps(m: &Measured) -> String {
    let mut rows = vec![row(["", "delay", "one sum", "slices", "gain"])];
    for o in &m.overlaps {
        let gain = format!("{:.0} %", 100.0 * (1.0 - o.slices / o.whole));
        rows.push(row([&o.workload.to_string(), &seconds(o.delay), &seconds(o.whole), &seconds(o.slices), &gain]));
    }
    table(&rows)
}

fn checks(m: &Measured) -> String {
    let mut rows = vec![row(["", "ranks", "delay", "model", "measured", "model/measured"])];
    for c in &m.checks {
        rows.push(vec![
            c.workload.to_string(),
            c.ranks.to_string(),
            seconds(c.delay),
            seconds(c.predicted),
            seconds(c.measured),
            format!("{:.2}", c.predicted / c.measured),
        ]);
    }
    table(&rows)
}
