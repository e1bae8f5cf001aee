//! Principal components.

use super::{AnySetup, Assembler, GAP_AND_FRAME, Metrics, Names, ProblemEntry, check_size, from_file::FileSize};
use crate::{Error, data::paths::path_of};
use strust_data::read_matrix;
use strust_problems::Pca;

strust::config! {
    /// Principal components.
    pub struct PcaConfig for "pca" {
        /// Dimension of the points.
        pub d: u64 = 50, Whole(Range::closed(1.0, 1e4));
        /// Number of components, at most d.
        pub k: u64 = 3, Whole(Range::closed(1.0, 1e4));
        /// Number of points.
        pub n: u64 = 1000, Whole(Range::closed(1.0, 1e7));
        /// Ratio of the standard deviations along a principal direction and the one before.
        pub decay: f64 = 0.8, Number(Range::up_to(0.0, 1.0));
        /// A file (.npy or .csv, also .gz and .xz) with one point per row; d, n and decay then have no effect.
        pub data: String = String::new(), Text("a file, or empty");
    }
}

impl ProblemEntry for PcaConfig {
    const TITLE: &'static str = "Principal components: min −½ mean ‖Wᵀx‖², WᵀW = I";
    const CONSTRAINED: bool = true;
    const METRICS: Metrics = GAP_AND_FRAME;
    const SYNTHETIC: Names = &["d", "n", "decay"];

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        let f = points(c.d, c.k, c.n, c.decay, &c.data, seed)?;
        Ok(assembler.finish(f))
    }
}

/// The points of a file with one point per row, or synthetic ones.
pub(super) fn points(d: u64, k: u64, n: u64, decay: f64, data: &str, seed: u64) -> Result<Pca, Error> {
    if data.is_empty() {
        check_size(d, n)?;
        check_size(d, d)?;
        return Ok(Pca::decaying(d as usize, k as usize, n as usize, decay, seed)?);
    }
    let points = read_matrix(path_of(data))?;
    // f* comes from the covariance.
    let size = FileSize::of_matrix(data, points.nrows(), points.ncols());
    size.check_dense((size.columns, "columns"))?;
    Ok(Pca::from_data(&points.transpose().to_owned(), k as usize)?)
}
