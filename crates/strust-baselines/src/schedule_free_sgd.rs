//! Schedule-Free SGD (Defazio et al. 2024): averaging in place of a schedule.

use crate::prelude::*;

config! {
    /// Configuration of [`ScheduleFreeSgd`]. The defaults are those of the package `schedulefree`.
    pub struct ScheduleFreeSgdConfig for "schedule-free-sgd" {
        /// Step size η.
        pub learning_rate: f64 = 1.0, Number(Range::above(0.0));
        /// Where gradients are taken, β: between z (0) and the average x (1).
        pub momentum: f64 = 0.9, Number(Range::open(0.0, 1.0));
        /// Weight decay w: the gradient of (w/2)‖y‖² is added.
        pub weight_decay: f64 = 0.0, Number(Range::at_least(0.0));
        /// Steps in which η grows linearly.
        pub warmup_steps: u64 = 0, Whole(Range::closed(0.0, 1e9));
        /// Power r of the weights of the average: step k counts in proportion to (k+1)ʳ.
        pub power: f64 = 0.0, Number(Range::at_least(0.0));
    }
}

/// Three points: z, where steps are made; x, the weighted average of the z, which is the answer; y between them, where
/// gradients are taken.
///
/// ```text
/// y = (1−β)z + βx
/// z ← z − η·(∇f(y) + w·y)
/// x ← (1−c)x + c·z       c = (weight of this step)/(sum of weights so far), weight (k+1)ʳ·(largest η so far)²
/// ```
///
/// The package stores y and z; here x and z are stored, so that the answer needs no subtraction.
///
/// ```
/// use strust::prelude::*;
/// use strust_baselines::*;
/// let targets = [1.0, 3.0];
/// let mut f = from_terms(2, |i, x: &Vec<f64>, g| {
///     g[0] += x[0] - targets[i];
///     0.5 * (x[0] - targets[i]).powi(2)
/// });
/// let method = ScheduleFreeSgd::default();
/// let report = minimize(&mut f).method(method).batch(1).stop(Stop::steps(2000)).start(vec![0.0])?;
/// assert!((report.point()[0] - 2.0).abs() < 0.01);
/// # Ok::<(), strust::Error>(())
/// ```
pub type ScheduleFreeSgd<V> = Baseline<ScheduleFreeSgdConfig, V>;
impl HasRate for ScheduleFreeSgdConfig {}

/// The weights of the average x.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AverageWeights {
    /// The largest step size so far.
    pub largest_rate: f64,
    /// The sum of all weights.
    pub sum: f64,
}
strust::saved!([] AverageWeights { largest_rate, sum });

impl AverageWeights {
    /// c of step k with the step size `rate`.
    pub(crate) fn next(&mut self, rate: f64, k: u64, power: f64) -> f64 {
        self.largest_rate = self.largest_rate.max(rate);
        let weight = (k as f64 + 1.0).powf(power) * self.largest_rate * self.largest_rate;
        self.sum += weight;
        if self.sum > 0.0 { weight / self.sum } else { 0.0 }
    }
}

/// The factor of the step size at step k of a linear warm-up.
pub(crate) fn warmup(steps: u64, k: u64) -> f64 {
    if k < steps { (k + 1) as f64 / steps as f64 } else { 1.0 }
}

/// State of [`ScheduleFreeSgd`].
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleFreeSgdState<V> {
    /// x, the average.
    pub x: V,
    /// z.
    pub z: V,
    /// The weights of the average.
    pub weights: AverageWeights,
    /// Steps made.
    pub k: u64,
}
strust::saved!([V: Vector] ScheduleFreeSgdState<V> { x: vector, z: vector, weights, k });
strust::state!(ScheduleFreeSgdState<V>, is_averaged);

impl<F: Objective> Method<F> for ScheduleFreeSgd<F::Point> {
    type State = ScheduleFreeSgdState<F::Point>;

    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        Ok(ScheduleFreeSgdState { z: x.clone(), x, weights: AverageWeights::default(), k: 0 })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let ScheduleFreeSgdConfig { learning_rate, momentum, weight_decay, warmup_steps, power } = *self.config;
        let ScheduleFreeSgdState { x, z, weights, k } = state;
        let eta = learning_rate * self.schedule.factor(*k) * warmup(warmup_steps, *k);
        let y = scratch(&mut self.scratch.0, x);
        y.copy_from(x);
        y.scale_add(momentum, 1.0 - momentum, z);
        let g = scratch(&mut self.scratch.1, x);
        let (Evaluation { value, .. }, squared_norm) = evaluate(f, y, sample, g, *k)?;
        g.add(weight_decay, y);
        z.add(-eta, g);
        let c = weights.next(eta, *k, power);
        x.scale_add(1.0 - c, c, z);
        *k += 1;
        Ok(StepRecord::plain(*k - 1, value, squared_norm.sqrt(), eta, eta * g.norm()))
    }
    unconstrained!();
}
