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
    methods::{Noise, evaluate},
    objective::{Evaluations, Objective},
    radius::Verdict,
    record::StepRecord,
    sample::Sample,
    vector::Vector,
};

/// Length of a step against noise, in multiples of r̄/√(k·n): the best fixed length of k steps in theory.
const NOISE: f64 = 0.5;
/// A trial that increases the merit is accepted if its curvature is at most this multiple of κ.
const TOLERANCE: f64 = 3.0;
/// κ grows at most by this factor at once.
const MOST: f64 = 10.0;
/// κ falls at most by this factor in a step.
const FALL: f64 = 0.9;
/// What the steps on mini-batches have learned.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchMemory<V> {
    /// z, where steps are made. The answer x is their average.
    pub iterate: V,
    /// The first nearly feasible iterate.
    pub origin: V,
    /// The last projected gradient g + Aᵀy.
    pub projected: V,
    /// κ, the curvature of the Lagrangian along the steps.
    pub curvature: f64,
    /// n, the noise of the projected gradients, and the number of steps that the average remembers.
    pub noise: Noise,
    /// r̄, the largest distance from the origin.
    pub distance: f64,
    /// Steps in the average.
    pub averaged: u64,
    /// Steps since noise last shortened one.
    pub calm: u64,
    /// The logarithm of the noise, as means over the last few steps and over some more.
    pub levels: (f64, f64),
    /// For each row, how often it was active, with the weights of the average.
    pub active: Vec<f64>,
    /// Who makes the passes over the data.
    pub turn: Turn,
}
crate::saved!([V: Vector] BatchMemory<V> { iterate: vector, origin: vector, projected: vector, curvature, noise, distance, averaged, calm, levels, active, turn });

impl<V: Vector> BatchMemory<V> {
    /// At a start, with this many rows and bounds.
    fn new(x: &V, rows: usize) -> Self {
        Self {
            iterate: x.clone(),
            origin: x.clone(),
            projected: x.zeros_like(),
            curvature: 0.0,
            noise: Noise::default(),
            distance: 0.0,
            averaged: 0,
            calm: 0,
            levels: (0.0, 0.0),
            active: vec![0.0; rows],
            turn: Turn::default(),
        }
    }
}

impl<C: Constraint> StrSqp<C> {
    /// One step on a sample of some terms.
    pub(super) fn step_on_batch<F: Objective<Point = C::Point>>(
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
        let linear = Linearized::at(&scaled, z, NEGLIGIBLE);
        let violation = linear.violation();
        let sizes = state.sizes(gradient_norm, z.norm(), violation);
        let length = sizes.1;
        let kappa = match batch.curvature {
            0.0 => gradient_norm.max(f64::MIN_POSITIVE) / (SMALL * length),
            known => known,
        };
        let mut penalty = if state.penalty == 0.0 { gradient_norm } else { state.penalty };
        let against_noise = if batch.distance > 0.0 {
            (batch.averaged as f64 * batch.noise.mean).sqrt() / (NOISE * batch.distance)
        } else {
            0.0
        };
        let stiff = kappa.max(against_noise);
        let calm = if against_noise < kappa { batch.calm + 1 } else { 0 };
        let curvature = LagrangianCurvature::new(stiff);
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
        let seen = if square > 0.0 && beyond.abs() > 2.0 * f0.rounding { 2.0 * beyond / square } else { kappa };
        let descends = f1 + penalty * scaled.violation(&c) <= f0.value + penalty * violation + f0.rounding;
        let accepted = f1.is_finite() && seen.is_finite() && (descends || seen <= TOLERANCE * stiff);
        let learned = if seen.is_finite() { seen.clamp(FALL * kappa, MOST * kappa) } else { MOST * kappa };
        let record = StepRecord {
            verdict: if accepted { Verdict::Accepted } else { Verdict::Rejected },
            constraint_norm: Some(violation),
            evaluations: Evaluations { values: 1, gradients: 1, products: 0 },
            ..StepRecord::plain(state.k, f0.value, gradient_norm, stiff.recip(), square.sqrt())
        };
        let mut average = None;
        if accepted {
            linear.add_pull(&y, g);
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
        (batch.curvature, batch.calm) = (learned, calm);
        if accepted {
            if let Some(average) = average {
                state.x = average.x;
                (batch.noise, batch.levels, batch.distance) = (average.noise, average.levels, average.distance);
                (batch.active, batch.averaged) = (average.active, batch.averaged + 1);
            } else {
                batch.origin.copy_from(&x);
                state.x.copy_from(&x);
            }
            batch.projected.copy_from(g);
            batch.iterate = x;
        }
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
    noise: Noise,
    levels: (f64, f64),
    distance: f64,
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
        let BatchMemory { mut noise, mut levels, averaged, .. } = *batch;
        if averaged > 0 {
            scratch.set_sum(iterate.projected, -1.0, &batch.projected);
            let difference = 0.5 * scratch.norm_squared();
            noise.hear(averaged, difference);
            let level = difference.max(f64::MIN_POSITIVE).ln();
            let toward = |mean: f64, steps: f64| mean + (level - mean) / steps.min(averaged as f64);
            levels = (toward(levels.0, LATEST), toward(levels.1, FACTOR * LATEST));
        }
        scratch.set_sum(iterate.x, -1.0, &batch.origin);
        let distance = batch.distance.max(scratch.norm());
        if iterate.calm > averaged / 4 && levels.0 < levels.1 - FACTOR {
            // Where the noise vanishes, the last iterate is better than any average.
            noise.remembered /= 2.0;
        }
        let share = noise.share(POWER);
        noise.remembered += 1.0;
        let mut x = state.x.clone();
        x.scale_add(1.0 - share, share, iterate.x);
        let mut active = batch.active.clone();
        for (active, y) in active.iter_mut().zip(iterate.y) {
            *active += share * (f64::from(u8::from(*y != 0.0)) - *active);
        }
        let mut multipliers = state.scaled_multipliers(scaled);
        multipliers.iter_mut().zip(iterate.y).for_each(|(old, y)| *old += share * (y - *old));
        restore(&mut x, scaled, &active, iterate.length);
        Self { x, multipliers, active, noise, levels, distance }
    }
}

/// Moves x back onto the active constraints.
pub(super) fn restore<C: Constraint>(x: &mut C::Point, scaled: &ScaledRows<C>, active: &[f64], length: f64) {
    for _ in 0..RESTORE {
        let c = scaled.residual(x);
        if scaled.violation(&c) <= C::Point::EPSILON * length {
            break;
        }
        let excess = Linearized::new(scaled, x, c, NEGLIGIBLE).excess(active);
        x.add(-1.0, &excess);
        scaled.clip(x);
    }
}
