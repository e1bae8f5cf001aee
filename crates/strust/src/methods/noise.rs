//! The noise of gradients, and how far back an average should remember.

/// The noise is a mean over about the last quarter of the steps.
pub const NOISE_MEMORY: f64 = 4.0;
/// The recent noise is a mean over about this many steps.
pub const RECENT: f64 = 50.0;
/// Where the noise falls, the average still remembers at least this many steps.
pub const SHORTEST: f64 = 10.0;

/// The noise of successive gradients, from half the square of their differences.
///
/// An average over the steps should forget where the noise falls: points made with less noise count more. Its memory m
/// grows by 1 with each step, and is multiplied by the root of n'/n whenever the recent noise falls from n to a new
/// minimum n'.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Noise {
    /// n, the mean over about the last quarter of the steps.
    pub mean: f64,
    /// The mean over about the last 50 steps.
    pub recent: f64,
    /// The least recent noise so far.
    pub least: f64,
    /// m, the number of steps that the average remembers.
    pub remembered: f64,
}
crate::saved!([] Noise { mean, recent, least, remembered });

impl Noise {
    /// Learns from ½‖g − gₗₐₛₜ‖² after `steps` steps, at least one. The caller adds 1 to m if the step is accepted.
    pub(super) fn hear(&mut self, steps: u64, difference: f64) {
        let steps = steps as f64;
        self.mean += (NOISE_MEMORY / (steps + NOISE_MEMORY - 1.0)).min(1.0) * (difference - self.mean);
        self.recent += (1.0 / RECENT.min(steps)) * (difference - self.recent);
        if steps <= RECENT {
            self.least = self.recent;
        } else if self.recent < self.least {
            let fallen = (self.recent / self.least).sqrt() * self.remembered;
            self.remembered = fallen.max(SHORTEST.min(self.remembered));
            self.least = self.recent;
        }
    }
    /// The weight of the next point in an average with the weights kʳ.
    pub(super) fn share(&self, power: f64) -> f64 {
        (power + 1.0) / (self.remembered + power + 1.0)
    }
}
