//! Statistics of a number over seeds.

use serde::{Deserialize, Serialize};

/// Mean, sample standard deviation and median over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; 0 for one seed.
    pub std: f64,
    /// The median.
    pub median: f64,
}
