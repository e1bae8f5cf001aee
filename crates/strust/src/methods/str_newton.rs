//! STR with the paper's general model: truncated conjugate gradients on products with the Hessian of the sample.

use super::trust_region::{TrustRegion, TrustRegionState};
use crate::{
    Error, config,
    config::Config,
    models::{Newton, NewtonMemory},
    objective::ProductKind,
    radius::RegionConfig,
    vector::Vector,
};

config! {
    /// Configuration of [`StrNewton`].
    pub struct StrNewtonConfig for "str-newton" {
        /// The most products with the Hessian in a step.
        pub products: u64 = 1000, Whole(Range::closed(1.0, 1_000_000.0));
        /// The inner iteration ends at the latest where the gradient of the model is so many times the gradient.
        pub forcing: f64 = 0.1, Number(Range::open(0.0, 1.0));
        /// Where the inner iteration leaves the region, it goes on along the boundary up to this many products in all, and
        /// keeps as many vectors. If it needs more to get there, the step ends where it leaves.
        pub at_boundary: u64 = 30, Whole(Range::closed(0.0, 1_000.0));
        /// A rejected step is followed by up to this many shorter ones of the same model on the same sample, which need no
        /// products. So many vectors are kept for them.
        pub retreats: u64 = 0, Whole(Range::closed(0.0, 100.0));
        /// Radius of the first step.
        pub initial_radius: f64 = 1.0, Number(Range::above(0.0));
        /// Largest radius.
        pub max_radius: f64 = 1e10, Number(Range::above(0.0));
        /// A step is accepted if its ratio is above this.
        pub accept_above: f64 = 0.05, Number(Range::open(0.0, 1.0));
        /// The radius shrinks if the ratio is below this.
        pub shrink_below: f64 = 0.25, Number(Range::open(0.0, 1.0));
        /// The radius grows if the ratio is above this and the step ends at the boundary.
        pub grow_above: f64 = 0.75, Number(Range::open(0.0, 1.0));
        /// The radius becomes the length of the step divided by this.
        pub shrink: f64 = 4.0, Number(Range::above(1.0));
        /// The radius is multiplied by this.
        pub grow: f64 = 2.0, Number(Range::above(1.0));
    }
    where |c| { c.region().check_relations() }
}

impl StrNewtonConfig {
    /// The constants of the trust region.
    #[must_use]
    pub fn region(&self) -> RegionConfig {
        let &Self { initial_radius, max_radius, accept_above, shrink_below, grow_above, shrink, grow, .. } = self;
        RegionConfig { initial_radius, max_radius, accept_above, shrink_below, grow_above, shrink, grow }
    }
}

/// Stochastic trust region with the Hessian of the sample: the general model that the paper leaves to future work.
///
/// p minimizes gᵀp + ½pᵀHp over ‖p‖ ≤ Δ approximately, by conjugate gradients ([`steihaug`](crate::models::steihaug)). The
/// verdict and the radius are those of Algorithm 1, but the radius grows only after a step to the boundary, and after a
/// rejection it is smaller than the step. All products use the sample of the step.
///
/// Use it if the problem is ill-conditioned and the batch large enough for its Hessian: best with the full batch.
///
/// ```
/// use strust::prelude::*;
/// // Rosenbrock's function, without products: they come from differences of gradients.
/// let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
///     let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
///     g[0] += -2.0 * a - 400.0 * x[0] * b;
///     g[1] += 200.0 * b;
///     a * a + 100.0 * b * b
/// });
/// let run = minimize(&mut f).method(StrNewton::default()).full_batch().stop(Stop::gradient_norm(1e-8));
/// let report = run.start(vec![-1.2, 1.0])?;
/// assert!(report.reason.converged() && report.steps < 40, "{} steps", report.steps);
/// # Ok::<(), strust::Error>(())
/// ```
pub type StrNewton<V> = TrustRegion<V, Newton<V>>;

/// State of [`StrNewton`].
pub type StrNewtonState<V> = TrustRegionState<V, NewtonMemory>;

impl<V: Vector> StrNewton<V> {
    /// With the Hessian.
    pub fn new(config: StrNewtonConfig) -> Result<Self, Error> {
        Self::of(ProductKind::Hessian, config)
    }
    /// With the Gauss–Newton matrix, which is never indefinite, for losses of outputs such as those of a network.
    pub fn gauss_newton(config: StrNewtonConfig) -> Result<Self, Error> {
        Self::of(ProductKind::GaussNewton, config)
    }
    fn of(kind: ProductKind, config: StrNewtonConfig) -> Result<Self, Error> {
        let config = config.check()?;
        let StrNewtonConfig { products, forcing, at_boundary, retreats, .. } = *config;
        Self::with_model(config.region(), Newton::new(kind, products, forcing, at_boundary, retreats as usize))
    }
}

impl<V: Vector> Default for StrNewton<V> {
    fn default() -> Self {
        Self::new(StrNewtonConfig::default()).expect("the defaults are in their ranges")
    }
}
