//! The sections of the report: goals, tables and figures.

use super::{
    compare::Trajectory,
    figures::{CurveCost, curves as curves_of, parameters, performance_profile, sensitivity, values},
    measures::{CLOSE, GOAL, NEAR, ratio},
};
use crate::prelude::*;
use std::fmt::Write as _;
use strust_lab::{
    data::{
        benchmark::{EntrantSummary, Half, Judge, Role, SkippedTask, TaskSummary},
        parameters::Parameters,
        summary::Spread,
    },
    format::{plain_number, scientific},
};

/// The share of the tasks that most goals demand.
const MOST: f64 = 0.8;

/// All sections, and all checks.
pub(super) fn all(
    name: &str,
    tasks: &[TaskSummary],
    curves: &[Vec<Trajectory>],
    skipped: &[SkippedTask],
) -> (Vec<Section>, Vec<Check>) {
    let section =
        |part: &str, title: &str, description: &str| Section::new(&format!("{name}-{part}"), title, description);
    let mut sections = Vec::new();
    if !tasks.is_empty() {
        let tested = label_of(tasks);
        sections.push(Section {
            findings: findings(tasks),
            figures: vec![performance_profile(tasks)],
            tables: vec![ratios(tasks), steps(tasks), tests(tasks)],
            checks: checks(tasks),
            ..section(
                "results",
                "Beside the best tuned baseline",
                "A value is the training objective at the end, the median over seeds. Where the loss has no minimum, it is \
                 the number of steps to 1e-3 of the objective at the start. The best tuned baseline is the best \
                 of all tuned ones on each task, each with the rate that was best on another seed. Values below 1e-28 of \
                 the start count as 1e-28 of the start.",
            )
        });
        let constants = parameters(tasks);
        if !constants.is_empty() {
            sections.push(Section {
                figures: constants.iter().map(|constant| sensitivity(tasks, constant)).collect(),
                tables: vec![sensitivities(tasks, &constants)],
                ..section(
                    "sensitivity",
                    &format!("Sensitivity to the constants of {tested}"),
                    "One constant is changed, the others have their defaults. Where the loss has no minimum, the steps to \
                     1e-3 of the start take the place of the final objective.",
                )
            });
        }
        let drawn = |against| {
            tasks.iter().zip(curves).map(|(task, curves)| curves_of(task, curves, against)).collect::<Vec<_>>()
        };
        sections.push(Section {
            figures: drawn(CurveCost::Passes),
            ..section(
                "curves",
                "Curves",
                "The training objective against the cost. A value is one pass, a gradient is two. Lines are medians over \
                 seeds; bands are their range.",
            )
        });
        // Their passes cost other times than those of values and gradients.
        if curves.iter().flatten().any(Trajectory::has_products) {
            sections.push(Section {
                figures: drawn(CurveCost::Seconds),
                ..section(
                    "seconds",
                    "Curves against time",
                    "The same against the seconds of the steps. Times depend on the machine, and on the number of jobs \
                     that run at once.",
                )
            });
        }
        sections.push(Section {
            tables: vec![tuning(tasks)],
            checks: vec![edges(tasks)],
            ..section(
                "tuning",
                "The chosen rates",
                "Each tuned baseline runs with every rate of its grid on a separate seed; the rate with the lowest value \
                 is chosen. If it is at an edge, the grid grows there. An asterisk marks a rate that is still the smallest \
                 or the largest: a rate outside of the grid may be better.",
            )
        });
    }
    sections.push(Section {
        tables: [Some(overview(tasks)), skipped_table(skipped)].into_iter().flatten().collect(),
        ..section(
            "tasks",
            "The tasks",
            "The development half may guide the design of a method. The test half only judges it.",
        )
    });
    let checks = sections.iter().flat_map(|section| section.checks.clone()).collect();
    (sections, checks)
}

/// The label of the method under test.
fn label_of(tasks: &[TaskSummary]) -> &str {
    let methods = tasks.first().map_or(&[][..], |task| &task.methods);
    methods.iter().find(|method| method.role == Role::Tested).map_or("the method", |method| method.label.as_str())
}

/// The number of tasks of which a statement is true, and of all tasks to which it applies (`Some`).
fn count<'a>(
    tasks: impl IntoIterator<Item = &'a TaskSummary>,
    statement: impl Fn(&TaskSummary) -> Option<bool>,
) -> (usize, usize) {
    let verdicts: Vec<bool> = tasks.into_iter().filter_map(statement).collect();
    (verdicts.iter().filter(|holds| **holds).count(), verdicts.len())
}

/// A statement about a task; `None` if it does not apply.
type Statement<'a> = dyn Fn(&TaskSummary) -> Option<bool> + 'a;

/// A goal: a statement that must be true of a share of the tasks.
struct Goal<'a> {
    name: String,
    share: f64,
    /// Whether it is a goal on each half, too.
    halves: bool,
    statement: Box<Statement<'a>>,
}

impl<'a> Goal<'a> {
    fn new(
        name: impl Into<String>,
        share: f64,
        halves: bool,
        statement: impl Fn(&TaskSummary) -> Option<bool> + 'a,
    ) -> Self {
        Self { name: name.into(), share, halves, statement: Box::new(statement) }
    }

    /// The check on all tasks, and on each half.
    fn checks(&self, tasks: &[TaskSummary]) -> Vec<Check> {
        let scopes = [None, Some(Half::Development), Some(Half::Test)];
        scopes[..if self.halves { 3 } else { 1 }].iter().map(|half| self.check(tasks, *half)).collect()
    }

    fn check(&self, tasks: &[TaskSummary], half: Option<Half>) -> Check {
        let mine: Vec<&TaskSummary> = tasks.iter().filter(|task| half.is_none_or(|half| task.half == half)).collect();
        let scope = half.map_or("all tasks".into(), |half| format!("{} half", half.word()));
        let name = format!("{}, {scope}", self.name);
        let (held, known) = count(mine.iter().copied(), &self.statement);
        if known == 0 {
            return Check {
                claim: strust_lab::data::section::Relation::AtLeast,
                ..Check::open(name, self.share, "no task measures this")
            };
        }
        let failing: Vec<&str> =
            mine.iter().filter(|task| (self.statement)(task) == Some(false)).map(|task| task.name.as_str()).collect();
        let except = if failing.is_empty() { String::new() } else { format!("; not on {}", failing.join(", ")) };
        let of = |half: Half| {
            let (held, known) = count(tasks.iter().filter(|task| task.half == half), &self.statement);
            format!("{} {held} of {known}", half.word())
        };
        let halves =
            if half.is_none() { format!(" ({}, {})", of(Half::Development), of(Half::Test)) } else { String::new() };
        let why = format!("{held} of {}{halves}{except}", plural(known, "task"));
        Check::at_least(name, held as f64 / known as f64, self.share, why)
    }
}

fn checks(tasks: &[TaskSummary]) -> Vec<Check> {
    let within = |limit: f64| {
        let percent = plain_number((100.0 * (limit - 1.0)).round());
        format!("value within {percent} % of the best tuned baseline")
    };
    let mut goals = vec![
        Goal::new(within(CLOSE), MOST, true, |task| task.best_tuned.as_ref().map(|_| task.within)),
        Goal::new(within(NEAR), 1.0, true, |task| task.best_tuned.as_ref().map(|_| task.nearly_within)),
    ];
    for label in labels(tasks, &[Role::Untuned]) {
        let name = format!("value not above that of {label}");
        goals.push(Goal::new(name, MOST, false, move |task| Some(is_ahead(task, &label))));
    }
    let name = "test metric not worse by more than a standard deviation";
    goals.push(Goal::new(name, MOST, true, |task| task.test.as_ref().map(|test| test.holds)));
    goals.iter().flat_map(|goal| goal.checks(tasks)).collect()
}

/// Whether the method under test is not behind a method. One that failed is behind one that did not.
fn is_ahead(task: &TaskSummary, label: &str) -> bool {
    let other = task.methods.iter().find(|method| method.label == label).and_then(|method| method.value);
    match (task.tested, other) {
        (Some(mine), Some(other)) => ratio(mine, other, task.start).is_some_and(|ratio| ratio <= 1.0),
        (mine, None) => mine.is_some(),
        (None, Some(_)) => false,
    }
}

fn findings(tasks: &[TaskSummary]) -> Vec<String> {
    let tested = label_of(tasks);
    let tuned = tasks[0].methods.iter().filter(|method| method.role == Role::Tuned);
    let rates = || tasks.iter().flat_map(|task| with_role(task, Role::Tuned)).map(|method| method.tried.len());
    let mut findings = vec![format!(
        "{tested} has the same setting on all {}. {} were tuned for each task, with {} to {} each: {} of grid searches in total.",
        plural(tasks.len(), "task"),
        plural(tuned.count(), "baseline"),
        rates().min().unwrap_or(0),
        plural(rates().max().unwrap_or(0), "rate"),
        plural(rates().sum(), "setting")
    )];
    let behind: Vec<String> = tasks
        .iter()
        .filter(|task| task.best_tuned.is_some() && !task.within)
        .map(|task| format!("{} ({})", task.name, task.ratio.map_or("failed".into(), factor)))
        .collect();
    let (held, known) = count(tasks, |task| task.best_tuned.as_ref().map(|_| task.within));
    let mut sentence = format!(
        "It ends within 5 % of the best tuned baseline, or arrives there in 1.1 times its steps if the loss goes to zero, on \
         {held} of {known} tasks."
    );
    if !behind.is_empty() {
        let behind = behind.join(", ");
        let _ = write!(sentence, " It does not on {behind}; the factor is its value over the best tuned one.");
    }
    findings.push(sentence);
    let by_steps = tasks.iter().filter(|task| task.judge == Judge::Steps);
    let by_steps: Vec<&str> = by_steps.map(|task| task.name.as_str()).collect();
    if !by_steps.is_empty() {
        findings.push(format!(
            "On {} the loss has no minimum, so the final objective only depends on how far a method goes. There, grid \
             searches and comparisons use the steps to {GOAL} of the start, and the test metric must not be worse by more \
             than a standard deviation.",
            by_steps.join(", ")
        ));
    }
    let overfits = |task: &&TaskSummary| {
        task.test.as_ref().is_some_and(|test| !test.holds) && task.ratio.is_some_and(|ratio| ratio < 1.0)
    };
    let overfits: Vec<&str> = tasks.iter().filter(overfits).map(|task| task.name.as_str()).collect();
    if !overfits.is_empty() {
        findings.push(format!(
            "On {} it has a lower training objective and a worse test metric than the best tuned baseline: it overfits there.",
            overfits.join(", ")
        ));
    }
    let failed = |task: &TaskSummary| -> Vec<String> {
        let failed = task.methods.iter().filter(|method| method.failed > 0 || method.setting.is_none());
        failed.map(|method| format!("{} on {}", method.label, task.name)).collect()
    };
    let failed: Vec<String> = tasks.iter().flat_map(failed).collect();
    if !failed.is_empty() {
        findings.push(format!("Runs that diverged: {}. A diverged seed counts as infinite.", failed.join(", ")));
    }
    findings
}

/// A ratio in a table.
fn factor(ratio: f64) -> String {
    if (0.01..100.0).contains(&ratio) { fixed(ratio, 3) } else { brief(ratio) }
}

fn or_nothing(ratio: Option<f64>) -> String {
    ratio.map_or(NOTHING.into(), factor)
}

fn with_role(task: &TaskSummary, role: Role) -> impl Iterator<Item = &EntrantSummary> {
    task.methods.iter().filter(move |method| method.role == role)
}

/// The methods in these roles, as columns of a table.
fn labels(tasks: &[TaskSummary], roles: &[Role]) -> Vec<String> {
    let methods = tasks.first().into_iter().flat_map(|task| roles.iter().flat_map(|role| with_role(task, *role)));
    methods.map(|method| method.label.clone()).collect()
}

/// The final objectives over the best tuned one.
fn ratios(tasks: &[TaskSummary]) -> Table {
    let roles = [Role::Tested, Role::Untuned, Role::Tuned];
    let row = |task: &TaskSummary| {
        let best = task.best_tuned.as_ref();
        let mut row = vec![
            task.name.clone(),
            task.half.word().into(),
            best.map_or(NOTHING.into(), |best| best.method.clone()),
            best.map_or(NOTHING.into(), |best| task.judge.with_unit(scientific(best.value))),
        ];
        let cell = |method: &EntrantSummary| match (method.value, task.judge) {
            (Some(_), _) => or_nothing(method.ratio),
            (None, Judge::Steps) if method.failed == 0 && method.setting.is_some() => "never".into(),
            (None, _) => "failed".into(),
        };
        row.extend(roles.iter().flat_map(|role| with_role(task, *role)).map(cell));
        row
    };
    Table::new(
        "The value of every method over that of the best tuned baseline; 1 is as good, less is better",
        "task | half | best tuned | its value",
        tasks.iter().map(row).collect(),
    )
    .and_columns(labels(tasks, &roles))
}

/// The steps to the objective of the best tuned baseline.
fn steps(tasks: &[TaskSummary]) -> Table {
    let roles = [Role::Tested, Role::Untuned];
    let row = |task: &TaskSummary| {
        let mut row = vec![
            task.name.clone(),
            task.steps.to_string(),
            if task.to_zero { "yes" } else { "no" }.into(),
            or_nothing(task.ratio_at_equal_passes),
        ];
        let methods = roles.iter().flat_map(|role| with_role(task, *role));
        row.extend(methods.map(|method| or_nothing(method.steps_ratio)));
        row
    };
    Table::new(
        format!(
            "Steps to the final objective of the best tuned baseline, over the steps of that baseline to it; {NOTHING} means \
             never. At equal passes: the objective of {} after as many passes as that baseline, over its objective",
            label_of(tasks)
        ),
        "task | steps | loss to zero | at equal passes",
        tasks.iter().map(row).collect(),
    )
    .and_columns(labels(tasks, &roles))
}

/// Test metrics and prices.
fn tests(tasks: &[TaskSummary]) -> Table {
    let tested = label_of(tasks);
    let shown = |spread: &Spread| format!("{} ± {}", fixed(spread.mean, 4), fixed(spread.std, 4));
    let row = |task: &TaskSummary| {
        let test = task.test.as_ref();
        let verdict = test.map(|test| if test.holds { "yes" } else { "no" });
        vec![
            task.name.clone(),
            test.map_or(NOTHING.into(), |test| test.metric.replace('_', " ")),
            test.map_or(NOTHING.into(), |test| shown(&test.tested)),
            test.map_or(NOTHING.into(), |test| shown(&test.best_tuned)),
            verdict.unwrap_or(NOTHING).into(),
            or_nothing(task.price),
        ]
    };
    Table::new(
        "The test metric at the end, mean ± standard deviation over seeds, and the price of a step in steps of SGD, where a \
         backward pass costs two forward passes",
        "task | metric",
        tasks.iter().map(row).collect(),
    )
    .and_columns([tested, "best tuned", "within a deviation", "price"].map(String::from))
}

/// The results of every value of every constant.
fn sensitivities(tasks: &[TaskSummary], constants: &[&str]) -> Table {
    let mut rows = Vec::new();
    for constant in constants {
        let Some(first) = tasks.first() else { continue };
        for (i, (value, _)) in values(first, constant).into_iter().enumerate() {
            let varied = |task: &TaskSummary| {
                task.variations
                    .iter()
                    .find(|v| v.parameter == *constant && v.setting.total_cmp(&value).is_eq())
                    .cloned()
            };
            let within = |task: &TaskSummary| {
                task.best_tuned.as_ref().map(|_| varied(task).map_or(task.within, |variation| variation.within))
            };
            let (held, known) = count(tasks, within);
            let to_default = |task: &TaskSummary| {
                let value = values(task, constant)[i].1;
                value.zip(task.tested).and_then(|(value, default)| ratio(value, default, task.start))
            };
            let ratios: Vec<f64> = tasks.iter().map(|task| to_default(task).unwrap_or(f64::INFINITY)).collect();
            let median = upper_median(&ratios);
            let mark = if varied(first).is_none() { " (default)" } else { "" };
            rows.push(vec![
                (*constant).to_string(),
                format!("{}{mark}", plain_number(value)),
                format!("{held} of {known}"),
                if median.is_finite() { factor(median) } else { "failed".into() },
            ]);
        }
    }
    Table::new(
        "Tasks within 5 % of the best tuned baseline (or its steps, as above), and the median over tasks of the final \
                  objective over that with the default",
        "constant | value | tasks within | median ratio to the default",
        rows,
    )
}

/// The chosen rates.
fn tuning(tasks: &[TaskSummary]) -> Table {
    let chosen = |method: &EntrantSummary| match (&method.setting, method.tried.first()) {
        (Some(_), Some(best)) => format!("{}{}", shown(&best.setting), if method.at_edge { " *" } else { "" }),
        _ => "failed".into(),
    };
    let row = |task: &TaskSummary| {
        std::iter::once(task.name.clone()).chain(with_role(task, Role::Tuned).map(chosen)).collect()
    };
    Table::new("The rate of each tuned baseline", "task", tasks.iter().map(row).collect())
        .and_columns(labels(tasks, &[Role::Tuned]))
}

/// How many chosen rates are at an edge.
fn edges(tasks: &[TaskSummary]) -> Check {
    let tuned = || tasks.iter().flat_map(|task| with_role(task, Role::Tuned).map(move |method| (task, method)));
    let at_edge = || tuned().filter(|(_, method)| method.at_edge);
    let names: Vec<String> = at_edge().map(|(task, method)| format!("{} on {}", method.label, task.name)).collect();
    let names = if names.is_empty() { String::new() } else { format!(": {}", names.join("; ")) };
    let why = format!("{} of {}{names}", at_edge().count(), plural(tuned().count(), "chosen rate"));
    Check::at_most("chosen rates at the edge of their grid", at_edge().count() as f64, 0.0, why)
}

/// A setting without the names of its parameters if there is only one.
fn shown(setting: &Parameters) -> String {
    let mut values = setting.iter();
    match (values.next(), values.next()) {
        (Some((_, value)), None) => plain(value),
        _ => setting.iter().map(|(key, value)| format!("{key} = {}", plain(value))).collect::<Vec<_>>().join(", "),
    }
}

fn overview(tasks: &[TaskSummary]) -> Table {
    let row = |task: &TaskSummary| {
        vec![
            task.name.clone(),
            task.title.clone(),
            task.half.word().into(),
            task.judge.word().into(),
            task.problem.clone(),
            task.epochs.to_string(),
            task.batch.to_string(),
            task.steps.to_string(),
        ]
    };
    Table::new(
        format!("{} ran", plural(tasks.len(), "task")),
        "task | title | half | judged by | problem | epochs | batch | steps",
        tasks.iter().map(row).collect(),
    )
}

/// The tasks that did not run; `None` if all did.
fn skipped_table(skipped: &[SkippedTask]) -> Option<Table> {
    let row =
        |task: &SkippedTask| vec![task.name.clone(), task.title.clone(), task.half.word().into(), task.why.clone()];
    (!skipped.is_empty()).then(|| {
        Table::new(
            format!("{} skipped", plural(skipped.len(), "task")),
            "task | title | half | why",
            skipped.iter().map(row).collect(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use strust_lab::data::benchmark::{BestTuned, TestComparison};

    fn method(label: &str, role: Role, value: Option<f64>) -> EntrantSummary {
        EntrantSummary {
            label: label.into(),
            role,
            setting: Some(Parameters::new()),
            value,
            ratio: value,
            steps_ratio: None,
            price: Some(1.0),
            test: None,
            failed: 0,
            at_edge: false,
            tried: Vec::new(),
        }
    }

    /// A task whose best tuned value is 1.
    fn task(name: &str, half: Half, tested: Option<f64>, other: Option<f64>) -> TaskSummary {
        let spread = |mean: f64| Spread { mean, std: 0.0, median: mean, quartiles: None };
        TaskSummary {
            name: name.into(),
            title: name.into(),
            half,
            problem: String::new(),
            judge: Judge::Objective,
            epochs: 1,
            batch: 1,
            steps: 1,
            start: 100.0,
            best_tuned: Some(BestTuned { value: 1.0, method: "sgd".into(), setting: Parameters::new() }),
            tested,
            ratio: tested,
            steps_ratio: None,
            to_zero: false,
            within: tested.is_some_and(|value| value <= CLOSE),
            nearly_within: tested.is_some_and(|value| value <= NEAR),
            ratio_at_equal_passes: None,
            test: tested.map(|value| TestComparison {
                metric: "test_accuracy".into(),
                tested: spread(value),
                best_tuned: spread(1.0),
                holds: value >= 1.0,
            }),
            price: Some(1.0),
            methods: vec![
                method("auto", Role::Tested, tested),
                method("sgd", Role::Tuned, Some(1.0)),
                method("sls", Role::Untuned, other),
            ],
            variations: Vec::new(),
        }
    }

    #[test]
    fn goals_are_shares_of_the_tasks_on_all_and_on_each_half() {
        let tasks = [
            task("a", Half::Development, Some(0.5), Some(0.7)),
            task("b", Half::Development, Some(1.1), Some(1.0)),
            task("c", Half::Test, Some(1.04), None),
            task("d", Half::Test, None, Some(5.0)),
        ];
        let (sections, checks) = all("bench", &tasks, &[], &[]);
        let found: Vec<_> = checks.iter().map(|check| (check.measured, check.bound, check.holds)).collect();
        let expected = [
            (0.5, 0.8, false),
            (0.5, 0.8, false),
            (0.5, 0.8, false),
            (0.75, 1.0, false),
            (1.0, 1.0, true),
            (0.5, 1.0, false),
            (0.5, 0.8, false),
            (2.0 / 3.0, 0.8, false),
            (0.5, 0.8, false),
            (1.0, 0.8, true),
            (0.0, 0.0, true),
        ];
        assert_eq!(found, expected, "{checks:#?}");
        assert_eq!(checks[0].why, "2 of 4 tasks (development 1 of 2, test 1 of 2); not on b, d");
        let text = sections[0].findings.join(" ");
        assert!(text.contains("on 2 of 4 tasks. It does not on b (1.100), d (failed)"), "{text}");
        assert!(text.contains("On a it has a lower training objective and a worse test metric"), "{text}");
    }

    #[test]
    fn a_method_that_failed_is_behind_one_that_did_not() {
        let ahead = |tested, other| is_ahead(&task("a", Half::Test, tested, other), "sls");
        assert!(ahead(Some(1.0), Some(1.0)) && ahead(Some(1.0), None) && !ahead(None, Some(1.0)) && !ahead(None, None));
        assert!(!ahead(Some(1.01), Some(1.0)));
        // Both are zero up to rounding.
        assert!(ahead(Some(1e-29), Some(1e-30)));
    }
}
