//! STR-SQP beside the contract suite: full samples, bounds, verdicts, and errors.

use crate::common::bits;
use strust::{
    constraints::{Affine, Manifold, Simplex, Sphere, at_most, both},
    methods::{SqpVerdict, StrSqpState},
    prelude::*,
    samplers::Sampler,
};
use strust_baselines::{AugLag, AugLagConfig, ProjectedSgd, ProjectedSgdConfig, Riemannian, RiemannianConfig};

/// ‖x − t‖².
fn nearest_to(t: [f64; 2]) -> impl Objective<Point = Vec<f64>> {
    from_terms(1, move |_, x: &Vec<f64>, g| {
        let r = [x[0] - t[0], x[1] - t[1]];
        g[0] += 2.0 * r[0];
        g[1] += 2.0 * r[1];
        r[0] * r[0] + r[1] * r[1]
    })
}
fn sphere() -> Sphere<Vec<f64>> {
    Sphere::new(1.0).unwrap()
}
fn sqp<C: Constraint>(constraint: C) -> StrSqp<C> {
    StrSqp::new(StrSqpConfig::default(), constraint).unwrap()
}

#[test]
fn a_resumed_run_on_full_samples_equals_an_uninterrupted_run() {
    let run = |cut: Option<usize>| {
        let (mut f, mut method) = (nearest_to([3.0, 4.0]), sqp(sphere()));
        let mut state = method.init(&mut f, vec![2.0, -1.0]).unwrap();
        for k in 0..6 {
            if cut == Some(k) {
                let text = serde_json::to_string(&state).unwrap();
                state = serde_json::from_str::<StrSqpState<Vec<f64>>>(&text).unwrap();
                method = sqp(sphere());
                method.prepare(&mut f, state.point()).unwrap();
            }
            method.step(&mut f, &mut state, &Sample::range(0..1)).unwrap();
        }
        (bits(state.point()), serde_json::to_string(&state).unwrap())
    };
    assert_eq!(run(None), run(Some(3)));
}

#[test]
fn bounds_hold_at_every_point_and_their_multipliers_balance_the_gradient() {
    let mut f = nearest_to([3.0, 4.0]);
    let method = sqp(Bounds::new(vec![0.0, f64::NEG_INFINITY], vec![1.0, 2.0]).unwrap());
    let inside = |_: &StepRecord, x: &Vec<f64>| {
        assert!((0.0..=1.0).contains(&x[0]) && x[1] <= 2.0, "{x:?}");
        std::ops::ControlFlow::Continue(())
    };
    let report = minimize(&mut f).method(method).full_batch().observe(inside).start(vec![-5.0, -5.0]).unwrap();
    assert_eq!(report.reason, StopReason::Kkt);
    assert_eq!(report.point(), &[1.0, 2.0]);
    let z = report.state.bound_multipliers();
    assert!((z[0] - 4.0).abs() < 1e-6 && (z[1] - 4.0).abs() < 1e-6, "{z:?}");
}

#[test]
fn it_leaves_a_point_where_the_rows_have_no_slope() {
    // At 0 the gradient of ‖x‖² − 1 is 0, and the circle is feasible.
    let report =
        minimize(&mut nearest_to([3.0, 4.0])).method(sqp(sphere())).full_batch().start(vec![0.0, 0.0]).unwrap();
    assert_eq!(report.reason, StopReason::Kkt);
    assert!((report.point()[0] - 0.6).abs() < 1e-6, "{:?}", report.point());
}

#[test]
fn rows_that_contradict_each_other_are_named() {
    let planes = Affine::new(vec![vec![1.0, 1.0]], vec![5.0]).unwrap();
    let method = sqp(both(at_most(sphere()), planes).unwrap());
    let report = minimize(&mut nearest_to([0.0, 0.0])).method(method).full_batch().start(vec![1.0, 0.5]).unwrap();
    assert_eq!((report.reason, report.reason.converged()), (StopReason::Infeasible, false));
    assert_eq!(*report.state.verdict(), SqpVerdict::Infeasible(vec![0, 1]));
}

#[test]
fn an_inactive_inequality_has_no_multiplier() {
    let method = sqp(at_most(sphere()));
    let report = minimize(&mut nearest_to([0.3, 0.4])).method(method).full_batch().start(vec![2.0, 0.0]).unwrap();
    assert_eq!(report.reason, StopReason::Kkt);
    assert!((report.point()[0] - 0.3).abs() < 1e-6 && report.state.multipliers()[0].abs() < 1e-6);
}

#[test]
fn methods_for_equations_refuse_inequalities() {
    let start = || vec![0.5, 0.5];
    let mut f = nearest_to([3.0, 4.0]);
    let penalty = StrP::new(StrPConfig::default(), at_most(sphere())).unwrap().init(&mut f, start()).unwrap_err();
    let lagrangian =
        AugLag::new(AugLagConfig::default(), at_most(sphere())).unwrap().init(&mut f, start()).unwrap_err();
    for error in [penalty, lagrangian] {
        assert!(error.to_string().contains("StrSqp"), "{error}");
    }
    let simplex = Simplex::new(&start(), 1.0).unwrap();
    let error = Riemannian::new(RiemannianConfig::default(), simplex).unwrap_err();
    assert!(error.to_string().contains("StrSqp"), "{error}");
}

#[test]
fn bounds_without_a_point_between_them_are_an_error() {
    for (lower, upper) in [(vec![1.0, 0.0], vec![0.0, 1.0]), (vec![f64::NAN, 0.0], vec![1.0, 1.0])] {
        let error = Bounds::new(lower, upper).unwrap_err();
        assert!(error.to_string().contains("component 0"), "{error}");
    }
    assert!(matches!(Bounds::new(vec![0.0], vec![1.0, 1.0]), Err(Error::Shape { .. })));
    let bounded = |n: usize| both(sphere(), Bounds::nonnegative(&vec![0.0; n])).unwrap();
    let error = sqp(bounded(3)).init(&mut nearest_to([1.0; 2]), vec![0.0; 2]);
    assert!(matches!(error, Err(Error::Shape { .. })));
    let below = || Bounds::new(vec![-2.0; 2], vec![-1.0; 2]).unwrap();
    let error = both(bounded(2), below()).unwrap_err();
    assert!(error.to_string().contains("component 0"), "{error}");
}

#[test]
fn the_nearest_shares_are_the_projection_onto_the_simplex() {
    let simplex = || Simplex::new(&vec![0.0; 2], 1.0).unwrap();
    for target in [[3.0, 4.0], [0.2, 0.4], [5.0, 0.5], [-1.0, -3.0]] {
        let report =
            minimize(&mut nearest_to(target)).method(sqp(simplex())).full_batch().start(vec![0.5, 0.5]).unwrap();
        assert_eq!(report.reason, StopReason::Kkt);
        let mut nearest = target.to_vec();
        simplex().restore(&mut nearest).unwrap();
        assert!((report.point()[0] - nearest[0]).abs() < 1e-7, "{:?} {nearest:?}", report.point());
        let sgd = ProjectedSgd::new(ProjectedSgdConfig { learning_rate: 0.3 }, simplex()).unwrap();
        let run = minimize(&mut nearest_to(target))
            .method(sgd)
            .full_batch()
            .stop(Stop::steps(60))
            .start(vec![0.5, 0.5])
            .unwrap();
        assert!((run.point()[0] - nearest[0]).abs() < 1e-7, "{:?} {nearest:?}", run.point());
    }
}

/// A number between −1 and 1. Those of neighbours have nothing in common.
fn number(k: usize) -> f64 {
    2.0 * (1e5 * (k as f64 * 12.9898).sin()).rem_euclid(1.0) - 1.0
}

/// Rows without order, more than are formed as pairs.
fn many_rows(rows: usize, d: usize) -> Vec<Vec<f64>> {
    (0..rows).map(|i| (0..d).map(|j| number(i * d + j) + f64::from(u8::from(i == j))).collect()).collect()
}

fn nearest(target: Vec<f64>) -> impl Objective<Point = Vec<f64>> {
    from_terms(1, move |_, x: &Vec<f64>, g: &mut Vec<f64>| {
        let r: Vec<f64> = x.iter().zip(&target).map(|(x, t)| x - t).collect();
        g.add(2.0, &r);
        r.norm_squared()
    })
}

/// The nearest point with 30 equations and x ≥ 0.
fn nearest_with_many_rows(d: usize) -> (impl Objective<Point = Vec<f64>>, impl Constraint<Point = Vec<f64>>) {
    let feasible: Vec<f64> = (0..d).map(|i| f64::from(u8::from(i % 3 == 0))).collect();
    let rows = many_rows(30, d);
    let right = rows.iter().map(|row| row.dot(&feasible)).collect();
    let constraint = both(Affine::new(rows, right).unwrap(), Bounds::nonnegative(&feasible)).unwrap();
    (nearest((0..d).map(|i| (i as f64).sin() * 3.0).collect()), constraint)
}

#[test]
fn many_rows_and_bounds_are_satisfied_with_a_matrix_and_by_products_alone() {
    for d in [60, 320] {
        let (mut f, constraint) = nearest_with_many_rows(d);
        let mut method = sqp(constraint);
        let report = minimize(&mut f).method(&mut method).full_batch().start(vec![0.0; d]).unwrap();
        assert_eq!(report.reason, StopReason::Kkt);
        let certificate = method.certify(&mut f, &report.state);
        assert!(certificate.stationarity < 1e-5 && certificate.violation < 1e-6, "{certificate:?}");
        assert!(certificate.complementarity < 1e-5, "{certificate:?}");
        assert_eq!(certificate.active_rows.len(), 30, "{d} unknowns, {} bounds", certificate.active_bounds.len());
        let held = certificate.active_bounds;
        assert!(held.len() > 5 && held.iter().all(|&i| report.point()[i] == 0.0), "{held:?}");
        assert!(report.state.bound_multipliers().iter().all(|&z| z <= 0.0) && report.point().iter().all(|&x| x >= 0.0));
    }
}

/// Σ wⱼ(xⱼ − tⱼ)⁴/4 + (xⱼ − tⱼ)²/2 on the sphere, with two coordinates in units that are 1000 times as large or small.
fn in_odd_units(d: usize, s: f64) -> (impl Objective<Point = Vec<f64>>, impl Constraint<Point = Vec<f64>>, Vec<f64>) {
    let unit = move |j: usize| {
        if j == 1 {
            s
        } else if j == 4 {
            s.recip()
        } else {
            1.0
        }
    };
    let f = from_terms(1, move |_, x: &Vec<f64>, g: &mut Vec<f64>| {
        let mut sum = 0.0;
        for j in 0..d {
            let (w, r) = (1.0 + j as f64, x[j] / unit(j) - (j as f64).sin());
            g[j] += (w * r.powi(3) + r) / unit(j);
            sum += 0.25 * w * r.powi(4) + 0.5 * r * r;
        }
        sum
    });
    let square = move |x: &[f64], v: &[f64]| (0..d).map(|j| x[j] * v[j] / unit(j).powi(2)).sum::<f64>();
    let sphere = constraint_from_fn(
        1,
        move |x: &[f64], c: &mut [f64]| c[0] = square(x, x) - 1.0,
        move |x: &[f64], v: &[f64], out: &mut [f64]| out[0] = 2.0 * square(x, v),
        move |x: &[f64], y: &[f64], out: &mut [f64]| {
            (0..d).for_each(|j| out[j] += 2.0 * y[0] * x[j] / unit(j).powi(2));
        },
    );
    (f, sphere, (0..d).map(|j| unit(j) * (1.0 + 0.1 * (j as f64).cos())).collect())
}

#[test]
fn units_that_are_off_cost_few_steps() {
    let steps = |s: f64| {
        let (mut f, sphere, start) = in_odd_units(8, s);
        let report = minimize(&mut f).method(sqp(sphere)).full_batch().start(start).unwrap();
        assert_eq!(report.reason, StopReason::Kkt);
        report.steps
    };
    let (plain, odd) = (steps(1.0), steps(1000.0));
    assert!(odd <= plain + 5, "{odd} steps instead of {plain}");
    // A power of two is found exactly.
    assert_eq!(steps(1024.0), plain);
}

#[test]
fn a_resumed_run_with_a_matrix_and_units_equals_an_uninterrupted_run() {
    let run = |cut: Option<usize>| {
        let (mut f, sphere, start) = in_odd_units(8, 1000.0);
        let mut method = sqp(sphere);
        let mut state = method.init(&mut f, start).unwrap();
        for k in 0..8 {
            if cut == Some(k) {
                let text = serde_json::to_string(&state).unwrap();
                assert!(text.contains("units") && text.contains("matrix"), "{text}");
                state = serde_json::from_str(&text).unwrap();
                method = sqp(in_odd_units(8, 1000.0).1);
                method.prepare(&mut f, state.point()).unwrap();
            }
            method.step(&mut f, &mut state, &Sample::all(1)).unwrap();
        }
        (bits(state.point()), serde_json::to_string(&state).unwrap())
    };
    assert_eq!(run(None), run(Some(4)));
}

#[test]
fn a_contradiction_among_many_rows_is_named() {
    let d = 40;
    let rows = many_rows(30, d);
    let last = Affine::new(vec![rows[4].clone()], vec![8.0]).unwrap();
    let constraint = both(Affine::new(rows, vec![1.0; 30]).unwrap(), last).unwrap();
    let report = minimize(&mut nearest(vec![0.0; d])).method(sqp(constraint)).full_batch().start(vec![0.1; d]).unwrap();
    assert_eq!(*report.state.verdict(), SqpVerdict::Infeasible(vec![4, 30]));
}

#[test]
fn the_augmented_lagrangian_says_that_its_rate_is_too_long_for_its_penalty() {
    let config = AugLagConfig { learning_rate: 1.0, penalty: 50.0, ..AugLagConfig::default() };
    let method = AugLag::new(config, sphere()).unwrap();
    let report = minimize(&mut nearest_to([3.0, 4.0]))
        .method(method)
        .full_batch()
        .stop(Stop::steps(50))
        .start(vec![1.0, 0.5])
        .unwrap();
    let error = report.breakdown.expect("a breakdown");
    assert!(error.to_string().contains("learning_rate") && !error.to_string().contains("data"), "{error}");
}

/// Least squares with noise: n rows whose columns have scales from 1 to `smallest`.
fn noisy_fit(n: usize, d: usize, smallest: f64) -> impl Objective<Point = Vec<f64>> {
    let entry = move |i: usize, j: usize| ((i * d + j) as f64 * 12.9898).sin() + f64::from(u8::from(i == j));
    let scale = move |j: usize| smallest.powf(j as f64 / (d - 1) as f64);
    from_residuals(n, move |i, x: &Vec<f64>, g| {
        (0..d).for_each(|j| g[j] = entry(i, j) * scale(j));
        g.dot(x) - (i as f64 * 1.7).sin()
    })
}

#[test]
fn mini_batches_hand_over_to_the_full_sum_where_noise_limits_them() {
    let mut f = noisy_fit(400, 8, 1.0);
    let mut method = sqp(sphere());
    let run = minimize(&mut f).method(&mut method).batch(16).stop(Stop::epochs(60));
    let report = run.start(vec![1.0; 8]).unwrap();
    assert_eq!(report.reason, StopReason::Kkt);
    assert!(report.last.constraint_norm <= 1e-12, "{:e}", report.last.constraint_norm);
    // A pass has 25 samples, and no step costs more than its samples.
    let passes = report.steps.div_ceil(25);
    assert!(report.evaluations.gradients <= 25 * passes, "{:?} in {passes} passes", report.evaluations);

    let mut f = noisy_fit(400, 8, 1.0);
    let full = minimize(&mut f).method(sqp(sphere())).full_batch().start(vec![1.0; 8]).unwrap();
    let (handed, whole) = (report.last.value, full.last.value);
    assert!((handed - whole).abs() <= 1e-9 * whole, "{handed} instead of {whole}");
}

#[test]
fn a_run_that_changes_to_the_full_sum_resumes_bit_for_bit() {
    let steps = 25 * 24;
    let run = |cut: Option<u64>| {
        let plane = || Affine::new(vec![vec![1.0; 30]], vec![1.0]).unwrap();
        let (mut f, mut method) = (noisy_fit(400, 30, 1e-3), sqp(plane()));
        let mut sampler = Epochs::over(&f).batch(16).seed(3);
        let mut state = method.init(&mut f, vec![1.0; 30]).unwrap();
        let (mut sample, mut turns) = (Sample::default(), Vec::new());
        for k in 0..steps {
            if cut == Some(k) {
                let text = serde_json::to_string(&state).unwrap();
                state = serde_json::from_str(&text).unwrap();
                method = sqp(plane());
                method.prepare(&mut f, state.point()).unwrap();
            }
            sampler.draw(k, &mut sample);
            method.step(&mut f, &mut state, &sample).unwrap();
            turns.push(state.is_on_full_sum());
        }
        (serde_json::to_string(&state).unwrap(), turns)
    };
    let (expected, turns) = run(None);
    let to_full = (1..turns.len()).find(|&k| turns[k] && !turns[k - 1]).expect("the full sum is tried");
    for cut in [to_full as u64, to_full as u64 + 1, to_full as u64 + 40, steps - 1] {
        assert_eq!(run(Some(cut)).0, expected, "resumed before step {cut}");
    }
}

#[test]
fn a_start_where_the_gradient_is_0_and_a_row_is_violated_is_not_the_end() {
    for unit in [1e-6, 1.0, 1e6] {
        // The point of the plane nearest to (2, 3), from there.
        let mut f = from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
            (g[0], g[1]) = (g[0] + unit * (x[0] - 2.0), g[1] + unit * (x[1] - 3.0));
            0.5 * unit * ((x[0] - 2.0).powi(2) + (x[1] - 3.0).powi(2))
        });
        let plane = Affine::new(vec![vec![1.0, 1.0]], vec![10.0]).unwrap();
        let method = StrSqp::new(StrSqpConfig::default(), plane).unwrap();
        let report = minimize(&mut f).method(method).full_batch().start(vec![2.0, 3.0]).unwrap();
        assert!(report.reason.converged() && report.steps < 20, "× {unit}: {report:?}");
        assert!((report.point()[0] - 4.5).abs() < 1e-6, "× {unit}: {:?}", report.point());
    }
    // Any point of the ball, and of the paraboloid.
    let mut nothing = from_terms(1, |_, _: &Vec<f64>, _: &mut Vec<f64>| 0.0);
    let curve = constraint_from_fn(
        1,
        |x, c| c[0] = x[1] - x[0] * x[0] - 1.0,
        |x, v, out| out[0] = v[1] - 2.0 * x[0] * v[0],
        |x, y, out| (out[0], out[1]) = (out[0] - 2.0 * x[0] * y[0], out[1] + y[0]),
    );
    let rows = both(at_most(Sphere::new(2.0).unwrap()), curve).unwrap();
    let method = StrSqp::new(StrSqpConfig::default(), rows).unwrap();
    let report = minimize(&mut nothing).method(method).full_batch().start(vec![5.0, -4.0]).unwrap();
    assert!(report.reason.converged() && report.last.constraint_norm < 1e-8, "{report:?}");
}
