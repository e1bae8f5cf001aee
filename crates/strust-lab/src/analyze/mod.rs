//! Computes summaries, grid-search choices and diagnoses from records.

pub mod diagnose;
pub mod network;
mod outcome;
mod summarize;
mod tune;

pub(crate) use outcome::so_far;
pub use outcome::{Finished, Outcome, Read, is_finished, outcome};
pub use summarize::summary;
pub(crate) use tune::choose;
pub use tune::search;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Error,
        data::{
            plan::{Job, Plan},
            record::EpochRecord,
            summary::{Failure, Spread},
        },
        experiment::Experiment,
    };
    use std::{collections::BTreeMap, path::Path};
    use strust::objective::Evaluations;

    /// Three seeds, two settings of SGD and one of Adam.
    fn plan(more: &str) -> Plan {
        let text = format!(
            "name = \"a\"\nepochs = 1\nbatch = 4\nseeds = 3\n[[problem]]\nkind = \"least-squares\"\n\
             [[method]]\nname = \"sgd\"\nlearning_rate = [0.5, 0.1, 0.2]\n[[method]]\nname = \"adam\"\n{more}"
        );
        let experiment = Experiment::parse(Path::new("a.toml"), &text).unwrap();
        Plan::new(experiment, "strust run a.toml", crate::this_machine(1, None))
    }

    /// A job of one epoch that starts with the gap 8 and ends with this gap.
    fn finished(job: &Job, gap: f64) -> Outcome {
        let record = |epoch: u64, gap: f64| EpochRecord {
            epoch,
            steps: 10 * epoch,
            accepted: 9 * epoch,
            skipped: 0,
            evaluations: Evaluations { values: 0, gradients: 10 * epoch, products: 0 },
            trust_region: BTreeMap::new(),
            metrics: [("objective_gap".to_string(), gap)].into(),
        };
        let (epochs, seconds) = (vec![record(0, 8.0), record(1, gap)], vec![0.0, 0.25]);
        Outcome::Finished(Finished { seed: job.seed, epochs, seconds })
    }

    fn failed(job: &Job) -> Outcome {
        Outcome::Failed(Failure { seed: job.seed, error: "the objective is not finite".into() })
    }

    #[test]
    fn the_summary_of_known_records_has_their_mean_deviation_and_median() {
        let plan = plan("");
        let read = |job: &Job| -> Result<Outcome, Error> {
            let gap = [1.0, 2.0, 6.0][job.seed as usize];
            Ok(if job.method.name == "adam" && job.seed == 1 { failed(job) } else { finished(job, gap) })
        };
        let summary = summary(&plan, &read).unwrap();
        let [problem] = &summary.problems[..] else { panic!("one problem") };
        let labels: Vec<&str> = problem.methods.iter().map(|m| m.label.as_str()).collect();
        assert_eq!(labels, ["sgd learning_rate=0.5", "sgd learning_rate=0.1", "sgd learning_rate=0.2", "adam"]);
        let sgd = &problem.methods[0];
        let last = sgd.last.as_ref().unwrap();
        let deviation = 7.0_f64.sqrt();
        let Spread { mean, std, median, .. } = last.metrics["objective_gap"];
        assert_eq!((mean, std, median), (3.0, deviation, 2.0));
        let start = Spread { mean: 8.0, std: 0.0, median: 8.0, quartiles: Some((8.0, 8.0)) };
        assert_eq!(sgd.curve[0].metrics["objective_gap"], start);
        assert_eq!((sgd.curve.len(), &sgd.seeds[..], sgd.failures.len()), (2, &[0, 1, 2][..], 0));
        assert!((sgd.acceptance_rate - 0.9).abs() < 1e-15 && (last.evaluations.gradients - 10.0).abs() < 1e-15);
        // A failed seed is listed and is not part of any mean.
        let adam = &problem.methods[3];
        assert_eq!((&adam.seeds[..], adam.failures[0].seed), (&[0, 2][..], 1));
        let last = adam.last.as_ref().unwrap().metrics["objective_gap"];
        assert_eq!((last.mean, last.median), (3.5, 3.5));
        assert!(summary.tuning.is_empty() && summary.experiment == "a");
    }

    const TUNE: &str = "[tune]\nmetric = \"objective_gap\"\nepochs = 1\nseeds = 2\n";

    /// The choice if the settings of SGD end with these medians; `None` is a failed setting.
    fn chosen(scores: [Option<f64>; 3]) -> Vec<String> {
        let plan = plan(TUNE);
        let rates = ["0.5", "0.1", "0.2"];
        let read = |job: &Job| -> Result<Outcome, Error> {
            let i = rates.iter().position(|rate| job.method.label.ends_with(rate));
            // One seed is below the median and one is above it.
            let off = if job.seed.is_multiple_of(2) { -0.5 } else { 0.5 };
            Ok(match i.map_or(Some(1.0), |i| scores[i]) {
                Some(score) => finished(job, score + off),
                None => failed(job),
            })
        };
        let chosen = choose(&plan, plan.experiment.tune.as_ref().unwrap(), &read).unwrap();
        chosen.into_iter().map(|(_, method)| method.label).collect()
    }

    #[test]
    fn a_grid_search_chooses_the_best_median_and_breaks_ties_by_file_order() {
        assert_eq!(chosen([Some(3.0), Some(1.0), Some(2.0)]), ["sgd learning_rate=0.1", "adam"]);
        assert_eq!(chosen([Some(3.0), Some(2.0), Some(2.0)]), ["sgd learning_rate=0.1", "adam"]);
        assert_eq!(chosen([Some(2.0), Some(2.0), Some(2.0)]), ["sgd learning_rate=0.5", "adam"]);
    }

    #[test]
    fn a_grid_search_over_an_accuracy_chooses_the_largest_median() {
        let text = "name = \"a\"\nepochs = 1\nbatch = 2\nseeds = 1\n[tune]\nmetric = \"test_accuracy\"\nepochs = 1\n\
                    seeds = 1\n[[problem]]\nkind = \"mlp\"\n[[method]]\nname = \"sgd\"\nlearning_rate = [0.5, 0.1, 0.2]\n";
        let experiment = Experiment::parse(Path::new("a.toml"), text).unwrap();
        let plan = Plan::new(experiment, String::new(), crate::this_machine(1, None));
        let read = |job: &Job| -> Result<Outcome, Error> {
            let accuracy = if job.method.label.ends_with("0.1") { 0.9 } else { 0.3 };
            let Outcome::Finished(mut finished) = finished(job, 1.0) else { panic!("finished") };
            let last = finished.epochs.last_mut().unwrap();
            last.metrics.insert("test_accuracy".into(), accuracy);
            Ok(Outcome::Finished(finished))
        };
        let chosen = choose(&plan, plan.experiment.tune.as_ref().unwrap(), &read).unwrap();
        assert_eq!(chosen[0].1.label, "sgd learning_rate=0.1");
    }

    #[test]
    fn a_failed_setting_is_never_chosen() {
        assert_eq!(chosen([None, Some(9.0), None]), ["sgd learning_rate=0.1", "adam"]);
        assert_eq!(chosen([None, None, None]), ["adam"]);
    }

    #[test]
    fn the_cost_of_a_grid_search_counts_finished_and_failed_runs() {
        let plan = plan(TUNE);
        let read = |job: &Job| -> Result<Outcome, Error> {
            Ok(if job.method.label.ends_with("0.2") { failed(job) } else { finished(job, 1.0) })
        };
        let summary = summary(&plan, &read).unwrap();
        let cost = summary.tuning[0].cost;
        assert_eq!((cost.runs, cost.failed, cost.gradients, cost.values), (6, 2, 40, 0));
        assert!((cost.seconds - 1.0).abs() < 1e-15);
        let tried = &summary.tuning[0].tried;
        assert_eq!(tried.len(), 3);
        assert!(tried[2].score.is_none() && tried[2].setting["learning_rate"].as_float() == Some(0.2));
    }
}
