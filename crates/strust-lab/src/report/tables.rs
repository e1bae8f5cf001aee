//! The tables of a problem: final values, settings and failures of every method.

use super::parts::{boxed, heading, keyed, pairs};
use crate::{
    data::summary::{CurvePoint, MethodSummary, Metric, ProblemSummary, higher_is_better},
    format::{NOTHING, count, fixed, plural, scientific},
};
use maud::{Markup, html};

/// Which value of a column is marked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Best {
    Lowest,
    Highest,
    None,
}

/// One column of numbers, with one cell per method.
struct Column {
    title: &'static str,
    cells: Vec<String>,
    best: Vec<bool>,
}

impl Column {
    /// A column of the results of `value`, formatted by `show`.
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

fn direction(metric: &Metric) -> Best {
    if higher_is_better(&metric.key) { Best::Highest } else { Best::Lowest }
}

/// The final values of every method.
pub(super) fn finals(problem: &ProblemSummary) -> Markup {
    let methods = &problem.methods;
    let last = |read: fn(&CurvePoint) -> f64| move |method: &MethodSummary| method.last.as_ref().map(read);
    let mut groups: Vec<(String, Vec<Column>)> =
        problem.metrics.iter().map(|metric| (metric.label.clone(), metric_columns(metric, methods))).collect();
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

    // The first column of a group has a line on its left.
    let columns: Vec<(bool, &Column)> =
        groups.iter().flat_map(|(_, columns)| columns.iter().enumerate().map(|(i, column)| (i == 0, column))).collect();
    let row = |i: usize, method: &MethodSummary| {
        html! {
            tr {
                th scope="row" { (keyed(i, &method.label)) }
                @for (first, column) in &columns { (cell(&column.cells[i], column.best[i], *first)) }
            }
        }
    };
    let table = html! {
        table.numbers {
            caption {
                span {
                    "Final values over the seeds that finished. " span.mark { "★" } " marks the best of a column."
                }
            }
            thead {
                tr {
                    th scope="col" rowspan="2" { "method" }
                    @for (name, columns) in &groups { th.group scope="colgroup" colspan=(columns.len()) { (name) } }
                }
                tr { @for (first, column) in &columns { th scope="col" class=[first.then_some("group")] { (column.title) } } }
            }
            tbody { @for (i, method) in methods.iter().enumerate() { (row(i, method)) } }
        }
    };
    boxed("Final values", &table)
}

fn cell(text: &str, best: bool, first: bool) -> Markup {
    let class = match (best, first) {
        (true, true) => Some("best group"),
        (true, false) => Some("best"),
        (false, true) => Some("group"),
        (false, false) => None,
    };
    html! {
        td class=[class] {
            @if best { span.mark aria-label="best" role="img" { "★" } " " }
            (text)
        }
    }
}

fn metric_columns(metric: &Metric, methods: &[MethodSummary]) -> Vec<Column> {
    let find = |method: &MethodSummary| method.last.as_ref().and_then(|at| at.metrics.get(&metric.key)).copied();
    // One format per column: plain numbers only if all of them are of ordinary size.
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
pub(super) fn settings(problem: &ProblemSummary) -> Markup {
    let table = html! {
        table.settings {
            caption { span { "Hyperparameters, defaults included." } }
            thead { tr { th scope="col" { "method" } th scope="col" { "hyperparameters" } } }
            tbody {
                @for (i, method) in problem.methods.iter().enumerate() {
                    tr { th scope="row" { (keyed(i, &method.label)) } td { (pairs(&method.hyperparameters)) } }
                }
            }
        }
    };
    boxed("Hyperparameters", &table)
}

/// The failed runs; empty if there are none.
pub(super) fn failures(problem: &ProblemSummary, level: usize) -> Markup {
    let total: usize = problem.methods.iter().map(|method| method.failures.len()).sum();
    let are = if total == 1 { "is" } else { "are" };
    html! {
        @if total > 0 {
            section.failures {
                (heading(level, &html! { "Failures" }))
                p { (plural(total, "run")) " did not finish and " (are) " in no mean above." }
                ul {
                    @for method in &problem.methods {
                        @for failure in &method.failures {
                            li { strong { (method.label) } ", seed " (failure.seed) ": " (failure.error) }
                        }
                    }
                }
            }
        }
    }
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
