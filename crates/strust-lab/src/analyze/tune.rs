//! The choice of a grid search.

use super::outcome::{Outcome, Read};
use crate::{
    Error,
    data::{
        experiment::{MethodSpec, ProblemSpec, Tune},
        parameters::{Parameters, differing},
        plan::{Job, Plan},
        summary::{TriedSetting, Tuning, TuningCost, higher_is_better},
    },
    format::plural,
    statistics::spread,
};
use std::collections::{BTreeMap, BTreeSet};

/// The results of the grid search, one entry per problem and method. Settings are sorted by their median over the tuning
/// seeds, best first; equal ones keep the order of the file. A setting with a failed seed has no score and comes last.
pub fn search(plan: &Plan, tune: &Tune, read: Read) -> Result<Vec<(Tuning, Option<MethodSpec>)>, Error> {
    let e = &plan.experiment;
    let mut names: Vec<&str> = Vec::new();
    for method in &e.methods {
        if !names.contains(&method.name.as_str()) {
            names.push(&method.name);
        }
    }
    let groups = plan.by_method(true).into_iter();
    let jobs: BTreeMap<(&str, &str), Vec<&Job>> =
        groups.map(|jobs| ((jobs[0].problem.name.as_str(), jobs[0].method.label.as_str()), jobs)).collect();
    let mut found = Vec::new();
    for problem in &e.problems {
        for name in &names {
            let settings: Vec<&MethodSpec> = e.methods.iter().filter(|m| m.name == *name).collect();
            let varied = differing(&settings.iter().map(|s| &s.hyperparameters).collect::<Vec<_>>());
            let mut cost = TuningCost { runs: 0, failed: 0, gradients: 0, values: 0, seconds: 0.0 };
            let mut tried = Vec::new();
            for method in &settings {
                let mine = jobs.get(&(problem.name.as_str(), method.label.as_str()));
                let (mut scores, before) = (Vec::new(), cost.failed);
                for job in mine.into_iter().flatten() {
                    cost.runs += 1;
                    match read(job)? {
                        Outcome::Failed(_) => cost.failed += 1,
                        Outcome::Finished(f) => {
                            let last = f.epochs.last().expect("a finished job has at least the record of its start");
                            cost.values += last.evaluations.values;
                            cost.gradients += last.evaluations.gradients;
                            cost.seconds += f.seconds.last().copied().unwrap_or(0.0);
                            scores.extend(last.metrics.get(&tune.metric));
                        }
                    }
                }
                let score = (cost.failed == before && !scores.is_empty()).then(|| spread(&scores).median);
                tried.push((TriedSetting { setting: only(method, &varied), score }, *method));
            }
            let sign = if higher_is_better(&tune.metric) { -1.0 } else { 1.0 };
            let rank = |trial: &TriedSetting| trial.score.map_or(f64::INFINITY, |score| sign * score);
            tried.sort_by(|(a, _), (b, _)| rank(a).total_cmp(&rank(b)));
            let best = tried.first().filter(|(trial, _)| trial.score.is_some()).map(|(_, method)| (*method).clone());
            let tuning = Tuning {
                problem: problem.name.clone(),
                method: (*name).to_string(),
                metric: format!("{} after {}", tune.metric, plural(tune.epochs as usize, "epoch")),
                tried: tried.into_iter().map(|(trial, _)| trial).collect(),
                cost,
            };
            found.push((tuning, best));
        }
    }
    Ok(found)
}

/// These hyperparameters of a setting, with their values.
fn only(method: &MethodSpec, varied: &BTreeSet<&str>) -> Parameters {
    let differs = |(key, _): &(&String, &toml::Value)| varied.contains(key.as_str());
    method.hyperparameters.iter().filter(differs).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// The best setting of every method on every problem; none for a method if all its settings failed.
pub(crate) fn choose(plan: &Plan, tune: &Tune, read: Read) -> Result<Vec<(ProblemSpec, MethodSpec)>, Error> {
    let problems: BTreeMap<&str, &ProblemSpec> =
        plan.experiment.problems.iter().map(|p| (p.name.as_str(), p)).collect();
    let of =
        |(tuning, best): (Tuning, Option<MethodSpec>)| Some(((*problems.get(tuning.problem.as_str())?).clone(), best?));
    Ok(search(plan, tune, read)?.into_iter().filter_map(of).collect())
}
