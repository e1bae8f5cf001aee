//! The paper's analysis as experiments: one file per claim, each with figures, measured values, bounds and verdicts.
//!
//! ```text
//! experiments/theory-*.toml → Theory → Section (checks/NAME.json) → Summary → report.html
//! ```
//!
//! A section depends only on its file and its seeds.

mod failures;
mod penalty;
mod problems;
mod rate;
mod rejections;
mod second_order;
mod step_length;
mod strong_growth;

pub(crate) use problems::normals;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{fmt::Write as _, path::Path};
use strust::config::Config;
use strust_lab::{
    Error,
    data::{
        section::{Check, Section, Shown, Table},
        summary::Summary,
    },
    experiment::ExperimentText,
    format::{NAME_RULE, control_character, csv_quoted, is_name},
    suite::{CheckResults, Suite, SuitePlan, Tick},
};

/// The claim to check, with all settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "theory", content = "settings", rename_all = "kebab-case")]
pub enum Claim {
    /// The strong growth constant along a run.
    StrongGrowth(strong_growth::StrongGrowthConfig),
    /// The step-length lemma.
    StepLength(step_length::StepLengthConfig),
    /// The bound on rejections.
    Rejections(rejections::RejectionsConfig),
    /// The lemmas with the curvature of mini-batches.
    SecondOrder(second_order::SecondOrderConfig),
    /// Theorem 1.
    Rate(rate::RateConfig),
    /// Theorem 2 and its corollary.
    Penalty(penalty::PenaltyConfig),
    /// Failures without the assumptions.
    Failures(failures::FailuresConfig),
}

/// The words for [`Claim`] in experiment files.
const CLAIMS: [&str; 7] = ["strong-growth", "step-length", "rejections", "second-order", "rate", "penalty", "failures"];

/// One theory experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Theory {
    /// Its name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// A paragraph for people.
    pub description: String,
    /// The seeds 0 … N−1.
    pub seeds: u64,
    /// Its claim.
    #[serde(flatten)]
    pub claim: Claim,
}

/// The contents of a file: `theory` names the claim, `[settings]` has its parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<S: Default> {
    name: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default = "five")]
    seeds: u64,
    #[serde(rename = "theory")]
    _theory: String,
    #[serde(default)]
    settings: S,
}

fn five() -> u64 {
    5
}

impl Theory {
    /// The theory experiment of a text; `None` if it is another kind of experiment.
    pub fn from_text(text: &ExperimentText) -> Result<Option<Self>, Error> {
        if text.has_key("theory") { Self::parse(&text.file, &text.text).map(Some) } else { Ok(None) }
    }

    /// Parses the text of an experiment file; `file` is for messages.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Error> {
        let table: toml::Table = toml::from_str(text).map_err(|e| wrong(file, text, &e))?;
        let word = table.get("theory").and_then(toml::Value::as_str).unwrap_or_default();
        match word {
            "strong-growth" => Self::with(file, text, Claim::StrongGrowth),
            "step-length" => Self::with(file, text, Claim::StepLength),
            "rejections" => Self::with(file, text, Claim::Rejections),
            "second-order" => Self::with(file, text, Claim::SecondOrder),
            "rate" => Self::with(file, text, Claim::Rate),
            "penalty" => Self::with(file, text, Claim::Penalty),
            "failures" => Self::with(file, text, Claim::Failures),
            _ => {
                let why = format!("`theory` is {word:?}, but must be one of {}", CLAIMS.join(", "));
                Err(Error::Experiment { file: file.into(), line: None, why })
            }
        }
    }

    fn with<S: Config + DeserializeOwned>(file: &Path, text: &str, claim: fn(S) -> Claim) -> Result<Self, Error> {
        let read: File<S> = toml::from_str(text).map_err(|e| wrong(file, text, &e))?;
        let refuse = |why: String| Error::Experiment { file: file.into(), line: None, why };
        read.settings.clone().check().map_err(|e| refuse(e.to_string()))?;
        if !is_name(&read.name) {
            return Err(refuse(format!("`name` is {:?}, but {NAME_RULE}", read.name)));
        }
        for (key, text) in [("title", &read.title), ("description", &read.description)] {
            if let Some(found) = control_character(text, key == "description") {
                return Err(refuse(format!("`{key}` has the control character {found}: remove it")));
            }
        }
        if !(1..=1000).contains(&read.seeds) {
            return Err(refuse(format!("`seeds` is {}, but must be a whole number in [1, 1000]", read.seeds)));
        }
        let title = if read.title.is_empty() { read.name.clone() } else { read.title };
        let description = read.description.trim().to_string();
        Ok(Self { name: read.name, title, description, seeds: read.seeds, claim: claim(read.settings) })
    }

    fn run(&self, tick: &mut Tick) -> Result<Section, Error> {
        let seeds = self.seeds;
        let Findings { text: findings, figures, tables, checks } = match &self.claim {
            Claim::StrongGrowth(settings) => strong_growth::run(settings, seeds, tick),
            Claim::StepLength(settings) => step_length::run(settings, seeds, tick),
            Claim::Rejections(settings) => rejections::run(settings, seeds, tick),
            Claim::SecondOrder(settings) => second_order::run(settings, seeds, tick),
            Claim::Rate(settings) => rate::run(settings, seeds, tick),
            Claim::Penalty(settings) => penalty::run(settings, seeds, tick),
            Claim::Failures(settings) => failures::run(settings, seeds, tick),
        }?;
        let (name, title, description) = (self.name.clone(), self.title.clone(), self.description.clone());
        Ok(Section { name, title, description, findings, figures, tables, checks })
    }
}

/// Some theory experiments with one report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TheorySuite {
    /// Its name, also the name of the results folder.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The experiments.
    pub experiments: Vec<Theory>,
}

impl Suite for TheorySuite {
    const FILE: &'static str = "theory.json";
    const CHECK: &'static str = "experiment";

    fn names(&self) -> Vec<&str> {
        std::iter::once(self.name.as_str()).chain(self.checks()).collect()
    }
    fn checks(&self) -> Vec<&str> {
        self.experiments.iter().map(|theory| theory.name.as_str()).collect()
    }
    fn check_settings(&self, check: usize) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&self.experiments[check])
    }
    fn run_check(&self, check: usize, tick: &mut Tick) -> Result<CheckResults, Error> {
        Ok(CheckResults { section: self.experiments[check].run(tick)?, problems: Vec::new() })
    }
    fn summary(plan: &SuitePlan<Self>, _: &Path, checks: Vec<CheckResults>) -> Result<Summary, Error> {
        let sections: Vec<Section> = checks.into_iter().map(|check| check.section).collect();
        let checks = sections.iter().flat_map(|section| section.checks.clone()).collect();
        Ok(Summary { checks, sections, ..plan.summary(&plan.suite.title, "") })
    }
    fn csv(summary: &Summary) -> String {
        let mut text = String::from("experiment,claim,measured,bound,holds,why\n");
        for Section { name: section, checks, .. } in &summary.sections {
            for Check { name, measured, bound, holds, why, .. } in checks {
                let (name, why) = (csv_quoted(name), csv_quoted(why));
                let _ = writeln!(text, "{section},{name},{measured},{bound},{holds},{why}");
            }
        }
        text
    }
}

fn wrong(file: &Path, text: &str, error: &toml::de::Error) -> Error {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    Error::Experiment { file: file.into(), line, why: error.message().replace('\n', " ") }
}

/// The results of an experiment.
#[derive(Default)]
struct Findings {
    text: Vec<String>,
    figures: Vec<Shown>,
    tables: Vec<Table>,
    checks: Vec<Check>,
}

/// Checks a list of a file: it must not be empty, and every entry must be in the open interval.
fn check_list(
    owner: &'static str,
    field: &'static str,
    list: &[f64],
    low: f64,
    high: f64,
) -> Result<(), strust::Error> {
    let value = match list.iter().find(|&&value| !(low < value && value < high)) {
        Some(value) => value.to_string(),
        None if list.is_empty() => "an empty list".into(),
        None => return Ok(()),
    };
    Err(strust::Error::OutOfRange { owner, field, value, allowed: format!("a list of numbers in ({low}, {high})") })
}
