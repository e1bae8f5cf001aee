//! Slope checks of every Jacobian, and the properties that make a constraint set a manifold.

use crate::common::{LeastSquares, Targets, bits, distance, normal, normals};
use faer::Mat;
use strust::{
    ErrorKind,
    constraints::{
        Affine, Frame, Frames, GeneralizedStiefel, Manifold, Retraction, Simplex, Sphere, Stiefel, by_newton,
    },
    diagnostics::{gradient_slope, jacobian_slope},
    objective::{Penalized, ProductKind},
    prelude::*,
    vector::{Dense, Real},
};

/// Slope 2, or infinite without a second derivative.
fn assert_second_order(what: &str, slope: f64) {
    assert!((1.9..2.1).contains(&slope) || slope == f64::INFINITY, "{what}: slope {slope}");
}

/// A symmetric positive definite matrix with eigenvalues between about 1 and 2. Rounding errors grow with its condition.
fn metric<T: Real>(d: usize, seed: u64) -> Mat<T> {
    let root: Mat<f64> = normal(700 + seed, &[d, d]);
    let square = &root * root.transpose();
    let entry = |i: usize, j: usize| 0.25 * square[(i.min(j), i.max(j))] / d as f64 + f64::from(u8::from(i == j));
    Mat::from_fn(d, d, |i, j| T::from_f64(entry(i, j)))
}

/// Matrices of 4×2, 2×3 and 5×1 in a vector of 20 components, of which one is free.
fn frames<T: Real>() -> Frames<T> {
    let frames = [(0, 4, 2), (9, 2, 3), (15, 5, 1)].map(|(start, rows, columns)| Frame { start, rows, columns });
    Frames::new(20, &frames).unwrap()
}

fn jacobians_are_right<T: Real>() {
    let mismatch_bound = 1e3 * T::EPSILON;
    for seed in 0..20 {
        let vector = |i: u64| -> Vec<T> { normal(100 * seed + i, &[9]) };
        let (x, v) = (vector(0), vector(1));
        let (slope, mismatch) = jacobian_slope(&mut Sphere::new(1.5).unwrap(), &x, &v, &vec![0.7]);
        assert_second_order("sphere", slope);
        assert!(slope.is_finite() && mismatch < mismatch_bound, "sphere: {mismatch}");

        let mut affine = Affine::new(vec![vector(2), vector(3), vector(4)], vec![1.0, 2.0, 3.0]).unwrap();
        let (slope, mismatch) = jacobian_slope(&mut affine, &x, &v, &vec![0.7, -1.0, 0.2]);
        assert!(slope == f64::INFINITY && mismatch < mismatch_bound, "affine: {slope}, {mismatch}");

        let matrix = |i: u64| -> Mat<T> { normal(100 * seed + i, &[9, 4]) };
        let y: Mat<T> = normal(100 * seed + 7, &[4, 4]); // not symmetric
        let (slope, mismatch) = jacobian_slope(&mut Stiefel::new(9, 4).unwrap(), &matrix(5), &matrix(6), &y);
        assert_second_order("Stiefel", slope);
        assert!(slope.is_finite() && mismatch < mismatch_bound, "Stiefel: {mismatch}");

        let mut generalized = GeneralizedStiefel::new(metric(9, seed), 4).unwrap();
        let (slope, mismatch) = jacobian_slope(&mut generalized, &matrix(5), &matrix(6), &y);
        assert_second_order("generalized Stiefel", slope);
        assert!(slope.is_finite() && mismatch < mismatch_bound, "generalized Stiefel: {mismatch}");

        let y: Vec<T> = normal(100 * seed + 8, &[9]);
        let (x, v) = (normal(100 * seed + 9, &[20]), normal(100 * seed + 10, &[20]));
        let (slope, mismatch) = jacobian_slope(&mut frames(), &x, &v, &y);
        assert_second_order("frames", slope);
        assert!(slope.is_finite() && mismatch < mismatch_bound, "frames: {mismatch}");
    }
}

#[test]
fn the_jacobians_of_all_constraints_pass_the_slope_check_in_f64() {
    jacobians_are_right::<f64>();
}

#[test]
fn the_jacobians_of_all_constraints_pass_the_slope_check_in_f32() {
    jacobians_are_right::<f32>();
}

/// The second-order product is the derivative of Jᵀy along v, by a central difference.
fn has_second_order<C: Constraint>(what: &str, mut c: C, x: &C::Point, y: &C::Residual, v: &C::Point) {
    let (h, mut found, mut point) = (1e-4, x.zeros_like(), x.zeros_like());
    found.add(1.0, v);
    assert!(c.add_second_order_product(x, 3.0, y, v, &mut found), "{what}");
    found.add(-1.0, v);
    let norm = found.norm();
    for side in [1.0, -1.0] {
        point.set_sum(x, side * h, v);
        c.add_vjp(&point, -3.0 * side / (2.0 * h), y, &mut found);
    }
    assert!(found.norm() <= 1e-10 * (1.0 + norm), "{what}: off by {:e} of {norm:e}", found.norm());
}

#[test]
fn the_second_order_products_of_all_constraints_are_derivatives() {
    let vector = |seed: u64| normal::<Vec<f64>>(seed, &[9]);
    let (x, v) = (vector(0), vector(1));
    let affine = || Affine::new(vec![vector(2), vector(3)], vec![1.0, 2.0]).unwrap();
    let sphere = || Sphere::new(1.5).unwrap();
    has_second_order("sphere", sphere(), &x, &vec![0.7], &v);
    has_second_order("affine", affine(), &x, &vec![0.7, -1.0], &v);
    has_second_order("simplex", Simplex::new(&x, 1.0).unwrap(), &x, &vec![0.7], &v);
    has_second_order("both", both(affine(), sphere()).unwrap(), &x, &vec![0.7, -1.0, 0.2], &v);
    let wrapped = by_newton(both(sphere(), affine()).unwrap()).unwrap();
    has_second_order("by Newton", wrapped, &x, &vec![0.7, -1.0, 0.2], &v);
    let (w, y, d) = (normal::<Mat<f64>>(5, &[9, 4]), normal::<Mat<f64>>(7, &[4, 4]), normal::<Mat<f64>>(6, &[9, 4]));
    has_second_order("Stiefel", Stiefel::new(9, 4).unwrap(), &w, &y, &d);
    has_second_order("generalized Stiefel", GeneralizedStiefel::new(metric(9, 0), 4).unwrap(), &w, &y, &d);
    has_second_order("frames", frames::<f64>(), &normal(9, &[20]), &normal(8, &[9]), &normal(10, &[20]));
    let product = constraint_from_fn(
        1,
        |x, c| c[0] = x[0] * x[1],
        |x, v, out| out[0] = x[1] * v[0] + x[0] * v[1],
        |x, y, out| (out[0], out[1]) = (out[0] + x[1] * y[0], out[1] + x[0] * y[0]),
    );
    let mut out = x.zeros_like();
    assert!(!both(sphere(), product).unwrap().add_second_order_product(&x, 1.0, &vec![1.0, 1.0], &v, &mut out));
}

#[test]
fn the_products_of_a_penalized_objective_are_derivatives_of_its_gradients() {
    let sample = Sample::range(0..3);
    let f = Targets::<Mat<f64>>::random(1, 3, &[6, 2], 0.5, 1.0);
    let mut penalized = Penalized::new(f, Stiefel::new(6, 2).unwrap(), 10.0);
    let (x, v): (Mat<f64>, Mat<f64>) = (normal(1, &[6, 2]), normal(2, &[6, 2]));
    let (mut product, mut point, mut gradient) = (x.clone(), x.zeros_like(), x.zeros_like());
    assert!(penalized.curvature_product(ProductKind::Hessian, &x, &sample, &v, &mut product));
    let (norm, h) = (product.norm(), 1e-5);
    for side in [1.0, -1.0] {
        point.set_sum(&x, side * h, &v);
        penalized.value_and_gradient(&point, &sample, &mut gradient);
        product.add(-side / (2.0 * h), &gradient);
    }
    assert!(product.norm() < 1e-8 * norm, "off by {:e} of {norm:e}", product.norm());
    // vᵀGv = vᵀv + μ‖Jv‖² for this objective.
    assert!(penalized.curvature_product(ProductKind::GaussNewton, &x, &sample, &v, &mut product));
    let expected = v.norm_squared() + penalized.penalty_curvature(&x, &v);
    assert!((v.dot(&product) / expected - 1.0).abs() < 1e-12);
}

#[test]
fn penalized_gradients_pass_the_slope_check() {
    for seed in 0..20 {
        let f = Targets::<Mat<f64>>::random(seed, 3, &[6, 2], 0.5, 1.0);
        let mut phi = Penalized::new(f, Stiefel::new(6, 2).unwrap(), 7.0);
        let (x, v) = (normal(seed + 50, &[6, 2]), normal(seed + 80, &[6, 2]));
        assert_second_order("penalized", gradient_slope(&mut phi, &x, &v, &Sample::range(0..3)));
        let mut f = LeastSquares::<f64>::interpolating(seed, 5, &normals(seed, 6));
        let (x, v) = (normal(seed + 50, &[6]), normal(seed + 80, &[6]));
        assert_second_order("least squares", gradient_slope(&mut f, &x, &v, &Sample::range(0..5)));
    }
}

/// A small error of the gradient can cancel the second-order term at one step length. So the check must not rely on a
/// single local slope.
#[test]
fn the_slope_check_detects_a_relative_gradient_error_of_one_in_ten_thousand() {
    for off in [1e-4, -1e-4, 1e-3, -1e-3, 1e-2, -1e-2, 0.5, -0.5, 1.0] {
        for x in [0.3, 1.0, 2.0] {
            let mut f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
                if let Some(g) = g {
                    g[0] = (1.0 + off) * 3.0 * x[0] * x[0];
                }
                x[0].powi(3)
            });
            for direction in [1.0, -1.0] {
                let slope = gradient_slope(&mut f, &vec![x], &vec![direction], &Sample::range(0..1));
                assert!(slope < 1.5, "error {off} at {x}: slope {slope}");
            }
        }
    }
    let mut nan = from_fn(1, |_: &Vec<f64>, _: &Sample, _: Option<&mut Vec<f64>>| f64::NAN);
    assert!(gradient_slope(&mut nan, &vec![1.0], &vec![1.0], &Sample::range(0..1)).is_nan());
}

/// Checks that `restore` gives a point on the set, keeps points on the set and agrees with tangent steps to first
/// order, and that the projection onto the tangent space is orthogonal.
fn is_a_manifold<M>(what: &str, mut set: M, seed: u64, shape: &[usize])
where
    M: Manifold,
    M::Point: Dense,
{
    let epsilon = <M::Point as Vector>::EPSILON;
    let bound = 100.0 * epsilon;
    let mut x: M::Point = normal(seed, shape);
    let mut c = set.new_residual();
    set.restore(&mut x).unwrap();
    set.residual(&x, &mut c);
    assert!(c.norm() <= bound * (1.0 + x.norm()), "{what}: ‖c‖ = {} after restore", c.norm());

    let mut again = x.clone();
    set.restore(&mut again).unwrap();
    assert!(distance(&again, &x) <= bound * x.norm(), "{what}: a second restore moves x");

    let v: M::Point = normal(seed + 1, shape);
    let mut p = v.clone();
    set.project_tangent(&x, &mut p).unwrap();
    set.jvp(&x, &p, &mut c);
    assert!(c.norm() <= bound * v.norm() * x.norm(), "{what}: JPv is {}", c.norm());
    let mut twice = p.clone();
    set.project_tangent(&x, &mut twice).unwrap();
    assert!(distance(&twice, &p) <= bound * v.norm(), "{what}: P² ≠ P");
    // Orthogonal: the removed part is orthogonal to every tangent vector.
    let mut other: M::Point = normal(seed + 2, shape);
    set.project_tangent(&x, &mut other).unwrap();
    let mut removed = v.clone();
    removed.add(-1.0, &p);
    assert!(removed.dot(&other).abs() <= bound * v.norm() * other.norm(), "{what}: P is not orthogonal");
    assert!(p.norm() > 0.1 * v.norm(), "{what}: the projection removes nearly everything");

    // ‖restore(x + tp) − (x + tp)‖ = O(t²), above the rounding floor.
    let error = |set: &mut M, t: f64| {
        let mut moved = x.clone();
        moved.add(t, &p);
        let mut y = moved.clone();
        set.restore(&mut y).unwrap();
        distance(&y, &moved)
    };
    let t0 = 0.05 / p.norm();
    let (far, near) = (error(&mut set, t0), error(&mut set, t0 / 4.0));
    assert!(
        near <= far / 12.0 + bound * x.norm(),
        "{what}: the error must decrease from {far} to a sixteenth, found {near}"
    );
}

fn manifolds<T: Real>() {
    for seed in 0..20 {
        let seed = 10 * seed;
        let row = |i: u64| -> Vec<T> { normal(5000 + seed + i, &[9]) };
        is_a_manifold("sphere", Sphere::<Vec<T>>::new(2.0).unwrap(), seed, &[9]);
        is_a_manifold("affine", Affine::new(vec![row(0), row(1)], vec![1.0, -2.0]).unwrap(), seed, &[9]);
        for (d, k) in [(9, 4), (5, 1), (40, 7)] {
            for retraction in [Retraction::Qr, Retraction::Polar] {
                let set = Stiefel::<T>::new(d, k).unwrap().with_retraction(retraction);
                is_a_manifold(&format!("Stiefel {d}×{k}, {retraction:?}"), set, seed, &[d, k]);
            }
            let set = by_newton(GeneralizedStiefel::<T>::new(metric(d, seed), k).unwrap()).unwrap();
            is_a_manifold(&format!("generalized Stiefel {d}×{k}"), set, seed, &[d, k]);
        }
        is_a_manifold("frames", frames::<T>(), seed, &[20]);
        let plane = Affine::new(vec![row(0), row(1)], vec![0.1, -0.2]).unwrap();
        let sphere_and_plane = both(Sphere::new(2.0).unwrap(), plane).unwrap();
        is_a_manifold("sphere and plane", by_newton(sphere_and_plane).unwrap(), seed, &[9]);
    }
}

#[test]
fn projections_are_orthogonal_and_restorations_are_retractions_in_f64() {
    manifolds::<f64>();
}

#[test]
fn projections_are_orthogonal_and_restorations_are_retractions_in_f32() {
    manifolds::<f32>();
}

#[test]
fn restoring_an_ill_conditioned_matrix_gives_a_point_on_the_manifold() {
    for retraction in [Retraction::Qr, Retraction::Polar] {
        let mut set = Stiefel::<f64>::new(20, 3).unwrap().with_retraction(retraction);
        let mut x: Mat<f64> = normal(3, &[20, 3]);
        for (j, scale) in [1.0, 1e-6, 1e-11].into_iter().enumerate() {
            x.col_as_slice_mut(j).iter_mut().for_each(|v| *v *= scale);
        }
        set.restore(&mut x).unwrap();
        let mut c = set.new_residual();
        set.residual(&x, &mut c);
        assert!(c.norm() < 1e-14, "{retraction:?}: {}", c.norm());
    }
}

#[test]
fn the_polar_retraction_is_the_nearest_point_and_qr_keeps_the_span() {
    let x: Mat<f64> = normal(3, &[12, 3]);
    let restored = |retraction| {
        let mut y = x.clone();
        Stiefel::new(12, 3).unwrap().with_retraction(retraction).restore(&mut y).unwrap();
        y
    };
    let (qr, polar) = (restored(Retraction::Qr), restored(Retraction::Polar));
    assert!(distance(&polar, &x) < distance(&qr, &x));
    let svd = x.thin_svd().unwrap();
    assert!(distance(&polar, &(svd.U() * svd.V().transpose())) < 1e-13);
    // QᵀX is R: upper triangular with a positive diagonal.
    let r = qr.transpose() * &x;
    for j in 0..3 {
        assert!(r[(j, j)] > 0.0);
        (j + 1..3).for_each(|i| assert!(r[(i, j)].abs() < 1e-13));
    }
}

#[test]
fn retracting_a_rank_deficient_or_non_finite_matrix_is_an_error() {
    fn check<T: Real>() {
        for retraction in [Retraction::Qr, Retraction::Polar] {
            for seed in 0..20 {
                let mut set = Stiefel::<T>::new(30, 3).unwrap().with_retraction(retraction);
                let why = |x: &Mat<T>, set: &mut Stiefel<T>| {
                    let before = x.clone();
                    let mut x = x.clone();
                    let text = set.restore(&mut x).expect_err("the matrix cannot be retracted").to_string();
                    if before.norm().is_finite() {
                        assert_eq!(bits(&x), bits(&before), "x must not change");
                    }
                    text
                };
                // The last column is a combination of the others.
                let mut x: Mat<T> = normal(seed, &[30, 3]);
                for i in 0..30 {
                    x[(i, 2)] = x[(i, 0)] * T::from_f64(0.3) + x[(i, 1)] * T::from_f64(0.7);
                }
                let deficient = "Stiefel manifold: the matrix to retract is rank deficient: the step was too long, use a smaller one";
                assert_eq!(why(&x, &mut set), deficient);
                assert_eq!(why(&Mat::zeros(30, 3), &mut set), deficient);
                for bad in [f64::NAN, f64::INFINITY] {
                    let mut x: Mat<T> = normal(seed, &[30, 3]);
                    x[(seed as usize, 1)] = T::from_f64(bad);
                    let not_finite = deficient.replace("rank deficient", "not finite");
                    assert_eq!(why(&x, &mut set), not_finite);
                }
            }
        }
    }
    check::<f64>();
    check::<f32>();

    let mut sphere = Sphere::<Vec<f64>>::new(1.0).unwrap();
    assert_eq!(
        sphere.restore(&mut vec![0.0, 0.0]).unwrap_err().to_string(),
        "sphere: a point of norm 0 has no nearest point on the sphere: use a smaller step"
    );
    assert!(sphere.restore(&mut vec![f64::NAN]).is_err() && sphere.restore(&mut vec![f64::INFINITY]).is_err());
}

#[test]
fn an_affine_set_with_dependent_rows_is_an_error() {
    fn check<T: Real>() {
        for seed in 0..20 {
            let (a, b): (Vec<T>, Vec<T>) = (normal(seed, &[9]), normal(seed + 50, &[9]));
            let mut sum = a.zeros_like();
            sum.add(0.3, &a);
            sum.add(0.7, &b);
            let error = Affine::new(vec![a.clone(), b.clone(), sum], vec![0.0; 3]).map(drop).unwrap_err();
            assert_eq!(
                error.to_string(),
                "affine set: the rows of A are linearly dependent or not finite: remove the redundant ones"
            );
            assert!(Affine::new(vec![a.zeros_like()], vec![1.0]).is_err(), "a zero row");
            let mut nan = b.clone();
            nan[3] = T::from_f64(f64::NAN);
            assert!(Affine::new(vec![a.clone(), nan], vec![0.0; 2]).is_err());
            // Independent rows may be far from orthogonal.
            let mut near = a.clone();
            near.add(1e-3, &b);
            assert!(Affine::new(vec![a, near], vec![0.0; 2]).is_ok());
        }
    }
    check::<f64>();
    check::<f32>();
}

#[test]
fn wrong_shapes_and_sizes_are_errors() {
    let text = |r: Result<(), Error>| r.unwrap_err().to_string();
    let affine = |rows: Vec<Vec<f64>>, right| Affine::new(rows, right);
    assert_eq!(
        text(affine(vec![vec![1.0]], vec![1.0, 2.0]).map(drop)),
        "affine constraint, right-hand side: expected shape [1], found [2]"
    );
    assert_eq!(
        text(affine(vec![vec![1.0], vec![1.0, 0.0]], vec![1.0, 2.0]).map(drop)),
        "affine constraint, rows: expected shape [1], found [2]"
    );
    assert_eq!(
        text(affine(vec![vec![1.0]], vec![1.0]).unwrap().check_point(&vec![1.0, 2.0])),
        "affine constraint, point: expected shape [1], found [2]"
    );
    assert!(affine(vec![], vec![]).is_err());
    assert_eq!(text(Stiefel::<f64>::new(2, 3).map(drop)), "Stiefel manifold: `k` is 3, but must be in [1, 2]");
    assert_eq!(text(Stiefel::<f64>::new(2, 0).map(drop)), "Stiefel manifold: `k` is 0, but must be in [1, 2]");
    assert_eq!(
        text(Stiefel::<f64>::new(3, 2).unwrap().check_point(&Mat::zeros(2, 3))),
        "Stiefel manifold: expected shape [3, 2], found [2, 3]"
    );
    assert_eq!(text(Sphere::<Vec<f64>>::new(0.0).map(drop)), "sphere: `radius` is 0, but must be > 0");
}

#[test]
fn the_rounding_error_of_a_constraint_scales_with_its_terms() {
    // The same set in other units has the same relative error: there is no absolute bound.
    let rounding = |scale: f64| {
        let set = Affine::new(vec![vec![1.0, 2.0]], vec![3.0 * scale]).unwrap();
        set.rounding(&vec![scale, scale], 0.0) / scale
    };
    assert!(rounding(1.0) > 0.0);
    for power in [-40, -3, 40] {
        assert!((rounding(2.0_f64.powi(power)) / rounding(1.0) - 1.0).abs() < 1e-15);
    }
    // In a homogeneous set terms cancel, although b = 0.
    let mut set = Affine::new(vec![vec![1.0, -1.0]], vec![0.0]).unwrap();
    let mut c = set.new_residual();
    let x = vec![1e6, 1e6];
    set.residual(&x, &mut c);
    assert!(set.rounding(&x, c.norm()) > 1e6 * f64::EPSILON);
}

#[test]
fn newton_steps_on_the_stiefel_manifold_end_at_the_nearest_point() {
    for seed in 0..20 {
        let start: Mat<f64> = normal(seed, &[12, 3]);
        let (mut newton, mut polar) = (start.clone(), start);
        by_newton(Stiefel::new(12, 3).unwrap()).unwrap().restore(&mut newton).unwrap();
        Stiefel::new(12, 3).unwrap().with_retraction(Retraction::Polar).restore(&mut polar).unwrap();
        assert!(distance(&newton, &polar) < 1e-12, "seed {seed}: {}", distance(&newton, &polar));
    }
}

#[test]
fn newton_steps_refuse_inequalities_and_bounds_and_report_a_set_they_cannot_reach() {
    let text = |error: Error| error.to_string();
    assert_eq!(
        text(by_newton(at_most(Sphere::<Vec<f64>>::new(1.0).unwrap())).map(drop).unwrap_err()),
        "manifold by Newton steps: `constraint` is row 0 ≤ 0, but must be = 0; for ≤ use StrSqp"
    );
    assert!(text(by_newton(Bounds::nonnegative(&vec![0.0])).map(drop).unwrap_err()).contains("bounds of x"));
    // x² + 1 = 0
    let never = constraint_from_fn(
        1,
        |x, c| c[0] = x[0] * x[0] + 1.0,
        |x, v, out| out[0] = 2.0 * x[0] * v[0],
        |x, y, out| out[0] += 2.0 * x[0] * y[0],
    );
    let mut never = by_newton(never).unwrap();
    for (start, why) in [(0.3, "did not converge"), (0.0, "no direction reduces"), (f64::NAN, "not finite")] {
        let error = never.restore(&mut vec![start]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Breakdown);
        assert!(text(error.clone()).contains(why), "{error}");
    }
}

#[test]
fn a_metric_that_is_not_symmetric_positive_definite_and_frames_that_overlap_are_errors() {
    let metric = |a: [f64; 4], k| GeneralizedStiefel::new(Mat::from_fn(2, 2, |i, j| a[2 * i + j]), k).map(drop);
    let text = |result: Result<(), Error>| result.unwrap_err().to_string();
    assert!(metric([2.0, 1.0, 1.0, 2.0], 2).is_ok());
    assert!(text(metric([2.0, 1.0, 0.0, 2.0], 2)).contains("not symmetric at (0, 1)"));
    assert!(text(metric([1.0, 2.0, 2.0, 1.0], 2)).contains("not positive definite"));
    assert!(text(metric([1.0, 0.0, 0.0, 1.0], 3)).contains("`k` is 3, but must be in [1, 2]"));
    let frames = |starts: &[usize]| {
        let frames: Vec<Frame> = starts.iter().map(|&start| Frame { start, rows: 2, columns: 2 }).collect();
        Frames::<f64>::new(8, &frames).map(drop)
    };
    assert!(frames(&[4, 0]).is_ok());
    for bad in [&[0, 3][..], &[5], &[]] {
        assert!(text(frames(bad)).contains("frames: `matri"), "{bad:?}");
    }
}

#[test]
fn the_nearest_shares_of_a_point_far_away_add_up() {
    for far in [1e3, 1e12, 1e20, 1e300] {
        let mut x = vec![far, -far, far, 0.3 * far];
        Simplex::new(&x, 1.0).unwrap().restore(&mut x).unwrap();
        assert_eq!(x, [0.5, 0.0, 0.5, 0.0], "{far}");
    }
}
