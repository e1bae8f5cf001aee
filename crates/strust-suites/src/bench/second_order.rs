//! `strust bench second-order`: STR-Newton on problems with known solutions, beside SciPy, and what a step adds to its
//! evaluations.

mod overhead;
mod problems;
mod reference;
mod summary;

use super::{BenchBlock, BenchProgress, BenchResults};
use overhead::NewtonCost;
use problems::NewtonRuns;
use reference::{ScipyFile, ScipyProblem, ScipyRun};
use serde::Serialize;
use std::path::Path;
use strust_lab::format::brief;
use summary::NewtonSummary;

/// A row of the first table.
#[derive(Serialize)]
struct ComparedProblem {
    name: String,
    #[serde(flatten)]
    runs: NewtonRuns,
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
        let better = scipy.as_ref().and_then(ScipyProblem::better).filter(|_| runs.str_newton.solved);
        let ratio = better.map(|better| runs.str_newton.steps as f64 / better.iterations as f64);
        Self { name, runs, scipy, ratio }
    }
    /// The better of SciPy's two trust regions.
    fn better(&self) -> Option<&ScipyRun> {
        self.scipy.as_ref()?.better()
    }
    fn row(&self, with_scipy: bool) -> Vec<String> {
        let NewtonRuns { variables, by_value, str_newton: ours, str_lbfgs } = &self.runs;
        let mark = if *by_value { " *" } else { "" };
        let mut cells = vec![
            format!("{}{mark}", self.name),
            variables.to_string(),
            count(ours.solved, ours.steps),
            ours.products.to_string(),
            brief(ours.seconds),
            count(str_lbfgs.solved, str_lbfgs.steps),
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

/// STR-Newton on many problems, beside SciPy: `data` is a folder of data sets, `reference` a file of
/// scripts/second-order-reference.py.
pub fn second_order(
    data: Option<&Path>,
    reference: Option<&Path>,
    progress: &dyn BenchProgress,
) -> Result<BenchResults, strust_lab::Error> {
    let mut scipy = reference.map(ScipyFile::open).transpose()?;
    let mut problems = Vec::new();
    for task in problems::tasks(data, progress)? {
        progress.say(task.name.clone());
        let runs = (task.run)()?;
        let scipy = scipy.as_mut().and_then(|file| file.take(&task.name));
        problems.push(ComparedProblem::new(task.name, runs, scipy));
    }
    progress.say("a step with a million unknowns".into());
    let overhead = overhead::measure()?;
    let results = SecondOrderResults { summary: NewtonSummary::new(&problems), problems, overhead };
    Ok(BenchResults::new(&results, blocks(&results, reference.is_some())))
}

fn blocks(results: &SecondOrderResults, with_scipy: bool) -> Vec<BenchBlock> {
    let mut titles = vec!["", "n", "STR-Newton", "products", "seconds", "STR-L-BFGS"];
    if with_scipy {
        titles.extend(["better of SciPy", "iterations", "products", "seconds", "L-BFGS-B", "ratio"]);
    }
    let mut rows = vec![titles.into_iter().map(String::from).collect()];
    rows.extend(results.problems.iter().map(|problem| problem.row(with_scipy)));
    let marks = "(…) not solved. * Solved if f is its minimum to 1e-8: rounding forbids a small gradient.";
    vec![
        BenchBlock {
            title: "Steps to a gradient norm of 1e-8·max(1, |f|), all terms in every step, f64".into(),
            rows,
            notes: format!("{marks}\n{}", results.summary.text()),
        },
        BenchBlock::new(
            "A step of STR-Newton, and its evaluations alone, f64, one thread",
            overhead::rows(&results.overhead),
        ),
    ]
}
