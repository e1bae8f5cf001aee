//! `strust bench mpi`: one run on several processes of this machine, and a model of more machines.
//!
//! The program starts itself: without MPI, and by `mpirun` on 1, 2 and 4 ranks. All of them wait for requests, so what is
//! compared takes turns.

mod launch;
mod measure;
mod predict;
mod text;
mod worker;

use super::{BenchProgress, BenchResults, scaling::Machines};
use measure::{RanksEffort, RanksMeasured};
use predict::ScalingPrediction;
use serde::Serialize;
use std::path::PathBuf;
use strust_lab::Error;

/// The output as JSON.
#[derive(Serialize)]
struct Everything {
    measured: RanksMeasured,
    machines: Machines,
    predictions: Vec<ScalingPrediction>,
}

/// The cluster of the model, and how much is measured.
#[derive(Default)]
pub struct ClusterModel {
    /// Seconds of a short message between two machines [default: 2 µs].
    pub latency: Option<f64>,
    /// Bytes per second between two machines [default: 12.5 GB/s].
    pub bandwidth: Option<f64>,
    /// Ranks on each machine [default: 64].
    pub ranks_per_machine: Option<usize>,
    /// Small problems and few repetitions.
    pub quick: bool,
    /// The folder of the scaling curves.
    pub curves: Option<PathBuf>,
}

/// One run on several processes of this machine, and a model of more machines.
pub fn mpi(cluster: &ClusterModel, progress: &dyn BenchProgress) -> Result<BenchResults, Error> {
    let curves = cluster.curves.as_deref().map(predict::prepare).transpose()?;
    let measured = measure::measure(&RanksEffort::new(cluster.quick), progress)?;
    let machines = predict::machines(cluster, &measured);
    let predictions = predict::predict(&measured, &machines);
    if let Some(files) = &curves {
        predict::draw(&predictions, files)?;
    }
    let blocks = text::blocks(&measured, &machines, &predictions);
    Ok(BenchResults::new(&Everything { measured, machines, predictions }, blocks))
}

/// Answers requests on standard input without MPI, for a benchmark that has started this process.
pub fn answer_alone() -> Result<(), Error> {
    worker::serve(None).map_err(Error::Ranks)
}

/// The same as a rank of `mpirun`.
#[cfg(feature = "mpi")]
pub fn answer_as_rank() {
    // A rank waits while the other processes have their turns.
    strust_mpi::on_ranks(std::time::Duration::from_secs(3600), |rank| worker::serve(Some(rank)));
}
