//! Riemannian gradient descent: a baseline of section 5.2.

use crate::prelude::*;
use strust::constraints::{Retraction, check_equations};

config! {
    /// Configuration of [`Riemannian`]. The defaults are the paper's for subspace fitting.
    pub struct RiemannianConfig for "riemannian" {
        /// Step size η.
        pub learning_rate: f64 = 5e-2, Number(Range::above(0.0));
        /// How the Stiefel manifold is returned to: qr or polar. Used where the manifold is built from this table.
        pub retraction: Retraction = Retraction::Qr, OneOf(&["qr", "polar"]);
    }
}

/// x ← R_x(−η·Pg): the gradient projected onto the tangent space, then a retraction.
///
/// On the Stiefel manifold Pg = g − W·sym(Wᵀg); choose its retraction by
/// [`Stiefel::with_retraction`](strust::constraints::Stiefel::with_retraction).
pub type Riemannian<M> = BaselineOnManifold<RiemannianConfig, M>;
impl HasRate for RiemannianConfig {}

impl<M: Manifold> Riemannian<M> {
    /// Checks the configuration and that the manifold consists of equations.
    pub fn new(config: RiemannianConfig, manifold: M) -> Result<Self, Error> {
        check_equations("riemannian", &manifold)?;
        Self::with(config, manifold)
    }
}

impl<F: Objective, M: Manifold<Point = F::Point>> Method<F> for Riemannian<M> {
    type State = Iterate<F::Point>;

    fn step(&mut self, f: &mut F, Iterate { x, k }: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let eta = self.config.learning_rate * self.schedule.factor(*k);
        let g = scratch(&mut self.gradient, x);
        let value = evaluate(f, x, sample, g, *k)?.0.value;
        self.manifold.project_tangent(x, g)?;
        let norm = g.norm();
        self.retract(x, eta)?;
        *k += 1;
        Ok(StepRecord::plain(*k - 1, value, norm, eta, eta * norm))
    }
    on_manifold!();
}
