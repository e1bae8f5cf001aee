//! The sentences about the terms of the sum and the constraint: interpolation, KKT residuals, and the penalty.

use super::{Examination, Finding, RecordStats, facts::Facts};
use crate::{data::plan::Job, format::in_sentence as n, registry::problems::is_network};

/// All of them. `note`: why the point was not examined.
pub(super) fn describe(facts: &Facts, note: Option<&str>, out: &mut Vec<Finding>) {
    interpolation(facts.stats, facts.point, note, facts.job, out);
    constraints(facts.point, facts.penalized(), facts.violation.map_or(0.0, |(_, tolerance)| tolerance), out);
}

fn interpolation(
    stats: &RecordStats,
    point: Option<&Examination>,
    note: Option<&str>,
    job: &Job,
    out: &mut Vec<Finding>,
) {
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
        out.push(Finding::new(
            "agreement of mini-batches",
            text,
            &[("claimed", stats.claimed), ("fell", stats.fell), ("share_per_cent", share)],
        ));
    }
    let Some(point) = point else {
        let why = note.unwrap_or("there is no checkpoint yet");
        out.push(Finding::new("interpolation", format!("Interpolation was not measured: {why}."), &[]));
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
            out.push(Finding::new("interpolation", text, &[("rho", point.rho)]));
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
            out.push(Finding::new("interpolation", text, &[("rho", point.rho), ("rho_low", low), ("rho_high", high)]));
        }
        (None, None) => {}
    }
}

/// x counts as a minimum of φ if ‖μc − λ‖/‖λ‖ is at most this.
const AT_MINIMUM: f64 = 0.1;

/// `tolerance`: below it ‖c‖ counts as 0.
fn constraints(point: Option<&Examination>, penalized: bool, tolerance: f64, out: &mut Vec<Finding>) {
    let point = point.filter(|point| !point.inequalities);
    let Some((point, kkt)) = point.and_then(|point| Some((point, point.kkt.as_ref()?))) else { return };
    let j = &kkt.jacobian;
    let licq = if j.licq {
        "the constraints' gradients are independent there (LICQ)"
    } else {
        "LICQ fails there, so no penalty bounds ‖c‖ by a multiple of 1/μ"
    };
    let text = format!(
        "At the last checkpoint ‖c‖ = {:.1e} and the KKT residual with the best multipliers is {:.1e}; σ_min(J) = {}: {licq}.",
        kkt.constraint_norm,
        kkt.least_residual,
        n(j.smallest)
    );
    let numbers =
        [("constraint_norm", kkt.constraint_norm), ("kkt_residual", kkt.least_residual), ("sigma_min", j.smallest)];
    out.push(Finding::new("constraints", text, &numbers));
    if !penalized {
        return;
    }
    let mu = point.penalty;
    // At a minimum of φ, μc = λ, so the multipliers give ‖c‖ for each μ. Elsewhere they do not.
    let (gap, floor) = (kkt.multiplier_gap, kkt.multiplier_norm / mu);
    let minimum = gap <= AT_MINIMUM * kkt.multiplier_norm;
    let meaning = if kkt.constraint_norm <= tolerance {
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
    out.push(Finding::new("penalty", text, &numbers));
}

#[cfg(test)]
mod tests {
    use super::*;
    use strust::diagnostics::{Jacobian, KktReport};

    /// The sentence about the penalty at a point with ‖λ‖ = 2 and ‖μc − λ‖ = `gap`.
    fn penalty(gap: f64, constraint_norm: f64) -> String {
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
        let point = Examination { kkt: Some(kkt), penalty: 10.0, ..Examination::unknown(1) };
        let mut out = Vec::new();
        constraints(Some(&point), true, 1e-6, &mut out);
        out.last().unwrap().text.clone()
    }

    #[test]
    fn the_violation_that_a_penalty_leaves_is_named_only_at_a_minimum_of_phi() {
        assert!(penalty(0.01, 0.2).contains("‖c‖ = ‖λ‖/μ = 2.0e-1 for this μ"));
        assert!(penalty(1.5, 0.2).contains("not known yet"));
        assert!(penalty(0.01, 1e-9).contains("already small"));
    }
}
