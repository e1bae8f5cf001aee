//! SGD, with or without momentum: the baseline of section 5.1.

use crate::prelude::*;

config! {
    /// Configuration of [`Sgd`]. The defaults are the paper's for CIFAR-10.
    pub struct SgdConfig for "sgd" {
        /// Step size η.
        pub learning_rate: f64 = 0.2, Number(Range::above(0.0));
        /// Heavy-ball momentum β; 0 is plain SGD.
        pub momentum: f64 = 0.0, Number(Range::from_to(0.0, 1.0));
        /// Weight decay w: the gradient of (w/2)‖x‖² is added.
        pub weight_decay: f64 = 0.0, Number(Range::at_least(0.0));
    }
}

/// x ← x − η·v with v ← βv + (g + w·x). A [schedule](Baseline::schedule) changes η during the run.
pub type Sgd<V> = Baseline<SgdConfig, V>;
impl HasRate for SgdConfig {}

/// State of [`Sgd`].
#[derive(Debug, Clone, PartialEq)]
pub struct SgdState<V> {
    /// x.
    pub x: V,
    /// v.
    pub velocity: V,
    /// Steps made.
    pub k: u64,
}
strust::saved!([V: Vector] SgdState<V> { x: vector, velocity: vector, k });
strust::state!(SgdState);

impl<F: Objective> Method<F> for Sgd<F::Point> {
    type State = SgdState<F::Point>;

    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        Ok(SgdState { velocity: x.zeros_like(), x, k: 0 })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let SgdConfig { learning_rate, momentum, weight_decay } = *self.config;
        let SgdState { x, velocity, k } = state;
        let eta = learning_rate * self.schedule.factor(*k);
        let g = scratch(&mut self.scratch.0, x);
        let (Evaluation { value, .. }, squared_norm) = evaluate(f, x, sample, g, *k)?;
        g.add(weight_decay, x);
        velocity.scale_add(momentum, 1.0, g);
        x.add(-eta, velocity);
        *k += 1;
        Ok(StepRecord::plain(*k - 1, value, squared_norm.sqrt(), eta, eta * velocity.norm()))
    }
    unconstrained!();
}
