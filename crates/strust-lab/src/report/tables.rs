//! The tables of a problem: final values, settings and failures of every method.

use super::parts::{heading, keyed, pairs, table};
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
    /// What `find` gives for each method: the value, and how it is shown. Values up to `noise` differ only by rounding.
    fn new(
        title: &'static str,
        methods: &[MethodSummary],
        best: Best,
        noise: f64,
        find: impl Fn(&MethodSummary) -> Option<(f64, String)>,
    ) -> Self {
        let found =
            methods.iter().map(|method| find(method).map_or((None, NOTHING.into()), |(v, cell)| (Some(v), cell)));
        let (values, cells): (Vec<Option<f64>>, Vec<String>) = found.unzip();
        Self { title, best: marks(&values, &cells, best, noise), cells }
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

/// A table with a row for each method; those beyond the first few are behind a button.
fn folded(
    class: &str,
    label: &str,
    caption: &Markup,
    head: &Markup,
    methods: &[MethodSummary],
    cells: impl Fn(usize) -> Markup,
) -> Markup {
    let rows = |range: std::ops::Range<usize>| {
        let row = |i: usize| html! { tr { th scope="row" { (keyed(i, &methods[i].label)) } (cells(i)) } };
        table(class, label, caption, head, &html! { @for i in range { (row(i)) } })
    };
    let first = methods.len().min(MOST_ROWS);
    html! {
        (rows(0..first))
        @if first < methods.len() {
            details {
                summary { (plural(methods.len() - first, "more method")) }
                (rows(first..methods.len()))
            }
        }
    }
}

/// A table with groups of columns.
fn grouped(label: &str, caption: &Markup, methods: &[MethodSummary], groups: &[(Markup, Vec<Column>)]) -> Markup {
    // The first column of a group has a line on its left.
    let columns: Vec<(bool, &Column)> =
        groups.iter().flat_map(|(_, columns)| columns.iter().enumerate().map(|(i, column)| (i == 0, column))).collect();
    let head = html! {
        tr {
            th scope="col" rowspan="2" { "method" }
            @for (name, columns) in groups { th.group scope="colgroup" colspan=(columns.len()) { (name) } }
        }
        tr { @for (first, column) in &columns { th scope="col" class=[first.then_some("group")] { (column.title) } } }
    };
    let cells =
        |i: usize| html! { @for (first, column) in &columns { (cell(&column.cells[i], column.best[i], *first)) } };
    folded("numbers", label, caption, &head, methods, cells)
}

/// A column of costs.
fn cost(
    title: &'static str,
    methods: &[MethodSummary],
    find: impl Fn(&MethodSummary) -> Option<f64>,
    show: fn(f64) -> String,
) -> Column {
    Column::new(title, methods, Best::Lowest, 0.0, |method| find(method).map(|value| (value, show(value))))
}

/// The final values of every method.
pub(super) fn finals(problem: &ProblemSummary) -> Markup {
    let methods = &problem.methods;
    let metrics = problem.metrics.iter();
    let mut groups: Vec<(Markup, Vec<Column>)> =
        metrics.map(|metric| (html! { (metric.label) }, metric_columns(metric, methods))).collect();
    let last = |title, of: fn(&CurvePoint) -> f64, show| cost(title, methods, |m| m.last.as_ref().map(of), show);
    let costs = vec![
        last("seconds", |at| at.seconds.mean, three_decimals),
        last("gradients", |at| at.evaluations.gradients, count),
        last("values", |at| at.evaluations.values, count),
    ];
    groups.push((html! { "cost" }, costs));
    let accepted = |method: &MethodSummary| {
        let share = 100.0 * method.acceptance_rate;
        method.last.as_ref().map(|_| (share, fixed(share, 1) + " %"))
    };
    let done = |m: &MethodSummary| Some((f64::NAN, format!("{} / {}", m.seeds.len(), m.failures.len())));
    let runs = vec![
        Column::new("accepted", methods, Best::None, 0.0, accepted),
        Column::new("done / failed", methods, Best::None, 0.0, done),
    ];
    groups.push((html! { "runs" }, runs));
    let caption = html! {
        "Final values over the seeds that finished. " span.mark { "★" } " marks the best of a column; ties and "
        "differences within rounding have none."
    };
    grouped("Final values", &caption, methods, &groups)
}

fn three_decimals(seconds: f64) -> String {
    fixed(seconds, 3)
}

/// How soon the median of the first metric on a logarithmic axis is at most a tolerance; empty if no method gains a
/// decade.
pub(super) fn tolerances(problem: &ProblemSummary, level: usize) -> Markup {
    let Some(metric) = problem.metrics.iter().find(|metric| metric.log && !higher_is_better(&metric.key)) else {
        return Markup::default();
    };
    let group = |tolerance: f64| {
        let reached = |at: &&CurvePoint| at.metrics.get(&metric.key).is_some_and(|s| s.median <= tolerance);
        let first =
            |of: fn(&CurvePoint) -> f64| move |method: &MethodSummary| method.curve.iter().find(reached).map(of);
        let epochs = cost("epochs", &problem.methods, first(|at| at.epoch as f64), count);
        let seconds = cost("seconds", &problem.methods, first(|at| at.seconds.median), three_decimals);
        (power_of_ten(tolerance), vec![epochs, seconds])
    };
    let groups: Vec<_> = decades(metric, &problem.methods).into_iter().map(group).collect();
    let caption = html! { "The first epoch at whose end the median of the " (metric.label) " is at most a tolerance." };
    html! {
        @if !groups.is_empty() {
            (heading(level, &html! { "Time to a tolerance" }))
            (grouped("Time to a tolerance", &caption, &problem.methods, &groups))
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
    let best = if higher_is_better(&metric.key) { Best::Highest } else { Best::Lowest };
    let all = methods.iter().flat_map(|method| &method.curve).filter_map(|at| at.metrics.get(&metric.key));
    let noise = if metric.log { NOISE * all.fold(0.0_f64, |most, spread| most.max(spread.median.abs())) } else { 0.0 };
    let mean = |s: Spread| (s.mean, format!("{} ± {}", show(s.mean), show(s.std)));
    let median = |s: Spread| (s.median, show(s.median));
    vec![
        Column::new("mean ± std", methods, best, noise, |method| find(method).map(mean)),
        Column::new("median", methods, best, noise, |method| find(method).map(median)),
    ]
}

/// All settings of all methods.
pub(super) fn settings(ProblemSummary { methods, .. }: &ProblemSummary) -> Markup {
    let caption = html! { "Hyperparameters, defaults included." };
    let head = html! { tr { th scope="col" { "method" } th scope="col" { "hyperparameters" } } };
    let cells = |i: usize| html! { td { (pairs(&methods[i].hyperparameters)) } };
    folded("settings", "Hyperparameters", &caption, &head, methods, cells)
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
