//! ScheduleFree+ (Defazio 2026, arXiv 2605.19095): Schedule-Free AdamW with momentum and a Polyak step size.

use crate::{
    prelude::*,
    schedule_free_sgd::{AverageWeights, warmup},
};
use std::f64::consts::FRAC_PI_2;

config! {
    /// Configuration of [`ScheduleFreePlus`]. The defaults are those of the author's code, `AdamCScheduleFreePlusPaper` in
    /// the repository of the package `schedulefree`. In it, both warm-ups and the annealing are off.
    pub struct ScheduleFreePlusConfig for "schedule-free-plus" {
        /// Factor γ of the Polyak step size.
        pub learning_rate: f64 = 1.0, Number(Range::above(0.0));
        /// Decay β₁ of the mean of gradients.
        pub beta1: f64 = 0.9, Number(Range::from_to(0.0, 1.0));
        /// Decay β₂ of the mean of squared gradients.
        pub beta2: f64 = 0.95, Number(Range::from_to(0.0, 1.0));
        /// Added to the root, ε.
        pub epsilon: f64 = 1e-8, Number(Range::above(0.0));
        /// Decoupled weight decay w, at y, times the square of the step size: 20 to 50 is common.
        pub weight_decay: f64 = 0.0, Number(Range::at_least(0.0));
        /// Where gradients are taken, β: between z (0) and the average x (1).
        pub momentum: f64 = 0.9, Number(Range::open(0.0, 1.0));
        /// The value of β after `anneal_steps`.
        pub last_momentum: f64 = 0.965, Number(Range::open(0.0, 1.0));
        /// Steps in which 1 − β changes to its last value, linearly in the logarithm; 0 keeps β.
        pub anneal_steps: u64 = 0, Whole(Range::closed(0.0, 1e9));
        /// Decay β_p of the mean of the gradients' norms; 0 is the last norm.
        pub norm_decay: f64 = 0.0, Number(Range::from_to(0.0, 1.0));
        /// Steps in which γ grows linearly.
        pub warmup_steps: u64 = 0, Whole(Range::closed(0.0, 1e9));
        /// Steps before the average begins: until then x is z. With a warm-up, its steps once or twice.
        pub average_after: u64 = 0, Whole(Range::closed(0.0, 1e9));
        /// Power r of the weights of the average: step k counts in proportion to (k+1)ʳ.
        pub power: f64 = 0.0, Number(Range::at_least(0.0));
    }
}

/// The three points of [`ScheduleFreeSgd`](crate::ScheduleFreeSgd), with the step of AdamW and a Polyak step size for the
/// lower bound 0. The loss must not be negative.
///
/// ```text
/// y = (1−β)z + βx,  g = ∇f(y)
/// e ← β_p·e + (1−β_p)·√(π/2)‖g‖₁,  ê = e/(1−β_pᵏ⁺¹)
/// α = γ·max(0, f(y) + ⟨g, z − y⟩)/ê
/// m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g∘g,  m̂ = m/(1−β₁ᵏ⁺¹),  v̂ = v/(1−β₂ᵏ⁺¹)
/// z ← z − α²w·y − α·m̂/(√v̂ + ε)
/// x ← (1−c)x + c·z       with the same c, of α; c = 1 in the first steps
/// ```
///
/// f(y) + ⟨g, z − y⟩ is the linear model of f at z. √(π/2)‖g‖₁ is about √d·‖g‖ for a normal g in ℝᵈ.
///
/// ```
/// use strust::prelude::*;
/// use strust_baselines::*;
/// let mut f = from_terms(2, |i, x: &Vec<f64>, g| {
///     g[i] += 2.0 * (x[i] - 3.0);
///     (x[i] - 3.0).powi(2)
/// });
/// let method = ScheduleFreePlus::default();
/// let report = minimize(&mut f).method(method).batch(2).stop(Stop::steps(2000)).start(vec![0.0, 0.0])?;
/// assert!((report.point()[0] - 3.0).abs() < 0.1);
/// # Ok::<(), strust::Error>(())
/// ```
pub type ScheduleFreePlus<V> = Baseline<ScheduleFreePlusConfig, V>;
impl HasRate for ScheduleFreePlusConfig {}

impl ScheduleFreePlusConfig {
    /// β of step k.
    fn momentum_at(&self, k: u64) -> f64 {
        if self.anneal_steps == 0 {
            return self.momentum;
        }
        let share = (k as f64 / self.anneal_steps as f64).min(1.0);
        1.0 - (1.0 - self.momentum).powf(1.0 - share) * (1.0 - self.last_momentum).powf(share)
    }
}

/// State of [`ScheduleFreePlus`].
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleFreePlusState<V> {
    /// x, the average.
    pub x: V,
    /// z.
    pub z: V,
    /// m.
    pub mean: V,
    /// v.
    pub square: V,
    /// e.
    pub norm: f64,
    /// The weights of the average.
    pub weights: AverageWeights,
    /// Steps made.
    pub k: u64,
}
strust::saved!([V: Vector] ScheduleFreePlusState<V> { x: vector, z: vector, mean: vector, square: vector, norm, weights, k });
strust::state!(ScheduleFreePlusState<V>, is_averaged);

impl<F: Objective<Point: Elementwise>> Method<F> for ScheduleFreePlus<F::Point> {
    type State = ScheduleFreePlusState<F::Point>;

    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        let (zero, weights) = (x.zeros_like(), AverageWeights::default());
        Ok(ScheduleFreePlusState { z: x.clone(), mean: zero.clone(), square: zero, x, norm: 0.0, weights, k: 0 })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let c = &*self.config;
        let ScheduleFreePlusState { x, z, mean, square, norm, weights, k } = state;
        // Differs: in the author's code y has the β of the step before, and ⟨g, z − y⟩ that of this step.
        let beta = c.momentum_at(*k);
        let y = scratch(&mut self.scratch.0, x);
        y.copy_from(x);
        y.scale_add(beta, 1.0 - beta, z);
        let g = scratch(&mut self.scratch.1, x);
        let (Evaluation { value, .. }, squared_norm) = evaluate(f, y, sample, g, *k)?;

        let correction = |decay: f64| 1.0 - decay.powf((*k + 1) as f64);
        *norm = c.norm_decay * *norm + (1.0 - c.norm_decay) * FRAC_PI_2.sqrt() * g.norm_1();
        // z − y is β(z − x).
        let step = y;
        step.set_sum(z, -1.0, x);
        let at_z = (value + beta * g.dot(step)).max(0.0);
        let gamma = c.learning_rate * self.schedule.factor(*k) * warmup(c.warmup_steps, *k);
        // Where the gradient is 0 there is no step.
        let alpha = if *norm > 0.0 { gamma * at_z * correction(c.norm_decay) / *norm } else { 0.0 };
        mean.scale_add(c.beta1, 1.0 - c.beta1, g);
        square.scale_add_squares(c.beta2, 1.0 - c.beta2, g);
        // −α²w·y, where y is z − β(z − x).
        let decay = alpha * alpha * c.weight_decay;
        step.scale_add(decay * beta, -decay, z);
        step.add_ratio(-alpha / correction(c.beta1), mean, 1.0 / correction(c.beta2), square, c.epsilon);
        z.add(1.0, step);
        if *k < c.average_after {
            weights.largest_rate = weights.largest_rate.max(alpha);
            x.copy_from(z);
        } else {
            let share = weights.next(alpha, *k, c.power);
            x.scale_add(1.0 - share, share, z);
        }
        *k += 1;
        Ok(StepRecord::plain(*k - 1, value, squared_norm.sqrt(), alpha, step.norm()))
    }
    unconstrained!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use strust::objective::from_terms;

    #[test]
    fn the_steps_are_those_of_the_formulas_in_one_dimension() {
        // f(x) = 2(x − 1)² + 0.5
        let slope = |x: f64| 4.0 * (x - 1.0);
        let value = |x: f64| 2.0 * (x - 1.0).powi(2) + 0.5;
        let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
            g[0] += slope(x[0]);
            value(x[0])
        });
        let config = ScheduleFreePlusConfig {
            learning_rate: 0.5,
            weight_decay: 0.3,
            norm_decay: 0.7,
            warmup_steps: 5,
            average_after: 3,
            power: 2.0,
            ..Default::default()
        };
        let mut method = ScheduleFreePlus::new(config).unwrap();
        let mut state = method.init(&mut f, vec![3.0]).unwrap();
        let (mut x, mut z, mut e, mut m, mut v) = (3.0, 3.0, 0.0, 0.0, 0.0_f64);
        let (mut largest, mut sum) = (0.0_f64, 0.0);
        for t in 1..=30 {
            let y = 0.1 * z + 0.9 * x;
            let g = slope(y);
            e = 0.7 * e + 0.3 * (std::f64::consts::PI / 2.0).sqrt() * g.abs();
            let gamma = 0.5 * (f64::from(t) / 5.0).min(1.0);
            let alpha = gamma * (value(y) + g * (z - y)).max(0.0) / (e / (1.0 - 0.7_f64.powi(t)));
            m = 0.9 * m + 0.1 * g;
            v = 0.95 * v + 0.05 * g * g;
            let ratio = m / (1.0 - 0.9_f64.powi(t)) / ((v / (1.0 - 0.95_f64.powi(t))).sqrt() + 1e-8);
            z -= alpha * alpha * 0.3 * y + alpha * ratio;
            largest = largest.max(alpha);
            let weight = if t <= 3 { 0.0 } else { f64::from(t).powi(2) * largest * largest };
            sum += weight;
            let c = if t <= 3 { 1.0 } else { weight / sum };
            x = (1.0 - c) * x + c * z;
            method.step(&mut f, &mut state, &Sample::range(0..1)).unwrap();
            assert!((state.z[0] - z).abs() < 1e-12 && (state.x[0] - x).abs() < 1e-12, "{t}: {state:?} {x} {z}");
        }
    }

    #[test]
    fn beta_moves_from_its_first_to_its_last_value() {
        let config = ScheduleFreePlusConfig { last_momentum: 0.999, anneal_steps: 10, ..Default::default() };
        for (k, beta) in [(0, 0.9), (5, 0.99), (10, 0.999), (20, 0.999)] {
            assert!((config.momentum_at(k) - beta).abs() < 1e-12);
        }
        let constant = ScheduleFreePlusConfig::default();
        assert_eq!(constant.momentum_at(0).to_bits(), constant.momentum_at(99).to_bits());
    }
}
