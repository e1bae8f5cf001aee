//! Fairness: bounds on the difference between groups, known from mini-batches only, beside a tuned Lagrangian.
//!
//! ```text
//! TASKS → GroupedRows → minimum on all rows; InExpectation; a grid of Lagrangians → Section (checks/NAME.json) → report.html
//! ```

mod solve;

use crate::prelude::*;
use serde::{Deserialize, Serialize};
use solve::{EpochCourse, FairEnd, Fit, OnAllRows};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};
use strust::objective::Objective;
use strust_lab::{
    Error,
    data::summary::Summary,
    format::csv_quoted,
    suite::{Suite, SuitePlan},
};
use strust_problems::grouped::{
    Compared::{self, Loss, Opportunity, Ratio, Score},
    GroupRule, Grouped, GroupedFile, GroupedRows,
};

/// A model with a bound between groups.
#[derive(Debug, Clone, Copy)]
struct FairTask {
    name: &'static str,
    title: &'static str,
    source: FairSource,
    compared: Compared,
    /// The largest difference, or the smallest ratio.
    bound: f64,
    /// Hidden units; 0 for a logistic model.
    hidden: usize,
}

/// Where the rows of a task come from.
#[derive(Debug, Clone, Copy)]
enum FairSource {
    /// Made. Each entry is a group: its share of the rows, and the noise of its labels.
    Made(&'static [(f64, f64)]),
    /// A file of the folder of data sets, and a second one with held-out rows; without it, every third row is held out.
    Files {
        train: &'static str,
        test: Option<&'static str>,
        /// The target, and the word of its positive class.
        target: (&'static str, &'static str),
        /// The column of the groups, and the groups.
        groups: (&'static str, &'static str),
    },
}

/// Rows of made data.
const MADE_ROWS: usize = 6000;

impl FairSource {
    /// The training rows and the held-out rows. `None` if a file is missing.
    fn rows(&self, folder: Option<&Path>) -> Result<Option<(GroupedRows, GroupedRows)>, Error> {
        match *self {
            Self::Made(groups) => {
                Ok(Some((GroupedRows::made(MADE_ROWS, groups, 0), GroupedRows::made(MADE_ROWS, groups, 1))))
            }
            Self::Files { train, test, target, groups } => {
                let Some(folder) = folder else { return Ok(None) };
                let (train, test) = (folder.join(train), test.map(|test| folder.join(test)));
                if !train.is_file() || test.as_ref().is_some_and(|test| !test.is_file()) {
                    return Ok(None);
                }
                let rules = GroupRule::list(groups.1);
                let file = GroupedFile { target: target.0, positive: target.1, column: groups.0, groups: &rules };
                Ok(Some(GroupedRows::read(&file, &train, test.as_deref())?))
            }
        }
    }
}

/// Two groups of made data.
const TWO: FairSource = FairSource::Made(&[(0.4, 1.0), (0.6, 1.0)]);
const RARE: FairSource = FairSource::Made(&[(0.1, 1.0), (0.9, 1.0)]);
const THREE: FairSource = FairSource::Made(&[(0.2, 1.0), (0.3, 1.0), (0.5, 1.0)]);
/// The labels of one group are noisier.
const NOISY: FairSource = FairSource::Made(&[(0.4, 0.5), (0.6, 2.0)]);
const GERMAN: FairSource =
    FairSource::Files { train: "german.csv.xz", test: None, target: ("credit", "1"), groups: ("a13", "<=25, rest") };
const COMPAS: FairSource = FairSource::Files {
    train: "compas.csv.xz",
    test: None,
    target: ("two_year_recid", "1"),
    groups: ("race", "African-American, Caucasian"),
};
const ADULT: FairSource = FairSource::Files {
    train: "adult-train.csv.xz",
    test: Some("adult-test.csv.xz"),
    target: ("income", ">50K"),
    groups: ("sex", "Female, Male"),
};

const TASKS: [FairTask; 11] = [
    task("made", "Made data, the probabilities of two groups", TWO, Score, 0.02),
    task("made-opportunity", "Made data, equal opportunity of a rare group", RARE, Opportunity, 0.02),
    task("made-three", "Made data, three groups", THREE, Score, 0.05),
    task("made-loss", "Made data, the probabilities of a wrong class", NOISY, Loss, 0.05),
    task("made-ratio", "Made data, the four-fifths rule: a ratio of mean probabilities", TWO, Ratio, 0.8),
    task("german", "German credit, age up to 25 and above", GERMAN, Score, 0.02),
    task("compas", "COMPAS, equal opportunity of two races", COMPAS, Opportunity, 0.02),
    task("adult", "Adult, the probabilities of women and men", ADULT, Score, 0.02),
    network("made-network", "Made data, a network, the probabilities of two groups", TWO, Score),
    network("compas-network", "COMPAS, a network, equal opportunity of two races", COMPAS, Opportunity),
    network("adult-network", "Adult, a network, the probabilities of women and men", ADULT, Score),
];

/// A task with a logistic model.
const fn task(name: &'static str, title: &'static str, source: FairSource, compared: Compared, bound: f64) -> FairTask {
    FairTask { name, title, source, compared, bound, hidden: 0 }
}

/// A task with a network of 16 hidden units.
const fn network(name: &'static str, title: &'static str, source: FairSource, compared: Compared) -> FairTask {
    FairTask { hidden: 16, ..task(name, title, source, compared, 0.02) }
}

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
    /// Rows of a mini-batch.
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
        serde_json::to_vec(&(self.settings, &self.data, format!("{:?}", TASKS[check])))
    }
    fn run_check(&self, check: usize, tick: &mut Tick) -> Result<CheckResults, Error> {
        let task = &TASKS[check];
        let section = match task.source.rows(self.data.as_deref())? {
            Some((train, test)) => task.run(train, test, self.settings, tick)?,
            None => task.section("Skipped: a file of this task is not in the folder of --data."),
        };
        Ok(CheckResults { section, problems: Vec::new() })
    }
    fn summary(plan: &SuitePlan<Self>, _: &Path, checks: Vec<CheckResults>) -> Result<Summary, Error> {
        let FairnessSettings { seeds, epochs, batch, .. } = plan.suite.settings;
        let description = format!(
            "Logistic models and networks under bounds between groups, from mini-batches of {batch} rows for {epochs} \
             epochs, {seeds} seeds. InExpectation has no setting. The Lagrangian is Adam with a cosine, and a rate for the \
             multipliers; both rates are the best of {}. f* is the minimum on all rows under the bounds, or the best end of \
             a network.",
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
    /// The minimum under the bounds; of a network the best end of a run.
    best: FairEnd,
    /// f without the bounds, and the accuracy on held-out rows.
    free: (f64, f64),
    /// Of each seed: the course and the end.
    ours: Vec<(EpochCourse, FairEnd)>,
    /// The best rates and their courses.
    tuned: ([f64; 2], Vec<EpochCourse>),
}

impl FairTask {
    fn section(&self, description: &str) -> Section {
        Section::new(self.name, self.title, description)
    }
    /// What violations are compared with: the bound, or for a ratio the bound of the other tasks.
    fn unit(&self) -> f64 {
        if self.compared == Ratio { 0.02 } else { self.bound }
    }

    fn fit(&self, rows: GroupedRows, settings: FairnessSettings) -> Result<Fit, Error> {
        Ok(Fit { f: Grouped::new(rows, self.hidden, self.compared, self.bound)?, settings })
    }

    fn run(
        &self,
        train: GroupedRows,
        test: GroupedRows,
        settings: FairnessSettings,
        tick: &mut Tick,
    ) -> Result<Section, Error> {
        let here = self.fit(train, settings)?;
        let mut held_out = Fit { f: here.f.on(test), settings };
        tick.expect(2 + 2 * settings.seeds + (RATES[0].len() * RATES[1].len()) as u64);
        let minimum = if self.hidden == 0 { here.minimum()? } else { None };
        tick.done()?;
        let free = here.free()?;
        tick.done()?;
        let mut ours = Vec::new();
        for seed in 0..settings.seeds {
            ours.push(here.in_expectation(seed)?);
            tick.done()?;
        }
        let by_value = |a: &&FairEnd, b: &&FairEnd| a.measured.value.total_cmp(&b.measured.value);
        let best = match (minimum, ours.iter().map(|(_, end)| end).min_by(by_value)) {
            (Some(minimum), _) => minimum,
            (None, Some(end)) if self.hidden > 0 => end.clone(),
            _ => return Ok(self.section("No minimum was found under these bounds.")),
        };
        // Of all settings, the best on a seed that is not used again.
        let mut tried: Option<([f64; 2], f64)> = None;
        for rate in RATES[0] {
            for dual_rate in RATES[1] {
                let merit = best.merit(last(&here.lagrangian(settings.seeds, rate, dual_rate)?));
                if tried.is_none_or(|(_, least)| merit < least) {
                    tried = Some(([rate, dual_rate], merit));
                }
                tick.done()?;
            }
        }
        let (rates, _) = tried.ok_or_else(|| Error::Misfit("there are no rates".into()))?;
        let mut tuned = Vec::new();
        for seed in 0..settings.seeds {
            tuned.push(here.lagrangian(seed, rates[0], rates[1])?);
            tick.done()?;
        }
        let free = (free.0, held_out.f.accuracy(&free.1));
        self.show(&Results { best, free, ours, tuned: (rates, tuned) }, here.f.terms(), &mut held_out)
    }

    fn show(&self, results: &Results, train: usize, held_out: &mut Fit) -> Result<Section, Error> {
        let Results { best, free, ours, tuned } = results;
        let (unit, is_network) = (self.unit(), self.hidden > 0);
        let runs: Vec<&EpochCourse> = ours.iter().map(|(course, _)| course).collect();
        let others: Vec<&EpochCourse> = tuned.1.iter().collect();
        let lowest = best.measured.value;
        let merit = |courses: &[&EpochCourse]| median(courses.iter().map(|course| best.merit(last(course))));
        let row = |name: String, settings: usize, courses: &[&EpochCourse]| {
            vec![
                name,
                settings.to_string(),
                brief(median(courses.iter().map(|course| last(course).value - lowest))),
                brief(median(courses.iter().map(|course| last(course).violation / unit))),
                brief(median(courses.iter().map(|course| settled(course) / unit))),
                brief(merit(courses) - lowest),
            ]
        };
        let [rate, dual_rate] = tuned.0;
        let settings = RATES[0].len() * RATES[1].len();
        let table = Table::new(
            "Medians over seeds. Violations are relative to the bound; those of a ratio, to 0.02. The excess is \
             f − f* + 2·Σ|λ|·violation.",
            "method | settings tried | f − f* | violation at the end | largest from epoch 5 on | excess",
            vec![
                row("in expectation".into(), 1, &runs),
                row(format!("Lagrangian, rates {} and {}", brief(rate), brief(dual_rate)), settings, &others),
            ],
        );
        let which = if is_network { "the best end" } else { "the minimum" };
        let points = [(which, &best.point), ("seed 0, after its end", &ours[0].1.point)];
        let (gaps, sigmas) = held_out_gaps(held_out, points)?;
        let of_ends = |of: &dyn Fn(&FairEnd) -> f64| ours.iter().map(|(_, end)| of(end)).fold(0.0, f64::max);
        let after = of_ends(&|end| end.measured.violation);
        let mut claims = vec![("the violation on all rows after the end", after, 1e-6, "the largest over seeds")];
        if is_network {
            let ratio = merit(&runs) / merit(&others);
            claims.push(("f + 2·Σ|λ|·violation, relative to the tuned Lagrangian", ratio, 1.05, "medians over seeds"));
        } else {
            let end = of_ends(&|end| (end.measured.value - lowest).abs());
            let before = median(runs.iter().map(|course| (last(course).value - lowest).abs()));
            let ratio = (merit(&runs) - lowest) / (merit(&others) - lowest);
            claims.extend([
                ("|f − f*| after the end", end, 1e-6, "the largest over seeds"),
                ("|f − f*| of the answer before the end", before, 1e-3, "median over seeds"),
                ("excess, relative to that of the tuned Lagrangian", ratio, 1.05, "medians over seeds"),
            ]);
        }
        let from_fifth = median(runs.iter().map(|course| settled(course) / unit));
        claims.extend([
            (
                "violation from epoch 5 on, relative to the bound",
                from_fifth,
                0.1,
                "median over seeds of the largest one",
            ),
            ("standard errors beyond the bound on held-out rows", sigmas, 2.0, "the largest of the two points"),
        ]);
        let check =
            |(claim, measured, most, why)| Check::at_most(format!("{}: {claim}", self.name), measured, most, why);
        let checks = claims.into_iter().map(check).collect();
        let converged = ours.iter().filter(|(_, end)| end.converged).count();
        Ok(Section {
            findings: vec![format!(
                "The bound {} costs {} of the loss ({} without it). Without it the accuracy on held-out rows is {} %. {} of {} \
                 runs end with the verdict converged.",
                brief(self.bound),
                brief(lowest - free.0),
                fixed(free.0, 4),
                fixed(100.0 * free.1, 1),
                converged,
                ours.len()
            )],
            tables: vec![table, gaps],
            figures: vec![self.figure(&runs, &others)],
            checks,
            ..self.section(&format!("{train} training rows, {} held-out rows.", held_out.f.terms()))
        })
    }

    fn figure(&self, ours: &[&EpochCourse], tuned: &[&EpochCourse]) -> Shown {
        let line = |name: &str, color, courses: &[&EpochCourse]| {
            let count = courses.iter().map(|course| course.epochs.len()).min().unwrap_or(0);
            let at = |epoch: usize| {
                let violations = courses.iter().map(|course| course.epochs[epoch].violation / self.unit());
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
fn held_out_gaps(held_out: &mut Fit, points: [(&str, &Vec<f64>); 2]) -> Result<(Table, f64), Error> {
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
                format!("{} %", fixed(100.0 * held_out.f.accuracy(point), 1)),
            ]);
        }
    }
    let columns = "point | gap | standard error | beyond the bound | accuracy";
    Ok((Table::new("On held-out rows", columns, rows), sigmas))
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

    fn made(task: &FairTask, settings: FairnessSettings) -> Fit {
        task.fit(task.source.rows(None).unwrap().unwrap().0, settings).unwrap()
    }

    #[test]
    fn every_run_ends_at_the_minimum_under_its_bounds() {
        for task in TASKS.iter().filter(|task| matches!(task.source, FairSource::Made(_)) && task.hidden == 0) {
            let fit = made(task, SHORT);
            let minimum = fit.minimum().unwrap().unwrap();
            let (_, end) = fit.in_expectation(3).unwrap();
            assert!(minimum.multipliers > 1e-3, "{}: the bounds have a cost", task.name);
            assert!(end.converged && end.measured.violation < 1e-7, "{}: {:?}", task.name, end.measured);
            assert!((minimum.merit(end.measured) - minimum.measured.value).abs() < 1e-6, "{:?}", end.measured);
        }
    }

    #[test]
    fn a_network_ends_on_its_bounds() {
        let fit = made(TASKS.iter().find(|task| task.name == "made-network").unwrap(), SHORT);
        let (course, end) = fit.in_expectation(0).unwrap();
        assert!(end.measured.violation < 1e-6 && end.measured.value < last(&course).value + 1e-2, "{:?}", end.measured);
    }

    #[test]
    fn a_lagrangian_without_a_rate_for_its_multipliers_minimizes_f_alone() {
        let fit = made(&TASKS[0], FairnessSettings { epochs: 20, ..SHORT });
        let free = fit.free().unwrap().0;
        let course = fit.lagrangian(0, 3e-2, 0.0).unwrap();
        assert!(last(&course).value < free + 1e-3 && last(&course).violation > 0.1, "{:?}", course.epochs);
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
