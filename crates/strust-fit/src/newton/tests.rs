//! The minimum against closed forms and against its own conditions.

use super::*;
use crate::{arrays::ArrayRows, arrays::rows::SparseRows, ranks::NEVER};
use faer::{Mat, linalg::solvers::Solve};
use strust::{ranks::Alone, sample::generator};
use strust_data::numerics::normals;

/// Rows of normal numbers, one column for each pair of a mean and a deviation.
fn rows(n: usize, units: &[(f64, f64)], seed: u64) -> Vec<f64> {
    let mut next = normals(seed, 1);
    (0..n).flat_map(|_| units.iter().map(|(mean, size)| mean + size * next()).collect::<Vec<_>>()).collect()
}

struct Problem<'a> {
    rows: ArrayRows<'a>,
    goals: &'a [f64],
    loss: OutputLoss,
    outputs: usize,
    penalty: f64,
    intercept: bool,
}

impl Problem<'_> {
    fn fit(&self) -> Trained {
        let index: Vec<usize> = (0..self.rows.rows()).collect();
        let terms = ModelTerms {
            rows: &self.rows,
            index: &index,
            goals: self.goals,
            weights: None,
            units: None,
            loss: self.loss,
            outputs: self.outputs,
            penalty: self.penalty,
            intercept: self.intercept,
        };
        let mut limits = TrainingLimits {
            epochs: None,
            seed: 0,
            interrupted: &|| false,
            any_stops: &|stop| stop,
            report: &mut |_, _| {},
            losses: &mut |_, _| None,
        };
        minimum(terms, GAP, &Ranks::new(&mut Alone, &NEVER), &mut limits).unwrap()
    }

    /// The largest entry of the gradient at a point, relative to the largest at 0, each in the units of its column.
    fn relative_gradient(&self, x: &[f64]) -> f64 {
        let (n, d, k) = (self.rows.rows(), self.rows.inputs(), self.outputs);
        let gradient = |x: &[f64]| {
            let (mut g, mut sizes) = (vec![0.0; x.len()], vec![0.0_f64; d + 1]);
            for i in 0..n {
                let mut row = vec![0.0; d + 1];
                self.rows.for_each(i, |j, v| row[j] += v);
                row[d] = f64::from(u8::from(self.intercept));
                let mut z = vec![0.0; k];
                row.iter().enumerate().for_each(|(j, a)| (0..k).for_each(|c| z[c] += a * x[j * k + c]));
                self.loss.differentiate(&mut z, self.goals[i]);
                for (j, a) in row.iter().enumerate() {
                    sizes[j] = sizes[j].max(a.abs());
                    (0..k).for_each(|c| g[j * k + c] += a * z[c] / n as f64);
                }
            }
            (0..d * k).for_each(|j| g[j] += self.penalty * x[j]);
            g.iter().enumerate().map(|(j, g)| g.abs() / sizes[j / k].max(1e-300)).fold(0.0, f64::max)
        };
        gradient(x) / gradient(&vec![0.0; x.len()])
    }
}

#[test]
fn least_squares_end_at_the_closed_form_in_any_units_and_with_any_penalty() {
    let units = [(0.0, 1.0), (1.7e9, 1e6), (3.0, 1e-6), (-20.0, 40.0), (0.0, 1e5)];
    let (n, d) = (400, units.len());
    let values = rows(n, &units, 3);
    let mut noise = normals(4, 1);
    let goals: Vec<f64> = (0..n).map(|i| values[i * d] - 1e6 * (values[i * d + 2] - 3.0) + 0.3 * noise()).collect();
    for (penalty, intercept) in [(0.0, true), (1e-8, true), (1.0, true), (100.0, true), (0.1, false)] {
        let rows = ArrayRows::Double(&values, d);
        let problem = Problem { rows, goals: &goals, loss: OutputLoss::Squares, outputs: 1, penalty, intercept };
        let found = problem.fit();
        assert_eq!(found.end, TrainingEnd::Converged, "penalty {penalty}");
        // The closed form, by a QR factorization of the centered columns, each divided by its size.
        let mean = |j: usize| {
            let first = values[j];
            if intercept { first + (0..n).map(|i| values[i * d + j] - first).sum::<f64>() / n as f64 } else { 0.0 }
        };
        let means: Vec<f64> = (0..d).map(mean).collect();
        let sizes: Vec<f64> =
            (0..d).map(|j| (0..n).map(|i| (values[i * d + j] - means[j]).powi(2)).sum::<f64>().sqrt()).collect();
        let goal_mean = if intercept { goals.iter().sum::<f64>() / n as f64 } else { 0.0 };
        let design = Mat::from_fn(n + d, d, |i, j| {
            if i < n {
                (values[i * d + j] - means[j]) / sizes[j]
            } else if i - n == j {
                (penalty * n as f64).sqrt() / sizes[j]
            } else {
                0.0
            }
        });
        let right = Mat::from_fn(n + d, 1, |i, _| if i < n { goals[i] - goal_mean } else { 0.0 });
        let normal = design.transpose() * &design;
        let exact = normal.full_piv_lu().solve(design.transpose() * &right);
        for j in 0..d {
            let (exact, found) = (exact[(j, 0)] / sizes[j], found.weights.flat[j]);
            let largest = 1e-6 / sizes[j];
            assert!((exact - found).abs() <= 1e-6 * exact.abs() + largest, "{j}: {exact} and {found}");
        }
    }
}

#[test]
fn columns_that_are_almost_equal_keep_their_weights() {
    let base = rows(300, &[(0.0, 1.0)], 5);
    let mut noise = normals(6, 1);
    let values: Vec<f64> = base.iter().flat_map(|v| [*v, v + 1e-5 * noise()]).collect();
    let goals: Vec<f64> = values.chunks_exact(2).map(|row| 3.0 * row[0] - 2.0 * row[1]).collect();
    let rows = ArrayRows::Double(&values, 2);
    let problem = Problem { rows, goals: &goals, loss: OutputLoss::Squares, outputs: 1, penalty: 0.0, intercept: true };
    let found = problem.fit().weights.flat;
    assert!((found[0] - 3.0).abs() < 1e-4 && (found[1] + 2.0).abs() < 1e-4, "{found:?}");
}

#[test]
fn equal_columns_share_a_weight() {
    let base = rows(100, &[(0.0, 1.0)], 7);
    let values: Vec<f64> = base.iter().flat_map(|v| [*v, *v]).collect();
    let goals: Vec<f64> = base.iter().map(|v| 4.0 * v + 1.0).collect();
    let rows = ArrayRows::Double(&values, 2);
    let problem = Problem { rows, goals: &goals, loss: OutputLoss::Squares, outputs: 1, penalty: 0.0, intercept: true };
    let found = problem.fit();
    assert_eq!(found.end, TrainingEnd::Converged);
    assert!(
        found.weights.flat.iter().zip([2.0, 2.0, 1.0]).all(|(a, b)| (a - b).abs() < 1e-9),
        "{:?}",
        found.weights.flat
    );
}

/// Classes whose scores are linear, with noise, so that they overlap.
fn classes(values: &[f64], d: usize, k: usize, seed: u64) -> Vec<f64> {
    let mut next = normals(seed, 2);
    let truth: Vec<f64> = (0..d * k).map(|_| next()).collect();
    let class = |row: &[f64]| {
        let score = |c: usize| row.iter().enumerate().map(|(j, a)| a * truth[j * k + c]).sum::<f64>();
        let scores: Vec<f64> = (0..k).map(score).collect();
        let noisy: Vec<f64> = scores.iter().map(|score| score + 2.0 * next()).collect();
        strust_data::loss::largest(&noisy) as f64
    };
    values.chunks_exact(d).map(class).collect()
}

#[test]
fn classifiers_end_where_the_gradient_vanishes_dense_and_sparse_with_any_penalty() {
    for (n, d, k) in [(500, 4, 2), (600, 5, 3), (3000, 40, 2), (2000, 30, 4)] {
        let values = rows(n, &vec![(0.0, 1.0); d], 11);
        let goals = classes(&values, d, k, 12);
        let starts: Vec<i64> = (0..=n).map(|i| i64::try_from(i * d).unwrap()).collect();
        let columns: Vec<i32> = (0..n * d).map(|entry| i32::try_from(entry % d).unwrap()).collect();
        let sparse = SparseRows::new(&starts, &columns, &values, d).unwrap();
        let (loss, outputs) = if k == 2 { (OutputLoss::Logistic, 1) } else { (OutputLoss::Softmax, k) };
        for penalty in [0.0, 1e-4, 0.1] {
            let mut found = Vec::new();
            for rows in [ArrayRows::Double(&values, d), ArrayRows::Sparse(sparse)] {
                let problem = Problem { rows, goals: &goals, loss, outputs, penalty, intercept: true };
                let minimum = problem.fit();
                assert_eq!(minimum.end, TrainingEnd::Converged, "{n} × {d}, {k} classes, penalty {penalty}");
                let rest = problem.relative_gradient(&minimum.weights.flat);
                assert!(rest < 1e-7, "{n} × {d}, {k} classes, penalty {penalty}: {rest:.1e} of the gradient is left");
                found.push(minimum.weights.flat);
            }
            let apart = found[0].iter().zip(&found[1]).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
            assert!(apart < 1e-5, "dense and sparse rows differ by {apart}");
        }
    }
}

#[test]
fn many_inputs_need_only_the_diagonal() {
    let (n, d) = (300, 2500);
    let mut rng = generator(13, 1);
    let mut pick = |most: usize| (rand_core::Rng::next_u64(&mut rng) % most as u64) as usize;
    let (mut starts, mut columns, mut values) = (vec![0_i64], Vec::new(), Vec::new());
    for _ in 0..n {
        columns.extend((0..20).map(|_| i32::try_from(pick(d)).unwrap()));
        values.extend((0..20).map(|_| 1.0 + pick(3) as f64));
        starts.push(i64::try_from(columns.len()).unwrap());
    }
    let goals: Vec<f64> = (0..n).map(|i| f64::from(u8::from(columns[20 * i] % 2 == 0))).collect();
    let rows = ArrayRows::Sparse(SparseRows::new(&starts, &columns, &values, d).unwrap());
    let problem = Problem {
        rows,
        goals: &goals,
        loss: OutputLoss::Logistic,
        outputs: 1,
        penalty: 1.0 / n as f64,
        intercept: true,
    };
    let found = problem.fit();
    assert_eq!(found.end, TrainingEnd::Converged);
    assert!(problem.relative_gradient(&found.weights.flat) < 1e-6);
}

#[test]
fn classes_that_can_be_separated_have_no_minimum_without_a_penalty() {
    let values: Vec<f64> = (0..40).map(f64::from).collect();
    let goals: Vec<f64> = values.iter().map(|v| f64::from(u8::from(*v > 20.0))).collect();
    let rows = ArrayRows::Double(&values, 1);
    let mut problem =
        Problem { rows, goals: &goals, loss: OutputLoss::Logistic, outputs: 1, penalty: 0.0, intercept: true };
    assert_eq!(problem.fit().end, TrainingEnd::NoMinimum);
    problem.penalty = 1e-6;
    assert_eq!(problem.fit().end, TrainingEnd::Converged);
}

#[test]
fn standard_errors_are_those_of_the_textbook() {
    // y = 2x + 1 + noise: the error of the slope is √(s²/Σ(x − x̄)²).
    let values: Vec<f64> = (0..50).map(|i| f64::from(i % 10)).collect();
    let mut noise = normals(17, 1);
    let goals: Vec<f64> = values.iter().map(|x| 2.0 * x + 1.0 + 0.5 * noise()).collect();
    let rows = ArrayRows::Double(&values, 1);
    let found =
        Problem { rows, goals: &goals, loss: OutputLoss::Squares, outputs: 1, penalty: 0.0, intercept: true }.fit();
    let residual = |(x, y): (&f64, &f64)| (y - found.weights.flat[0] * x - found.weights.flat[1]).powi(2);
    let squares: f64 = values.iter().zip(&goals).map(residual).sum();
    let spread: f64 = values.iter().map(|x| (x - 4.5).powi(2)).sum();
    let error = (squares / 48.0 / spread).sqrt();
    assert!((found.errors.unwrap()[0] / error - 1.0).abs() < 1e-9);
}

#[test]
fn a_fit_can_be_interrupted_and_returns_its_last_point() {
    let values = rows(1000, &[(0.0, 1.0); 3], 19);
    let goals = classes(&values, 3, 2, 20);
    let (rows, index) = (ArrayRows::Double(&values, 3), (0..1000).collect::<Vec<_>>());
    let (loss, units, weights) = (OutputLoss::Logistic, None, None);
    let terms = ModelTerms {
        rows: &rows,
        index: &index,
        goals: &goals,
        weights,
        units,
        loss,
        outputs: 1,
        penalty: 0.1,
        intercept: true,
    };
    let calls = std::cell::Cell::new(0);
    let interrupted = || {
        calls.set(calls.get() + 1);
        calls.get() > 60
    };
    let mut limits = TrainingLimits {
        epochs: None,
        seed: 0,
        interrupted: &interrupted,
        any_stops: &|stop| stop,
        report: &mut |_, _| {},
        losses: &mut |_, _| None,
    };
    let found = minimum(terms, GAP, &Ranks::new(&mut Alone, &NEVER), &mut limits).unwrap();
    assert_eq!(found.end, TrainingEnd::Interrupted);
    assert!(found.epochs >= 1.0 && found.weights.flat.iter().any(|w| w.abs() > 0.1), "{found:?}");
}
