//! The weights of a mixture.

use super::{AnySetup, Assembler, Metrics, ProblemEntry, Quantity, check_size};
use crate::Error;
use strust_problems::Mixture;

strust::config! {
    /// The weights of a mixture of Gaussians with known centers.
    pub struct MixtureConfig for "mixture" {
        /// Dimension of the points.
        pub d: u64 = 2, Whole(Range::closed(1.0, 1e4));
        /// Number of components; the second half of them have no points.
        pub components: u64 = 10, Whole(Range::closed(1.0, 1e5));
        /// Number of points.
        pub n: u64 = 1000, Whole(Range::closed(1.0, 1e7));
        /// Standard deviation of the centers; the components have the standard deviation 1.
        pub spread: f64 = 2.0, Number(Range::at_least(0.0));
    }
}

impl ProblemEntry for MixtureConfig {
    const TITLE: &'static str = "Weights of a mixture: min −mean log Σ wₖpₖ(x), w ≥ 0, Σwₖ = 1";
    const CONSTRAINED: bool = true;
    const METRICS: Metrics = &[
        (Quantity::ObjectiveError, "objective error |f(w) − f*|"),
        (Quantity::ConstraintNorm, "distance to the simplex's plane and bounds"),
    ];

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        check_size(c.components, c.n)?;
        check_size(c.d, c.n)?;
        let f = Mixture::gaussians(c.d as usize, c.components as usize, c.n as usize, c.spread, seed)?;
        Ok(assembler.finish(f))
    }
}
