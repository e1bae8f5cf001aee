//! Measures the point of a job's last checkpoint on the full sum.

use super::{
    Effort,
    reference::{ReferencePoint, curvature, reference},
};
use crate::{
    Error,
    data::{
        experiment::{Experiment, Sampling},
        plan::{Job, Plan},
    },
    registry::{
        methods::{StepKind, steps},
        problems::is_network,
    },
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
    objective::{Penalized, full_value, full_value_and_gradient},
    prelude::*,
    sample::Draws,
};
use strust_problems::Problem;

/// Measurements at the point of the last checkpoint. Values are those of the loss without its `scale`; gradients and
/// curvatures are those that the method sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examination {
    /// The number of steps before it.
    pub steps: u64,
    /// n, the number of terms.
    pub terms: usize,
    /// d, the number of unknowns.
    pub dimension: usize,
    /// ‖x‖.
    pub size: f64,
    /// f* if it is known.
    pub optimum: Option<f64>,
    /// What a full-batch method still reaches from here; absent if it is not needed or would take too long.
    pub reference: Option<ReferencePoint>,
    /// ‖∇f‖; with a constraint, that of the Lagrangian with the best multipliers.
    pub gradient_norm: f64,
    /// E‖g − ∇f‖² for the gradient g of a mini-batch of the run.
    pub noise: f64,
    /// The largest curvature of a few mini-batches, here and at the start; absent for networks.
    pub curvature: Option<f64>,
    /// The largest root mean square of a feature over the lower quartile of all, without those that are 0.
    pub feature_spread: Option<f64>,
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

impl Examination {
    /// Nothing is measured yet, after this number of steps.
    pub(super) fn unknown(steps: u64) -> Self {
        Self {
            steps,
            terms: 0,
            dimension: 0,
            size: f64::NAN,
            optimum: None,
            reference: None,
            gradient_norm: f64::NAN,
            noise: f64::NAN,
            curvature: None,
            feature_spread: None,
            rho: f64::NAN,
            rho_interval: None,
            interpolation: None,
            kkt: None,
            penalty: 1.0,
        }
    }
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

/// Measures the point of the last checkpoint of a job; `None` if there is none. `failed`: the job broke down, so the
/// point to measure is the start.
pub(super) fn examine(
    plan: &Plan,
    job: &Job,
    folder: &Path,
    effort: Effort,
    failed: bool,
) -> Result<Option<Examination>, Error> {
    // A panic, as of a GPU that is full, must not hide the other results.
    let experiment = &plan.experiment;
    caught(|| prepare(job, experiment, folder, Examine { job, experiment, folder, effort, failed }))
}

struct Examine<'a> {
    job: &'a Job,
    experiment: &'a Experiment,
    folder: &'a Path,
    effort: Effort,
    failed: bool,
}

impl Purpose for Examine<'_> {
    type Output = Option<Examination>;

    fn with<F, C>(self, mut prepared: Prepared<F, C>) -> Result<Option<Examination>, Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        let Self { job, experiment, folder, effort, failed } = self;
        if failed {
            prepared.start(job.seed)?;
        } else if prepared.resume(folder, job.checksum(experiment))?.is_none() {
            return Ok(None);
        }
        let Prepared { mut f, constraint, mut stepper, .. } = prepared;
        let Position { steps: made, x, averaged } = stepper.current(&mut f);
        if averaged {
            f.recompute_extra_state(x);
        }
        let x = &x.clone();
        let network = is_network(&job.problem);
        let batch = (experiment.batch as usize).min(f.terms());
        let draws = match experiment.sampling {
            Sampling::Epochs => Draws::Different,
            Sampling::Replacement => Draws::Independent,
        };
        // A method without a penalty is examined with a penalty of weight 1.
        let penalty = job.method.hyperparameters.get("penalty").and_then(toml::Value::as_float).unwrap_or(1.0);
        let optimum = f.optimum();
        let mut found = Examination {
            terms: f.terms(),
            dimension: x.dimension(),
            size: x.norm(),
            optimum: optimum.map(|optimum| optimum / f.scale()),
            feature_spread: f.feature_scales().and_then(|scales| spread(&scales)),
            penalty,
            ..Examination::unknown(made)
        };
        // A network takes too long for both. With batch norm the terms of a mini-batch also interact.
        if !network {
            let start = f.start(job.seed);
            let at = |f: &mut F, x: &F::Point| curvature(f, x, batch, job.seed);
            found.curvature = Some(at(&mut f, x).max(at(&mut f, &start)));
            // The distance to the solution sets the rate of a method whose steps do not depend on the gradient.
            let needed = optimum.is_none() || steps(&job.method.name) == StepKind::Normalized;
            if needed && constraint.is_none() {
                let from = if full_value(&mut f, x) <= full_value(&mut f, &start) { x } else { &start };
                found.reference = reference(&mut f, from, x, effort);
            }
        }
        let exact = (!network).then_some((draws, most(effort)));
        if let Some(mut constraint) = constraint {
            let kkt = kkt_report(&mut f, &mut constraint, x, penalty)?;
            (found.gradient_norm, found.kkt) = (kkt.least_residual, Some(kkt));
            growth(&mut Penalized::new(&mut f, &mut constraint, penalty), x, batch, exact, job.seed, &mut found)?;
        } else {
            let mut gradient = x.zeros_like();
            full_value_and_gradient(&mut f, x, &mut gradient);
            found.gradient_norm = gradient.norm();
            growth(&mut f, x, batch, exact, job.seed, &mut found)?;
        }
        Ok(Some(found))
    }
}

/// The largest scale over the lower quartile of the positive ones, so that a few nearly empty columns do not matter;
/// `None` with fewer than two.
fn spread(scales: &[f64]) -> Option<f64> {
    let mut positive: Vec<f64> = scales.iter().copied().filter(|scale| *scale > 0.0).collect();
    positive.sort_by(f64::total_cmp);
    let largest = positive.last()?;
    (positive.len() > 1).then(|| largest / positive[(positive.len() - 1) / 4])
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
        let here = strong_growth(f, x);
        found.rho = here.rho(batch, draws);
        found.noise = here.variance * draws.share(batch, here.terms);
        let probed = probe(f, x, PROBE);
        found.interpolation = Some((probed.verdict, probed.why.clone()));
        // Far from a solution the terms disagree in any case, and where the loss still falls there is no solution yet.
        if let (Some(reference), Interpolation::Violated) = (&found.reference, probed.verdict)
            && reference.still_falls()
        {
            let why = format!("{}, but a full-batch method still lowers the loss from here", probed.why);
            found.interpolation = Some((Interpolation::Doubtful, why));
        }
        return Ok(());
    }
    let pairs = estimate(f, x, batch, seed)?;
    let interval = pairs.rho_interval(batch);
    (found.rho, found.rho_interval) = (pairs.rho(batch), Some((interval.low, interval.high)));
    found.noise = pairs.variance() / batch as f64;
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
