//! Measures the point of a job's last checkpoint on the full sum.

use super::{
    Effort,
    reference::{ReferencePoint, StartUnits, length, reference},
};
use crate::{
    Error,
    data::{
        experiment::{Experiment, ProblemSpec, Sampling},
        plan::{Job, Plan},
    },
    registry::{
        PointType, Quantity,
        methods::{StepKind, steps},
        problems::{self, is_network},
    },
    run::{
        prepare::{Prepared, Purpose, prepare},
        workers::caught,
    },
    stepper::Position,
};
use std::path::Path;
use strust::{
    constraints::{Retraction, Sense},
    diagnostics::{Consecutive, Interpolation, KktReport, Pairs, kkt_report, probe, strong_growth},
    objective::{Penalized, full_value, full_value_and_gradient},
    prelude::*,
    sample::Draws,
    samplers::Sampler,
};
use strust_problems::Problem;

/// The fit to the training set and to the test set: accuracies, or 1 minus the loss over that of the model whose
/// parameters are all 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Generalization {
    /// Whether these are accuracies.
    pub accuracy: bool,
    /// On the training set.
    pub train: f64,
    /// On the test set.
    pub test: f64,
    /// The standard error of the second one.
    pub standard_error: f64,
}

/// The root mean squares of the features of the data, without those that are 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FeatureSizes {
    /// Their number.
    pub count: usize,
    /// The lower quartile, so that a few nearly empty columns do not matter.
    pub low: f64,
    /// The largest.
    pub largest: f64,
}

impl FeatureSizes {
    /// The largest over the lower quartile.
    pub(super) fn spread(&self) -> f64 {
        self.largest / self.low
    }
}

/// Measurements at the point of the last checkpoint. Values are those of the loss without its `scale`; gradients and
/// curvatures are those that the method sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Examination {
    /// The number of steps before it.
    pub steps: u64,
    /// n, the number of terms.
    pub terms: usize,
    /// d, the number of unknowns.
    pub dimension: usize,
    /// ‖x‖.
    pub size: f64,
    /// f.
    pub loss: f64,
    /// f* if it is known.
    pub optimum: Option<f64>,
    /// What a full-batch method still reaches from here; absent if it is not needed or would take too long.
    pub reference: Option<ReferencePoint>,
    /// ‖∇f‖; with a constraint, that of the Lagrangian with the best multipliers.
    pub gradient_norm: f64,
    /// E‖g − ∇f‖²/‖∇f‖² for the gradient g of a mini-batch of the run.
    pub noise: f64,
    /// The largest curvature of a few mini-batches, here and at the start; absent for networks.
    pub curvature: Option<f64>,
    /// ‖∇f‖²/(2L), by which a step of length 1/L lowers f at least; absent for networks and with a constraint.
    pub descent: Option<f64>,
    /// The sizes of the features, if the problem has data.
    pub features: Option<FeatureSizes>,
    /// The fit to the training set and to the test set, if there is one.
    pub generalization: Option<Generalization>,
    /// ρ of the run's mini-batches.
    pub rho: f64,
    /// The interval of ρ; absent if ρ is exact.
    pub rho_interval: Option<(f64, f64)>,
    /// Whether interpolation holds near the point, and why; absent if the probe would take too long.
    pub interpolation: Option<(Interpolation, String)>,
    /// KKT residuals and the Jacobian; absent without constraints.
    pub kkt: Option<KktReport>,
    /// Whether some rows are c(x) ≤ 0, so that ‖c‖ and the Jacobian of all rows say nothing.
    pub inequalities: bool,
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
            loss: f64::NAN,
            optimum: None,
            reference: None,
            gradient_norm: f64::NAN,
            noise: f64::NAN,
            curvature: None,
            descent: None,
            features: None,
            generalization: None,
            rho: f64::NAN,
            rho_interval: None,
            interpolation: None,
            kkt: None,
            inequalities: false,
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
    let (experiment, id) = (&plan.experiment, job.checksum(&plan.experiment));
    // The accuracy on the training set is needed here, also if the records do not have it.
    let mut job = job.clone();
    if let Some(switch) = job.problem.parameters.get_mut("train_accuracy") {
        *switch = "on".into();
    }
    // A panic, as of a GPU that is full, must not hide the other results.
    caught(|| prepare(&job, experiment, folder, Examine { job: &job, id, experiment, folder, effort, failed }))
}

struct Examine<'a> {
    job: &'a Job,
    /// The identity of the job that was run.
    id: u64,
    experiment: &'a Experiment,
    folder: &'a Path,
    effort: Effort,
    failed: bool,
}

impl Purpose for Examine<'_> {
    type Output = Option<Examination>;

    fn with<P: PointType>(self, mut prepared: Prepared<P>) -> Result<Option<Examination>, Error> {
        let Self { job, id, experiment, folder, effort, failed } = self;
        if failed {
            prepared.start(job.seed)?;
        } else if prepared.resume(folder, id)?.is_none() {
            return Ok(None);
        }
        let Prepared { mut f, mut stepper, held: _held, .. } = prepared;
        let constraint = f.any_constraint(Retraction::Qr);
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
        let (optimum, scale) = (f.optimum(), f.scale());
        let mut found = Examination {
            terms: f.terms(),
            dimension: x.dimension(),
            size: length(x),
            loss: full_value(&mut f, x) / scale,
            optimum: optimum.map(|optimum| optimum / scale),
            features: f.feature_scales().and_then(|scales| sizes(&scales)),
            penalty,
            ..Examination::unknown(made)
        };
        found.generalization = generalization(&mut f, x, &job.problem);
        let start = f.start(job.seed);
        let units = StartUnits::at(&mut f, &start, batch, job.seed, network);
        // A network takes too long for both. With batch norm the terms of a mini-batch also interact.
        if !network {
            found.curvature = Some(units.curvature(&mut f, x, batch, job.seed).max(units.curvature));
            // The distance to the solution sets the rate of a method whose steps do not depend on the gradient.
            let needed = optimum.is_none() || steps(&job.method.name) == StepKind::Normalized;
            if needed && constraint.is_none() {
                let from = if full_value(&mut f, x) <= full_value(&mut f, &start) { x } else { &start };
                found.reference = reference(&mut f, from, x, &units, effort);
            }
        }
        let exact = (!network).then_some((draws, most(effort)));
        if let Some(mut constraint) = constraint {
            let kkt = kkt_report(&mut f, &mut constraint, x, penalty)?;
            (found.gradient_norm, found.kkt) = (kkt.least_residual, Some(kkt));
            let rows = constraint.new_residual().dimension();
            found.inequalities = (0..rows).any(|row| constraint.sense(row) != Sense::Equal);
            let variance =
                growth(&mut Penalized::new(&mut f, &mut constraint, penalty), x, batch, exact, job.seed, &mut found)?;
            found.noise = variance / kkt.least_residual.powi(2);
        } else {
            let mut f = units.scaled(&mut f);
            let mut gradient = x.zeros_like();
            full_value_and_gradient(&mut f, x, &mut gradient);
            let norm = gradient.norm();
            found.gradient_norm = units.gradient * norm;
            let descent = |l: f64| norm / (l / units.gradient) * norm / 2.0 * (units.gradient / scale);
            found.descent = found.curvature.map(descent).filter(|descent| descent.is_finite());
            found.noise = growth(&mut f, x, batch, exact, job.seed, &mut found)? / norm.powi(2);
        }
        Ok(Some(found))
    }
}

/// The sizes of features, without those that are 0; `None` with fewer than two, and if a square is out of range.
fn sizes(scales: &[f64]) -> Option<FeatureSizes> {
    let mut positive: Vec<f64> = scales.iter().copied().filter(|scale| *scale > 0.0).collect();
    positive.sort_by(f64::total_cmp);
    let largest = *positive.last().filter(|largest| largest.is_finite())?;
    let low = positive[(positive.len() - 1) / 4];
    (positive.len() > 1).then_some(FeatureSizes { count: scales.len(), low, largest })
}

/// The fit at x to the training set and to the test set; `None` without a test set.
fn generalization<F: Problem>(f: &mut F, x: &F::Point, problem: &ProblemSpec) -> Option<Generalization> {
    let (quantity, _) = problems::quantities(problem).iter().find(|(quantity, _)| quantity.of_test_set())?;
    // A test set that comes with the data is large.
    let share = problem.parameters.get("test_share").and_then(toml::Value::as_float).unwrap_or(0.0);
    let rows = if share > 0.0 { f.terms() as f64 * share / (1.0 - share) } else { f64::INFINITY };
    if *quantity == Quantity::TestAccuracy {
        let (train, test) = (f.train_accuracy(x)?, f.test_metric(x)?);
        return Some(Generalization {
            accuracy: true,
            train,
            test,
            standard_error: (test * (1.0 - test) / rows).sqrt(),
        });
    }
    let zero = x.zeros_like();
    let (train, test) = (full_value(f, x) / full_value(f, &zero), f.test_metric(x)? / f.test_metric(&zero)?);
    // The mean of m squares of Gaussian numbers has a relative variance of 2/m.
    let found = Generalization {
        accuracy: false,
        train: 1.0 - train,
        test: 1.0 - test,
        standard_error: test * (2.0 / rows).sqrt(),
    };
    (train.is_finite() && test.is_finite()).then_some(found)
}

/// ρ at x, and E‖g − ∇f‖² of a mini-batch, which is returned. With `exact` (how terms are drawn, and the size limit of
/// their gradients) they are computed exactly, with the verdict of a probe. Otherwise they are estimated from pairs.
fn growth<F: Objective>(
    f: &mut F,
    x: &F::Point,
    batch: usize,
    exact: Option<(Draws, usize)>,
    seed: u64,
    found: &mut Examination,
) -> Result<f64, Error> {
    let numbers = f.terms().saturating_mul(x.shape().iter().product());
    if let Some((draws, _)) = exact.filter(|(_, most)| numbers <= *most) {
        let here = strong_growth(f, x);
        found.rho = here.rho(batch, draws);
        let probed = probe(f, x, PROBE);
        found.interpolation = Some((probed.verdict, probed.why.clone()));
        // Far from a solution the terms disagree in any case, and where the loss still falls there is no solution yet.
        if let (Some(reference), Interpolation::Violated) = (&found.reference, probed.verdict)
            && reference.still_falls()
        {
            let why = format!("{}, but a full-batch method still lowers the loss from here", probed.why);
            found.interpolation = Some((Interpolation::Doubtful, why));
        }
        return Ok(here.variance * draws.share(batch, here.terms));
    }
    let pairs = estimate(f, x, batch, seed)?;
    let interval = pairs.rho_interval(batch);
    (found.rho, found.rho_interval) = (pairs.rho(batch), Some((interval.low, interval.high)));
    Ok(pairs.variance() / batch as f64)
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
