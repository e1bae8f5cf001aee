//! The runs that the Python optimizers repeat: `python/tests/torch/golden/*.json`.
//!
//! `STRUST_UPDATE=python-golden cargo test -p strust --test library python_golden` writes the files. Without the variable
//! the tests check that the files still are what this library computes.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use strust::{constraints::Sphere, prelude::*, radius::Verdict, vector::Vector};

const STEPS: usize = 300;
/// Steps of a run that amplifies rounding errors: later points cannot be compared.
const FEW: usize = 20;
/// Every so many steps the point is written.
const EVERY: usize = 10;

/// The part of the baselines' golden files that describes the problem.
#[derive(Deserialize)]
struct BaselineProblem {
    rows: Vec<Vec<f64>>,
    targets: Vec<f64>,
    start: Vec<f64>,
    batches: Vec<Vec<usize>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PythonGolden {
    made_by: String,
    problem: String,
    rows: Vec<Vec<f64>>,
    targets: Vec<f64>,
    start: Vec<f64>,
    batches: Vec<Vec<usize>>,
    runs: Vec<PythonRun>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PythonRun {
    method: String,
    config: Value,
    /// The start is multiplied by this.
    scale: f64,
    /// One letter per step: A for accepted, R for rejected.
    verdicts: String,
    /// The answer after every tenth step.
    points: Vec<Vec<f64>>,
}

/// ½(aᵀx − b)², log(1 + exp(−b·aᵀx)), or (aᵀx)⁴/4 − b·aᵀx, whose curvature changes.
fn objective(problem: &'static str, rows: Vec<Vec<f64>>, targets: Vec<f64>) -> impl Objective<Point = Vec<f64>> {
    from_terms(rows.len(), move |i, x: &Vec<f64>, g| {
        let (a, b) = (&rows[i], targets[i]);
        let product = a.dot(x);
        let (value, slope) = match problem {
            "logistic" => ((-b * product).exp().ln_1p(), -b / (1.0 + (b * product).exp())),
            "quartic" => (0.25 * product.powi(4) - b * product, product.powi(3) - b),
            _ => (0.5 * (product - b).powi(2), product - b),
        };
        g.add(slope, a);
        value
    })
}

fn run<F, M>(f: &mut F, mut method: M, start: &[f64], batches: &[Vec<usize>], steps: usize) -> (String, Vec<Vec<f64>>)
where
    F: Objective<Point = Vec<f64>>,
    M: Method<F>,
{
    let mut state = method.init(f, start.to_vec()).expect("the start fits the problem");
    let (mut verdicts, mut points) = (String::new(), Vec::new());
    for k in 0..steps {
        let sample = Sample::new(batches[k % batches.len()].clone(), k as u64);
        let record = method.step(f, &mut state, &sample).expect("the problem is finite");
        verdicts.push(if record.verdict == Verdict::Accepted { 'A' } else { 'R' });
        if (k + 1).is_multiple_of(EVERY) {
            points.push(state.point().clone());
        }
    }
    (verdicts, points)
}

fn made(problem: &'static str, source: &str) -> PythonGolden {
    let BaselineProblem { rows, targets, start, batches } =
        serde_json::from_str(source).expect("the baselines' golden file");
    let mut f = objective(problem, rows.clone(), targets.clone());
    let mut runs = Vec::new();
    for scale in [1.0, 10.0] {
        let start: Vec<f64> = start.iter().map(|x| scale * x).collect();
        let mut add = |method: &str, config: Value, (verdicts, points): (String, Vec<Vec<f64>>)| {
            runs.push(PythonRun { method: method.into(), config, scale, verdicts, points });
        };
        // The last of these makes steps that are too long, so that some are rejected.
        for (config, steps) in [
            (json!({}), STEPS),
            (json!({"weight_decay": 0.1, "momentum": 0.5, "gamma": 3.0, "noise": 1.0}), STEPS),
            (json!({"momentum": 0.0, "gamma": 60.0, "noise": 100.0}), FEW + EVERY),
        ] {
            let method =
                Auto::new(serde_json::from_value(config.clone()).expect("our names")).expect("in their ranges");
            add("auto", config, run(&mut f, method, &start, &batches, steps));
        }
        for config in [json!({}), json!({"initial_radius": 0.1, "max_radius": 1.0, "grow": 2.0, "shrink": 4.0})] {
            let method = Str::new(serde_json::from_value(config.clone()).expect("our names")).expect("in their ranges");
            add("str", config, run(&mut f, method, &start, &batches, STEPS));
        }
        let config = json!({"penalty": 10.0});
        let penalized = serde_json::from_value(config.clone()).expect("our names");
        let method = StrP::new(penalized, Sphere::new(1.0).expect("positive")).expect("in their ranges");
        add("str-p", config, run(&mut f, method, &start, &batches, 4 * FEW));
    }
    let made_by = "STRUST_UPDATE=python-golden cargo test -p strust --test library python_golden".into();
    PythonGolden { made_by, problem: problem.into(), rows, targets, start, batches, runs }
}

fn check(problem: &'static str, source: &str) {
    let made = made(problem, source);
    let file =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../python/tests/torch/golden/{problem}.json"));
    if std::env::var("STRUST_UPDATE").is_ok_and(|what| what == "python-golden") {
        let PythonGolden { made_by, problem, rows, targets, start, batches, runs } = &made;
        // One run a line.
        let runs: Vec<String> = runs.iter().map(|run| json!(run).to_string()).collect();
        let head = json!({"made_by": made_by, "problem": problem, "rows": rows, "targets": targets, "start": start,
            "batches": batches})
        .to_string();
        let text = format!("{},\n\"runs\": [\n{}\n]}}\n", head.trim_end_matches('}'), runs.join(",\n"));
        fs::write(&file, text).expect("the folder exists");
    }
    let text = fs::read_to_string(&file).expect("the golden file of the Python tests");
    let kept: PythonGolden = serde_json::from_str(&text).expect("a file of this test");
    assert_eq!(kept.runs.len(), made.runs.len(), "{}", made.made_by);
    for (kept, made) in kept.runs.iter().zip(&made.runs) {
        assert_eq!((&kept.method, &kept.config, &kept.verdicts), (&made.method, &made.config, &made.verdicts));
        for (kept, made) in kept.points.iter().zip(&made.points) {
            let mut difference = kept.clone();
            difference.add(-1.0, made);
            assert!(difference.norm() <= 1e-9 * (1.0 + made.norm()), "{kept:?} is now {made:?}");
        }
    }
}

#[test]
fn the_python_optimizers_are_compared_with_the_current_runs_on_least_squares() {
    check("least-squares", include_str!("../golden/least-squares.json"));
}

#[test]
fn the_python_optimizers_are_compared_with_the_current_runs_on_a_logistic_problem() {
    check("logistic", include_str!("../golden/logistic.json"));
}

#[test]
fn the_python_optimizers_are_compared_with_the_current_runs_where_the_curvature_changes() {
    check("quartic", include_str!("../golden/least-squares.json"));
}
