//! The verdict on a run and its cause, from measured facts.

use super::{
    course::{PLATEAU, TOLERANCE},
    facts::{Facts, SPREAD},
};
use crate::{data::diagnosis::RunVerdict, registry::methods::StepKind};
use strust::diagnostics::Interpolation;

/// Why a run did what it did. The remedy depends on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cause {
    /// Nothing is wrong.
    None,
    /// It needs this many more epochs.
    Epochs(f64),
    /// αL is far below 1.
    ShortSteps,
    /// αL is above 2, or it diverges.
    LongSteps,
    /// The noise of the mini-batches exceeds the gradient.
    Noise,
    /// The largest radius cuts the steps.
    SmallRegion,
    /// The radius is small and cannot grow.
    FrozenRegion,
    /// The features of the data differ by this factor in size.
    Features(f64),
    /// The model fits the training set too closely.
    Overfit,
    /// It has made too few epochs.
    Early,
    /// The numbers are out of the range that floating point resolves, or the start is already a solution.
    Range,
    /// How low the loss can get is not known.
    Unmeasured,
    /// The penalty is too small or too large.
    Penalty,
    /// The method does not know the constraint.
    Constraint,
    /// f is not finite at the start.
    Start,
    /// The steps are as long as the curvature allows, and there is no other cause.
    Conditioning,
}

/// A run that needs at most this many times its epochs is still improving.
const PATIENCE: f64 = 10.0;
/// A run whose error ends above this multiple of the start has moved away.
const RISEN: f64 = 1.2;
/// Steps with αL below this are too short: a hundred of them make one that the curvature allows.
pub(super) const SHORT: f64 = 0.01;
/// Steps with αL above this grow along the steepest direction.
pub(super) const LONG: f64 = 2.0;
/// With fewer epochs one rise hides any fall: the test by Kendall's τ then needs all pairs of epochs to fall.
pub(super) const EARLY: u64 = 5;
/// A radius cannot recover if one rejection needs more accepted steps than this.
const RECOVERY: f64 = 100.0;

/// The verdict and its cause; `None` before the first epoch.
pub(super) fn judge(facts: &Facts) -> Option<(RunVerdict, Cause)> {
    use RunVerdict as V;
    if facts.failure.is_some() {
        let started = facts.stats.curve.first().is_some_and(|(value, _)| value.is_finite());
        // A method needs the square of the gradient.
        let out_of_range = facts.point.is_some_and(|point| {
            let square = point.gradient_norm.powi(2);
            square.is_infinite() || square == 0.0 && point.gradient_norm > 0.0
        });
        let cause = match (started, out_of_range) {
            (false, _) => Cause::Start,
            (true, true) => Cause::Range,
            (true, false) => Cause::LongSteps,
        };
        return Some((V::BrokeDown, cause));
    }
    let error = facts.error?;
    let patience = PATIENCE * facts.planned();
    let violated = facts.violation.filter(|(course, tolerance)| course.level > *tolerance);
    if violated.is_some() && facts.ignores_constraint() {
        return Some((V::Infeasible, Cause::Constraint));
    }
    if !facts.measured() {
        return Some((V::Unclear, Cause::Range));
    }
    // Away from the constraint f can end far below f*. If it has settled there, this is not instability.
    let settled = violated.is_some() && error.swing < PLATEAU;
    if error.level > RISEN * error.first && !settled {
        return Some((V::Unstable, Cause::LongSteps));
    }
    let needed = error.epochs_to(TOLERANCE * error.first);
    let done = needed == 0.0 && violated.is_none();
    if facts.stats.epochs < EARLY && !done {
        return Some((V::TooEarly, Cause::Early));
    }
    let feasible_in = violated.map_or(0.0, |(course, tolerance)| course.epochs_to(tolerance));
    let short = facts.relative_step().is_some_and(|relative| relative < SHORT);
    // A run of short steps has not reached the balance of f and the penalty.
    if feasible_in > patience && !short {
        return Some((V::Infeasible, Cause::Penalty));
    }
    // A better fit to the training set would not help.
    if facts.overfit().is_some() {
        return Some((V::Overfits, Cause::Overfit));
    }
    if done && facts.bounded() {
        return Some((V::Converged, Cause::None));
    }
    // The speed so far is that of the large features.
    if let Some(spread) = slowed_by_features(facts, patience) {
        return Some((V::TooSlow, Cause::Features(spread)));
    }
    if !done && needed.max(feasible_in) <= patience {
        return Some((V::StillImproving, Cause::Epochs(needed.max(feasible_in))));
    }
    // Without f* a plateau after much progress may be the minimum.
    if done || !facts.grounded && !error.falls && error.remaining() < 0.5 && !bounces(facts) {
        return Some((V::Unclear, Cause::Unmeasured));
    }
    Some(not_done(facts))
}

/// The verdict on a run that does not get there.
fn not_done(facts: &Facts) -> (RunVerdict, Cause) {
    use RunVerdict as V;
    let Some(error) = facts.error else { return (V::Stuck, Cause::Conditioning) };
    let slow = if error.falls { V::TooSlow } else { V::Stuck };
    if small_region(facts) {
        return (V::TooSlow, Cause::SmallRegion);
    }
    if frozen_region(facts) {
        return (slow, Cause::FrozenRegion);
    }
    let features = facts.point.and_then(|point| point.features).map(|sizes| sizes.spread());
    let features = features.filter(|spread| *spread > SPREAD);
    if facts.relative_step().is_some_and(|relative| relative < SHORT) {
        return (V::TooSlow, features.map_or(Cause::ShortSteps, Cause::Features));
    }
    if facts.motionless() {
        return (V::Stuck, Cause::Range);
    }
    if bounces(facts) {
        return (V::Unstable, Cause::LongSteps);
    }
    // If all terms agree on a solution, their noise vanishes there and stops no run.
    let terms = facts.point.and_then(|point| point.interpolation.as_ref());
    let agree = terms.is_some_and(|(verdict, _)| *verdict == Interpolation::Holds);
    let cause = match features {
        _ if facts.is_noisy() && !error.falls && !agree => Cause::Noise,
        Some(spread) => Cause::Features(spread),
        None if facts.penalized() => Cause::Penalty,
        None => Cause::Conditioning,
    };
    (slow, cause)
}

/// The spread of the features, if steps of one length for all unknowns need too long along the small ones: the spread
/// squared is the condition number κ, and a factor of e takes κ steps.
fn slowed_by_features(facts: &Facts, patience: f64) -> Option<f64> {
    let spread = facts.point?.features.map(|sizes| sizes.spread()).filter(|spread| *spread > SPREAD)?;
    let fixed = matches!(facts.steps(), StepKind::Rate | StepKind::Search | StepKind::Region);
    let steps = facts.stats.steps as f64 / facts.stats.epochs.max(1) as f64 * patience;
    (fixed && spread.powi(2) * -TOLERANCE.ln() > steps).then_some(spread)
}

/// Whether the error goes up and down without falling, because the steps are too long: αL is above 2, or no noise
/// explains it.
fn bounces(facts: &Facts) -> bool {
    let Some(error) = facts.error.filter(|error| !error.falls) else { return false };
    if !matches!(facts.steps(), StepKind::Rate | StepKind::Normalized) {
        return false;
    }
    let long = facts.relative_step().is_some_and(|relative| relative > LONG);
    let unexplained = facts.noise().is_some() && !facts.is_noisy();
    long || (unexplained && error.reversals > 1.0 / 3.0 && error.swing > PLATEAU)
}

/// Whether the largest radius cut nearly all steps.
fn small_region(facts: &Facts) -> bool {
    let (i, steps) = (&facts.stats.iterations, facts.stats.iterations.steps() as f64);
    let region = facts.region();
    facts.steps() == StepKind::Region
        && i.on_boundary as f64 > 0.8 * steps
        && i.at_largest_radius as f64 > 0.8 * steps
        && i.largest_radius >= region.max_radius
}

/// Whether the radius has shrunk, or cuts nearly all steps, and grows too slowly to recover.
fn frozen_region(facts: &Facts) -> bool {
    let (i, region) = (&facts.stats.iterations, facts.region());
    let recovery = region.shrink.ln() / region.grow.ln();
    let shrunk = facts.stats.radius.is_some_and(|radius| radius < 0.1 * region.initial_radius);
    let cuts = i.on_boundary as f64 > 0.8 * i.steps() as f64;
    // If the terms do not agree on a solution, a small radius is what limits the noise.
    let terms = facts.point.and_then(|point| point.interpolation.as_ref());
    let agree = terms.is_none_or(|(verdict, _)| *verdict != Interpolation::Violated);
    facts.steps() == StepKind::Region && (shrunk || cuts) && agree && recovery > RECOVERY
}
