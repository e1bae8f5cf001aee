//! The figures of the benchmark.

use super::{
    compare::{Trajectory, TrajectoryPoint},
    measures::{profile, ratio},
};
use crate::{distinct, prelude::*};
use strust_lab::data::benchmark::{Role, TaskSummary, VariationSummary};

/// The largest factor of the performance profile.
const LAST: f64 = 10.0;
/// Points of a curve in a figure.
const POINTS: usize = 40;
/// Values above this multiple of the start are not drawn: a method that diverges must not hide the others.
const HIGHEST: f64 = 10.0;
/// A curve ends where a method has made this many times the passes of the method under test, for the same reason.
const DEAREST: f64 = 1.25;
/// The name of the best tuned baseline in figures.
pub(super) const BEST_TUNED: &str = "best tuned";

/// The methods in figures: the one under test, the best tuned baseline, and those that are not tuned. Their order gives
/// their colors.
fn shown(task: &TaskSummary) -> Vec<(&str, Option<f64>)> {
    let of = |role: Role| task.methods.iter().filter(move |m| m.role == role).map(|m| (m.label.as_str(), m.value));
    let best = (BEST_TUNED, task.best_tuned.as_ref().map(|best| best.value));
    of(Role::Tested).chain([best]).chain(of(Role::Untuned)).collect()
}

/// The ratios of a method to the best method of each task.
fn to_best(tasks: &[TaskSummary], i: usize) -> Vec<Option<f64>> {
    let one = |task: &TaskSummary| {
        let values = shown(task);
        let best = values.iter().filter_map(|(_, value)| *value).min_by(f64::total_cmp)?;
        ratio(values[i].1?, best, task.start)
    };
    tasks.iter().map(one).collect()
}

/// The performance profile of all methods.
pub(super) fn performance_profile(tasks: &[TaskSummary]) -> Shown {
    let names = tasks.first().map(shown).unwrap_or_default();
    let series = names
        .iter()
        .enumerate()
        .map(|(color, (name, _))| Series::line(*name, color, profile(&to_best(tasks, color), LAST)));
    Shown::new(
        "profile",
        "The share of the tasks on which the final objective of a method is within a factor τ of the best \
                  method's. Higher is better. The best tuned baseline is the best of all tuned ones on each task.",
        Figure::new("Performance profile", ("factor τ", true), ("share of the tasks", false), series.collect()),
    )
}

/// The cost against which a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CurveCost {
    Passes,
    Seconds,
}

/// The curves of a task.
pub(super) fn curves(task: &TaskSummary, curves: &[Trajectory], against: CurveCost) -> Shown {
    let find = |label: &str| task.methods.iter().position(|method| method.label == label);
    let best = task.best_tuned.as_ref().map(|best| best.method.as_str());
    let tested = task.methods.iter().position(|method| method.role == Role::Tested).and_then(|i| curves.get(i));
    let dearest = tested.and_then(|curve| drawn(curve).last()).map_or(f64::INFINITY, |last| DEAREST * passes(last));
    let series = shown(task).into_iter().enumerate().filter_map(|(color, (name, _))| {
        let label = if name == BEST_TUNED { best? } else { name };
        let name = if name == BEST_TUNED { format!("{BEST_TUNED}: {label}") } else { name.into() };
        let curve = curves.get(find(label)?)?;
        Some(Series { name, color, points: points(curve, HIGHEST * task.start, dearest, against) })
    });
    let (stem, label) = match against {
        CurveCost::Passes => ("curve", "forward and backward passes"),
        CurveCost::Seconds => ("seconds", "seconds"),
    };
    Shown::new(
        format!("{stem}-{}", task.name),
        format!("{}. {} half.", task.problem, task.half.word()),
        Figure::new(task.title.clone(), (label, false), ("objective", true), series.collect()),
    )
}

/// At most about [`POINTS`] points of a curve, with its start and its end.
fn points(curve: &Trajectory, highest: f64, dearest: f64, against: CurveCost) -> Vec<Point> {
    let all: Vec<&TrajectoryPoint> = drawn(curve).take_while(|at| passes(at) <= dearest).collect();
    let stride = all.len().div_ceil(POINTS).max(1);
    let point = |at: &TrajectoryPoint| {
        let below = |value: f64| if value <= highest { short(value) } else { f64::NAN };
        let cost = match against {
            CurveCost::Passes => passes(at),
            CurveCost::Seconds => at.seconds,
        };
        Point { x: short(cost), y: below(at.median), low: below(at.low), high: below(at.high.min(highest)) }
    };
    let kept = |i: &usize| i.is_multiple_of(stride) || i + 1 == all.len();
    (0..all.len()).filter(kept).map(|i| point(all[i])).collect()
}

/// The points of a curve up to the epochs that all methods run.
fn drawn(curve: &Trajectory) -> impl Iterator<Item = &TrajectoryPoint> {
    curve.points.iter().take(curve.epochs + 1)
}

fn passes(at: &TrajectoryPoint) -> f64 {
    at.evaluations.passes()
}

/// Four digits, which a figure can show.
fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// The values of a task for the default of a constant and for each of its variations, in increasing order of the constant.
pub(super) fn values(task: &TaskSummary, parameter: &str) -> Vec<(f64, Option<f64>)> {
    let mine = |v: &&VariationSummary| v.parameter == parameter;
    let varied = || task.variations.iter().filter(mine);
    let default = varied().next().map(|v| (v.default, task.tested));
    let mut values: Vec<_> = varied().map(|v| (v.setting, v.value)).chain(default).collect();
    values.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    values
}

/// The constants that vary, in order.
pub(super) fn parameters(tasks: &[TaskSummary]) -> Vec<&str> {
    distinct(tasks.iter().flat_map(|task| &task.variations).map(|variation| &variation.parameter))
}

/// How the final objective depends on a constant: its ratio to the best value of the constant, over tasks.
pub(super) fn sensitivity(tasks: &[TaskSummary], parameter: &str) -> Shown {
    let series = [(false, "loss stays above zero"), (true, "loss goes to zero")].into_iter().enumerate();
    let series = series.filter_map(|(color, (to_zero, name))| {
        let mine: Vec<&TaskSummary> = tasks.iter().filter(|task| task.to_zero == to_zero).collect();
        let constants: Vec<f64> = values(mine.first()?, parameter).into_iter().map(|(constant, _)| constant).collect();
        let at = |i: usize| {
            let one = |task: &&TaskSummary| {
                let values = values(task, parameter);
                let best = values.iter().filter_map(|(_, value)| *value).min_by(f64::total_cmp)?;
                ratio(values[i].1?, best, task.start)
            };
            let ratios: Vec<f64> = mine.iter().map(|task| one(task).unwrap_or(f64::INFINITY)).collect();
            let (low, high) = (least(ratios.iter().copied()), largest(ratios.iter().copied()));
            Point { x: constants[i], y: upper_median(&ratios), low, high }
        };
        Some(Series { name: name.into(), color, points: (0..constants.len()).map(at).collect() })
    });
    Shown::new(
        format!("sensitivity-{parameter}"),
        "The final objective over that of the best of these values: the median over tasks, and its range.",
        Figure::new(
            format!("Sensitivity to {parameter}"),
            (parameter, true),
            ("final objective over the best", true),
            series.collect(),
        ),
    )
}
