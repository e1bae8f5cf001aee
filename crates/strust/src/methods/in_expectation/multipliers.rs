//! The multipliers of rows that are known on mini-batches only, from a few numbers of each step.

use crate::{
    expectation::IndexedRow,
    vector::{Elementwise, Vector},
};
use faer::{Mat, Side, linalg::solvers::DenseSolveCore};

// These are not settings. docs/how/expectation.md has the reasons.
/// Means are over about the last quarter of the values: 1 over this.
const QUARTER: f64 = 4.0;
/// The integral's share of the gain, in multiples of ρ: with it, the loop is critically damped.
const INTEGRAL: f64 = 0.25;
/// A multiplier is at most this multiple of the one that balances the largest force of f.
const MOST: f64 = 3.0;
/// A row may become active, and needs its slope, within this many deviations of its bound.
const NEAR: f64 = 2.0;

/// A mean over about the last quarter of the values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RecentMean {
    /// The mean.
    pub(crate) mean: f64,
    /// The number of values.
    pub(crate) count: u64,
}
crate::saved!([] RecentMean { mean, count });

/// The weight of the n-th value in such a mean.
fn share(count: u64) -> f64 {
    QUARTER / (count as f64 + QUARTER - 1.0)
}

impl RecentMean {
    fn learn(&mut self, value: f64) {
        self.count += 1;
        self.mean += share(self.count) * (value - self.mean);
    }
}

/// What the steps have learned about a row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowMemory<V> {
    /// λ, the multiplier with a memory.
    pub(crate) multiplier: f64,
    /// μ, the multiplier of the next step.
    pub(crate) next: f64,
    /// Samples that knew the row.
    pub(crate) known: u64,
    /// c at y on the last of them.
    pub(crate) value: f64,
    /// What the last of them predicts for c at z after its step, to first order.
    pub(crate) predicted: f64,
    /// How far c moves between two samples that know the row: v − e_last.
    pub(crate) drift: RecentMean,
    /// The mean of μ.
    pub(crate) mean: RecentMean,
    /// J̄, the mean of the slopes J.
    pub(crate) slope: V,
    /// Samples whose slope was measured.
    pub(crate) slopes: u64,
    /// s², the noise of c: ½(c − what the step before predicted)².
    pub(crate) noise: RecentMean,
    /// (w/a)², how far a step moves c with the multipliers λ: (J̄·D⁻¹(g + Σλⱼ·Jⱼ))².
    pub(crate) walk: RecentMean,
    /// J̄·D⁻¹Jⱼ for each row j.
    pub(crate) products: Vec<RecentMean>,
    /// J·D⁻¹J of one sample, with its noise.
    pub(crate) square: RecentMean,
}
crate::saved!([V: Vector] RowMemory<V> { multiplier, next, known, value, predicted, drift, mean, slope: vector, slopes, noise, walk, products, square });

impl<V: Vector> RowMemory<V> {
    pub(super) fn new(x: &V, rows: usize) -> Self {
        Self {
            multiplier: 0.0,
            next: 0.0,
            known: 0,
            value: 0.0,
            predicted: 0.0,
            drift: RecentMean::default(),
            mean: RecentMean::default(),
            slope: x.zeros_like(),
            slopes: 0,
            noise: RecentMean::default(),
            walk: RecentMean::default(),
            products: vec![RecentMean::default(); rows],
            square: RecentMean::default(),
        }
    }
    /// Whether the next step needs the slope: the row has a multiplier, or may need one.
    pub(super) fn is_in_play(&self, row: &IndexedRow) -> bool {
        let near = NEAR * self.noise.mean.sqrt();
        let is_near = self.value > row.upper - near || self.value < row.lower + near;
        self.next != 0.0 || self.multiplier != 0.0 || self.noise.count == 0 || is_near
    }
}

/// λ + gain·(the violation) for an equation; between the bounds λ goes back to 0, and does not change its sign.
fn toward(multiplier: f64, gain: f64, value: f64, row: &IndexedRow) -> f64 {
    if !(gain > 0.0 && gain.is_finite()) {
        return multiplier;
    }
    let moved = multiplier + gain * value;
    moved - moved.clamp(gain * row.lower, gain * row.upper)
}

/// What a step has measured on its sample.
pub struct MeasuredStep<'a, V> {
    /// Each row that the sample knows, at y.
    pub values: &'a [Option<f64>],
    /// The rows whose slopes are measured.
    pub wanted: &'a [bool],
    pub slopes: &'a mut [V],
    /// z − y before the step, and after it.
    pub ahead: [&'a V; 2],
    /// The gradient of f; scratch space afterwards.
    pub gradient: &'a mut V,
    /// D.
    pub metric: &'a V,
    /// a.
    pub size: f64,
}

/// Learns from a step, and sets the multipliers of the next one.
pub fn learn<V: Elementwise>(
    memory: &mut [RowMemory<V>],
    force: &mut RecentMean,
    rows: &[IndexedRow],
    step: MeasuredStep<'_, V>,
    scaled: &mut V,
) {
    let MeasuredStep { values, wanted, slopes, ahead, gradient, metric, size } = step;
    let m = rows.len();
    let has_slope: Vec<bool> = (0..m).map(|i| wanted[i] && values[i].is_some()).collect();
    scaled.set_quotient(gradient, metric);
    let strength = gradient.dot(scaled);
    // The force that the multipliers without their last corrections leave.
    for j in (0..m).filter(|&j| has_slope[j]) {
        gradient.add(memory[j].in_sample(memory[j].multiplier, force.count), &slopes[j]);
    }
    scaled.set_quotient(gradient, metric);
    for (row, _) in memory.iter_mut().zip(&has_slope).filter(|(row, has_slope)| **has_slope && row.slopes > 0) {
        row.walk.learn(row.slope.dot(scaled).powi(2));
    }
    for j in (0..m).filter(|&j| has_slope[j]) {
        scaled.set_quotient(&slopes[j], metric);
        memory[j].square.learn(slopes[j].dot(scaled));
        for (row, _) in memory
            .iter_mut()
            .zip(&has_slope)
            .filter(|(row, has_slope)| row.slopes > 0 && (**has_slope || row.next != 0.0))
        {
            let product = row.slope.dot(scaled);
            row.products[j].learn(product);
        }
    }
    force.learn(strength);
    for i in 0..m {
        let Some(value) = values[i] else { continue };
        let memory = &mut memory[i];
        // The mean slope is independent of the sample, and the step on the sample is not. So this is c at z without bias, also
        // after the step.
        let has_mean = has_slope[i] && memory.slopes > 0;
        let [before, after] = ahead.map(|ahead| if has_mean { value + memory.slope.dot(ahead) } else { value });
        if memory.known > 0 {
            let moved = before - memory.predicted;
            memory.drift.learn(moved);
            memory.noise.learn(0.5 * moved * moved);
        }
        (memory.value, memory.predicted) = (value, after);
        memory.known += 1;
        if has_slope[i] {
            memory.slopes += 1;
            let share = share(memory.slopes);
            memory.slope.scale_add(1.0 - share, share, &slopes[i]);
        }
    }
    let own: Vec<f64> = (0..m).map(|i| memory[i].own_product(i)).collect();
    let in_play: Vec<usize> = (0..m).filter(|&i| own[i] > 0.0 && memory[i].is_in_play(&rows[i])).collect();
    // In units in which each own product is 1.
    let cosine = |i: usize, j: usize| memory[i].products[j].mean / (own[i].sqrt() * own[j].sqrt());
    // Rows push each other: the sum bounds the largest eigenvalue (Gershgorin).
    let pushed = |i: usize| 1.0 + in_play.iter().filter(|&&j| j != i).map(|&j| cosine(i, j).abs()).sum::<f64>();
    let pushes: Vec<f64> = (0..m).map(pushed).collect();
    let mut most: Vec<f64> = own.iter().map(|own| force.mean / own).collect();
    let longest = inverse_diagonal(in_play.len(), |i, j| {
        let (i, j) = (in_play[i], in_play[j]);
        (0.5 * (cosine(i, j) + cosine(j, i)), error(memory[i].products[i].count.min(memory[j].products[j].count)))
    });
    for (&i, longest) in in_play.iter().zip(longest) {
        most[i] *= longest;
    }
    for i in (0..m).filter(|&i| values[i].is_some()) {
        memory[i].control(&rows[i], own[i] * pushes[i], force, size, most[i]);
    }
}

/// The relative error of a mean of so many products of noisy slopes.
fn error(count: u64) -> f64 {
    (QUARTER / count as f64).sqrt().min(1.0)
}

/// The diagonal of the inverse of a matrix of cosines, of which each is known with an error: 1 for a row that is orthogonal
/// to the others, large for one that they nearly span.
fn inverse_diagonal(rows: usize, cosine: impl Fn(usize, usize) -> (f64, f64)) -> Vec<f64> {
    let ridge = (0..rows).map(|i| cosine(i, i).1).fold(0.0, f64::max);
    let ridged = |i, j| if i == j { 1.0 } else { cosine(i, j).0.clamp(-1.0, 1.0) / (1.0 + ridge) };
    let inverse = Mat::from_fn(rows, rows, ridged).llt(Side::Lower).map(|factor| factor.inverse());
    let most = 1.0 + ridge.recip(); // of a matrix with this ridge
    (0..rows).map(|i| inverse.as_ref().map_or(most, |inverse| inverse[(i, i)].clamp(1.0, most))).collect()
}

impl<V> RowMemory<V> {
    /// A multiplier in a sample that knows the row, which stands for all between it and the last such one.
    fn in_sample(&self, multiplier: f64, steps: u64) -> f64 {
        if multiplier == 0.0 || self.known == 0 { multiplier } else { multiplier * steps as f64 / self.known as f64 }
    }
    /// The factor of the row in the next sample that knows it, after so many steps.
    pub(super) fn force(&self, steps: u64) -> f64 {
        self.in_sample(self.next, steps)
    }
    /// J·D⁻¹J without the noise of J, but at least its error: few products of noisy slopes may be 0 in the mean.
    fn own_product(&self, own: usize) -> f64 {
        let RecentMean { mean, count } = self.products[own];
        mean.max(self.square.mean * error(count))
    }
    /// Pulls x towards the row where f does not pull at all, so that it shows neither a metric nor a scale. Any μ will do.
    pub(super) fn pull(&mut self, value: f64, row: &IndexedRow) {
        self.value = value;
        self.next = f64::from(u8::from(value > row.upper)) - f64::from(u8::from(value < row.lower));
    }
    /// Sets μ for the next step, and λ. `curvature` is the change of c for a multiplier 1, in multiples of a; `most` is the
    /// square of the largest multiplier that balances f.
    fn control(&mut self, row: &IndexedRow, curvature: f64, force: &RecentMean, size: f64, most: f64) {
        let share = self.known as f64 / force.count as f64;
        let moved = size * curvature / share;
        if !(moved > 0.0 && moved.is_finite()) {
            return;
        }
        let (noise, walk) = (self.noise.mean, size * size * self.walk.mean / share);
        // ρ is the steady gain of a Kalman filter of a walk with steps w that is seen with noise s.
        let rho = if noise > 0.0 { 2.0 / (1.0 + (1.0 + 4.0 * noise / walk).sqrt()) } else { 1.0 };
        // Only samples that know the row bring c back. Just after them it is e, then it drifts away until the next one, which
        // comes at a random time and so finds the mean of c over time.
        let value = self.predicted + self.drift.mean;
        // Without a force there is nothing to balance.
        let most = if most > 0.0 { MOST * most.sqrt() } else { f64::INFINITY };
        let moved_to = |multiplier, gain| toward(multiplier, gain, value, row).clamp(-most, most);
        let next = moved_to(self.multiplier, rho / moved);
        self.multiplier = moved_to(self.multiplier, INTEGRAL * rho * rho / moved);
        self.next = next;
        self.mean.learn(next);
    }
}
