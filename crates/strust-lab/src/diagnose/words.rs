//! From numbers to sentences. Each says what is, then what it means; advice is kept apart.

use super::{Examination, Finding, read::Seen};
use crate::plan::Job;
use std::fmt::Write as _;
use strust::{
    diagnostics::{Interpolation, bounds},
    radius::RegionConfig,
};

/// Collects findings and advice.
#[derive(Default)]
struct Said {
    findings: Vec<Finding>,
    advice: Vec<String>,
}

impl Said {
    fn say(&mut self, about: &str, text: String, numbers: &[(&str, f64)]) {
        let numbers = numbers.iter().filter(|(_, value)| value.is_finite());
        let numbers = numbers.map(|(name, value)| ((*name).to_string(), *value)).collect();
        self.findings.push(Finding { about: about.into(), text, numbers });
    }
    fn advise(&mut self, text: impl Into<String>) {
        self.advice.push(text.into());
    }
}

/// The findings and the advice.
pub(super) fn say(
    seen: &Seen,
    point: Option<&Examination>,
    note: Option<&str>,
    job: &Job,
) -> (Vec<Finding>, Vec<String>) {
    let mut said = Said::default();
    if seen.steps == 0 && seen.iterations.steps() == 0 {
        said.say(
            "steps",
            "No step is in the records yet: come back when the run has made some.".into(),
            &[("steps", 0.0)],
        );
        return (said.findings, said.advice);
    }
    progress(seen, job, &mut said);
    if seen.radius.is_some() || seen.iterations.largest_radius > 0.0 {
        let region = region(job);
        radius(seen, &region, &mut said);
        waste(seen, &region, job.method.name == "str", &mut said);
        curvature(seen, &region, &mut said);
    }
    interpolation(seen, point, note, &mut said);
    constraints(point, job, &mut said);
    (said.findings, said.advice)
}

fn region(job: &Job) -> RegionConfig {
    let number = |name: &str, default: f64| {
        job.method.hyperparameters.get(name).and_then(toml::Value::as_float).unwrap_or(default)
    };
    let usual = RegionConfig::default();
    RegionConfig {
        initial_radius: number("initial_radius", usual.initial_radius),
        max_radius: number("max_radius", usual.max_radius),
        accept_above: number("accept_above", usual.accept_above),
        shrink_below: number("shrink_below", usual.shrink_below),
        grow_above: number("grow_above", usual.grow_above),
        shrink: number("shrink", usual.shrink),
        grow: number("grow", usual.grow),
    }
}

/// A metric that lost at least this share in the last epoch is still on its way.
const FALLING: f64 = 0.05;
/// Below this share of where it began a metric has arrived, falling or not.
const ARRIVED: f64 = 1e-12;

/// A number for a sentence.
fn n(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (0.01..1.0).contains(&size) {
        format!("{value:.3}")
    } else if (1.0..1e4).contains(&size) {
        format!("{value:.2}")
    } else {
        format!("{value:.1e}")
    }
}

fn per_cent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}

fn progress(seen: &Seen, job: &Job, said: &mut Said) {
    let Some((name, first, last)) = &seen.metric else { return };
    let text = format!(
        "After {} epochs and {} steps the {name} is {last:.1e}; it began at {first:.1e}.",
        seen.epochs, seen.steps
    );
    let numbers = [("epochs", seen.epochs as f64), ("steps", seen.steps as f64), ("first", *first), ("last", *last)];
    said.say("progress", text, &numbers);
    let falls = |before: &f64| *last < (1.0 - FALLING) * before && *last > ARRIVED * first;
    if let Some(before) = seen.before.filter(falls)
        && seen.epochs == job.epochs
    {
        let share = per_cent(before - last, before);
        said.advise(format!("Give it more epochs: the {name} still fell by {share:.0} % in the last one."));
    }
}

fn radius(seen: &Seen, region: &RegionConfig, said: &mut Said) {
    let largest = region.max_radius;
    if seen.iterations.steps() == 0 {
        let share = per_cent(seen.at_largest as f64, seen.epochs as f64);
        let text = format!(
            "The radius ended {share:.0} % of the epochs at its largest value, {largest}, and is {} now; the records keep epochs only, so how many steps \
             it cut cannot be said.",
            n(seen.radius.unwrap_or(f64::NAN))
        );
        said.say("radius", text, &[("epochs_at_largest_per_cent", share), ("radius", seen.radius.unwrap_or(f64::NAN))]);
        return;
    }
    let (i, steps) = (&seen.iterations, seen.iterations.steps() as f64);
    let cut = per_cent(i.on_boundary as f64, steps);
    let meaning = if cut < 5.0 {
        "it is hardly active, and the model's curvature alone sets the steps"
    } else if cut < 80.0 {
        "it is active"
    } else {
        "it decides nearly every step"
    };
    let text = format!(
        "The radius cut {cut:.1} % of the steps: {meaning}. It lay between {} and {}, and at the larger of these for {:.0} % of the steps.",
        n(i.least_radius),
        n(i.largest_radius),
        per_cent(i.at_largest_radius as f64, steps)
    );
    said.say("radius", text, &[("cut_per_cent", cut), ("least", i.least_radius), ("largest", i.largest_radius)]);
    if cut >= 50.0 && i.largest_radius >= largest && i.at_largest_radius as f64 > 0.5 * steps {
        said.advise(format!("Raise max_radius: the radius stands at {largest} and cuts {cut:.0} % of the steps."));
    }
}

/// The lemma's bound is for a model with H = I, `plain`.
fn waste(seen: &Seen, region: &RegionConfig, plain: bool, said: &mut Said) {
    let (rejected, steps) = if seen.iterations.steps() > 0 {
        (seen.iterations.unsuccessful, seen.iterations.steps())
    } else {
        (seen.steps - seen.accepted, seen.steps)
    };
    let share = per_cent(rejected as f64, steps as f64);
    let mut text = match rejected {
        0 => format!("None of {steps} steps was rejected"),
        _ => format!(
            "{rejected} of {steps} steps were rejected ({share:.1} %), each at the price of a gradient and a value"
        ),
    };
    let mut numbers = vec![("rejected", rejected as f64), ("steps", steps as f64), ("rejected_per_cent", share)];
    if plain && seen.iterations.steps() > 0 && seen.curvature.seen > 0 {
        // The largest curvature seen is a lower estimate of L, so this bound is the least that the lemma may give.
        let bound = seen.iterations.unsuccessful_bound(region, seen.curvature.largest.max(0.0));
        let _ = write!(text, "; the lemma allows {bound:.0} for these successes and this curvature");
        numbers.push(("bound", bound));
    }
    said.say("wasted steps", text + ".", &numbers);
    let idle = seen.iterations.steps() > 0 && seen.iterations.on_boundary < seen.iterations.steps() / 20;
    if idle && share > 10.0 {
        // Shrinking a radius that does not cut changes nothing: the next step is as long again.
        said.advise(format!(
            "Lower max_radius or raise shrink: {share:.0} % of the steps are rejected, but the radius, up to {}, is above nearly all steps, and dividing it by {} does not shorten the next.",
            n(seen.iterations.largest_radius),
            region.shrink
        ));
    } else if share > 40.0 {
        let limit = region.grow.ln() / region.shrink.ln();
        said.advise(format!(
            "Lower grow or raise shrink: with {} and {} the radius allows up to {limit:.1} rejections for each success, and {share:.0} % of the steps are rejected.",
            region.grow, region.shrink
        ));
    }
}

fn curvature(seen: &Seen, region: &RegionConfig, said: &mut Said) {
    let c = &seen.curvature;
    if c.seen == 0 {
        if seen.iterations.steps() == 0 {
            said.say("curvature", "The records keep epochs only (records = \"epochs\"), so the curvature along the trials cannot be said.".into(), &[]);
        }
        return;
    }
    let sure = bounds::accepted_below(region, c.largest);
    let text = format!(
        "The trials saw curvatures from {} to {}, {} on average ({} of {} below 0): a step goes {} of the way to the minimum along it, and steps with a < {} \
         are sure to be accepted.",
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
    said.say("curvature", text, &numbers);
    let idle = seen.iterations.on_boundary < seen.iterations.steps() / 20;
    if idle && c.mean_step > 0.0 && c.mean_step < 0.05 {
        said.advise(format!(
            "Multiply the loss by about {:.0}: a step goes only {:.1} % of the way to the minimum along it, because H = I in the model is far above the curvature of the loss.",
            1.0 / c.mean_step,
            100.0 * c.mean_step
        ));
    }
}

fn interpolation(seen: &Seen, point: Option<&Examination>, note: Option<&str>, said: &mut Said) {
    if seen.claimed > 0.0 && seen.epochs > 1 {
        let share = 100.0 * seen.fell / seen.claimed;
        let text = format!(
            "Over the second half, accepted steps lowered their own mini-batches by {:.1e} in all, and the full objective fell by {:.1e}: {} % of it.",
            seen.claimed,
            seen.fell,
            n(share)
        );
        said.say(
            "agreement of mini-batches",
            text,
            &[("claimed", seen.claimed), ("fell", seen.fell), ("share_per_cent", share)],
        );
    }
    let Some(point) = point else {
        let why = note.unwrap_or("there is no checkpoint yet");
        said.say("interpolation", format!("Whether interpolation holds was not measured: {why}."), &[]);
        return;
    };
    let numbers = [("rho", point.rho)];
    match (&point.interpolation, point.rho_interval) {
        (Some((verdict, why)), _) => {
            let text = format!(
                "Interpolation {verdict} (near the last checkpoint, with full gradients): {why}, for single terms. At the checkpoint itself ρ = {} for the run's \
                 mini-batches, exactly.",
                n(point.rho)
            );
            said.say("interpolation", text, &numbers);
            if *verdict == Interpolation::Violated {
                said.advise(
                    "The terms do not agree on a solution, and same-batch acceptance cannot see it: enlarge the mini-batch, use a model with more parameters, \
                     or finish with a method whose step size decays.",
                );
            }
        }
        (None, Some((low, high))) => {
            let text = format!(
                "At the last checkpoint ρ = {} for the run's mini-batches (95 %: {} to {}, from pairs of them). One point does not tell whether interpolation holds, and full gradients were \
                 not followed from there: the problem is too large, or its terms see each other through batch norm.",
                n(point.rho),
                n(low),
                n(high)
            );
            said.say("interpolation", text, &[("rho", point.rho), ("rho_low", low), ("rho_high", high)]);
        }
        (None, None) => {}
    }
}

fn constraints(point: Option<&Examination>, job: &Job, said: &mut Said) {
    let Some((point, kkt)) = point.and_then(|point| Some((point, point.kkt.as_ref()?))) else { return };
    let j = &kkt.jacobian;
    let licq = if j.licq { "LICQ holds there" } else { "LICQ fails there" };
    let text = format!(
        "At the last checkpoint ‖c‖ = {:.1e} and the KKT residual with the best multipliers is {:.1e}; σ_min(J) = {}, so {licq}.",
        kkt.constraint_norm,
        kkt.least_residual,
        n(j.smallest)
    );
    let numbers =
        [("constraint_norm", kkt.constraint_norm), ("kkt_residual", kkt.least_residual), ("sigma_min", j.smallest)];
    said.say("constraints", text, &numbers);
    if !j.licq {
        said.advise("State the constraints so that their gradients are linearly independent: without that no penalty bounds ‖c‖ by a multiple of 1/μ.");
    }
    if job.method.name != "str-p" {
        return;
    }
    let mu = point.penalty;
    // At a minimum of φ, μc = λ.
    let floor = kkt.multiplier_norm / mu;
    let text = format!(
        "With μ = {mu}, ‖∇φ‖ = {:.1e} and the multipliers have ‖λ‖ = {:.1e}: at a minimum of φ this leaves ‖c‖ = ‖λ‖/μ = {floor:.1e}; the bound \
         (‖∇φ‖ + ‖∇f‖)/(μσ_min) is {:.1e}.",
        kkt.penalty_residual, kkt.multiplier_norm, kkt.feasibility_bound
    );
    let numbers = [
        ("penalty", mu),
        ("penalty_residual", kkt.penalty_residual),
        ("multiplier_norm", kkt.multiplier_norm),
        ("left", floor),
        ("bound", kkt.feasibility_bound),
    ];
    said.say("penalty", text, &numbers);
    // The penalty, and not the way still to go, is what keeps x from the set.
    if kkt.constraint_norm > 1e-6 && floor > 0.5 * kkt.constraint_norm {
        said.advise(format!(
            "Raise the penalty: ‖c‖ = {:.1e} is what μ = {mu} leaves; ‖c‖ ≤ 1e-6 needs μ of about {:.1e}.",
            kkt.constraint_norm,
            kkt.multiplier_norm / 1e-6
        ));
    }
}
