//! STR with limited-memory quasi-Newton matrices: curvature from gradients alone.

use super::trust_region::{TrustRegion, TrustRegionState};
use crate::{
    Error,
    config::Config,
    models::{Bfgs, CurvatureMemory, LimitedMemory, Sr1},
    radius::{RegionConfig, region_config},
    vector::Vector,
};

/// Both methods have the same parameters.
macro_rules! limited_memory {
    ($method:ident, $config:ident, $name:literal, $about:literal) => {
        region_config! {
            #[doc = $about]
            pub struct $config for $name {
                /// The most pairs of a step and the change of the gradient along it.
                pub pairs: u64 = 10, Whole(Range::closed(1.0, 100.0));
                /// Trials from one pair to the next with mini-batches, where a pair costs a gradient.
                pub every: u64 = 10, Whole(Range::closed(1.0, 1_000_000.0));
                region = RegionConfig::with_curvature(), RegionConfig::FIELDS_WITH_CURVATURE;
            }
        }

        impl<V: Vector> $method<V> {
            /// Checks the configuration.
            pub fn new(config: $config) -> Result<Self, Error> {
                let config = config.check()?;
                Self::with_model(config.region.clone(), LimitedMemory::new(config.pairs as usize, config.every))
            }
        }

        impl<V: Vector> Default for $method<V> {
            fn default() -> Self {
                Self::new($config::default()).expect("the defaults are in their ranges")
            }
        }
    };
}

/// Stochastic trust region with a limited-memory BFGS matrix ([`LimitedMemory`] with [`Bfgs`]).
///
/// p minimizes gᵀp + ½pᵀBp over ‖p‖ ≤ Δ exactly. B is positive definite and comes from the last steps and the changes of the
/// gradient along them, each on one sample. The verdict and the radius are those of
/// [`StrNewton`](crate::methods::StrNewton).
///
/// Use it for the full batch or large batches, if products with the Hessian are not available or cost much more than
/// gradients. With the full batch, a step costs one value and one gradient, and a rejection one more gradient. With
/// mini-batches, every pair costs one more gradient.
///
/// ```
/// use strust::{methods::StrLbfgs, prelude::*};
/// let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
///     let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]); // Rosenbrock's function
///     g[0] += -2.0 * a - 400.0 * x[0] * b;
///     g[1] += 200.0 * b;
///     a * a + 100.0 * b * b
/// });
/// let run = minimize(&mut f).method(StrLbfgs::default()).full_batch().stop(Stop::gradient_norm(1e-8));
/// let report = run.start(vec![-1.2, 1.0])?;
/// assert!(report.reason.converged() && report.evaluations.gradients < 100, "{:?}", report.evaluations);
/// # Ok::<(), strust::Error>(())
/// ```
pub type StrLbfgs<V> = TrustRegion<V, LimitedMemory<V, Bfgs>>;

/// Stochastic trust region with a limited-memory symmetric rank-one matrix ([`LimitedMemory`] with [`Sr1`]).
///
/// It is [`StrLbfgs`] with a matrix that may be indefinite, as the Hessian may be away from a minimum. On most problems it
/// takes more steps.
pub type StrLsr1<V> = TrustRegion<V, LimitedMemory<V, Sr1>>;

/// State of [`StrLbfgs`] and [`StrLsr1`].
pub type StrLimitedMemoryState<V> = TrustRegionState<V, CurvatureMemory<V>>;

limited_memory!(StrLbfgs, StrLbfgsConfig, "str-lbfgs", "Configuration of [`StrLbfgs`].");
limited_memory!(StrLsr1, StrLsr1Config, "str-lsr1", "Configuration of [`StrLsr1`].");
