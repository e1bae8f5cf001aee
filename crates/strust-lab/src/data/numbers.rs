//! Numbers in JSON, which has no NaN and no infinity: both are written as null.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use std::collections::BTreeMap;

/// Reads null as NaN. Every number of a file that the program writes as JSON needs it, alone or in a collection.
pub(super) fn numbers<'de, D: Deserializer<'de>, T: JsonNumbers>(from: D) -> Result<T, D::Error> {
    T::Written::deserialize(from).map(T::from_written)
}

/// Numbers, alone or in a collection.
pub(super) trait JsonNumbers {
    /// The same with absent numbers.
    type Written: DeserializeOwned;
    fn from_written(written: Self::Written) -> Self;
}

impl JsonNumbers for f64 {
    type Written = Option<f64>;
    fn from_written(written: Option<f64>) -> Self {
        written.unwrap_or(f64::NAN)
    }
}

impl JsonNumbers for Option<(f64, f64)> {
    type Written = Option<(Option<f64>, Option<f64>)>;
    fn from_written(written: Self::Written) -> Self {
        written.map(|(a, b)| (f64::from_written(a), f64::from_written(b)))
    }
}

impl JsonNumbers for BTreeMap<String, f64> {
    type Written = BTreeMap<String, Option<f64>>;
    fn from_written(written: Self::Written) -> Self {
        written.into_iter().map(|(key, number)| (key, f64::from_written(number))).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::data::{
        benchmark::{BestTuned, EntrantSummary, Half, Judge, Role, TaskSummary, TestComparison, VariationSummary},
        diagnosis::{Diagnosis, Finding},
        figure::{Axis, Figure, Point, Series},
        record::{EpochRecord, Line, Timing},
        section::{Check, Section, Shown},
        summary::{
            CurvePoint, MeanEvaluations, MethodSummary, ProblemSummary, Solution, SolverVerdict, Spread, Summary,
            TriedSetting, Tuning, TuningCost,
        },
    };
    use proptest::prelude::*;
    use serde::{Serialize, de::DeserializeOwned};
    use serde_json::Value;
    use std::{collections::BTreeMap, fmt::Debug};
    use strust::{
        models::Exit,
        objective::Evaluations,
        radius::{Change, Verdict},
        record::{RegionRecord, StepRecord},
    };

    fn named<T>(value: T) -> BTreeMap<String, T> {
        BTreeMap::from([("x".into(), value)])
    }

    fn step(x: f64) -> Line {
        let region = RegionRecord {
            radius: x,
            exit: Exit::Boundary,
            trial: Some(x),
            predicted: x,
            ratio: Some(x),
            change: Change::Grow,
        };
        Line::Step(StepRecord {
            k: 1,
            value: x,
            gradient_norm: x,
            step_size: x,
            step_length: x,
            verdict: Verdict::Accepted,
            region: Some(region),
            constraint_norm: Some(x),
            evaluations: Evaluations { values: 1, gradients: 2, products: 3 },
        })
    }

    fn epoch(x: f64) -> Line {
        Line::Epoch(EpochRecord {
            epoch: 1,
            steps: 2,
            accepted: 2,
            skipped: 0,
            evaluations: Evaluations { values: 1, gradients: 2, products: 3 },
            trust_region: named(x),
            metrics: named(x),
        })
    }

    fn spread(x: f64) -> Spread {
        Spread { mean: x, std: x, median: x, quartiles: Some((x, x)) }
    }

    fn task(x: f64) -> TaskSummary {
        let tried = || TriedSetting { setting: BTreeMap::new(), score: Some(x) };
        TaskSummary {
            name: "a".into(),
            title: String::new(),
            half: Half::Development,
            problem: String::new(),
            judge: Judge::Objective,
            epochs: 1,
            batch: 1,
            steps: 1,
            start: x,
            best_tuned: Some(BestTuned { value: x, method: "b".into(), setting: BTreeMap::new() }),
            tested: Some(x),
            ratio: Some(x),
            steps_ratio: Some(x),
            to_zero: false,
            within: false,
            nearly_within: false,
            ratio_at_equal_passes: Some(x),
            test: Some(TestComparison { metric: "m".into(), tested: spread(x), best_tuned: spread(x), holds: false }),
            price: Some(x),
            methods: vec![EntrantSummary {
                label: "b".into(),
                role: Role::Tuned,
                setting: None,
                value: Some(x),
                ratio: Some(x),
                steps_ratio: Some(x),
                price: Some(x),
                test: Some(spread(x)),
                failed: 0,
                at_edge: false,
                tried: vec![tried()],
            }],
            variations: vec![VariationSummary {
                parameter: "p".into(),
                default: x,
                setting: x,
                value: Some(x),
                ratio: Some(x),
                within: false,
            }],
        }
    }

    fn section(x: f64) -> Section {
        let axis = || Axis { label: "a".into(), log: false };
        let series = vec![Series { name: "a".into(), color: 0, points: vec![Point { x, y: x, low: x, high: x }] }];
        let figure = Figure { title: "a".into(), x: axis(), y: axis(), series };
        let figures = vec![Shown { stem: "a".into(), caption: String::new(), figure }];
        Section { figures, checks: vec![Check::at_most("a", x, x, "b")], ..Section::new("a", "b", "c") }
    }

    fn method(x: f64) -> MethodSummary {
        let point = CurvePoint {
            epoch: 1,
            seconds: spread(x),
            evaluations: MeanEvaluations { values: x, gradients: x, products: x },
            metrics: named(spread(x)),
        };
        MethodSummary {
            name: "a".into(),
            label: "a".into(),
            hyperparameters: BTreeMap::new(),
            seeds: vec![0],
            curve: vec![point.clone()],
            last: Some(point),
            acceptance_rate: x,
            trust_region: named(vec![spread(x)]),
            failures: vec![],
            solution: Some(Solution {
                solved: true,
                verdict: SolverVerdict::Converged,
                gradients: 1,
                objective_error: Some(x),
                constraint_norm: Some(x),
                kkt: Some(x),
            }),
        }
    }

    fn summary(x: f64) -> Summary {
        let (name, text) = ("a".to_string(), String::new());
        Summary {
            experiment: name.clone(),
            problems: vec![ProblemSummary {
                name: name.clone(),
                kind: None,
                title: text.clone(),
                parameters: BTreeMap::new(),
                metrics: vec![],
                methods: vec![method(x)],
            }],
            tuning: vec![Tuning {
                problem: name.clone(),
                method: name.clone(),
                metric: name.clone(),
                tried: vec![TriedSetting { setting: BTreeMap::new(), score: Some(x) }],
                cost: TuningCost { seconds: x, ..TuningCost::default() },
            }],
            tasks: vec![task(x)],
            diagnoses: vec![Diagnosis {
                problem: name.clone(),
                method: name.clone(),
                seed: 0,
                state: text.clone(),
                verdict: None,
                why: text,
                findings: vec![Finding::new("a", "", &[("x", x)])],
                remedy: None,
                advice: vec![],
            }],
            checks: vec![Check::at_most("a", x, x, "b")],
            sections: vec![section(x)],
            ..Summary::default()
        }
    }

    /// All fractions of a value.
    fn fractions<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Value>) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(|one| fractions(one, found)),
            Value::Object(all) => all.values_mut().for_each(|one| fractions(one, found)),
            number if number.is_f64() => found.push(number),
            _ => {}
        }
    }

    /// The same without nulls: an absent number may be null or left out.
    fn without_nulls(value: &Value) -> Value {
        match value {
            Value::Array(all) => all.iter().map(without_nulls).collect(),
            Value::Object(all) => {
                let kept = all.iter().filter(|(_, one)| !one.is_null());
                kept.map(|(key, one)| (key.clone(), without_nulls(one))).collect()
            }
            other => other.clone(),
        }
    }

    /// Replaces each number by null, one at a time: the rest is read as it was. Returns how many there are.
    fn check_each<T: Serialize + DeserializeOwned>(value: &T) -> usize {
        let json = serde_json::to_value(value).unwrap();
        let mut copy = json.clone();
        let mut found = Vec::new();
        fractions(&mut copy, &mut found);
        let count = found.len();
        for i in 0..count {
            let mut edited = json.clone();
            let mut places = Vec::new();
            fractions(&mut edited, &mut places);
            *places[i] = Value::Null;
            let text = edited.to_string();
            let read: T = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
            let again = serde_json::to_value(&read).unwrap();
            assert_eq!(without_nulls(&again), without_nulls(&edited), "{text}");
        }
        count
    }

    #[test]
    fn every_number_of_every_file_may_be_null() {
        let counts = [check_each(&step(0.5)), check_each(&epoch(0.5)), check_each(&Timing { epoch: 1, seconds: 0.5 })];
        assert_eq!(counts, [9, 2, 1]);
        assert!(check_each(&summary(0.5)) > 70);
    }

    /// Writes and reads a value.
    fn again<T: Serialize + DeserializeOwned + Debug>(value: &T) -> T {
        serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn whatever_a_record_holds_is_read_back(x in prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::INFINITY),
            Just(f64::NEG_INFINITY), Just(f64::MIN_POSITIVE / 3.0), Just(-0.0)]) {
            // Debug shows every number with all its digits, and NaN as equal to NaN.
            let read = |line: &Line| format!("{:?}", again(line));
            let expected = if x.is_finite() { x } else { f64::NAN };
            let mut record = step(expected);
            if let (Line::Step(StepRecord { region: Some(region), constraint_norm, .. }), false) = (&mut record, x.is_finite()) {
                (region.trial, region.ratio, *constraint_norm) = (None, None, None);
            }
            prop_assert_eq!(read(&step(x)), format!("{:?}", record));
            prop_assert_eq!(read(&epoch(x)), format!("{:?}", epoch(expected)));
            prop_assert_eq!(format!("{:?}", again(&Timing { epoch: 1, seconds: x })), format!("{:?}", Timing { epoch: 1, seconds: expected }));
            prop_assert_eq!(format!("{:?}", again(&spread(x))), format!("{:?}", spread(expected)));
        }
    }
}
