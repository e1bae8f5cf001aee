//! Tasks on which methods compete: a method without tuning beside baselines that are tuned for each task.
//!
//! Each task is an ordinary experiment with one problem. Its records, folders and checkpoints are those of experiments.

mod parse;

pub use parse::Resources;

use serde::{Deserialize, Serialize};
use std::{cell::RefCell, collections::BTreeMap, path::Path};
use strust_lab::{
    Error,
    analyze::{Outcome, is_finished, outcome, search},
    data::{
        benchmark::{Half, Judge, Role, SkippedTask},
        experiment::{Experiment, MethodSpec, Tune},
        parameters::number,
        plan::{Job, Plan},
        summary::Tuning,
    },
    format::plain,
    registry::methods,
    suite::{Suite, SuitePlan},
};

/// A benchmark, with every list expanded and every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkSpec {
    /// Its name, also the name of the results folder.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// A paragraph for people.
    pub description: String,
    /// Seeds of the grid searches; they differ from those of the runs.
    pub tuning_seeds: u64,
    /// The most rates by which a grid grows while its best one is at an edge.
    #[serde(default)]
    pub extensions: u64,
    /// The tasks that run.
    pub tasks: Vec<Task>,
    /// The tasks that do not run.
    pub skipped: Vec<SkippedTask>,
}

/// A problem with its budget, and the methods that compete on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// One line for people.
    pub title: String,
    /// Its half of the tasks.
    pub half: Half,
    /// What the methods are judged by, also in grid searches.
    #[serde(default)]
    pub judge: Judge,
    /// Its name, its problem, epochs, batch and seeds. The methods are in `entrants`.
    pub experiment: Experiment,
    /// The methods.
    pub entrants: Vec<Entrant>,
    /// The method under test with one constant changed.
    pub variations: Vec<Variation>,
}

/// A method of a benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entrant {
    /// Its name in tables and figures.
    pub label: String,
    /// How it takes part.
    pub role: Role,
    /// The settings with which its grid search begins, in increasing order of the rate; one if it is not tuned.
    pub settings: Vec<MethodSpec>,
}

/// The method under test with one constant changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variation {
    /// The constant.
    pub parameter: String,
    /// Its default.
    pub default: f64,
    /// Its value.
    pub value: f64,
    /// The method with this value.
    pub method: MethodSpec,
}

/// The results of a grid search and the chosen setting, if one did not fail; `None` for a method that is not tuned.
pub(crate) type Choice = Option<(Tuning, Option<MethodSpec>)>;

impl BenchmarkSpec {
    /// Leaves one seed, one epoch and every third rate.
    pub fn shorten(&mut self) {
        self.extensions = 0;
        for task in &mut self.tasks {
            (task.experiment.seeds, task.experiment.epochs) = (vec![0], 1);
            for entrant in &mut task.entrants {
                entrant.settings = entrant.settings.iter().step_by(3).cloned().collect();
            }
        }
    }

    /// Whether every task has one problem and every method a setting, as in plans that the program writes.
    pub(crate) fn is_plausible(&self) -> bool {
        let one =
            |task: &Task| task.experiment.problems.len() == 1 && task.entrants.iter().all(|e| !e.settings.is_empty());
        self.tasks.iter().all(one)
    }
}

impl Task {
    fn tuned(&self) -> impl Iterator<Item = &Entrant> {
        self.entrants.iter().filter(|entrant| entrant.role == Role::Tuned)
    }
}

impl Entrant {
    /// The setting of the runs; `None` if every setting of the grid failed.
    pub(crate) fn setting<'a>(&'a self, choice: &'a Choice) -> Option<&'a MethodSpec> {
        match choice {
            Some((_, chosen)) => chosen.as_ref(),
            None => self.settings.first(),
        }
    }
}

/// How methods compete.
pub(crate) struct Rules {
    /// The metric that grid searches minimize or maximize.
    pub metric: fn(&Task) -> String,
    /// Adds that metric to the outcome of a job.
    pub scored: fn(&Task, Outcome, &str) -> Outcome,
    /// The epochs of the method under test.
    pub tested_epochs: fn(u64) -> u64,
}

/// The tasks of a suite, with the rules of their competition.
pub(crate) struct Contest<'a, S> {
    pub plan: &'a SuitePlan<S>,
    pub benchmark: &'a BenchmarkSpec,
    pub rules: Rules,
}

/// The grid search of a method on a task.
struct Search {
    plan: Plan,
    /// The results, if all jobs are finished.
    choice: Choice,
}

impl<S: Suite> Contest<'_, S> {
    /// The grid search of a tuned method. In a folder, the grid grows by a rate beyond its edge while the best rate is
    /// there, as far as jobs are finished.
    fn search(&self, task: &Task, entrant: &Entrant, folder: Option<&Path>) -> Result<Search, Error> {
        let metric = (self.rules.metric)(task);
        let tune = Tune { metric, epochs: task.experiment.epochs, seeds: self.benchmark.tuning_seeds };
        let known = RefCell::new(BTreeMap::new());
        let mut settings = entrant.settings.clone();
        loop {
            let experiment = task.experiment.clone();
            let plan = self.plan.plan(Experiment { methods: settings.clone(), tune: Some(tune.clone()), ..experiment });
            let Some(folder) = folder else { return Ok(Search { plan, choice: None }) };
            let read = |job: &Job| {
                if let Some(outcome) = known.borrow().get(&job.name) {
                    return Ok(Outcome::clone(outcome));
                }
                let outcome = (self.rules.scored)(task, outcome(folder, &plan, job)?, &tune.metric);
                known.borrow_mut().insert(job.name.clone(), outcome.clone());
                Ok(outcome)
            };
            for job in &plan.jobs {
                if !known.borrow().contains_key(&job.name) && !is_finished(folder, &plan, job)? {
                    return Ok(Search { plan, choice: None });
                }
            }
            // There is one problem and one method.
            let choice = search(&plan, &tune, &read)?.into_iter().next();
            let best = choice.as_ref().and_then(|(_, best)| best.as_ref());
            let may_grow = settings.len() < entrant.settings.len() + self.benchmark.extensions as usize;
            match may_grow.then(|| beyond_edge(entrant, &settings, best)).flatten() {
                Some((place, setting)) => settings.insert(place, setting),
                None => return Ok(Search { plan, choice }),
            }
        }
    }

    /// The choices of the grid searches of a task; `None` for a method that is not tuned.
    pub fn choices(&self, folder: &Path, task: &Task) -> Result<Vec<Choice>, Error> {
        let choose = |entrant: &Entrant| {
            if entrant.role != Role::Tuned {
                return Ok(None);
            }
            let Search { plan, choice } = self.search(task, entrant, Some(folder))?;
            if choice.is_none() {
                // Reading the job that is not finished says so.
                plan.jobs.iter().try_for_each(|job| outcome(folder, &plan, job).map(drop))?;
            }
            Ok(choice)
        };
        task.entrants.iter().map(choose).collect()
    }

    /// The runs of a task: every method with its only or its chosen setting, and the variations. Without choices, the
    /// tuned methods do not run.
    pub fn runs(&self, task: &Task, choices: &[Choice]) -> Plan {
        let Task { experiment, entrants, variations, .. } = task;
        let mut plan = self.plan.plan(experiment.clone());
        for &seed in &experiment.seeds {
            let mut add =
                |method, epochs| plan.jobs.push(Job::new(false, &experiment.problems[0], method, seed, epochs));
            for (i, entrant) in entrants.iter().enumerate() {
                let epochs = match entrant.role {
                    Role::Tested => (self.rules.tested_epochs)(experiment.epochs),
                    Role::Tuned | Role::Untuned => experiment.epochs,
                };
                let method = match (entrant.role, choices.get(i)) {
                    (Role::Tuned, None) => None,
                    (_, choice) => entrant.setting(choice.unwrap_or(&None)),
                };
                if let Some(method) = method {
                    add(method, epochs);
                }
            }
            for variation in variations {
                add(&variation.method, experiment.epochs);
            }
        }
        plan
    }

    /// The plans of all grid searches, as far as the jobs in a folder decide how they grow.
    pub fn all_searches(&self, folder: Option<&Path>) -> Result<Vec<Plan>, Error> {
        let of = |task| Task::tuned(task).map(move |entrant| Ok(self.search(task, entrant, folder)?.plan));
        self.benchmark.tasks.iter().flat_map(of).collect()
    }

    /// The plans of all runs, one for each task. Without a folder there are no choices.
    pub fn all_runs(&self, folder: Option<&Path>) -> Result<Vec<Plan>, Error> {
        let choices = |task: &Task| folder.map_or_else(|| Ok(Vec::new()), |folder| self.choices(folder, task));
        self.benchmark.tasks.iter().map(|task| Ok(self.runs(task, &choices(task)?))).collect()
    }
}

/// The setting beyond the edge of a grid at which its best one is, and its place. If all settings failed, it has a smaller
/// rate. `None` if the best rate is inside, or if the next one is out of its range.
fn beyond_edge(entrant: &Entrant, settings: &[MethodSpec], best: Option<&MethodSpec>) -> Option<(usize, MethodSpec)> {
    let [key] = &settings.first()?.varied[..] else { return None };
    let rates: Vec<f64> =
        settings.iter().map(|setting| number(&setting.hyperparameters[key])).collect::<Option<_>>()?;
    let place = best.map_or(Some(0), |best| settings.iter().position(|setting| setting.label == best.label))?;
    let (rate, place) = match place {
        0 => (next_rate(rates.iter().copied())?, 0),
        i if i + 1 == rates.len() => (next_rate(rates.iter().rev().copied())?, rates.len()),
        _ => return None,
    };
    let mut setting = settings[0].clone();
    setting.hyperparameters.insert(key.clone(), rate.into());
    let entry = methods::all().into_iter().find(|entry| entry.name == setting.name)?;
    setting.hyperparameters = entry.complete(&setting.hyperparameters).ok()?;
    setting.label = format!("{} {key}={}", entrant.label, plain(&setting.hyperparameters[key]));
    Some((place, setting))
}

/// The rate before the first one. Rates repeat their spacing after two: …, 1, 3, 10, 30, … or one in any ratio.
fn next_rate(mut rates: impl Iterator<Item = f64>) -> Option<f64> {
    let (first, second) = (rates.next()?, rates.next()?);
    let next = rates.next().map_or(first / second * first, |third| second / third * first);
    // Three digits, so that names stay short.
    let next = format!("{next:.2e}").parse().ok()?;
    (next > 0.0 && next < f64::INFINITY).then_some(next)
}

/// The functions of [`Suite`] that have to do with a benchmark: the field of this name, with this contest.
macro_rules! competing_suite {
    ($benchmark:ident, $contest:path) => {
        fn names(&self) -> Vec<&str> {
            vec![&self.$benchmark.name]
        }
        fn is_plausible(&self) -> bool {
            self.$benchmark.is_plausible()
        }
        fn on_gpu(&self) -> bool {
            self.$benchmark.on_gpu()
        }
        fn searches(plan: &SuitePlan<Self>, folder: Option<&Path>) -> Result<Vec<Plan>, Error> {
            $contest(plan).all_searches(folder)
        }
        fn runs(plan: &SuitePlan<Self>, folder: Option<&Path>) -> Result<Vec<Plan>, Error> {
            $contest(plan).all_runs(folder)
        }
    };
}
pub(crate) use competing_suite;

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(rates: &[f64]) -> Entrant {
        let entry = methods::all().into_iter().find(|entry| entry.name == "sgd").unwrap();
        let setting = |rate: &f64| MethodSpec {
            name: "sgd".into(),
            label: format!("tuned learning_rate={rate}"),
            hyperparameters: entry.complete(&[("learning_rate".into(), (*rate).into())].into()).unwrap(),
            varied: vec!["learning_rate".into()],
        };
        Entrant { label: "tuned".into(), role: Role::Tuned, settings: rates.iter().map(setting).collect() }
    }

    #[test]
    fn a_grid_grows_beyond_the_edge_where_its_best_rate_is() {
        let entrant = grid(&[0.01, 0.03, 0.1]);
        let next = |best: Option<usize>| {
            let best = best.map(|i| &entrant.settings[i]);
            beyond_edge(&entrant, &entrant.settings, best).map(|(place, setting)| (place, setting.label))
        };
        assert_eq!(next(Some(0)), Some((0, "tuned learning_rate=0.003".into())));
        assert_eq!(next(Some(1)), None);
        assert_eq!(next(Some(2)), Some((3, "tuned learning_rate=0.3".into())));
        // All rates failed.
        assert_eq!(next(None), Some((0, "tuned learning_rate=0.003".into())));
        let one = grid(&[0.1]);
        assert!(beyond_edge(&one, &one.settings, one.settings.first()).is_none());
    }

    #[test]
    fn rates_repeat_their_spacing() {
        let next = |rates: &[f64]| next_rate(rates.iter().copied());
        assert_eq!(next(&[10.0, 3.0, 1.0]), Some(30.0));
        assert_eq!(next(&[30.0, 10.0, 3.0]), Some(100.0));
        assert_eq!(next(&[0.1, 0.3, 1.0, 3.0]), Some(0.03));
        assert_eq!(next(&[2.0, 1.0]), Some(4.0));
        assert_eq!((next(&[1.0]), next(&[1e-300, 1e-100, 1.0])), (None, None));
    }
}
