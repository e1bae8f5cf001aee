//! The sentences about the trust region: its radius, rejected steps, and the curvature along the trials.

use super::{Finding, RecordStats, facts::Facts};
use crate::format::{in_sentence as n, plural};
use std::fmt::Write as _;
use strust::{diagnostics::bounds, radius::RegionConfig};

/// All of them.
pub(super) fn describe(facts: &Facts, out: &mut Vec<Finding>) {
    let (stats, region) = (facts.stats, facts.region());
    radius(stats, &region, out);
    waste(stats, &region, facts.job.method.name == "str", out);
    curvature(stats, &region, out);
}

fn per_cent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}

fn radius(stats: &RecordStats, region: &RegionConfig, out: &mut Vec<Finding>) {
    let largest = region.max_radius;
    if stats.iterations.steps() == 0 {
        let share = per_cent(stats.at_largest as f64, stats.curve.len() as f64 - 1.0);
        let text = format!(
            "The radius had its largest value, {largest}, at the end of {share:.0} % of the epochs, and is {} now. The records have no steps, so the number of steps that it cut \
             is not known.",
            n(stats.radius.unwrap_or(f64::NAN))
        );
        out.push(Finding::new(
            "radius",
            text,
            &[("epochs_at_largest_per_cent", share), ("radius", stats.radius.unwrap_or(f64::NAN))],
        ));
        return;
    }
    let (i, steps) = (&stats.iterations, stats.iterations.steps() as f64);
    let cut = per_cent(i.on_boundary as f64, steps);
    let meaning = if cut < 5.0 {
        "it is rarely active, and the model's curvature alone sets the step length"
    } else if cut < 80.0 {
        "it is active"
    } else {
        "it limits nearly every step"
    };
    let text = format!(
        "The radius cut {cut:.1} % of the steps: {meaning}. It was between {} and {}, and had the larger value at {:.0} % of the steps.",
        n(i.least_radius),
        n(i.largest_radius),
        per_cent(i.at_largest_radius as f64, steps)
    );
    out.push(Finding::new(
        "radius",
        text,
        &[("cut_per_cent", cut), ("least", i.least_radius), ("largest", i.largest_radius)],
    ));
}

/// `plain` means a model with H = I. The lemma's bound holds only for such a model.
fn waste(stats: &RecordStats, region: &RegionConfig, plain: bool, out: &mut Vec<Finding>) {
    let (rejected, steps) = if stats.iterations.steps() > 0 {
        (stats.iterations.unsuccessful, stats.iterations.steps())
    } else {
        (stats.steps - stats.accepted, stats.steps)
    };
    let share = per_cent(rejected as f64, steps as f64);
    let of_steps = plural(steps as usize, "step");
    let mut text = match rejected {
        0 => format!("None of {of_steps} was rejected"),
        1 => format!("1 of {of_steps} was rejected ({share:.1} %), and it cost a gradient and a value"),
        _ => format!("{rejected} of {of_steps} were rejected ({share:.1} %), and each cost a gradient and a value"),
    };
    let mut numbers = vec![("rejected", rejected as f64), ("steps", steps as f64), ("rejected_per_cent", share)];
    if plain && stats.iterations.steps() > 0 && stats.curvature.seen > 0 {
        // The largest curvature seen is at most L, so the lemma's bound is at least this one.
        let bound = stats.iterations.unsuccessful_bound(region, stats.curvature.largest.max(0.0));
        let _ = write!(
            text,
            "; with the largest curvature seen as L, the lemma allows {bound:.0} for this number of accepted steps"
        );
        numbers.push(("bound", bound));
    }
    let idle = stats.iterations.steps() > 0 && stats.iterations.on_boundary < stats.iterations.steps() / 20;
    if idle && share > 10.0 {
        // If the radius does not limit the step, a smaller radius does not shorten the next one.
        let _ = write!(
            text,
            "; the radius (up to {}) is larger than nearly all steps, so dividing it by {} does not shorten the next step",
            n(stats.iterations.largest_radius),
            region.shrink
        );
    } else if share > 40.0 {
        let limit = region.grow.ln() / region.shrink.ln();
        let _ = write!(
            text,
            "; with grow = {} and shrink = {} the radius allows up to {limit:.1} rejections per accepted step",
            region.grow, region.shrink
        );
    }
    out.push(Finding::new("wasted steps", text + ".", &numbers));
}

fn curvature(stats: &RecordStats, region: &RegionConfig, out: &mut Vec<Finding>) {
    let c = &stats.curvature;
    if c.seen == 0 {
        if stats.iterations.steps() == 0 {
            out.push(Finding::new(
                "curvature",
                "The records have no steps (records = \"epochs\"), so the curvature along the trials is not known.",
                &[],
            ));
        }
        return;
    }
    let sure = bounds::accepted_below(region, c.largest);
    let text = format!(
        "The curvature along the trials was between {} and {}, {} on average ({} of {} below 0): a step goes {} of the way to the minimum in its direction. If no curvature is above the largest one seen, \
         all steps with a < {} are accepted.",
        n(c.least),
        n(c.largest),
        n(c.mean),
        c.negative,
        c.seen,
        n(c.mean_step),
        n(sure)
    );
    let numbers = [
        ("least", c.least),
        ("largest", c.largest),
        ("mean", c.mean),
        ("step_times_curvature", c.mean_step),
        ("a_min", sure),
    ];
    out.push(Finding::new("curvature", text, &numbers));
}
