//! The grid search: the settings tried, the choice and the cost.

use super::parts::{boxed, framed, heading, pairs};
use crate::{
    data::summary::{ProblemSummary, Summary, TriedSetting, Tuning},
    figure::{Axis, Figure, Point, Series},
    format::{count, fixed, plural, scientific},
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
        (costs(&tunings))
        div.trials { @for tuning in &tunings { (trials(tuning)) } }
    }
}

/// How much the result depends on the setting: the score of every setting over the number that the grid varies, relative
/// to the best value. `None` if no grid varies exactly one number.
pub(super) fn dependence(summary: &Summary, problem: &ProblemSummary) -> Option<Figure> {
    let series = |tuning: &Tuning| {
        let best = only_number(chosen(tuning)?)?;
        let mut points: Vec<Point> = Vec::new();
        for trial in &tuning.tried {
            // The line has a gap at a failed setting.
            let (x, y) = (only_number(trial)? / best, trial.score.unwrap_or(f64::NAN));
            points.push(Point { x, y, low: f64::NAN, high: f64::NAN });
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let color = problem.methods.iter().position(|method| method.name == tuning.method)?;
        Some(Series { name: tuning.method.clone(), color, points })
    };
    let tunings: Vec<&Tuning> = summary.tuning.iter().filter(|tuning| tuning.problem == problem.name).collect();
    let series: Vec<Series> = tunings.iter().filter_map(|tuning| series(tuning)).collect();
    let metric = &tunings.first().filter(|_| !series.is_empty())?.metric;
    let log = problem.metrics.iter().any(|known| metric.starts_with(&known.key) && known.log);
    Some(Figure {
        title: format!("{}: how much the result depends on the setting", problem.name),
        x: Axis { label: "setting, relative to the best one".into(), log: true },
        y: Axis { label: metric.clone(), log },
        series,
    })
}

/// The number of a setting that consists of one positive number.
fn only_number(trial: &TriedSetting) -> Option<f64> {
    let mut values = trial.setting.values();
    let value = values.next().filter(|_| trial.setting.len() == 1)?;
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64)).filter(|&number| number > 0.0)
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
    let table = html! {
        table.numbers {
            caption {
                span { "The choice and its cost, without the cost of failed runs." }
            }
            thead {
                tr {
                    th scope="col" { "method" }
                    th.left scope="col" { "chosen" }
                    @for head in ["settings", "runs", "failed", "gradients", "values", "seconds"] {
                        th scope="col" { (head) }
                    }
                }
            }
            tbody { @for tuning in tunings { (row(tuning)) } }
        }
    };
    boxed("Cost of tuning", &table)
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
    let table = html! {
        table.numbers {
            caption { span { strong { (tuning.method) } ", by the median of " (tuning.metric) } }
            thead { tr { th.left scope="col" { "setting" } th scope="col" { "score" } } }
            tbody {
                @for (i, trial) in tuning.tried.iter().enumerate() { (row(i == 0 && trial.score.is_some(), trial)) }
            }
        }
    };
    boxed(&format!("Settings tried for {}", tuning.method), &table)
}
