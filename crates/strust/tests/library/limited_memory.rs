//! STR with limited-memory quasi-Newton matrices.

use crate::common::{LeastSquares, normal, normals};
use strust::{
    methods::{StrLbfgs, StrLbfgsConfig, StrLsr1, StrLsr1Config},
    objective::{Evaluations, full_value},
    prelude::*,
    radius::RegionConfig,
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

/// The solution to 1e-8 on the full batch, its price and the rejections.
fn solved<F, M>(mut f: F, method: M, start: &[f64]) -> (Vec<f64>, Evaluations, u64)
where
    F: Objective<Point = Vec<f64>>,
    M: Method<F>,
{
    let stop = Stop::gradient_norm(1e-8).or(Stop::steps(6000));
    let report = minimize(&mut f).method(method).full_batch().stop(stop).start(start.to_vec()).unwrap();
    assert!(report.reason.converged(), "{:?} after {} steps", report.reason, report.steps);
    (report.point().clone(), report.evaluations, report.steps - report.accepted)
}

#[test]
fn rosenbrocks_function_is_solved_with_one_gradient_for_each_step_and_each_rejection() {
    for (d, most) in [(2, 130), (10, 400)] {
        let start: Vec<f64> = (0..d).map(|j| if j % 2 == 0 { -1.2 } else { 1.0 }).collect();
        let check = |(x, count, rejected): (Vec<f64>, Evaluations, u64)| {
            assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-6), "{x:?}");
            // The last trial is not followed by a step.
            assert!([0, 1].contains(&(count.values + rejected - count.gradients)), "{count:?}, {rejected} rejected");
            assert!(rejected > 0 && count.gradients < most && count.products == 0, "{count:?}");
        };
        check(solved(rosenbrock(), StrLbfgs::default(), &start));
        check(solved(rosenbrock(), StrLsr1::default(), &start));
    }
}

#[test]
fn an_ill_conditioned_quadratic_needs_far_fewer_steps_than_first_order() {
    let quadratic = || {
        from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
            let eigenvalue = |j: usize| f64::powf(1e4, j as f64 / 39.0);
            (0..40).for_each(|j| g[j] += eigenvalue(j) * (x[j] - 1.0));
            (0..40).map(|j| 0.5 * eigenvalue(j) * (x[j] - 1.0).powi(2)).sum()
        })
    };
    assert!(solved(quadratic(), StrLbfgs::default(), &[0.0; 40]).1.gradients < 2000);
    assert!(solved(quadratic(), StrLsr1::default(), &[0.0; 40]).1.gradients < 6000);
}

#[test]
fn negative_curvature_is_followed_to_a_minimum() {
    // x⁴/4 − x²/2 + y²/2 has minima at x = ±1 and a saddle at 0.
    let f = || {
        from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
            g[0] += x[0].powi(3) - x[0];
            g[1] += x[1];
            0.25 * x[0].powi(4) - 0.5 * x[0] * x[0] + 0.5 * x[1] * x[1]
        })
    };
    for (x, ..) in [solved(f(), StrLbfgs::default(), &[1e-3, 1.0]), solved(f(), StrLsr1::default(), &[1e-3, 1.0])] {
        assert!((x[0].abs() - 1.0).abs() < 1e-6 && x[1].abs() < 1e-6, "{x:?}");
    }
}

/// With mini-batches, every pair costs one gradient. `every` makes that rare.
#[test]
fn mini_batches_pay_for_their_pairs_and_the_full_batch_does_not() {
    let gradients = |batch: Option<usize>, every| {
        let mut f = LeastSquares::<f64>::interpolating(1, 60, &normals(3, 7));
        f.right.iter_mut().zip(normals(4, 60)).for_each(|(b, noise)| *b += noise);
        let method = StrLbfgs::new(StrLbfgsConfig { every, ..Default::default() }).unwrap();
        let run = minimize(&mut f).method(method).stop(Stop::steps(100));
        let run = if let Some(batch) = batch { run.batch(batch) } else { run.full_batch() };
        let report = run.start(normal(9, &[7])).unwrap();
        assert!(report.breakdown.is_none());
        (report.evaluations.gradients, report.state.memory().pairs().len())
    };
    let ((full, of_full), (dense, _), (rare, pairs)) =
        (gradients(None, 1), gradients(Some(10), 1), gradients(Some(10), 10));
    assert!(full < 110 && of_full > 5, "{full}, {of_full}");
    assert!((150..200).contains(&dense) && (103..=110).contains(&rare) && pairs >= 3, "{dense}, {rare}, {pairs}");
}

#[test]
fn noisy_least_squares_improve_on_batches() {
    let answer = normals(3, 7);
    for seed in 0..20 {
        let mut f = LeastSquares::<f64>::interpolating(1, 200, &answer);
        f.right.iter_mut().zip(normals(seed, 200)).for_each(|(b, noise)| *b += 0.1 * noise);
        let start: Vec<f64> = normal(9, &[7]);
        let before = full_value(&mut f, &start);
        for every in [1, 5] {
            let method = StrLbfgs::new(StrLbfgsConfig { every, ..Default::default() }).unwrap();
            let run = minimize(&mut f).method(method).batch(50).seed(seed).stop(Stop::steps(200));
            let report = run.start(start.clone()).unwrap();
            let after = full_value(&mut f, report.point());
            assert!(report.breakdown.is_none() && after < 0.02 * before, "seed {seed}: {before} to {after}");
        }
    }
}

/// At the rounding floor the changes of the gradient are noise: no pair of them may enter, and x must not run away.
#[test]
fn single_precision_stays_at_its_rounding_floor() {
    let answer = normals(3, 7);
    let mut f = LeastSquares::<f32>::interpolating(1, 20, &answer);
    let run = minimize(&mut f).method(StrLbfgs::default()).full_batch().stop(Stop::steps(500));
    let report = run.start(normal(9, &[7])).unwrap();
    let off = report.point().iter().zip(&answer).map(|(&x, a)| (f64::from(x) - a).abs()).fold(0.0, f64::max);
    assert!(report.breakdown.is_none() && off < 1e-4, "{off:e}");
    assert!(report.state.memory().pairs().all(|(step, change)| step.dot(change) > 0.0));
}

#[test]
fn one_component_and_a_zero_gradient() {
    let f = || {
        from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
            g[0] += x[0].exp() - 2.0;
            x[0].exp() - 2.0 * x[0]
        })
    };
    for (x, ..) in [solved(f(), StrLbfgs::default(), &[5.0]), solved(f(), StrLsr1::default(), &[5.0])] {
        assert!((x[0] - 2.0_f64.ln()).abs() < 1e-8);
    }
    let mut flat = from_terms(1, |_, _: &Vec<f64>, _: &mut Vec<f64>| 1.0);
    let report = minimize(&mut flat).method(StrLsr1::default()).stop(Stop::steps(3)).start(vec![1.0, 2.0]).unwrap();
    assert_eq!((report.breakdown.is_none(), report.point()), (true, &vec![1.0, 2.0]));
}

/// A trial that is rejected because f is not finite teaches nothing.
#[test]
fn a_pair_is_never_made_from_a_point_that_is_not_finite() {
    let mut f = from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
        g[0] += 1.0 - x[0].recip();
        x[0] - x[0].ln() // NaN for x < 0
    });
    let region = RegionConfig { initial_radius: 100.0, ..RegionConfig::with_curvature() };
    let mut method = StrLsr1::new(StrLsr1Config { region, ..Default::default() }).unwrap();
    let mut state = method.init(&mut f, vec![50.0]).unwrap();
    // A step along −g = −0.98 with γ = 1 is fine; the next one leaves the domain.
    for _ in 0..60 {
        method.step(&mut f, &mut state, &Sample::range(0..1)).unwrap();
        let finite = |v: &Vec<f64>| v.iter().all(|v| v.is_finite());
        assert!(state.memory().pairs().all(|(step, change)| finite(step) && finite(change)));
        assert!(state.memory().last().iter().all(|(point, gradient)| finite(point) && finite(gradient)));
    }
    assert!((state.point()[0] - 1.0).abs() < 1e-6, "{:?}", state.point());
}
