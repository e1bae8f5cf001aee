//! The functions of arrays and their training.

use super::{rows::SparseRows, train::ArrayModel, *};
use crate::{
    constrain::WeightConstraint, linear::LinearModel, network::NetworkModel, terms::ModelTerms, train::TrainingEnd,
};
use rand_core::Rng;
use strust::{
    diagnostics::gradient_slope,
    objective::{Objective, full_value, full_value_and_gradient},
    sample::{Sample, generator},
};

/// Numbers in (−1, 1).
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = generator(seed, 0);
    (0..n).map(|_| (rng.next_u64() >> 11) as f64 / f64::from(1 << 26) / f64::from(1 << 26) - 1.0).collect()
}

/// A sparse copy of dense rows.
fn parts(values: &[f64], d: usize) -> (Vec<i64>, Vec<i32>, Vec<f64>) {
    let (mut starts, mut columns, mut stored) = (vec![0], Vec::new(), Vec::new());
    for row in values.chunks_exact(d) {
        for (j, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            columns.push(i32::try_from(j).unwrap());
            stored.push(value);
        }
        starts.push(i64::try_from(stored.len()).unwrap());
    }
    (starts, columns, stored)
}

const LOSSES: [(OutputLoss, usize); 3] =
    [(OutputLoss::Squares, 1), (OutputLoss::Logistic, 1), (OutputLoss::Softmax, 3)];

#[test]
fn gradients_of_linear_models_pass_the_slope_check_and_do_not_depend_on_the_kind_of_rows() {
    let (n, d) = (12, 9);
    let values: Vec<f64> =
        numbers(n * d, 1).iter().map(|v| if *v < -0.3 { 0.0 } else { f64::from(*v as f32) }).collect();
    let single: Vec<f32> = values.iter().map(|&v| v as f32).collect();
    let (starts, columns, stored) = parts(&values, d);
    let kinds = [
        ArrayRows::Double(&values, d),
        ArrayRows::Single(&single, d),
        ArrayRows::Sparse(SparseRows::new(&starts, &columns, &stored, d).unwrap()),
    ];
    let weights: Vec<f64> = numbers(n, 2).iter().map(|v| 1.0 + v).collect();
    let units = InputUnits { shift: vec![0.0; d], scale: numbers(d, 3).iter().map(|v| 2.0 + v).collect() };
    for (loss, outputs) in LOSSES {
        let goals: Vec<f64> = (0..n).map(|i| (i % outputs.max(2)) as f64).collect();
        let (x, direction) = (numbers((d + 1) * outputs, 4), numbers((d + 1) * outputs, 5));
        let mut found = Vec::new();
        for rows in &kinds {
            let index: Vec<usize> = (1..n).collect();
            let weights = Some(weights.as_slice());
            let terms = ModelTerms {
                rows,
                index: &index,
                goals: &goals,
                weights,
                units: Some((&units.shift, &units.scale)),
                loss,
                outputs,
                penalty: 0.1,
                intercept: true,
            };
            let mut f = LinearModel::new(terms);
            let slope = gradient_slope(&mut f, &x, &direction, &Sample::range(2..9));
            assert!((1.9..2.1).contains(&slope), "{loss:?}: {slope}");
            let mut gradient = x.clone();
            let value = full_value_and_gradient(&mut f, &x, &mut gradient);
            found.push([vec![value], gradient].concat());
        }
        for other in &found[1..] {
            assert!(found[0].iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-14), "{loss:?}");
        }
    }
}

#[test]
fn gradients_of_networks_pass_the_slope_check() {
    let (n, d) = (12, 4);
    let (values, weights) = (numbers(n * d, 1), numbers(n, 2).iter().map(|v| 1.0 + v).collect::<Vec<_>>());
    let rows = ArrayRows::Double(&values, d);
    let units = InputUnits::measure(&rows, None, true, true);
    let (index, total): (Vec<usize>, f64) = ((0..n).collect(), weights.iter().sum());
    for (loss, outputs) in LOSSES {
        let goals: Vec<f64> = (0..n).map(|i| (i % outputs.max(2)) as f64).collect();
        let weights = Some(weights.as_slice());
        let terms = ModelTerms {
            rows: &rows,
            index: &index,
            goals: &goals,
            weights,
            units: Some((&units.shift, &units.scale)),
            loss,
            outputs,
            penalty: 0.0,
            intercept: true,
        };
        let mut f = NetworkModel::new(terms, &[d, 6, outputs]).unwrap();
        let x = f.start(3);
        let mean = f.mean_loss(&x, &index, &|| false) * total / n as f64;
        assert!((mean - full_value(&mut f, &x)).abs() < 1e-6, "the score is the objective without its penalty");
        let (sample, mut gradient) = (Sample::range(1..11), x.clone());
        f.value_and_gradient(&x, &sample, &mut gradient);
        let direction: Vec<f32> = numbers(x.len(), 5).iter().map(|&v| v as f32).collect();
        let along: f64 = gradient.iter().zip(&direction).map(|(g, v)| f64::from(*g) * f64::from(*v)).sum();
        let mut at = |t: f32| {
            let moved: Vec<f32> = x.iter().zip(&direction).map(|(x, v)| x + t * v).collect();
            f.value(&moved, &sample).value
        };
        let slope = (at(1e-3) - at(-1e-3)) / 2e-3;
        assert!((slope - along).abs() < 1e-2 * (1.0 + along.abs()), "{loss:?}: {slope} and {along}");
    }
}

fn fitted(task: &ArrayTask<'_>, options: &ArrayOptions) -> ArrayModel {
    fit_arrays(task, options, &|| false).unwrap()
}

#[test]
fn a_weight_counts_like_repeated_rows_and_a_weight_of_0_like_none() {
    let (n, d) = (10, 3);
    let values = numbers(n * d, 1);
    let weights: Vec<f64> = (0..n).map(|i| (i % 3) as f64).collect();
    let repeats: Vec<usize> = (0..n).flat_map(|i| vec![i; i % 3]).collect();
    let repeated: Vec<f64> = repeats.iter().flat_map(|&i| values[i * d..(i + 1) * d].to_vec()).collect();
    let options = ArrayOptions { tolerance: 1e-11, ..ArrayOptions::default() };
    for (loss, outputs) in LOSSES {
        let goals: Vec<f64> = (0..n).map(|i| ((i / 3) % outputs.max(2)) as f64).collect();
        let answer = |values: &[f64], goals: &[f64], weights: Option<&[f64]>| {
            let rows = ArrayRows::Double(values, d);
            let units = InputUnits::measure(&rows, weights, true, true);
            fitted(&ArrayTask { rows: &rows, goals, weights, units: &units, loss, outputs }, &options).weights.flat
        };
        let weighted = answer(&values, &goals, Some(&weights));
        let goals: Vec<f64> = repeats.iter().map(|&i| goals[i]).collect();
        let other = answer(&repeated, &goals, None);
        assert!(weighted.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-8), "{loss:?}");
    }
}

#[test]
fn constraints_hold_in_the_units_of_the_rows() {
    let (n, d) = (50, 4);
    let values = numbers(n * d, 1);
    let goals: Vec<f64> = values.chunks_exact(d).map(|row| row[0] - row[1]).collect();
    let rows = ArrayRows::Double(&values, d);
    let units = InputUnits::measure(&rows, None, true, true);
    let task =
        ArrayTask { rows: &rows, goals: &goals, weights: None, units: &units, loss: OutputLoss::Squares, outputs: 1 };
    let constraint = WeightConstraint { nonnegative: true, sum_to_one: true, ..WeightConstraint::default() };
    let model =
        fitted(&task, &ArrayOptions { constraint: constraint.clone(), target_scale: 2.0, ..ArrayOptions::default() });
    let weights: Vec<f64> = model.weights.flat.iter().zip(&units.scale).map(|(w, scale)| 2.0 * w / scale).collect();
    assert!(constraint.violation(&weights) < 1e-9 && model.end == TrainingEnd::Converged);
}

#[test]
fn a_stream_continues_bit_for_bit_and_an_interrupt_ends_it() {
    let (n, d) = (200, 3);
    let values = numbers(n * d, 1);
    let goals: Vec<f64> = values.chunks_exact(d).map(|row| f64::from(row[0] > row[1])).collect();
    let rows = ArrayRows::Double(&values, d);
    let units = InputUnits::measure(&rows, None, true, true);
    let task =
        ArrayTask { rows: &rows, goals: &goals, weights: None, units: &units, loss: OutputLoss::Logistic, outputs: 1 };
    for hidden in [vec![], vec![5]] {
        let options = ArrayOptions { hidden, ..ArrayOptions::default() };
        let pass = |stream, call: u64| {
            stream_arrays(&task, &options, stream, None, 200.0 * call as f64, call, &|| false).unwrap()
        };
        let straight = (0..4).fold(None, |stream, call| Some(pass(stream, call)));
        let saved = (0..4).fold(None, |stream: Option<ModelStream>, call| {
            let text = serde_json::to_string(&stream).unwrap();
            Some(pass(serde_json::from_str(&text).unwrap(), call))
        });
        assert_eq!(straight, saved);
        assert!(stream_arrays(&task, &options, None, None, 0.0, 0, &|| true).is_err());
    }
}
