//! The model of `scaling.rs` with what was measured here: times, limits, what would help, and curves.

use super::{ClusterModel, measure::RanksMeasured, worker::Workload};
use crate::bench::scaling::{
    Bottleneck, Growth, Link, Machines, StepCosts, efficiency, limit, powers_of_two, remedies, step,
};
use serde::Serialize;
use std::path::Path;
use strust_lab::{
    Error,
    figure::{Figure, Series, Theme},
    io::output::OutputFile,
};

/// Without flags: 100 Gbit/s and 2 µs, as the networks of today's clusters have, and machines of 64 cores.
const LATENCY: f64 = 2e-6;
const BANDWIDTH: f64 = 12.5e9;
const RANKS_PER_MACHINE: usize = 64;

/// The cluster that the flags describe; its machines add as fast as this one.
pub fn machines(cluster: &ClusterModel, measured: &RanksMeasured) -> Machines {
    let ranks_per_machine = cluster.ranks_per_machine.unwrap_or(RANKS_PER_MACHINE);
    let between = Link::new(cluster.latency.unwrap_or(LATENCY), cluster.bandwidth.unwrap_or(BANDWIDTH));
    Machines { within: measured.sums[0].fitted, between, ranks_per_machine, cores: ranks_per_machine, delay: 0.0 }
}

/// What the model predicts of a workload.
#[derive(Serialize)]
pub struct ScalingPrediction {
    pub workload: Workload,
    pub scaling: Growth,
    /// Ranks, seconds of a step, efficiency.
    pub steps: Vec<(usize, f64, f64)>,
    /// The first power of two with an efficiency below 1/2, and why.
    pub limit: Option<(usize, Bottleneck)>,
    /// Changes, the efficiency at the limit with each, and the new limit.
    pub remedies: Vec<(&'static str, f64, Option<usize>)>,
}

pub fn predict(measured: &RanksMeasured, machines: &Machines) -> Vec<ScalingPrediction> {
    let workloads = measured.speeds.iter().map(|speed| speed.workload).zip(&measured.costs);
    let each = workloads.flat_map(|(workload, costs)| {
        [Growth::Strong, Growth::Weak].map(|scaling| prediction(workload, costs, machines, scaling))
    });
    each.collect()
}

fn prediction(workload: Workload, costs: &StepCosts, machines: &Machines, scaling: Growth) -> ScalingPrediction {
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
    ScalingPrediction {
        workload,
        scaling,
        steps: powers_of_two().map(at).collect(),
        limit: found,
        remedies: found.map_or(Vec::new(), helped),
    }
}

/// Creates the folder and checks that the curves can be written, before minutes of measurements: `scaling.svg` and
/// `scaling.png`.
pub fn prepare(folder: &Path) -> Result<[OutputFile; 2], Error> {
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    OutputFile::prepare([&folder.join("scaling.svg"), &folder.join("scaling.png")], &[])
}

/// Draws the efficiency over the ranks.
pub fn draw(predictions: &[ScalingPrediction], [svg, png]: &[OutputFile; 2]) -> Result<(), Error> {
    let series = predictions.iter().enumerate().map(|(color, p)| {
        let name = format!("{}, {}", p.workload.name(), p.scaling.name());
        Series::line(name, color, p.steps.iter().map(|&(ranks, _, efficiency)| (ranks as f64, efficiency)))
    });
    let figure =
        Figure::new("Model: part of the ranks that is used", ("ranks", true), ("efficiency", false), series.collect());
    let pixels = figure.png(2.0).map_err(|e| Error::Misfit(e.to_string()))?;
    svg.write(figure.svg(Theme::File).as_bytes())?;
    png.write(&pixels)
}
