//! STR-SQP from random starts.

use super::{kkt::Residual, section, settings::ConstrainedSettings, solve};
use crate::{prelude::*, theory::normals};
use strust::vector::Vector;
use strust_lab::{Error, data::summary::SolverVerdict};
use strust_problems::constrained::{ConstrainedProblem, KINDS, all_problems};

/// The share of runs that must end at a verified KKT point.
const SHARE: f64 = 0.98;
/// The KKT residual of a verified point: ‖∇f + Jᵀy + z‖ relative to the larger of 1 and ‖∇f‖ at the start and at the
/// end, the violation, and complementarity relative to max(1, |f|).
const VERIFIED: f64 = 1e-6;

/// The usual start with a standard normal number added to every coordinate. Where f or a row is not finite, the numbers
/// are halved until they are: some functions are defined only near the start.
fn random_start(problem: &ConstrainedProblem, seed: u64) -> Vec<f64> {
    let mut next = normals(seed);
    let noise: Vec<f64> = problem.start.iter().map(|_| next()).collect();
    let at = |factor: f64| -> Vec<f64> {
        let free = problem.start.iter().zip(&noise).map(|(x, noise)| x + factor * noise);
        free.zip(problem.lower.iter().zip(&problem.upper)).map(|(x, (low, high))| x.clamp(*low, *high)).collect()
    };
    let finite = |x: &Vec<f64>| problem.value(x).is_finite() && problem.rows(x).iter().all(|c| c.is_finite());
    (0..20).map(|i| at(0.5_f64.powi(i))).find(finite).unwrap_or_else(|| problem.start.clone())
}

/// The runs of a problem.
struct RandomStarts {
    name: &'static str,
    gradients: Vec<f64>,
    verified: usize,
    infeasible: usize,
    /// The verdicts and KKT residuals of runs that are not verified.
    others: Vec<String>,
}

fn tried(problem: &ConstrainedProblem, starts: u64) -> Result<RandomStarts, Error> {
    let mut tried = RandomStarts { name: problem.name, gradients: vec![], verified: 0, infeasible: 0, others: vec![] };
    for seed in 0..starts {
        let start = random_start(problem, seed);
        let attempt = solve::str_sqp(problem, &start)?;
        let solution = &attempt.solution;
        let size = problem.gradient(&start).norm().max(problem.gradient(&attempt.x).norm()).max(1.0);
        let Residual { gradient, violation, complementarity } = attempt.residual;
        let verified = solution.verdict == SolverVerdict::Converged
            && gradient <= VERIFIED * size
            && violation <= VERIFIED
            && complementarity <= VERIFIED * problem.value(&attempt.x).abs().max(1.0);
        tried.gradients.push(solution.gradients as f64);
        tried.verified += usize::from(verified);
        tried.infeasible += usize::from(solution.verdict == SolverVerdict::Infeasible);
        if !verified {
            let residual = brief(attempt.residual.largest());
            tried.others.push(format!("{} ({residual})", solution.verdict.word()));
        }
    }
    Ok(tried)
}

/// Runs all equality and inequality problems.
pub(super) fn run(settings: &ConstrainedSettings, tick: &mut Tick) -> Result<CheckResults, Error> {
    let problems: Vec<ConstrainedProblem> =
        all_problems().into_iter().filter(|(kind, _)| KINDS[..2].contains(kind)).map(|(_, problem)| problem).collect();
    tick.expect(problems.len() as u64);
    let mut all = Vec::new();
    for problem in &problems {
        all.push(tried(problem, settings.starts)?);
        tick.done()?;
    }
    let runs: usize = all.iter().map(|one| one.gradients.len()).sum();
    let verified: usize = all.iter().map(|one| one.verified).sum();
    let infeasible: usize = all.iter().map(|one| one.infeasible).sum();
    let gradients: Vec<f64> = all.iter().flat_map(|one| one.gradients.clone()).collect();
    let missed = all.iter().filter(|one| !one.others.is_empty());
    let row = |one: &RandomStarts| {
        vec![one.name.into(), format!("{} of {}", one.verified, one.gradients.len()), one.others.join(", ")]
    };
    let section = Section {
        findings: vec![format!(
            "{verified} of {runs} runs end at a verified KKT point. The median is {} gradients.",
            upper_median(&gradients)
        )],
        tables: vec![Table::new(
            "Problems on which a run did not end at a verified KKT point, with the verdicts and KKT residuals of these \
                      runs",
            "problem | verified | the others",
            missed.map(row).collect(),
        )],
        checks: vec![
            Check::at_least(
                "share of random starts that end at a verified KKT point",
                verified as f64 / runs as f64,
                SHARE,
                format!("{verified} of {runs} runs on {} problems", all.len()),
            ),
            Check::at_most(
                "random starts with the verdict infeasible",
                infeasible as f64,
                0.0,
                "every one of these problems has a feasible point",
            ),
        ],
        ..section(
            "starts",
            "Random starts",
            "STR-SQP starts at the usual start plus a standard normal number on every coordinate, within the bounds. \
             A KKT point is verified if the verdict is converged and, with the multipliers of the method, ‖∇f + Jᵀy + z‖ \
             is at most 1e-6 of the larger of 1 and ‖∇f‖ at the start and at the end, no constraint is violated by more \
             than 1e-6, and complementarity is at most 1e-6 of max(1, |f|).",
        )
    };
    Ok(CheckResults { problems: Vec::new(), section })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_starts_are_finite_within_the_bounds_and_a_function_of_the_seed() {
        for (_, problem) in all_problems() {
            for seed in 0..5 {
                let x = random_start(&problem, seed);
                assert!(problem.value(&x).is_finite(), "{}", problem.name);
                for ((x, low), high) in x.iter().zip(&problem.lower).zip(&problem.upper) {
                    assert!(low <= x && x <= high, "{}", problem.name);
                }
                assert_eq!(x, random_start(&problem, seed));
            }
            if problem.lower.iter().all(|low| low.is_infinite()) {
                assert_ne!(random_start(&problem, 0), random_start(&problem, 1), "{}", problem.name);
            }
        }
    }
}
