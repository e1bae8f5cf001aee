//! STR, Algorithm 1: the trust-region loop over any model.

use super::{Measurement, Method, finite};
use crate::{
    Error,
    config::{Checked, Config},
    kkt::measure,
    models::{Exit, Identity, Local, Model, Step, Trial},
    objective::{Evaluations, Objective},
    radius::{Change, RegionConfig, Verdict, region_config},
    record::{RegionRecord, StepRecord},
    sample::Sample,
    saved::{Load, Saved},
    vector::Vector,
};

region_config! {
    /// Configuration of [`Str`]: the trust region's constants. The defaults are the paper's for CIFAR-10.
    pub struct StrConfig for "trust region" {
        region = RegionConfig::default(), RegionConfig::FIELDS;
    }
}

/// Stochastic trust region, Algorithm 1: the trust region with the model H = I.
///
/// p = −a·g with a = min(1, Δ/‖g‖) is accepted if r = (fᵢ(x) − fᵢ(x+p)) / (a‖g‖² − ½a²‖g‖²) > c₀. The ratio r sets the
/// next radius. All evaluations of a step use the same sample.
///
/// ```
/// use strust::{prelude::*, radius::Verdict};
/// let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
///     g[0] += 4.0 * x[0].powi(3);
///     x[0].powi(4)
/// });
/// let mut method = Str::default();
/// let mut state = method.init(&mut f, vec![3.0])?;
/// let record = method.step(&mut f, &mut state, &Sample::range(0..1))?;
/// // The first step is far too long. It is rejected, and the radius is halved.
/// assert_eq!((record.verdict, state.point()[0], state.radius()), (Verdict::Rejected, 3.0, 4.0));
/// # Ok::<(), strust::Error>(())
/// ```
pub type Str<V> = TrustRegion<V, Identity>;

/// State of [`Str`] and [`StrP`](super::StrP).
pub type StrState<V> = TrustRegionState<V, ()>;

/// A stochastic trust region with any model. [`Str`] uses the model of the paper.
#[derive(Debug, Clone)]
pub struct TrustRegion<V, M> {
    region: Checked<RegionConfig>,
    /// The model as it was given. Every run begins with a clone of it, so no scratch space is left from another shape.
    given: M,
    model: M,
    scratch: Scratch<V>,
}

impl<V: Vector> Str<V> {
    /// Checks the configuration.
    pub fn new(config: StrConfig) -> Result<Self, Error> {
        Self::with_model(config.region, Identity)
    }
}

impl<V: Vector> Default for Str<V> {
    /// The paper's constants for CIFAR-10.
    fn default() -> Self {
        Self::new(StrConfig::default()).expect("the defaults are in their ranges")
    }
}

impl<V: Vector, M: Clone> TrustRegion<V, M> {
    /// Checks the configuration. See [`Model`] for an example.
    pub fn with_model(config: RegionConfig, model: M) -> Result<Self, Error> {
        Ok(Self { region: config.check()?, given: model.clone(), model, scratch: None })
    }
    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }
}

/// State of [`TrustRegion`]: the point, the radius, and the memory `S` of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct TrustRegionState<V, S> {
    /// x.
    pub(crate) x: V,
    /// Δ.
    pub(crate) radius: f64,
    /// Steps made.
    pub(crate) k: u64,
    /// The memory of the model.
    pub(crate) memory: S,
}
crate::saved!([V: Vector, S: Load] TrustRegionState<V, S> { x: vector, radius, k, memory });
crate::state!(TrustRegionState<V, S: Clone + Load>);

impl<V, S> TrustRegionState<V, S> {
    /// The radius Δ of the next step.
    #[must_use]
    pub fn radius(&self) -> f64 {
        self.radius
    }
    /// The memory of the model.
    #[must_use]
    pub fn memory(&self) -> &S {
        &self.memory
    }
    /// A state of its parts, for the versions on a device.
    #[doc(hidden)]
    pub fn from_parts(x: V, radius: f64, k: u64, memory: S) -> Self {
        Self { x, radius, k, memory }
    }
}

impl<F: Objective, M: Model<F>> Method<F> for TrustRegion<F::Point, M> {
    type State = TrustRegionState<F::Point, M::Memory>;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        (self.model, self.scratch) = (self.given.clone(), None);
        f.check_point(x)
    }
    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        let memory = self.model.init(f, &x)?;
        Ok(TrustRegionState { x, radius: self.region.initial_radius, k: 0, memory })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        trust_region_step(f, &self.region, &mut self.model, state, sample, &mut self.scratch)
    }
    fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
        Load::load(saved)
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        Ok(measure(f, &state.x))
    }
}

/// The gradient and the trial point.
pub(super) type Scratch<V> = Option<(V, V)>;

/// One step of Algorithm 1. With a penalized objective and the model [`Penalty`](crate::models::Penalty) it is a step
/// of Algorithm 2. The state changes only after the last evaluation.
pub(super) fn trust_region_step<F: Objective, M: Model<F>>(
    f: &mut F,
    region: &RegionConfig,
    model: &mut M,
    state: &mut TrustRegionState<F::Point, M::Memory>,
    sample: &Sample,
    scratch: &mut Scratch<F::Point>,
) -> Result<StepRecord, Error> {
    let TrustRegionState { x, radius, k, memory } = state;
    let (g, trial) = scratch.get_or_insert_with(|| (x.zeros_like(), x.zeros_like()));

    // fᵢ(x) and g = ∇fᵢ(x)
    let evaluation = f.value_and_gradient(x, sample, g);
    let gradient_squared = finite(evaluation, g, *k)?;
    let at = Local { k: *k, x, sample, evaluation, gradient: g, gradient_squared };
    let mut evaluations = Evaluations { values: 0, gradients: 1, products: 0 };

    // p = argmin m(p) subject to ‖p‖ ≤ Δ
    evaluations += model.arrive(f, memory, &at);
    let p = model.propose(f, memory, &at, *radius)?;
    trial.set_sum(x, -p.size, p.direction);
    evaluations += p.evaluations;
    let Step { mut size, mut length, mut predicted, mut exit, .. } = p;

    // r on the same sample, the verdict and the next radius
    let (mut next_radius, mut tried) = (*radius, None);
    while exit != Exit::Stationary {
        evaluations.values += 1;
        let value = f.value(trial, sample).value;
        let actual = evaluation.value - value;
        let judgment = region.judge(next_radius, actual, predicted, evaluation.rounding);
        next_radius = model.next_radius(next_radius, length, exit, &judgment);
        tried = Some((value, judgment));
        if judgment.verdict != Verdict::Rejected {
            break;
        }
        let Some(p) = model.retreat() else { break };
        trial.set_sum(x, -p.size, p.direction);
        Step { size, length, predicted, exit, .. } = p;
    }
    let tried = tried.map(|(value, judgment)| {
        let actual = evaluation.value - value;
        model.learn(memory, &Trial { at, point: trial, size, value, actual, predicted, judgment });
        (value, judgment)
    });
    let verdict = tried.map_or(Verdict::Accepted, |(_, judgment)| judgment.verdict);
    if tried.is_some() && verdict == Verdict::Accepted {
        // The old point becomes scratch space. A rejected step never changes x.
        std::mem::swap(x, trial);
    }
    let old_radius = std::mem::replace(radius, next_radius);
    *k += 1;

    let (trial, ratio) = tried.filter(|(value, _)| value.is_finite()).map(|(value, j)| (value, j.ratio)).unzip();
    let change = tried.map_or(Change::Keep, |(_, judgment)| judgment.change);
    Ok(StepRecord {
        k: *k - 1,
        value: evaluation.value,
        gradient_norm: gradient_squared.sqrt(),
        step_size: size,
        step_length: length,
        verdict,
        region: Some(RegionRecord { radius: old_radius, exit, trial, predicted, ratio, change }),
        constraint_norm: None,
        evaluations,
    })
}
