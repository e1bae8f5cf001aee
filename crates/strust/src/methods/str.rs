//! STR: Algorithm 1, and the loop it shares with STR-P.

use super::{Measurement, Method, evaluate, measure_unconstrained, state};
use crate::{
    Error,
    config::{Checked, Config},
    model::{Exit, cauchy_step},
    objective::{Evaluations, Objective},
    radius::{Change, RegionConfig},
    record::{RegionRecord, StepRecord, Verdict},
    sample::Sample,
    vector::{Vector, saved},
};
use serde::{Deserialize, Serialize};

/// Configuration of [`Str`]: the trust region's constants. The defaults are the paper's for CIFAR-10.
pub type StrConfig = RegionConfig;

/// Stochastic trust region, Algorithm 1.
///
/// p = −a·g with a = min(1, Δ/‖g‖), accepted if r = (fᵢ(x) − fᵢ(x+p)) / (a‖g‖² − ½a²‖g‖²) > c₀; the ratio
/// sets the next radius. All three evaluations use the same sample.
///
/// ```
/// use strust::prelude::*;
/// let mut f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
///     if let Some(g) = g {
///         g[0] = 4.0 * x[0].powi(3);
///     }
///     x[0].powi(4)
/// });
/// let mut method = Str::new(StrConfig::default())?;
/// let mut state = method.init(&mut f, vec![3.0])?;
/// let record = method.step(&mut f, &mut state, &Sample::range(0..1))?;
/// // The first step is far too long; it is rejected and the radius halves.
/// assert_eq!((record.verdict, state.x[0], state.radius), (Verdict::Rejected, 3.0, 4.0));
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Str<V> {
    region: Checked<RegionConfig>,
    scratch: Scratch<V>,
}

impl<V: Vector> Str<V> {
    /// Checks the configuration.
    pub fn new(config: StrConfig) -> Result<Self, Error> {
        Ok(Self { region: config.check()?, scratch: Scratch::default() })
    }
}

/// State of [`Str`] and [`StrP`](super::StrP).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "V: Vector")]
pub struct StrState<V> {
    /// x.
    #[serde(with = "saved")]
    pub x: V,
    /// Δ.
    pub radius: f64,
    /// Steps made.
    pub k: u64,
}
state!(StrState);

impl<F: Objective> Method<F> for Str<F::Point> {
    type State = StrState<F::Point>;

    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        f.check_point(&x)?;
        self.scratch = Scratch::default();
        Ok(StrState { x, radius: self.region.initial_radius, k: 0 })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        trust_region_step(f, &self.region, state, sample, &mut self.scratch)
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        Ok(measure_unconstrained(f, &state.x))
    }
}

/// The gradient and the trial point.
#[derive(Debug, Clone)]
pub(super) struct Scratch<V>(Option<(V, V)>);

impl<V> Default for Scratch<V> {
    fn default() -> Self {
        Self(None)
    }
}

/// One step of Algorithm 1, and of Algorithm 2 when `f` is a penalized objective: the curvature it reports
/// along g is all that tells them apart.
pub(super) fn trust_region_step<F: Objective>(
    f: &mut F,
    region: &RegionConfig,
    state: &mut StrState<F::Point>,
    sample: &Sample,
    scratch: &mut Scratch<F::Point>,
) -> Result<StepRecord, Error> {
    let StrState { x, radius, k } = state;
    let (g, trial) = scratch.0.get_or_insert_with(|| (x.zeros_like(), x.zeros_like()));
    let (step, old_radius) = (*k, *radius);

    // fᵢ(x), g = ∇fᵢ(x) and gᵀHg
    let (value, squared_norm) = evaluate(f, x, sample, g, step)?;
    let rounding = f.rounding(value);
    let curvature = f.curvature(x, g);
    if !curvature.is_finite() {
        return Err(Error::NonFiniteCurvature { step, curvature });
    }

    // p = argmin m(p) subject to ‖p‖ ≤ Δ
    let p = cauchy_step(squared_norm, curvature, old_radius);

    // r, on the same sample; accept or reject; the next radius
    let mut trial_value = None;
    let (mut ratio, mut verdict, mut change) = (None, Verdict::Accepted, Change::Keep);
    if p.exit != Exit::Stationary {
        trial.set_sum(x, -p.size, g);
        let at_trial = f.value(trial, sample);
        let judgment = region.judge(old_radius, value - at_trial, p.predicted, rounding);
        if judgment.verdict == Verdict::Accepted {
            // The old point moves into the scratch space; a rejected step never touches x.
            std::mem::swap(x, trial);
        }
        *radius = judgment.next_radius;
        (verdict, change) = (judgment.verdict, judgment.change);
        if at_trial.is_finite() {
            (trial_value, ratio) = (Some(at_trial), Some(judgment.ratio));
        }
    }
    *k += 1;

    Ok(StepRecord {
        k: step,
        value,
        gradient_norm: squared_norm.sqrt(),
        step_size: p.size,
        step_length: p.length,
        verdict,
        region: Some(RegionRecord {
            radius: old_radius,
            exit: p.exit,
            trial: trial_value,
            predicted: p.predicted,
            ratio,
            change,
        }),
        constraint_norm: None,
        evaluations: Evaluations { values: u64::from(p.exit != Exit::Stationary), gradients: 1 },
    })
}
