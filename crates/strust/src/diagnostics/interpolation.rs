//! The verdict: does interpolation hold, is it doubtful, is it violated here?

use super::{
    gradient_pairs::{Interval, Pairs},
    strong_growth::StrongGrowth,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Whether the gradients of all terms vanish together with that of their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interpolation {
    /// ρ stayed bounded while the gradient fell a long way.
    Holds,
    /// Nothing can be said with confidence.
    Doubtful,
    /// The variance of the terms' gradients did not follow the gradient of their sum.
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

/// What a stretch of a run says of ‖∇f‖² and ρ, each with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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

/// A fall of ‖∇f‖² from which boundedness of ρ can be believed.
const FAR: f64 = 100.0;
/// A fall from which a growth of ρ can be believed.
const SOME: f64 = 10.0;
/// Growth of ρ, as a power of the fall of ‖∇f‖², up to which interpolation holds. Not 0: along an ill-conditioned
/// valley of an interpolating quadratic ‖∇f‖² falls as λ² and the variance as λ, so ρ grows like the square root.
const BOUNDED: f64 = 0.6;
/// The power from which it is violated; with a floor of noise it is 1.
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

    /// The verdict of two stretches of a run, `self` the later one, in an arithmetic of relative error `epsilon`; and
    /// why.
    ///
    /// One point proves nothing: ρ is finite wherever ∇f ≠ 0. What interpolation says is that ρ stays bounded as ∇f
    /// vanishes. Let ‖∇f‖² fall by a factor F. With strong growth ρ stays where it is, in an ill-conditioned valley it
    /// may grow like √F, and with a floor of noise V → V₀ > 0 it grows like F. The far ends of all intervals count:
    /// *holds* needs F ≥ 100 and a ρ that grew at most like F^0.6; *violated* needs F ≥ 10 and a ρ that grew at least
    /// like F^0.8. Everything else is doubtful.
    ///
    /// A run on noisy data stalls where its mini-batches no longer tell ∇f from their noise, so that its own verdict is
    /// doubtful: [`probe`](super::probe) goes on from there with full gradients.
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

    /// The same, with squared gradients up to `rounding` taken for errors.
    pub(super) fn against(&self, before: &Self, rounding: f64) -> (Interpolation, String) {
        if self.variance.abs() <= rounding {
            let what = if self.gradient_squared <= rounding { "vanish together" } else { "are the same" };
            return (Interpolation::Holds, format!("the gradients of all terms {what}, to rounding"));
        }
        if before.gradient_interval.high <= rounding {
            let why = format!("∇f = 0 to rounding, but the variance of the terms' gradients is {:.1e}", self.variance);
            return (Interpolation::Violated, why);
        }
        // The smallest fall that the data allow; where the end of the interval is 0 or below, there is no telling how
        // far.
        let least_fall = before.gradient_interval.low / self.gradient_interval.high.max(f64::MIN_POSITIVE);
        if !(least_fall.is_finite() && self.rho_interval.low.is_finite()) {
            return (Interpolation::Doubtful, "too few mini-batches were seen to tell ∇f from their noise".into());
        }
        let fall = before.gradient_squared / self.gradient_squared;
        let shown = if fall.is_finite() && fall > 0.0 { fall } else { least_fall };
        let Interval { low, high } = self.rho_interval;
        let interval = if low < high { format!(" (95 %: {} to {})", short(low), short(high)) } else { String::new() };
        let facts = format!(
            "while ‖∇f‖² fell by a factor of {shown:.1e}, ρ went from {} to {}{interval}",
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
            (Interpolation::Doubtful, format!("‖∇f‖² has fallen too little to tell: {facts}"))
        } else {
            (Interpolation::Doubtful, facts)
        }
    }
}

/// Squared gradients below this are rounding errors of those that were once so large.
pub(super) fn rounding(squared: f64, epsilon: f64) -> f64 {
    (100.0 * epsilon).powi(2) * squared
}

/// A number for a sentence.
fn short(value: f64) -> String {
    if (0.1..1e4).contains(&value) { format!("{value:.1}") } else { format!("{value:.1e}") }
}
