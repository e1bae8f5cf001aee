//! A state that Rust and Python exchange. `python/tests/test_state.py` has the same run.

use strust::{methods::AutoState, prelude::*};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/state.json");
const Y: [f64; 5] = [1.0, 3.5, 4.5, 7.0, 9.5];

/// The state after ten steps and the point after twenty.
#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Exchanged {
    state: AutoState<Vec<f64>>,
    end: Vec<f64>,
}

/// A straight line through five points, in the order of operations of the Python test.
// `from_fn` passes the vector itself.
#[allow(clippy::ptr_arg)]
fn line(x: &Vec<f64>, sample: &Sample, gradient: Option<&mut Vec<f64>>) -> f64 {
    let (mut value, mut g) = (0.0, [0.0, 0.0]);
    for &i in sample.indices() {
        let r = x[0] + x[1] * i as f64 - Y[i];
        value += 0.5 * r * r;
        g[0] += r;
        g[1] += r * i as f64;
    }
    let n = sample.len() as f64;
    if let Some(gradient) = gradient {
        (gradient[0], gradient[1]) = (g[0] / n, g[1] / n);
    }
    value / n
}

#[test]
fn a_state_moves_between_rust_and_python() {
    let mut f = from_fn(5, line);
    let run =
        |steps| strust::minimize(&mut from_fn(5, line)).batch(2).seed(3).stop(Stop::steps(steps)).start(vec![0.0, 0.0]);
    let here = Exchanged { state: run(10).unwrap().state, end: run(20).unwrap().state.into_point() };
    if std::env::var_os("STRUST_BLESS").is_some() {
        std::fs::write(PATH, serde_json::to_string_pretty(&here).unwrap() + "\n").unwrap();
    }
    let saved: Exchanged = serde_json::from_str(&std::fs::read_to_string(PATH).unwrap()).unwrap();
    assert_eq!(here, saved, "run with STRUST_BLESS=1 to write it again, and then the Python test");
    let report = minimize(&mut f).batch(2).seed(3).stop(Stop::steps(20)).resume(saved.state).unwrap();
    assert_eq!(*report.point(), saved.end);
}
