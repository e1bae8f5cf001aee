//! The names of several runs in one report: the experiment, and what differs between its runs.

use crate::{
    data::summary::{ProblemSummary, Summary},
    format::plain,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// Differences in a name, if fewer tell the runs apart.
const SHOWN: usize = 3;

/// The name of each run. Runs of the same experiment are told apart by their settings, and by a number if those are equal.
pub(super) fn run_names(summaries: &[Summary]) -> Vec<String> {
    let mut names: Vec<String> = summaries.iter().map(|summary| summary.experiment.clone()).collect();
    for experiment in names.iter().cloned().collect::<BTreeSet<_>>() {
        let runs: Vec<usize> = (0..summaries.len()).filter(|&i| summaries[i].experiment == experiment).collect();
        if runs.len() > 1 {
            let group: Vec<&Summary> = runs.iter().map(|&i| &summaries[i]).collect();
            runs.into_iter().zip(told_apart(&experiment, &group)).for_each(|(i, name)| names[i] = name);
        }
    }
    names
}

/// The names of some runs of one experiment.
fn told_apart(experiment: &str, runs: &[&Summary]) -> Vec<String> {
    let (mut names, mut shown) = (vec![experiment.to_owned(); runs.len()], BTreeSet::new());
    let of_runs: Vec<BTreeMap<String, String>> = runs.iter().map(|run| facts(run).into_iter().collect()).collect();
    for (key, _) in facts(runs[0]) {
        // A key that some runs do not have belongs to a method or problem that they do not have.
        let values = of_runs.iter().map(|facts| facts.get(&key)).collect::<Option<Vec<_>>>().unwrap_or_default();
        let differ = values.iter().any(|value| *value != values[0]);
        if differ && (shown.len() < SHOWN || !all_differ(&names)) && !shown.contains(&key) {
            for (name, value) in names.iter_mut().zip(values) {
                let _ = write!(name, ", {key}={value}");
            }
            shown.insert(key);
        }
    }
    let plain = names.clone();
    for i in 0..plain.len() {
        if plain.iter().filter(|name| **name == plain[i]).count() > 1 {
            let number = plain[..=i].iter().filter(|name| **name == plain[i]).count();
            let _ = write!(names[i], ", run {number}");
        }
    }
    names
}

fn all_differ(names: &[String]) -> bool {
    names.iter().collect::<BTreeSet<_>>().len() == names.len()
}

/// What can differ between runs of one experiment, the most important first; keys as in `--set`.
fn facts(summary: &Summary) -> Vec<(String, String)> {
    let methods: Vec<_> = summary.problems.iter().flat_map(|problem| &problem.methods).collect();
    let listed = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join("+");
    let seeds = methods.iter().flat_map(|method| &method.seeds).collect::<BTreeSet<_>>().len();
    let mut facts = vec![
        ("method".to_owned(), listed(methods.iter().map(|method| method.name.as_str()).collect())),
        ("problem".to_owned(), listed(summary.problems.iter().map(|problem| problem.name.as_str()).collect())),
        ("epochs".to_owned(), summary.epochs.to_string()),
        ("batch".to_owned(), summary.batch.to_string()),
        ("seeds".to_owned(), seeds.to_string()),
    ];
    for ProblemSummary { name, parameters, .. } in &summary.problems {
        facts.extend(parameters.iter().map(|(key, value)| (format!("{name}.{key}"), plain(value))));
    }
    for method in methods {
        let settings = method.hyperparameters.iter();
        facts.extend(settings.map(|(key, value)| (format!("{}.{key}", method.label), plain(value))));
    }
    facts.push(("version".to_owned(), summary.version.clone()));
    facts.push(("machine".to_owned(), summary.machine.processor.clone()));
    facts.push(("device".to_owned(), summary.machine.device.clone().unwrap_or_else(|| "cpu".into())));
    facts
}
