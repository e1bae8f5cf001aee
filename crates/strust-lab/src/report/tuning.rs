//! What a grid search tried, what it chose and what it cost.

use super::format::{count, fixed, pairs, plural, scientific};
use super::tables::boxed;
use crate::figure::escape;
use crate::summary::{Summary, Trial, Tuning};

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
    format!(
        "<h{level}>{}</h{level}>\n<p>{}</p>\n{}<div class=\"trials\">\n{tables}</div>\n",
        escape(name),
        budget(summary, name, &tunings),
        costs(&tunings),
    )
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
