//! Checks that every problem in this crate must pass.

use crate::{
    Features, Labeled, Problem,
    numerics::{DATA, START, normals},
};
use faer::Mat;
use strust::{
    diagnostics::gradient_slope,
    objective::{ProductKind, full_value_and_gradient},
    sample::Sample,
    vector::{Dense, Vector},
};

/// A data set of random features, about a third of them 0. The labels cycle through `classes`.
pub(crate) fn random_data(n: usize, d: usize, classes: &[f64], seed: u64) -> Labeled {
    let mut next = normals(seed, DATA);
    let mut entry = || Some(next()).filter(|v| v.abs() > 0.5).unwrap_or(0.0);
    let features = Features::Dense(Mat::from_fn(n, d, |_, _| entry()));
    Labeled { features, labels: (0..n).map(|i| classes[i % classes.len()]).collect() }
}

/// Checks the products of a problem: they are those of differences of its gradients, symmetric, the mean of those of
/// pieces, and with `positive` never negative.
pub(crate) fn has_products<P: Problem>(problem: &mut P, kind: ProductKind, positive: bool, tolerance: f64)
where
    P::Point: Dense,
{
    let x = problem.start(5);
    has_products_at(problem, &x, kind, positive, tolerance);
}

/// The same at a point.
pub(crate) fn has_products_at<P: Problem>(
    problem: &mut P,
    x: &P::Point,
    kind: ProductKind,
    positive: bool,
    tolerance: f64,
) where
    P::Point: Dense,
{
    let n = problem.terms();
    for sample in [Sample::range(0..n), Sample::new(vec![n - 1, 0, n / 2, 0], 0)] {
        let (u, v) = (direction(x, 1), direction(x, 2));
        let (mut hu, mut hv) = (direction(x, 3), direction(x, 4));
        assert!(problem.curvature_product(kind, x, &sample, &u, &mut hu));
        assert!(problem.curvature_product(kind, x, &sample, &v, &mut hv));
        assert!((u.dot(&hv) - v.dot(&hu)).abs() <= tolerance * u.norm() * hv.norm(), "the matrix is not symmetric");
        assert!(!positive || u.dot(&hu) >= 0.0);
        if kind == ProductKind::Hessian {
            let (h, mut point) = (P::Point::EPSILON.cbrt(), x.zeros_like());
            let (mut above, mut below) = (x.zeros_like(), x.zeros_like());
            point.set_sum(x, h, &u);
            problem.value_and_gradient(&point, &sample, &mut above);
            point.set_sum(x, -h, &u);
            problem.value_and_gradient(&point, &sample, &mut below);
            above.add(-1.0, &below);
            above.add(-2.0 * h, &hu);
            let error = above.norm() / (2.0 * h * hu.norm());
            assert!(error <= 1e3 * P::Point::EPSILON.powf(2.0 / 3.0), "products differ from differences by {error:e}");
        }
    }
    the_mean_of_pieces_is_the_product(problem, kind, x, tolerance);
}

/// The product of a full sample is the weighted mean of those of its pieces, and equal arguments give equal bits.
fn the_mean_of_pieces_is_the_product<P: Problem>(problem: &mut P, kind: ProductKind, x: &P::Point, tolerance: f64)
where
    P::Point: Dense,
{
    let n = problem.terms();
    let (v, mut full, mut again, mut piece) = (direction(x, 5), x.zeros_like(), x.zeros_like(), x.zeros_like());
    problem.curvature_product(kind, x, &Sample::range(0..n), &v, &mut full);
    let cut = n / 3;
    for (rows, weight) in [(0..cut, cut), (cut..n, n - cut)] {
        problem.curvature_product(kind, x, &Sample::range(rows), &v, &mut piece);
        again.add(weight as f64 / n as f64, &piece);
    }
    again.add(-1.0, &full);
    assert!(again.norm() <= 10.0 * tolerance * full.norm(), "products of pieces differ by {}", again.norm());
    problem.curvature_product(kind, x, &Sample::range(0..n), &v, &mut again);
    again.add(-1.0, &full);
    assert!(again.norm() == 0.0, "a product at another sample changed the result");
}

pub(crate) fn direction<P: Dense>(like: &P, seed: u64) -> P {
    let mut next = normals(seed, START + 1);
    let mut v = like.zeros_like();
    for j in 0..v.parts() {
        v.part_mut(j).fill_with(|| strust::vector::Real::from_f64(next()));
    }
    v
}

/// Checks: the slope of the gradient is 2; equal arguments give equal bits; the mean of a full sample is the
/// weighted mean of its pieces; a start depends only on the seed.
pub(crate) fn holds<P: Problem>(problem: &mut P, slope: std::ops::Range<f64>, tolerance: f64)
where
    P::Point: Dense + PartialEq + std::fmt::Debug,
{
    let n = problem.terms();
    let x = problem.start(5);
    assert_eq!(x, problem.start(5));
    assert_ne!(x, problem.start(6));
    problem.check_point(&x).unwrap();

    let all = Sample::range(0..n);
    // A term may occur twice, and the order is arbitrary.
    let some = Sample::new(vec![n - 1, 0, n / 2, 0], 0);
    for sample in [&all, &some] {
        for seed in 0..3 {
            let found = gradient_slope(problem, &x, &direction(&x, seed), sample);
            assert!(slope.contains(&found), "slope {found}");
        }
        let (mut first, mut second) = (direction(&x, 1), direction(&x, 2));
        let value = problem.value_and_gradient(&x, sample, &mut first).value;
        let trial = direction(&x, 3);
        problem.value(&trial, &some);
        let again = problem.value_and_gradient(&x, sample, &mut second).value;
        assert_eq!(value.to_bits(), again.to_bits(), "an evaluation at another point changed the result");
        assert_eq!(first, second, "the gradient must be overwritten and bit-identical");
        assert_eq!(
            value.to_bits(),
            problem.value(&x, sample).value.to_bits(),
            "the value with and without gradient must agree"
        );
    }

    let (mut gradient, mut piece) = (x.zeros_like(), x.zeros_like());
    let value = problem.value_and_gradient(&x, &all, &mut gradient).value;
    let mut mean = 0.0;
    let cut = n / 3;
    for (sample, weight) in [(0..cut, cut), (cut..n, n - cut)].map(|(r, w)| (Sample::range(r), w as f64 / n as f64)) {
        mean += weight * problem.value_and_gradient(&x, &sample, &mut piece).value;
        gradient.add(-weight, &piece);
    }
    assert!(
        (mean - value).abs() <= tolerance * (1.0 + value.abs()),
        "the mean of the pieces is {mean}, the full value is {value}"
    );
    assert!(gradient.norm() <= tolerance * (1.0 + piece.norm()), "gradients differ by {}", gradient.norm());
}

/// At a known solution the gradient is 0 and the value is the optimum.
pub(crate) fn solves<P: Problem>(problem: &mut P, solution: &P::Point, tolerance: f64) {
    let mut gradient = solution.zeros_like();
    let value = full_value_and_gradient(problem, solution, &mut gradient);
    let optimum = problem.optimum().expect("a problem with a known solution has a known optimum");
    assert!((value - optimum).abs() <= tolerance, "value {value}, optimum {optimum}");
    assert!(gradient.norm() <= tolerance, "gradient {}", gradient.norm());
}

/// The product with the Hessian is the derivative of the gradient, by a central difference.
pub(crate) fn is_curved<F: crate::convex::Curved<Point: Dense>>(f: &mut F, x: &F::Point) {
    const STEP: f64 = 1e-5;
    let v = direction(x, 4);
    let curvature = f.curvature(x);
    let mut difference = x.zeros_like();
    f.add_product(&curvature, &v, &mut difference);
    let norm = difference.norm();
    for side in [-1.0, 1.0] {
        let (mut near, mut gradient) = (x.clone(), x.zeros_like());
        near.add(side * STEP, &v);
        full_value_and_gradient(f, &near, &mut gradient);
        difference.add(-0.5 * side / STEP, &gradient);
    }
    assert!(difference.norm() < 1e-8 * norm, "{} of {norm}", difference.norm());
}
