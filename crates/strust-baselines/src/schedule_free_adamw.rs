//! Schedule-Free AdamW (Defazio et al. 2024): averaging in place of a schedule, and Adam's scaling of gradients.

use crate::{
    prelude::*,
    schedule_free_sgd::{AverageWeights, warmup},
};

config! {
    /// Configuration of [`ScheduleFreeAdamW`]. The defaults are those of the package `schedulefree`.
    pub struct ScheduleFreeAdamWConfig for "schedule-free-adamw" {
        /// Step size η.
        pub learning_rate: f64 = 2.5e-3, Number(Range::above(0.0));
        /// Where gradients are taken, β₁: between z (0) and the average x (1).
        pub beta1: f64 = 0.9, Number(Range::open(0.0, 1.0));
        /// Decay β₂ of the mean of squared gradients.
        pub beta2: f64 = 0.999, Number(Range::from_to(0.0, 1.0));
        /// Added to the root, ε.
        pub epsilon: f64 = 1e-8, Number(Range::above(0.0));
        /// Decoupled weight decay w, at y.
        pub weight_decay: f64 = 0.0, Number(Range::at_least(0.0));
        /// Steps in which η grows linearly.
        pub warmup_steps: u64 = 0, Whole(Range::closed(0.0, 1e9));
        /// Power r of the weights of the average: step k counts in proportion to (k+1)ʳ.
        pub power: f64 = 0.0, Number(Range::at_least(0.0));
    }
}

/// The three points of [`ScheduleFreeSgd`](crate::ScheduleFreeSgd), with the step of AdamW without its first moment.
///
/// ```text
/// y = (1−β₁)z + β₁x,  g = ∇f(y)
/// v ← β₂v + (1−β₂)g∘g,  v̂ = v/(1−β₂ᵏ⁺¹)
/// z ← z − η·(g/(√v̂ + ε) + w·y)
/// x ← (1−c)x + c·z       with the same c
/// ```
///
/// ```
/// use strust::prelude::*;
/// use strust_baselines::*;
/// let mut f = from_terms(2, |i, x: &Vec<f64>, g| {
///     g[i] += 2.0 * (x[i] - 3.0);
///     (x[i] - 3.0).powi(2)
/// });
/// let config = ScheduleFreeAdamWConfig { learning_rate: 0.1, ..Default::default() };
/// let method = ScheduleFreeAdamW::new(config)?;
/// let report = minimize(&mut f).method(method).batch(2).stop(Stop::steps(2000)).start(vec![0.0, 0.0])?;
/// assert!((report.point()[0] - 3.0).abs() < 0.1);
/// # Ok::<(), strust::Error>(())
/// ```
pub type ScheduleFreeAdamW<V> = Baseline<ScheduleFreeAdamWConfig, V>;
impl HasRate for ScheduleFreeAdamWConfig {}

/// State of [`ScheduleFreeAdamW`].
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleFreeAdamWState<V> {
    /// x, the average.
    pub x: V,
    /// z.
    pub z: V,
    /// v.
    pub square: V,
    /// The weights of the average.
    pub weights: AverageWeights,
    /// Steps made.
    pub k: u64,
}
strust::saved!([V: Vector] ScheduleFreeAdamWState<V> { x: vector, z: vector, square: vector, weights, k });
strust::state!(ScheduleFreeAdamWState<V>, is_averaged);

impl<F: Objective<Point: Elementwise>> Method<F> for ScheduleFreeAdamW<F::Point> {
    type State = ScheduleFreeAdamWState<F::Point>;

    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        let weights = AverageWeights::default();
        Ok(ScheduleFreeAdamWState { z: x.clone(), square: x.zeros_like(), x, weights, k: 0 })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let ScheduleFreeAdamWConfig { learning_rate, beta1, beta2, epsilon, weight_decay, warmup_steps, power } =
            *self.config;
        let ScheduleFreeAdamWState { x, z, square, weights, k } = state;
        let eta = learning_rate * self.schedule.factor(*k) * warmup(warmup_steps, *k);
        let y = scratch(&mut self.scratch.0, x);
        y.copy_from(x);
        y.scale_add(beta1, 1.0 - beta1, z);
        let g = scratch(&mut self.scratch.1, x);
        let (Evaluation { value, .. }, squared_norm) = evaluate(f, y, sample, g, *k)?;
        square.scale_add_squares(beta2, 1.0 - beta2, g);
        let correction = 1.0 - beta2.powf((*k + 1) as f64);
        // y is used only for the weight decay from here on. Its buffer holds the step, because the record needs its length.
        y.scale_add(-eta * weight_decay, 0.0, g);
        y.add_ratio(-eta, g, 1.0 / correction, square, epsilon);
        z.add(1.0, y);
        let c = weights.next(eta, *k, power);
        x.scale_add(1.0 - c, c, z);
        *k += 1;
        Ok(StepRecord::plain(*k - 1, value, squared_norm.sqrt(), eta, y.norm()))
    }
    unconstrained!();
}
