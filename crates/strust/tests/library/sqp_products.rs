//! STR-SQP with products of the Lagrangian's Hessian.

use crate::common::{LeastSquares, bits, distance, normals};
use strust::{
    constraints::{Affine, Sphere},
    methods::StrSqpState,
    objective::{ProductKind, with_products},
    prelude::*,
};

fn sqp<C: Constraint>(products: u64, tolerance: f64, constraint: C) -> StrSqp<C> {
    StrSqp::new(StrSqpConfig { products, tolerance }, constraint).unwrap()
}

/// ½Σ wⱼ(xⱼ − tⱼ)², with exact products.
fn weighted(w: Vec<f64>, t: Vec<f64>) -> impl Objective<Point = Vec<f64>> {
    let of_f = w.clone();
    let f = from_terms(1, move |_, x: &Vec<f64>, g| {
        (0..x.len()).for_each(|j| g[j] += of_f[j] * (x[j] - t[j]));
        (0..x.len()).map(|j| 0.5 * of_f[j] * (x[j] - t[j]).powi(2)).sum()
    });
    with_products(f, ProductKind::Hessian, move |_: &Vec<f64>, _: &Sample, v: &Vec<f64>, out: &mut Vec<f64>| {
        (0..v.len()).for_each(|j| out[j] = w[j] * v[j]);
    })
}

/// Weights from 1 to 1/condition.
fn decaying(d: usize, condition: f64) -> Vec<f64> {
    (0..d).map(|j| condition.powf(-(j as f64) / (d - 1) as f64)).collect()
}

fn planes(m: usize, d: usize) -> Affine<Vec<f64>> {
    let rows = (0..m).map(|i| normals(40 + i as u64, d)).collect();
    Affine::new(rows, normals(90, m)).unwrap()
}

/// x with D(x − t) + Aᵀy = 0 and Ax = b, by elimination.
fn answer(w: &[f64], t: &[f64], mut rows: Affine<Vec<f64>>) -> Vec<f64> {
    let (d, m) = (t.len(), rows.new_residual().len());
    let unit = |i: usize| (0..m).map(|j| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
    let pulls: Vec<Vec<f64>> = (0..m)
        .map(|i| {
            let mut pull = vec![0.0; d];
            rows.add_vjp(&t.to_vec(), 1.0, &unit(i), &mut pull);
            pull
        })
        .collect();
    let mut c = rows.new_residual();
    rows.residual(&t.to_vec(), &mut c);
    let inner = |a: &[f64], b: &[f64]| (0..d).map(|j| a[j] * b[j] / w[j]).sum::<f64>();
    let mut k: Vec<Vec<f64>> = (0..m).map(|i| (0..m).map(|j| inner(&pulls[i], &pulls[j])).collect()).collect();
    for i in 0..m {
        for j in i + 1..m {
            let factor = k[j][i] / k[i][i];
            (0..m).for_each(|l| k[j][l] -= factor * k[i][l]);
            c[j] -= factor * c[i];
        }
    }
    let mut y = vec![0.0; m];
    for i in (0..m).rev() {
        y[i] = (c[i] - (i + 1..m).map(|l| k[i][l] * y[l]).sum::<f64>()) / k[i][i];
    }
    (0..d).map(|j| t[j] - (0..m).map(|i| pulls[i][j] * y[i]).sum::<f64>() / w[j]).collect()
}

#[test]
fn a_quadratic_whose_curvature_is_one_number_is_solved_in_one_step() {
    let (w, t) = (vec![3.0; 9], normals(1, 9));
    let mut f = weighted(w.clone(), t.clone());
    let report = minimize(&mut f).method(sqp(100, 1e-12, planes(3, 9))).full_batch().start(normals(2, 9)).unwrap();
    // The second step finds that nothing is left to do.
    assert_eq!((report.reason, report.steps), (StopReason::Kkt, 2));
    assert!(distance(report.point(), &answer(&w, &t, planes(3, 9))) < 1e-10);
}

#[test]
fn an_ill_conditioned_quadratic_with_equalities_is_solved_in_few_steps() {
    // With few rows, which are formed, and with many.
    for (d, m) in [(60, 5), (120, 40)] {
        let (w, t) = (decaying(d, 1e3), normals(1, d));
        let run = |products: u64| {
            let mut f = weighted(w.clone(), t.clone());
            let run = minimize(&mut f).method(sqp(products, 1e-12, planes(m, d))).full_batch();
            run.stop(Stop::steps(400)).start(vec![0.0; d]).unwrap()
        };
        let (without, with) = (run(0), run(1000));
        assert_eq!(with.reason, StopReason::Kkt);
        assert!(with.steps <= 10 && without.steps > 10 * with.steps, "{} against {}", with.steps, without.steps);
        assert!(distance(with.point(), &answer(&w, &t, planes(m, d))) < 1e-10);
    }
}

#[test]
fn on_the_circle_it_converges_quadratically() {
    let mut f = weighted(vec![2.0, 10.0], vec![3.0, 4.0]);
    let mut points: Vec<Vec<f64>> = Vec::new();
    let watch = |_: &StepRecord, x: &Vec<f64>| {
        points.push(x.clone());
        std::ops::ControlFlow::Continue(())
    };
    let run = minimize(&mut f).method(sqp(10, 1e-14, Sphere::new(1.0).unwrap())).full_batch().observe(watch);
    let report = run.stop(Stop::steps(30)).start(vec![1.0, 0.3]).unwrap();
    let last = report.point().clone();
    drop(report);
    let errors: Vec<f64> = points.iter().map(|x| distance(x, &last)).collect();
    let pairs = errors.windows(2).filter(|pair| pair[0] < 0.1 && pair[0] > 1e-7);
    assert!(pairs.clone().count() >= 2, "{errors:?}");
    for pair in pairs {
        assert!(pair[1] <= 5.0 * pair[0] * pair[0] + 1e-14, "{errors:?}");
    }
}

#[test]
fn where_the_lagrangian_is_indefinite_it_leaves_a_saddle_point() {
    // −½xᵀDx on the sphere has a saddle point at every eigenvector but the first and the last.
    let eigenvalues = [1.0, 2.0, 3.0, 4.0, 5.0];
    let mut f = weighted(eigenvalues.map(|w: f64| -w).to_vec(), vec![0.0; 5]);
    let mut start = vec![1e-3; 5];
    start[2] = 1.0;
    let mut method = sqp(50, 1e-10, Sphere::new(1.0).unwrap());
    let report = minimize(&mut f).method(&mut method).full_batch().stop(Stop::steps(50)).start(start).unwrap();
    assert_eq!(report.reason, StopReason::Kkt);
    assert!((report.last.value + 2.5).abs() < 1e-9 && report.steps <= 15, "{} {:?}", report.steps, report.last);
    // ∇f + 2λx = 0
    assert!((report.state.multipliers()[0] - 2.5).abs() < 1e-6);
}

#[test]
fn a_product_that_is_not_finite_leaves_the_step_without_products() {
    let run = |products: u64, factor: f64| {
        let f = weighted(vec![2.0, 10.0], vec![3.0, 4.0]);
        let mut f = with_products(f, ProductKind::Hessian, move |_, _: &Sample, v: &Vec<f64>, out: &mut Vec<f64>| {
            out.iter_mut().zip(v).for_each(|(out, v)| *out = factor * v);
        });
        let run = minimize(&mut f).method(sqp(products, 1e-8, Sphere::new(1.0).unwrap())).full_batch();
        let report = run.start(vec![1.0, 0.3]).unwrap();
        assert_eq!(report.reason, StopReason::Kkt);
        (bits(report.point()), report.steps, report.evaluations.products)
    };
    let (expected, steps, _) = run(0, 0.0);
    for factor in [f64::NAN, f64::INFINITY] {
        let (x, same, products) = run(10, factor);
        assert_eq!((x, same), (expected.clone(), steps));
        assert!(products > 0 && products <= steps, "{products}");
    }
}

#[test]
fn bounds_that_become_active_hold_exactly() {
    let d = 40;
    let (w, t) = (decaying(d, 1e2), normals(5, d));
    let bounded = || both(planes(2, d), Bounds::new(vec![-0.7; d], vec![0.9; d]).unwrap()).unwrap();
    let mut f = weighted(w, t);
    let mut method = sqp(200, 1e-10, bounded());
    let report = minimize(&mut f).method(&mut method).full_batch().stop(Stop::steps(60)).start(vec![0.0; d]).unwrap();
    assert_eq!(report.reason, StopReason::Kkt);
    assert!(report.steps <= 20, "{}", report.steps);
    let certificate = method.certify(&mut f, &report.state);
    assert!(certificate.stationarity < 1e-8 && certificate.complementarity < 1e-8, "{certificate:?}");
    let held = certificate.active_bounds;
    assert!(held.len() > 5 && held.iter().all(|&i| [-0.7, 0.9].contains(&report.point()[i])), "{held:?}");
    assert!(report.point().iter().all(|x| (-0.7..=0.9).contains(x)));

    let mut f = weighted(decaying(d, 1e2), normals(5, d));
    let plain = minimize(&mut f).method(sqp(0, 1e-10, bounded())).full_batch().stop(Stop::steps(600));
    let plain = plain.start(vec![0.0; d]).unwrap();
    assert!((plain.last.value - report.last.value).abs() <= 1e-8 * report.last.value);
}

#[test]
fn it_works_in_single_precision() {
    let sum: Vec<f64> = normals(3, 12);
    let run = |products: u64| {
        let mut f = LeastSquares::<f32>::interpolating(4, 40, &sum);
        let method = sqp(products, 1e-3, Sphere::<Vec<f32>>::new(0.5).unwrap());
        let report = minimize(&mut f).method(method).full_batch().start(vec![0.3_f32; 12]).unwrap();
        assert_eq!(report.reason, StopReason::Kkt);
        (report.last.value, report.last.constraint_norm, report.steps)
    };
    let ((expected, _, without), (value, violation, with)) = (run(0), run(50));
    assert!((value - expected).abs() <= 1e-3 * expected && violation < 1e-3, "{value} {expected} {violation}");
    assert!(with < without, "{with} against {without}");
}

#[test]
fn mini_batches_make_no_products() {
    let run = |products: u64| {
        let rows: Vec<Vec<f64>> = (0..400).map(|i| normals(i, 8)).collect();
        let mut f = from_residuals(400, move |i, x: &Vec<f64>, g: &mut Vec<f64>| {
            g.copy_from(&rows[i]);
            g.dot(x) - (i as f64 * 1.7).sin()
        });
        let mut made = 0;
        let mut f = with_products(&mut f, ProductKind::Hessian, |_, _: &Sample, _: &Vec<f64>, _: &mut Vec<f64>| {
            made += 1;
        });
        let method = sqp(products, 1e-8, Sphere::new(1.0).unwrap());
        let run = minimize(&mut f).method(method).batch(16).stop(Stop::epochs(60));
        let report = run.start(vec![1.0; 8]).unwrap();
        // The full sum has taken over, and has not made any, either.
        assert_eq!((report.reason, report.evaluations.products), (StopReason::Kkt, 0));
        let text = serde_json::to_string(&report.state).unwrap();
        assert_eq!(made, 0);
        text
    };
    assert_eq!(run(0), run(100));
}

#[test]
fn without_products_it_takes_differences() {
    // x₀·x₁ = 1 has no second-order products, and f none at all.
    let hyperbola = || {
        constraint_from_fn(
            1,
            |x, c| c[0] = x[0] * x[1] - 1.0,
            |x, v, out| out[0] = x[1] * v[0] + x[0] * v[1],
            |x, y, out| (out[0], out[1]) = (out[0] + x[1] * y[0], out[1] + x[0] * y[0]),
        )
    };
    let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
        (g[0], g[1]) = (g[0] + 2.0 * x[0], g[1] + 8.0 * x[1]);
        x[0] * x[0] + 4.0 * x[1] * x[1]
    });
    let report = minimize(&mut f).method(sqp(10, 1e-8, hyperbola())).full_batch().start(vec![3.0, 2.0]).unwrap();
    assert_eq!((report.reason, report.evaluations.products), (StopReason::Kkt, 0));
    assert!(report.evaluations.gradients > report.steps && report.steps <= 12, "{:?}", report.evaluations);
    let root = std::f64::consts::SQRT_2;
    assert!(distance(report.point(), &vec![root, 1.0 / root]) < 1e-7, "{:?}", report.point());
}

#[test]
fn no_step_makes_more_products_than_it_may() {
    for most in [1, 2, 7] {
        let d = 60;
        let mut f = weighted(decaying(d, 1e3), normals(1, d));
        let few = |record: &StepRecord, _: &Vec<f64>| {
            assert!(record.evaluations.products <= most, "{:?}", record.evaluations);
            std::ops::ControlFlow::Continue(())
        };
        let constraint = both(planes(3, d), Sphere::new(4.0).unwrap()).unwrap();
        let run = minimize(&mut f).method(sqp(most, 1e-8, constraint)).full_batch().observe(few);
        let report = run.stop(Stop::steps(500)).start(vec![0.1; d]).unwrap();
        assert_eq!(report.reason, StopReason::Kkt);
        assert!(report.evaluations.products > 0);
    }
}

#[test]
fn a_resumed_run_with_products_equals_an_uninterrupted_run() {
    let run = |cut: Option<usize>| {
        let (mut f, sphere) = (weighted(vec![2.0, -10.0], vec![3.0, 4.0]), || Sphere::new(1.0).unwrap());
        let mut method = sqp(10, 1e-8, sphere());
        let mut state = method.init(&mut f, vec![2.0, -1.0]).unwrap();
        for k in 0..6 {
            if cut == Some(k) {
                let text = serde_json::to_string(&state).unwrap();
                state = serde_json::from_str::<StrSqpState<Vec<f64>>>(&text).unwrap();
                method = sqp(10, 1e-8, sphere());
                method.prepare(&mut f, state.point()).unwrap();
            }
            method.step(&mut f, &mut state, &Sample::all(1)).unwrap();
        }
        assert!(state.radius().is_some());
        serde_json::to_string(&state).unwrap()
    };
    assert_eq!(run(None), run(Some(3)));
}

#[test]
fn states_without_products_are_as_before() {
    let mut f = weighted(vec![2.0, 10.0], vec![3.0, 4.0]);
    let report = minimize(&mut f).method(sqp(0, 1e-8, Sphere::new(1.0).unwrap())).full_batch();
    let report = report.start(vec![1.0, 0.3]).unwrap();
    let text = serde_json::to_string(&report.state).unwrap();
    assert!(!text.contains("region"));
    assert_eq!(serde_json::from_str::<StrSqpState<Vec<f64>>>(&text).unwrap(), report.state);
    let config: StrSqpConfig = serde_json::from_str("{\"tolerance\": 1e-6}").unwrap();
    assert_eq!(config, StrSqpConfig { tolerance: 1e-6, products: 0 });
}
