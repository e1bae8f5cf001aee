//! Fairness: bounds on the difference between groups, known from mini-batches only, beside a tuned Lagrangian.
//!
//! ```text
//! TASKS → GroupedRows → minimum on all rows; InExpectation; a grid of Lagrangians → Section (checks/NAME.json) → report.html
//! ```

mod data;
mod solve;

use crate::prelude::*;
use data::{FairSource, GroupRule, GroupedRows};
use serde::{Deserialize, Serialize};
use solve::{EpochCourse, FairMinimum, Fit, Kind, OnAllRows, gaps};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};
use strust_lab::{
    Error,
    data::summary::Summary,
    format::csv_quoted,
    suite::{Suite, SuitePlan},
};

/// A model with a bound between groups.
#[derive(Debug, Clone, Copy, Serialize)]
struct FairTask {
    name: &'static str,
    title: &'static str,
    source: FairSource,
    groups: usize,
    kind: Kind,
    /// The largest difference.
    bound: f64,
}

const TASKS: [FairTask; 6] = [
    FairTask {
        name: "made",
        title: "Made data, the probabilities of two groups",
        source: FairSource::Made(&[0.4, 0.6]),
        groups: 2,
        kind: Kind::Parity,
        bound: 0.02,
    },
    FairTask {
        name: "made-opportunity",
        title: "Made data, equal opportunity of a rare group",
        source: FairSource::Made(&[0.1, 0.9]),
        groups: 2,
        kind: Kind::Opportunity,
        bound: 0.02,
    },
    FairTask {
        name: "made-three",
        title: "Made data, three groups",
        source: FairSource::Made(&[0.2, 0.3, 0.5]),
        groups: 3,
        kind: Kind::Parity,
        bound: 0.05,
    },
    FairTask {
        name: "german",
        title: "German credit, age up to 25 and above",
        source: FairSource::Files {
            train: "german.csv.xz",
            test: None,
            target: ("credit", "1"),
            groups: ("a13", &[GroupRule::UpTo(25.0), GroupRule::Rest]),
        },
        groups: 2,
        kind: Kind::Parity,
        bound: 0.02,
    },
    FairTask {
        name: "compas",
        title: "COMPAS, equal opportunity of two races",
        source: FairSource::Files {
            train: "compas.csv.xz",
            test: None,
            target: ("two_year_recid", "1"),
            groups: ("race", &[GroupRule::Is("African-American"), GroupRule::Is("Caucasian")]),
        },
        groups: 2,
        kind: Kind::Opportunity,
        bound: 0.02,
    },
    FairTask {
        name: "adult",
        title: "Adult, the probabilities of women and men",
        source: FairSource::Files {
            train: "adult-train.csv.xz",
            test: Some("adult-test.csv.xz"),
            target: ("income", ">50K"),
            groups: ("sex", &[GroupRule::Is("Female"), GroupRule::Is("Male")]),
        },
        groups: 2,
        kind: Kind::Parity,
        bound: 0.02,
    },
];

/// The rates of Adam and of the multipliers that the Lagrangian tries.
const RATES: [[f64; 4]; 2] = [[1e-3, 3e-3, 1e-2, 3e-2], [1e-2, 3e-2, 1e-1, 3e-1]];
/// From this epoch on, the rows should be nearly satisfied.
const SETTLED: usize = 5;

/// How the tasks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FairnessSettings {
    /// Runs of each method.
    pub seeds: u64,
    /// Passes over the rows.
    pub epochs: u64,
    /// GroupedRows of a mini-batch.
    pub batch: usize,
    /// The most steps on all rows at the end.
    pub end: u64,
}

impl Default for FairnessSettings {
    fn default() -> Self {
        Self { seeds: 5, epochs: 20, batch: 128, end: 500 }
    }
}

/// The study of bounds between groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FairnessSuite {
    /// How the tasks run.
    pub settings: FairnessSettings,
    /// The folder of the files.
    pub data: Option<PathBuf>,
}

impl Suite for FairnessSuite {
    const FILE: &'static str = "fairness.json";
    const CHECK: &'static str = "task";

    fn names(&self) -> Vec<&str> {
        std::iter::once("fairness").chain(self.checks()).collect()
    }
    fn checks(&self) -> Vec<&str> {
        TASKS.iter().map(|task| task.name).collect()
    }
    fn check_settings(&self, check: usize) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&(self.settings, &self.data, TASKS[check]))
    }
    fn run_check(&self, check: usize, tick: &mut Tick) -> Result<CheckResults, Error> {
        let task = &TASKS[check];
        let section = match task.source.rows(self.data.as_deref())? {
            Some((train, test)) => task.run(&train, &test, self.settings, tick)?,
            None => task.section("Skipped: a file of this task is not in the folder of --data."),
        };
        Ok(CheckResults { section, problems: Vec::new() })
    }
    fn summary(plan: &SuitePlan<Self>, _: &Path, checks: Vec<CheckResults>) -> Result<Summary, Error> {
        let FairnessSettings { seeds, epochs, batch, .. } = plan.suite.settings;
        let description = format!(
            "Logistic models under bounds between groups, from mini-batches of {batch} rows for {epochs} epochs, {seeds} \
             seeds. InExpectation has no setting. The Lagrangian is Adam with a cosine, and a rate for the multipliers; \
             both rates are the best of {}. f* is the minimum on all rows under the bounds.",
            RATES[0].len() * RATES[1].len()
        );
        let sections: Vec<Section> = checks.into_iter().map(|check| check.section).collect();
        let checks = sections.iter().flat_map(|section| section.checks.clone()).collect();
        Ok(Summary { checks, sections, ..plan.summary("Bounds between groups, from mini-batches", &description) })
    }
    fn csv(summary: &Summary) -> String {
        let mut text = String::from("task,claim,measured,bound,holds\n");
        for Section { name: section, checks, .. } in &summary.sections {
            for Check { name, measured, bound, holds, .. } in checks {
                let _ = writeln!(text, "{section},{},{measured},{bound},{holds}", csv_quoted(name));
            }
        }
        text
    }
}

/// What all runs of a task showed.
struct Results {
    minimum: FairMinimum,
    /// f without the bounds, and the accuracy on held-out rows.
    free: (f64, f64),
    /// Of each seed: the course and the end.
    ours: Vec<(EpochCourse, OnAllRows, bool)>,
    /// The best rates, their courses, and how many settings were tried.
    tuned: ([f64; 2], Vec<EpochCourse>),
}

impl FairTask {
    fn section(&self, description: &str) -> Section {
        Section::new(self.name, self.title, description)
    }

    fn run(
        &self,
        train: &GroupedRows,
        test: &GroupedRows,
        settings: FairnessSettings,
        tick: &mut Tick,
    ) -> Result<Section, Error> {
        let fit = |rows| Fit { rows, gaps: gaps(rows, self.kind, self.groups, self.bound), settings };
        let here = fit(train);
        tick.expect(2 + 2 * settings.seeds + (RATES[0].len() * RATES[1].len()) as u64);
        let Some(minimum) = here.minimum(true)? else {
            return Ok(self.section("No minimum was found under these bounds."));
        };
        tick.done()?;
        let Some(free) = here.minimum(false)? else {
            return Ok(self.section("No minimum was found."));
        };
        tick.done()?;
        let mut ours = Vec::new();
        for seed in 0..settings.seeds {
            ours.push(here.in_expectation(seed)?);
            tick.done()?;
        }
        // Of all settings, the best on a seed that is not used again.
        let mut best: Option<([f64; 2], f64)> = None;
        for rate in RATES[0] {
            for dual_rate in RATES[1] {
                let course = here.lagrangian(settings.seeds, rate, dual_rate)?;
                let excess = minimum.excess(last(&course));
                if best.is_none_or(|(_, least)| excess < least) {
                    best = Some(([rate, dual_rate], excess));
                }
                tick.done()?;
            }
        }
        let (rates, _) = best.ok_or_else(|| Error::Misfit("there are no rates".into()))?;
        let mut tuned = Vec::new();
        for seed in 0..settings.seeds {
            tuned.push(here.lagrangian(seed, rates[0], rates[1])?);
            tick.done()?;
        }
        let results = Results { free: (free.value, test.accuracy(&free.point)), minimum, ours, tuned: (rates, tuned) };
        let held_out = fit(test);
        self.show(&results, train.len(), &held_out)
    }

    fn show(&self, results: &Results, train: usize, held_out: &Fit<'_>) -> Result<Section, Error> {
        let Results { minimum, free, ours, tuned } = results;
        let bound = self.bound;
        let runs: Vec<&EpochCourse> = ours.iter().map(|(course, ..)| course).collect();
        let others: Vec<&EpochCourse> = tuned.1.iter().collect();
        let ends: Vec<OnAllRows> = ours.iter().map(|(_, end, _)| *end).collect();
        let row = |name: String, settings: usize, courses: &[&EpochCourse]| {
            let excess = |course: &&EpochCourse| minimum.excess(last(course));
            vec![
                name,
                settings.to_string(),
                brief(median(courses.iter().map(|course| last(course).value - minimum.value))),
                brief(median(courses.iter().map(|course| last(course).violation / bound))),
                brief(median(courses.iter().map(|course| settled(course) / bound))),
                brief(median(courses.iter().map(excess))),
            ]
        };
        let [rate, dual_rate] = tuned.0;
        let settings = RATES[0].len() * RATES[1].len();
        let table = Table::new(
            "Medians over seeds. Violations are relative to the bound; the excess is f − f* + 2·Σ|λ|·violation.",
            "method | settings tried | f − f* | violation at the end | largest from epoch 5 on | excess",
            vec![
                row("in expectation".into(), 1, &runs),
                row(format!("Lagrangian, rates {} and {}", brief(rate), brief(dual_rate)), settings, &others),
            ],
        );
        let points = [("the minimum", &minimum.point), ("seed 0, after its end", &ours[0].0.point)];
        let (gaps, sigmas) = held_out_gaps(held_out, points)?;
        let worst = |of: &dyn Fn(&OnAllRows) -> f64| ends.iter().map(of).fold(0.0, f64::max);
        let excess = |courses: &[&EpochCourse]| median(courses.iter().map(|course| minimum.excess(last(course))));
        let claims = [
            ("the violation on all rows after the end", worst(&|end| end.violation), 1e-6, "the largest over seeds"),
            ("|f − f*| after the end", worst(&|end| (end.value - minimum.value).abs()), 1e-6, "the largest over seeds"),
            (
                "|f − f*| of the answer before the end",
                median(runs.iter().map(|course| (last(course).value - minimum.value).abs())),
                1e-3,
                "median over seeds",
            ),
            (
                "violation from epoch 5 on, relative to the bound",
                median(runs.iter().map(|course| settled(course) / bound)),
                0.1,
                "median over seeds of the largest one",
            ),
            (
                "excess, relative to that of the tuned Lagrangian",
                excess(&runs) / excess(&others),
                1.05,
                "medians over seeds",
            ),
            (
                "standard errors beyond the bound on held-out rows",
                sigmas,
                2.0,
                "the largest of the minimum and of seed 0",
            ),
        ];
        let check =
            |(claim, measured, most, why)| Check::at_most(format!("{}: {claim}", self.name), measured, most, why);
        let checks = claims.into_iter().map(check).collect();
        let converged = ours.iter().filter(|(.., converged)| *converged).count();
        Ok(Section {
            findings: vec![format!(
                "The bound {} costs {} of the loss ({} without it). Without it the accuracy on held-out rows is {} %. {} of {} \
                 runs end with the verdict converged.",
                brief(bound),
                brief(minimum.value - free.0),
                fixed(free.0, 4),
                fixed(100.0 * free.1, 1),
                converged,
                ours.len()
            )],
            tables: vec![table, gaps],
            figures: vec![self.figure(&runs, &others)],
            checks,
            ..self.section(&format!(
                "{train} training rows, {} held-out rows, {} groups.",
                held_out.rows.len(),
                self.groups
            ))
        })
    }

    fn figure(&self, ours: &[&EpochCourse], tuned: &[&EpochCourse]) -> Shown {
        let line = |name: &str, color, courses: &[&EpochCourse]| {
            let count = courses.iter().map(|course| course.epochs.len()).min().unwrap_or(0);
            let at = |epoch: usize| {
                let violations = courses.iter().map(|course| course.epochs[epoch].violation / self.bound);
                ((epoch + 1) as f64, median(violations))
            };
            Series::line(name, color, (0..count).map(at))
        };
        Shown::new(
            format!("fairness-{}", self.name),
            "The largest violation on all training rows, relative to the bound: medians over seeds.",
            Figure::new(
                self.title,
                ("epoch", false),
                ("violation / bound", false),
                vec![line("in expectation", 0, ours), line("tuned Lagrangian", 1, tuned)],
            ),
        )
    }
}

/// The gaps at points on held-out rows, and by how many standard errors the largest is beyond its bound.
fn held_out_gaps(held_out: &Fit<'_>, points: [(&str, &Vec<f64>); 2]) -> Result<(Table, f64), Error> {
    let (mut rows, mut sigmas) = (Vec::new(), 0.0_f64);
    for (name, point) in points {
        for measured in held_out.measured(point)? {
            let over = measured.violation();
            sigmas = sigmas.max(over / measured.standard_error);
            rows.push(vec![
                name.into(),
                fixed(measured.value, 4),
                fixed(measured.standard_error, 4),
                fixed(over, 4),
                format!("{} %", fixed(100.0 * held_out.rows.accuracy(point), 1)),
            ]);
        }
    }
    let columns = "point | gap | standard error | beyond the bound | accuracy";
    Ok((Table::new("On held-out rows", columns, rows), sigmas))
}

impl FairMinimum {
    /// f − f* + 2·Σ|λ|·violation: an exact penalty, which is 0 only at the minimum.
    fn excess(&self, measured: OnAllRows) -> f64 {
        measured.value - self.value + 2.0 * self.multipliers * measured.violation
    }
}

fn last(course: &EpochCourse) -> OnAllRows {
    course.epochs.last().copied().unwrap_or(OnAllRows { value: f64::NAN, violation: f64::NAN })
}

/// The largest violation from epoch 5 on.
fn settled(course: &EpochCourse) -> f64 {
    course.epochs.iter().skip(SETTLED - 1).map(|measured| measured.violation).fold(0.0, f64::max)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    upper_median(&values.collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: FairnessSettings = FairnessSettings { seeds: 1, epochs: 2, batch: 128, end: 100 };

    /// The fit of a task on made data, and its held-out rows.
    fn made(task: &FairTask) -> (GroupedRows, GroupedRows) {
        task.source.rows(None).unwrap().unwrap()
    }

    #[test]
    fn every_run_ends_at_the_minimum_under_its_bounds() {
        for task in TASKS.iter().filter(|task| matches!(task.source, FairSource::Made(_))) {
            let (train, _) = made(task);
            let fit = Fit { gaps: gaps(&train, task.kind, task.groups, task.bound), rows: &train, settings: SHORT };
            let (minimum, free) = (fit.minimum(true).unwrap().unwrap(), fit.minimum(false).unwrap().unwrap());
            assert!(minimum.value > free.value + 1e-4, "{}: the bounds have a cost", task.name);
            let (_, end, converged) = fit.in_expectation(3).unwrap();
            assert!(converged && end.violation < 1e-7, "{}: {end:?}", task.name);
            assert!((end.value - minimum.value).abs() < 1e-7, "{}: {end:?} {}", task.name, minimum.value);
            assert!(minimum.excess(end).abs() < 1e-6);
        }
    }

    #[test]
    fn a_lagrangian_without_a_rate_for_its_multipliers_minimizes_f_alone() {
        let (train, _) = made(&TASKS[0]);
        let settings = FairnessSettings { epochs: 20, ..SHORT };
        let fit = Fit { gaps: gaps(&train, Kind::Parity, 2, 0.02), rows: &train, settings };
        let free = fit.minimum(false).unwrap().unwrap();
        let course = fit.lagrangian(0, 3e-2, 0.0).unwrap();
        assert!(last(&course).value < free.value + 1e-3 && last(&course).violation > 0.1, "{:?}", course.epochs);
        let bounded = fit.lagrangian(0, 3e-2, 0.1).unwrap();
        assert!(last(&bounded).violation < 0.5 * last(&course).violation, "{:?}", bounded.epochs);
    }

    #[test]
    fn a_task_without_its_files_is_skipped() {
        let german = TASKS.iter().find(|task| task.name == "german").unwrap();
        assert!(german.source.rows(None).unwrap().is_none());
        assert!(german.source.rows(Some(Path::new("/nowhere"))).unwrap().is_none());
    }
}
