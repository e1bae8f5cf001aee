//! Stopping rules that can be combined, and the reason why a run stopped. An exhausted budget never counts as
//! converged.

use crate::{
    kkt::Measurement,
    objective::{Evaluation, Evaluations},
};
use std::{fmt, time::Duration};

/// A stopping rule.
///
/// ```
/// use std::time::Duration;
/// use strust::stop::Stop;
/// let stop = Stop::kkt(1e-6).or(Stop::epochs(50)).or(Stop::wall_clock(Duration::from_secs(60)));
/// # let _ = stop;
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Stop {
    /// After this many steps.
    Steps(u64),
    /// After this many passes over the terms.
    Epochs(u64),
    /// After this many mini-batch evaluations: values, gradients and products together.
    Evaluations(u64),
    /// After this much time, checked after every step.
    WallClock(Duration),
    /// When the norm of the full gradient is at most this. With constraints: when the norm of the Lagrangian's gradient
    /// and ‖c‖ are both at most this, because an infeasible point has not converged. Measured once per epoch.
    GradientNorm(f64),
    /// When x is an ε-KKT point on the full sum: the norm of the Lagrangian's gradient and ‖c‖ are at most this.
    /// Measured once per epoch.
    Kkt(f64),
    /// When the merit did not decrease by more than this fraction over this many measurements, one per epoch. A method that
    /// finds by itself where progress ends, such as STR-SQP on all terms, goes on until then.
    Stagnation {
        /// The relative decrease that counts as progress.
        tolerance: f64,
        /// Measurements without progress.
        patience: u64,
    },
    /// When the rule holds, such as a stagnation or a budget. The run has converged if the gradient is then negligible, on
    /// the full sum and without constraints:
    ///
    /// ‖∇f(x)‖·max(‖x − x₀‖, ‖x‖) ≤ 10⁻⁴·min(f(x₀) − f(x), G‖x − x₀‖),
    ///
    /// where x₀ is the start and G the largest measured ‖∇f‖. To first order, a move as long as the whole run, or as x
    /// itself, would then decrease f by no more than a fraction 10⁻⁴ of what the run has. The scales of f and x and
    /// constants in f do not matter. For a convex f with a minimum within that distance this bounds f(x) − f*. Where the
    /// curvature is that of the way from x₀, f(x) − f* is about 10⁻⁸ of the decrease, because the gradient vanishes
    /// linearly and f quadratically. A decrease by more than G‖x − x₀‖ is noise: it does not come from these gradients.
    ///
    /// A run that starts at a minimum cannot decrease f by more than rounding errors. It has converged if ∇f(x) = 0, or if
    /// ‖∇f(x)‖ times the length of x₀ and of x is at most ten rounding errors of f.
    Confirmed(Box<Stop>),
    /// When one of the rules holds. If a tolerance and a budget hold at the same time, the tolerance is the reason.
    Any(Vec<Stop>),
    /// When all rules hold at the same time.
    All(Vec<Stop>),
}

impl Default for Stop {
    /// When the relative decrease of the merit over ten epochs is at most 1e-8, or after 1,000 epochs;
    /// [confirmed](Stop::Confirmed), so a run at a minimum has converged.
    fn default() -> Self {
        Self::stagnation(1e-8, 10).or(Self::epochs(1000)).confirmed()
    }
}

impl From<&Stop> for Stop {
    fn from(stop: &Stop) -> Self {
        stop.clone()
    }
}

impl Stop {
    /// [`Stop::Steps`].
    #[must_use]
    pub fn steps(n: u64) -> Self {
        Self::Steps(n)
    }
    /// [`Stop::Epochs`].
    #[must_use]
    pub fn epochs(n: u64) -> Self {
        Self::Epochs(n)
    }
    /// [`Stop::Evaluations`].
    #[must_use]
    pub fn evaluations(n: u64) -> Self {
        Self::Evaluations(n)
    }
    /// [`Stop::WallClock`].
    #[must_use]
    pub fn wall_clock(limit: Duration) -> Self {
        Self::WallClock(limit)
    }
    /// [`Stop::GradientNorm`].
    #[must_use]
    pub fn gradient_norm(tolerance: f64) -> Self {
        Self::GradientNorm(tolerance)
    }
    /// [`Stop::Kkt`].
    #[must_use]
    pub fn kkt(tolerance: f64) -> Self {
        Self::Kkt(tolerance)
    }
    /// [`Stop::Stagnation`].
    #[must_use]
    pub fn stagnation(tolerance: f64, patience: u64) -> Self {
        Self::Stagnation { tolerance, patience }
    }
    /// [`Stop::Confirmed`].
    #[must_use]
    pub fn confirmed(self) -> Self {
        Self::Confirmed(Box::new(self))
    }
    /// Stops when one of both holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Any(mut rules) => {
                rules.push(other);
                Self::Any(rules)
            }
            rule => Self::Any(vec![rule, other]),
        }
    }
    /// Stops when both hold at the same time.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::All(mut rules) => {
                rules.push(other);
                Self::All(rules)
            }
            rule => Self::All(vec![rule, other]),
        }
    }

    /// Whether the rule needs measurements on the full sum.
    #[must_use]
    pub fn needs_measurements(&self) -> bool {
        match self {
            Self::GradientNorm(_) | Self::Kkt(_) | Self::Stagnation { .. } => true,
            Self::Confirmed(rule) => rule.needs_measurements(),
            Self::Any(rules) | Self::All(rules) => rules.iter().any(Self::needs_measurements),
            _ => false,
        }
    }
    /// Whether the rule compares a point with the start.
    pub(crate) fn needs_start(&self) -> bool {
        match self {
            Self::Confirmed(_) => true,
            Self::Any(rules) | Self::All(rules) => rules.iter().any(Self::needs_start),
            _ => false,
        }
    }

    /// The reason to stop now, if there is one.
    #[must_use]
    pub fn decide(&self, now: &Progress) -> Option<StopReason> {
        match self {
            Self::Steps(n) => (now.steps >= *n).then_some(StopReason::Steps),
            Self::Epochs(n) => (now.steps >= n.saturating_mul(now.steps_per_epoch)).then_some(StopReason::Epochs),
            Self::Evaluations(n) => (now.evaluations.count() >= *n).then_some(StopReason::Evaluations),
            Self::WallClock(limit) => (now.elapsed >= *limit).then_some(StopReason::WallClock),
            Self::GradientNorm(tolerance) => now.is_kkt_point(*tolerance).then_some(StopReason::GradientNorm),
            Self::Kkt(tolerance) => now.is_kkt_point(*tolerance).then_some(StopReason::Kkt),
            Self::Stagnation { tolerance, patience } => {
                now.stagnated(*tolerance, *patience).then_some(StopReason::Stagnation)
            }
            Self::Confirmed(rule) => {
                let reason = rule.decide(now)?;
                let is_new = !reason.converged() && now.has_negligible_gradient();
                Some(if is_new { StopReason::GradientNorm } else { reason })
            }
            Self::Any(rules) => {
                let reasons = || rules.iter().filter_map(|rule| rule.decide(now));
                reasons().find(|r| r.converged()).or_else(|| reasons().next())
            }
            Self::All(rules) => {
                let reasons: Option<Vec<_>> = rules.iter().map(|rule| rule.decide(now)).collect();
                let reasons = reasons?;
                reasons.iter().find(|r| r.converged()).or(reasons.first()).copied()
            }
        }
    }
}

/// The input of a stopping rule after a step.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Steps made.
    pub steps: u64,
    /// Steps per epoch.
    pub steps_per_epoch: u64,
    /// Evaluations in the steps.
    pub evaluations: Evaluations,
    /// Time since the run began.
    pub elapsed: Duration,
    /// The measurement at the current point, if one was made.
    pub measured: Option<Measurement>,
    /// All measured merits, oldest first, and the least of the first n of them for each n.
    pub(crate) merits: Vec<(f64, f64)>,
    /// The measured point beside the start, for rules that compare them.
    pub(crate) travel: Option<Travel>,
    /// Whether the method itself will find where progress ends.
    pub(crate) settles: bool,
}

/// A measured point beside the start of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Travel {
    /// f at the start.
    pub start_value: f64,
    /// ‖x₀‖.
    pub start_length: f64,
    /// ‖x‖.
    pub length: f64,
    /// ‖x − x₀‖.
    pub moved: f64,
    /// G, the largest measured gradient norm.
    pub largest_gradient: f64,
    /// The relative rounding error of a component.
    pub epsilon: f64,
}

/// The fraction of the decrease of a run that counts as negligible: the root of the tolerance 1e-8 of [`Stop::default`].
/// Near a minimum the gradient is a root of the distance to it in f, so both end together. On 13 functions, at scales of f
/// and x from 1e-8 to 1e8, runs at a minimum ended below 1e-4, all others above 1e-3.
const NEGLIGIBLE: f64 = 1e-4;
/// How many rounding errors of f a move may change it by, where a run has decreased f by rounding errors only.
const ROUNDING_ERRORS: f64 = 10.0;

impl Progress {
    /// The rule of [`Stop::Confirmed`].
    fn has_negligible_gradient(&self) -> bool {
        let (Some(measured), Some(travel)) = (self.measured, self.travel) else { return false };
        if measured.constraint_norm > 0.0 || !measured.is_finite() {
            return false;
        }
        let rounding = |value: f64| Evaluation::new(value, travel.epsilon).rounding;
        let errors = rounding(travel.start_value) + rounding(measured.value);
        let decrease = travel.start_value - measured.value;
        let (reach, limit) = if decrease > errors {
            let explained = travel.largest_gradient * travel.moved;
            (travel.moved.max(travel.length), NEGLIGIBLE * (decrease - errors).min(explained))
        } else {
            (travel.start_length.min(travel.length), ROUNDING_ERRORS * rounding(measured.value))
        };
        let gradient = measured.gradient_norm;
        gradient <= 0.0 || (reach > 0.0 && gradient * reach <= limit)
    }
    /// Whether the point was measured and both its residuals are at most `tolerance`.
    fn is_kkt_point(&self, tolerance: f64) -> bool {
        self.measured.is_some_and(|m| m.kkt() <= tolerance)
    }
    /// Adds a measured merit.
    pub(crate) fn add_merit(&mut self, merit: f64) {
        let least = self.merits.last().map_or(f64::INFINITY, |&(_, least)| least).min(merit);
        self.merits.push((merit, least));
    }
    fn stagnated(&self, tolerance: f64, patience: u64) -> bool {
        let patience = patience.max(1) as usize;
        if self.settles || self.measured.is_none() || self.merits.len() <= patience {
            return false;
        }
        let (before, recent) = self.merits.split_at(self.merits.len() - patience);
        let before = before.last().map_or(f64::INFINITY, |&(_, least)| least);
        let recent = recent.iter().fold(f64::INFINITY, |least, &(merit, _)| least.min(merit));
        before - recent <= tolerance * before.abs()
    }
}

/// Why a run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum StopReason {
    /// The budget of steps is used up.
    Steps,
    /// The budget of epochs is used up.
    Epochs,
    /// The budget of evaluations is used up.
    Evaluations,
    /// The time is used up.
    WallClock,
    /// The gradient is small.
    GradientNorm,
    /// The KKT residual is small.
    Kkt,
    /// There was no more progress.
    Stagnation,
    /// The constraints contradict each other near the final point: their violation has a minimum there.
    Infeasible,
    /// The final point is feasible, but no constraint qualification holds there: its multipliers are unbounded.
    NoQualification,
    /// No step of any length was accepted.
    Stalled,
    /// An observer stopped the run.
    Observer,
    /// The run broke down; [`Report::breakdown`](crate::run::Report::breakdown) contains the error.
    Breakdown,
}

impl StopReason {
    /// A name for programs, the same as in saved files. It never changes; the words of `Display` may.
    ///
    /// ```
    /// assert_eq!(strust::stop::StopReason::GradientNorm.code(), "gradient-norm");
    /// ```
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Epochs => "epochs",
            Self::Evaluations => "evaluations",
            Self::WallClock => "wall-clock",
            Self::GradientNorm => "gradient-norm",
            Self::Kkt => "kkt",
            Self::Stagnation => "stagnation",
            Self::Infeasible => "infeasible",
            Self::NoQualification => "no-qualification",
            Self::Stalled => "stalled",
            Self::Observer => "observer",
            Self::Breakdown => "breakdown",
        }
    }
    /// Whether an optimality condition is satisfied at a feasible point. This is false for an exhausted budget,
    /// stagnation, a verdict on the constraints, an observer and a breakdown.
    #[must_use]
    pub fn converged(self) -> bool {
        matches!(self, Self::GradientNorm | Self::Kkt)
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steps => "step budget used up",
            Self::Epochs => "epoch budget used up",
            Self::Evaluations => "evaluation budget used up",
            Self::WallClock => "time used up",
            Self::GradientNorm => "converged: small gradient",
            Self::Kkt => "converged: small KKT residual",
            Self::Stagnation => "stagnated",
            Self::Infeasible => "the constraints contradict each other near the final point",
            Self::NoQualification => "feasible, but without a constraint qualification",
            Self::Stalled => "stalled: no step was accepted",
            Self::Observer => "stopped by an observer",
            Self::Breakdown => "broke down",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(steps: u64, gradient_norm: Option<f64>) -> Progress {
        let measured =
            gradient_norm.map(|g| Measurement { value: 1.0, merit: 1.0, gradient_norm: g, constraint_norm: 0.0 });
        Progress { steps, steps_per_epoch: 4, measured, ..Progress::default() }
    }

    #[test]
    fn only_tolerances_count_as_converged() {
        let stop = Stop::gradient_norm(0.1).or(Stop::epochs(2));
        assert_eq!(stop.decide(&at(7, None)), None);
        assert_eq!(stop.decide(&at(8, Some(0.2))), Some(StopReason::Epochs));
        assert_eq!(stop.decide(&at(8, Some(0.1))), Some(StopReason::GradientNorm));
        assert!(!StopReason::Epochs.converged() && StopReason::GradientNorm.converged());
        assert!(!StopReason::Stagnation.converged() && !StopReason::Observer.converged());
    }

    #[test]
    fn all_stops_when_every_rule_holds_and_reports_the_tolerance() {
        let stop = Stop::steps(10).and(Stop::gradient_norm(0.1));
        assert_eq!(stop.decide(&at(12, Some(0.5))), None);
        assert_eq!(stop.decide(&at(9, Some(0.0))), None);
        assert_eq!(stop.decide(&at(10, Some(0.1))), Some(StopReason::GradientNorm));
    }

    #[test]
    fn an_infeasible_point_never_converges() {
        let infeasible = Measurement { value: 1.0, merit: 1.0, gradient_norm: 0.0, constraint_norm: 1.92 };
        let now = Progress { measured: Some(infeasible), ..at(1, None) };
        for rule in [Stop::gradient_norm(1e-8), Stop::kkt(1e-8)] {
            assert_eq!(rule.decide(&now), None);
            assert_eq!(rule.clone().or(Stop::steps(1)).decide(&now), Some(StopReason::Steps));
            assert_eq!(rule.and(Stop::steps(1)).decide(&now), None);
        }
    }

    #[test]
    fn nan_measurements_never_converge() {
        assert_eq!(Stop::gradient_norm(1.0).decide(&at(1, Some(f64::NAN))), None);
        assert_eq!(Stop::kkt(1.0).decide(&at(1, Some(f64::NAN))), None);
    }

    #[test]
    fn the_codes_are_the_names_in_saved_files_and_never_change() {
        use StopReason::{
            Breakdown, Epochs, Evaluations, GradientNorm, Infeasible, Kkt, NoQualification, Observer, Stagnation,
            Stalled, Steps, WallClock,
        };
        let budgets = [Steps, Epochs, Evaluations, WallClock];
        let others = [GradientNorm, Kkt, Stagnation, Infeasible, NoQualification, Stalled, Observer, Breakdown];
        let codes: Vec<_> = budgets.into_iter().chain(others).map(StopReason::code).collect();
        let expected = "steps epochs evaluations wall-clock gradient-norm kkt stagnation infeasible no-qualification \
                        stalled observer breakdown";
        assert_eq!(codes.join(" "), expected);
        for reason in budgets.into_iter().chain(others) {
            assert_eq!(serde_json::to_string(&reason).unwrap(), format!("\"{}\"", reason.code()));
        }
    }

    /// A run from x₀ with f(x₀) and ‖x₀‖ to x with f(x), ‖x‖, ‖x − x₀‖ and ‖∇f(x)‖.
    fn ended(start: (f64, f64), end: (f64, f64, f64), gradient_norm: f64) -> Option<StopReason> {
        let ((start_value, start_length), (value, length, moved)) = (start, end);
        let measured = Measurement { value, merit: value, gradient_norm, constraint_norm: 0.0 };
        let largest_gradient = 10.0 * start_value / length.max(start_length);
        let travel = Travel { start_value, start_length, length, moved, largest_gradient, epsilon: f64::EPSILON };
        let now = Progress { measured: Some(measured), travel: Some(travel), ..at(1, None) };
        Stop::steps(1).confirmed().decide(&now)
    }

    #[test]
    fn a_gradient_is_negligible_beside_the_decrease_of_the_run_and_the_way() {
        use StopReason::{GradientNorm, Steps};
        for (f, x) in [(1.0, 1.0), (1e-8, 1e8), (1e8, 1e-8), (1e-100, 1e-100)] {
            let run = |g: f64| ended((5.0 * f, 0.0), (f, 2.0 * x, 2.0 * x), g * f / x);
            assert_eq!(run(1.9e-4), Some(GradientNorm));
            assert_eq!(run(2.1e-4), Some(Steps));
            // A constant in f changes nothing.
            let raised = |g: f64| ended((1005.0 * f, 0.0), (1001.0 * f, 2.0 * x, 2.0 * x), g * f / x);
            assert_eq!((raised(1.9e-4), raised(2.1e-4)), (Some(GradientNorm), Some(Steps)));
            // The way may be as long as x.
            assert_eq!(ended((5.0 * f, 100.0 * x), (f, 100.0 * x, 2.0 * x), 1.9e-4 * f / x), Some(Steps));
        }
        assert_eq!(ended((5.0, 0.0), (1.0, 2.0, 2.0), f64::NAN), Some(Steps));
        // A move of 1e-6 with gradients of 25 does not decrease f by 4.
        assert_eq!(ended((5.0, 2.0), (1.0, 2.0, 1e-6), 1e-5), Some(Steps));
        assert_eq!(
            Stop::steps(2).confirmed().decide(&at(1, Some(0.0))),
            None,
            "a confirmed rule stops no run by itself"
        );
    }

    #[test]
    fn a_run_without_a_decrease_has_converged_only_at_a_gradient_of_rounding_errors() {
        use StopReason::{GradientNorm, Steps};
        assert_eq!(ended((1.0, 2.0), (1.0, 2.0, 0.0), 1e-15), Some(GradientNorm));
        assert_eq!(ended((1.0, 2.0), (1.0, 2.0, 0.0), 1e-13), Some(Steps));
        // The decrease is a rounding error, and says nothing.
        assert_eq!(ended((1.0, 2.0), (1.0 - 1e-15, 2.0, 1e-20), 1e-10), Some(Steps));
        // Near 0, x has no length of its own.
        assert_eq!(ended((1.0, 0.0), (1.0, 1e-30, 1e-30), 1.0), Some(Steps));
        assert_eq!(ended((1.0, 0.0), (1.0, 0.0, 0.0), 1.0), Some(Steps));
        assert_eq!(ended((1.0, 0.0), (1.0, 0.0, 0.0), 0.0), Some(GradientNorm));
    }

    #[test]
    fn a_point_that_violates_constraints_is_never_confirmed() {
        let measured = Measurement { value: 0.0, merit: 0.0, gradient_norm: 0.0, constraint_norm: 1e-3 };
        let (start_value, start_length, length, moved, largest_gradient) = (1.0, 1.0, 1.0, 1.0, 1.0);
        let travel = Travel { start_value, start_length, length, moved, largest_gradient, epsilon: f64::EPSILON };
        let now = Progress { measured: Some(measured), travel: Some(travel), ..at(1, None) };
        assert_eq!(Stop::steps(1).confirmed().decide(&now), Some(StopReason::Steps));
    }

    #[test]
    fn stagnation_compares_the_best_earlier_merit_with_the_best_recent_one() {
        let stop = Stop::stagnation(0.01, 2);
        let with = |merits: &[f64]| {
            let mut progress = at(1, Some(1.0));
            for &merit in merits {
                progress.add_merit(merit);
            }
            progress
        };
        assert_eq!(stop.decide(&with(&[3.0, 2.0])), None);
        assert_eq!(stop.decide(&with(&[3.0, 2.0, 1.0])), None);
        assert_eq!(stop.decide(&with(&[3.0, 1.0, 1.0, 0.995])), Some(StopReason::Stagnation));
    }
}
