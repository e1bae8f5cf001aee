//! Turns numbers into sentences. Each sentence gives a number and its meaning; advice is separate.

use super::{Examination, Finding, RecordStats};
use crate::{
    data::plan::Job,
    format::in_sentence as n,
    format::plural,
    registry::{
        methods::{ModelKind, model},
        problems::is_network,
    },
};
use std::fmt::Write as _;
use strust::{
    diagnostics::{Interpolation, bounds},
    radius::RegionConfig,
};

/// Collects findings and advice.
#[derive(Default)]
struct Sentences {
    findings: Vec<Finding>,
    advice: Vec<String>,
}

impl Sentences {
    fn find(&mut self, about: &str, text: String, numbers: &[(&str, f64)]) {
        let numbers = numbers.iter().filter(|(_, value)| value.is_finite());
        let numbers = numbers.map(|(name, value)| ((*name).to_string(), *value)).collect();
        self.findings.push(Finding { about: about.into(), text, numbers });
    }
    fn advise(&mut self, text: impl Into<String>) {
        self.advice.push(text.into());
    }
}

/// The findings and the advice.
pub(super) fn compose(
    stats: &RecordStats,
    point: Option<&Examination>,
    note: Option<&str>,
    job: &Job,
    failed: bool,
) -> (Vec<Finding>, Vec<String>) {
    let mut out = Sentences::default();
    if failed {
        out.advise(
            "Remove the cause of the failure: use shorter steps (a smaller learning_rate, initial_radius or max_radius), or data without extreme numbers.",
        );
    }
    if stats.steps == 0 && stats.iterations.steps() == 0 {
        let text =
            if failed { "The run made no step." } else { "The records have no step yet: repeat the diagnosis later." };
        out.find("steps", text.into(), &[("steps", 0.0)]);
        return (out.findings, out.advice);
    }
    progress(stats, point, job, &mut out);
    if stats.radius.is_some() || stats.iterations.largest_radius > 0.0 {
        let region = region(job);
        radius(stats, &region, &mut out);
        waste(stats, &region, model(&job.method.name) == ModelKind::Identity, &mut out);
        curvature(stats, &region, &mut out);
    }
    interpolation(stats, point, note, job, &mut out);
    constraints(point, job, &mut out);
    (out.findings, out.advice)
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

/// A metric is still falling if it fell by at least this share over the second half, and again in the last epoch.
const FALLING: f64 = 0.05;
/// Below this share of its first value a metric has converged, even if it still falls.
const CONVERGED: f64 = 1e-12;

fn per_cent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}

/// How much a number fell.
fn fall(from: f64, to: f64) -> String {
    if to > 0.1 * from {
        format!("by {:.0} %", per_cent(from - to, from))
    } else {
        format!("by a factor of {}", n(from / to))
    }
}

fn progress(stats: &RecordStats, point: Option<&Examination>, job: &Job, out: &mut Sentences) {
    let Some((name, first, last)) = &stats.metric else { return };
    let text = format!(
        "After {} and {} the {name} is {last:.1e}; at the start it was {first:.1e}.",
        plural(stats.epochs as usize, "epoch"),
        plural(stats.steps as usize, "step")
    );
    let numbers = [("epochs", stats.epochs as f64), ("steps", stats.steps as f64), ("first", *first), ("last", *last)];
    out.find("progress", text, &numbers);
    let falls = |before: &f64| *last < (1.0 - FALLING) * before && *last > CONVERGED * first;
    let violated =
        point.and_then(|point| point.interpolation.as_ref()).is_some_and(|(v, _)| *v == Interpolation::Violated);
    // The last epoch alone may be a fluctuation. Without interpolation a run never stops fluctuating.
    if let (Some(before), Some(halfway)) = (stats.before.filter(falls), stats.halfway.filter(falls))
        && stats.epochs == job.epochs
        && !violated
    {
        out.advise(format!(
            "Run more epochs: the {name} fell {} over the second half, and {} in the last epoch.",
            fall(halfway, *last),
            fall(before, *last)
        ));
    }
    if last > first {
        out.advise(format!(
            "Shorten the steps (a smaller learning_rate or max_radius) or enlarge the mini-batch: the {name} is larger than at the start."
        ));
    }
}

fn radius(stats: &RecordStats, region: &RegionConfig, out: &mut Sentences) {
    let largest = region.max_radius;
    if stats.iterations.steps() == 0 {
        let share = per_cent(stats.at_largest as f64, stats.epochs as f64);
        let text = format!(
            "The radius had its largest value, {largest}, at the end of {share:.0} % of the epochs, and is {} now. The records have no steps, so the number of steps that it cut \
             is not known.",
            n(stats.radius.unwrap_or(f64::NAN))
        );
        out.find(
            "radius",
            text,
            &[("epochs_at_largest_per_cent", share), ("radius", stats.radius.unwrap_or(f64::NAN))],
        );
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
    out.find("radius", text, &[("cut_per_cent", cut), ("least", i.least_radius), ("largest", i.largest_radius)]);
    if cut >= 50.0 && i.largest_radius >= largest && i.at_largest_radius as f64 > 0.5 * steps {
        out.advise(format!("Raise max_radius: the radius stays at {largest} and cuts {cut:.0} % of the steps."));
    }
}

/// `plain` means a model with H = I. The lemma's bound holds only for such a model.
fn waste(stats: &RecordStats, region: &RegionConfig, plain: bool, out: &mut Sentences) {
    let (rejected, steps) = if stats.iterations.steps() > 0 {
        (stats.iterations.unsuccessful, stats.iterations.steps())
    } else {
        (stats.steps - stats.accepted, stats.steps)
    };
    let share = per_cent(rejected as f64, steps as f64);
    let mut text = match rejected {
        0 => format!("None of {steps} steps was rejected"),
        _ => format!("{rejected} of {steps} steps were rejected ({share:.1} %), and each cost a gradient and a value"),
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
    out.find("wasted steps", text + ".", &numbers);
    let idle = stats.iterations.steps() > 0 && stats.iterations.on_boundary < stats.iterations.steps() / 20;
    if idle && share > 10.0 {
        // If the radius does not limit the step, a smaller radius does not shorten the next one.
        out.advise(format!(
            "Lower max_radius or raise shrink: {share:.0} % of the steps are rejected, but the radius (up to {}) is larger than nearly all steps, so dividing it by {} does not shorten the next step.",
            n(stats.iterations.largest_radius),
            region.shrink
        ));
    } else if share > 40.0 {
        let limit = region.grow.ln() / region.shrink.ln();
        out.advise(format!(
            "Lower grow or raise shrink: with {} and {} the radius allows up to {limit:.1} rejections per accepted step, and {share:.0} % of the steps are rejected.",
            region.grow, region.shrink
        ));
    }
}

fn curvature(stats: &RecordStats, region: &RegionConfig, out: &mut Sentences) {
    let c = &stats.curvature;
    if c.seen == 0 {
        if stats.iterations.steps() == 0 {
            out.find(
                "curvature",
                "The records have no steps (records = \"epochs\"), so the curvature along the trials is not known."
                    .into(),
                &[],
            );
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
    out.find("curvature", text, &numbers);
    let idle = stats.iterations.on_boundary < stats.iterations.steps() / 20;
    if idle && c.mean_step > 0.0 && c.mean_step < 0.05 {
        out.advise(format!(
            "Multiply the loss by about {:.0}: a step goes only {:.1} % of the way to the minimum in its direction, because H = I in the model is far above the curvature of the loss.",
            1.0 / c.mean_step,
            100.0 * c.mean_step
        ));
    }
}

fn interpolation(stats: &RecordStats, point: Option<&Examination>, note: Option<&str>, job: &Job, out: &mut Sentences) {
    if stats.claimed > 0.0 && stats.epochs > 1 {
        let share = 100.0 * stats.fell / stats.claimed;
        let outcome = if stats.fell < 0.0 {
            format!("rose by {:.1e}", -stats.fell)
        } else {
            format!("fell by {:.1e}, {} % of this", stats.fell, n(share))
        };
        let text = format!(
            "Over the second half, the accepted steps lowered the objective of their own mini-batches by {:.1e} in total; the full objective {outcome}.",
            stats.claimed
        );
        out.find(
            "agreement of mini-batches",
            text,
            &[("claimed", stats.claimed), ("fell", stats.fell), ("share_per_cent", share)],
        );
    }
    let Some(point) = point else {
        let why = note.unwrap_or("there is no checkpoint yet");
        out.find("interpolation", format!("Interpolation was not measured: {why}."), &[]);
        return;
    };
    let batches = match &point.kkt {
        None => "the run's mini-batches".to_string(),
        Some(_) => format!("mini-batches of f + (μ/2)‖c‖² of the run's size, μ = {}", point.penalty),
    };
    match (&point.interpolation, point.rho_interval) {
        (Some((verdict, why)), _) => {
            let text = format!(
                "Interpolation {verdict} (near the last checkpoint, with full gradients): {why}, for single terms. At the checkpoint, the exact ρ is {} for {batches}.",
                n(point.rho)
            );
            out.find("interpolation", text, &[("rho", point.rho)]);
            if *verdict == Interpolation::Violated {
                let unseen = if stats.radius.is_some() {
                    ", and the acceptance test on one mini-batch does not detect this"
                } else {
                    ""
                };
                out.advise(format!(
                    "The terms do not agree on a solution{unseen}: enlarge the mini-batch, use a model with more parameters, or finish with a method whose step size \
                     decays."
                ));
            }
        }
        (None, Some((low, high))) => {
            let rho = if point.rho.is_finite() {
                format!(
                    "ρ = {} for {batches} (95 % interval {} to {}, from pairs of them)",
                    n(point.rho),
                    n(low),
                    n(high)
                )
            } else {
                format!(
                    "ρ for {batches} is at least {} (95 % interval, from pairs of them) and may be infinite",
                    n(low)
                )
            };
            let why = if is_network(&job.problem) {
                "it takes too long for a network, and with batch norm a single term is another function than in its mini-batch"
            } else {
                "there are too many terms and parameters"
            };
            let text = format!(
                "At the last checkpoint {rho}. One point does not show whether interpolation holds. The probe with full gradients was not run: {why}."
            );
            out.find("interpolation", text, &[("rho", point.rho), ("rho_low", low), ("rho_high", high)]);
        }
        (None, None) => {}
    }
}

/// If ‖c‖ is at most this, the diagnosis does not advise a larger penalty.
const FEASIBLE: f64 = 1e-6;
/// x counts as a minimum of φ if ‖μc − λ‖/‖λ‖ is at most this.
const AT_MINIMUM: f64 = 0.1;

fn constraints(point: Option<&Examination>, job: &Job, out: &mut Sentences) {
    let Some((point, kkt)) = point.and_then(|point| Some((point, point.kkt.as_ref()?))) else { return };
    let j = &kkt.jacobian;
    let licq = if j.licq { "the constraints' gradients are independent there (LICQ)" } else { "LICQ fails there" };
    let text = format!(
        "At the last checkpoint ‖c‖ = {:.1e} and the KKT residual with the best multipliers is {:.1e}; σ_min(J) = {}: {licq}.",
        kkt.constraint_norm,
        kkt.least_residual,
        n(j.smallest)
    );
    let numbers =
        [("constraint_norm", kkt.constraint_norm), ("kkt_residual", kkt.least_residual), ("sigma_min", j.smallest)];
    out.find("constraints", text, &numbers);
    if !j.licq {
        out.advise("State the constraints so that their gradients are linearly independent: otherwise no penalty bounds ‖c‖ by a multiple of 1/μ.");
    }
    if model(&job.method.name) != ModelKind::Penalty {
        return;
    }
    let mu = point.penalty;
    // At a minimum of φ, μc = λ, so the multipliers give ‖c‖ for each μ. Elsewhere they do not.
    let (gap, floor) = (kkt.multiplier_gap, kkt.multiplier_norm / mu);
    let minimum = gap <= AT_MINIMUM * kkt.multiplier_norm;
    let meaning = if kkt.constraint_norm <= FEASIBLE {
        "‖c‖ is already small, so μ is large enough".into()
    } else if minimum {
        format!("x is near a minimum of φ, and ‖c‖ = ‖λ‖/μ = {floor:.1e} for this μ")
    } else {
        "x is not near a minimum of φ, so it is not known yet whether μ is large enough".into()
    };
    let text = format!(
        "With μ = {mu}, ‖∇φ‖ = {:.1e}; μc differs by {gap:.1e} from the best multipliers, of norm {:.1e}: {meaning}. The bound on ‖c‖ is \
         (‖∇φ‖ + ‖∇f‖)/(μσ_min) = {:.1e}.",
        kkt.penalty_residual, kkt.multiplier_norm, kkt.feasibility_bound
    );
    let numbers = [
        ("penalty", mu),
        ("penalty_residual", kkt.penalty_residual),
        ("multiplier_norm", kkt.multiplier_norm),
        ("multiplier_gap", gap),
        ("bound", kkt.feasibility_bound),
    ];
    out.find("penalty", text, &numbers);
    if kkt.constraint_norm > FEASIBLE && minimum {
        out.advise(format!(
            "Raise the penalty: ‖c‖ = {:.1e} with μ = {mu}; ‖c‖ ≤ {FEASIBLE:e} needs μ of about {:.1e}.",
            kkt.constraint_norm,
            kkt.multiplier_norm / FEASIBLE
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::plan::Plan, experiment::Experiment};
    use strust::diagnostics::{Jacobian, KktReport};

    /// The last finding and the advice at a point with ‖λ‖ = 2 and ‖μc − λ‖ = `gap`.
    fn advice(gap: f64, constraint_norm: f64) -> (String, Vec<String>) {
        let text = "name = \"a\"\nepochs = 1\nbatch = 4\nseeds = 1\n[[problem]]\nkind = \"subspace\"\n[[method]]\nname = \"str-p\"\n";
        let experiment = Experiment::parse(std::path::Path::new("a.toml"), text).unwrap();
        let plan = Plan::new(experiment, String::new(), crate::this_machine(1, None));
        let jacobian = Jacobian { smallest: 2.0, largest: 2.0, rows: 1, licq: true };
        let kkt = KktReport {
            gradient_norm: 1.0,
            constraint_norm,
            penalty_residual: 1e-3,
            least_residual: 1e-3,
            multiplier_norm: 2.0,
            multiplier_gap: gap,
            pull: 2.0,
            jacobian,
            feasibility_bound: 1.0,
        };
        let point =
            Examination { steps: 1, rho: 1.0, rho_interval: None, interpolation: None, kkt: Some(kkt), penalty: 10.0 };
        let mut out = Sentences::default();
        constraints(Some(&point), &plan.jobs[0], &mut out);
        (out.findings.last().unwrap().text.clone(), out.advice)
    }

    #[test]
    fn a_larger_penalty_is_advised_only_at_an_infeasible_minimum_of_phi() {
        let (text, found) = advice(0.01, 0.2);
        assert!(text.contains("‖c‖ = ‖λ‖/μ = 2.0e-1 for this μ"), "{text}");
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("‖c‖ ≤ 1e-6 needs μ of about 2.0e6"), "{found:?}");
        let (text, found) = advice(1.5, 0.2);
        assert!(text.contains("not known yet") && found.is_empty(), "{text} {found:?}");
        let (text, found) = advice(0.01, 1e-9);
        assert!(text.contains("already small") && found.is_empty(), "{text} {found:?}");
    }
}
