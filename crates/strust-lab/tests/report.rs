//! The report page and its figures, for small artificial summaries.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use strust_lab::data::style::FigureStyle;
use strust_lab::data::summary::{
    CurvePoint, Failure, Machine, MeanEvaluations, MethodSummary, Metric, ProblemSummary, Spread, Summary,
    TriedSetting, Tuning, TuningCost,
};
use strust_lab::report::{figures, html};

const HOSTILE: &str = "<script>&\"'</script>";

/// A method with the metrics `gap` and `norm`, and one value per epoch.
fn method(name: &str, values: &[f64]) -> MethodSummary {
    let spread = |mean: f64| Spread { mean, std: mean * 1.5, median: mean, quartiles: Some((0.5 * mean, 2.0 * mean)) };
    let at = |(k, &value): (usize, &f64)| CurvePoint {
        epoch: k as u64,
        seconds: Spread { mean: 0.1 * k as f64, std: 0.01, median: 0.1 * k as f64, quartiles: None },
        evaluations: MeanEvaluations { values: 0.0, gradients: 100.0 * k as f64, products: 0.0 },
        metrics: BTreeMap::from([("gap".to_owned(), spread(value)), ("norm".to_owned(), spread(value * value))]),
    };
    let curve: Vec<CurvePoint> = values.iter().enumerate().map(at).collect();
    MethodSummary {
        name: name.into(),
        label: name.into(),
        hyperparameters: BTreeMap::from([("learning_rate".to_owned(), toml::Value::Float(1e-3))]),
        seeds: vec![0, 1, 2],
        last: curve.last().cloned(),
        curve,
        acceptance_rate: 0.75,
        trust_region: match name {
            "str" => BTreeMap::from([("radius".to_owned(), values.iter().skip(1).copied().map(spread).collect())]),
            _ => BTreeMap::new(),
        },
        failures: vec![],
        solution: None,
    }
}

fn summary(experiment: &str, methods: Vec<MethodSummary>) -> Summary {
    let metric = |key: &str, label: &str| Metric { key: key.into(), label: label.into(), log: true };
    Summary {
        experiment: experiment.into(),
        title: format!("The title of {experiment}"),
        description: "The description.".into(),
        version: "0.1.0".into(),
        command: "strust run a.toml".into(),
        machine: Machine {
            platform: "linux x86_64".into(),
            processor: "a processor".into(),
            cores: 8,
            jobs: 4,
            device: None,
        },
        epochs: 2,
        batch: 10,
        problems: vec![ProblemSummary {
            name: "subspace".into(),
            kind: None,
            title: "Principal subspace".into(),
            parameters: BTreeMap::from([("rank".to_owned(), toml::Value::Integer(5))]),
            metrics: vec![metric("gap", "gap f(W) − f*"), metric("norm", "‖WᵀW − I‖")],
            methods,
        }],
        tuning: vec![],
        figures: FigureStyle::default(),
        diagnoses: vec![],
        checks: vec![],
        sections: vec![],
        tasks: vec![],
        skipped: vec![],
    }
}

fn two_methods() -> Vec<MethodSummary> {
    vec![method("str", &[1.0, 0.1, 1e-9]), method("sgd", &[1.0, 0.5, 0.25])]
}

fn tuning(method: &str, tried: usize) -> Tuning {
    let trial = |i: usize| TriedSetting {
        setting: BTreeMap::from([("learning_rate".to_owned(), toml::Value::Float(0.1 * (i + 1) as f64))]),
        score: (i + 1 < tried).then_some(1e-3 * (i + 1) as f64),
    };
    Tuning {
        problem: "subspace".into(),
        method: method.into(),
        metric: "gap after 2 epochs".into(),
        tried: (0..tried).map(trial).collect(),
        cost: TuningCost { runs: 3 * tried as u64, failed: 0, gradients: 12_345, values: 0, seconds: 1.5 },
    }
}

#[test]
fn the_page_loads_no_other_files() {
    let page = html(&[summary("a", two_methods()), summary("b", two_methods())]);
    let without = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for forbidden in ["http://", "https://", "<link", " src=", "@import", "url("] {
        assert!(!without.contains(forbidden), "the page contains {forbidden}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn every_metric_is_drawn_over_every_axis_and_the_radius_once() {
    let summary = summary("a", two_methods());
    let names: Vec<String> = figures(&summary).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "subspace-gap-epoch",
            "subspace-gap-seconds",
            "subspace-gap-gradients",
            "subspace-norm-epoch",
            "subspace-norm-seconds",
            "subspace-norm-gradients",
            "subspace-radius-epoch",
        ]
    );
    assert_eq!(html(&[summary]).matches("class=\"figure\"").count(), names.len());
}

#[test]
fn the_last_radius_belongs_to_the_last_epoch() {
    let (_, radius) = figures(&summary("a", two_methods())).pop().expect("figures");
    let epochs: Vec<f64> = radius.series[0].points.iter().map(|point| point.x).collect();
    assert_eq!(epochs, [1.0, 2.0]);
}

#[test]
fn file_names_are_safe_and_distinct() {
    let mut one = summary("a", two_methods());
    one.problems[0].name = "../a b".into();
    let mut other = one.problems[0].clone();
    other.name = ".._a b".replace('_', "/");
    one.problems.push(other);
    let names: Vec<String> = figures(&one).into_iter().map(|(name, _)| name).collect();
    assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))), "{names:?}");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn markup_in_text_is_escaped() {
    let mut bad = method(HOSTILE, &[1.0, 0.1]);
    bad.hyperparameters = BTreeMap::from([(HOSTILE.to_owned(), toml::Value::String(HOSTILE.into()))]);
    bad.failures = vec![Failure { seed: 1, error: HOSTILE.into() }];
    let mut all = summary(HOSTILE, vec![bad]);
    for text in [&mut all.title, &mut all.description, &mut all.version] {
        *text = HOSTILE.into();
    }
    all.command = HOSTILE.into();
    (all.machine.platform, all.machine.processor) = (HOSTILE.into(), HOSTILE.into());
    let problem = &mut all.problems[0];
    (problem.name, problem.title) = (HOSTILE.into(), HOSTILE.into());
    problem.metrics[0].label = HOSTILE.into();
    all.tuning = vec![Tuning { problem: HOSTILE.into(), metric: HOSTILE.into(), ..tuning(HOSTILE, 2) }];
    for page in [html(&[all.clone()]), html(&[all.clone(), all])] {
        assert_eq!(page.matches("<script").count(), 1, "only the page's own script");
        assert!(!page.contains("<script>&"));
    }
}

#[test]
fn headings_come_in_order() {
    let mut one = summary("a", two_methods());
    one.tuning = vec![tuning("str", 2)];
    one.problems[0].methods[1].failures = vec![Failure { seed: 3, error: "diverged".into() }];
    for page in [html(&[one.clone()]), html(&[one.clone(), one])] {
        let levels: Vec<u32> = page.split("<h").filter_map(|rest| rest.chars().next()?.to_digit(10)).collect();
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1);
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{levels:?}");
    }
}

#[test]
fn the_table_marks_the_best_and_lists_failures() {
    let mut methods = two_methods();
    methods[1].failures = vec![Failure { seed: 7, error: "the objective is not finite".into() }];
    let page = html(&[summary("a", methods)]);
    assert!(page.contains("★</span> 1.00e-09 ± 1.50e-09</td>"));
    assert!(page.contains("<td class=\"group\">2.50e-01 ± 3.75e-01</td>"));
    assert!(page.contains("<strong>sgd</strong>, seed 7: the objective is not finite"));
    assert!(page.contains("3 / 1"));
    assert!(!html(&[summary("a", two_methods())]).contains("Failures"));
}

#[test]
fn the_highest_accuracy_is_marked_as_best() {
    let mut one = summary("a", two_methods());
    one.problems[0].metrics = vec![Metric { key: "test_accuracy".into(), label: "accuracy".into(), log: false }];
    for (method, accuracy) in one.problems[0].methods.iter_mut().zip([0.9123, 0.85]) {
        let spread = Spread { mean: accuracy, std: 0.01, median: accuracy, quartiles: None };
        method.last.as_mut().expect("a last point").metrics.insert("test_accuracy".into(), spread);
    }
    assert!(html(&[one]).contains("★</span> 0.9123 ± 0.0100</td>"));
}

#[test]
fn the_page_reports_whether_tuning_budgets_are_equal() {
    let mut one = summary("a", two_methods());
    one.tuning = vec![tuning("str", 4), tuning("sgd", 4)];
    assert!(html(&[one.clone()]).contains("Budgets are equal: every method tried 4 settings with 3 seeds each."));
    one.tuning[1] = tuning("sgd", 8);
    assert!(
        html(&[one.clone()])
            .contains("not</strong> equal: str tried 4 settings in 12 runs; sgd tried 8 settings in 24 runs.")
    );
    one.tuning.pop();
    assert!(html(&[one]).contains("Not tuned: sgd."));
}

#[test]
fn runs_of_the_same_problem_are_drawn_together() {
    let page = html(&[summary("small", two_methods()), summary("tuned", two_methods())]);
    assert!(page.contains("All runs together") && page.contains("str (small)") && page.contains("sgd (tuned)"));
    let twice = html(&[summary("same", two_methods()), summary("same", two_methods())]);
    assert!(twice.contains("str (same, run 1)") && twice.contains("str (same, run 2)"));
    // What differs between them is their name.
    let mut wider = summary("same", two_methods());
    wider.batch += 1;
    let (small, large) =
        (format!("str (same, batch={})", wider.batch - 1), format!("str (same, batch={})", wider.batch));
    let page = html(&[summary("same", two_methods()), wider.clone()]);
    assert!(page.contains(&small) && page.contains(&large), "{page}");
    let mut faster = wider.clone();
    faster.problems[0].methods[1].hyperparameters.insert("learning_rate".into(), toml::Value::Float(0.5));
    let page = html(&[wider.clone(), faster, wider]);
    for name in ["sgd.learning_rate=0.5", "sgd.learning_rate=0.001, run 1", "sgd.learning_rate=0.001, run 2"] {
        assert!(page.contains(&format!("str (same, {name})")), "{name}");
    }

    let mut other = summary("other", two_methods());
    other.problems[0].metrics.pop();
    assert!(!html(&[summary("small", two_methods()), other]).contains("All runs together"));
}

#[test]
fn empty_summaries_give_a_page() {
    let mut bare = summary("a", vec![]);
    assert!(html(&[bare.clone()]).contains("no data"));
    bare.problems.clear();
    for page in [html(&[]), html(&[bare]), html(&[summary("a", vec![method("sgd", &[])])])] {
        assert!(page.ends_with("</html>\n"));
    }
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(0.0),
        (-40.0..4.0_f64).prop_map(|e| 10_f64.powf(e))
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_numbers_give_a_page(
        first in prop::collection::vec(any_value(), 0..6), second in prop::collection::vec(any_value(), 0..6), score in any_value(),
    ) {
        let mut one = summary("a", vec![method("str", &first), method("sgd", &second)]);
        one.tuning = vec![tuning("sgd", 2)];
        one.tuning[0].tried[0].score = Some(score);
        prop_assert!(html(&[one]).ends_with("</html>\n"));
    }
}

#[test]
fn sections_checks_and_diagnoses_are_shown_escaped_and_survive_json() {
    use strust_lab::{
        analyze::diagnose::{Diagnosis, Finding, Remedy, RunVerdict},
        data::section::{Check, Section, Shown, Table},
        figure::{Axis, Figure, Point, Series},
    };
    let axis = |label: &str| Axis { label: label.into(), log: false };
    let points = vec![Point { x: 1.0, y: 2.0, low: 1.5, high: f64::INFINITY }, Point::at(f64::NAN, f64::NAN)];
    let figure = Figure {
        title: format!("title {HOSTILE}"),
        x: axis("x"),
        y: axis("y"),
        series: vec![Series { name: HOSTILE.into(), color: 0, points }],
    };
    let checks = vec![
        Check::at_most(HOSTILE, 0.5, 1.0, HOSTILE),
        Check::at_most("a claim that fails", 2.0, 1.0, "it is larger"),
        Check::at_most("a claim that is open", f64::NAN, 1.0, "nothing was measured"),
    ];
    let mut one = summary("theory", vec![]);
    one.problems = vec![];
    one.checks.clone_from(&checks);
    one.sections = vec![Section {
        name: HOSTILE.into(),
        title: HOSTILE.into(),
        description: HOSTILE.into(),
        findings: vec![HOSTILE.into()],
        figures: vec![Shown { stem: "a/b".into(), caption: HOSTILE.into(), figure }],
        tables: vec![Table::new(HOSTILE, HOSTILE, vec![vec![HOSTILE.into()]])],
        checks,
    }];
    one.diagnoses = vec![Diagnosis {
        problem: HOSTILE.into(),
        method: HOSTILE.into(),
        seed: 3,
        state: HOSTILE.into(),
        verdict: Some(RunVerdict::TooSlow),
        why: HOSTILE.into(),
        remedy: Some(Remedy {
            set: vec![HOSTILE.into()],
            command: HOSTILE.into(),
            reason: HOSTILE.into(),
            effect: HOSTILE.into(),
        }),
        findings: vec![Finding { about: HOSTILE.into(), text: HOSTILE.into(), numbers: BTreeMap::new() }],
        advice: vec![HOSTILE.into()],
    }];
    let page = html(std::slice::from_ref(&one));
    assert!(!page.contains(HOSTILE) && page.contains("1 of 3 claims hold. 1 is open"));
    assert!(page.contains(">fails<") && page.contains(">open<"));
    assert_eq!(figures(&one).iter().map(|(stem, _)| stem.as_str()).collect::<Vec<_>>(), ["a-b"]);
    let text = serde_json::to_string(&one).unwrap();
    let back: Summary = serde_json::from_str(&text).unwrap();
    assert!(back.checks[2].is_open() && !back.checks[2].holds);
    // NaN is not equal to itself, so compare the texts.
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
}
