//! `Auto` with second-order steps where they pay.

mod race;

use race::MEASUREMENT;
pub use race::{Leader, Probation, Race, RaceStage};

use super::{
    Measurement, Method, State,
    auto::{Auto, AutoConfig, AutoState},
    trust_region::{Scratch, TrustRegionState, trust_region_step},
};
use crate::{
    Error, config,
    config::{Checked, Config},
    kkt::measure,
    models::{Newton, NewtonMemory},
    objective::{AllTerms, AllTermsSpace, Evaluations, Objective, ProductKind},
    radius::{RegionConfig, Verdict},
    record::StepRecord,
    sample::{Sample, generator},
    samplers::below,
    stop::StopReason,
    vector::{Elementwise, Vector},
};
use serde::{Deserialize, Serialize};

config! {
    /// Configuration of [`AutoNewton`]. The defaults are meant for every problem.
    pub struct AutoNewtonConfig for "auto-newton" {
        /// The share of the price of a run that may go into trials of the method that does not lead.
        pub share: f64 = 0.1, Number(Range::open(0.0, 1.0));
    }
}

/// A step may use this many products, whatever they cost.
const LEAST_PRODUCTS: u64 = 4;
/// A step has at most this many products.
const MOST_PRODUCTS: u64 = 1000;
/// The inner iteration ends at the latest where the gradient of the model is so many times the gradient.
const FORCING: f64 = 0.05;
/// Lower bound of the root of the metric, relative to its mean, as in [`Auto`].
const EPSILON: f64 = 1e-6;
/// The share of all terms whose curvature the first step sees.
const FIRST_TERMS: f64 = 0.125;
/// A rejected step is followed by up to this many shorter ones, which need no products.
const RETREATS: usize = 3;
/// A step whose ratio is below this sees twice as many terms the next time.
const GOOD: f64 = 0.5;

/// [`Auto`] that measures whether second-order steps pay, and makes them where they do.
///
/// Two methods compete for the same price, counted in passes over the data: `Auto` on mini-batches, and trust-region
/// steps on the full sum, whose model is the Gauss–Newton matrix or the Hessian of a part of the terms, minimized by
/// [truncated conjugate gradients](crate::models::steihaug). One of them leads. Now and then the other one starts from its
/// point and spends a small price; then the leader spends the same. Second-order steps lead if they reduce f by clearly
/// more, and stay if they go on faster than `Auto` did before the race. Lost trials cost at most a fixed share of the run. A
/// leader that stays ahead is challenged less and less often, for twice the price each time.
///
/// The region and the preconditioner of second-order steps have the metric of `Auto`, the root of the mean of g∘g. The
/// steps use as many products as their price permits, and at first the curvature of an eighth of the terms. After a step
/// that their model did not foresee they see twice as many. They are paid in advance, by samples that are drawn but not
/// used: at any step a run has spent about as much as one of `Auto`.
///
/// ```
/// use strust::{objective::{ProductKind, with_products}, prelude::*};
/// // ½ Σ hⱼ(xⱼ − i)² with h from 1 to 10⁶: hopeless for first-order steps.
/// let h: Vec<f64> = (0..7).map(|j| 10_f64.powi(j)).collect();
/// let f = from_terms(64, |i, x: &Vec<f64>, g| {
///     (0..7).map(|j| { let r = x[j] - i as f64; g[j] += h[j] * r; 0.5 * h[j] * r * r }).sum()
/// });
/// let hessian = |_: &Vec<f64>, _: &Sample, v: &Vec<f64>, out: &mut Vec<f64>| (0..7).for_each(|j| out[j] = h[j] * v[j]);
/// let mut f = with_products(f, ProductKind::Hessian, hessian);
/// let report = minimize(&mut f).method(AutoNewton::default()).batch(8).stop(Stop::epochs(100)).start(vec![0.0; 7])?;
/// assert!(report.point().iter().all(|x| (x - 31.5).abs() < 1e-6), "{:?}", report.point());
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AutoNewton<V> {
    config: Checked<AutoNewtonConfig>,
    auto: Auto<V>,
    newton: Newton<V>,
    region: RegionConfig,
    scratch: Scratch<V>,
    space: Option<AllTermsSpace<V>>,
    terms: Sample,
}

impl<V: Vector> AutoNewton<V> {
    /// Checks the configuration.
    pub fn new(config: AutoNewtonConfig) -> Result<Self, Error> {
        Self::with_auto(config, AutoConfig::default())
    }
    /// With other settings of the first-order steps.
    pub fn with_auto(config: AutoNewtonConfig, auto: AutoConfig) -> Result<Self, Error> {
        let region = RegionConfig {
            initial_radius: 1.0,
            max_radius: f64::MAX,
            shrink_below: 0.25,
            grow_above: 0.75,
            shrink: 4.0,
            grow: 2.0,
            ..RegionConfig::default()
        };
        Ok(Self {
            config: config.check()?,
            auto: Auto::new(auto)?,
            newton: model(),
            region,
            scratch: Scratch::default(),
            space: None,
            terms: Sample::default(),
        })
    }
}

impl<V: Vector> Default for AutoNewton<V> {
    /// The settings for every problem.
    fn default() -> Self {
        Self::new(AutoNewtonConfig::default()).expect("the defaults are in their ranges")
    }
}

/// State of [`AutoNewton`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "V: Vector")]
pub struct AutoNewtonState<V> {
    /// The first-order method.
    pub auto: AutoState<V>,
    /// The second-order steps.
    pub newton: TrustRegionState<V, NewtonMemory>,
    /// The terms whose curvature it sees, as a share of all.
    pub terms: f64,
    /// Terms of samples that were drawn but not used, to pay for second-order steps. Negative: it was not enough.
    pub saved: f64,
    /// Who leads.
    pub race: Race,
    /// Steps made.
    pub k: u64,
}

impl<V: Vector> State for AutoNewtonState<V> {
    type Point = V;
    fn point(&self) -> &V {
        match self.race.leader {
            Leader::First => &self.auto.x,
            Leader::Second => &self.newton.x,
        }
    }
    fn into_point(self) -> V {
        match self.race.leader {
            Leader::First => self.auto.x,
            Leader::Second => self.newton.x,
        }
    }
    fn with_point(mut self, x: V) -> Self {
        match self.race.leader {
            Leader::First => self.auto.x = x,
            Leader::Second => self.newton.x = x,
        }
        self
    }
    fn steps(&self) -> u64 {
        self.k
    }
    fn is_averaged(&self) -> bool {
        true
    }
    fn settled(&self) -> Option<StopReason> {
        None
    }
}

impl<V: Vector> AutoNewtonState<V> {
    /// The most products of the next second-order step. A gradient and a value cost a pass, and so does a product with all
    /// terms.
    fn products(&self) -> u64 {
        let products = (self.race.remaining() - 1.0) / self.terms;
        (products as u64).clamp(LEAST_PRODUCTS, MOST_PRODUCTS)
    }
    /// The price of the next second-order step, in passes, if it uses all of its products.
    fn price(&self) -> f64 {
        1.0 + self.products() as f64 * self.terms
    }
    /// Second-order steps end because a number is not finite. First-order steps go on, and break down if they must.
    fn give_up(&mut self, terms: usize, sample: &Sample) -> StepRecord {
        if self.race.leader == Leader::Second {
            self.auto.move_to(&self.newton.x);
        }
        self.race.give_up();
        // The gradient at least was evaluated.
        self.saved -= 0.75 * terms as f64;
        let evaluations = Evaluations { gradients: batches(terms as f64, sample), ..Evaluations::default() };
        let verdict = Verdict::Rejected;
        StepRecord { verdict, evaluations, ..StepRecord::plain(self.k, f64::NAN, f64::NAN, 0.0, 0.0) }
    }
}

impl<F: Objective<Point: Elementwise>> Method<F> for AutoNewton<F::Point> {
    type State = AutoNewtonState<F::Point>;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        (self.newton, self.scratch, self.space) = (model(), Scratch::default(), None);
        self.auto.prepare(f, x)
    }
    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        let newton = TrustRegionState { x: x.clone(), radius: 0.0, k: 0, memory: NewtonMemory::default() };
        Ok(AutoNewtonState {
            auto: self.auto.init(f, x)?,
            newton,
            terms: FIRST_TERMS,
            saved: 0.0,
            race: Race::new(),
            k: 0,
        })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let due = match state.race.runner() {
            Leader::First => 0.0,
            Leader::Second => state.price() * f.terms() as f64,
        };
        if state.saved < due.min(0.0) || state.saved + (sample.len() as f64) < due {
            state.saved += sample.len() as f64;
            state.k += 1;
            return Ok(StepRecord::skipped(state.k - 1));
        }
        // The state changes between evaluations, so the step changes a copy.
        let mut next = state.clone();
        let record = match state.race.runner() {
            Leader::First => self.first_order_step(f, &mut next, sample)?,
            Leader::Second => self.second_order_step(f, &mut next, sample),
        };
        next.k += 1;
        *state = next;
        Ok(StepRecord { k: state.k - 1, ..record })
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        Ok(measure(f, state.point()))
    }
}

impl<V: Elementwise> AutoNewton<V> {
    /// A step of [`Auto`]. Some time before a race, and at the end of its part of it, f is measured.
    fn first_order_step<F: Objective<Point = V>>(
        &mut self,
        f: &mut F,
        state: &mut AutoNewtonState<V>,
        sample: &Sample,
    ) -> Result<StepRecord, Error> {
        if state.race.begins() {
            state.auto.move_to(&state.newton.x);
        }
        let mut record = self.auto.step(f, &mut state.auto, sample)?;
        let passes = sample.len() as f64 / f.terms() as f64;
        if state.race.spend(passes * record.evaluations.price() / 4.0, None, self.config.share) {
            let space = self.space.get_or_insert_with(|| AllTermsSpace::like(&state.auto.x));
            let value = AllTerms { f, curvature: None, space }.value(&state.auto.x, sample).value;
            state.saved -= MEASUREMENT * f.terms() as f64;
            record.evaluations.values += batches(f.terms() as f64, sample);
            state.race.measured(value);
        }
        Ok(record)
    }

    /// A trust-region step on the full sum, in place of the samples of its price.
    fn second_order_step<F: Objective<Point = V>>(
        &mut self,
        f: &mut F,
        state: &mut AutoNewtonState<V>,
        sample: &Sample,
    ) -> StepRecord {
        let n = f.terms();
        let auto = &state.auto;
        let space = self.space.get_or_insert_with(|| AllTermsSpace::like(&auto.x));
        let metric = self.newton.metric(&auto.x);
        let spare = space.spare();
        metric.set_affine(1.0, &auto.root, EPSILON * auto.root.norm_1() / auto.root.dimension() as f64);
        if state.race.begins() {
            state.newton.x.copy_from(&auto.x);
            if state.newton.radius == 0.0 {
                spare.set_sum(&auto.x, -1.0, &auto.start);
                state.newton.radius = spare.weighted_norm_squared(metric).sqrt().max(f64::MIN_POSITIVE);
            }
        }
        self.draw(n, state.terms, sample, state.k);
        self.newton.set_products(state.products());
        let space = self.space.get_or_insert_with(|| AllTermsSpace::like(&state.auto.x));
        let mut full = AllTerms { f, curvature: Some(&self.terms), space };
        let Self { newton, region, scratch, .. } = self;
        let step = trust_region_step(&mut full, region, newton, &mut state.newton, sample, scratch);
        let Ok(mut record) = step else { return state.give_up(n, sample) };

        let Evaluations { values, gradients, products } = record.evaluations;
        let ratio = record.region.as_ref().and_then(|region| region.ratio).unwrap_or(f64::NEG_INFINITY);
        let value = match record.verdict {
            Verdict::Accepted => record.region.as_ref().and_then(|region| region.trial).unwrap_or(record.value),
            _ => record.value,
        };
        if ratio < GOOD {
            state.terms = (2.0 * state.terms).min(1.0);
        }
        record.evaluations = Evaluations {
            values: values * batches(n as f64, sample),
            gradients: gradients * batches(n as f64, sample),
            products: products * batches(self.terms.len() as f64, sample),
        };
        let passes = record.evaluations.price() / 4.0 * sample.len() as f64 / n as f64;
        state.saved += sample.len() as f64 - passes * n as f64;
        let led = state.race.leader == Leader::Second;
        if state.race.spend(passes, Some((record.value, value)), self.config.share) {
            state.race.measured(value);
        } else if led && state.race.leader == Leader::First {
            state.auto.move_to(&state.newton.x);
        }
        record
    }

    /// Draws the terms of the products.
    fn draw(&mut self, n: usize, share: f64, sample: &Sample, k: u64) {
        let some = ((share * n as f64).ceil() as usize).max(sample.len()).min(n);
        if some == n {
            self.terms.set_terms_of(sample, 0..n);
        } else {
            let mut random = generator(sample.quiet_seed().unwrap_or(k), u64::MAX - 1);
            self.terms.set_terms_of(sample, (0..some).map(|_| below(n, &mut random)));
        }
    }
}

fn model<V>() -> Newton<V> {
    Newton::new(ProductKind::GaussNewton, LEAST_PRODUCTS, FORCING, 0, RETREATS).adaptive()
}

/// So many evaluations of one term, in mini-batches.
fn batches(terms: f64, sample: &Sample) -> u64 {
    (terms / sample.len() as f64).ceil() as u64
}
