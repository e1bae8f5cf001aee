//! The plan: every method × setting × seed is a job with a stable name.

use super::{
    checksum,
    experiment::{Experiment, MAX_EPOCHS, MethodSpec, ProblemSpec},
    summary::Machine,
};
use crate::format::{folder_name, plural};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The contents of `plan.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of strust that made it.
    pub version: String,
    /// The command line of the run.
    pub command: String,
    /// The machine of the run.
    pub machine: Machine,
    /// The experiment, with expanded lists and all defaults.
    pub experiment: Experiment,
    /// The sizes of the problems with a data file, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, ProblemSize>,
    /// The jobs. A grid search adds the jobs of the chosen settings when it is done.
    pub jobs: Vec<Job>,
}

/// The size of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemSize {
    /// Terms of the sum: data points in the training set.
    pub terms: usize,
    /// Components of a point.
    pub parameters: usize,
}

/// One run of one method on one problem from one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its name, also the name of its folder.
    pub name: String,
    /// Whether it belongs to the grid search.
    pub tuning: bool,
    /// The problem.
    pub problem: ProblemSpec,
    /// The method.
    pub method: MethodSpec,
    /// The seed of data, start and mini-batches.
    pub seed: u64,
    /// Passes over the data.
    pub epochs: u64,
}

impl Plan {
    /// The plan of an experiment.
    #[must_use]
    pub fn new(experiment: Experiment, command: String, machine: Machine) -> Self {
        let mut plan = Self {
            version: env!("CARGO_PKG_VERSION").into(),
            command,
            machine,
            experiment,
            sizes: BTreeMap::new(),
            jobs: Vec::new(),
        };
        let Experiment { problems, methods, seeds, tune, epochs, .. } = &plan.experiment;
        let (tuning, seeds, epochs) = match tune {
            Some(tune) => (true, tune.seed_list().collect(), tune.epochs),
            None => (false, seeds.clone(), *epochs),
        };
        // The seeds are the outer loop: if a run is stopped, all methods have made similar progress.
        for &seed in &seeds {
            for problem in problems {
                for method in methods {
                    plan.jobs.push(Job::new(tuning, problem, method, seed, epochs));
                }
            }
        }
        plan
    }

    /// The jobs of the grid search, or the others: one list for each method on each problem, in the order of the plan.
    #[must_use]
    pub fn by_method(&self, tuning: bool) -> Vec<Vec<&Job>> {
        let (mut places, mut groups) = (BTreeMap::new(), Vec::<Vec<&Job>>::new());
        for job in self.jobs.iter().filter(|job| job.tuning == tuning) {
            let place = *places.entry((job.problem.name.as_str(), job.method.label.as_str())).or_insert(groups.len());
            if place == groups.len() {
                groups.push(Vec::new());
            }
            groups[place].push(job);
        }
        groups
    }

    /// Adds the full runs of the settings that a grid search chose.
    pub fn add_chosen(&mut self, chosen: &[(ProblemSpec, MethodSpec)]) {
        let (seeds, epochs) = (self.experiment.seeds.clone(), self.experiment.epochs);
        self.jobs.retain(|job| job.tuning);
        for seed in seeds {
            self.jobs.extend(chosen.iter().map(|(problem, method)| Job::new(false, problem, method, seed, epochs)));
        }
    }
}

impl Plan {
    /// Lengthens the runs to so many epochs. They continue where they ended.
    pub fn lengthen(&mut self, epochs: u64) -> Result<(), String> {
        let now = self.experiment.epochs;
        if epochs <= now {
            return Err(format!("the runs have {} already: choose a larger number", plural(now as usize, "epoch")));
        }
        if epochs > MAX_EPOCHS {
            return Err(format!("{epochs} epochs are too many: the most is {MAX_EPOCHS}"));
        }
        let planned = |job: &&Job| {
            let schedule = job.method.hyperparameters.get("schedule").and_then(toml::Value::as_str);
            !job.tuning && schedule.is_some_and(|schedule| schedule != "constant")
        };
        if let Some(job) = self.jobs.iter().find(planned) {
            return Err(format!(
                "the schedule of {} ends with epoch {now}, so its run cannot go on: run the experiment again with \
                 --epochs {epochs}",
                job.method.label
            ));
        }
        self.experiment.first_epochs.get_or_insert(now);
        self.experiment.epochs = epochs;
        self.jobs.iter_mut().filter(|job| !job.tuning).for_each(|job| job.epochs = epochs);
        Ok(())
    }
}

impl Job {
    pub(crate) fn new(tuning: bool, problem: &ProblemSpec, method: &MethodSpec, seed: u64, epochs: u64) -> Self {
        let prefix = if tuning { "tune." } else { "" };
        let name = folder_name(&format!("{prefix}{}.{}.s{seed}", problem.name, method.label));
        Self { name, tuning, problem: problem.clone(), method: method.clone(), seed, epochs }
    }

    /// A checksum of this job with all its settings. A run that is lengthened stays the same job.
    #[must_use]
    pub fn checksum(&self, experiment: &Experiment) -> u64 {
        let epochs = experiment.first_epochs.filter(|_| !self.tuning).unwrap_or(self.epochs);
        let first = Self { epochs, ..self.clone() };
        let usual = (first, experiment.batch, experiment.sampling, experiment.records);
        // Sums in another order have other bits.
        let identity = match experiment.block {
            None => serde_json::to_vec(&usual),
            Some(block) => serde_json::to_vec(&(usual, block)),
        };
        checksum(&identity.expect("a job is plain data"))
    }
}
