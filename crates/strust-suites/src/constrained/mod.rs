//! Problems with constraints: small ones with known solutions, and tasks with data.
//!
//! ```text
//! strust_problems::constrained  → Part (checks/NAME.json)      ┐
//! experiments/constrained.toml  → grid searches → runs         ┼ Summary → report.html
//! reference file                → results of other programs    ┘
//! ```

mod kkt;
mod noise;
mod problems;
mod reference;
mod settings;
mod solve;
mod starts;
mod tasks;
mod units;

pub use reference::{ReferenceFile, ReferenceProblem, ReferenceResult};
pub use settings::ConstrainedSettings;

use crate::{
    built_in,
    tasks::{BenchmarkSpec, Resources, competing_suite},
};
use serde::{Deserialize, Serialize};
use std::{fmt::Write as _, path::Path};
use strust_lab::{
    Error,
    data::{experiment::Experiment, plan::Plan, section::Section, summary::Summary},
    format::csv_field,
    suite::{CheckResults, Suite, SuitePlan, Tick},
};

/// The study of problems with constraints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConstrainedSuite {
    /// How much runs on small problems.
    pub settings: ConstrainedSettings,
    /// The results of other programs.
    pub reference: Vec<ReferenceProblem>,
    /// The tasks with data.
    pub benchmark: BenchmarkSpec,
}

impl ConstrainedSuite {
    /// The built-in tasks. Those whose data, library or device is missing are skipped.
    pub fn tasks(resources: &Resources) -> Result<BenchmarkSpec, Error> {
        let (name, text) = built_in::CONSTRAINED;
        BenchmarkSpec::parse_tasks(Path::new(name), text, resources, true)
    }
}

/// A section of the report without contents.
fn section(name: &str, title: &str, description: &str) -> Section {
    Section::new(&format!("constrained-{name}"), title, description)
}

impl Suite for ConstrainedSuite {
    const FILE: &'static str = "constrained.json";

    competing_suite!(benchmark, tasks::contest);
    fn checks(&self) -> Vec<&str> {
        vec!["problems", "starts", "units", "noise"]
    }
    fn check_settings(&self, _: usize) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&(self.settings, &self.reference))
    }
    fn run_check(&self, check: usize, tick: &mut Tick) -> Result<CheckResults, Error> {
        match check {
            0 => problems::run(&self.reference, tick),
            1 => starts::run(&self.settings, tick),
            2 => units::run(tick),
            _ => noise::run(&self.settings, tick),
        }
    }
    fn summary(plan: &SuitePlan<Self>, folder: &Path, checks: Vec<CheckResults>) -> Result<Summary, Error> {
        let BenchmarkSpec { title, description, tasks, .. } = &plan.suite.benchmark;
        let largest = |of: fn(&Experiment) -> u64| tasks.iter().map(|task| of(&task.experiment)).max().unwrap_or(0);
        let (epochs, batch) = (largest(|experiment| experiment.epochs), largest(|experiment| experiment.batch));
        let mut summary = Summary { epochs, batch, ..plan.summary(title, description) };
        for check in checks {
            summary.problems.extend(check.problems);
            summary.sections.push(check.section);
        }
        tasks::add_to(&mut summary, plan, folder)?;
        summary.checks = summary.sections.iter().flat_map(|section| section.checks.clone()).collect();
        Ok(summary)
    }
    /// One row per problem and method.
    fn csv(summary: &Summary) -> String {
        let mut text =
            String::from("problem,kind,method,solved,verdict,gradients,objective_error,constraint_norm,kkt\n");
        let number = |number: Option<f64>| number.map(|number| format!("{number:e}")).unwrap_or_default();
        for problem in &summary.problems {
            for method in &problem.methods {
                let Some(s) = &method.solution else { continue };
                let _ = writeln!(
                    text,
                    "{},{},{},{},{},{},{},{},{}",
                    csv_field(&problem.name),
                    problem.kind.as_deref().unwrap_or_default(),
                    csv_field(&method.label),
                    s.solved,
                    s.verdict.word(),
                    s.gradients,
                    number(s.objective_error),
                    number(s.constraint_norm),
                    number(s.kkt)
                );
            }
        }
        text
    }
}
