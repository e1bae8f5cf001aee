//! Prodigy (Mishchenko and Defazio 2024): Adam, with its step size from an estimate of the distance to the solution.

use crate::prelude::*;

config! {
    /// Configuration of [`Prodigy`]. The defaults are those of the package `prodigyopt`.
    pub struct ProdigyConfig for "prodigy" {
        /// Factor η of the step size d.
        pub learning_rate: f64 = 1.0, Number(Range::above(0.0));
        /// Decay β₁ of the mean of gradients.
        pub beta1: f64 = 0.9, Number(Range::from_to(0.0, 1.0));
        /// Decay β₂ of the mean of squared gradients; the estimate of d decays with √β₂.
        pub beta2: f64 = 0.999, Number(Range::open(0.0, 1.0));
        /// Added to the root, ε, in units of d.
        pub epsilon: f64 = 1e-8, Number(Range::above(0.0));
        /// Decoupled weight decay w, as in AdamW.
        pub weight_decay: f64 = 0.0, Number(Range::at_least(0.0));
        /// The first estimate d₀ of the distance; too small is safe.
        pub initial_distance: f64 = 1e-6, Number(Range::above(0.0));
        /// Factor of every estimate of the distance.
        pub coefficient: f64 = 1.0, Number(Range::above(0.0));
    }
}

/// Adam with the step size ηd, where d is a lower estimate of ‖x₀ − x*‖ that only grows.
///
/// With β₃ = √β₂ and r, s, m, v starting at 0:
///
/// ```text
/// r ← β₃r + (d/d₀)ηd·⟨g, x₀ − x⟩        m ← β₁m + (1−β₁)d·g
/// s ← β₃s + (d/d₀)ηd·g                  v ← β₂v + (1−β₂)d²·g∘g
/// d' = max(d, coefficient·r/‖s‖₁)
/// x ← x − ηd·(m/(√v + d'ε) + w·x)
/// ```
///
/// This is the form of the package `prodigyopt` with its defaults, in which the correction of Adam's bias, the limit on
/// the growth of d and the safeguard for warm-up are off.
///
/// ```
/// use strust::prelude::*;
/// use strust_baselines::*;
/// let mut f = from_terms(2, |i, x: &Vec<f64>, g| {
///     g[i] += 2.0 * (x[i] - 3.0);
///     (x[i] - 3.0).powi(2)
/// });
/// let report = minimize(&mut f).method(Prodigy::default()).batch(2).stop(Stop::steps(500)).start(vec![0.0, 0.0])?;
/// assert!((report.point()[0] - 3.0).abs() < 1e-2);
/// # Ok::<(), strust::Error>(())
/// ```
pub type Prodigy<V> = Baseline<ProdigyConfig, V>;
impl HasRate for ProdigyConfig {}

/// State of [`Prodigy`].
#[derive(Debug, Clone, PartialEq)]
pub struct ProdigyState<V> {
    /// x.
    pub x: V,
    /// x₀.
    pub start: V,
    /// m.
    pub mean: V,
    /// v.
    pub square: V,
    /// s.
    pub sum: V,
    /// r.
    pub progress: f64,
    /// d.
    pub distance: f64,
    /// Steps made.
    pub k: u64,
}
strust::saved!([V: Vector] ProdigyState<V> { x: vector, start: vector, mean: vector, square: vector, sum: vector, progress, distance, k });
strust::state!(ProdigyState);

impl<F: Objective<Point: Elementwise>> Method<F> for Prodigy<F::Point> {
    type State = ProdigyState<F::Point>;

    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        let zero = x.zeros_like();
        Ok(ProdigyState {
            start: x.clone(),
            x,
            mean: zero.clone(),
            square: zero.clone(),
            sum: zero,
            progress: 0.0,
            distance: self.config.initial_distance,
            k: 0,
        })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let ProdigyConfig { learning_rate, beta1, beta2, epsilon, weight_decay, initial_distance, coefficient } =
            *self.config;
        let ProdigyState { x, start, mean, square, sum, progress, distance: d, k } = state;
        let g = scratch(&mut self.scratch.0, x);
        let (Evaluation { value, .. }, squared_norm) = evaluate(f, x, sample, g, *k)?;
        let step = scratch(&mut self.scratch.1, x);

        let (beta3, eta) = (beta2.sqrt(), *d * learning_rate * self.schedule.factor(*k));
        // d/d₀ instead of d, as in the package: the sums do not become too small.
        let weight = *d / initial_distance * eta;
        step.set_sum(start, -1.0, x);
        *progress = beta3 * *progress + weight * g.dot(step);
        sum.scale_add(beta3, weight, g);
        mean.scale_add(beta1, *d * (1.0 - beta1), g);
        square.scale_add_squares(beta2, *d * *d * (1.0 - beta2), g);
        let norm = sum.norm_1();
        if norm > 0.0 {
            *d = d.max(coefficient * *progress / norm);
        }

        step.set_zero();
        step.add_ratio(-eta, mean, 1.0, square, *d * epsilon);
        if weight_decay > 0.0 {
            step.add(-eta * weight_decay, x);
        }
        x.add(1.0, step);
        *k += 1;
        Ok(StepRecord::plain(*k - 1, value, squared_norm.sqrt(), eta, step.norm()))
    }
    unconstrained!();
}
