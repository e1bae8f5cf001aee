//! Objectives from closures: all forms give the same objective.

use crate::common::normals;
use strust::{
    diagnostics::gradient_slope,
    objective::{Scaled, from_fn_approximate_gradient, full_value},
    prelude::*,
};

const TERMS: usize = 30;

fn rows() -> (Vec<[f64; 2]>, Vec<f64>) {
    let numbers = normals(3, 2 * TERMS);
    let rows: Vec<[f64; 2]> = numbers.chunks_exact(2).map(|two| [two[0], two[1]]).collect();
    let right = rows.iter().map(|a| 3.0 * a[0] - 2.0 * a[1]).collect();
    (rows, right)
}

fn by_sample() -> impl Objective<Point = Vec<f64>> {
    let (rows, right) = rows();
    from_fn(TERMS, move |x: &Vec<f64>, sample: &Sample, mut g: Option<&mut Vec<f64>>| {
        let scale = 1.0 / sample.len() as f64;
        let term = |&i: &usize| {
            let (a, r) = (rows[i], rows[i][0] * x[0] + rows[i][1] * x[1] - right[i]);
            if let Some(g) = g.as_deref_mut() {
                g[0] += scale * r * a[0];
                g[1] += scale * r * a[1];
            }
            0.5 * scale * r * r
        };
        sample.indices().iter().map(term).sum()
    })
}

fn by_terms() -> impl Objective<Point = Vec<f64>> {
    let (rows, right) = rows();
    from_terms(TERMS, move |i, x: &Vec<f64>, g: &mut Vec<f64>| {
        let (a, r) = (rows[i], rows[i][0] * x[0] + rows[i][1] * x[1] - right[i]);
        g[0] += r * a[0];
        g[1] += r * a[1];
        0.5 * r * r
    })
}

fn by_residuals() -> impl Objective<Point = Vec<f64>> {
    let (rows, right) = rows();
    from_residuals(TERMS, move |i, x: &Vec<f64>, g: &mut Vec<f64>| {
        (g[0], g[1]) = (rows[i][0], rows[i][1]);
        rows[i][0] * x[0] + rows[i][1] * x[1] - right[i]
    })
}

fn by_differences() -> impl Objective<Point = Vec<f64>> {
    let (rows, right) = rows();
    from_fn_approximate_gradient(TERMS, move |x: &Vec<f64>, sample: &Sample| {
        let square = |&i: &usize| (rows[i][0] * x[0] + rows[i][1] * x[1] - right[i]).powi(2);
        0.5 * sample.indices().iter().map(square).sum::<f64>() / sample.len() as f64
    })
}

fn agree(mut f: impl Objective<Point = Vec<f64>>, tolerance: f64) {
    let mut reference = by_sample();
    assert_eq!(f.terms(), TERMS);
    for (k, x) in normals(4, 20).chunks_exact(2).enumerate() {
        let x = x.to_vec();
        let sample = Sample::new(vec![k, k + 3, k, 29], 1);
        let (mut g, mut expected) = (vec![f64::NAN; 2], vec![0.0; 2]);
        let value = f.value_and_gradient(&x, &sample, &mut g).value;
        let truth = reference.value_and_gradient(&x, &sample, &mut expected).value;
        assert_eq!(
            value.to_bits(),
            f.value(&x, &sample).value.to_bits(),
            "the value with and without gradient must agree"
        );
        assert!((value - truth).abs() <= 1e-14 * truth);
        g.add(-1.0, &expected);
        assert!(g.norm() <= tolerance * expected.norm(), "{} of {}", g.norm(), expected.norm());
    }
}

#[test]
fn terms_residuals_and_differences_give_the_same_objective() {
    agree(by_terms(), 1e-14);
    agree(by_residuals(), 1e-14);
    agree(by_differences(), 1e-9);
}

#[test]
fn gradients_of_all_forms_pass_the_slope_check() {
    fn check(mut f: impl Objective<Point = Vec<f64>>) {
        let slope = gradient_slope(&mut f, &vec![0.3, -1.0], &vec![1.0, 2.0], &Sample::range(0..TERMS));
        assert!(slope > 1.9, "{slope}");
    }
    check(by_terms());
    check(by_residuals());
}

#[test]
fn from_residuals_reaches_the_rounding_floor_and_keeps_the_radius() {
    let mut f = by_residuals();
    let report =
        minimize(&mut f).method(Str::default()).batch(5).stop(Stop::epochs(500)).start(vec![100.0, 100.0]).unwrap();
    let (value, radius) = (full_value(&mut f, report.point()), report.state.radius());
    assert!(value < 1e-28 && radius > 1e-3, "f = {value}, Δ = {radius}");
}

#[test]
fn an_approximate_gradient_finds_the_minimum_to_half_its_digits() {
    let report = minimize(&mut by_differences()).full_batch().stop(Stop::epochs(2000)).start(vec![0.0, 0.0]).unwrap();
    assert!((report.point()[0] - 3.0).abs() < 1e-6 && (report.point()[1] + 2.0).abs() < 1e-6, "{:?}", report.point());
    // Zero components and zero points need a shift too.
    let mut g = vec![0.0; 2];
    by_differences().value_and_gradient(&vec![0.0, 0.0], &Sample::range(0..TERMS), &mut g);
    assert!(g.norm() > 0.1 && g.norm().is_finite());
}

#[test]
fn terms_of_different_signs_state_the_rounding_of_their_size() {
    // The mean of x² ± 1e8 is x², with the errors of 1e8.
    let mut f = from_terms(2, |i, x: &Vec<f64>, g| {
        g[0] += x[0];
        0.5 * x[0] * x[0] + if i == 0 { 1e8 } else { -1e8 }
    });
    assert!(f.value(&vec![1e-6], &Sample::range(0..2)).rounding > 1e-9);
    let report = minimize(&mut f).method(Str::default()).full_batch().stop(Stop::steps(50)).start(vec![1e-5]).unwrap();
    assert!(report.state.radius() > 1e-3, "the radius stays: {}", report.state.radius());
}

#[test]
fn a_power_of_two_scales_every_number_exactly_and_one_changes_no_bit() {
    let (x, sample) = (vec![0.3, -1.7], Sample::new(vec![4, 0, 29, 4], 0));
    let (mut plain, mut g) = (by_sample(), vec![0.0; 2]);
    let f = plain.value_and_gradient(&x, &sample, &mut g);
    for scale in [1.0, 2.0_f64.powi(20), 2.0_f64.powi(-20)] {
        let (mut scaled, mut h) = (Scaled::new(by_sample(), scale), vec![0.0; 2]);
        let found = scaled.value_and_gradient(&x, &sample, &mut h);
        assert_eq!((found.value, found.rounding), (scale * f.value, scale * f.rounding));
        assert_eq!(found, scaled.value(&x, &sample));
        assert_eq!(h, [scale * g[0], scale * g[1]]);
    }
    let slope = gradient_slope(&mut Scaled::new(by_sample(), 0.3), &x, &vec![1.0, -2.0], &sample);
    assert!((1.95..2.05).contains(&slope), "{slope}");
}
