//! Nonnegative matrix factorization.

use super::{AnySetup, Assembler, Metrics, Names, ProblemEntry, Quantity, check_size};
use crate::{Error, data::paths::path_of};
use strust_data::read_matrix;
use strust_problems::Nmf;

strust::config! {
    /// Nonnegative matrix factorization X ≈ UVᵀ.
    pub struct NmfConfig for "nmf" {
        /// Rows of X.
        pub m: u64 = 100, Whole(Range::closed(1.0, 1e7));
        /// Columns of X.
        pub n: u64 = 30, Whole(Range::closed(1.0, 1e7));
        /// Rank of X without noise.
        pub rank: u64 = 3, Whole(Range::closed(1.0, 1e5));
        /// Columns of U and V.
        pub width: u64 = 3, Whole(Range::closed(1.0, 1e5));
        /// Standard deviation of the noise on every entry of X; negative entries become 0.
        pub noise: f64 = 0.1, Number(Range::at_least(0.0));
        /// A file (.npy or .csv, also .gz and .xz) with X ≥ 0; m, n, rank and noise then have no effect.
        pub data: String = String::new(), Text("a file, or empty");
    }
}

impl ProblemEntry for NmfConfig {
    const TITLE: &'static str = "Nonnegative matrix factorization X ≈ UVᵀ, U and V ≥ 0";
    const CONSTRAINED: bool = true;
    const METRICS: Metrics =
        &[(Quantity::Objective, "objective f(U, V)"), (Quantity::ConstraintNorm, "distance to the bounds")];
    const SYNTHETIC: Names = &["m", "n", "rank", "noise"];

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        let width = c.width as usize;
        let f = if c.data.is_empty() {
            check_size(c.m, c.n)?;
            check_size(c.m + c.n, c.width.max(c.rank))?;
            Nmf::random(c.m as usize, c.n as usize, c.rank as usize, width, c.noise, seed)?
        } else {
            let data = read_matrix(path_of(&c.data))?;
            check_size((data.nrows() + data.ncols()) as u64, c.width)?;
            Nmf::from_data(&data, width)?
        };
        Ok(assembler.finish(f))
    }
}
