//! How much of the study runs.

use serde::{Deserialize, Serialize};

/// How much of the study runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstrainedSettings {
    /// Random starts of every small problem.
    pub starts: u64,
    /// Seeds of every run with noise.
    pub noise_seeds: u64,
    /// Steps of every run with noise.
    pub noise_steps: u64,
}

impl Default for ConstrainedSettings {
    fn default() -> Self {
        Self { starts: 5, noise_seeds: 5, noise_steps: 2000 }
    }
}

impl ConstrainedSettings {
    /// One seed and one random start, few noisy steps.
    #[must_use]
    pub fn quick() -> Self {
        Self { starts: 1, noise_seeds: 1, noise_steps: 100 }
    }
}
