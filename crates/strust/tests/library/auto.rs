//! What `Auto` promises beyond the contract of all methods.

use crate::common::{LeastSquares, Probe, normal, normals};
use std::rc::Rc;
use strust::{
    methods::{AutoParts, AutoState, Learned},
    objective::{Counted, Scaled, full_value},
    prelude::*,
    radius::Verdict,
    samplers::Sampler,
};

/// The line through noisy points, in coordinates that are `unit` times the natural ones: term i is
/// (x₀/unit + x₁tᵢ/unit − bᵢ)²/2.
fn line(unit: f64) -> impl Objective<Point = Vec<f64>> {
    from_terms(200, move |i, x: &Vec<f64>, g| {
        let t = (i as f64 * 0.618).fract() * 4.0 - 2.0;
        let noise = ((i as f64 * 0.317).fract() - 0.5) * 0.2;
        let r = x[0] / unit + x[1] / unit * t - (1.0 + 2.0 * t + noise);
        g[0] += r / unit;
        g[1] += r * t / unit;
        0.5 * r * r
    })
}

/// Steps until f is within a thousandth of its distance to the minimum.
fn steps_to_arrive(unit: f64) -> u64 {
    let mut f = line(unit);
    let best = minimize(&mut f).full_batch().stop(Stop::steps(3000)).start(vec![0.0; 2]).unwrap().last.value;
    let start = full_value(&mut f, &vec![0.0; 2]);
    let goal = best + 1e-3 * (start - best);
    let (mut method, mut sampler, mut sample) = (Auto::default(), Epochs::over(&f).batch(20), Sample::default());
    let mut state = method.init(&mut f, vec![0.0; 2]).unwrap();
    while full_value(&mut f, state.point()) > goal {
        assert!(state.steps() < 5000, "with the unit {unit} it does not arrive");
        sampler.draw(state.steps(), &mut sample);
        method.step(&mut f, &mut state, &sample).unwrap();
    }
    state.steps()
}

#[test]
fn in_other_units_of_x_it_arrives_after_as_many_steps() {
    let natural = steps_to_arrive(1.0);
    for power in [-10, -7, -3, 3, 7, 10] {
        assert_eq!(steps_to_arrive(2.0_f64.powi(power)), natural, "in units of 2^{power}");
    }
}

/// The bits of the answer for a loss that is multiplied by `loss`, with x measured in `unit`. Both are powers of 2, and
/// the unit is taken out of the answer.
fn answer(f: &LeastSquares<f64>, start: &[f64], loss: f64, unit: f64) -> Vec<u64> {
    let mut f = f.clone();
    f.rows.iter_mut().flatten().for_each(|a| *a /= unit);
    let start = start.iter().map(|x| x * unit).collect();
    let mut f = Scaled::new(f, loss);
    let report = minimize(&mut f).batch(5).stop(Stop::steps(400)).start(start).unwrap();
    report.point().iter().map(|x| (x / unit).to_bits()).collect()
}

#[test]
fn other_units_of_f_and_x_change_no_bit() {
    let exact = squares();
    let mut noisy = exact.clone();
    noisy.right.iter_mut().zip(normals(8, 60)).for_each(|(b, error)| *b += error);
    for f in [exact, noisy] {
        for start in [vec![0.0; 7], normals(9, 7)] {
            let plain = answer(&f, &start, 1.0, 1.0);
            for power in [-31, -4, 3, 30] {
                let unit = 2.0_f64.powi(power);
                assert_eq!(answer(&f, &start, 1.0, unit), plain, "x in units of 2^{power}");
                assert_eq!(answer(&f, &start, unit, 1.0), plain, "f in units of 2^{power}");
                for loss in [2.0_f64.powi(-9), 2.0_f64.powi(20)] {
                    assert_eq!(answer(&f, &start, loss, unit), plain, "x in units of 2^{power}, f times {loss}");
                }
            }
        }
    }
}

fn squares() -> LeastSquares<f64> {
    LeastSquares::interpolating(4, 60, &normals(5, 7))
}

#[test]
fn a_rejected_step_changes_only_the_step_size_and_the_curvature() {
    let probe = Probe::new(squares());
    let log = Rc::clone(&probe.log);
    let mut f = Counted::new(probe);
    let (mut method, mut sampler, mut sample) = (Auto::default(), Epochs::over(&f).batch(6), Sample::default());
    let mut state = method.init(&mut f, normal(9, &[7])).unwrap();
    let mut step = |state: &mut AutoState<Vec<f64>>| {
        sampler.draw(state.steps(), &mut sample);
        method.step(&mut f, state, &sample).unwrap()
    };
    for _ in 0..30 {
        step(&mut state);
    }
    let before = state.clone();
    log.borrow_mut().trial = Some(1e6);
    assert_eq!(step(&mut state).verdict, Verdict::Rejected);
    let (now, then) = (state.parts(), before.parts());
    assert!(now.learned.size() < then.learned.size() && now.learned.curvature() > then.learned.curvature());
    let mut learned = now.learned.numbers();
    for (i, name) in Learned::NAMES.into_iter().enumerate() {
        if ["size", "curvature", "mean_curvature", "square_curvature"].contains(&name) {
            learned[i] = then.learned.numbers()[i];
        }
    }
    assert_eq!(AutoParts { learned: Learned::from_numbers(learned), k: then.k, ..now }, then);
}

/// A line through 50 points. The residuals of the evaluations in `hit` are multiplied by `outlier`. In a step without an
/// outlier, the gradient is an odd evaluation and the trial an even one.
fn with_outlier(outlier: f64, hit: std::ops::Range<u32>) -> impl Objective<Point = Vec<f64>> {
    let mut evaluations = 0;
    from_fn(50, move |x: &Vec<f64>, sample: &Sample, gradient: Option<&mut Vec<f64>>| {
        evaluations += 1;
        let factor = if hit.contains(&evaluations) { outlier } else { 1.0 };
        let mut sum = 0.0;
        let mut slope = [0.0; 2];
        for &i in sample.indices() {
            let t = i as f64 / 25.0 - 1.0;
            let r = factor * (x[0] + t * x[1] - 1.0 - 0.5 * t);
            sum += 0.5 * r * r / sample.len() as f64;
            slope[0] += factor * r / sample.len() as f64;
            slope[1] += factor * r * t / sample.len() as f64;
        }
        if let Some(gradient) = gradient {
            gradient.copy_from_slice(&slope);
        }
        sum
    })
}

#[test]
fn a_batch_with_an_outlier_of_a_million_or_without_a_number_does_not_end_a_run() {
    let (trial, gradient, both) = (200..201, 201..202, 201..203);
    let cases = [
        (1e6, both),
        (f64::NAN, trial.clone()),
        (f64::INFINITY, trial),
        (f64::NAN, gradient.clone()),
        (1e200, gradient),
    ];
    for (outlier, hit) in cases {
        let mut f = with_outlier(outlier, hit.clone());
        let (mut method, mut sampler, mut sample) = (Auto::default(), Epochs::over(&f).batch(5), Sample::default());
        let mut state = method.init(&mut f, vec![0.0; 2]).unwrap();
        for k in 0..600 {
            sampler.draw(k, &mut sample);
            let record =
                method.step(&mut f, &mut state, &sample).unwrap_or_else(|e| panic!("{outlier} in {hit:?}: {e}"));
            let saved = serde_json::to_string(&record).unwrap();
            let again: StepRecord = serde_json::from_str(&saved).unwrap();
            assert_eq!(again.value.is_finite(), record.value.is_finite(), "a record must survive JSON");
        }
        let error = (state.point()[0] - 1.0).abs() + (state.point()[1] - 0.5).abs();
        assert!(error < 1e-3, "with {outlier} in {hit:?} it ends {error} away from the solution");
    }
}

#[test]
fn the_answer_is_the_average_and_gradients_are_taken_between() {
    let mut f = squares();
    let report = minimize(&mut f).batch(10).stop(Stop::steps(50)).start(normal(9, &[7])).unwrap();
    let AutoParts { x, z, .. } = report.state.parts();
    assert!(report.state.is_averaged() && x != z);
    assert_eq!(report.evaluations.values, report.evaluations.gradients);
}

#[test]
fn weight_decays_of_equal_components_are_the_weight_decay() {
    let run = |method: Auto<Vec<f64>>| {
        let report = minimize(&mut line(1.0)).method(method).batch(20).stop(Stop::steps(200)).start(vec![0.0; 2]);
        report.unwrap().point().clone()
    };
    let one = run(Auto::new(AutoConfig { weight_decay: 0.3, ..Default::default() }).unwrap());
    let each = run(Auto::default().weight_decays(vec![0.3; 2]).unwrap());
    let none = run(Auto::default().weight_decays(vec![0.0; 2]).unwrap());
    assert!(one.iter().zip(&each).all(|(a, b)| (a - b).abs() < 1e-9), "{one:?} and {each:?}");
    assert!(none[1] > one[1] + 0.1, "{none:?} and {one:?}");
}

#[test]
fn wrong_weight_decays_are_refused() {
    for wrong in [-0.1, f64::NAN, f64::INFINITY] {
        let error = Auto::default().weight_decays(vec![0.0, wrong]).unwrap_err().to_string();
        assert!(error.contains("weight_decays"), "{error}");
    }
    let method = Auto::default().weight_decays(vec![0.1; 3]).unwrap();
    let error = minimize(&mut line(1.0)).method(method).batch(20).stop(Stop::steps(1)).start(vec![0.0; 2]).unwrap_err();
    assert!(error.to_string().contains("weight decays"), "{error}");
}
