//! Projected SGD: a baseline of section 5.2.

use crate::prelude::*;

config! {
    /// Configuration of [`ProjectedSgd`]. The default is the paper's for subspace fitting.
    pub struct ProjectedSgdConfig for "sgd-proj" {
        /// Step size η.
        pub learning_rate: f64 = 5e-2, Number(Range::above(0.0));
    }
}

/// x ← restore(x − η·g): a step in the surrounding space, then a move back onto the set (QR on the Stiefel manifold).
///
/// QR gives the nearest frame only up to a rotation of its columns. This does not matter if the objective depends only
/// on the span of the columns, as in subspace fitting. For other objectives use
/// [`Retraction::Polar`](strust::constraints::Retraction::Polar); otherwise the fixed point is not the minimizer.
pub type ProjectedSgd<M> = BaselineOnManifold<ProjectedSgdConfig, M>;
impl HasRate for ProjectedSgdConfig {}

impl<M: Manifold> ProjectedSgd<M> {
    /// Checks the configuration.
    pub fn new(config: ProjectedSgdConfig, manifold: M) -> Result<Self, Error> {
        Self::with(config, manifold)
    }
}

impl<F: Objective, M: Manifold<Point = F::Point>> Method<F> for ProjectedSgd<M> {
    type State = Iterate<F::Point>;

    fn step(&mut self, f: &mut F, Iterate { x, k }: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let eta = self.config.learning_rate * self.schedule.factor(*k);
        let g = scratch(&mut self.gradient, x);
        let (Evaluation { value, .. }, squared_norm) = evaluate(f, x, sample, g, *k)?;
        self.retract(x, eta)?;
        *k += 1;
        let norm = squared_norm.sqrt();
        Ok(StepRecord::plain(*k - 1, value, norm, eta, eta * norm))
    }
    on_manifold!();
}
