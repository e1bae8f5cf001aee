//! Tasks on which methods compete: a method without tuning beside baselines that are tuned for each task.
//!
//! Each task is an ordinary experiment with one problem. Its records, folders and checkpoints are those of experiments.

mod parse;

pub use parse::Resources;

use serde::{Deserialize, Serialize};
use std::path::Path;
use strust_lab::{
    Error,
    analyze::{Outcome, outcome, search},
    data::{
        benchmark::{Half, Role, SkippedTask},
        experiment::{Experiment, MethodSpec, Tune},
        plan::{Job, Plan},
        summary::Tuning,
    },
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
    /// The settings of its grid search, in increasing order of the rate; one if it is not tuned.
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
    pub scored: fn(Outcome, &str) -> Outcome,
    /// The epochs of the method under test.
    pub tested_epochs: fn(u64) -> u64,
}

/// The tasks of a suite, with the rules of their competition.
pub(crate) struct Contest<'a, S> {
    pub plan: &'a SuitePlan<S>,
    pub benchmark: &'a BenchmarkSpec,
    pub rules: Rules,
}

impl<S: Suite> Contest<'_, S> {
    /// The grid search of every method of a task; `None` for a method that is not tuned.
    fn searches(&self, task: &Task) -> Vec<Option<(Plan, Tune)>> {
        let of = |entrant: &Entrant| {
            let metric = (self.rules.metric)(task);
            let tune = Tune { metric, epochs: task.experiment.epochs, seeds: self.benchmark.tuning_seeds };
            let (methods, experiment) = (entrant.settings.clone(), task.experiment.clone());
            (self.plan.plan(Experiment { methods, tune: Some(tune.clone()), ..experiment }), tune)
        };
        task.entrants.iter().map(|entrant| (entrant.role == Role::Tuned).then(|| of(entrant))).collect()
    }

    /// The choices of the grid searches of a task.
    pub fn choices(&self, folder: &Path, task: &Task) -> Result<Vec<Choice>, Error> {
        let choose = |one: Option<(Plan, Tune)>| {
            let Some((plan, tune)) = one else { return Ok(None) };
            let read = |job: &Job| Ok((self.rules.scored)(outcome(folder, &plan, job)?, &tune.metric));
            // There is one problem and one method.
            Ok(search(&plan, &tune, &read)?.into_iter().next())
        };
        self.searches(task).into_iter().map(choose).collect()
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

    /// The plans of all grid searches.
    pub fn all_searches(&self) -> Vec<Plan> {
        let tasks = self.benchmark.tasks.iter();
        tasks.flat_map(|task| self.searches(task)).flatten().map(|(plan, _)| plan).collect()
    }

    /// The plans of all runs, one for each task. Without a folder there are no choices.
    pub fn all_runs(&self, folder: Option<&Path>) -> Result<Vec<Plan>, Error> {
        let choices = |task: &Task| folder.map_or_else(|| Ok(Vec::new()), |folder| self.choices(folder, task));
        self.benchmark.tasks.iter().map(|task| Ok(self.runs(task, &choices(task)?))).collect()
    }
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
        fn searches(plan: &SuitePlan<Self>) -> Vec<Plan> {
            $contest(plan).all_searches()
        }
        fn runs(plan: &SuitePlan<Self>, folder: Option<&Path>) -> Result<Vec<Plan>, Error> {
            $contest(plan).all_runs(folder)
        }
    };
}
pub(crate) use competing_suite;
