//! `strust bench second-order`: STR-Newton on problems with known solutions, beside SciPy, and what a step adds to its
//! evaluations.

mod overhead;
mod problems;
mod reference;
mod summary;

use crate::{
    CommandFailure,
    args::{SecondOrder, Shared},
    session::{json, print},
    show::{Activity, heading, table},
};
use overhead::NewtonCost;
use problems::{NewtonRuns, SolverRun};
use reference::{ScipyFile, ScipyProblem, ScipyRun};
use serde::Serialize;
use strust_lab::format::brief;
use summary::NewtonSummary;

/// A row of the first table.
#[derive(Serialize)]
struct ComparedProblem {
    name: String,
    variables: usize,
    /// Whether f within 1e-8 of its minimum counts as solved, because rounding forbids a small gradient.
    by_value: bool,
    str_newton: SolverRun,
    str_lbfgs: SolverRun,
    /// The results of SciPy; absent without a reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    scipy: Option<ScipyProblem>,
    /// The steps of STR-Newton over the iterations of the better of trust-ncg and trust-krylov, if both solve the
    /// problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

impl ComparedProblem {
    fn new(name: String, runs: NewtonRuns, scipy: Option<ScipyProblem>) -> Self {
        let NewtonRuns { variables, by_value, str_newton, str_lbfgs } = runs;
        let better = scipy.as_ref().and_then(ScipyProblem::better).filter(|_| str_newton.solved);
        let ratio = better.map(|better| str_newton.steps as f64 / better.iterations as f64);
        Self { name, variables, by_value, str_newton, str_lbfgs, scipy, ratio }
    }
    /// The better of SciPy's two trust regions.
    fn better(&self) -> Option<&ScipyRun> {
        self.scipy.as_ref()?.better()
    }
    fn row(&self, with_scipy: bool) -> Vec<String> {
        let ours = &self.str_newton;
        let mark = if self.by_value { " *" } else { "" };
        let mut cells = vec![
            format!("{}{mark}", self.name),
            self.variables.to_string(),
            count(ours.solved, ours.steps),
            ours.products.to_string(),
            brief(ours.seconds),
            count(self.str_lbfgs.solved, self.str_lbfgs.steps),
        ];
        if with_scipy {
            let better = self.better();
            let lbfgs = self.scipy.as_ref().and_then(|scipy| scipy.method("l-bfgs-b"));
            cells.extend([
                better.map_or("–".into(), |run| run.name.clone()),
                better.map_or("–".into(), |run| run.iterations.to_string()),
                better.map_or("–".into(), |run| run.products.to_string()),
                better.and_then(|run| run.seconds).map_or("–".into(), brief),
                lbfgs.map_or("–".into(), |run| count(run.solved, run.iterations)),
                self.ratio.map_or("–".into(), |ratio| format!("{ratio:.2}")),
            ]);
        }
        cells
    }
}

/// A number of steps, in parentheses if they do not solve the problem.
fn count(solved: bool, steps: u64) -> String {
    if solved { steps.to_string() } else { format!("({steps})") }
}

/// The output as JSON.
#[derive(Serialize)]
struct SecondOrderResults {
    problems: Vec<ComparedProblem>,
    summary: NewtonSummary,
    overhead: Vec<NewtonCost>,
}

pub fn run(options: &SecondOrder, shared: &Shared) -> Result<(), CommandFailure> {
    let failed = |e: strust::Error| CommandFailure::Failed(e.to_string());
    let mut reference = options.reference.as_deref().map(ScipyFile::open).transpose()?;
    let tasks = problems::tasks(options.data.as_deref())?;
    let activity = Activity::new(shared);
    let mut problems = Vec::new();
    for task in tasks {
        activity.say(task.name.clone());
        let runs = (task.run)().map_err(failed)?;
        let scipy = reference.as_mut().and_then(|file| file.take(&task.name));
        problems.push(ComparedProblem::new(task.name, runs, scipy));
    }
    activity.say("a step with a million unknowns".into());
    let overhead = overhead::measure().map_err(failed)?;
    drop(activity);
    let results = SecondOrderResults { summary: NewtonSummary::new(&problems), problems, overhead };
    print(&if shared.json { json(&results)? } else { text(&results, options.reference.is_some(), shared) })
}

fn text(results: &SecondOrderResults, with_scipy: bool, shared: &Shared) -> String {
    let mut titles = vec!["", "n", "STR-Newton", "products", "seconds", "STR-L-BFGS"];
    if with_scipy {
        titles.extend(["better of SciPy", "iterations", "products", "seconds", "L-BFGS-B", "ratio"]);
    }
    let mut rows = vec![titles.into_iter().map(String::from).collect()];
    rows.extend(results.problems.iter().map(|problem| problem.row(with_scipy)));
    let marks = "(…) not solved. * Solved if f is its minimum to 1e-8: rounding forbids a small gradient.";
    let solve = heading("Steps to a gradient norm of 1e-8·max(1, |f|), all terms in every step, f64", shared);
    let cost = heading("A step of STR-Newton, and its evaluations alone, f64, one thread", shared);
    let summary = results.summary.text();
    format!("{solve}\n{}{marks}\n{summary}\n{cost}\n{}", table(&rows), table(&overhead::rows(&results.overhead)))
}
