//! Turns numbers into sentences. Each sentence gives a number and its meaning.

use super::{
    Finding, RecordStats,
    course::TOLERANCE,
    facts::Facts,
    judge::{Cause, EARLY, LONG, SHORT},
    region, solution,
};
use crate::{
    data::diagnosis::RunVerdict,
    format::{in_sentence as n, plural},
    registry::methods::StepKind,
};

/// The findings.
pub(super) fn compose(facts: &Facts, note: Option<&str>) -> Vec<Finding> {
    let mut out = Vec::new();
    let stats = facts.stats;
    if stats.steps == 0 && stats.iterations.steps() == 0 {
        let failed = facts.failure.is_some();
        let text =
            if failed { "The run made no step." } else { "The records have no step yet: repeat the diagnosis later." };
        out.push(Finding::new("steps", text, &[("steps", 0.0)]));
        return out;
    }
    progress(stats, &mut out);
    speed(facts, &mut out);
    steps(facts, &mut out);
    noise(facts, &mut out);
    features(facts, &mut out);
    generalization(facts, &mut out);
    if stats.radius.is_some() || stats.iterations.largest_radius > 0.0 {
        region::describe(facts, &mut out);
    }
    solution::describe(facts, note, &mut out);
    out
}

/// The reason for a verdict, in one sentence.
pub(super) fn why(facts: &Facts, verdict: RunVerdict, cause: Cause) -> String {
    let left = facts
        .error
        .map_or_else(String::new, |error| format!("{} of what was to be done remains", share(error.remaining())));
    let product = facts.relative_step().map_or_else(String::new, |a| format!(" (step × curvature = {})", n(a)));
    let failure = facts.failure.unwrap_or_default();
    let of_cause = match cause {
        Cause::None => return left,
        Cause::Epochs(needed) => format!("at this speed it needs {} more epochs", n(needed)),
        Cause::Early => {
            return format!("a run of {} is too short to show a trend", plural(facts.stats.epochs as usize, "epoch"));
        }
        Cause::Range if verdict == RunVerdict::Unclear => return unmeasured(facts),
        Cause::Range if verdict == RunVerdict::BrokeDown => {
            return format!("{failure}; the gradient is out of the range of floating point");
        }
        Cause::Range => "no step changed the loss".into(),
        Cause::Unmeasured => return "the loss no longer falls, and how low it can get was not measured".into(),
        Cause::Overfit => return overfit(facts),
        Cause::ShortSteps => format!("the steps are too short{product}"),
        Cause::LongSteps if verdict == RunVerdict::BrokeDown => return failed(facts, &product),
        Cause::LongSteps if facts.relative_step().is_some_and(|relative| relative > LONG) => {
            format!("the steps are too long{product}")
        }
        Cause::LongSteps if facts.error.is_some_and(|error| error.level > error.first) => "it moved away".into(),
        Cause::LongSteps => "it goes up and down, and the noise of the mini-batches does not explain it".into(),
        Cause::Noise => "the noise of the mini-batches exceeds the gradient".into(),
        Cause::SmallRegion => {
            format!("the radius cannot exceed {} and cuts nearly every step", facts.region().max_radius)
        }
        Cause::FrozenRegion => "the radius is small and cannot grow".into(),
        Cause::Features(spread) => format!("the features differ by a factor of {} in size", n(spread)),
        Cause::Penalty if verdict == RunVerdict::Infeasible => return infeasible(facts),
        Cause::Penalty => "the penalty makes the steps crawl".into(),
        Cause::Constraint => return infeasible(facts),
        Cause::Start => return format!("{failure}; the objective is not finite at the start: check the data"),
        Cause::Conditioning if verdict == RunVerdict::Stuck => "it no longer falls".into(),
        Cause::Conditioning => format!("it falls too slowly, and short steps are not the cause{product}"),
    };
    format!("{left}; {of_cause}")
}

/// Why a run broke down.
fn failed(facts: &Facts, product: &str) -> String {
    let failure = facts.failure.unwrap_or_default();
    match facts.steps() {
        StepKind::Rate | StepKind::Normalized => format!("{failure}; the steps were too long{product}"),
        _ => failure.into(),
    }
}

/// Why what remains is not known.
fn unmeasured(facts: &Facts) -> String {
    if facts.motionless() {
        return "no step changed the loss: the gradient is out of the range of floating point, or the start is a solution"
            .into();
    }
    "what remains is below or above what floating point resolves".into()
}

/// A fit in per cent.
fn per_cent(fit: f64) -> String {
    format!("{:.1} %", 100.0 * fit)
}

fn overfit(facts: &Facts) -> String {
    facts.point.and_then(|point| point.generalization).map_or_else(String::new, |found| {
        let what = if found.accuracy { "accuracy" } else { "explained share" };
        format!(
            "the {what} is {} on the training set and {} on the test set",
            per_cent(found.train),
            per_cent(found.test)
        )
    })
}

fn infeasible(facts: &Facts) -> String {
    match facts.violation {
        Some((course, tolerance)) => {
            let trend = if course.falls { "falls too slowly" } else { "does not fall" };
            format!("‖c‖ is {:.1e}, above {tolerance:.1e}, and {trend}", course.level)
        }
        None => "the constraint is violated".into(),
    }
}

/// A share in per cent, or as a power of ten if it is small.
fn share(value: f64) -> String {
    if value >= 0.001 || value == 0.0 { format!("{} %", n(100.0 * value)) } else { format!("{value:.0e}") }
}

fn speed(facts: &Facts, out: &mut Vec<Finding>) {
    let Some(error) = facts.error else { return };
    let ends = [("first", error.first), ("last", error.last)];
    if !facts.measured() {
        let text = "What remains to be done is not known: a thousandth of it would be below the rounding error of the loss, or the loss is not finite.";
        out.push(Finding::new("remaining", text, &ends));
        return;
    }
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
    let over = format!("over the last {}", plural(error.window as usize, "epoch"));
    let trend = if error.level <= TOLERANCE * error.first {
        "This is a thousandth or less".to_string()
    } else if error.falls {
        let fall = format!("It falls by {} % an epoch {over}", n(100.0 * (1.0 - (-error.rate).exp())));
        let more = format!("at this speed a thousandth of the start is reached after {} more epochs", n(needed));
        if facts.stats.epochs < EARLY { format!("{fall}, too few to extrapolate") } else { format!("{fall}; {more}") }
    } else {
        format!("It does not fall by more than noise explains {over}")
    };
    let level = match error.averaged {
        1 => format!("{:.1e}", error.level),
        averaged => format!("{:.1e} (the median of the last {averaged} epochs)", error.level),
    };
    let text = format!(
        "What remains to be done is {level}, {} of the {:.1e} at the start ({what}{constraint}). {trend}.",
        share(error.remaining()),
        error.first
    );
    let more = [
        ("level", error.level),
        ("remaining", error.remaining()),
        ("rate", error.rate),
        ("reversals", error.reversals),
        ("epochs_to_tolerance", needed),
    ];
    out.push(Finding::new("remaining", text, &[&ends[..], &more[..]].concat()));
}

fn steps(facts: &Facts, out: &mut Vec<Finding>) {
    let (Some(step), Some(l), Some(relative)) = (facts.step, facts.curvature, facts.relative_step()) else { return };
    let meaning = match facts.steps() {
        StepKind::Rate if relative > LONG => "above 2, steps grow along the steepest direction",
        _ if relative < SHORT => "far below 1, steps are much shorter than the curvature allows",
        _ => "1 goes to the minimum along the steepest direction, above 2 is unstable",
    };
    let text = format!(
        "A step is {} times its gradient, and the largest curvature of a mini-batch, here or at the start, is L = {}. Their product is {}: {meaning}.",
        n(step),
        n(l),
        n(relative)
    );
    out.push(Finding::new("step length", text, &[("step", step), ("curvature", l), ("product", relative)]));
}

fn noise(facts: &Facts, out: &mut Vec<Finding>) {
    let (Some(ratio), Some(point)) = (facts.noise(), facts.point) else { return };
    if ratio == 0.0 {
        return;
    }
    let meaning = if facts.is_noisy() { "exceeds" } else { "is below" };
    let text = format!(
        "At the last checkpoint ‖∇f‖ = {:.1e} on the full sum, and the noise of a mini-batch's gradient {meaning} it: √E‖g − ∇f‖² is {} times as large.",
        point.gradient_norm,
        n(ratio.sqrt())
    );
    out.push(Finding::new("gradient noise", text, &[("gradient_norm", point.gradient_norm), ("ratio", ratio)]));
}

fn features(facts: &Facts, out: &mut Vec<Finding>) {
    let Some(sizes) = facts.unscaled() else { return };
    let text = format!(
        "The features of the data are not scaled: the largest root mean square is {}, {} times the lower quartile. The curvature grows with the square of both.",
        n(sizes.largest),
        n(sizes.spread())
    );
    out.push(Finding::new("features", text, &[("largest", sizes.largest), ("spread", sizes.spread())]));
}

fn generalization(facts: &Facts, out: &mut Vec<Finding>) {
    let Some(found) = facts.point.and_then(|point| point.generalization) else { return };
    let what = if found.accuracy {
        "The accuracy"
    } else {
        "The share of the loss that the model explains, compared with one whose parameters are all 0,"
    };
    let meaning =
        if facts.overfit().is_some() { "the model fits the training set too closely" } else { "no overfitting" };
    let text = format!(
        "{what} is {} on the training set and {} on the test set (standard error {}): {meaning}.",
        per_cent(found.train),
        per_cent(found.test),
        per_cent(found.standard_error)
    );
    let numbers = [("train", found.train), ("test", found.test), ("standard_error", found.standard_error)];
    out.push(Finding::new("generalization", text, &numbers));
}

fn progress(stats: &RecordStats, out: &mut Vec<Finding>) {
    let Some((name, first, last)) = &stats.metric else { return };
    let text = format!(
        "After {} and {} the {name} is {last:.1e}; at the start it was {first:.1e}.",
        plural(stats.epochs as usize, "epoch"),
        plural(stats.steps as usize, "step")
    );
    let numbers = [("epochs", stats.epochs as f64), ("steps", stats.steps as f64), ("first", *first), ("last", *last)];
    out.push(Finding::new("progress", text, &numbers));
}
