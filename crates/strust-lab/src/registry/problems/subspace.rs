//! Orthogonal subspace fitting.

use super::{AnySetup, Assembler, Metrics, Names, ProblemEntry, Quantity, check_size};
use crate::{Error, data::paths::path_of};
use strust_data::read_matrix;
use strust_problems::SubspaceFit;

strust::config! {
    /// Orthogonal subspace fitting.
    pub struct SubspaceConfig for "subspace" {
        /// Dimension of the space.
        pub d: u64 = 100, Whole(Range::closed(1.0, 1e7));
        /// Dimension of the subspace, at most d.
        pub k: u64 = 5, Whole(Range::closed(1.0, 1e7));
        /// Number of points.
        pub n: u64 = 500, Whole(Range::closed(1.0, 1e7));
        /// Standard deviation σ of the noise on every coordinate; 0 is exact interpolation.
        pub noise: f64 = 0.0, Number(Range::at_least(0.0));
        /// A file (.npy or .csv, also .gz and .xz) with one point per row, instead of the spiked model; d, n and noise then have no effect.
        pub data: String = String::new(), Text("a file, or empty");
    }
}

impl ProblemEntry for SubspaceConfig {
    const TITLE: &'static str = "Orthogonal subspace fitting: min mean ‖(I − WWᵀ)x‖², WᵀW = I";
    const CONSTRAINED: bool = true;
    const METRICS: Metrics = &[
        (Quantity::ObjectiveGap, "objective gap f(W) − f*"),
        (Quantity::ConstraintNorm, "constraint violation ‖WᵀW − I‖"),
    ];
    const SYNTHETIC: Names = &["d", "n", "noise"];

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        let k = c.k as usize;
        let f = if c.data.is_empty() {
            check_size(c.d, c.n)?;
            check_size(c.d, c.k)?;
            SubspaceFit::<f64>::spiked(c.d as usize, k, c.n as usize, c.noise, seed)?
        } else {
            // The file has one point per row, the problem one per column.
            SubspaceFit::from_data(&read_matrix(path_of(&c.data))?.transpose().to_owned(), k)?
        };
        Ok(assembler.finish(f))
    }
}
