//! The tables of a problem: where every method ended, with which settings, and what went wrong.

use super::format::{NOTHING, count, fixed, pairs, plural, scientific};
use crate::figure::{escape, key};
use crate::summary::{CurvePoint, MethodSummary, Metric, ProblemSummary};

/// Which value of a column is worth a mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Best {
    Lowest,
    Highest,
    None,
}

/// One column of numbers, a cell a method.
struct Column {
    title: &'static str,
    cells: Vec<String>,
    best: Vec<bool>,
}

impl Column {
    /// A column of what `value` finds, shown by `show`.
    fn new<T>(
        title: &'static str,
        methods: &[MethodSummary],
        best: Best,
        find: impl Fn(&MethodSummary) -> Option<T>,
        value: impl Fn(&T) -> f64,
        show: impl Fn(&T) -> String,
    ) -> Self {
        let found: Vec<Option<T>> = methods.iter().map(find).collect();
        let values: Vec<Option<f64>> = found.iter().map(|entry| entry.as_ref().map(&value)).collect();
        let cells = found.iter().map(|entry| entry.as_ref().map_or(NOTHING.to_owned(), &show)).collect();
        Self { title, cells, best: marks(&values, best) }
    }
}

/// The best values of a column; none if all are equally good.
fn marks(values: &[Option<f64>], best: Best) -> Vec<bool> {
    let finite = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let good = |value: f64| match best {
        Best::Lowest => value <= low,
        Best::Highest => value >= high,
        Best::None => false,
    };
    let good: Vec<bool> = values.iter().map(|value| value.is_some_and(|v| v.is_finite() && good(v))).collect();
    if good.iter().all(|good| *good) { vec![false; good.len()] } else { good }
}

/// A metric is an error or a loss, so low is good, unless its name says otherwise.
fn direction(metric: &Metric) -> Best {
    if metric.key.contains("accuracy") { Best::Highest } else { Best::Lowest }
}

/// Where every method ended.
pub(super) fn finals(problem: &ProblemSummary) -> String {
    let methods = &problem.methods;
    let last = |read: fn(&CurvePoint) -> f64| move |method: &MethodSummary| method.last.as_ref().map(read);
    let mut groups: Vec<(String, Vec<Column>)> =
        problem.metrics.iter().map(|metric| (escape(&metric.label), metric_columns(metric, methods))).collect();
    let number = |value: &f64| *value;
    let whole = |value: &f64| count(*value);
    groups.push((
        String::from("cost"),
        vec![
            Column::new("seconds", methods, Best::Lowest, last(|at| at.seconds.mean), number, |s| fixed(*s, 3)),
            Column::new("gradients", methods, Best::Lowest, last(|at| at.evaluations.gradients), number, whole),
            Column::new("values", methods, Best::Lowest, last(|at| at.evaluations.values), number, whole),
        ],
    ));
    let accepted = |method: &MethodSummary| method.last.as_ref().map(|_| 100.0 * method.acceptance_rate);
    let failed = |method: &MethodSummary| format!("{} / {}", method.seeds.len(), method.failures.len());
    groups.push((
        String::from("runs"),
        vec![
            Column::new("accepted", methods, Best::None, accepted, number, |share| fixed(*share, 1) + " %"),
            Column::new("done / failed", methods, Best::None, |m| Some(failed(m)), |_| f64::NAN, String::clone),
        ],
    ));

    let columns: Vec<&Column> = groups.iter().flat_map(|(_, columns)| columns).collect();
    let heads: String = groups
        .iter()
        .map(|(name, columns)| {
            format!("<th scope=\"colgroup\" colspan=\"{}\" class=\"group\">{name}</th>", columns.len())
        })
        .collect();
    let titles: String = groups
        .iter()
        .flat_map(|(_, columns)| columns.iter().enumerate())
        .map(|(i, column)| {
            format!("<th scope=\"col\"{}>{}</th>", if i == 0 { " class=\"group\"" } else { "" }, column.title)
        })
        .collect();
    let starts: Vec<bool> = groups.iter().flat_map(|(_, columns)| (0..columns.len()).map(|i| i == 0)).collect();
    let row = |(i, method): (usize, &MethodSummary)| {
        let cells = columns.iter().zip(&starts).map(|(column, start)| cell(&column.cells[i], column.best[i], *start));
        format!("<tr><th scope=\"row\">{}{}</th>{}</tr>\n", key(i), escape(&method.label), cells.collect::<String>())
    };
    let rows: String = methods.iter().enumerate().map(row).collect();
    boxed(
        &format!(
            "<table class=\"numbers\">\n<caption><span>Final values over the seeds that finished. <span class=\"mark\">★</span> marks the best of a column.</span></caption>\n\
         <thead>\n<tr><th scope=\"col\" rowspan=\"2\">method</th>{heads}</tr>\n<tr>{titles}</tr>\n</thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
        ),
        "Final values",
    )
}

fn cell(text: &str, best: bool, start: bool) -> String {
    let class = match (best, start) {
        (true, true) => " class=\"best group\"",
        (true, false) => " class=\"best\"",
        (false, true) => " class=\"group\"",
        (false, false) => "",
    };
    let mark = if best { "<span class=\"mark\" aria-label=\"best\" role=\"img\">★</span> " } else { "" };
    format!("<td{class}>{mark}{text}</td>")
}

fn metric_columns(metric: &Metric, methods: &[MethodSummary]) -> Vec<Column> {
    let find = |method: &MethodSummary| method.last.as_ref().and_then(|at| at.metrics.get(&metric.key)).copied();
    // One format a column: plain numbers only where all of them are of ordinary size.
    let ordinary = |value: f64| value == 0.0 || (1e-3..1e5).contains(&value.abs());
    let plain = !metric.log && methods.iter().filter_map(find).all(|spread| ordinary(spread.mean));
    let show = |value: f64| if plain { fixed(value, 4) } else { scientific(value) };
    let best = direction(metric);
    vec![
        Column::new("mean ± std", methods, best, find, |s| s.mean, |s| format!("{} ± {}", show(s.mean), show(s.std))),
        Column::new("median", methods, best, find, |s| s.median, |s| show(s.median)),
    ]
}

/// All settings of all methods.
pub(super) fn settings(problem: &ProblemSummary) -> String {
    let row = |(i, method): (usize, &MethodSummary)| {
        format!(
            "<tr><th scope=\"row\">{}{}</th><td>{}</td></tr>\n",
            key(i),
            escape(&method.label),
            pairs(&method.hyperparameters)
        )
    };
    boxed(
        &format!(
            "<table class=\"settings\">\n<caption><span>Hyperparameters, defaults included.</span></caption>\n\
         <thead><tr><th scope=\"col\">method</th><th scope=\"col\">hyperparameters</th></tr></thead>\n\
         <tbody>\n{}</tbody>\n</table>\n",
            problem.methods.iter().enumerate().map(row).collect::<String>()
        ),
        "Hyperparameters",
    )
}

/// The runs that broke down; nothing if none did.
pub(super) fn failures(problem: &ProblemSummary, level: usize) -> String {
    let total: usize = problem.methods.iter().map(|method| method.failures.len()).sum();
    if total == 0 {
        return String::new();
    }
    let items = problem.methods.iter().flat_map(|method| {
        let item = move |failure: &crate::summary::Failure| {
            format!(
                "<li><strong>{}</strong>, seed {}: {}</li>\n",
                escape(&method.label),
                failure.seed,
                escape(&failure.error)
            )
        };
        method.failures.iter().map(item)
    });
    format!(
        "<section class=\"failures\">\n<h{level}>Failures</h{level}>\n<p>{} did not finish and {} in no mean above.</p>\n<ul>\n{}</ul>\n</section>\n",
        plural(total, "run"),
        if total == 1 { "is" } else { "are" },
        items.collect::<String>()
    )
}

/// A table in a box of its own, which scrolls where the page is narrow, by keyboard too.
pub(super) fn boxed(table: &str, label: &str) -> String {
    format!("<div class=\"box\" role=\"region\" tabindex=\"0\" aria-label=\"{label}\">\n{table}</div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_value_is_marked_unless_all_are_equal() {
        let values = [Some(2.0), Some(1.0), None, Some(f64::NAN), Some(1.0)];
        assert_eq!(marks(&values, Best::Lowest), [false, true, false, false, true]);
        assert_eq!(marks(&values, Best::Highest), [true, false, false, false, false]);
        assert_eq!(marks(&values, Best::None), [false; 5]);
        assert_eq!(marks(&[Some(1.0), Some(1.0)], Best::Lowest), [false, false]);
        assert_eq!(marks(&[None, Some(f64::NAN)], Best::Lowest), [false, false]);
        assert!(marks(&[], Best::Lowest).is_empty());
    }
}
