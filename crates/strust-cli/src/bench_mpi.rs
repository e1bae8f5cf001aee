//! `strust bench mpi`: one run on several processes of this machine, and a model of more machines.
//!
//! The program starts itself: without MPI, and by `mpirun` on 1, 2 and 4 ranks. All of them wait for requests, so what is
//! compared takes turns.

mod launch;
mod measure;
mod predict;
mod text;
mod worker;

use crate::{
    CommandFailure,
    args::{Cluster, Shared},
    scaling::Machines,
    session::{json, print, print_data},
    show::Activity,
};
use measure::{RanksEffort, RanksMeasured};
use predict::ScalingPrediction;
use serde::Serialize;
use strust::ranks::Alone;

/// The output as JSON.
#[derive(Serialize)]
struct Everything {
    measured: RanksMeasured,
    machines: Machines,
    predictions: Vec<ScalingPrediction>,
}

pub fn run(cluster: &Cluster, shared: &Shared) -> Result<(), CommandFailure> {
    match cluster.as_rank.as_deref() {
        Some("alone") => worker::serve::<Alone>(None).map_err(CommandFailure::Failed),
        Some(_) => as_rank(),
        None => {
            require_mpi()?;
            let curves = cluster.out.as_deref().map(predict::prepare).transpose()?;
            let measured = measure::measure(&RanksEffort::new(cluster.quick), &Activity::new(shared))?;
            let machines = predict::machines(cluster, &measured);
            let predictions = predict::predict(&measured, &machines);
            if let Some(files) = &curves {
                predict::draw(&predictions, files)?;
            }
            if shared.json {
                return print_data(&json(&Everything { measured, machines, predictions })?);
            }
            print(&text::all(&measured, &machines, &predictions, shared))
        }
    }
}

#[cfg(not(feature = "mpi"))]
fn require_mpi() -> Result<(), CommandFailure> {
    Err(CommandFailure::Failed(format!("this program {}", crate::ranks::WITHOUT_MPI)))
}

#[cfg(feature = "mpi")]
#[allow(clippy::unnecessary_wraps, reason = "without MPI it fails")]
fn require_mpi() -> Result<(), CommandFailure> {
    Ok(())
}

#[cfg(not(feature = "mpi"))]
fn as_rank() -> Result<(), CommandFailure> {
    require_mpi()
}

#[cfg(feature = "mpi")]
#[allow(clippy::unnecessary_wraps, reason = "without MPI it fails")]
fn as_rank() -> Result<(), CommandFailure> {
    // A rank waits while the other processes have their turns.
    strust_mpi::on_ranks(std::time::Duration::from_secs(3600), |rank| worker::serve(Some(rank)));
    Ok(())
}
