//! Steps that every version of the controller must repeat: `python/tests/torch/auto-steps.json`. The Python tests compare
//! the operations of torch and the kernels with them.
//!
//! `STRUST_UPDATE=python-golden cargo test -p strust golden` writes the file.

use super::{CONSTANTS, Follow, Learned, Noise, TrialNumbers, middle_of_stable};
use crate::{
    objective::Evaluation,
    saved::{Load, Save, Saved},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fs, path::Path};

const GAMMA: f64 = 0.7;
const Q: f64 = 0.7;
const MOMENTUM: f64 = 0.9;
const POWER: f64 = 3.0;

/// What a step measures. In the file a number that is not finite is null.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct GoldenMeasured {
    distance: f64,
    difference: f64,
    /// The size of a first step.
    first: f64,
    squared_norm: Option<f64>,
    balance: f64,
    value: f64,
    rounding: f64,
    trial: Option<f64>,
    slope: f64,
    square: f64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct GoldenStep {
    what: String,
    known: [f64; 14],
    measured: GoldenMeasured,
    size: f64,
    share: f64,
    accepted: bool,
    learned: [f64; 14],
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct GoldenSteps {
    constants: BTreeMap<String, f64>,
    settings: BTreeMap<String, f64>,
    steps: Vec<GoldenStep>,
}

/// The order of [`Auto`](crate::methods::Auto).
fn step(what: &str, known: Learned, measured: GoldenMeasured) -> GoldenStep {
    let GoldenMeasured { distance, difference, first, squared_norm, balance, value, rounding, trial, slope, square } =
        measured;
    let mut learned = known;
    let with = known.with_measured(distance, difference);
    let share = with.noise.share(POWER);
    let longest = GAMMA * middle_of_stable(MOMENTUM, share);
    let size = with.next_size(longest, with.longest_against_noise(Q)).unwrap_or(first);
    let mut accepted = false;
    match squared_norm {
        None => learned.retreat(),
        Some(0.0) => {}
        Some(_) => {
            let f0 = Evaluation { value, rounding };
            accepted = learned.judge(Follow::Moments, &TrialNumbers::of(f0, trial.unwrap_or(f64::NAN), slope, square));
            if accepted {
                learned.accept(&with, size, balance);
            } else {
                learned.reject(size);
            }
        }
    }
    GoldenStep {
        what: what.into(),
        known: known.numbers(),
        measured,
        size,
        share,
        accepted,
        learned: learned.numbers(),
    }
}

/// One step for each branch.
fn steps() -> Vec<GoldenStep> {
    let known = Learned {
        accepted: 30,
        curvature: Some(2.0),
        curvatures: (1.5, 3.0),
        noise: Noise { mean: 0.5, recent: 0.4, least: 0.3, remembered: 25.0 },
        distance: 9.0,
        size: Some(0.5),
        trust: 0.8,
        balance: 4.0,
        balances: 30.0,
        at_average: false,
    };
    // The trial shows the curvature 2(−0.5 + 0.9)/0.3 = 2.7.
    let measured = GoldenMeasured {
        distance: 6.0,
        difference: 0.6,
        first: 0.01,
        squared_norm: Some(4.0),
        balance: 0.4,
        value: 10.0,
        rounding: 1e-14,
        trial: Some(9.5),
        slope: -0.9,
        square: 0.3,
    };
    let rejected = GoldenMeasured { trial: Some(20.0), ..measured };
    let unknown = Learned { curvature: None, ..known };
    let rejected_before =
        Learned { curvature: Some(2.0), curvatures: (2.0, 4.0), size: Some(0.01), ..Learned::default() };
    let noise = known.noise;
    let long = Learned { size: Some(100.0), ..known };
    let later = |accepted, recent, least, remembered| Learned {
        accepted,
        noise: Noise { recent, least, remembered, ..noise },
        ..known
    };
    let calm = GoldenMeasured { difference: 0.1, ..measured };
    let window = |trust, balance| Learned { accepted: 99, trust, balance, balances: 99.0, ..known };
    // The recent noise is a fifth of the mean.
    let vanishing = |trust, balance| Learned { noise: Noise { recent: 0.1, ..noise }, ..window(trust, balance) };
    let with_balance = |balance| GoldenMeasured { balance, ..measured };
    vec![
        step("the first step", Learned::default(), measured),
        step("the first step is rejected", Learned::default(), rejected),
        step(
            "the second step",
            Learned { accepted: 1, size: Some(0.01), curvature: Some(2.0), ..Learned::default() },
            measured,
        ),
        step("a step grows", Learned { size: Some(0.001), ..known }, measured),
        step("the curvature limits a step", Learned { accepted: 9, ..long }, measured),
        step("noise limits a step", Learned { curvature: Some(0.01), ..long }, measured),
        step("noise is not known yet", Learned { accepted: 9, curvature: Some(0.01), ..long }, measured),
        step(
            "no noise",
            Learned { noise: Noise { remembered: 25.0, ..Noise::default() }, curvature: Some(0.01), ..long },
            GoldenMeasured { difference: 0.0, ..measured },
        ),
        step("the distance grows", known, GoldenMeasured { distance: 49.0, ..measured }),
        step("a smaller curvature", known, GoldenMeasured { slope: -0.6, ..measured }),
        step("a negative curvature", known, GoldenMeasured { slope: -0.4, ..measured }),
        step("a much larger curvature", known, GoldenMeasured { slope: -40.0, ..measured }),
        step("f grows as expected", known, GoldenMeasured { trial: Some(10.1), slope: -0.5, ..measured }),
        step("f grows more than expected", known, GoldenMeasured { trial: Some(11.0), ..measured }),
        step("f grows, and the curvature is not known", unknown, rejected),
        step("the first curvature", unknown, measured),
        step("the first curvature is negative", unknown, GoldenMeasured { slope: -0.4, ..measured }),
        step("the first curvature vanishes", rejected_before, GoldenMeasured { slope: -0.4, ..measured }),
        step("a difference below rounding", known, GoldenMeasured { rounding: 1.0, ..measured }),
        step("a step without length", known, GoldenMeasured { square: 0.0, trial: Some(10.0), slope: 0.0, ..measured }),
        step("the trial is not finite", known, GoldenMeasured { trial: None, ..measured }),
        step("the recent noise begins", later(50, 0.4, 0.3, 25.0), calm),
        step("the recent noise stays", later(200, 0.4, 0.3, 150.0), measured),
        step("the recent noise falls", later(200, 0.31, 0.308, 150.0), calm),
        step("the memory stays long enough", later(200, 0.31, 30.0, 11.0), calm),
        step("the memory is short already", later(200, 0.31, 30.0, 5.0), calm),
        step("z goes around the average", window(0.9, 60.0), measured),
        step("z goes around the average, and the noise vanishes", vanishing(0.9, 60.0), calm),
        step("a window of many steps", Learned { accepted: 799, balances: 198.0, ..vanishing(0.9, 110.0) }, calm),
        step("a window of many steps ends", Learned { accepted: 799, balances: 199.0, ..vanishing(0.9, 110.0) }, calm),
        step("z advances", window(0.5, 10.0), measured),
        step("z advances, and the steps are long", window(0.9, 10.0), measured),
        step("z does neither", window(0.5, 37.0), measured),
        step("a window ends with a rejection", window(0.9, 60.0), rejected),
        step("a large balance", known, with_balance(50.0)),
        step("a large negative balance", known, with_balance(-50.0)),
        step("z leaves the average", Learned { at_average: true, ..known }, measured),
        step("z stays at the average", Learned { at_average: true, ..known }, rejected),
        step("the gradient is 0", known, GoldenMeasured { squared_norm: Some(0.0), ..measured }),
        step("the gradient is not finite", known, GoldenMeasured { squared_norm: None, ..measured }),
    ]
}

#[test]
fn the_golden_steps_are_those_of_this_controller() {
    let named = |numbers: &[(&str, f64)]| numbers.iter().map(|&(name, value)| (name.into(), value)).collect();
    let made = GoldenSteps {
        constants: named(CONSTANTS),
        settings: named(&[("gamma", GAMMA), ("noise", Q), ("momentum", MOMENTUM), ("power", POWER)]),
        steps: steps(),
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests/torch/auto-steps.json");
    if std::env::var("STRUST_UPDATE").is_ok_and(|what| what == "python-golden") {
        let [constants, settings] = [&made.constants, &made.settings].map(|map| serde_json::json!(map));
        // One step a line.
        let steps: Vec<String> = made.steps.iter().map(|step| serde_json::json!(step).to_string()).collect();
        let head = format!("{{\"constants\": {constants},\n\"settings\": {settings},\n\"steps\": [");
        fs::write(&file, format!("{head}\n{}\n]}}\n", steps.join(",\n"))).expect("the folder exists");
    }
    let kept: GoldenSteps =
        serde_json::from_slice(&fs::read(&file).expect("the golden steps")).expect("a file of this test");
    assert_eq!(kept, made);
}

#[test]
fn plain_numbers_are_the_same_state() {
    for GoldenStep { known, learned, .. } in steps() {
        assert_eq!(Learned::from_numbers(known).numbers().to_vec(), known.to_vec());
        assert_eq!(Learned::from_numbers(learned).numbers().to_vec(), learned.to_vec());
    }
}

#[test]
fn a_saved_state_without_a_number_is_refused() {
    let known = Learned { balance: -6.5, ..Learned::default() };
    assert_eq!(Learned::load(&known.save()).unwrap(), known);
    let missing = Learned::load(&Saved::map([("accepted", Saved::Count(1))])).unwrap_err();
    assert!(missing.to_string().contains("is missing"), "{missing}");
}
