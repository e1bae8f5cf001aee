//! Statistics of a number over seeds.

use serde::{Deserialize, Serialize};

/// Mean, sample standard deviation, median and quartiles over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; 0 for one seed.
    pub std: f64,
    /// The median.
    pub median: f64,
    /// Both quartiles; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quartiles: Option<(f64, f64)>,
}
