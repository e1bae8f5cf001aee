//! The runs that `strust.torch.ConstrainedAuto` repeats: `python/tests/torch/constrained-steps.json`.
//!
//! `STRUST_UPDATE=python-golden cargo test -p strust --test library constrained_golden` writes the file. Without the variable
//! the test checks that the file still is what this library computes.

use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{fs, path::PathBuf};
use strust::{
    expectation::{Expectation, MeanRow, Members},
    methods::InExpectation,
    prelude::*,
    radius::Verdict,
    vector::Vector,
};

const STEPS: usize = 200;
/// Every so many steps the point and the multipliers are written.
const EVERY: usize = 10;

#[derive(Deserialize)]
struct BaselineProblem {
    rows: Vec<Vec<f64>>,
    targets: Vec<f64>,
    start: Vec<f64>,
    batches: Vec<Vec<usize>>,
}

/// lower ≤ Σ weight·(mean of tanh(aᵀx) over the terms of a group) ≤ upper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct GoldenRow {
    parts: Vec<(f64, Vec<usize>)>,
    lower: Option<f64>,
    upper: Option<f64>,
}

impl GoldenRow {
    fn mean_row(&self, terms: usize) -> MeanRow {
        let mut parts = self.parts.iter().map(|(weight, group)| (*weight, Members::new(terms, |i| group.contains(&i))));
        let (_, first) = parts.next().expect("a row has a group, with the weight 1");
        let row = parts.fold(MeanRow::mean(&first), |row, (weight, group)| row.plus(weight, &group));
        row.between(self.lower.unwrap_or(f64::NEG_INFINITY), self.upper.unwrap_or(f64::INFINITY))
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct GoldenRun {
    what: String,
    rows: Vec<GoldenRow>,
    /// The start is multiplied by this.
    scale: f64,
    /// Whether the true score is the sign of tanh.
    rate: bool,
    /// One letter per step: A for accepted, R for rejected.
    verdicts: String,
    points: Vec<Vec<f64>>,
    multipliers: Vec<Vec<f64>>,
}

fn run(BaselineProblem { rows, targets, start, batches }: &BaselineProblem, run: &GoldenRun) -> GoldenRun {
    let n = rows.len();
    let mut f = from_terms(n, |i, x: &Vec<f64>, g| {
        let residual = rows[i].dot(x) - targets[i];
        g.add(residual, &rows[i]);
        0.5 * residual * residual
    });
    let score = from_terms(n, |i, x: &Vec<f64>, g| {
        let score = rows[i].dot(x).tanh();
        g.add(1.0 - score * score, &rows[i]);
        score
    });
    let rate = from_terms(n, |i, x: &Vec<f64>, _: &mut Vec<f64>| rows[i].dot(x).signum());
    let mean_rows = run.rows.iter().map(|row| row.mean_row(n)).collect();
    let expectation = Expectation::new(score, mean_rows).expect("the rows fit");
    let start: Vec<f64> = start.iter().map(|x| run.scale * x).collect();
    let (mut verdicts, mut points, mut multipliers) = (String::new(), Vec::new(), Vec::new());
    macro_rules! steps {
        ($method:expr) => {{
            let mut method = $method;
            let mut state = method.init(&mut f, start).expect("the start fits the problem");
            for k in 0..STEPS {
                let sample = Sample::new(batches[k % batches.len()].clone(), k as u64);
                let record = method.step(&mut f, &mut state, &sample).expect("the problem is finite");
                verdicts.push(if record.verdict == Verdict::Accepted { 'A' } else { 'R' });
                if (k + 1).is_multiple_of(EVERY) {
                    points.push(state.point().clone());
                    multipliers.push(state.multipliers());
                }
            }
        }};
    }
    if run.rate {
        steps!(InExpectation::new(expectation.with_rate(rate).expect("over the same terms")));
    } else {
        steps!(InExpectation::new(expectation));
    }
    GoldenRun { verdicts, points, multipliers, rows: run.rows.clone(), what: run.what.clone(), ..*run }
}

fn runs(n: usize) -> Vec<GoldenRun> {
    let of = |parity: usize| (0..n).filter(|i| i % 2 == parity).collect::<Vec<_>>();
    let difference = |lower, upper| GoldenRow { parts: vec![(1.0, of(0)), (-1.0, of(1))], lower, upper };
    let few = |lower, upper| GoldenRow { parts: vec![(1.0, vec![0, 1, 2])], lower, upper };
    let all = GoldenRow { parts: vec![(1.0, (0..n).collect())], lower: None, upper: Some(0.5) };
    let run = |what: &str, rows, scale, rate| {
        let (what, verdicts) = (what.into(), String::new());
        GoldenRun { what, rows, scale, rate, verdicts, points: Vec::new(), multipliers: Vec::new() }
    };
    vec![
        run("an equality", vec![difference(Some(0.1), Some(0.1))], 1.0, false),
        run("two bounds, by the rate", vec![difference(Some(-0.1), Some(0.1))], 1.0, true),
        run(
            "three rows, far away",
            vec![difference(Some(0.1), Some(0.1)), few(Some(0.2), None), all.clone()],
            10.0,
            false,
        ),
        run("a group that few batches know", vec![few(None, Some(-0.3)), all], 1.0, false),
    ]
}

#[test]
fn constrained_golden_runs_of_python_are_the_current_ones() {
    let problem: BaselineProblem =
        serde_json::from_str(include_str!("../golden/least-squares.json")).expect("the baselines' golden file");
    let made: Vec<GoldenRun> = runs(problem.rows.len()).iter().map(|one| run(&problem, one)).collect();
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../python/tests/torch/constrained-steps.json");
    if std::env::var("STRUST_UPDATE").is_ok_and(|what| what == "python-golden") {
        // One run a line.
        let lines: Vec<String> = made.iter().map(|run| json!(run).to_string()).collect();
        fs::write(&file, format!("[\n{}\n]\n", lines.join(",\n"))).expect("the folder exists");
    }
    let text = fs::read_to_string(&file).expect("the golden file of the Python tests");
    let kept: Vec<GoldenRun> = serde_json::from_str(&text).expect("a file of this test");
    assert_eq!(kept.len(), made.len());
    for (kept, made) in kept.iter().zip(&made) {
        assert_eq!((&kept.what, &kept.rows, &kept.verdicts), (&made.what, &made.rows, &made.verdicts));
        let numbers = |run: &GoldenRun| -> Vec<Vec<f64>> { [&run.points[..], &run.multipliers].concat() };
        for (kept, made) in numbers(kept).into_iter().zip(numbers(made)) {
            let mut difference = kept.clone();
            difference.add(-1.0, &made);
            assert!(
                difference.norm() <= 1e-9 * (1.0 + made.norm()),
                "{}: {kept:?} is now {made:?}",
                "constrained golden"
            );
        }
    }
}
