//! The multipliers of rows that are known on mini-batches only, from a few numbers of each step.

use crate::{
    expectation::IndexedRow,
    vector::{Elementwise, Vector},
};

// These are not settings. docs/constraints.md has the reasons.
/// Means are over about the last quarter of the values: 1 over this.
const QUARTER: f64 = 4.0;
/// The margin of the loop. It sees a violation one step late, so it would oscillate at twice the gain: the gain margin is
/// 2 and the phase margin 47°, the usual ones of a controller.
const MARGIN: f64 = 0.5;
/// A multiplier is at most this multiple of the one that balances the largest force of f.
const MOST: f64 = 3.0;
/// A row may become active, and needs its slope, within this many deviations of its bound.
const NEAR: f64 = 2.0;

/// A mean over about the last quarter of the values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RecentMean {
    pub(crate) mean: f64,
    pub(crate) count: u64,
}
crate::saved!([] RecentMean { mean, count });

impl RecentMean {
    fn learn(&mut self, value: f64) {
        self.count += 1;
        self.mean += (QUARTER / (self.count as f64 + QUARTER - 1.0)).min(1.0) * (value - self.mean);
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
    /// c at z on the last of them.
    pub(crate) value: f64,
    /// The last slope J.
    pub(crate) slope: V,
    /// Samples whose slope was measured.
    pub(crate) slopes: u64,
    /// s², the noise of c: ½(c − c_last)².
    pub(crate) noise: RecentMean,
    /// (w/a)², the noise that f brings to c in a step: ½(J_last·D⁻¹(g − g_last))².
    pub(crate) walk: RecentMean,
    /// J_last·D⁻¹Jⱼ for each row j.
    pub(crate) products: Vec<RecentMean>,
}
crate::saved!([V: Vector] RowMemory<V> { multiplier, next, known, value, slope: vector, slopes, noise, walk, products });

impl<V: Vector> RowMemory<V> {
    pub fn new(x: &V, rows: usize) -> Self {
        Self {
            multiplier: 0.0,
            next: 0.0,
            known: 0,
            value: 0.0,
            slope: x.zeros_like(),
            slopes: 0,
            noise: RecentMean::default(),
            walk: RecentMean::default(),
            products: vec![RecentMean::default(); rows],
        }
    }
    /// Whether the next step needs the slope: the row has a multiplier, or may need one.
    pub fn is_in_play(&self, row: &IndexedRow) -> bool {
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
    /// z − y before the step.
    pub ahead: &'a V,
    /// The gradient of f.
    pub gradient: &'a V,
    /// The gradient of f in the step before; `None` in the first step.
    pub last: Option<&'a V>,
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
    [change, scaled]: [&mut V; 2],
) {
    let MeasuredStep { values, wanted, slopes, ahead, gradient, last, metric, size } = step;
    let m = rows.len();
    let has_slope: Vec<bool> = (0..m).map(|i| wanted[i] && values[i].is_some()).collect();
    scaled.set_quotient(gradient, metric);
    force.learn(gradient.dot(scaled));
    if let Some(last) = last {
        change.set_sum(gradient, -1.0, last);
        scaled.set_quotient(change, metric);
        for (row, _) in memory.iter_mut().zip(&has_slope).filter(|(row, has_slope)| **has_slope && row.slopes > 0) {
            let walk = row.slope.dot(scaled);
            row.walk.learn(0.5 * walk * walk);
        }
    }
    for j in (0..m).filter(|&j| has_slope[j]) {
        scaled.set_quotient(&slopes[j], metric);
        for (row, _) in memory.iter_mut().zip(&has_slope).filter(|(row, has_slope)| row.slopes > 0 && (**has_slope || row.next != 0.0)) {
            let product = row.slope.dot(scaled);
            row.products[j].learn(product);
        }
    }
    for i in 0..m {
        let Some(value) = values[i] else { continue };
        let memory = &mut memory[i];
        let value = if has_slope[i] { value + slopes[i].dot(ahead) } else { value };
        if memory.known > 0 {
            memory.noise.learn(0.5 * (value - memory.value).powi(2));
        }
        memory.value = value;
        memory.known += 1;
        if has_slope[i] {
            std::mem::swap(&mut memory.slope, &mut slopes[i]);
            memory.slopes += 1;
        }
    }
    // Rows push each other: the sum over those in play bounds the largest eigenvalue of the products (Gershgorin).
    let in_play: Vec<bool> = (0..m).map(|i| memory[i].is_in_play(&rows[i])).collect();
    for i in (0..m).filter(|&i| values[i].is_some()) {
        let curvature: f64 = (0..m).filter(|&j| j == i || in_play[j]).map(|j| memory[i].products[j].mean.abs()).sum();
        memory[i].control(&rows[i], curvature, force, size);
    }
}

impl<V> RowMemory<V> {
    /// μ in the next step, after so many: divided by the share of the samples that know the row, which stand for all.
    pub fn force(&self, steps: u64) -> f64 {
        if self.next == 0.0 { 0.0 } else { self.next * steps as f64 / self.known as f64 }
    }
    /// Sets μ for the next step and λ. `curvature` is the change of c for a multiplier 1, in multiples of a.
    fn control(&mut self, row: &IndexedRow, curvature: f64, force: &RecentMean, size: f64) {
        // A sample that knows the row stands for all between it and the last such one.
        let share = self.known as f64 / force.count as f64;
        let moved = size * curvature / share;
        if !(moved > 0.0 && moved.is_finite()) {
            return;
        }
        let walk = size * size * self.walk.mean / share;
        let noise = 4.0 * self.noise.mean;
        // Half of 2/(1 + √(1 + 4s²/w²)), the steady gain of a Kalman filter of a walk with steps w seen with noise s.
        let gain = if noise > 0.0 { 2.0 * MARGIN / (1.0 + (1.0 + noise / walk).sqrt()) } else { MARGIN } / moved;
        let most = MOST * (force.mean / curvature).sqrt();
        let bounded = |multiplier: f64| multiplier.clamp(-most, most);
        self.next = bounded(toward(self.multiplier, gain, self.value, row));
        let slow = QUARTER / (self.known as f64 + QUARTER) * gain;
        self.multiplier = bounded(toward(self.multiplier, slow, self.value, row));
    }
}
