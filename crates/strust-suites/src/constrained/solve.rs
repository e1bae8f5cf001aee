//! Solvers with their defaults on small problems, on full batches.

use super::kkt::{Residual, residual};
use crate::{finite, sqp};
use strust::{kkt::least_squares_multipliers, methods::SqpVerdict, prelude::*};
use strust_baselines::{AugLag, AugLagConfig};
use strust_lab::{
    Error,
    data::summary::{MethodSummary, Solution, SolverVerdict},
};
use strust_problems::constrained::{ConstrainedProblem, Expected, KnownMultipliers};

/// The budget of STR-SQP. Other runs end by its verdict.
pub(super) const SQP_STEPS: u64 = 300;
/// The budget of first-order methods, which make one gradient in a step.
const FIRST_ORDER_STEPS: u64 = 5000;
/// f and the violation must be as small as this where a problem counts as solved.
pub(super) const SOLVED: f64 = 1e-6;

/// A run of a solver on a problem.
pub(super) struct Attempt {
    pub solution: Solution,
    /// The final point.
    pub x: Vec<f64>,
    /// How much it misses the KKT conditions with the multipliers of the solver, or with least-squares ones.
    pub residual: Residual,
}

/// STR-SQP from a point.
pub(super) fn str_sqp(problem: &ConstrainedProblem, start: &[f64]) -> Result<Attempt, Error> {
    let (f, constraint) = (&mut problem.objective(), &mut problem.constraint());
    let report = sqp::str_sqp(f, constraint, StrSqpConfig::default(), None, SQP_STEPS, start.to_vec())?;
    let state = &report.state;
    let (rows, bounds) = (state.multipliers().to_vec(), state.bound_multipliers().clone());
    let multipliers = KnownMultipliers { rows, bounds };
    let contradiction = match state.verdict() {
        SqpVerdict::Infeasible(rows) => rows.as_slice(),
        _ => &[],
    };
    let gradients = report.evaluations.gradients;
    Ok(attempt(problem, report.point(), &multipliers, report.reason, gradients, contradiction))
}

/// STR-P from the start of an equality problem.
pub(super) fn str_p(problem: &ConstrainedProblem) -> Result<Attempt, Error> {
    first_order(problem, problem.objective(), StrP::new(StrPConfig::default(), problem.constraint())?)
}

/// The augmented Lagrangian from the start of an equality problem.
pub(super) fn aug_lag(problem: &ConstrainedProblem) -> Result<Attempt, Error> {
    first_order(problem, problem.objective(), AugLag::new(AugLagConfig::default(), problem.constraint())?)
}

fn first_order<F, M>(problem: &ConstrainedProblem, mut f: F, method: M) -> Result<Attempt, Error>
where
    F: Objective<Point = Vec<f64>>,
    M: Method<F, State: State<Point = Vec<f64>>>,
{
    let stop = Stop::kkt(1e-8).or(Stop::steps(FIRST_ORDER_STEPS));
    let report = minimize(&mut f).method(method).full_batch().stop(stop).start(problem.start.clone())?;
    let x = report.point();
    let rows = least_squares_multipliers(&mut problem.constraint(), x, &problem.gradient(x));
    let multipliers = KnownMultipliers { rows, bounds: vec![0.0; x.len()] };
    Ok(attempt(problem, x, &multipliers, report.reason, report.evaluations.gradients, &[]))
}

/// `contradiction` has the rows that contradict each other, if the verdict says so.
fn attempt(
    problem: &ConstrainedProblem,
    x: &[f64],
    multipliers: &KnownMultipliers,
    reason: StopReason,
    gradients: u64,
    contradiction: &[usize],
) -> Attempt {
    let verdict = verdict(reason);
    let residual = residual(problem, x, multipliers);
    let (solved, objective_error, kkt) = match &problem.expected {
        Expected::Infeasible { rows, .. } => {
            let named = !contradiction.is_empty() && contradiction.iter().all(|row| rows.contains(row));
            (verdict == SolverVerdict::Infeasible && named, None, None)
        }
        Expected::Solvable | Expected::NoQualification => {
            (is_solved(problem, x), finite(objective_error(problem, x)), finite(residual.largest()))
        }
    };
    let constraint_norm = finite(residual.violation);
    let solution = Solution { solved, verdict, gradients, objective_error, constraint_norm, kkt };
    Attempt { solution, x: x.to_vec(), residual }
}

/// Whether f(x) is a known optimum and x is feasible, both to [`SOLVED`].
pub(super) fn is_solved(problem: &ConstrainedProblem, x: &[f64]) -> bool {
    objective_error(problem, x) <= SOLVED && problem.violation(x) <= SOLVED
}

/// |f(x) − f*|/max(1, |f*|), for the nearest known value.
fn objective_error(problem: &ConstrainedProblem, x: &[f64]) -> f64 {
    let value = problem.value(x);
    let error = |known: f64| (value - known).abs() / known.abs().max(1.0);
    problem.solutions.iter().map(|known| error(known.value)).fold(f64::INFINITY, f64::min)
}

fn verdict(reason: StopReason) -> SolverVerdict {
    match reason {
        StopReason::Kkt | StopReason::GradientNorm => SolverVerdict::Converged,
        StopReason::Infeasible => SolverVerdict::Infeasible,
        StopReason::NoQualification => SolverVerdict::NoQualification,
        StopReason::Stalled | StopReason::Stagnation => SolverVerdict::Stalled,
        StopReason::Breakdown => SolverVerdict::BrokeDown,
        _ => SolverVerdict::Budget,
    }
}

/// A solver without curves in a summary.
pub(super) fn as_method(name: &str, solution: Solution) -> MethodSummary {
    let (name, label, solution) = (name.into(), name.into(), Some(solution));
    MethodSummary { name, label, acceptance_rate: 1.0, solution, ..MethodSummary::default() }
}
