//! DoG, distance over gradients (Ivgi, Hinder and Carmon 2023): SGD with a step size from the distance traveled.

use crate::prelude::*;

config! {
    /// Configuration of [`DoG`]. The defaults are those of the package `dog-optimizer`.
    pub struct DoGConfig for "dog" {
        /// Factor c of the step size.
        pub learning_rate: f64 = 1.0, Number(Range::above(0.0));
        /// Length of the first step relative to 1 + ‖x₀‖, rε. The package advises 1e-4 with batch-norm.
        pub initial_distance: f64 = 1e-6, Number(Range::above(0.0));
        /// Added to the sum of squared gradient norms, ε.
        pub epsilon: f64 = 1e-8, Number(Range::above(0.0));
        /// Weight decay w: the gradient of (w/2)‖x‖² is added.
        pub weight_decay: f64 = 0.0, Number(Range::at_least(0.0));
    }
}

/// x ← x − η·g with η = c·r̄/√G, where r̄ is the largest distance from x₀ so far and G = ε + Σ‖g‖².
///
/// At the first step the distance is 0, so r̄ starts at rε(1 + ‖x₀‖). The answer is the last point. Its authors advise
/// to average: see [`Averaged`](strust::methods::Averaged).
///
/// ```
/// use strust::{methods::Averaged, prelude::*};
/// use strust_baselines::*;
/// let mut f = from_terms(2, |i, x: &Vec<f64>, g| {
///     g[i] += 2.0 * (x[i] - 3.0);
///     (x[i] - 3.0).powi(2)
/// });
/// let method = Averaged::of(DoG::default());
/// let report = minimize(&mut f).method(method).batch(1).stop(Stop::steps(2000)).start(vec![0.0, 0.0])?;
/// assert!((report.point()[0] - 3.0).abs() < 1e-2);
/// # Ok::<(), strust::Error>(())
/// ```
pub type DoG<V> = Baseline<DoGConfig, V>;
impl HasRate for DoGConfig {}

/// State of [`DoG`].
#[derive(Debug, Clone, PartialEq)]
pub struct DoGState<V> {
    /// x.
    pub x: V,
    /// x₀.
    pub start: V,
    /// r̄.
    pub distance: f64,
    /// G.
    pub squares: f64,
    /// Steps made.
    pub k: u64,
}
strust::saved!([V: Vector] DoGState<V> { x: vector, start: vector, distance, squares, k });
strust::state!(DoGState);

impl<F: Objective> Method<F> for DoG<F::Point> {
    type State = DoGState<F::Point>;

    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        let distance = self.config.initial_distance * (1.0 + x.norm());
        Ok(DoGState { start: x.clone(), x, distance, squares: self.config.epsilon, k: 0 })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let DoGConfig { learning_rate, weight_decay, .. } = *self.config;
        let DoGState { x, start, distance, squares, k } = state;
        let g = scratch(&mut self.scratch.0, x);
        let (Evaluation { value, .. }, squared_norm) = evaluate(f, x, sample, g, *k)?;
        g.add(weight_decay, x);
        let moved = scratch(&mut self.scratch.1, x);
        moved.set_sum(x, -1.0, start);
        *distance = distance.max(moved.norm());
        let squared_step = g.norm_squared();
        *squares += squared_step;
        let eta = learning_rate * self.schedule.factor(*k) * *distance / squares.sqrt();
        x.add(-eta, g);
        *k += 1;
        Ok(StepRecord::plain(*k - 1, value, squared_norm.sqrt(), eta, eta * squared_step.sqrt()))
    }
    unconstrained!();
}
