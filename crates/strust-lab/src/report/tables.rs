//! The tables of a problem: final values, settings and failures of every method.

use super::parts::{boxed, heading, keyed, pairs};
use crate::{
    data::summary::{CurvePoint, MethodSummary, Metric, ProblemSummary, Spread, higher_is_better},
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
        let cells: Vec<String> = found.iter().map(|entry| entry.as_ref().map_or(NOTHING.to_owned(), &show)).collect();
        let best = marks(&values, &cells, best, 0.0);
        Self { title, cells, best }
    }

    /// Values up to `noise` differ only by rounding, so that none of them is the best.
    fn with_noise(mut self, values: &[Option<f64>], best: Best, noise: f64) -> Self {
        self.best = marks(values, &self.cells, best, noise);
        self
    }
}

/// The best value of a column; none if another one looks the same, or if several are not above the noise.
fn marks(values: &[Option<f64>], cells: &[String], best: Best, noise: f64) -> Vec<bool> {
    let cost = |value: f64| match best {
        Best::Lowest => value,
        Best::Highest | Best::None => -value,
    };
    let finite = || (0..values.len()).filter_map(|i| Some((i, values[i].filter(|value| value.is_finite())?)));
    let first = finite().min_by(|a, b| cost(a.1).total_cmp(&cost(b.1)));
    let winner = first.filter(|&(i, value)| {
        let ties = |(j, other): (usize, f64)| {
            j != i && (cells[j] == cells[i] || (value.abs() <= noise && other.abs() <= noise))
        };
        best != Best::None && finite().count() > 1 && !finite().any(ties)
    });
    (0..values.len()).map(|i| winner.is_some_and(|(best, _)| best == i)).collect()
}

/// Rounding errors of a metric, relative to its largest value.
const NOISE: f64 = 1e-14;

/// At most so many rows of a table are shown at once.
const MOST_ROWS: usize = 12;

/// The rows of a table; those beyond the first few are behind a button.
fn folded(label: &str, methods: &[MethodSummary], table: impl Fn(&[usize]) -> Markup) -> Markup {
    let all: Vec<usize> = (0..methods.len()).collect();
    let (first, rest) = all.split_at(all.len().min(MOST_ROWS));
    html! {
        (boxed(label, &table(first)))
        @if !rest.is_empty() {
            details {
                summary { (plural(rest.len(), "more method")) }
                (boxed(label, &table(rest)))
            }
        }
    }
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
    let table = |shown: &[usize]| {
        html! {
            table.numbers {
                caption {
                    span {
                        "Final values over the seeds that finished. " span.mark { "★" } " marks the best of a column; ties and "
                        "differences within rounding have none."
                    }
                }
                thead {
                    tr {
                        th scope="col" rowspan="2" { "method" }
                        @for (name, columns) in &groups { th.group scope="colgroup" colspan=(columns.len()) { (name) } }
                    }
                    tr { @for (first, column) in &columns { th scope="col" class=[first.then_some("group")] { (column.title) } } }
                }
                tbody { @for &i in shown { (row(i, &methods[i])) } }
            }
        }
    };
    folded("Final values", methods, table)
}

/// How soon the median of the first metric on a logarithmic axis is at most a tolerance; empty if no method gains a
/// decade.
pub(super) fn tolerances(problem: &ProblemSummary, level: usize) -> Markup {
    let Some(metric) = problem.metrics.iter().find(|metric| metric.log && !higher_is_better(&metric.key)) else {
        return Markup::default();
    };
    let tolerances = decades(metric, &problem.methods);
    let reached = |method: &MethodSummary, tolerance: f64| {
        let median = |at: &&CurvePoint| at.metrics.get(&metric.key).is_some_and(|s| s.median <= tolerance);
        method.curve.iter().find(median).cloned()
    };
    let columns: Vec<[Column; 2]> = tolerances
        .iter()
        .map(|&tolerance| {
            let find = |method: &MethodSummary| reached(method, tolerance);
            let epoch = |at: &CurvePoint| at.epoch as f64;
            let seconds = |at: &CurvePoint| at.seconds.median;
            [
                Column::new("epochs", &problem.methods, Best::Lowest, find, epoch, |at| count(at.epoch as f64)),
                Column::new("seconds", &problem.methods, Best::Lowest, find, seconds, |at| fixed(at.seconds.median, 3)),
            ]
        })
        .collect();
    let table = |shown: &[usize]| {
        html! {
            table.numbers {
                caption { span { "The first epoch at whose end the median of the " (metric.label) " is at most a tolerance." } }
                thead {
                    tr {
                        th scope="col" rowspan="2" { "method" }
                        @for tolerance in &tolerances { th.group scope="colgroup" colspan="2" { (power_of_ten(*tolerance)) } }
                    }
                    tr { @for pair in &columns { @for (i, column) in pair.iter().enumerate() {
                        th scope="col" class=[(i == 0).then_some("group")] { (column.title) }
                    } } }
                }
                tbody {
                    @for &i in shown {
                        tr {
                            th scope="row" { (keyed(i, &problem.methods[i].label)) }
                            @for pair in &columns { @for (k, column) in pair.iter().enumerate() {
                                (cell(&column.cells[i], column.best[i], k == 0))
                            } }
                        }
                    }
                }
            }
        }
    };
    html! {
        @if !tolerances.is_empty() {
            (heading(level, &html! { "Time to a tolerance" }))
            (folded("Time to a tolerance", &problem.methods, table))
        }
    }
}

fn power_of_ten(tolerance: f64) -> Markup {
    html! { "10" sup { (format!("{:.0}", tolerance.log10()).replace('-', "−")) } }
}

/// At most four powers of ten between the largest start and the best end of a metric.
fn decades(metric: &Metric, methods: &[MethodSummary]) -> Vec<f64> {
    let median = |at: &CurvePoint| at.metrics.get(&metric.key).map(|s| s.median);
    let start = methods.iter().filter_map(|method| method.curve.first().and_then(median)).fold(0.0, f64::max);
    let end = methods.iter().filter_map(|method| method.last.as_ref().and_then(median)).fold(f64::INFINITY, f64::min);
    let low = end.max(NOISE * start).log10().ceil();
    let high = start.log10().ceil() - 1.0;
    if !(low.is_finite() && high.is_finite()) || high < low {
        return Vec::new();
    }
    let count = ((high - low) as usize + 1).min(4);
    let step = if count > 1 { (high - low) / (count - 1) as f64 } else { 0.0 };
    (0..count).map(|i| 10_f64.powi((high - step * i as f64).round() as i32)).collect()
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
    let all = methods.iter().flat_map(|method| &method.curve).filter_map(|at| at.metrics.get(&metric.key));
    let noise = if metric.log { NOISE * all.fold(0.0_f64, |most, spread| most.max(spread.median.abs())) } else { 0.0 };
    let values = |of: fn(&Spread) -> f64| methods.iter().map(|method| find(method).map(|s| of(&s))).collect::<Vec<_>>();
    vec![
        Column::new("mean ± std", methods, best, find, |s| s.mean, |s| format!("{} ± {}", show(s.mean), show(s.std)))
            .with_noise(&values(|s| s.mean), best, noise),
        Column::new("median", methods, best, find, |s| s.median, |s| show(s.median)).with_noise(
            &values(|s| s.median),
            best,
            noise,
        ),
    ]
}

/// All settings of all methods.
pub(super) fn settings(problem: &ProblemSummary) -> Markup {
    let table = |shown: &[usize]| {
        html! {
            table.settings {
                caption { span { "Hyperparameters, defaults included." } }
                thead { tr { th scope="col" { "method" } th scope="col" { "hyperparameters" } } }
                tbody {
                    @for &i in shown {
                        tr {
                            th scope="row" { (keyed(i, &problem.methods[i].label)) }
                            td { (pairs(&problem.methods[i].hyperparameters)) }
                        }
                    }
                }
            }
        }
    };
    folded("Hyperparameters", &problem.methods, table)
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

    fn marked(values: &[Option<f64>], best: Best, noise: f64) -> Vec<bool> {
        let cells: Vec<String> = values.iter().map(|v| v.map_or(NOTHING.into(), |v| format!("{v:.1e}"))).collect();
        marks(values, &cells, best, noise)
    }

    #[test]
    fn the_best_value_is_marked() {
        let values = [Some(2.0), Some(1.0), None, Some(f64::NAN), Some(3.0)];
        assert_eq!(marked(&values, Best::Lowest, 0.0), [false, true, false, false, false]);
        assert_eq!(marked(&values, Best::Highest, 0.0), [false, false, false, false, true]);
        assert_eq!(marked(&values, Best::None, 0.0), [false; 5]);
        assert_eq!(marked(&[None, Some(f64::NAN)], Best::Lowest, 0.0), [false, false]);
        assert!(marked(&[], Best::Lowest, 0.0).is_empty());
    }

    #[test]
    fn ties_and_rounding_noise_are_not_marked() {
        let nobody = |values: &[f64], noise: f64| {
            let values: Vec<_> = values.iter().copied().map(Some).collect();
            marked(&values, Best::Lowest, noise).iter().all(|marked| !marked)
        };
        assert!(nobody(&[1.0], 0.0), "nothing to compare with");
        assert!(nobody(&[1.0, 1.0, 2.0], 0.0), "equal");
        assert!(nobody(&[1.0, 1.01, 2.0], 0.0), "shown alike");
        assert!(nobody(&[3e-31, 2e-17, 1.0], 1e-14), "both are rounding errors");
        assert!(!nobody(&[3e-31, 2e-7, 1.0], 1e-14), "only one is");
    }
}
