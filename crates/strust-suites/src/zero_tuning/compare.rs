//! Compares the methods on a task.

use super::measures::{At, CLOSE, NEAR, goes_to_zero, is_within, ratio, steps_ratio, steps_to_goal, value_at};
use crate::{
    finite,
    tasks::{Choice, Entrant, Task},
};
use strust_lab::{
    Error,
    analyze::{Finished, Outcome},
    data::{
        benchmark::{BestTuned, EntrantSummary, Judge, Role, TaskSummary, TestComparison, VariationSummary},
        experiment::MethodSpec,
        parameters::{Parameters, number},
        plan::{Job, Plan},
        record::EpochRecord,
        summary::{MeanEvaluations, Metric, Spread, TriedSetting, higher_is_better},
    },
    format::plain,
    registry::{methods, problems},
    statistics::{largest, least, spread, upper_median},
};

/// The runs of a method over epochs.
#[derive(Debug, Clone, Default)]
pub(super) struct Trajectory {
    /// One point per epoch, from the start.
    pub points: Vec<TrajectoryPoint>,
    /// The epochs of all methods. The method under test runs longer.
    pub epochs: usize,
    /// What the method is judged by.
    judge: Judge,
    /// The test metric after them.
    test: Option<Spread>,
    failed: u64,
}

/// All seeds of a method after an epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrajectoryPoint {
    pub steps: f64,
    pub seconds: f64,
    pub evaluations: MeanEvaluations,
    /// The objective: median over seeds, where a failed seed is infinite, and the ends of its range over the others.
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Trajectory {
    /// The curve of the outcomes of all seeds. `optimum` is added to the metric `key` of each seed, which gives the objective.
    fn new(outcomes: &[Outcome], epochs: u64, judge: Judge, metrics: &[Metric], optimum: &dyn Fn(u64) -> f64) -> Self {
        let finished: Vec<&Finished> = outcomes
            .iter()
            .filter_map(|outcome| match outcome {
                Outcome::Finished(finished) => Some(finished),
                Outcome::Failed(_) => None,
            })
            .collect();
        let failed = outcomes.len() - finished.len();
        // Long runs do not record every epoch.
        let place = finished.first().and_then(|f| f.epochs.iter().position(|record| record.epoch == epochs));
        let epochs = place.unwrap_or(epochs as usize);
        let objective = |f: &Finished, i: usize| f.epochs[i].metrics[&metrics[0].key] + optimum(f.seed);
        let point = |i: usize| {
            let mean = |number: fn(&EpochRecord) -> f64| {
                finished.iter().map(|f| number(&f.epochs[i])).sum::<f64>() / finished.len() as f64
            };
            let values: Vec<f64> = finished.iter().map(|f| objective(f, i)).collect();
            let with_failed: Vec<f64> =
                values.iter().copied().chain(std::iter::repeat_n(f64::INFINITY, failed)).collect();
            TrajectoryPoint {
                steps: mean(|r| r.steps as f64),
                seconds: finished.iter().map(|f| f.seconds[i]).sum::<f64>() / finished.len() as f64,
                evaluations: MeanEvaluations {
                    values: mean(|r| r.evaluations.values as f64),
                    gradients: mean(|r| r.evaluations.gradients as f64),
                    products: mean(|r| r.evaluations.products as f64),
                },
                median: upper_median(&with_failed),
                low: least(values.iter().copied()),
                high: largest(values),
            }
        };
        let length = finished.first().map_or(0, |f| f.epochs.len());
        let test = metrics.iter().find(|metric| metric.key.starts_with("test_")).and_then(|metric| {
            let at = |f: &&Finished| f.epochs[epochs].metrics.get(&metric.key).copied();
            let values: Vec<f64> = finished.iter().map(at).collect::<Option<_>>()?;
            (!values.is_empty()).then(|| spread(&values))
        });
        Self { points: (0..length).map(point).collect(), epochs, judge, test, failed: failed as u64 }
    }

    /// The end of the epochs that all methods have.
    pub fn end(&self) -> Option<&TrajectoryPoint> {
        self.points.get(self.epochs)
    }

    /// The number by which it is judged, after the epochs that all methods have; infinite if most seeds failed, or if the
    /// goal was not reached.
    fn value(&self) -> f64 {
        match self.judge {
            Judge::Objective => self.end().map_or(f64::INFINITY, |at| at.median),
            Judge::Steps => {
                let mut curve = self.over_steps();
                curve.truncate(self.epochs + 1);
                steps_to_goal(&curve).unwrap_or(f64::INFINITY)
            }
        }
    }

    /// Whether it uses products with the curvature.
    pub fn has_products(&self) -> bool {
        self.end().is_some_and(|at| at.evaluations.products > 0.0)
    }

    fn over_steps(&self) -> Vec<At> {
        self.points.iter().map(|at| (at.steps, at.median)).collect()
    }

    fn over_passes(&self) -> Vec<At> {
        self.points.iter().map(|at| (at.evaluations.passes(), at.median)).collect()
    }

    /// The cost of a step in steps of SGD.
    fn price(&self) -> Option<f64> {
        self.end().filter(|at| at.steps > 0.0).map(|at| at.evaluations.price() / (3.0 * at.steps))
    }
}

/// The finished runs of a task.
pub(super) struct TaskRuns<'a> {
    pub task: &'a Task,
    /// One per entrant.
    pub choices: &'a [Choice],
    /// The plan with the runs of all methods.
    pub plan: &'a Plan,
    pub read: &'a dyn Fn(&Job) -> Result<Outcome, Error>,
    /// The optimum of a seed, if the first metric is the gap to it; otherwise 0.
    pub optimum: &'a dyn Fn(u64) -> f64,
}

impl TaskRuns<'_> {
    /// The curve of a method by its label.
    fn curve(&self, label: &str, metrics: &[Metric]) -> Result<Trajectory, Error> {
        let jobs = self.plan.jobs.iter().filter(|job| job.method.label == label);
        let outcomes = jobs.map(self.read).collect::<Result<Vec<_>, _>>()?;
        Ok(Trajectory::new(&outcomes, self.task.experiment.epochs, self.task.judge, metrics, self.optimum))
    }

    /// The results of the task, and the curve of every entrant.
    pub fn compare(&self) -> Result<(TaskSummary, Vec<Trajectory>), Error> {
        let Task { title, half, judge, experiment, entrants, variations } = self.task;
        let problem = &experiment.problems[0];
        let metrics = problems::metrics(problem);
        let mut curves = Vec::new();
        for (entrant, choice) in entrants.iter().zip(self.choices) {
            curves.push(match entrant.setting(choice) {
                Some(method) => self.curve(&method.label, &metrics)?,
                None => Trajectory { epochs: experiment.epochs as usize, ..Trajectory::default() },
            });
        }
        // Every method starts at the same points.
        let start = curves.iter().find_map(|curve| curve.points.first()).map_or(f64::NAN, |at| at.median);
        let tuned = (0..entrants.len()).filter(|&i| entrants[i].role == Role::Tuned && curves[i].value().is_finite());
        let best = tuned.min_by(|&i, &j| curves[i].value().total_cmp(&curves[j].value()));
        let reference = Reference::new(best.map(|i| &curves[i]), start, *judge);
        let tested = entrants.iter().position(|entrant| entrant.role == Role::Tested);
        let none = Trajectory::default();
        let (mine, theirs) = (tested.map_or(&none, |i| &curves[i]), best.map_or(&none, |i| &curves[i]));
        let test = |curve: &Trajectory| {
            let metric = metrics.iter().find(|m| m.key.starts_with("test_"))?;
            Some(compare_tests(&metric.key, curve.test?, theirs.test?))
        };
        let to_zero = reference.to_zero();
        let within = |curve: &Trajectory, limit| {
            let is_near = is_within(reference.ratio(curve), reference.steps_ratio(curve), to_zero, limit);
            is_near && (*judge == Judge::Objective || test(curve).is_none_or(|test| test.holds))
        };
        let methods = entrants.iter().zip(self.choices).zip(&curves);
        let summary = TaskSummary {
            name: experiment.name.clone(),
            title: title.clone(),
            half: *half,
            problem: description(&problem.kind, &problem.parameters),
            judge: *judge,
            epochs: experiment.epochs,
            batch: experiment.batch,
            steps: curves.iter().find_map(Trajectory::end).map_or(0, |at| at.steps as u64),
            start,
            best_tuned: best.and_then(|i| {
                let setting = changed(entrants[i].setting(&self.choices[i])?);
                Some(BestTuned { value: curves[i].value(), method: entrants[i].label.clone(), setting })
            }),
            tested: finite(mine.value()),
            ratio: reference.ratio(mine),
            steps_ratio: reference.steps_ratio(mine),
            to_zero,
            within: within(mine, CLOSE),
            nearly_within: within(mine, NEAR),
            ratio_at_equal_passes: theirs.end().filter(|_| *judge == Judge::Objective).and_then(|end| {
                let value = value_at(&mine.over_passes(), end.evaluations.passes())?;
                reference.ratio_of(value)
            }),
            test: test(mine),
            price: mine.price(),
            methods: methods.map(|((entrant, choice), curve)| of_entrant(entrant, choice, curve, &reference)).collect(),
            variations: variations
                .iter()
                .map(|variation| {
                    let curve = self.curve(&variation.method.label, &metrics)?;
                    Ok(VariationSummary {
                        parameter: variation.parameter.clone(),
                        default: variation.default,
                        setting: variation.value,
                        value: finite(curve.value()),
                        ratio: reference.ratio(&curve),
                        within: within(&curve, CLOSE),
                    })
                })
                .collect::<Result<_, Error>>()?,
        };
        Ok((summary, curves))
    }
}

/// The best tuned baseline, to which all methods are compared.
struct Reference {
    best: Option<(f64, Vec<At>)>,
    start: f64,
    judge: Judge,
}

impl Reference {
    fn new(best: Option<&Trajectory>, start: f64, judge: Judge) -> Self {
        Self { best: best.map(|curve| (curve.value(), curve.over_steps())), start, judge }
    }
    fn ratio_of(&self, value: f64) -> Option<f64> {
        self.best.as_ref().and_then(|(best, _)| ratio(value, *best, self.start))
    }
    fn ratio(&self, curve: &Trajectory) -> Option<f64> {
        self.ratio_of(curve.value())
    }
    fn steps_ratio(&self, curve: &Trajectory) -> Option<f64> {
        if self.judge == Judge::Steps {
            return self.ratio(curve);
        }
        self.best.as_ref().and_then(|(value, best)| steps_ratio(&curve.over_steps(), best, *value, self.start))
    }
    fn to_zero(&self) -> bool {
        self.judge == Judge::Steps || self.best.as_ref().is_some_and(|(best, _)| goes_to_zero(*best, self.start))
    }
}

fn of_entrant(entrant: &Entrant, choice: &Choice, curve: &Trajectory, reference: &Reference) -> EntrantSummary {
    let chosen = entrant.setting(choice);
    let tried = choice.as_ref().map(|(tuning, _)| tuning.tried.clone()).unwrap_or_default();
    EntrantSummary {
        label: entrant.label.clone(),
        role: entrant.role,
        setting: chosen.map(changed),
        value: finite(curve.value()),
        ratio: reference.ratio(curve),
        steps_ratio: reference.steps_ratio(curve),
        price: curve.price(),
        test: curve.test,
        failed: curve.failed,
        at_edge: chosen.is_some() && is_at_edge(&tried),
        tried,
    }
}

/// Whether the best setting of a grid, the first one, has its smallest or its largest rate.
fn is_at_edge(tried: &[TriedSetting]) -> bool {
    let rate = |trial: &TriedSetting| trial.setting.values().next().and_then(number);
    let Some(best) = tried.first().and_then(rate) else { return false };
    let rates = || tried.iter().filter_map(rate);
    !(rates().any(|rate| rate < best) && rates().any(|rate| rate > best))
}

/// The hyperparameters that differ from the defaults.
fn changed(method: &MethodSpec) -> Parameters {
    let entry = methods::all().into_iter().find(|entry| entry.name == method.name);
    let defaults = entry.and_then(|entry| entry.complete(&Parameters::new()).ok()).unwrap_or_default();
    let differs = |(key, value): &(&String, &toml::Value)| defaults.get(*key) != Some(value);
    method.hyperparameters.iter().filter(differs).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn description(kind: &str, parameters: &Parameters) -> String {
    let shown = problems::with_effect(kind, parameters);
    let shown: Vec<_> = shown.iter().map(|(key, value)| format!("{key} = {}", plain(value))).collect();
    format!("{kind} ({})", shown.join(", "))
}

fn compare_tests(metric: &str, tested: Spread, best_tuned: Spread) -> TestComparison {
    let sign = if higher_is_better(metric) { 1.0 } else { -1.0 };
    let deviation = (0.5 * (tested.std.powi(2) + best_tuned.std.powi(2))).sqrt();
    let holds = sign * (tested.mean - best_tuned.mean) >= -deviation;
    TestComparison { metric: metric.into(), tested, best_tuned, holds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strust::objective::Evaluations;
    use strust_lab::data::summary::Failure;

    /// A run of 10 steps per epoch and two passes per step, with these gaps at the epochs.
    fn finished(seed: u64, gaps: &[f64], accuracy: f64) -> Outcome {
        let record = |(epoch, gap): (usize, &f64)| EpochRecord {
            epoch: epoch as u64,
            steps: 10 * epoch as u64,
            evaluations: Evaluations { gradients: 10 * epoch as u64, ..Default::default() },
            metrics: [("objective_gap".into(), *gap), ("test_accuracy".into(), accuracy)].into(),
            ..EpochRecord::default()
        };
        let epochs: Vec<EpochRecord> = gaps.iter().enumerate().map(record).collect();
        Outcome::Finished(Finished { seed, seconds: vec![0.0; epochs.len()], epochs })
    }

    fn metrics() -> Vec<Metric> {
        let metric = |key: &str| Metric { key: key.into(), label: String::new(), log: true };
        vec![metric("objective_gap"), metric("test_accuracy")]
    }

    #[test]
    fn a_curve_is_the_median_over_seeds_and_a_failed_seed_is_infinite() {
        let failed = Outcome::Failed(Failure { seed: 2, error: "diverged".into() });
        let outcomes = [finished(0, &[8.0, 1.0, 0.5], 0.8), finished(1, &[8.0, 3.0, 0.1], 0.6), failed.clone()];
        // The optimum of a seed is its number, so that the objective is the gap plus this number.
        let curve = Trajectory::new(&outcomes, 1, Judge::Objective, &metrics(), &|seed| seed as f64);
        let end = *curve.end().unwrap();
        // The objectives after the first epoch are 1, 4 and infinity.
        assert_eq!((end.median, end.low, end.high, end.steps, end.evaluations.passes()), (4.0, 1.0, 4.0, 10.0, 20.0));
        assert_eq!((curve.failed, curve.points.len(), curve.price()), (1, 3, Some(1.0)));
        assert!(curve.test.is_some_and(|test| (test.mean - 0.7).abs() < 1e-15));
        let outcomes = [finished(0, &[8.0, 1.0], 0.8), failed.clone(), failed];
        let lost = Trajectory::new(&outcomes, 1, Judge::Objective, &metrics(), &|_| 0.0);
        assert!(lost.value().is_infinite() && finite(lost.value()).is_none());
    }

    #[test]
    fn the_reference_gives_ratios_of_values_and_steps() {
        let judged = |judge, gaps: &[f64]| Trajectory::new(&[finished(0, gaps, 0.5)], 2, judge, &metrics(), &|_| 0.0);
        let curve = |gaps: &[f64]| judged(Judge::Objective, gaps);
        let best = curve(&[100.0, 10.0, 1.0]);
        let reference = Reference::new(Some(&best), 100.0, Judge::Objective);
        let mine = curve(&[100.0, 1.0, 2.0, 0.5]);
        assert_eq!((reference.ratio(&mine), reference.steps_ratio(&mine)), (Some(2.0), Some(0.5)));
        assert!(!reference.to_zero() && Reference::new(Some(&best), 1e7, Judge::Objective).to_zero());
        let nothing = Reference::new(None, 100.0, Judge::Objective);
        assert_eq!((nothing.ratio(&mine), nothing.steps_ratio(&mine)), (None, None));
        // By steps to 1e-3 of the start: 0.1 is reached after 10 and after 5 steps, and how far a run then goes has no
        // effect. Epochs beyond those of all methods do not count.
        let (best, mine) = (judged(Judge::Steps, &[100.0, 0.1, 0.01]), judged(Judge::Steps, &[100.0, 1e-4, 1e-4]));
        let reference = Reference::new(Some(&best), 100.0, Judge::Steps);
        assert_eq!((best.value(), mine.value()), (10.0, 5.0));
        assert_eq!((reference.ratio(&mine), reference.steps_ratio(&mine)), (Some(0.5), Some(0.5)));
        let late = judged(Judge::Steps, &[100.0, 10.0, 1.0, 0.1]);
        assert!(late.value().is_infinite() && reference.ratio(&late).is_none() && reference.to_zero());
    }

    #[test]
    fn a_test_metric_may_be_worse_by_one_deviation() {
        let spread = |mean: f64, std: f64| Spread { mean, std, median: mean, quartiles: None };
        let holds = |metric, mine, theirs| compare_tests(metric, mine, theirs).holds;
        // The root mean square of 0.01 and 0.03 is 0.0224.
        assert!(holds("test_accuracy", spread(0.88, 0.01), spread(0.90, 0.03)));
        assert!(!holds("test_accuracy", spread(0.87, 0.01), spread(0.90, 0.03)));
        assert!(holds("test_loss", spread(0.5, 0.0), spread(0.6, 0.0)));
        assert!(!holds("test_loss", spread(0.7, 0.0), spread(0.6, 0.0)));
    }

    #[test]
    fn the_ends_of_a_grid_are_its_edges() {
        let grid = |rates: &[f64]| -> Vec<TriedSetting> {
            let trial = |&rate: &f64| TriedSetting { setting: [("rate".into(), rate.into())].into(), score: Some(1.0) };
            rates.iter().map(trial).collect()
        };
        // The best one is first.
        assert!(is_at_edge(&grid(&[1.0, 3.0, 2.0])) && is_at_edge(&grid(&[3.0, 2.0, 1.0])));
        assert!(!is_at_edge(&grid(&[2.0, 3.0, 1.0])) && !is_at_edge(&[]));
    }

    #[test]
    fn only_settings_that_differ_from_the_defaults_are_shown() {
        let entry = methods::all().into_iter().find(|entry| entry.name == "adam").unwrap();
        let mut hyperparameters = entry.complete(&Parameters::new()).unwrap();
        hyperparameters.insert("learning_rate".into(), 0.25.into());
        let method = MethodSpec { name: "adam".into(), label: "adam".into(), hyperparameters, varied: Vec::new() };
        assert_eq!(changed(&method), Parameters::from([("learning_rate".into(), 0.25.into())]));
    }
}
