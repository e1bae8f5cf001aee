//! Problems of any scale, and what a run with the default stopping rule says about its end.

use crate::common::{LeastSquares, bits, normals};
use strust::{
    methods::{Method, StrLbfgs, StrNewton},
    objective::Scaled,
    prelude::*,
    vector::Vector,
};
use strust_baselines::{Adam, Sgd, SgdConfig};

/// Scales of f and of x.
const SCALES: [(f64, f64); 7] =
    [(1.0, 1.0), (1e-8, 1.0), (1e8, 1.0), (1.0, 1e-8), (1.0, 1e8), (1e-8, 1e8), (1e8, 1e-8)];

/// f·(1 + ½Σ κᵢ(xᵢ/x − 3)²): the minimum is at 3x.
fn bowl(f: f64, x: f64) -> impl Objective<Point = Vec<f64>> {
    from_terms(1, move |_, at: &Vec<f64>, g: &mut Vec<f64>| {
        let mut value = 1.0;
        for (i, curvature) in [1.0, 0.3, 0.1].into_iter().enumerate() {
            let r = at[i] / x - 3.0;
            value += 0.5 * curvature * r * r;
            g[i] += f * curvature * r / x;
        }
        f * value
    })
}

fn is_solved<M: Method<F>, F: Objective<Point = Vec<f64>>>(f: &mut F, method: M, start: Vec<f64>, x: f64, what: &str) {
    let report = minimize(f).method(method).full_batch().measure_every(10).start(start).unwrap();
    assert!(report.reason.converged(), "{what}: {} {:?}", report.reason, report.last);
    assert!(report.point().iter().all(|at| (at / x - 3.0).abs() < 1e-3), "{what}: {:?}", report.point());
}

#[test]
fn a_run_at_a_minimum_has_converged_at_any_scale_of_f_and_x() {
    for (f, x) in SCALES {
        for start in [vec![0.0; 3], vec![10.0 * x; 3]] {
            let what = |method: &str| format!("{method} at {f:e}, {x:e}");
            is_solved(&mut bowl(f, x), Auto::default(), start.clone(), x, &what("Auto"));
            is_solved(&mut bowl(f, x), StrNewton::default(), start.clone(), x, &what("Newton"));
        }
        // A start at the minimum, up to rounding.
        is_solved(&mut bowl(f, x), StrNewton::default(), vec![3.0 * x; 3], x, "at the minimum");
    }
}

#[test]
fn a_run_that_the_budget_ends_at_a_minimum_has_converged_by_default() {
    // The relative decrease of x⁴ never ends.
    let mut f = from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
        g[0] += x[0].powi(3);
        0.25 * x[0].powi(4)
    });
    let report = minimize(&mut f).method(Str::default()).full_batch().start(vec![0.9]).unwrap();
    assert_eq!((report.reason, report.steps), (StopReason::GradientNorm, 1000), "{:?}", report.last);
    // A budget of the user's own stays one.
    let report =
        minimize(&mut f).method(Str::default()).full_batch().stop(Stop::epochs(1000)).start(vec![0.9]).unwrap();
    assert_eq!(report.reason, StopReason::Epochs);
}

#[test]
fn a_run_that_a_kink_stops_away_from_the_minimum_has_not_converged() {
    for (f, x) in SCALES {
        // The minimum is at (0, x), but steps along the gradient stop where x₀ = 0.
        let mut kink = from_terms(1, move |_, at: &Vec<f64>, g: &mut Vec<f64>| {
            let (a, b) = (at[0] / x, at[1] / x - 1.0);
            g[0] += f * 10.0 * a.signum() / x;
            g[1] += f * b / x;
            f * (10.0 * a.abs() + 0.5 * b * b)
        });
        for method in 0..2 {
            let run = minimize(&mut kink).full_batch();
            let (point, reason) = if method == 0 {
                let report = run.method(Str::default()).start(vec![x, -3.0 * x]).unwrap();
                (report.point().clone(), report.reason)
            } else {
                let report = run.method(StrNewton::default()).start(vec![x, -3.0 * x]).unwrap();
                (report.point().clone(), report.reason)
            };
            let away = (point[1] / x - 1.0).abs() > 0.1;
            assert!(!away || !reason.converged(), "at {f:e}, {x:e}: {reason} at {point:?}");
        }
    }
}

/// A number in [−1, 1] that looks random, from the bits of another.
fn noise(x: f64, salt: u64) -> f64 {
    let mut bits = x.to_bits() ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for _ in 0..3 {
        bits = (bits ^ (bits >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    (bits >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

#[test]
fn a_run_that_noise_stops_has_not_converged() {
    for (f, x) in SCALES {
        let mut noisy = from_terms(1, move |_, at: &Vec<f64>, g: &mut Vec<f64>| {
            let r = at[0] / x - 3.0;
            g[0] += f * (r + 1e-2 * noise(at[0], 1)) / x;
            f * (1.0 + 0.5 * r * r + 1e-3 * noise(at[0], 2))
        });
        let report = minimize(&mut noisy).full_batch().start(vec![0.0]).unwrap();
        assert!(!report.reason.converged(), "at {f:e}, {x:e}: {:?}", report.last);
        let report = minimize(&mut noisy).method(Str::default()).full_batch().start(vec![0.0]).unwrap();
        assert!(!report.reason.converged(), "at {f:e}, {x:e}: {:?}", report.last);
    }
    // Mini-batches that cannot all be fitted, with steps of a fixed length.
    let mut f = LeastSquares::<f64>::interpolating(1, 12, &normals(1, 5));
    f.right.iter_mut().zip(normals(2, 12)).for_each(|(b, error)| *b += error);
    let method = Sgd::new(SgdConfig { learning_rate: 0.5, ..Default::default() }).unwrap();
    let report = minimize(&mut f).method(method).batch(3).start(vec![0.0; 5]).unwrap();
    assert!(!report.reason.converged(), "{:?}", report.last);
}

#[test]
fn newton_steps_are_the_same_at_any_scale_of_the_loss() {
    let run = |exponent: i32| {
        let f = LeastSquares::<f64>::interpolating(1, 12, &normals(1, 5));
        let mut f = Scaled::new(f, 2.0_f64.powi(exponent));
        let report = minimize(&mut f).method(StrNewton::default()).batch(4).stop(Stop::steps(12)).start(vec![9.0; 5]);
        let report = report.unwrap();
        assert_eq!(report.breakdown, None, "2^{exponent}");
        bits(report.point())
    };
    let plain = run(0);
    // 2^498 is about 1e150.
    for exponent in [-470, -300, 300, 498] {
        assert_eq!(run(exponent), plain, "2^{exponent}");
    }
}

#[test]
fn a_loss_whose_squared_gradient_is_no_number_is_an_error_that_says_so() {
    fn breakdown<M: Method<Scaled<LeastSquares<f64>>>>(method: M, exponent: i32) -> String {
        let f = LeastSquares::<f64>::interpolating(1, 12, &normals(1, 5));
        let mut f = Scaled::new(f, 2.0_f64.powi(exponent));
        let report = minimize(&mut f).method(method).batch(4).stop(Stop::steps(12)).start(vec![9.0; 5]).unwrap();
        assert_eq!(report.point(), &vec![9.0; 5]);
        report.breakdown.expect("the run must break down").to_string()
    }
    for (exponent, why) in [(560, "overflows"), (-600, "underflows to 0")] {
        let errors = [
            breakdown(Auto::default(), exponent),
            breakdown(Str::default(), exponent),
            breakdown(StrNewton::default(), exponent),
            breakdown(StrLbfgs::default(), exponent),
            breakdown(Sgd::default(), exponent),
            breakdown(Adam::default(), exponent),
        ];
        for error in errors {
            assert!(error.starts_with("step 0: the gradient norm is ") && error.contains(why), "{error}");
            assert!(error.contains("multiply the objective"), "{error}");
        }
    }
}

#[test]
fn norms_are_right_where_their_squares_are_no_numbers() {
    for scale in [1e-320, 1e-300, 1e-170, 1e-150, 1.0, 1e150, 1e170, 1e300] {
        let norm = vec![3.0 * scale, 4.0 * scale].norm();
        assert!((norm / (5.0 * scale) - 1.0).abs() < 1e-3_f64.min(1e-320 / scale + 1e-15), "{scale:e}: {norm:e}");
    }
    assert_eq!((vec![0.0_f64; 3].norm(), vec![0.0_f32; 3].norm()), (0.0, 0.0));
    assert!(vec![f64::INFINITY, 1.0].norm().is_infinite());
    assert!(vec![f64::NAN, 1e300].norm().is_nan());
    assert_eq!(vec![3e30_f32, 0.0].norm().to_bits(), f64::from(3e30_f32).to_bits());
}
