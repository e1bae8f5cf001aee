//! STR with the Hessian of the sample.

use crate::common::{LeastSquares, normal, normals};
use std::time::Duration;
use strust::{
    methods::StrNewton,
    objective::{Evaluations, ProductKind, with_products},
    prelude::*,
    ranks::{Sharded, on_threads},
};

/// Σ 100(xⱼ₊₁ − xⱼ²)² + (1 − xⱼ)².
fn rosenbrock() -> impl Objective<Point = Vec<f64>> {
    from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
        let mut sum = 0.0;
        for j in 0..x.len() - 1 {
            let (a, b) = (1.0 - x[j], x[j + 1] - x[j] * x[j]);
            g[j] += -2.0 * a - 400.0 * x[j] * b;
            g[j + 1] += 200.0 * b;
            sum += a * a + 100.0 * b * b;
        }
        sum
    })
}

#[expect(clippy::ptr_arg, reason = "the type of a closure for products")]
fn rosenbrock_product(x: &Vec<f64>, _: &Sample, v: &Vec<f64>, out: &mut Vec<f64>) {
    out.set_zero();
    for j in 0..x.len() - 1 {
        out[j] += (2.0 - 400.0 * x[j + 1] + 1200.0 * x[j] * x[j]) * v[j] - 400.0 * x[j] * v[j + 1];
        out[j + 1] += 200.0 * v[j + 1] - 400.0 * x[j] * v[j];
    }
}

fn solved(f: &mut impl Objective<Point = Vec<f64>>, start: Vec<f64>) -> (u64, f64, Evaluations) {
    let run = minimize(f).method(StrNewton::default()).full_batch();
    let report = run.stop(Stop::gradient_norm(1e-8).or(Stop::steps(1000))).start(start).unwrap();
    assert!(report.reason.converged(), "{:?} after {} steps", report.reason, report.steps);
    let off = report.point().iter().map(|x| (x - 1.0).abs()).fold(0.0, f64::max);
    (report.steps, off, report.evaluations)
}

#[test]
fn rosenbrocks_function_is_solved_with_exact_products_and_with_differences() {
    for (d, most) in [(2, 40), (10, 80), (100, 400)] {
        // For d ≥ 4 there is a local minimum near (−1, 1, 1, …), which the start 0 avoids.
        let start = if d == 2 { vec![-1.2, 1.0] } else { vec![0.0; d] };
        let (steps, off, evaluations) =
            solved(&mut with_products(rosenbrock(), ProductKind::Hessian, rosenbrock_product), start.clone());
        println!("d = {d}: {steps} steps, {} products", evaluations.products);
        assert!(steps < most && off < 1e-6 && evaluations.products > 0, "d = {d}: {steps} steps, {off:e} off");
        let (steps, off, evaluations) = solved(&mut rosenbrock(), start);
        assert!(steps < most && off < 1e-6 && evaluations.products == 0, "d = {d}: {steps} steps, {off:e} off");
    }
}

/// ½ Σ λⱼ(xⱼ − 1)² with eigenvalues from 1 to the condition.
#[test]
fn an_ill_conditioned_quadratic_takes_few_steps() {
    for (condition, most) in [(1e4, 20), (1e6, 25)] {
        let d = 40_usize;
        let eigenvalue = move |j: usize| f64::powf(condition, j as f64 / (d - 1) as f64);
        let f = from_terms(1, move |_, x: &Vec<f64>, g: &mut Vec<f64>| {
            (0..d).for_each(|j| g[j] += eigenvalue(j) * (x[j] - 1.0));
            (0..d).map(|j| 0.5 * eigenvalue(j) * (x[j] - 1.0).powi(2)).sum()
        });
        let product = move |_: &Vec<f64>, _: &Sample, v: &Vec<f64>, out: &mut Vec<f64>| {
            (0..d).for_each(|j| out[j] = eigenvalue(j) * v[j]);
        };
        let (steps, off, evaluations) = solved(&mut with_products(f, ProductKind::Hessian, product), vec![0.0; d]);
        println!("condition {condition:e}: {steps} steps, {} products", evaluations.products);
        assert!(steps < most && off < 1e-6, "condition {condition:e}: {steps} steps, {off:e} off");
    }
}

/// A saddle at the start, where the gradient is zero along the way down: −x² + y⁴ ... with a minimum beyond.
#[test]
fn negative_curvature_is_followed_to_a_minimum() {
    // x⁴/4 − x²/2 + y²/2 has minima at x = ±1 and a saddle at 0.
    let mut f = from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
        g[0] += x[0].powi(3) - x[0];
        g[1] += x[1];
        0.25 * x[0].powi(4) - 0.5 * x[0] * x[0] + 0.5 * x[1] * x[1]
    });
    let run = minimize(&mut f).method(StrNewton::default()).full_batch().stop(Stop::gradient_norm(1e-9));
    let report = run.start(vec![1e-3, 1.0]).unwrap();
    assert!(report.reason.converged() && (report.point()[0].abs() - 1.0).abs() < 1e-6, "{:?}", report.point());
}

#[test]
fn one_component_single_precision_and_products_that_are_not_finite() {
    let mut f = from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
        g[0] += x[0].exp() - 2.0;
        x[0].exp() - 2.0 * x[0]
    });
    let run = minimize(&mut f).method(StrNewton::default()).full_batch().stop(Stop::gradient_norm(1e-10));
    let report = run.start(vec![5.0]).unwrap();
    assert!(report.reason.converged() && (report.point()[0] - 2.0_f64.ln()).abs() < 1e-9);

    let answer = normals(3, 7);
    let mut f = LeastSquares::<f32>::interpolating(1, 20, &answer);
    let run = minimize(&mut f).method(StrNewton::default()).full_batch().stop(Stop::steps(200));
    let report = run.start(normal(9, &[7])).unwrap();
    let off = report.point().iter().zip(&answer).map(|(&x, a)| (f64::from(x) - a).abs()).fold(0.0, f64::max);
    assert!(report.breakdown.is_none() && off < 1e-4, "{off:e}");

    let f = from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
        g[0] += x[0];
        0.5 * x[0] * x[0]
    });
    let broken = |_: &Vec<f64>, _: &Sample, _: &Vec<f64>, out: &mut Vec<f64>| out[0] = f64::NAN;
    let mut f = with_products(f, ProductKind::Hessian, broken);
    let report = minimize(&mut f).method(StrNewton::default()).full_batch().start(vec![1.0]).unwrap();
    assert!(matches!(report.breakdown, Some(Error::NonFiniteCurvature { .. })), "{:?}", report.breakdown);
    assert_eq!(report.point(), &vec![1.0]);
}

#[test]
fn products_on_ranks_are_those_of_one_process() {
    let f = || LeastSquares::<f64>::interpolating(1, 33, &normals(3, 7));
    let run = |f: &mut dyn Objective<Point = Vec<f64>>| {
        let mut f = f;
        let run = minimize(&mut f).method(StrNewton::default()).batch(10).seed(5).stop(Stop::steps(3));
        let report = run.start(normal(9, &[7])).unwrap();
        assert_eq!(report.breakdown, None);
        (report.point().clone(), report.evaluations)
    };
    let (expected, evaluations) = run(&mut f());
    for size in [2, 3, 5] {
        for (point, found) in on_threads(size, Duration::from_secs(60), |rank| run(&mut Sharded::new(f(), rank))) {
            let off = point.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-9 && found == evaluations, "{size} ranks: {off:e}, {found:?}");
        }
    }
}
