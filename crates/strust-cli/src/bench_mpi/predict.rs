//! The model of `scaling.rs` with what was measured here: tables, the limit, what would help, and curves.

use super::{
    measure::Measured,
    text::{row, seconds},
    worker::Workload,
};
use crate::{
    CommandFailure,
    args::Cluster,
    scaling::{
        Bottleneck, Link, MOST_RANKS, Machines, Scaling, StepCosts, efficiency, limit, powers_of_two, remedies, step,
    },
    show::table,
};
use serde::Serialize;
use std::path::Path;
use strust_lab::{
    figure::{Axis, Figure, Point, Series, Theme},
    format::thousands,
    io::atomic,
};

/// Without flags: 100 Gbit/s and 2 µs, as the networks of today's clusters have, and machines of 64 cores.
const LATENCY: f64 = 2e-6;
const BANDWIDTH: f64 = 12.5e9;
const RANKS_PER_MACHINE: u64 = 64;

/// The ranks of the table.
const SHOWN: [usize; 4] = [1, 64, 1024, MOST_RANKS];

/// The cluster that the flags describe; its machines add as fast as this one.
pub fn machines(cluster: &Cluster, measured: &Measured) -> Machines {
    let ranks_per_machine = cluster.ranks_per_node.unwrap_or(RANKS_PER_MACHINE) as usize;
    let between = Link::new(cluster.latency.unwrap_or(LATENCY), cluster.bandwidth.unwrap_or(BANDWIDTH));
    Machines { within: measured.sums[0].fitted, between, ranks_per_machine, cores: ranks_per_machine, delay: 0.0 }
}

/// What the model predicts of a workload.
#[derive(Serialize)]
pub struct Prediction {
    pub workload: Workload,
    pub scaling: Scaling,
    /// Ranks, seconds of a step, efficiency.
    pub steps: Vec<(usize, f64, f64)>,
    /// The first power of two with an efficiency below 1/2, and why.
    pub limit: Option<(usize, Bottleneck)>,
    /// Changes, the efficiency at the limit with each, and the new limit.
    pub remedies: Vec<(&'static str, f64, Option<usize>)>,
}

pub fn predict(measured: &Measured, machines: &Machines) -> Vec<Prediction> {
    let workloads = measured.speeds.iter().map(|speed| speed.workload).zip(&measured.costs);
    let each = workloads.flat_map(|(workload, costs)| {
        [Scaling::Strong, Scaling::Weak].map(|scaling| prediction(workload, costs, machines, scaling))
    });
    each.collect()
}

fn prediction(workload: Workload, costs: &StepCosts, machines: &Machines, scaling: Scaling) -> Prediction {
    let at =
        |ranks| (ranks, step(costs, machines, scaling, ranks).total(), efficiency(costs, machines, scaling, ranks));
    let limit_of = |costs: &StepCosts| limit(costs, machines, scaling);
    let found = limit_of(costs);
    let helped = |(ranks, _)| {
        let change = |(name, changed): (&'static str, StepCosts)| {
            (name, efficiency(&changed, machines, scaling, ranks), limit_of(&changed).map(|(ranks, _)| ranks))
        };
        remedies(costs).map(change).to_vec()
    };
    Prediction {
        workload,
        scaling,
        steps: powers_of_two().map(at).collect(),
        limit: found,
        remedies: found.map_or(Vec::new(), helped),
    }
}

fn count(ranks: usize) -> String {
    thousands(&ranks.to_string(), ',')
}

fn percent(efficiency: f64) -> String {
    format!("{:.1} %", 100.0 * efficiency)
}

/// The inputs of the model, with their origin.
pub fn inputs(measured: &Measured, machines: &Machines) -> String {
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
    table(&rows)
}

/// Seconds and efficiency on the ranks of the table.
pub fn steps(predictions: &[Prediction]) -> String {
    let mut rows = vec![[row(["", "scaling"]), SHOWN.map(|ranks| format!("{} ranks", count(ranks))).to_vec()].concat()];
    for p in predictions {
        let kind = match p.scaling {
            Scaling::Strong => "strong: the same batch",
            Scaling::Weak => "weak: R times the batch",
        };
        let shown = p.steps.iter().filter(|(ranks, ..)| SHOWN.contains(ranks));
        let cells = shown.map(|(_, time, efficiency)| format!("{}, {}", seconds(*time), percent(*efficiency)));
        rows.push([row([&p.workload.to_string(), kind]), cells.collect()].concat());
    }
    table(&rows)
}

/// Where each scaling ends, and what would help.
pub fn limits(predictions: &[Prediction]) -> String {
    let mut text = String::new();
    for p in predictions {
        let kind = if p.scaling == Scaling::Strong { "strong" } else { "weak" };
        let Some((ranks, why)) = p.limit else {
            text += &format!("{}, {kind}: above 50 % up to {} ranks\n", p.workload, count(MOST_RANKS));
            continue;
        };
        text += &format!("{}, {kind}: below 50 % from {} ranks: {}\n", p.workload, count(ranks), why.text());
        for (name, efficiency, limit) in &p.remedies {
            let limit =
                limit.map_or(format!("not up to {}", count(MOST_RANKS)), |limit| format!("from {}", count(limit)));
            text += &format!("  with {name}: {} there, below 50 % {limit}\n", percent(*efficiency));
        }
    }
    text
}

/// Draws the efficiency over the ranks as `scaling.svg` and `scaling.png`.
pub fn draw(predictions: &[Prediction], folder: &Path) -> Result<(), CommandFailure> {
    let series = predictions.iter().enumerate().map(|(color, p)| {
        let kind = if p.scaling == Scaling::Strong { "strong" } else { "weak" };
        let point = |&(ranks, _, y): &(usize, f64, f64)| Point { x: ranks as f64, y, low: f64::NAN, high: f64::NAN };
        let name = format!("{}, {kind}", p.workload.name());
        Series { name, color, points: p.steps.iter().map(point).collect() }
    });
    let figure = Figure {
        title: "Model: part of the ranks that is used".into(),
        x: Axis { label: "ranks".into(), log: true },
        y: Axis { label: "efficiency".into(), log: false },
        series: series.collect(),
    };
    let png = figure.png(2.0).map_err(|e| CommandFailure::Failed(e.to_string()))?;
    std::fs::create_dir_all(folder)
        .map_err(|e| CommandFailure::Failed(format!("cannot create {}: {e}", folder.display())))?;
    atomic::write(&folder.join("scaling.svg"), figure.svg(Theme::File).as_bytes())?;
    Ok(atomic::write(&folder.join("scaling.png"), &png)?)
}
