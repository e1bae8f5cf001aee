//! Low-rank matrix factorization.

use super::{AnySetup, Assembler, Metrics, Names, ProblemEntry, Quantity, check_size};
use crate::{Error, data::paths::path_of};
use strust_data::read_matrix;
use strust_problems::Factorization;

strust::config! {
    /// Low-rank matrix factorization X ≈ UVᵀ.
    pub struct FactorizationConfig for "factorization" {
        /// Rows of X.
        pub m: u64 = 100, Whole(Range::closed(1.0, 1e7));
        /// Columns of X.
        pub n: u64 = 60, Whole(Range::closed(1.0, 1e7));
        /// Rank of X.
        pub rank: u64 = 3, Whole(Range::closed(1.0, 1e7));
        /// Columns of U and V; more than the rank is over-parameterized.
        pub width: u64 = 6, Whole(Range::closed(1.0, 1e7));
        /// A file (.npy or .csv, also .gz and .xz) with X; m, n and rank then have no effect.
        pub data: String = String::new(), Text("a file, or empty");
    }
}

impl ProblemEntry for FactorizationConfig {
    const TITLE: &'static str = "Low-rank matrix factorization X ≈ UVᵀ";
    const METRICS: Metrics = &[(Quantity::ObjectiveGap, "objective gap f(x) − f*")];
    const SYNTHETIC: Names = &["m", "n", "rank"];

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        let width = c.width as usize;
        let f = if c.data.is_empty() {
            check_size(c.m, c.n)?;
            check_size(c.m + c.n, c.width)?;
            Factorization::exact(c.m as usize, c.n as usize, c.rank as usize, width, seed)?
        } else {
            let data = read_matrix(path_of(&c.data))?;
            check_size((data.nrows() + data.ncols()) as u64, c.width)?;
            Factorization::new(&data, width)?
        };
        Ok(assembler.finish(f))
    }
}
