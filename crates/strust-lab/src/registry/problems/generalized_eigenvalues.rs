//! Generalized eigenvalues.

use super::{AnySetup, Assembler, Metrics, Names, ProblemEntry, Quantity, pca::points};
use crate::Error;
use strust_problems::GeneralizedEigenvalues;

strust::config! {
    /// Generalized eigenvalues.
    pub struct GeneralizedEigenvaluesConfig for "generalized-eigenvalues" {
        /// Dimension of the points.
        pub d: u64 = 50, Whole(Range::closed(1.0, 1e4));
        /// Number of eigenvectors, at most d.
        pub k: u64 = 3, Whole(Range::closed(1.0, 1e4));
        /// Number of points.
        pub n: u64 = 1000, Whole(Range::closed(1.0, 1e7));
        /// Ratio of the standard deviations along a principal direction and the one before.
        pub decay: f64 = 0.8, Number(Range::up_to(0.0, 1.0));
        /// Condition number of the random matrix B.
        pub condition: f64 = 10.0, Number(Range::closed(1.0, 1e12));
        /// A file (.npy or .csv, also .gz and .xz) with one point per row; d, n and decay then have no effect.
        pub data: String = String::new(), Text("a file, or empty");
    }
}

impl ProblemEntry for GeneralizedEigenvaluesConfig {
    const TITLE: &'static str = "Generalized eigenvalues: min −½ mean ‖Wᵀx‖², WᵀBW = I";
    const CONSTRAINED: bool = true;
    const METRICS: Metrics = &[
        (Quantity::ObjectiveError, "objective error |f(W) − f*|"),
        (Quantity::ConstraintNorm, "constraint violation ‖WᵀBW − I‖"),
    ];
    const SYNTHETIC: Names = &["d", "n", "decay"];

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        let points = points(c.d, c.k, c.n, c.decay, &c.data, seed)?;
        let f = GeneralizedEigenvalues::new(points, c.condition, seed)?;
        Ok(assembler.finish(f))
    }
}
