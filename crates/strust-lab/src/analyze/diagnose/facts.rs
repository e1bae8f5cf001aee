//! The facts about a run on which its verdict depends, from its records and its examined point.

use super::{
    Examination, RecordStats,
    course::{Course, TOLERANCE},
    examine::{FeatureSizes, Generalization},
};
use crate::{
    data::{experiment::Experiment, parameters::number, plan::Job},
    registry::{
        Quantity,
        methods::{self, StepKind},
        problems,
    },
};
use strust::{config::Config, radius::RegionConfig};

/// Noise explains a plateau if it is at least as large as the gradient.
const NOISY: f64 = 1.0;
/// Features whose sizes differ by more than this factor, or from 1, slow down first-order steps: the condition number of
/// the Hessian is about its square.
pub(super) const SPREAD: f64 = 100.0;
/// A run overfits if the fit to the test set is worse by this: then at least one in ten answers that it has learned is
/// wrong for new data.
const GAP: f64 = 0.1;
/// A difference of two standard errors is no chance.
const SURE: f64 = 2.0;

/// The facts.
pub(super) struct Facts<'a> {
    pub job: &'a Job,
    pub experiment: &'a Experiment,
    pub stats: &'a RecordStats,
    pub point: Option<&'a Examination>,
    /// Why the job broke down, if it did.
    pub failure: Option<&'a str>,
    /// f − f*, or f minus what a full-batch method reaches, plus ‖λ‖‖c‖: what remains to be done, by epoch.
    pub error: Option<Course>,
    /// Whether f* or such a value is known. Otherwise the error is f itself.
    pub grounded: bool,
    /// ‖c‖ by epoch, and its tolerance.
    pub violation: Option<(Course, f64)>,
    /// α, the length of a step over that of its gradient, in the second half.
    pub step: Option<f64>,
    /// L, the largest curvature that the method meets.
    pub curvature: Option<f64>,
}

impl<'a> Facts<'a> {
    pub fn new(
        experiment: &'a Experiment,
        job: &'a Job,
        stats: &'a RecordStats,
        point: Option<&'a Examination>,
        failure: Option<&'a str>,
    ) -> Self {
        let mut facts = Self {
            job,
            experiment,
            stats,
            point,
            failure,
            error: None,
            grounded: false,
            violation: None,
            step: None,
            curvature: None,
        };
        let noisy = facts.is_noisy();
        // A cosine ends with steps of length 0, so the end of its course has no speed.
        let whole = facts.text("schedule") == Some("cosine");
        let (base, grounded) = facts.base();
        facts.grounded = grounded;
        let weight = point.and_then(|p| p.kkt).map_or(0.0, |kkt| kkt.multiplier_norm / problems::scale(&job.problem));
        let error = |(value, c): &(f64, Option<f64>)| {
            // The product with ‖c‖ = 0 of an infinite multiplier would be NaN.
            let violation = c.filter(|c| *c > 0.0 && weight.is_finite()).map_or(0.0, |c| weight * c);
            (value - base).abs() + violation
        };
        let every = facts.experiment.measure_every.get() as f64;
        let course = |values: &[f64], noisy| Some(Course::new(values, whole, noisy)?.every(every));
        facts.error = course(&stats.curve.iter().map(error).collect::<Vec<_>>(), noisy);
        let violations: Option<Vec<f64>> = stats.curve.iter().map(|(_, c)| *c).collect();
        let tolerance = point.and_then(|p| Some((p, p.kkt?))).map(|(p, kkt)| kkt.jacobian.largest * p.size);
        facts.violation = violations
            .and_then(|values| course(&values, false))
            .map(|course| (course, TOLERANCE * tolerance.filter(|t| *t > 0.0).unwrap_or(1.0)));
        facts.step = facts.step_size();
        facts.curvature = facts.largest_curvature();
        facts
    }

    /// The value that the metric can reach, and whether it is known.
    fn base(&self) -> (f64, bool) {
        let quantity = problems::quantities(&self.job.problem).first().map(|(quantity, _)| *quantity);
        if matches!(quantity, Some(Quantity::ObjectiveGap | Quantity::ObjectiveError)) {
            return (0.0, true);
        }
        let least = self.stats.curve.iter().map(|(value, _)| *value).fold(f64::INFINITY, f64::min);
        match self.point.map(|point| (point, point.optimum, point.reference)) {
            Some((_, Some(optimum), _)) => (optimum.min(least), true),
            // Where gradients under- or overflow, a full-batch method gets no further, but a step of length 1/L would.
            Some((point, None, Some(reference))) => {
                let below = point.descent.map_or(f64::INFINITY, |descent| point.loss - descent);
                (reference.value.min(least).min(below), true)
            }
            _ => (least.min(0.0), false),
        }
    }

    /// Whether a thousandth of the error at the start is a number that the loss resolves. Otherwise nothing is known about
    /// what remains.
    pub fn measured(&self) -> bool {
        let Some(error) = self.error else { return false };
        let epsilon = if problems::is_single(&self.job.problem) { f64::from(f32::EPSILON) } else { f64::EPSILON };
        // A gap is the difference of two losses, each with its rounding error.
        let optimum = self.point.and_then(|point| point.optimum).unwrap_or(0.0);
        let first = self.stats.curve.first().map_or(0.0, |(value, _)| value.abs().max(optimum.abs()));
        let resolution = (epsilon * first).max(f64::MIN_POSITIVE / problems::scale(&self.job.problem));
        error.first.is_finite() && TOLERANCE * error.first >= resolution
    }

    /// Whether the error is a distance from a minimum or from a bound: if f* is not known, a loss ≥ 0 cannot fall below 0.
    pub fn bounded(&self) -> bool {
        self.grounded || self.stats.curve.iter().all(|(value, _)| *value >= 0.0)
    }

    /// Whether the loss had the same value after every epoch.
    pub fn motionless(&self) -> bool {
        let mut values = self.stats.curve.iter().map(|(value, _)| value.to_bits());
        values.next().is_some_and(|first| values.all(|value| value == first))
    }

    /// The fit to the training set and to the test set, if the second one is worse by more than chance explains.
    pub fn overfit(&self) -> Option<Generalization> {
        let found = self.point?.generalization?;
        (found.train - found.test > GAP.max(SURE * found.standard_error)).then_some(found)
    }

    /// The epoch with the best value on the test set, and the value, if it is better than the last one by more than chance
    /// explains.
    pub fn best_epoch(&self) -> Option<(u64, f64)> {
        let (found, &(_, last)) = (self.point?.generalization?, self.stats.test.last()?);
        let better = |a: f64, b: f64| if found.accuracy { a > b } else { a < b };
        let best = self.stats.test.iter().copied().reduce(|a, b| if better(b.1, a.1) { b } else { a })?;
        // The error of a loss is relative to that of the model with all parameters 0.
        let error =
            if found.accuracy { found.standard_error } else { last * found.standard_error / (1.0 - found.test) };
        (best.0 > 0 && (best.1 - last).abs() > SURE * error).then_some(best)
    }

    /// The sizes of the features, if they differ much from each other, or from 1.
    pub fn unscaled(&self) -> Option<FeatureSizes> {
        let range = 1.0 / SPREAD..=SPREAD;
        self.point?.features.filter(|sizes| sizes.spread() > SPREAD || !range.contains(&sizes.largest))
    }

    /// A number among the hyperparameters.
    pub fn number(&self, key: &str) -> Option<f64> {
        number(self.job.method.hyperparameters.get(key)?)
    }
    /// A text among the hyperparameters.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.job.method.hyperparameters.get(key)?.as_str()
    }
    pub fn steps(&self) -> StepKind {
        methods::steps(&self.job.method.name)
    }
    pub fn penalized(&self) -> bool {
        self.job.method.name == "str-p"
    }
    /// Whether the problem has a constraint.
    pub fn constrained(&self) -> bool {
        problems::all().iter().any(|entry| entry.name == self.job.problem.kind && entry.constrained)
    }
    /// Whether the problem has a constraint and the method does not know it.
    pub fn ignores_constraint(&self) -> bool {
        let method = |name: &str| methods::all().iter().any(|entry| entry.name == name && entry.constrained);
        self.constrained() && !method(&self.job.method.name)
    }
    /// The epochs of the run, also those that are still to come.
    pub fn planned(&self) -> f64 {
        self.job.epochs.max(self.stats.epochs) as f64
    }
    pub fn unfinished(&self) -> bool {
        self.stats.epochs < self.job.epochs
    }

    fn step_size(&self) -> Option<f64> {
        let friction = 1.0 - self.number("momentum").filter(|_| self.job.method.name == "sgd").unwrap_or(0.0);
        match self.steps() {
            StepKind::Rate => Some(self.number("learning_rate")? / friction),
            StepKind::Search | StepKind::Region => self.stats.tail.size(),
            StepKind::Normalized | StepKind::Free => self.stats.tail.ratio(),
        }
    }

    /// L of the function that a method with a rate descends on: with a penalty, also its curvature μσ_max(J)².
    fn largest_curvature(&self) -> Option<f64> {
        let point = self.point?;
        let square = point.kkt.map_or(0.0, |kkt| kkt.jacobian.largest.powi(2));
        let weight = match self.job.method.name.as_str() {
            "auglag" => {
                let rounds = self.planned() / self.number("inner_epochs").unwrap_or(1.0);
                self.number("penalty").unwrap_or(0.0) * self.number("growth").unwrap_or(1.0).powf(rounds.floor())
            }
            "landing" => self.number("attraction").unwrap_or(0.0),
            _ => 0.0,
        };
        point.curvature.map(|curvature| curvature + weight * square).filter(|l| l.is_finite() && *l > 0.0)
    }

    /// α·L: 1 goes to the minimum along the steepest direction, 2 is the limit of stability.
    pub fn relative_step(&self) -> Option<f64> {
        Some(self.step? * self.curvature?)
    }
    /// E‖g − ∇f‖²/‖∇f‖² of a mini-batch: above 1 the noise exceeds the gradient.
    pub fn noise(&self) -> Option<f64> {
        self.point.map(|point| point.noise).filter(|noise| !noise.is_nan())
    }
    /// Whether the noise exceeds the gradient.
    pub fn is_noisy(&self) -> bool {
        self.noise().is_some_and(|noise| noise > NOISY)
    }
    /// The trust region's constants.
    pub fn region(&self) -> RegionConfig {
        let known = |key: &str| RegionConfig::FIELDS.iter().any(|field| field.name == key);
        let own = self.job.method.hyperparameters.iter().filter(|(key, _)| known(key));
        let table: toml::Table = own.map(|(key, value)| (key.clone(), value.clone())).collect();
        table.try_into().unwrap_or_default()
    }
}
