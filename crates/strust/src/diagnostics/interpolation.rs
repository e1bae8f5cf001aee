//! The verdict on interpolation: it holds, is doubtful or is violated.

use super::{
    gradient_pairs::{Interval, Pairs},
    strong_growth::StrongGrowth,
};
use std::fmt;

/// Whether the gradients of all terms vanish where the gradient of their sum vanishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Interpolation {
    /// ρ stayed bounded while the gradient decreased by a large factor.
    Holds,
    /// The data are not sufficient for a verdict.
    Doubtful,
    /// The variance of the terms' gradients did not decrease with the gradient of their sum.
    Violated,
}

impl fmt::Display for Interpolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::Doubtful => "is doubtful",
            Self::Violated => "is violated here",
        })
    }
}

/// ‖∇f‖² and ρ in one part of a run, each with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Evidence {
    /// ‖∇f‖².
    pub gradient_squared: f64,
    /// Its interval.
    pub gradient_interval: Interval,
    /// ρ of the run's mini-batches.
    pub rho: f64,
    /// Its interval.
    pub rho_interval: Interval,
    /// The variance V of one term's gradient.
    pub variance: f64,
}

/// The reason for a doubtful verdict without enough data.
pub(super) const TOO_FEW: &str = "too few mini-batches to distinguish ∇f from their noise";
/// The decrease of ‖∇f‖² that is needed to conclude that ρ is bounded.
const FAR: f64 = 100.0;
/// The decrease of ‖∇f‖² that is needed to conclude that ρ grows.
const SOME: f64 = 10.0;
/// The largest growth of ρ, as a power of the decrease of ‖∇f‖², for which interpolation holds. It is not 0: in an
/// ill-conditioned valley of an interpolating quadratic, ‖∇f‖² decreases like λ² and the variance like λ, so ρ grows
/// like the square root.
const BOUNDED: f64 = 0.6;
/// The power from which interpolation is violated. With noise the power is 1.
const UNBOUNDED: f64 = 0.8;

impl Evidence {
    /// From exact numbers.
    #[must_use]
    pub fn exact(at: &StrongGrowth, rho: f64) -> Self {
        let point = |value| Interval { low: value, high: value };
        Self {
            gradient_squared: at.gradient_squared,
            gradient_interval: point(at.gradient_squared),
            rho,
            rho_interval: point(rho),
            variance: at.variance,
        }
    }

    /// From pairs of mini-batches, for batches of the given size.
    #[must_use]
    pub fn estimated(pairs: &Pairs, batch: usize) -> Self {
        Self {
            gradient_squared: pairs.gradient_squared(),
            gradient_interval: pairs.gradient_interval(),
            rho: pairs.rho(batch),
            rho_interval: pairs.rho_interval(batch),
            variance: pairs.variance(),
        }
    }

    /// The verdict from two parts of a run, and its reason. `self` is the later part; `epsilon` is the relative
    /// rounding error.
    ///
    /// A single point is not enough, because ρ is finite wherever ∇f ≠ 0. Interpolation means that ρ stays bounded as
    /// ∇f vanishes. Let ‖∇f‖² decrease by a factor F. With strong growth ρ stays constant. In an ill-conditioned valley
    /// it may grow like √F. With noise, V → V₀ > 0, and ρ grows like F. The verdict uses the least favorable ends of
    /// all intervals: *holds* needs F ≥ 100 and a growth of ρ by at most F^0.6; *violated* needs F ≥ 10 and a growth of
    /// at least F^0.8. In all other cases it is *doubtful*.
    ///
    /// On noisy data a run stalls when its mini-batches no longer resolve ∇f, so the verdict is doubtful.
    /// [`probe`](super::probe) continues from there with full gradients.
    ///
    /// ```
    /// use strust::diagnostics::{Evidence, Interpolation, StrongGrowth};
    /// let at = |gradient_squared, variance| {
    ///     let point = StrongGrowth { gradient_squared, variance, terms: 10 };
    ///     Evidence::exact(&point, 1.0 + variance / gradient_squared)
    /// };
    /// let start = at(1.0, 3.0);
    /// assert_eq!(at(1e-6, 4e-6).verdict(&start, f64::EPSILON).0, Interpolation::Holds);
    /// assert_eq!(at(1e-6, 1.0).verdict(&start, f64::EPSILON).0, Interpolation::Violated);
    /// assert_eq!(at(0.5, 1.0).verdict(&start, f64::EPSILON).0, Interpolation::Doubtful);
    /// ```
    #[must_use]
    pub fn verdict(&self, before: &Self, epsilon: f64) -> (Interpolation, String) {
        self.against(before, rounding(before.gradient_squared + before.variance, epsilon))
    }

    /// The same; squared gradients up to `rounding` count as rounding errors.
    pub(super) fn against(&self, before: &Self, rounding: f64) -> (Interpolation, String) {
        if self.variance.abs() <= rounding {
            let what = if self.gradient_squared <= rounding { "vanish together" } else { "are equal" };
            return (Interpolation::Holds, format!("the gradients of all terms {what}, up to rounding"));
        }
        if before.gradient_interval.high <= rounding {
            let variance = self.variance;
            let why = format!("∇f = 0 up to rounding, but the variance of the terms' gradients is {variance:.1e}");
            return (Interpolation::Violated, why);
        }
        // The smallest decrease that the intervals allow. It is unknown if the end of an interval is 0 or negative.
        let least_fall = before.gradient_interval.low / self.gradient_interval.high.max(f64::MIN_POSITIVE);
        if !(least_fall.is_finite() && self.rho_interval.low.is_finite()) {
            return (Interpolation::Doubtful, TOO_FEW.into());
        }
        let fall = before.gradient_squared / self.gradient_squared;
        let shown = if fall.is_finite() && fall > 0.0 { fall } else { least_fall };
        let Interval { low, high } = self.rho_interval;
        let interval = if low < high { format!(" (95 %: {} to {})", short(low), short(high)) } else { String::new() };
        let facts = format!(
            "while ‖∇f‖² decreased by a factor of {shown:.1e}, ρ changed from {} to {}{interval}",
            short(before.rho),
            short(self.rho)
        );
        let most_growth = self.rho_interval.high / before.rho_interval.low;
        let least_growth = self.rho_interval.low / before.rho_interval.high;
        if least_fall >= FAR && most_growth <= least_fall.powf(BOUNDED) {
            (Interpolation::Holds, facts)
        } else if least_fall >= SOME && least_growth >= least_fall.powf(UNBOUNDED) {
            (Interpolation::Violated, facts)
        } else if least_fall < SOME {
            (Interpolation::Doubtful, format!("‖∇f‖² has decreased too little for a verdict: {facts}"))
        } else {
            (Interpolation::Doubtful, facts)
        }
    }
}

/// Squared gradients below this are rounding errors, if `squared` is the largest squared gradient.
pub(super) fn rounding(squared: f64, epsilon: f64) -> f64 {
    (100.0 * epsilon).powi(2) * squared
}

/// A number in a short format.
fn short(value: f64) -> String {
    if (0.1..1e4).contains(&value) { format!("{value:.1}") } else { format!("{value:.1e}") }
}
