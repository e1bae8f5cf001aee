//! Turns numbers into sentences. Each sentence gives a number and its meaning.

use super::{
    Finding, RecordStats,
    facts::{Facts, TOLERANCE},
    findings::Sentences,
    judge::{Cause, SPREAD},
    region, solution,
};
use crate::{
    data::diagnosis::RunVerdict,
    format::{in_sentence as n, plural},
    registry::methods::StepKind,
};

/// The findings.
pub(super) fn compose(facts: &Facts, note: Option<&str>) -> Vec<Finding> {
    let mut out = Sentences::default();
    let stats = facts.stats;
    if stats.steps == 0 && stats.iterations.steps() == 0 {
        let failed = facts.failure.is_some();
        let text =
            if failed { "The run made no step." } else { "The records have no step yet: repeat the diagnosis later." };
        out.find("steps", text.into(), &[("steps", 0.0)]);
        return out.all;
    }
    progress(stats, &mut out);
    speed(facts, &mut out);
    steps(facts, &mut out);
    noise(facts, &mut out);
    features(facts, &mut out);
    if stats.radius.is_some() || stats.iterations.largest_radius > 0.0 {
        region::describe(facts, &mut out);
    }
    solution::describe(facts, note, &mut out);
    out.all
}

/// The reason for a verdict, in one sentence.
pub(super) fn why(facts: &Facts, verdict: RunVerdict, cause: Cause) -> String {
    let left = facts
        .error
        .map_or_else(String::new, |error| format!("{} of what was to be done remains", share(error.remaining())));
    let relative = || facts.relative_step().map_or_else(String::new, |a| format!(" (step × curvature = {})", n(a)));
    let of_cause = match cause {
        Cause::None if facts.grounded => return left,
        Cause::None => return "the loss no longer changes; what remains was not measured".into(),
        Cause::Epochs(needed) => format!("at this speed it needs {} more epochs", n(needed)),
        Cause::ShortSteps => format!("the steps are too short{}", relative()),
        Cause::LongSteps if verdict == RunVerdict::BrokeDown => {
            return format!("{}; the steps were too long", facts.failure.unwrap_or_default());
        }
        Cause::LongSteps => format!("the steps are too long{}", relative()),
        Cause::Noise => "the noise of the mini-batches exceeds the gradient".into(),
        Cause::SmallRegion => {
            format!("the radius cannot exceed {} and cuts nearly every step", facts.region().max_radius)
        }
        Cause::FrozenRegion => "the radius is small and cannot grow".into(),
        Cause::Features(spread) => format!("the features differ by a factor of {} in size", n(spread)),
        Cause::Penalty if verdict == RunVerdict::Infeasible => return infeasible(facts),
        Cause::Penalty => "the penalty makes the steps crawl".into(),
        Cause::Constraint => return infeasible(facts),
        Cause::Start => {
            return format!(
                "{}; the objective is not finite at the start: check the data",
                facts.failure.unwrap_or_default()
            );
        }
        Cause::Conditioning if verdict == RunVerdict::Stuck => "it no longer falls".into(),
        Cause::Conditioning => "it falls too slowly, although the steps are as long as the curvature allows".into(),
    };
    format!("{left}; {of_cause}")
}

fn infeasible(facts: &Facts) -> String {
    match facts.violation {
        Some((course, tolerance)) => format!("‖c‖ is {:.1e}, above {tolerance:.1e}, and does not fall", course.last),
        None => "the constraint is violated".into(),
    }
}

/// A share in per cent, or as a power of ten if it is small.
fn share(value: f64) -> String {
    if value >= 0.001 { format!("{} %", n(100.0 * value)) } else { format!("{value:.0e}") }
}

fn speed(facts: &Facts, out: &mut Sentences) {
    let Some(error) = facts.error else { return };
    let what = match (facts.grounded, facts.point.and_then(|p| p.reference)) {
        (false, _) => "the loss; how low it can get was not measured".to_string(),
        (true, Some(found)) if facts.point.is_some_and(|p| p.optimum.is_none()) => {
            format!(
                "the distance to {:.3e}, which a full-batch method reaches from here in {}",
                found.value,
                plural(found.steps as usize, "step")
            )
        }
        (true, _) => "the distance to the minimum".into(),
    };
    let constraint = if facts.violation.is_some() { ", plus ‖λ‖‖c‖" } else { "" };
    let needed = error.epochs_to(TOLERANCE * error.first);
    let trend = if error.last <= TOLERANCE * error.first {
        "This is a thousandth or less".to_string()
    } else if error.falls {
        format!(
            "It falls by {} % an epoch over the last {}; at this speed a thousandth of the start is reached after {} more epochs",
            n(100.0 * (1.0 - (-error.rate).exp())),
            plural(error.window as usize, "epoch"),
            n(needed)
        )
    } else {
        format!("It does not fall over the last {}", plural(error.window as usize, "epoch"))
    };
    let text = format!(
        "What remains to be done is {:.1e}, {} of the {:.1e} at the start ({what}{constraint}). {trend}.",
        error.last,
        share(error.remaining()),
        error.first
    );
    let numbers = [
        ("first", error.first),
        ("last", error.last),
        ("remaining", error.remaining()),
        ("rate", error.rate),
        ("reversals", error.reversals),
        ("epochs_to_tolerance", needed),
    ];
    out.find("remaining", text, &numbers);
}

fn steps(facts: &Facts, out: &mut Sentences) {
    let (Some(step), Some(l), Some(relative)) = (facts.step, facts.curvature, facts.relative_step()) else { return };
    let meaning = match facts.steps() {
        StepKind::Rate if relative > 2.0 => "above 2, steps grow along the steepest direction",
        _ if relative < 0.01 => "far below 1, steps are much shorter than the curvature allows",
        _ => "1 goes to the minimum along the steepest direction, above 2 is unstable",
    };
    let text = format!(
        "A step is {} times its gradient, and the largest curvature of a mini-batch, here or at the start, is L = {}. Their product is {}: {meaning}.",
        n(step),
        n(l),
        n(relative)
    );
    out.find("step length", text, &[("step", step), ("curvature", l), ("product", relative)]);
}

fn noise(facts: &Facts, out: &mut Sentences) {
    let (Some(ratio), Some(point)) = (facts.noise(), facts.point) else { return };
    if point.noise == 0.0 {
        return;
    }
    let meaning = if ratio > 1.0 { "exceeds" } else { "is below" };
    let text = format!(
        "At the last checkpoint ‖∇f‖ = {:.1e} on the full sum, and the noise of a mini-batch's gradient {meaning} it: √E‖g − ∇f‖² = {:.1e}.",
        point.gradient_norm,
        point.noise.sqrt()
    );
    out.find(
        "gradient noise",
        text,
        &[("gradient_norm", point.gradient_norm), ("variance", point.noise), ("ratio", ratio)],
    );
}

fn features(facts: &Facts, out: &mut Sentences) {
    let Some(spread) = facts.point.and_then(|point| point.feature_spread).filter(|spread| *spread > SPREAD) else {
        return;
    };
    let text = format!(
        "The features of the data are not scaled: the largest has {} times the root mean square of the lower quartile, so the curvature differs by about the square of this. Standardize the columns, or use a method that adapts to them.",
        n(spread)
    );
    out.find("features", text, &[("spread", spread)]);
}

fn progress(stats: &RecordStats, out: &mut Sentences) {
    let Some((name, first, last)) = &stats.metric else { return };
    let text = format!(
        "After {} and {} the {name} is {last:.1e}; at the start it was {first:.1e}.",
        plural(stats.epochs as usize, "epoch"),
        plural(stats.steps as usize, "step")
    );
    let numbers = [("epochs", stats.epochs as f64), ("steps", stats.steps as f64), ("first", *first), ("last", *last)];
    out.find("progress", text, &numbers);
}
