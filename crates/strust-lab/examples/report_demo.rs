//! Looks at a report with made-up data.
use std::collections::BTreeMap;
use strust_lab::report;
use strust_lab::summary::*;

fn noise(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    ((*seed >> 33) as f64 / (1u64 << 31) as f64) * 2.0 - 1.0
}

fn method(
    name: &str,
    label: &str,
    rates: [f64; 2],
    floor: f64,
    time: f64,
    evals: f64,
    tr: bool,
    fails: bool,
    hyper: &[(&str, toml::Value)],
) -> MethodSummary {
    let mut s = name.len() as u64 * 77 + (rates[0] * 1e4) as u64;
    let curve: Vec<CurvePoint> = (0..=50u64)
        .map(|k| {
            let mut metrics = BTreeMap::new();
            for (key, rate, start) in [("objective_gap", rates[0], 2.0), ("infeasibility", rates[1], 0.7)] {
                let mean = (start * (-(rate) * k as f64).exp()).max(floor) * (0.4 * noise(&mut s)).exp();
                let std = mean * (0.8 + 0.45 * noise(&mut s)) * if k == 0 { 0.1 } else { 1.0 };
                metrics.insert(key.to_string(), Spread { mean, std, median: mean * 0.9 });
            }
            CurvePoint {
                epoch: k,
                seconds: MeanStd { mean: time * k as f64, std: 0.01 * time * k as f64 },
                evaluations: MeanEvaluations {
                    values: if tr { evals * k as f64 } else { 0.0 },
                    gradients: evals * k as f64,
                },
                metrics,
            }
        })
        .collect();
    let radius = if tr {
        (1..=50)
            .map(|k| {
                let m = 0.5 * (-0.2 * k as f64).exp() * (0.3 * noise(&mut s)).exp();
                Spread { mean: m, std: 0.3 * m, median: m }
            })
            .collect()
    } else {
        vec![]
    };
    MethodSummary {
        name: name.into(),
        label: label.into(),
        hyperparameters: hyper.iter().map(|(k, v)| (k.to_string(), v.clone())).collect(),
        seeds: if fails { vec![0, 1, 2, 4] } else { vec![0, 1, 2, 3, 4] },
        last: curve.last().cloned(),
        curve,
        acceptance_rate: if tr { 0.873 } else { 1.0 },
        radius,
        failures: if fails {
            vec![Failure {
                seed: 3,
                error: "the objective is not finite at step 812: NaN; a smaller learning_rate may help".into(),
            }]
        } else {
            vec![]
        },
    }
}

fn summary(experiment: &str, shift: f64) -> Summary {
    let f = |v: f64| toml::Value::Float(v);
    let methods = vec![
        method(
            "str-p",
            "str-p",
            [1.4 + shift, 1.3],
            1e-30,
            0.021,
            200.0,
            true,
            false,
            &[
                ("radius", f(1.0)),
                ("maximum_radius", f(10.0)),
                ("penalty", f(100.0)),
                ("expand", f(2.0)),
                ("shrink", f(0.5)),
                ("accept", f(0.1)),
                ("expand_above", f(0.75)),
            ],
        ),
        method(
            "projected-sgd",
            "projected-sgd",
            [0.09, 0.6],
            1e-16,
            0.031,
            100.0,
            false,
            false,
            &[("learning_rate", f(0.03)), ("decay", f(0.5))],
        ),
        method(
            "riemannian-sgd",
            "riemannian-sgd",
            [0.5 + shift, 0.9],
            1e-22,
            0.044,
            100.0,
            false,
            false,
            &[("learning_rate", f(0.1)), ("momentum", f(0.9)), ("retraction", toml::Value::String("qr".into()))],
        ),
        method(
            "augmented-lagrangian",
            "augmented-lagrangian",
            [0.25, 0.12],
            1e-10,
            0.018,
            150.0,
            false,
            true,
            &[("learning_rate", f(0.01)), ("penalty", f(10.0)), ("multiplier_step", f(1e-8))],
        ),
    ];
    let metrics = vec![
        Metric { key: "objective_gap".into(), label: "objective gap f(W) − f*".into(), log: true },
        Metric { key: "infeasibility".into(), label: "infeasibility ‖WᵀW − I‖".into(), log: true },
    ];
    let parameters = [
        ("rows", toml::Value::Integer(1000)),
        ("columns", toml::Value::Integer(20)),
        ("rank", toml::Value::Integer(5)),
        ("noise", f(0.0)),
    ];
    let trial = |lr: f64, score: Option<f64>| Trial {
        setting: [("learning_rate".to_string(), f(lr)), ("momentum".to_string(), f(0.9))].into(),
        score,
    };
    let tuning = |method: &str| Tuning {
        problem: "subspace".into(),
        method: method.into(),
        metric: "objective_gap after 50 epochs".into(),
        tried: vec![
            trial(0.03, Some(1.2e-9)),
            trial(0.1, Some(4.4e-9)),
            trial(0.01, Some(7.1e-5)),
            trial(0.003, Some(2.0e-2)),
            trial(0.3, None),
            trial(1.0, None),
        ],
        cost: TuningCost { runs: 18, gradients: 90_000, values: 0, seconds: 27.4 },
    };
    Summary {
        experiment: experiment.into(),
        title: "Principal subspace, small".into(),
        description: "The five leading eigenvectors of a 1000 × 20 data matrix from mini-batches, with orthonormal columns as the constraint.".into(),
        version: "0.1.0".into(),
        command: "strust run experiments/subspace-small.toml --jobs 4 --out runs/subspace-small".into(),
        machine: Machine { platform: "linux x86_64".into(), processor: "AMD EPYC 7B13".into(), cores: 64, jobs: 4 },
        epochs: 50,
        batch: 10,
        problems: vec![ProblemSummary { name: "subspace".into(), title: "Principal subspace on the Stiefel manifold".into(), parameters: parameters.iter().map(|(k, v)| (k.to_string(), v.clone())).collect(), metrics, methods }],
        tuning: vec![tuning("projected-sgd"), tuning("riemannian-sgd"), tuning("augmented-lagrangian")],
    }
}

fn main() {
    let out = std::path::PathBuf::from(std::env::args().nth(1).expect("a folder"));
    let one = summary("subspace-small", 0.0);
    let two = summary("subspace-small-tuned", 0.3);
    std::fs::write(out.join("one.html"), report::html(std::slice::from_ref(&one))).unwrap();
    std::fs::write(out.join("two.html"), report::html(&[one.clone(), two])).unwrap();
    for (stem, figure) in report::figures(&one) {
        std::fs::write(out.join(format!("{stem}.png")), figure.png(2.0).unwrap()).unwrap();
        std::fs::write(out.join(format!("{stem}.svg")), figure.svg(strust_lab::figure::Theme::File)).unwrap();
    }
}
