//! The decisions of a method without a learning rate: curvature, noise and step size, from a few numbers of each step.
//!
//! There are no vectors here. [`Auto`](super::Auto) measures; these functions decide. `auto.cu` and the Python package
//! repeat them for numbers that stay on a device, with the constants of this file. All of them are compared with the
//! golden steps in `python/tests/torch/auto-steps.json`.

use crate::objective::Evaluation;
use std::f64::consts::SQRT_2;

/// Declares the constants, and lists them for the versions on a device.
macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        $($(#[$doc])* const $name: f64 = $value;)*
            const CONSTANTS: &[(&str, f64)] = &[$((stringify!($name), $name)),*];
    };
}

// These are not settings. docs/how/auto.md shows what each of them changes.
constants! {
    /// The decrease of f that the linear model of the first step promises, relative to |f|. Nothing is known yet about
    /// lengths. A step that is too short grows by [`GROWTH`] each time; one that is too long is rejected.
    FIRST = 1e-3;
    /// A step size is at most this multiple of the last one.
    GROWTH = 1.5;
    /// A rejection divides the step size by this.
    SHRINK = 4.0;
    /// A curvature above this multiple of κ, or a balance beyond this, is an outlier. It counts as this much only. A step
    /// that increases f is accepted if the curvature that it saw is no outlier.
    OUTLIER = 3.0;
    /// Curvature and noise are means over about the last quarter of the steps: 1 over this.
    MEMORY = 4.0;
    /// A mean needs this many steps: before, the noise does not limit a step; and where the noise falls, the average still
    /// remembers as many.
    FEW = 10.0;
    /// γₖ can change after this many accepted steps, or a quarter of them if that is more. The recent noise is a mean over
    /// about half of this.
    WINDOW = 100.0;
    /// Above this mean balance, z goes around the average: γₖ becomes half as large where the noise vanishes.
    CIRCLES = 0.45;
    /// Below this mean balance, z still advances: γₖ grows by √2, so that two windows undo a halving.
    ADVANCES = 0.3;
    /// The noise vanishes where its recent mean is below this share of the long one.
    VANISHES = 0.75;
}

/// The noise of successive gradients, from half the square of their differences.
///
/// An average over the steps should forget where the noise falls: points made with less noise count more. Its memory m
/// grows by 1 with each step, and is multiplied by the root of n'/n whenever the recent noise falls from n to a new
/// minimum n'.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Noise {
    /// n, the mean over about the last quarter of the steps.
    pub(crate) mean: f64,
    /// The mean over about the last 50 steps.
    pub(crate) recent: f64,
    /// The least recent noise so far.
    pub(crate) least: f64,
    /// m, the number of steps that the average remembers.
    pub(crate) remembered: f64,
}
crate::saved!([] Noise { mean, recent, least, remembered });

impl Noise {
    /// Learns from ½‖g − gₗₐₛₜ‖² after `steps` steps, at least one. The caller adds 1 to m if the step is accepted.
    pub(super) fn learn(&mut self, steps: u64, difference: f64) {
        let (steps, window) = (steps as f64, 0.5 * WINDOW);
        self.mean += (MEMORY / (steps + MEMORY - 1.0)).min(1.0) * (difference - self.mean);
        self.recent += (1.0 / window.min(steps)) * (difference - self.recent);
        if steps <= window {
            self.least = self.recent;
        } else if self.recent < self.least {
            let fallen = (self.recent / self.least).sqrt() * self.remembered;
            self.remembered = fallen.max(FEW.min(self.remembered));
            self.least = self.recent;
        }
    }
    /// The weight of the next point in an average with the weights kʳ.
    pub(super) fn share(&self, power: f64) -> f64 {
        (power + 1.0) / (self.remembered + power + 1.0)
    }
}

/// The numbers that a method without a learning rate has learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learned {
    /// Steps accepted.
    pub(crate) accepted: u64,
    /// κ, the curvature of the model; `None` until a trial has shown one.
    pub(crate) curvature: Option<f64>,
    /// The mean of the curvatures that the trials showed, and of their squares.
    pub(crate) curvatures: (f64, f64),
    /// n, the noise of the gradients, and m, the number of steps that the average remembers.
    pub(crate) noise: Noise,
    /// r̄², the square of the largest distance from the start.
    pub(crate) distance: f64,
    /// The last step size a, or a quarter of it after a rejection; `None` before the first step.
    pub(crate) size: Option<f64>,
    /// γₖ/γ, at most 1.
    pub(crate) trust: f64,
    /// The sum of the balances b since γₖ could last change, and their number.
    pub(crate) balance: f64,
    pub(crate) balances: f64,
    /// Whether no step was accepted since z was last moved to the average. At the start it is there.
    pub(crate) at_average: bool,
}
crate::saved!([] Learned { accepted, curvature, curvatures, noise, distance, size, trust, balance, balances, at_average });

impl Default for Learned {
    /// At the start nothing is known.
    fn default() -> Self {
        Self {
            accepted: 0,
            curvature: None,
            curvatures: (0.0, 0.0),
            noise: Noise::default(),
            distance: 0.0,
            size: None,
            trust: 1.0,
            balance: 0.0,
            balances: 0.0,
            at_average: true,
        }
    }
}

/// How κ follows the curvatures that the trials show.
#[derive(Debug, Clone, Copy)]
pub(super) enum Follow {
    /// κ = E(h²)/E(h) over about the last quarter of the steps. Where the curvature h is random, steps of the size a
    /// contract the mean square of the distance if a < 2E(h)/E(h²).
    Moments,
    /// κ moves by a share of a larger or smaller curvature.
    Shares { upwards: f64, downwards: f64 },
}

/// What a trial shows.
pub(super) struct TrialNumbers {
    /// Whether it decreases the objective.
    pub descends: bool,
    /// The difference between f at the trial and its linear model: f(y + Δ) − f(y) − gᵀΔ.
    pub beyond: f64,
    /// The rounding error of f.
    pub rounding: f64,
    /// ‖Δ‖² in the metric.
    pub square: f64,
}

impl TrialNumbers {
    /// Of an objective without constraints. `slope` is gᵀΔ.
    pub fn of(f0: Evaluation, f1: f64, slope: f64, square: f64) -> Self {
        let Evaluation { value, rounding } = f0;
        let descends = f1 <= value + rounding;
        Self { descends, beyond: f1 - value - slope, rounding, square }
    }
}

/// The middle of the stable range of steps, in multiples of 1/κ, for gradients at y = z + β(x − z) and an average with the
/// share c of the next point.
///
/// On a quadratic function, z' = z − aκ·y and x' = x + c(z' − x) is stable for aκ < 2(2 − c)/(2(1 − β) + c(2β − 1)). This
/// is 2 for β = 0, and 2/(1 − β) where the average remembers many steps.
pub(super) fn middle_of_stable(momentum: f64, share: f64) -> f64 {
    (2.0 - share) / (2.0 * (1.0 - momentum) + share * (2.0 * momentum - 1.0))
}

impl Learned {
    /// The size of the first step, after f and gᵀd. The unit of f cancels, and so does that of x.
    pub(super) fn first_size(value: f64, slope: f64) -> f64 {
        FIRST * if value == 0.0 { 1.0 } else { value.abs() } / slope
    }

    /// With what a step measures before its trial: the squared distance from the start and ½‖g − gₗₐₛₜ‖², which counts
    /// from the second step on.
    pub(super) fn with_measured(mut self, distance: f64, difference: f64) -> Self {
        self.distance = self.distance.max(distance);
        if self.accepted > 0 {
            self.noise.learn(self.accepted, difference);
        }
        self
    }

    /// a = min(γₖ/κ, the bound by noise, 1.5·aₗₐₛₜ); `None` at the first step.
    pub(super) fn next_size(&self, gamma: f64, by_noise: f64) -> Option<f64> {
        let by_curvature = self.curvature.map_or(f64::INFINITY, |curvature| gamma * self.trust / curvature);
        Some((GROWTH * self.size?).min(by_curvature).min(by_noise))
    }

    /// q·r̄/√(n·√k), the bound of a step by noise. The squares make it free of rounding in other units of x.
    pub(super) fn longest_against_noise(&self, q: f64) -> f64 {
        let (accepted, noise) = (self.accepted as f64, self.noise.mean);
        let known = accepted >= FEW && noise > 0.0;
        if known { q * (self.distance / (noise * (accepted + 1.0).sqrt())).sqrt() } else { f64::INFINITY }
    }

    /// Whether a trial is accepted. Learns κ from it.
    pub(super) fn judge(&mut self, follow: Follow, trial: &TrialNumbers) -> bool {
        let TrialNumbers { descends, beyond, rounding, square } = *trial;
        if !beyond.is_finite() {
            return false;
        }
        // A difference below the rounding error of f says nothing about the curvature.
        let curvature = (beyond.abs() > 2.0 * rounding && square > 0.0).then(|| 2.0 * beyond / square);
        let expected = self.curvature.zip(curvature).is_some_and(|(known, seen)| seen <= OUTLIER * known);
        if let Some(seen) = curvature {
            self.curvature = match self.curvature {
                None => self.first_curvature(seen),
                Some(known) => self.next_curvature(follow, known, seen.clamp(0.0, OUTLIER * known)),
            };
        }
        descends || expected
    }

    fn first_curvature(&mut self, seen: f64) -> Option<f64> {
        let first = Some(seen).filter(|&seen| seen > 0.0)?;
        self.curvatures = (first, first * first);
        Some(first)
    }

    /// `None` if all curvatures in the mean are 0, as at a start where the model is concave.
    fn next_curvature(&mut self, follow: Follow, known: f64, seen: f64) -> Option<f64> {
        match follow {
            Follow::Moments => {
                let share = MEMORY / (self.accepted as f64 + MEMORY);
                let (mean, square) = &mut self.curvatures;
                *mean += share * (seen - *mean);
                *square += share * (seen * seen - *square);
                (*mean > 0.0).then(|| *square / *mean)
            }
            Follow::Shares { upwards, downwards } => {
                Some(known + if seen > known { upwards } else { downwards } * (seen - known))
            }
        }
    }

    /// After an accepted step of the size a with the balance b, whose measurements are in `measured`. Learns γₖ.
    pub(super) fn accept(&mut self, measured: &Self, a: f64, balance: f64) {
        let Self { curvature, curvatures, .. } = *self;
        *self = Self { curvature, curvatures, size: Some(a), at_average: false, ..*measured };
        self.accepted += 1;
        self.noise.remembered += 1.0;
        self.balance += balance.clamp(-OUTLIER, OUTLIER);
        self.balances += 1.0;
        if self.balances >= WINDOW.max(self.accepted as f64 / MEMORY) {
            let mean = self.balance / self.balances;
            if mean > CIRCLES && self.noise.recent < VANISHES * self.noise.mean {
                self.trust *= 0.5;
            } else if mean < ADVANCES {
                self.trust = (SQRT_2 * self.trust).min(1.0);
            }
            (self.balance, self.balances) = (0.0, 0.0);
        }
    }

    /// After a rejected step of the size a.
    pub(super) fn reject(&mut self, a: f64) {
        self.size = Some(a / SHRINK);
    }

    /// After z was moved to the average, because f is not finite where the gradient was to be taken.
    pub(super) fn retreat(&mut self) {
        self.size = self.size.map(|a| a / SHRINK);
        self.at_average = true;
    }
}

impl Learned {
    /// Steps accepted.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted
    }
    /// κ, the curvature of the model; `None` until a trial has shown one.
    #[must_use]
    pub fn curvature(&self) -> Option<f64> {
        self.curvature
    }
    /// The last step size a, or a quarter of it after a rejection; `None` before the first step.
    #[must_use]
    pub fn size(&self) -> Option<f64> {
        self.size
    }
    /// The constants by name, for the versions on a device.
    pub const CONSTANTS: &'static [(&'static str, f64)] = CONSTANTS;
    /// The names of the [`numbers`](Self::numbers).
    pub const NAMES: [&'static str; 14] = [
        "accepted",
        "curvature",
        "mean_curvature",
        "square_curvature",
        "noise",
        "recent_noise",
        "least_noise",
        "remembered",
        "distance",
        "size",
        "trust",
        "balance",
        "balances",
        "at_average",
    ];

    /// As plain numbers. An unknown curvature or size is 0.
    #[must_use]
    pub fn numbers(&self) -> [f64; 14] {
        let Self { accepted, curvature, curvatures, noise, distance, size, trust, balance, balances, at_average } =
            *self;
        let Noise { mean, recent, least, remembered } = noise;
        let (curvature, size) = (curvature.unwrap_or(0.0), size.unwrap_or(0.0));
        let [accepted, at_average] = [accepted as f64, f64::from(u8::from(at_average))];
        let (h, h_square) = curvatures;
        [
            accepted, curvature, h, h_square, mean, recent, least, remembered, distance, size, trust, balance,
            balances, at_average,
        ]
    }

    /// From plain numbers.
    #[must_use]
    pub fn from_numbers(numbers: [f64; 14]) -> Self {
        let [accepted, curvature, h, h_square, rest @ ..] = numbers;
        let [mean, recent, least, remembered, distance, size, trust, balance, balances, at_average] = rest;
        let known = |number: f64| Some(number).filter(|&number| number > 0.0);
        Self {
            accepted: accepted as u64,
            curvature: known(curvature),
            curvatures: (h, h_square),
            noise: Noise { mean, recent, least, remembered },
            distance,
            size: known(size),
            trust,
            balance,
            balances,
            at_average: at_average > 0.0,
        }
    }

    /// A step of [`Auto`](super::Auto) as CUDA source. The macro `REAL` must be `float` or `double`.
    #[must_use]
    pub fn cuda_source() -> String {
        let constants: Vec<String> =
            CONSTANTS.iter().map(|(name, value)| format!("constexpr double {name} = {value:?};")).collect();
        let (constants, numbers) = (constants.join("\n"), Self::NAMES.join(", "));
        format!("{constants}\nstruct Learned {{\n  double {numbers};\n}};\n{}", include_str!("auto.cu"))
    }
}

#[cfg(test)]
mod tests;
