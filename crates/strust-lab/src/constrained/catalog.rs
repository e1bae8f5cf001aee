//! The small problems.

use strust_problems::constrained::{
    ConstrainedProblem, Expected, degenerate_problems, equality_problems, inequality_problems,
};

/// The kinds of small problems, in the order of the report.
pub(super) const KINDS: [&str; 4] = ["equality", "inequality", "infeasible", "degenerate"];

/// All small problems with their kinds.
pub(super) fn all() -> Vec<(&'static str, ConstrainedProblem)> {
    let degenerate = |problem: ConstrainedProblem| {
        let kind = if matches!(problem.expected, Expected::Infeasible { .. }) { KINDS[2] } else { KINDS[3] };
        (kind, problem)
    };
    let equality = equality_problems().into_iter().map(|problem| (KINDS[0], problem));
    let inequality = inequality_problems().into_iter().map(|problem| (KINDS[1], problem));
    equality.chain(inequality).chain(degenerate_problems().into_iter().map(degenerate)).collect()
}
