//! Measures the point of a job's last checkpoint on the full sum.

use super::Effort;
use crate::{
    Error,
    data::{
        experiment::{Experiment, Sampling},
        plan::{Job, Plan},
    },
    registry::problems::is_network,
    run::{
        prepare::{Prepared, Purpose, prepare},
        workers::caught,
    },
    stepper::Position,
};
use serde::{Deserialize, Serialize};
use std::path::Path;
use strust::{
    diagnostics::{Consecutive, Interpolation, KktReport, Pairs, kkt_report, probe, strong_growth},
    objective::Penalized,
    prelude::*,
    sample::Draws,
};
use strust_problems::Problem;

/// Measurements at the point of the last checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examination {
    /// The number of steps before it.
    pub steps: u64,
    /// ρ of the run's mini-batches.
    pub rho: f64,
    /// The interval of ρ; absent if ρ is exact.
    pub rho_interval: Option<(f64, f64)>,
    /// Whether interpolation holds near the point, and why; absent if the probe would take too long.
    pub interpolation: Option<(Interpolation, String)>,
    /// KKT residuals and the Jacobian; absent without constraints.
    pub kkt: Option<KktReport>,
    /// The penalty μ of the residuals.
    pub penalty: f64,
}

/// ρ is computed exactly and interpolation is probed if the gradients of all terms have at most this many numbers.
fn most(effort: Effort) -> usize {
    match effort {
        Effort::Report => 100_000_000,
        Effort::Asked => 1_000_000_000,
    }
}
/// Full gradients of a probe.
const PROBE: u64 = 80;
/// Pairs of mini-batches for an estimate.
const PAIRS: u64 = 16;

/// Measures the point of the last checkpoint of a job; `None` if there is none.
pub(super) fn examine(plan: &Plan, job: &Job, folder: &Path, effort: Effort) -> Result<Option<Examination>, Error> {
    // A panic, as of a GPU that is full, must not hide the other results.
    caught(|| prepare(job, &plan.experiment, folder, Examine { job, experiment: &plan.experiment, folder, effort }))
}

struct Examine<'a> {
    job: &'a Job,
    experiment: &'a Experiment,
    folder: &'a Path,
    effort: Effort,
}

impl Purpose for Examine<'_> {
    type Output = Option<Examination>;

    fn with<F, C>(self, mut prepared: Prepared<F, C>) -> Result<Option<Examination>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        let Self { job, experiment, folder, effort } = self;
        if prepared.resume(folder, job.checksum(experiment))?.is_none() {
            return Ok(None);
        }
        let Prepared { mut f, constraint, mut stepper, .. } = prepared;
        let Position { steps, x, averaged } = stepper.current(&mut f);
        if averaged {
            f.recompute_extra_state(x);
        }
        let x = &x.clone();
        let batch = experiment.batch as usize;
        let draws = match experiment.sampling {
            Sampling::Epochs => Draws::Different,
            Sampling::Replacement => Draws::Independent,
        };
        // With batch norm the terms of a mini-batch interact, so a single term is another function. And it takes long.
        let exact = (!is_network(&job.problem)).then_some((draws, most(effort)));
        // A method without a penalty is examined with a penalty of weight 1.
        let penalty = job.method.hyperparameters.get("penalty").and_then(toml::Value::as_float).unwrap_or(1.0);
        let mut found =
            Examination { steps, rho: f64::NAN, rho_interval: None, interpolation: None, kkt: None, penalty };
        if let Some(mut constraint) = constraint {
            found.kkt = Some(kkt_report(&mut f, &mut constraint, x, penalty)?);
            growth(&mut Penalized::new(&mut f, &mut constraint, penalty), x, batch, exact, job.seed, &mut found)?;
        } else {
            growth(&mut f, x, batch, exact, job.seed, &mut found)?;
        }
        Ok(Some(found))
    }
}

/// ρ at x. With `exact` (how terms are drawn, and the size limit of their gradients) it is computed exactly, with the
/// verdict of a probe. Otherwise it is estimated from pairs.
fn growth<F: Objective>(
    f: &mut F,
    x: &F::Point,
    batch: usize,
    exact: Option<(Draws, usize)>,
    seed: u64,
    found: &mut Examination,
) -> Result<(), Error> {
    let numbers = f.terms().saturating_mul(x.shape().iter().product());
    if let Some((draws, _)) = exact.filter(|(_, most)| numbers <= *most) {
        found.rho = strong_growth(f, x).rho(batch.min(f.terms()), draws);
        let probed = probe(f, x, PROBE);
        found.interpolation = Some((probed.verdict, probed.why));
        return Ok(());
    }
    let pairs = estimate(f, x, batch, seed)?;
    let interval = pairs.rho_interval(batch);
    (found.rho, found.rho_interval) = (pairs.rho(batch), Some((interval.low, interval.high)));
    Ok(())
}

/// Pairs of mini-batches at one point: x does not move between them.
fn estimate<F: Objective>(f: &mut F, x: &F::Point, batch: usize, seed: u64) -> Result<Pairs, Error> {
    let mut sampler = WithReplacement::new(f.terms(), batch, seed)?;
    let mut watched = Consecutive::new(f, Draws::Independent).without_window();
    let (mut sample, mut gradient) = (Sample::default(), x.zeros_like());
    for k in 0..2 * PAIRS {
        sampler.draw(k, &mut sample);
        watched.value_and_gradient(x, &sample, &mut gradient);
    }
    Ok(*watched.pairs())
}
