//! The plan: every method × setting × seed is a job with a stable name.

use super::{
    checksum,
    command::CommandLine,
    experiment::{Experiment, MAX_EPOCHS, MethodSpec, ProblemSpec},
    summary::Machine,
};
use crate::format::{folder_name, plural};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The contents of `plan.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of strust that made it.
    pub version: String,
    /// The command line of the run.
    pub command: CommandLine,
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
    pub fn new(experiment: Experiment, command: impl Into<CommandLine>, machine: Machine) -> Self {
        let mut plan = Self {
            version: env!("CARGO_PKG_VERSION").into(),
            command: command.into(),
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
        name_apart(&mut plan.jobs);
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
        name_apart(&mut self.jobs);
    }
}

/// Gives jobs whose short names are equal different names: the first one keeps it.
fn name_apart(jobs: &mut [Job]) {
    let mut taken = BTreeSet::new();
    for job in jobs {
        if !taken.insert(job.name.clone()) {
            job.name = job.long_name();
            taken.insert(job.name.clone());
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

/// How the name of a job begins.
fn prefix(tuning: bool) -> &'static str {
    if tuning { "tune." } else { "" }
}

impl Job {
    /// A job of a grid search, or of the runs.
    #[must_use]
    pub fn new(tuning: bool, problem: &ProblemSpec, method: &MethodSpec, seed: u64, epochs: u64) -> Self {
        let name = folder_name(&format!("{}{}.{}.s{seed}", prefix(tuning), problem.name, method.label));
        Self { name, tuning, problem: problem.clone(), method: method.clone(), seed, epochs }
    }

    /// The name that no other job has. In the short one, dots separate the parts, but parts may have dots too: the problem
    /// `a.b` with the method `c`, and `a` with `b.c`. No short name has a tilde.
    fn long_name(&self) -> String {
        let part = |name: &str| folder_name(name).replace('.', "~");
        let Self { tuning, problem, method, seed, .. } = self;
        format!("{}{}.~{}.s{seed}", prefix(*tuning), part(&problem.name), part(&method.label))
    }

    /// Whether the name is one that a plan gives to this job.
    pub(crate) fn has_right_name(&self) -> bool {
        let short = Self::new(self.tuning, &self.problem, &self.method, self.seed, self.epochs).name;
        self.name == short || self.name == self.long_name()
    }

    /// A checksum of this job with all its settings. A run that is lengthened stays the same job.
    #[must_use]
    pub fn checksum(&self, experiment: &Experiment) -> u64 {
        let epochs = experiment.first_epochs.filter(|_| !self.tuning).unwrap_or(self.epochs);
        let first = Self { epochs, ..self.clone() };
        let usual = (first, experiment.batch, experiment.sampling, experiment.records);
        // Sums in another order have other bits, and other epochs are other records.
        let identity = match (experiment.block, experiment.measure_every.get()) {
            (None, 1) => serde_json::to_vec(&usual),
            (Some(block), 1) => serde_json::to_vec(&(usual, block)),
            (block, every) => serde_json::to_vec(&(usual, block, every)),
        };
        checksum(&identity.expect("a job is plain data"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    /// The plan of an experiment with these names of problems and methods, all of one kind.
    fn plan(problems: &[String], labels: &[String], tune: bool) -> Option<Plan> {
        let text = |name: &String| toml::Value::String(name.clone()).to_string();
        let problem = |name| format!("[[problem]]\nkind = \"least-squares\"\nname = {}\n", text(name));
        let method = |label| format!("[[method]]\nname = \"str\"\nlabel = {}\n", text(label));
        let mut file = "name = \"a\"\nepochs = 2\nbatch = 8\nseeds = 2\n".to_string();
        if tune {
            file += "[tune]\nmetric = \"objective\"\nepochs = 1\nseeds = 2\n";
        }
        file.extend(problems.iter().map(problem).chain(labels.iter().map(method)));
        let experiment = Experiment::parse(Path::new("a.toml"), &file).ok()?;
        Some(Plan::new(experiment, "", crate::this_machine(1, None)))
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.jobs.iter().map(|job| job.name.as_str()).collect()
    }

    fn is_right(plan: &Plan) -> bool {
        plan.jobs.iter().all(Job::has_right_name)
            && names(plan).iter().collect::<BTreeSet<_>>().len() == plan.jobs.len()
    }

    #[test]
    fn only_a_job_whose_name_is_taken_has_another_one() {
        let texts = |names: [&str; 2]| names.map(String::from);
        let of = |problems, labels| plan(&texts(problems), &texts(labels), false).unwrap();
        let plain = of(["a.b", "c"], ["x", "y lr=0.5"]);
        let expected = ["a.b.x.s0", "a.b.y_lr=0.5.s0", "c.x.s0", "c.y_lr=0.5.s0"];
        assert_eq!(names(&plain)[..4], expected);
        let both = of(["a.b", "a"], ["c", "b.c"]);
        assert_eq!(names(&both)[..4], ["a.b.c.s0", "a.b.b.c.s0", "a.c.s0", "a.~b~c.s0"]);
        assert!(is_right(&plain) && is_right(&both));
    }

    proptest! {
        #[test]
        fn the_jobs_of_a_plan_have_different_names(problems in prop::collection::vec("[a.]{1,3}|tune(\\.a)?", 1..4),
            labels in prop::collection::vec("[a.~]{1,4}|a\\.s[01]", 1..5), tune: bool) {
            if let Some(mut plan) = plan(&problems, &labels, tune) {
                prop_assert!(is_right(&plan), "{:?}", names(&plan));
                let chosen: Vec<_> = plan.by_method(tune).iter().map(|jobs| (jobs[0].problem.clone(), jobs[0].method.clone())).collect();
                plan.add_chosen(&chosen);
                prop_assert!(is_right(&plan), "{:?}", names(&plan));
            }
        }
    }
}
