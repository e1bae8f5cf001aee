//! How a step size changes during a run, as a value that any method with a rate takes.

use std::f64::consts::PI;

/// The factor of the step size at step k.
///
/// ```
/// use strust::{prelude::*, schedule::Schedule};
/// use strust_baselines::{Sgd, SgdConfig};
/// let schedule = Schedule::cosine(1000);
/// assert_eq!((schedule.factor(0), schedule.factor(1000)), (1.0, 0.0));
/// assert!((schedule.factor(500) - 0.5).abs() < 1e-15);
/// let method: Sgd<Vec<f64>> = Sgd::new(SgdConfig::default())?.schedule(schedule);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Schedule {
    /// 1 at every step.
    #[default]
    Constant,
    /// ½(1 + cos(πk/steps)): from 1 at step 0 to 0 at step `steps` and after it (Loshchilov and Hutter 2017).
    Cosine {
        /// The number of steps of the run.
        steps: u64,
    },
}

impl Schedule {
    /// Falls from 1 to 0 in `steps` steps.
    #[must_use]
    pub const fn cosine(steps: u64) -> Self {
        Self::Cosine { steps }
    }

    /// The factor at step `k`, counted from 0. For [`Self::Constant`] it is exactly 1, so no bit of a step changes.
    #[must_use]
    pub fn factor(self, k: u64) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Cosine { steps } if k < steps => 0.5 * (1.0 + (PI * (k as f64 / steps as f64)).cos()),
            Self::Cosine { .. } => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cosine_falls_from_one_to_zero_and_stays_there() {
        let schedule = Schedule::cosine(7);
        let factors: Vec<f64> = (0..=7).map(|k| schedule.factor(k)).collect();
        assert!(factors.windows(2).all(|f| f[0] > f[1]), "{factors:?}");
        assert_eq!((factors[0].to_bits(), factors[7].to_bits()), (1.0_f64.to_bits(), 0.0_f64.to_bits()));
        // Symmetric about the middle.
        assert!((0..=7).all(|k| (factors[k] + factors[7 - k] - 1.0).abs() < 1e-15), "{factors:?}");
        assert!([8, 1000, u64::MAX].iter().all(|&k| schedule.factor(k).to_bits() == 0));
        assert_eq!(Schedule::cosine(0).factor(0).to_bits(), 0);
    }
}
