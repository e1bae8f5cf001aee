//! The tables of `strust bench mpi`.

use super::{
    measure::{RanksMeasured, Sums},
    predict::ScalingPrediction,
};
use crate::bench::{
    BenchBlock, row,
    scaling::{Growth, Link, MOST_RANKS, Machines},
    table,
};
use strust_lab::format::thousands;

/// The ranks of the table.
const SHOWN: [usize; 4] = [1, 64, 1024, MOST_RANKS];

/// Seconds with a fitting unit.
fn seconds(value: f64) -> String {
    match value {
        v if v < 1e-3 => format!("{:.1} µs", 1e6 * v),
        v if v < 1.0 => format!("{:.1} ms", 1e3 * v),
        v => format!("{v:.2} s"),
    }
}

pub fn blocks(m: &RanksMeasured, machines: &Machines, predictions: &[ScalingPrediction]) -> Vec<BenchBlock> {
    let tables = [
        ("Speed on this machine, one thread for each rank", speeds(m)),
        ("What a step of two ranks gives to collectives, counted and by the formula", traffic(m)),
        ("Sums on this machine: α + β·bytes", sums(m)),
        ("The model beside runs on this machine; the delay is added to each collective", checks(m)),
        ("A step of two ranks with the gradient in one sum, and in slices during the evaluation", overlaps(m)),
        ("The model of a cluster: its inputs", inputs(m, machines)),
        ("The model of a cluster, not a measurement: time of a step, part of the ranks that is used", {
            steps(predictions)
        }),
    ];
    let mut blocks: Vec<BenchBlock> = tables.into_iter().map(|(title, rows)| BenchBlock::new(title, rows)).collect();
    let title = "Where the model stops to scale, and what would help".into();
    blocks.push(BenchBlock { title, rows: Vec::new(), notes: limits(predictions) });
    blocks
}

fn speeds(m: &RanksMeasured) -> Vec<Vec<String>> {
    let columns = ["", "without MPI", "1 rank", "2 ranks", "overhead", "2 ranks over 1", "at best"];
    table(columns, &m.speeds, |s| {
        let [without, one, two] = s.seconds.map(|t| format!("{:.2} steps/s", 1.0 / t));
        let [median, best] = [s.speedup, s.best_speedup].map(|ratio| format!("{ratio:.2}×"));
        [s.workload.to_string(), without, one, two, format!("{:.1} %", 100.0 * s.overhead), median, best]
    })
}

fn traffic(m: &RanksMeasured) -> Vec<Vec<String>> {
    table(["", "collectives", "formula", "numbers", "formula"], &m.speeds, |s| {
        let counts = [s.collectives, s.expected_collectives, s.numbers, s.expected_numbers];
        let [collectives, expected, numbers, expected_numbers] = counts.map(|v| format!("{v}"));
        [s.workload.to_string(), collectives, expected, numbers, expected_numbers]
    })
}

fn sums(m: &RanksMeasured) -> Vec<Vec<String>> {
    let mut rows = vec![row(["bytes", "2 ranks", "4 ranks"])];
    for (i, (bytes, two)) in m.sums[0].times.iter().enumerate() {
        rows.push(vec![format!("{bytes}"), seconds(*two), seconds(m.sums[1].times[i].1)]);
    }
    let fit = |f: fn(&Sums) -> String| m.sums.iter().map(f).collect::<Vec<_>>();
    rows.push([row(["α"]), fit(|s| seconds(s.fitted.latency))].concat());
    rows.push([row(["1/β"]), fit(|s| format!("{:.2} GB/s", 1e-9 / s.fitted.seconds_per_byte))].concat());
    rows
}

fn overlaps(m: &RanksMeasured) -> Vec<Vec<String>> {
    table(["", "delay", "one sum", "slices", "gain"], &m.overlaps, |o| {
        let [delay, whole, slices] = [o.delay, o.whole, o.slices].map(seconds);
        [o.workload.to_string(), delay, whole, slices, format!("{:.0} %", 100.0 * (1.0 - o.slices / o.whole))]
    })
}

fn checks(m: &RanksMeasured) -> Vec<Vec<String>> {
    table(["", "ranks", "delay", "model", "measured", "model/measured"], &m.checks, |c| {
        let [delay, model, measured] = [c.delay, c.predicted, c.measured].map(seconds);
        let ratio = format!("{:.2}", c.predicted / c.measured);
        [c.workload.to_string(), c.ranks.to_string(), delay, model, measured, ratio]
    })
}

fn count(ranks: usize) -> String {
    thousands(&ranks.to_string(), ',')
}

fn percent(efficiency: f64) -> String {
    format!("{:.1} %", 100.0 * efficiency)
}

/// The inputs of the model, with their origin.
fn inputs(measured: &RanksMeasured, machines: &Machines) -> Vec<Vec<String>> {
    let rate = |link: &Link| format!("{:.2} GB/s", 1e-9 / link.seconds_per_byte);
    let mut rows = vec![
        row(["within a machine, measured", &seconds(machines.within.latency), &rate(&machines.within)]),
        row(["between machines, assumed", &seconds(machines.between.latency), &rate(&machines.between)]),
        row(["ranks on a machine, assumed", &count(machines.ranks_per_machine), ""]),
    ];
    for (speed, costs) in measured.speeds.iter().zip(&measured.costs) {
        let name = format!("{}, measured", speed.workload);
        let work = format!("{} a term", seconds(costs.per_term));
        let bytes: Vec<String> = costs.sums.iter().map(|bytes| count(*bytes as usize)).collect();
        rows.push(row([&name, &work, &format!("{} a step", seconds(costs.fixed))]));
        rows.push(row(["… its sums, bytes, by the formula", &bytes.join(" + "), ""]));
    }
    rows
}

/// Seconds and efficiency on the ranks of the table.
fn steps(predictions: &[ScalingPrediction]) -> Vec<Vec<String>> {
    let mut rows = vec![[row(["", "scaling"]), SHOWN.map(|ranks| format!("{} ranks", count(ranks))).to_vec()].concat()];
    for p in predictions {
        let kind = match p.scaling {
            Growth::Strong => "strong: the same batch",
            Growth::Weak => "weak: R times the batch",
        };
        let shown = p.steps.iter().filter(|(ranks, ..)| SHOWN.contains(ranks));
        let cells = shown.map(|(_, time, efficiency)| format!("{}, {}", seconds(*time), percent(*efficiency)));
        rows.push([row([&p.workload.to_string(), kind]), cells.collect()].concat());
    }
    rows
}

/// Where each scaling ends, and what would help.
fn limits(predictions: &[ScalingPrediction]) -> String {
    let mut lines = Vec::new();
    for p in predictions {
        let name = format!("{}, {}", p.workload, p.scaling.name());
        lines.push(match p.limit {
            None => format!("{name}: above 50 % up to {} ranks", count(MOST_RANKS)),
            Some((ranks, why)) => format!("{name}: below 50 % from {} ranks: {}", count(ranks), why.text()),
        });
        for (change, efficiency, limit) in &p.remedies {
            let limit = limit.map_or(format!("not up to {}", count(MOST_RANKS)), |at| format!("from {}", count(at)));
            lines.push(format!("  with {change}: {} there, below 50 % {limit}", percent(*efficiency)));
        }
    }
    lines.join("\n") + "\n"
}
