//! Adam (Kingma and Ba 2015), the adaptive baseline of section 5.1; with weight decay AdamW (Loshchilov and Hutter 2019).

use crate::prelude::*;

config! {
    /// Configuration of [`Adam`]. The defaults are the paper's for CIFAR-10.
    pub struct AdamConfig for "adam" {
        /// Step size η.
        pub learning_rate: f64 = 1e-3, Number(Range::above(0.0));
        /// Decay β₁ of the mean of gradients.
        pub beta1: f64 = 0.9, Number(Range::from_to(0.0, 1.0));
        /// Decay β₂ of the mean of squared gradients.
        pub beta2: f64 = 0.999, Number(Range::from_to(0.0, 1.0));
        /// Added to the root, ε.
        pub epsilon: f64 = 1e-8, Number(Range::above(0.0));
        /// Decoupled weight decay w: x ← x − ηw·x before each step. With w > 0 the method is AdamW.
        pub weight_decay: f64 = 0.0, Number(Range::at_least(0.0));
    }
}

/// m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g∘g, x ← x − η·m̂/(√v̂ + ε) with m̂ = m/(1−β₁ᵏ), v̂ = v/(1−β₂ᵏ).
///
/// With a `weight_decay` w > 0 it is AdamW: the step is −η·(m̂/(√v̂ + ε) + w·x), and w is not part of the gradient.
/// A [schedule](Baseline::schedule) changes η during the run.
pub type Adam<V> = Baseline<AdamConfig, V>;
impl HasRate for AdamConfig {}

/// State of [`Adam`].
#[derive(Debug, Clone, PartialEq)]
pub struct AdamState<V> {
    /// x.
    pub x: V,
    /// m.
    pub mean: V,
    /// v.
    pub square: V,
    /// Steps made.
    pub k: u64,
}
strust::saved!([V: Vector] AdamState<V> { x: vector, mean: vector, square: vector, k });
strust::state!(AdamState);

impl<F: Objective<Point: Elementwise>> Method<F> for Adam<F::Point> {
    type State = AdamState<F::Point>;

    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        Ok(AdamState { mean: x.zeros_like(), square: x.zeros_like(), x, k: 0 })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let AdamConfig { learning_rate, beta1, beta2, epsilon, weight_decay } = *self.config;
        let AdamState { x, mean, square, k } = state;
        let eta = learning_rate * self.schedule.factor(*k);
        let g = scratch(&mut self.scratch.0, x);
        let (Evaluation { value, .. }, squared_norm) = evaluate(f, x, sample, g, *k)?;
        *k += 1;
        mean.scale_add(beta1, 1.0 - beta1, g);
        square.scale_add_squares(beta2, 1.0 - beta2, g);
        let correction = |beta: f64| 1.0 - beta.powf(*k as f64);
        // The gradient is no longer needed. Its buffer holds the step, because the record needs its length.
        g.set_zero();
        g.add_ratio(-eta / correction(beta1), mean, 1.0 / correction(beta2), square, epsilon);
        if weight_decay > 0.0 {
            g.add(-eta * weight_decay, x);
        }
        x.add(1.0, g);
        Ok(StepRecord::plain(*k - 1, value, squared_norm.sqrt(), eta, g.norm()))
    }
    unconstrained!();
}
