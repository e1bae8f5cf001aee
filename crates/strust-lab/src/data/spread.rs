//! Statistics of a number over seeds.

use super::numbers::numbers;
use serde::{Deserialize, Serialize};

/// Mean, sample standard deviation, median and quartiles over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean.
    #[serde(deserialize_with = "numbers")]
    pub mean: f64,
    /// The standard deviation; 0 for one seed.
    #[serde(deserialize_with = "numbers")]
    pub std: f64,
    /// The median.
    #[serde(deserialize_with = "numbers")]
    pub median: f64,
    /// Both quartiles; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "numbers")]
    pub quartiles: Option<(f64, f64)>,
}
