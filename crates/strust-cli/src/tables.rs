//! A summary as text: the overview for the terminal, and the Markdown tables.

use crate::{
    args::Shared,
    show::{heading, table},
};
use std::{collections::BTreeSet, fmt::Write as _};
use strust_lab::{
    data::{
        benchmark::Role,
        summary::{CurvePoint, MethodSummary, Metric, ProblemSummary, Spread, Summary, higher_is_better},
    },
    format::{brief, plain, plain_number, plural},
    report::at_edge,
};

/// The final values of every method, the settings chosen by a grid search, and the theory checks.
pub fn overview(summary: &Summary, shared: &Shared) -> String {
    let mut text = format!("{}\n", heading(&summary.title, shared));
    text.push_str(&checks(summary));
    text.push_str(&tasks(summary));
    for (_, problem) in summary.with_curves() {
        let _ = writeln!(text, "\n{}: medians over seeds, epoch {}", problem.name, summary.epochs);
        text.push_str(&table(&final_values(problem)));
    }
    for tuning in &summary.tuning {
        let Some(best) = tuning.tried.first() else { continue };
        let setting = best.setting.iter().map(|(name, value)| format!("{name} = {}", plain(value)));
        let result = match (best.score, tuning.tried.len()) {
            (None, tried) => format!("no setting is chosen, because each of {} failed", plural(tried, "setting")),
            (Some(_), 1) => "the only setting".into(),
            (Some(_), tried) => format!("{}, the best of {tried} settings", setting.collect::<Vec<_>>().join(", ")),
        };
        let _ = writeln!(text, "\n{} on {}: {result}", tuning.method, tuning.problem);
        for warning in at_edge(tuning) {
            let _ = writeln!(text, "  {warning}");
        }
    }
    text.push('\n');
    text
}

/// The medians of the last epoch: a header and a row for each method.
fn final_values(problem: &ProblemSummary) -> Vec<Vec<String>> {
    let last = |of: &dyn Fn(&CurvePoint) -> Option<f64>| -> Vec<Option<f64>> {
        problem.methods.iter().map(|method| method.last.as_ref().and_then(of)).collect()
    };
    let share = |value: f64, decimals: usize| format!("{:.decimals$} %", 100.0 * value);
    let mut columns: Vec<(&str, Vec<String>)> = Vec::new();
    for Metric { key, log, .. } in &problem.metrics {
        let medians = last(&|at| at.metrics.get(key).map(|spread| spread.median));
        columns.push((key, if *log { numbers(&medians) } else { distinct(&medians, 1, share) }));
    }
    // Further digits of a time are noise.
    let seconds = |seconds: f64| {
        let decimals = (2.0 - seconds.log10().floor()).clamp(3.0, 6.0) as usize;
        format!("{seconds:.decimals$}")
    };
    columns.push(("seconds", distinct(&last(&|at| Some(at.seconds.median)), 0, |value, _| seconds(value))));
    let gradients = last(&|at| Some(at.evaluations.gradients));
    columns.push(("gradients", distinct(&gradients, 0, |value, _| format!("{value:.0}"))));
    let accepted: Vec<_> = problem.methods.iter().map(|method| Some(method.acceptance_rate)).collect();
    columns.push(("accepted", distinct(&accepted, 1, share)));
    columns.push(("seeds", problem.methods.iter().map(seeds_done).collect()));
    let header = std::iter::once("method").chain(columns.iter().map(|(name, _)| *name)).map(String::from).collect();
    let row = |(i, method): (usize, &MethodSummary)| match method.last {
        None => vec![method.label.clone(), "no seed finished".into()],
        Some(_) => {
            std::iter::once(method.label.clone()).chain(columns.iter().map(|(_, cells)| cells[i].clone())).collect()
        }
    };
    std::iter::once(header).chain(problem.methods.iter().enumerate().map(row)).collect()
}

/// Decimals of a column at most. Numbers that differ beyond them are equal up to rounding.
const MOST_DECIMALS: usize = 11;

/// The numbers of a column with as many decimals as it takes to tell different ones apart, but at least `decimals`.
fn distinct(numbers: &[Option<f64>], decimals: usize, show: impl Fn(f64, usize) -> String) -> Vec<String> {
    let shown = |decimals| -> Vec<String> {
        numbers.iter().map(|number| number.map_or("–".into(), |number| show(number, decimals))).collect()
    };
    let different = |cells: &Vec<String>| cells.iter().collect::<BTreeSet<_>>().len();
    let most = different(&shown(MOST_DECIMALS));
    (decimals..=MOST_DECIMALS).map(shown).find(|cells| different(cells) == most).unwrap_or_default()
}

/// Numbers in scientific notation, of at least three digits.
fn numbers(numbers: &[Option<f64>]) -> Vec<String> {
    distinct(numbers, 2, |value, decimals| format!("{value:.decimals$e}"))
}

/// The tasks of a benchmark, and those that were skipped.
fn tasks(summary: &Summary) -> String {
    if summary.tasks.is_empty() && summary.skipped.is_empty() {
        return String::new();
    }
    let number = |number: Option<f64>| number.map_or("–".into(), plain_number);
    let tested = summary.tasks.iter().flat_map(|task| &task.methods).find(|method| method.role == Role::Tested);
    let tested = tested.map_or("tested", |method| method.label.as_str());
    let header = ["task", "half", "best tuned", "its value", tested, "ratio", "steps", "within"];
    let mut rows = vec![header.map(String::from).to_vec()];
    for task in &summary.tasks {
        let best = task.best_tuned.as_ref();
        let values = numbers(&[best.map(|best| best.value), task.tested]);
        rows.push(vec![
            task.name.clone(),
            task.half.word().into(),
            best.map_or("–".into(), |best| best.method.clone()),
            task.judge.with_unit(values[0].clone()),
            if task.tested.is_some() { values[1].clone() } else { "failed".into() },
            number(task.ratio),
            number(task.steps_ratio),
            if task.within { "yes" } else { "no" }.into(),
        ]);
    }
    let mut text = format!("\n{}", table(&rows));
    for skipped in &summary.skipped {
        let _ = writeln!(text, "skipped {}: {}", skipped.name, skipped.why);
    }
    text
}

/// The checks, one line each, grouped by experiment.
fn checks(summary: &Summary) -> String {
    let mut text = String::new();
    for section in summary.sections.iter().filter(|section| !section.checks.is_empty()) {
        let _ = writeln!(text, "\n{}", section.title);
        for check in &section.checks {
            if check.is_open() {
                let _ = writeln!(text, "  open   {}: {}", check.name, check.why);
                continue;
            }
            let verdict = if check.holds { "holds" } else { "FAILS" };
            let (measured, bound) = (plain_number(check.measured), plain_number(check.bound));
            let _ = writeln!(text, "  {verdict}  {}: {measured}, claimed {} {bound}", check.name, check.claim.sign());
        }
    }
    text
}

/// A share in per cent; a dash for none.
pub fn shown_share(share: f64) -> String {
    if share.is_nan() { "–".into() } else { format!("{:.1} %", 100.0 * share) }
}

/// The header and a row for each class: the number of its `items`, the share of them that is found, and the share of its
/// predictions that is right. `share` shows a part of a whole.
pub fn by_class(
    names: &[String],
    confusion: &[Vec<u64>],
    items: &str,
    share: impl Fn(u64, u64) -> String,
) -> Vec<Vec<String>> {
    let row = |(c, name): (usize, &String)| {
        let (right, items): (u64, u64) = (confusion[c][c], confusion[c].iter().sum());
        let predicted = confusion.iter().map(|row| row[c]).sum();
        vec![name.clone(), items.to_string(), share(right, items), share(right, predicted)]
    };
    let header = ["class", items, "recall", "precision"].map(String::from).to_vec();
    std::iter::once(header).chain(names.iter().enumerate().map(row)).collect()
}

/// The header and a row for each true class, with the numbers of its predictions.
pub fn confusion(names: &[String], confusion: &[Vec<u64>]) -> Vec<Vec<String>> {
    let line = |first: &str, rest: Vec<String>| [vec![first.to_string()], rest].concat();
    let row = |(name, counts): (&String, &Vec<u64>)| line(name, counts.iter().map(u64::to_string).collect());
    let header = line("true \\ predicted", names.to_vec());
    std::iter::once(header).chain(names.iter().zip(confusion).map(row)).collect()
}

/// The contents of the Markdown tables.
pub struct Tables {
    /// The epochs to show.
    pub at: Vec<u64>,
    /// Show mean ± standard deviation instead of the median.
    pub mean: bool,
    /// LaTeX instead of Markdown.
    pub latex: bool,
}

/// One LaTeX table per problem and metric, for the package booktabs: values at the given epochs, the best of an epoch in
/// bold.
pub fn latex_tables(summary: &Summary, Tables { at, mean, .. }: &Tables) -> String {
    let mut text = String::new();
    for (_, problem) in summary.with_curves() {
        for metric in &problem.metrics {
            let _ = writeln!(text, "% {}: {}, by epoch", problem.name, metric.label);
            let _ = writeln!(text, "\\begin{{tabular}}{{l{}}}\n\\toprule", "r".repeat(at.len()));
            let epochs = at.iter().fold(String::new(), |row, epoch| format!("{row} & {epoch}"));
            let _ = writeln!(text, "method{epochs} \\\\\n\\midrule");
            let value = |method: &MethodSummary, epoch: u64| {
                let point = method.curve.iter().find(|point| point.epoch == epoch)?;
                let spread = point.metrics.get(&metric.key)?;
                Some(if *mean { spread.mean } else { spread.median })
            };
            let cost = |value: f64| if higher_is_better(&metric.key) { -value } else { value };
            let best = |epoch: u64| {
                let costs = problem.methods.iter().filter_map(|method| value(method, epoch)).map(cost);
                costs.min_by(f64::total_cmp)
            };
            for method in &problem.methods {
                let _ = write!(text, "{}", latex(&method.label));
                for &epoch in at {
                    let shown = cell(method, epoch, std::slice::from_ref(metric), *mean);
                    let is_best =
                        value(method, epoch).map(cost).zip(best(epoch)).is_some_and(|(a, b)| a.total_cmp(&b).is_eq());
                    let shown = latex_number(&shown);
                    // \textbf has no effect on formulas.
                    let _ = if is_best {
                        write!(text, " & {{\\bfseries\\boldmath {shown}}}")
                    } else {
                        write!(text, " & {shown}")
                    };
                }
                text.push_str(" \\\\\n");
            }
            text.push_str("\\bottomrule\n\\end{tabular}\n\n");
        }
    }
    text
}

/// Text for LaTeX.
fn latex(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '#' | '$' | '%' | '&' | '_' | '{' | '}' => out.extend(['\\', c]),
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            c => out.push(c),
        }
        out
    })
}

/// A cell of numbers such as 1.2e-3 or 0.5 ± 0.1 for LaTeX.
fn latex_number(cell: &str) -> String {
    let word = |word: &str| match word.split_once('e') {
        Some((digits, exponent)) if digits.parse::<f64>().is_ok() && exponent.parse::<i32>().is_ok() => {
            format!("${digits}\\cdot 10^{{{exponent}}}$")
        }
        _ if word == "±" => "$\\pm$".into(),
        _ if word == "–" => "--".into(),
        _ => latex(word),
    };
    cell.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// One table per problem: medians or means at the given epochs.
pub fn markdown_tables(summary: &Summary, Tables { at, mean, .. }: &Tables) -> String {
    let what = if *mean { "mean ± standard deviation" } else { "median" };
    let mut text = checks_as_markdown(summary) + &tasks_as_markdown(summary);
    for (_, problem) in summary.with_curves() {
        let seeds: BTreeSet<String> = problem.methods.iter().map(seeds_done).collect();
        let seeds = seeds.into_iter().collect::<Vec<_>>().join(" or ");
        let labels: Vec<&str> = problem.metrics.iter().map(|m| m.label.as_str()).collect();
        let _ = writeln!(
            text,
            "**{}**, {}: {what} over {seeds} {} of {}, by epoch.\n",
            problem.name,
            problem.title,
            if seeds == "1" { "seed" } else { "seeds" },
            labels.join(" / ")
        );
        let _ = writeln!(text, "| method | {} |", at.iter().map(u64::to_string).collect::<Vec<_>>().join(" | "));
        let _ = writeln!(text, "|---|{}", "---|".repeat(at.len()));
        for method in &problem.methods {
            let cells = at.iter().map(|&epoch| cell(method, epoch, &problem.metrics, *mean));
            let _ = writeln!(text, "| {} | {} |", method.label, cells.collect::<Vec<_>>().join(" | "));
        }
        text.push('\n');
    }
    text
}

/// The number of seeds that finished, with the total if some failed.
fn seeds_done(method: &MethodSummary) -> String {
    match (method.seeds.len(), method.failures.len()) {
        (done, 0) => done.to_string(),
        (done, failed) => format!("{done} of {}", done + failed),
    }
}

fn cell(method: &MethodSummary, epoch: u64, metrics: &[Metric], mean: bool) -> String {
    let point = method.curve.iter().find(|p| p.epoch == epoch);
    let show = if mean { with_deviation } else { shown };
    let values = metrics.iter().map(|metric| point.map_or("–".into(), |point| show(metric, point)));
    values.collect::<Vec<_>>().join(" / ")
}

/// The median of a metric: a share in percent, other values in scientific notation.
fn shown(metric: &Metric, point: &CurvePoint) -> String {
    let Some(spread) = point.metrics.get(&metric.key) else { return "–".into() };
    if metric.log { brief(spread.median) } else { format!("{:.1} %", 100.0 * spread.median) }
}

/// Mean ± standard deviation.
fn with_deviation(metric: &Metric, point: &CurvePoint) -> String {
    let Some(Spread { mean, std, .. }) = point.metrics.get(&metric.key) else { return "–".into() };
    if *std == 0.0 {
        // Usually there is only one seed, so the deviation means nothing.
        shown(metric, point)
    } else if metric.log {
        // Further digits than two of the deviation are noise.
        let digits = (1.0 - std.log10().floor()).clamp(0.0, 6.0) as usize;
        format!("{mean:.digits$} ± {std:.digits$}")
    } else {
        format!("{:.2} ± {:.2} %", 100.0 * mean, 100.0 * std)
    }
}

/// The tasks of a benchmark as a table.
fn tasks_as_markdown(summary: &Summary) -> String {
    if summary.tasks.is_empty() {
        return String::new();
    }
    let number = |number: Option<f64>| number.map_or("–".into(), plain_number);
    let mut text = String::from(
        "| task | half | best tuned | its value | ratio | steps ratio | at equal passes | test metric, best tuned | price |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for task in &summary.tasks {
        let (method, value) = task
            .best_tuned
            .as_ref()
            .map_or(("–", "–".into()), |best| (best.method.as_str(), task.judge.with_unit(brief(best.value))));
        let test = task.test.as_ref().map_or("–".into(), |test| {
            let shown = |spread: &Spread| format!("{:.4} ± {:.4}", spread.mean, spread.std);
            format!("{}, {}", shown(&test.tested), shown(&test.best_tuned))
        });
        let (steps, passes) = (number(task.steps_ratio), number(task.ratio_at_equal_passes));
        let ratio = task.ratio.map_or("failed".into(), plain_number);
        let mark = if task.within { "" } else { " ✗" };
        let _ = writeln!(
            text,
            "| {} | {} | {method} | {value} | {ratio}{mark} | {steps} | {passes} | {test} | {} |",
            task.name,
            task.half.word(),
            number(task.price)
        );
    }
    for skipped in &summary.skipped {
        let _ = writeln!(text, "| {} | {} | skipped | | | | | | |", skipped.name, skipped.half.word());
    }
    text.push('\n');
    text
}

/// The checks as a table.
fn checks_as_markdown(summary: &Summary) -> String {
    let mut text = String::new();
    for section in summary.sections.iter().filter(|section| !section.checks.is_empty()) {
        let _ = writeln!(text, "**{}**\n\n| check | measured | claimed | verdict |\n|---|---|---|---|", section.title);
        for check in &section.checks {
            let name = check.name.replace('|', "\\|");
            let (measured, sign, bound) = (plain_number(check.measured), check.claim.sign(), plain_number(check.bound));
            let _ = writeln!(text, "| {name} | {measured} | {sign} {bound} | {} |", check.verdict());
        }
        text.push('\n');
    }
    text
}

/// A number in the units of a target: four digits.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1e7 || (size > 0.0 && size < 1e-3) {
        return format!("{value:.3e}");
    }
    let decimals = if size >= 1000.0 {
        0
    } else if size >= 10.0 {
        2
    } else {
        4
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_differ_look_different_and_have_three_digits() {
        assert_eq!(numbers(&[Some(0.012_34), None, Some(0.5)]), ["1.23e-2", "–", "5.00e-1"]);
        assert_eq!(numbers(&[Some(1.234_1), Some(1.234_2), Some(1.234_2)]), ["1.2341e0", "1.2342e0", "1.2342e0"]);
        let next = f64::from_bits(1_f64.to_bits() + 1);
        assert_eq!(numbers(&[Some(1.0), Some(next)]), ["1.00e0"; 2], "equal up to rounding");
        let share = |value: f64, decimals: usize| format!("{:.decimals$} %", 100.0 * value);
        assert_eq!(distinct(&[Some(0.9), Some(0.9004)], 1, share), ["90.00 %", "90.04 %"]);
    }
}
