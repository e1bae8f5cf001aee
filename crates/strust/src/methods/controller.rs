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

// These are not settings. docs/auto.md shows what each of them changes.
constants! {
    /// The length of the first step, relative to 1 + ‖x₀‖. This is the only place where the unit of x enters: nothing is
    /// known yet, and x₀ may be 0. A step that is too short grows by [`GROWTH`] each time; one that is too long is
    /// rejected.
    FIRST = 1e-3;
    /// A step size is at most this multiple of the last one.
    GROWTH = 1.5;
    /// A rejection divides the step size by this.
    SHRINK = 4.0;
    /// A curvature above this multiple of κ, or a balance beyond this, is an outlier. It counts as this much only. A step
    /// that increases f is accepted if the curvature that it saw is no outlier.
    OUTLIER = 3.0;
    /// The share of a larger curvature in the new κ. It is large, because an underestimate makes steps too long.
    UPWARDS = 0.2;
    /// The share of a smaller curvature in the new κ. It is small, because most batches are harmless, and a few are not.
    DOWNWARDS = 0.01;
    /// The noise is a mean over about the last quarter of the steps: 1 over this.
    NOISE_MEMORY = 4.0;
    /// A mean needs this many steps: before, the noise does not limit a step; and where the noise falls, the average still
    /// remembers as many.
    FEW = 10.0;
    /// γₖ can change after this many accepted steps. The recent noise is a mean over about half of them.
    WINDOW = 100.0;
    /// Above this mean balance, z goes around the average: γₖ becomes half as large.
    CIRCLES = 0.45;
    /// Below this mean balance, z still advances: γₖ grows by √2, so that two windows undo a halving.
    ADVANCES = 0.3;
    /// γₖ stays at this or more. From 2/κ on, the model no longer descends.
    LEAST = 2.0;
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
        self.mean += (NOISE_MEMORY / (steps + NOISE_MEMORY - 1.0)).min(1.0) * (difference - self.mean);
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
    /// n, the noise of the gradients, and m, the number of steps that the average remembers.
    pub(crate) noise: Noise,
    /// r̄, the largest distance from the start.
    pub(crate) distance: f64,
    /// The last step size a, or a quarter of it after a rejection; `None` before the first step.
    pub(crate) size: Option<f64>,
    /// γₖ/γ, at most 1.
    pub(crate) trust: f64,
    /// The sum of the balances b since γₖ could last change.
    pub(crate) balance: f64,
    /// Whether no step was accepted since z was last moved to the average. At the start it is there.
    pub(crate) at_average: bool,
}
crate::saved!([] Learned { accepted, curvature, noise, distance, size, trust, balance, at_average });

impl Default for Learned {
    /// At the start nothing is known.
    fn default() -> Self {
        Self {
            accepted: 0,
            curvature: None,
            noise: Noise::default(),
            distance: 0.0,
            size: None,
            trust: 1.0,
            balance: 0.0,
            at_average: true,
        }
    }
}

/// What a method may choose.
#[derive(Debug, Clone, Copy)]
pub(super) struct SizeRule {
    /// Longest step γ, in multiples of the model's minimum 1/κ.
    pub gamma: f64,
    /// Length q of a step against noise, in multiples of r̄/√(k·n).
    pub noise: f64,
    /// From this many steps on, noise limits a step.
    pub noise_from: f64,
    /// The share of a smaller curvature in the new κ.
    pub downwards: f64,
}

impl SizeRule {
    /// The rule of a method that averages.
    pub const fn new(gamma: f64, noise: f64) -> Self {
        Self { gamma, noise, noise_from: FEW, downwards: DOWNWARDS }
    }
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

impl Learned {
    /// ‖Δ‖ of the first step of z.
    pub(super) fn first_length(norm_of_start: f64) -> f64 {
        FIRST * (1.0 + norm_of_start)
    }

    /// With what a step measures before its trial: the distance from the start and ½‖g − gₗₐₛₜ‖², which counts from the
    /// second step on.
    pub(super) fn with_measured(mut self, distance: f64, difference: f64) -> Self {
        self.distance = self.distance.max(distance);
        if self.accepted > 0 {
            self.noise.learn(self.accepted, difference);
        }
        self
    }

    /// a = min(γₖ/κ, q·r̄/√(k·n), 1.5·aₗₐₛₜ); `None` at the first step.
    pub(super) fn next_size(&self, rule: &SizeRule) -> Option<f64> {
        let mut a = GROWTH * self.size?;
        if let Some(curvature) = self.curvature {
            a = a.min(rule.gamma * self.trust / curvature);
        }
        let (accepted, noise) = (self.accepted as f64, self.noise.mean);
        if accepted >= rule.noise_from && noise > 0.0 {
            a = a.min(rule.noise * self.distance / ((accepted + 1.0) * noise).sqrt());
        }
        Some(a)
    }

    /// Whether a trial is accepted. Learns κ from it.
    pub(super) fn judge(&mut self, rule: &SizeRule, trial: &TrialNumbers) -> bool {
        let TrialNumbers { descends, beyond, rounding, square } = *trial;
        if !beyond.is_finite() {
            return false;
        }
        // A difference below the rounding error of f says nothing about the curvature.
        let curvature = (beyond.abs() > 2.0 * rounding && square > 0.0).then(|| 2.0 * beyond / square);
        let expected = self.curvature.zip(curvature).is_some_and(|(known, seen)| seen <= OUTLIER * known);
        if let Some(seen) = curvature {
            self.curvature = match self.curvature {
                None => Some(seen).filter(|&seen| seen > 0.0),
                Some(known) => {
                    let seen = seen.clamp(0.0, OUTLIER * known);
                    Some(known + if seen > known { UPWARDS } else { rule.downwards } * (seen - known))
                }
            };
        }
        descends || expected
    }

    /// After an accepted step of the size a with the balance b, whose measurements are in `measured`. Learns γₖ.
    pub(super) fn accept(&mut self, rule: &SizeRule, measured: &Self, a: f64, balance: f64) {
        *self = Self { curvature: self.curvature, size: Some(a), at_average: false, ..*measured };
        self.accepted += 1;
        self.noise.remembered += 1.0;
        self.balance += balance.clamp(-OUTLIER, OUTLIER);
        if self.accepted.is_multiple_of(WINDOW as u64) {
            let mean = self.balance / WINDOW;
            if mean > CIRCLES {
                self.trust = (0.5 * self.trust).max((LEAST / rule.gamma).min(1.0));
            } else if mean < ADVANCES {
                self.trust = (SQRT_2 * self.trust).min(1.0);
            }
            self.balance = 0.0;
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
    /// The constants by name.
    pub const CONSTANTS: &'static [(&'static str, f64)] = CONSTANTS;
    /// The names of the [`numbers`](Self::numbers).
    pub const NAMES: [&'static str; 11] = [
        "accepted",
        "curvature",
        "noise",
        "recent_noise",
        "least_noise",
        "remembered",
        "distance",
        "size",
        "trust",
        "balance",
        "at_average",
    ];

    /// As plain numbers. An unknown curvature or size is 0.
    #[must_use]
    pub fn numbers(&self) -> [f64; 11] {
        let Self { accepted, curvature, noise, distance, size, trust, balance, at_average } = *self;
        let Noise { mean, recent, least, remembered } = noise;
        let (curvature, size) = (curvature.unwrap_or(0.0), size.unwrap_or(0.0));
        let at_average = f64::from(u8::from(at_average));
        [accepted as f64, curvature, mean, recent, least, remembered, distance, size, trust, balance, at_average]
    }

    /// From plain numbers.
    #[must_use]
    pub fn from_numbers(numbers: [f64; 11]) -> Self {
        let [accepted, curvature, mean, recent, least, remembered, distance, size, trust, balance, at_average] =
            numbers;
        let known = |number: f64| Some(number).filter(|&number| number > 0.0);
        Self {
            accepted: accepted as u64,
            curvature: known(curvature),
            noise: Noise { mean, recent, least, remembered },
            distance,
            size: known(size),
            trust,
            balance,
            at_average: at_average > 0.0,
        }
    }

    /// A step of [`Auto`](super::Auto) as CUDA source. The macro `REAL` must be `float` or `double`.
    #[must_use]
    pub fn cuda_source() -> String {
        let line =
            |text: String, (name, value): &(&str, f64)| text + &format!("constexpr double {name} = {value:?};\n");
        let constants = CONSTANTS.iter().fold(String::new(), line);
        let numbers = Self::NAMES.join(", ");
        format!("{constants}struct Learned {{\n  double {numbers};\n}};\n{}", include_str!("auto.cu"))
    }
}

#[cfg(test)]
mod golden_steps;
