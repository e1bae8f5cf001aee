//! The paper's analysis as experiments: one file per claim, each with figures, measured values, bounds and verdicts.
//!
//! ```text
//! experiments/theory-*.toml → Theory → Section (checks/NAME.json) → Summary → report.html
//! ```
//!
//! A section depends only on its file and its seeds.

mod failures;
mod penalty;
mod prelude;
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
        section::{Check, Section},
        summary::Summary,
    },
    experiment::ExperimentText,
    format::{NAME_RULE, control_character, csv_quoted, is_name},
    suite::{CheckResults, Suite, SuitePlan, Tick},
};

/// Declares the claims: their words in experiment files, their settings, and their modules.
macro_rules! claims {
    ($($(#[$doc:meta])* $word:literal => $claim:ident($module:ident::$settings:ident);)+) => {
        /// The claim to check, with all settings.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "theory", content = "settings", rename_all = "kebab-case")]
        pub enum Claim {
            $($(#[$doc])* $claim($module::$settings),)+
        }

        impl Theory {
            /// Parses the text of an experiment file; `file` is for messages.
            pub fn parse(file: &Path, text: &str) -> Result<Self, Error> {
                let table: toml::Table = toml::from_str(text).map_err(|e| wrong(file, text, &e))?;
                let word = table.get("theory").and_then(toml::Value::as_str).unwrap_or_default();
                match word {
                    $($word => Self::with(file, text, Claim::$claim),)+
                    _ => {
                        let why = format!("`theory` is {word:?}, but must be one of {}", [$($word),+].join(", "));
                        Err(Error::Experiment { file: file.into(), line: None, why })
                    }
                }
            }

            fn run(&self, tick: &mut Tick) -> Result<Section, Error> {
                let found = match &self.claim {
                    $(Claim::$claim(settings) => $module::run(settings, self.seeds, tick),)+
                }?;
                let (name, title, description) = (self.name.clone(), self.title.clone(), self.description.clone());
                Ok(Section { name, title, description, ..found })
            }
        }
    };
}

claims! {
    /// The strong growth constant along a run.
    "strong-growth" => StrongGrowth(strong_growth::StrongGrowthConfig);
    /// The step-length lemma.
    "step-length" => StepLength(step_length::StepLengthConfig);
    /// The bound on rejections.
    "rejections" => Rejections(rejections::RejectionsConfig);
    /// The lemmas with the curvature of mini-batches.
    "second-order" => SecondOrder(second_order::SecondOrderConfig);
    /// Theorem 1.
    "rate" => Rate(rate::RateConfig);
    /// Theorem 2 and its corollary.
    "penalty" => Penalty(penalty::PenaltyConfig);
    /// Failures without the assumptions.
    "failures" => Failures(failures::FailuresConfig);
}

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

/// One result for each seed.
fn each<R>(seeds: u64, tick: &mut Tick, mut run: impl FnMut(u64) -> Result<R, Error>) -> Result<Vec<R>, Error> {
    let one = |seed| {
        let ran = run(seed)?;
        tick.done()?;
        Ok(ran)
    };
    (0..seeds).map(one).collect()
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
