//! The grid search: the settings tried, the choice and the cost.

use super::parts::{framed, heading, pairs, table};
use crate::{
    data::{
        parameters::{Parameters, number},
        summary::{ProblemSummary, Summary, TriedSetting, Tuning, higher_is_better},
    },
    figure::{Figure, Point, Series},
    format::{count, fixed, plain, plural, scientific},
};
use maud::{Markup, html};

/// The section on tuning; empty without a grid search.
pub(super) fn section(summary: &Summary, level: usize) -> Markup {
    let mut problems: Vec<&str> = vec![];
    for tuning in &summary.tuning {
        if !problems.contains(&tuning.problem.as_str()) {
            problems.push(&tuning.problem);
        }
    }
    html! {
        @if !problems.is_empty() {
            section.tuning {
                (heading(level, &html! { "Tuning" }))
                @for name in problems { (problem(summary, name, level + 1)) }
            }
        }
    }
}

fn problem(summary: &Summary, name: &str, level: usize) -> Markup {
    let tunings: Vec<&Tuning> = summary.tuning.iter().filter(|tuning| tuning.problem == name).collect();
    let shown = summary.problems.iter().find(|problem| problem.name == name).and_then(|one| dependence(summary, one));
    html! {
        (heading(level, &html! { (name) }))
        p { (budget(&tunings)) (untuned(summary, name, &tunings)) }
        @if let Some(figure) = shown { div.figures { (framed(&figure)) } }
        @for warning in tunings.iter().flat_map(|tuning| at_edge(tuning)) { p.warning { (warning) } }
        (costs(&tunings))
        div.trials { @for tuning in &tunings { (trials(tuning)) } }
    }
}

/// How much the result depends on each number that a grid varies, with the best choice of the others: the score over the
/// number, relative to its best value. The grid is that of a search or a list in the file. `None` if no number varies.
pub(super) fn dependence(summary: &Summary, problem: &ProblemSummary) -> Option<Figure> {
    let tunings: Vec<&Tuning> = summary.tuning.iter().filter(|tuning| tuning.problem == problem.name).collect();
    let (key, label, log, grids) = if let Some(first) = tunings.first() {
        let log = problem.metrics.iter().any(|known| first.metric.starts_with(&known.key) && known.log);
        let tried = |tuning: &&Tuning| {
            let settings = tuning.tried.iter().map(|trial| (trial.setting.clone(), trial.score));
            (tuning.method.clone(), settings.collect::<Vec<_>>())
        };
        (&first.metric, first.metric.clone(), log, tunings.iter().map(tried).collect::<Vec<_>>())
    } else {
        let metric = problem.metrics.first()?;
        (&metric.key, format!("final {}", metric.label), metric.log, lists(problem, &metric.key))
    };
    let mut series = Vec::new();
    for (method, settings) in &grids {
        let color = problem.methods.iter().position(|known| known.name == *method).unwrap_or(series.len());
        let better: fn(f64, f64) -> f64 = if higher_is_better(key) { f64::max } else { f64::min };
        let sweeps = sweeps(settings, better);
        let single = sweeps.len() == 1;
        for (i, (key, points)) in sweeps.into_iter().enumerate() {
            let name = if single { method.clone() } else { format!("{method}: {key}") };
            series.push(Series { name, color: color + i, points });
        }
    }
    let title = format!("{}: how much the result depends on the setting", problem.name);
    let x = ("setting, relative to the best one", true);
    (!series.is_empty()).then(|| Figure::new(title, x, (&label, log), series))
}

/// Settings with their scores; a setting that failed has none.
type Grid = Vec<(Parameters, Option<f64>)>;

/// The methods with several settings, with the final medians of a metric.
fn lists(problem: &ProblemSummary, key: &str) -> Vec<(String, Grid)> {
    let mut grids: Vec<(String, Grid)> = Vec::new();
    for method in &problem.methods {
        let score = method.last.as_ref().and_then(|at| at.metrics.get(key)).map(|spread| spread.median);
        let setting = (method.hyperparameters.clone(), score);
        match grids.iter_mut().find(|(name, _)| *name == method.name) {
            Some((_, grid)) => grid.push(setting),
            None => grids.push((method.name.clone(), vec![setting])),
        }
    }
    grids.retain(|(_, grid)| grid.len() > 2);
    grids
}

/// For each positive number that a grid varies: the best score at each of its values, which are relative to the best
/// value. The line has a gap at a value where every setting failed.
fn sweeps(grid: &Grid, better: fn(f64, f64) -> f64) -> Vec<(String, Vec<Point>)> {
    let Some((first, _)) = grid.first() else { return Vec::new() };
    let sweep = |key: &String| {
        let mut points: Vec<Point> = Vec::new();
        for (setting, score) in grid {
            let x = setting.get(key).and_then(positive)?;
            match points.iter_mut().find(|point| point.x.total_cmp(&x).is_eq()) {
                // NaN gives way to any number.
                Some(point) => point.y = better(point.y, score.unwrap_or(f64::NAN)),
                None => points.push(Point::at(x, score.unwrap_or(f64::NAN))),
            }
        }
        let best = points.iter().map(|point| point.y).reduce(better)?;
        let center = points.iter().find(|point| point.y.total_cmp(&best).is_eq())?.x;
        for point in &mut points {
            point.x /= center;
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        (points.len() > 1).then(|| (key.clone(), points))
    };
    first.keys().filter_map(sweep).collect()
}

fn positive(value: &toml::Value) -> Option<f64> {
    number(value).filter(|&number| number > 0.0)
}

/// The numbers of a choice at an end of the values tried, with advice.
#[must_use]
pub fn at_edge(tuning: &Tuning) -> Vec<String> {
    let Some(best) = chosen(tuning) else { return Vec::new() };
    let mut warnings = Vec::new();
    for (key, value) in best.setting.iter().filter_map(|(key, value)| Some((key, positive(value)?))) {
        let tried = || tuning.tried.iter().filter_map(|trial| positive(trial.setting.get(key)?));
        let (low, high) = (tried().fold(f64::INFINITY, f64::min), tried().fold(0.0, f64::max));
        let (end, more) = if value >= high { ("largest", "larger") } else { ("smallest", "smaller") };
        if low < high && (value <= low || value >= high) {
            let value = plain(&best.setting[key]);
            warnings.push(format!("{}: {key} = {value} is the {end} value tried. Try {more} ones.", tuning.method));
        }
    }
    warnings
}

/// Whether the methods had the same budget.
fn budget(tunings: &[&Tuning]) -> Markup {
    let size = |tuning: &Tuning| (tuning.tried.len(), tuning.cost.runs);
    let seeds = |tuning: &Tuning| tuning.cost.runs / (tuning.tried.len() as u64).max(1);
    match tunings {
        [] => Markup::default(),
        [first, rest @ ..] if rest.iter().all(|tuning| size(tuning) == size(first)) => {
            let who = if rest.is_empty() { "One method was tuned: it" } else { "Budgets are equal: every method" };
            let each = if first.tried.len() == 1 { "" } else { " each" };
            let settings = plural(first.tried.len(), "setting");
            html! { (who) " tried " (settings) " with " (plural(seeds(first) as usize, "seed")) (each) "." }
        }
        _ => {
            let one = |tuning: &&Tuning| {
                let settings = plural(tuning.tried.len(), "setting");
                format!("{} tried {settings} in {}", tuning.method, plural(tuning.cost.runs as usize, "run"))
            };
            let all = tunings.iter().map(one).collect::<Vec<_>>().join("; ");
            html! { "Budgets are " strong { "not" } " equal: " (all) "." }
        }
    }
}

/// The methods that were not tuned.
fn untuned(summary: &Summary, name: &str, tunings: &[&Tuning]) -> String {
    let mut untuned: Vec<&str> = summary
        .problems
        .iter()
        .filter(|problem| problem.name == name)
        .flat_map(|problem| &problem.methods)
        .filter(|method| !tunings.iter().any(|tuning| tuning.method == method.name))
        .map(|method| method.label.as_str())
        .collect();
    untuned.dedup();
    if untuned.is_empty() { String::new() } else { format!(" Not tuned: {}.", untuned.join(", ")) }
}

/// The choice of each method and its cost.
fn costs(tunings: &[&Tuning]) -> Markup {
    let row = |tuning: &Tuning| {
        let cost = &tuning.cost;
        let counts = [tuning.tried.len() as u64, cost.runs, cost.failed, cost.gradients, cost.values];
        html! {
            tr {
                th scope="row" { (tuning.method) }
                td.left {
                    @if let Some(trial) = chosen(tuning) { (pairs(&trial.setting)) }
                    @else { "none: every setting failed" }
                }
                @for number in counts { td { (count(number as f64)) } }
                td { (fixed(cost.seconds, 1)) }
            }
        }
    };
    let head = html! {
        tr {
            th scope="col" { "method" }
            th.left scope="col" { "chosen" }
            @for head in ["settings", "runs", "failed", "gradients", "values", "seconds"] { th scope="col" { (head) } }
        }
    };
    let caption = html! { "The choice and its cost, without the cost of failed runs." };
    table("numbers", "Cost of tuning", &caption, &head, &html! { @for tuning in tunings { (row(tuning)) } })
}

/// The best setting, if it has a score.
fn chosen(tuning: &Tuning) -> Option<&TriedSetting> {
    tuning.tried.first().filter(|trial| trial.score.is_some())
}

/// The settings of one method, best first.
fn trials(tuning: &Tuning) -> Markup {
    let row = |best: bool, trial: &TriedSetting| {
        html! {
            tr class=[best.then_some("best")] {
                td.left { (pairs(&trial.setting)) }
                td {
                    @if best { span.mark aria-label="chosen" role="img" { "★" } " " }
                    (trial.score.map_or("failed".into(), scientific))
                }
            }
        }
    };
    let caption = html! { strong { (tuning.method) } ", by the median of " (tuning.metric) };
    let head = html! { tr { th.left scope="col" { "setting" } th scope="col" { "score" } } };
    let body = html! {
        @for (i, trial) in tuning.tried.iter().enumerate() { (row(i == 0 && trial.score.is_some(), trial)) }
    };
    table("numbers", &format!("Settings tried for {}", tuning.method), &caption, &head, &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::summary::TuningCost;

    fn setting(rate: f64, momentum: f64) -> Parameters {
        Parameters::from([("momentum".into(), momentum.into()), ("rate".into(), rate.into())])
    }

    #[test]
    fn each_number_is_varied_with_the_best_choice_of_the_others() {
        let grid = vec![
            (setting(0.1, 0.5), Some(4.0)),
            (setting(0.2, 0.5), Some(3.0)),
            (setting(0.1, 0.9), Some(1.0)),
            (setting(0.2, 0.9), None),
        ];
        let found = sweeps(&grid, f64::min);
        let lines: Vec<_> = found
            .iter()
            .map(|(key, points)| (key.as_str(), points.iter().map(|p| (p.x, p.y)).collect::<Vec<_>>()))
            .collect();
        let momentum = ("momentum", vec![(0.5 / 0.9, 3.0), (1.0, 1.0)]);
        let rate = ("rate", vec![(1.0, 1.0), (2.0, 3.0)]);
        assert_eq!(lines, [momentum, rate]);
        assert!(sweeps(&grid[..1].to_vec(), f64::min).is_empty(), "one setting varies nothing");
    }

    #[test]
    fn a_choice_at_the_end_of_a_grid_is_reported() {
        let tuning = |best: f64| {
            let mut rates = [0.1, 0.2, 0.3];
            rates.sort_by_key(|rate| (rate - best).abs() > 1e-9);
            let tried = rates.iter().map(|&rate| TriedSetting {
                setting: Parameters::from([("rate".into(), rate.into())]),
                score: Some(1.0),
            });
            Tuning {
                problem: "p".into(),
                method: "sgd".into(),
                metric: "gap".into(),
                tried: tried.collect(),
                cost: TuningCost::default(),
            }
        };
        assert_eq!(at_edge(&tuning(0.3)), ["sgd: rate = 0.3 is the largest value tried. Try larger ones."]);
        assert_eq!(at_edge(&tuning(0.1)), ["sgd: rate = 0.1 is the smallest value tried. Try smaller ones."]);
        assert!(at_edge(&tuning(0.2)).is_empty());
    }
}
