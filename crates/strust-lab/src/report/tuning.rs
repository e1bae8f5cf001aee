//! What a grid search tried, what it chose and what it cost.

use super::curves::framed;
use super::format::{count, fixed, pairs, plural, scientific};
use super::tables::boxed;
use crate::figure::{Axis, Figure, Point, Series, escape};
use crate::summary::{ProblemSummary, Summary, Trial, Tuning};

/// The section on tuning; nothing if there was none.
pub(super) fn section(summary: &Summary, level: usize) -> String {
    if summary.tuning.is_empty() {
        return String::new();
    }
    let mut problems: Vec<&str> = vec![];
    for tuning in &summary.tuning {
        if !problems.contains(&tuning.problem.as_str()) {
            problems.push(&tuning.problem);
        }
    }
    let parts: String = problems.into_iter().map(|name| problem(summary, name, level + 1)).collect();
    format!("<section class=\"tuning\">\n<h{level}>Tuning</h{level}>\n{parts}</section>\n")
}

fn problem(summary: &Summary, name: &str, level: usize) -> String {
    let tunings: Vec<&Tuning> = summary.tuning.iter().filter(|tuning| tuning.problem == name).collect();
    let tables: String = tunings.iter().map(|tuning| trials(tuning)).collect();
    let shown = summary.problems.iter().find(|problem| problem.name == name).and_then(|one| dependence(summary, one));
    let figure = shown.map_or(String::new(), |figure| format!("<div class=\"figures\">\n{}</div>\n", framed(&figure)));
    format!(
        "<h{level}>{}</h{level}>\n<p>{}</p>\n{figure}{}<div class=\"trials\">\n{tables}</div>\n",
        escape(name),
        budget(summary, name, &tunings),
        costs(&tunings),
    )
}

/// How much the result depends on the setting: the score of every setting against the number that the grid of a method
/// varies, in units of its best one. Nothing where no grid varies one number alone.
pub(super) fn dependence(summary: &Summary, problem: &ProblemSummary) -> Option<Figure> {
    let series = |tuning: &Tuning| {
        let best = only_number(chosen(tuning)?)?;
        let mut points: Vec<Point> = Vec::new();
        for trial in &tuning.tried {
            // A setting that failed breaks the line.
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
        x: Axis { label: "setting, in units of the best one".into(), log: true },
        y: Axis { label: metric.clone(), log },
        series,
    })
}

/// The number that a setting is, if it is one positive number.
fn only_number(trial: &Trial) -> Option<f64> {
    let mut values = trial.setting.values();
    let value = values.next().filter(|_| trial.setting.len() == 1)?;
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64)).filter(|&number| number > 0.0)
}

/// Whether the methods were given the same chances.
fn budget(summary: &Summary, name: &str, tunings: &[&Tuning]) -> String {
    let size = |tuning: &Tuning| (tuning.tried.len(), tuning.cost.runs);
    let seeds = |tuning: &Tuning| tuning.cost.runs / (tuning.tried.len() as u64).max(1);
    let sentence = match tunings {
        [] => String::new(),
        [first, rest @ ..] if rest.iter().all(|tuning| size(tuning) == size(first)) => {
            let who = if rest.is_empty() { "One method was tuned: it" } else { "Budgets are equal: every method" };
            let each = if first.tried.len() == 1 { "" } else { " each" };
            format!(
                "{who} tried {} with {}{each}.",
                plural(first.tried.len(), "setting"),
                plural(seeds(first) as usize, "seed")
            )
        }
        _ => {
            let one = |tuning: &&Tuning| {
                format!(
                    "{} tried {} in {}",
                    escape(&tuning.method),
                    plural(tuning.tried.len(), "setting"),
                    plural(tuning.cost.runs as usize, "run")
                )
            };
            format!(
                "Budgets are <strong>not</strong> equal: {}.",
                tunings.iter().map(one).collect::<Vec<_>>().join("; ")
            )
        }
    };
    let mut untuned: Vec<String> = summary
        .problems
        .iter()
        .filter(|problem| problem.name == name)
        .flat_map(|problem| &problem.methods)
        .filter(|method| !tunings.iter().any(|tuning| tuning.method == method.name))
        .map(|method| escape(&method.label))
        .collect();
    untuned.dedup();
    if untuned.is_empty() { sentence } else { format!("{sentence} Not tuned: {}.", untuned.join(", ")) }
}

/// What each method chose and what that cost.
fn costs(tunings: &[&Tuning]) -> String {
    let row = |tuning: &&Tuning| {
        let cost = &tuning.cost;
        let numbers =
            [tuning.tried.len() as u64, cost.runs, cost.failed, cost.gradients, cost.values].map(|n| count(n as f64));
        format!(
            "<tr><th scope=\"row\">{}</th><td class=\"left\">{}</td>{}<td>{}</td></tr>\n",
            escape(&tuning.method),
            chosen(tuning).map_or(String::from("none: every setting failed"), |trial| pairs(&trial.setting)),
            numbers.map(|number| format!("<td>{number}</td>")).concat(),
            fixed(cost.seconds, 1),
        )
    };
    let heads = ["settings", "runs", "broke down", "gradients", "values", "seconds"]
        .map(|head| format!("<th scope=\"col\">{head}</th>"));
    boxed(
        &format!(
            "<table class=\"numbers\">\n<caption><span>The choice, and what it cost; what runs spent before they broke down is not counted.</span></caption>\n\
         <thead><tr><th scope=\"col\">method</th><th scope=\"col\" class=\"left\">chosen</th>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>\n",
            heads.concat(),
            tunings.iter().map(row).collect::<String>()
        ),
        "Cost of tuning",
    )
}

/// The best setting, if it has a score.
fn chosen(tuning: &Tuning) -> Option<&Trial> {
    tuning.tried.first().filter(|trial| trial.score.is_some())
}

/// The settings of one method, best first.
fn trials(tuning: &Tuning) -> String {
    let row = |(i, trial): (usize, &Trial)| {
        let best = i == 0 && trial.score.is_some();
        let mark = if best { "<span class=\"mark\" aria-label=\"chosen\" role=\"img\">★</span> " } else { "" };
        let class = if best { " class=\"best\"" } else { "" };
        let score = trial.score.map_or(String::from("failed"), scientific);
        format!("<tr{class}><td class=\"left\">{}</td><td>{mark}{score}</td></tr>\n", pairs(&trial.setting))
    };
    let name = escape(&tuning.method);
    boxed(
        &format!(
            "<table class=\"numbers\">\n<caption><span><strong>{name}</strong>, by the median of {}</span></caption>\n\
         <thead><tr><th scope=\"col\" class=\"left\">setting</th><th scope=\"col\">score</th></tr></thead>\n<tbody>\n{}</tbody>\n</table>\n",
            escape(&tuning.metric),
            tuning.tried.iter().enumerate().map(row).collect::<String>()
        ),
        &format!("Settings tried for {name}"),
    )
}
