//! The step on a mini-batch: the curvature is one number, noise shortens the step, and the answer is an average on the
//! constraints.

use super::{
    StrSqp, StrSqpState,
    constants::{FACTOR, LATEST, NEGLIGIBLE, POWER, RESTORE, SMALL},
    linear::{Linearized, LocalProducts, Proposal},
    memory::LagrangianCurvature,
    scaled::ScaledRows,
    turn::Turn,
};
use crate::{
    Error,
    constraints::Constraint,
    methods::{
        controller::{Follow, Learned, TrialNumbers},
        evaluate,
    },
    objective::{Evaluations, Objective},
    radius::Verdict,
    record::StepRecord,
    sample::Sample,
    vector::Vector,
};

/// Its rules differ from those of `Auto`. The steps are not averaged by momentum, so none is longer than the model's minimum
/// 1/κ, and noise shortens all of them to q·r̄/√(k·n). Runs are short, and the curvature at the start is a guess, so it is
/// forgotten fast.
const FOLLOW: Follow = Follow::Shares { upwards: 0.2, downwards: 0.1 };
/// q
const NOISE: f64 = 0.5;

fn longest_against_noise(learned: &Learned) -> f64 {
    let (k, noise) = (learned.accepted as f64, learned.noise.mean);
    if k >= 1.0 && noise > 0.0 { NOISE * learned.distance.sqrt() / ((k + 1.0) * noise).sqrt() } else { f64::INFINITY }
}

/// What the steps on mini-batches have learned.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchMemory<V> {
    /// z, where steps are made. The answer x is their average.
    pub(crate) iterate: V,
    /// The first nearly feasible iterate.
    pub(crate) origin: V,
    /// The last projected gradient g + Aᵀy.
    pub(crate) projected: V,
    /// What decides the size of a step. It counts the steps in the average, κ is the curvature of the Lagrangian along the
    /// steps, n the noise of the projected gradients, and r̄ the largest distance from the origin.
    pub(crate) learned: Learned,
    /// Steps since noise last shortened one.
    pub(crate) calm: u64,
    /// The logarithm of the noise, as means over the last few steps and over some more.
    pub(crate) levels: (f64, f64),
    /// For each row, how often it was active, with the weights of the average.
    pub(crate) active: Vec<f64>,
    /// Who makes the passes over the data.
    pub(crate) turn: Turn,
}
crate::saved!([V: Vector] BatchMemory<V> { iterate: vector, origin: vector, projected: vector, learned, calm, levels, active, turn });

impl<V: Vector> BatchMemory<V> {
    /// At a start, with this many rows and bounds.
    fn new(x: &V, rows: usize) -> Self {
        Self {
            iterate: x.clone(),
            origin: x.clone(),
            projected: x.zeros_like(),
            learned: Learned::default(),
            calm: 0,
            levels: (0.0, 0.0),
            active: vec![0.0; rows],
            turn: Turn::default(),
        }
    }
}

impl<C: Constraint> StrSqp<C> {
    /// One step on a sample of some terms.
    pub(in crate::methods) fn step_on_batch<F: Objective<Point = C::Point>>(
        &mut self,
        f: &mut F,
        state: &mut StrSqpState<F::Point>,
        sample: &Sample,
        g: &mut F::Point,
    ) -> Result<StepRecord, Error> {
        // The state changes only after the last evaluation of f and of the constraint.
        let scaled = ScaledRows::new(&mut self.constraint, &state.weights);
        let first = state.batch.is_none().then(|| BatchMemory::new(&state.x, scaled.len()));
        let Some(batch) = state.batch.as_ref().or(first.as_ref()) else { unreachable!("one of both is there") };
        let z = &batch.iterate;
        let (f0, squared_norm) = evaluate(f, z, sample, g, state.k)?;
        let gradient_norm = squared_norm.sqrt();
        let linear = Linearized::new(&scaled, z, scaled.residual(z), NEGLIGIBLE, false);
        let violation = linear.violation();
        let sizes = state.sizes(gradient_norm, z.norm(), violation);
        let length = sizes.1;
        let mut penalty = if state.penalty == 0.0 { gradient_norm } else { state.penalty };
        let mut learned = batch.learned;
        let guess = gradient_norm.max(f64::MIN_POSITIVE) / (SMALL * length);
        let known = *learned.curvature.get_or_insert(guess);
        let a = learned.next_size(1.0, longest_against_noise(&learned)).unwrap_or(known.recip());
        let is_shortened = learned.next_size(1.0, f64::INFINITY).is_some_and(|longest| a < longest);
        let calm = if is_shortened { 0 } else { batch.calm + 1 };
        let curvature = LagrangianCurvature::new(a.recip());
        let products = LocalProducts::new(&linear, &curvature, g, state.scaled_multipliers(&scaled));
        let model = products.model(0.0);
        let mut step = model.steer(&mut penalty);
        let mut x = z.zeros_like();
        scaled.set_trial(z, &step.p, &step.y, &mut x);
        // The correction for the rows' curvature costs no data.
        if !linear.is_empty() {
            let c = scaled.residual(&x);
            if c.iter().all(|c| c.is_finite()) {
                step = model.correct(&c, &step.p, penalty);
                scaled.set_trial(z, &step.p, &step.y, &mut x);
            }
        }
        drop(model);
        drop(products);
        let f1 = f.value(&x, sample).value;
        let c = scaled.residual(&x);
        let Proposal { p: mut moved, y, .. } = step;
        if !scaled.bounds.is_empty() {
            moved.set_sum(&x, -1.0, z);
        }
        let beyond = f1 - f0.value - g.dot(&moved) + linear.beyond(&c, &y, &moved);
        let square = moved.norm_squared();
        let merit = |f: f64, violation: f64| f + penalty * violation;
        // A step whose effect is lost in rounding does no harm.
        let descends = merit(f1, scaled.violation(&c)) <= merit(f0.value, violation) + f0.rounding
            || beyond.abs() <= 2.0 * f0.rounding;
        let trial = TrialNumbers { descends, beyond, rounding: f0.rounding, square };
        let accepted = f1.is_finite() && learned.judge(FOLLOW, &trial);
        let record = StepRecord {
            verdict: if accepted { Verdict::Accepted } else { Verdict::Rejected },
            constraint_norm: Some(violation),
            evaluations: Evaluations { values: 1, gradients: 1, products: 0 },
            ..StepRecord::plain(state.k, f0.value, gradient_norm, a, square.sqrt())
        };
        let mut average = None;
        if accepted {
            linear.add_transposed(&y, g);
            // From here on an iterate is nearly feasible: the average and the distance begin.
            if violation <= SMALL * SMALL * length {
                let iterate = NewIterate { x: &x, y: &y, projected: g, length, calm };
                average = Some(NewAverage::with(&iterate, state, batch, &scaled, &mut moved));
            }
        }
        drop(linear);

        // B has learned from the full sum only.
        (state.last, state.largest, state.penalty) = (None, sizes, penalty);
        if accepted {
            state.set_multipliers(&scaled, average.as_ref().map_or(&y, |average| &average.multipliers));
        }
        let Some(mut batch) = state.batch.take().or(first) else { unreachable!("one of both is there") };
        if accepted {
            if let Some(average) = average {
                state.x = average.x;
                learned.accept(&average.measured, a, 0.0);
                (batch.levels, batch.active) = (average.levels, average.active);
            } else {
                batch.origin.copy_from(&x);
                state.x.copy_from(&x);
            }
            learned.size = Some(a);
            batch.projected.copy_from(g);
            batch.iterate = x;
        } else {
            learned.reject(a);
        }
        (batch.learned, batch.calm) = (learned, calm);
        state.batch = Some(batch);
        state.k += 1;
        Ok(record)
    }
}

/// A nearly feasible iterate with its multipliers and its projected gradient.
struct NewIterate<'a, V> {
    x: &'a V,
    y: &'a [f64],
    projected: &'a V,
    /// A length that x has.
    length: f64,
    /// Steps since noise last shortened one.
    calm: u64,
}

/// The average with one more iterate, and what it learns from that.
struct NewAverage<V> {
    x: V,
    multipliers: Vec<f64>,
    active: Vec<f64>,
    measured: Learned,
    levels: (f64, f64),
}

impl<V: Vector> NewAverage<V> {
    /// Adds an iterate to the average, and moves the average back onto the active constraints.
    fn with<C: Constraint<Point = V>>(
        iterate: &NewIterate<'_, V>,
        state: &StrSqpState<V>,
        batch: &BatchMemory<V>,
        scaled: &ScaledRows<C>,
        scratch: &mut V,
    ) -> Self {
        let BatchMemory { learned, mut levels, .. } = *batch;
        let averaged = learned.accepted;
        scratch.set_sum(iterate.projected, -1.0, &batch.projected);
        let difference = 0.5 * scratch.norm_squared();
        if averaged > 0 {
            let level = difference.max(f64::MIN_POSITIVE).ln();
            let toward = |mean: f64, steps: f64| mean + (level - mean) / steps.min(averaged as f64);
            levels = (toward(levels.0, LATEST), toward(levels.1, FACTOR * LATEST));
        }
        scratch.set_sum(iterate.x, -1.0, &batch.origin);
        let mut measured = learned.with_measured(scratch.norm_squared(), difference);
        if iterate.calm > averaged / 4 && levels.0 < levels.1 - FACTOR {
            // Where the noise vanishes, the last iterate is better than any average.
            measured.noise.remembered /= 2.0;
        }
        let share = measured.noise.share(POWER);
        let mut x = state.x.clone();
        x.scale_add(1.0 - share, share, iterate.x);
        let mut active = batch.active.clone();
        for (active, y) in active.iter_mut().zip(iterate.y) {
            *active += share * (f64::from(u8::from(*y != 0.0)) - *active);
        }
        let mut multipliers = state.scaled_multipliers(scaled);
        multipliers.iter_mut().zip(iterate.y).for_each(|(old, y)| *old += share * (y - *old));
        restore(&mut x, scaled, &active, iterate.length);
        Self { x, multipliers, active, measured, levels }
    }
}

/// Moves x back onto the active constraints.
pub(super) fn restore<C: Constraint>(x: &mut C::Point, scaled: &ScaledRows<C>, active: &[f64], length: f64) {
    for _ in 0..RESTORE {
        let c = scaled.residual(x);
        if scaled.violation(&c) <= C::Point::EPSILON * length {
            break;
        }
        let excess = Linearized::new(scaled, x, c, NEGLIGIBLE, false).excess(active);
        x.add(-1.0, &excess);
        scaled.clip(x);
    }
}
