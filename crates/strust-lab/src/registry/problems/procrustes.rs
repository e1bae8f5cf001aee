//! The Procrustes problem.

use super::{AnySetup, Assembler, GAP_AND_FRAME, Metrics, ProblemEntry, check_size};
use crate::Error;
use strust_problems::Procrustes;

strust::config! {
    /// The Procrustes problem.
    pub struct ProcrustesConfig for "procrustes" {
        /// Dimension of the points a.
        pub d: u64 = 20, Whole(Range::closed(1.0, 1e4));
        /// Dimension of the points b, at most d.
        pub k: u64 = 4, Whole(Range::closed(1.0, 1e4));
        /// Number of pairs of points.
        pub n: u64 = 1000, Whole(Range::closed(1.0, 1e7));
        /// Standard deviation of the noise on every coordinate of b; 0 is exact interpolation.
        pub noise: f64 = 0.1, Number(Range::at_least(0.0));
    }
}

impl ProblemEntry for ProcrustesConfig {
    const TITLE: &'static str = "Procrustes problem: min mean ‖Wᵀa − b‖², WᵀW = I";
    const CONSTRAINED: bool = true;
    const METRICS: Metrics = GAP_AND_FRAME;

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        check_size(c.d, c.n)?;
        let f = Procrustes::random(c.d as usize, c.k as usize, c.n as usize, c.noise, seed)?;
        Ok(assembler.finish(f))
    }
}
