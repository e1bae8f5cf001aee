//! How often STR-Newton is as good as SciPy.

use super::ComparedProblem;
use serde::Serialize;
use strust_lab::statistics::median;

/// Steps within this factor of SciPy's iterations count as equally few.
const NEAR: f64 = 1.2;
/// Seconds of smaller problems are those of function calls.
const LARGE: usize = 100;

/// Numbers of problems, and the median of the ratios of steps.
#[derive(Serialize)]
pub struct NewtonSummary {
    problems: usize,
    solved: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside_scipy: Option<BesideScipy>,
}

#[derive(Serialize)]
struct BesideScipy {
    /// Problems that trust-ncg or trust-krylov solves.
    solved_by_scipy: usize,
    /// Of these, how many STR-Newton solves with at most 1.2 times the iterations.
    near: usize,
    /// The others.
    not_near: Vec<String>,
    median_ratio: Option<f64>,
    /// Problems with at least 100 variables and seconds in the reference.
    timed: usize,
    /// Of these, how many STR-Newton solves in less time than both methods that solve them.
    faster: usize,
}

impl NewtonSummary {
    pub fn new(problems: &[ComparedProblem]) -> Self {
        let solved = problems.iter().filter(|p| p.runs.str_newton.solved).count();
        let given = problems.iter().any(|p| p.scipy.is_some());
        Self { problems: problems.len(), solved, beside_scipy: given.then(|| BesideScipy::new(problems)) }
    }

    /// A few lines.
    pub fn text(&self) -> String {
        let mut text = format!("\nSTR-Newton solves {} of {} problems.\n", self.solved, self.problems);
        if let Some(scipy) = &self.beside_scipy {
            text += &scipy.text();
        }
        text
    }
}

impl BesideScipy {
    fn new(problems: &[ComparedProblem]) -> Self {
        let both: Vec<_> = problems.iter().filter(|p| p.better().is_some()).collect();
        let far = |p: &&&ComparedProblem| p.ratio.is_none_or(|ratio| ratio > NEAR);
        let not_near: Vec<_> = both.iter().filter(far).map(|p| p.name.clone()).collect();
        let seconds =
            problems.iter().filter(|p| p.runs.variables >= LARGE).filter_map(|p| Some((p, scipy_seconds(p)?)));
        let faster: Vec<bool> =
            seconds.map(|(p, scipy)| p.runs.str_newton.solved && p.runs.str_newton.seconds < scipy).collect();
        let ratios: Vec<f64> = both.iter().filter_map(|p| p.ratio).collect();
        Self {
            solved_by_scipy: both.len(),
            near: both.len() - not_near.len(),
            not_near,
            median_ratio: Some(median(&ratios)).filter(|_| !ratios.is_empty()),
            timed: faster.len(),
            faster: faster.iter().filter(|&&faster| faster).count(),
        }
    }

    fn text(&self) -> String {
        let Self { solved_by_scipy, near, not_near, median_ratio, timed, faster } = self;
        let median = median_ratio.map_or(String::new(), |ratio| format!("; the median ratio is {ratio:.2}"));
        let others = if not_near.is_empty() { String::new() } else { format!("\nAbove: {}.", not_near.join(", ")) };
        format!(
            "SciPy's trust-ncg or trust-krylov solves {solved_by_scipy}. On {near} of them, STR-Newton takes at most {NEAR} \
             times the iterations of the better one{median}.{others}\nIt is faster than both on {faster} of {timed} \
             problems with at least {LARGE} variables.\n"
        )
    }
}

/// The seconds of the faster of SciPy's methods that solve the problem; `None` if they were not measured.
fn scipy_seconds(problem: &ComparedProblem) -> Option<f64> {
    problem.scipy.as_ref()?.trust_regions().filter_map(|run| run.seconds).min_by(f64::total_cmp)
}
