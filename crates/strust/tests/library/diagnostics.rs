//! The instruments are compared with closed forms, and the coverage of their intervals is checked over many seeds.

use crate::common::{LeastSquares, Targets, normal, normals};
use faer::Mat;
use strust::{
    constraints::{Affine, Manifold, Sphere, Stiefel},
    diagnostics::{
        Consecutive, Curvature, Evidence, Interpolation, Iterations, Pair, Pairs, SplitBatch, StrongGrowth, bounds,
        jacobian, kkt_report, lipschitz, probe, strong_growth, strong_growth_of_lagrangian,
    },
    kkt::least_squares_multipliers,
    models::Exit,
    objective::{Penalized, full_value_and_gradient},
    prelude::*,
    radius::{Change, RegionConfig, Verdict},
    record::{RegionRecord, StepRecord},
    sample::Draws,
    samplers::Sampler,
};

fn interpolating(seed: u64, n: usize, d: usize) -> LeastSquares<f64> {
    LeastSquares::interpolating(seed, n, &normals(seed, d))
}

fn noisy(seed: u64, n: usize, d: usize, noise: f64) -> LeastSquares<f64> {
    let mut f = interpolating(seed, n, d);
    f.right.iter_mut().zip(normals(seed + 1, n)).for_each(|(b, e)| *b += noise * e);
    f
}

fn residuals(f: &LeastSquares<f64>, x: &Vec<f64>) -> Vec<f64> {
    f.rows.iter().zip(&f.right).map(|(row, b)| row.dot(x) - b).collect()
}

fn drawn(sampler: &mut dyn Sampler, k: u64) -> Sample {
    let mut sample = Sample::default();
    sampler.draw(k, &mut sample);
    sample
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * (a.abs() + b.abs()), "{a} and {b} differ");
}

#[test]
fn strong_growth_of_least_squares_agrees_with_its_closed_form() {
    for seed in 0..20 {
        let (n, d) = (30, 7);
        let mut f = noisy(seed, n, d, 0.3);
        let x: Vec<f64> = normal(seed + 100, &[d]);
        // ∇fᵢ = rᵢaᵢ, so E‖∇fᵢ‖² = mean of rᵢ²‖aᵢ‖² and ∇f = Aᵀr/n.
        let r = residuals(&f, &x);
        let square = f.rows.iter().zip(&r).map(|(a, r)| r * r * a.norm_squared()).sum::<f64>() / n as f64;
        let mut gradient = vec![0.0; d];
        full_value_and_gradient(&mut f, &x, &mut gradient);
        let at = strong_growth(&mut f, &x);
        close(at.gradient_squared, gradient.norm_squared(), 1e-13);
        close(at.rho(1, Draws::Independent), square / gradient.norm_squared(), 1e-12);
        close(at.rho(n, Draws::Different), 1.0, 1e-15);
        // All batches of 2 different terms.
        let (mut sum, mut count) = (0.0, 0);
        for i in 0..n {
            for j in 0..i {
                let g: Vec<f64> = (0..d).map(|c| 0.5 * (r[i] * f.rows[i][c] + r[j] * f.rows[j][c])).collect();
                sum += g.norm_squared();
                count += 1;
            }
        }
        close(at.rho(2, Draws::Different), sum / f64::from(count) / gradient.norm_squared(), 1e-12);
    }
}

#[test]
fn tau_is_largest_for_the_least_squares_multipliers() {
    for seed in 0..20 {
        let mut f = noisy(seed, 20, 6, 0.5);
        let mut c =
            Affine::new(vec![normal::<Vec<f64>>(seed + 7, &[6]), normal(seed + 8, &[6])], vec![1.0, 2.0]).unwrap();
        let x: Vec<f64> = normal(seed + 9, &[6]);
        let mut gradient = vec![0.0; 6];
        full_value_and_gradient(&mut f, &x, &mut gradient);
        let best = least_squares_multipliers(&mut c, &x, &gradient);
        let mut tau =
            |lambda: &Vec<f64>| strong_growth_of_lagrangian(&mut f, &mut c, &x, lambda).rho(1, Draws::Independent);
        let largest = tau(&best);
        for other in 0..20 {
            let mut lambda = best.clone();
            lambda.add(0.3, &normal(1000 * seed + other, &[2]));
            assert!(tau(&lambda) <= largest * (1.0 + 1e-12));
        }
    }
}

/// Over 400 seeds at a fixed point: the fraction of intervals that contain the exact ρ, and the bias of the mean
/// estimate of ‖∇f‖² in standard errors.
fn coverage(batch: usize, draws: Draws, consecutive: bool) -> (f64, f64) {
    let (n, d, pairs, seeds) = (60, 8, 150, 400);
    let mut f = noisy(3, n, d, 0.2);
    let x: Vec<f64> = normal(4, &[d]);
    let at = strong_growth(&mut f, &x);
    let exact = at.rho(batch, draws);
    let (mut hits, mut estimates) = (0, Vec::new());
    for seed in 0..seeds {
        let mut sampler: Box<dyn Sampler> = match draws {
            Draws::Independent => Box::new(WithReplacement::new(n, batch, seed).unwrap()),
            Draws::Different => Box::new(Epochs::new(n, batch, seed).unwrap()),
        };
        let mut gradient = vec![0.0; d];
        let estimate = if consecutive {
            let mut watched = Consecutive::new(&mut f, draws).without_window();
            for k in 0..2 * pairs {
                watched.value_and_gradient(&x, &drawn(&mut *sampler, k), &mut gradient);
            }
            *watched.pairs()
        } else {
            let mut watched = SplitBatch::new(&mut f, draws).without_window();
            for k in 0..pairs {
                watched.value_and_gradient(&x, &drawn(&mut *sampler, k), &mut gradient);
            }
            *watched.pairs()
        };
        assert_eq!(estimate.count(), pairs);
        hits += u32::from(estimate.rho_interval(batch).contains(exact));
        estimates.push(estimate.gradient_squared());
    }
    let mean = estimates.iter().sum::<f64>() / seeds as f64;
    let variance = estimates.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (seeds as f64 - 1.0);
    (f64::from(hits) / seeds as f64, (mean - at.gradient_squared) / (variance / seeds as f64).sqrt())
}

#[test]
fn intervals_of_rho_have_their_nominal_coverage_over_400_seeds() {
    // The nominal coverage is 95 %. With 400 seeds its standard error is 1.1 %, and gradients are not normal.
    for (batch, draws, consecutive) in [
        (4, Draws::Independent, false),
        (15, Draws::Independent, false),
        (4, Draws::Independent, true),
        (4, Draws::Different, false),
        (15, Draws::Different, false),
    ] {
        let (covered, bias) = coverage(batch, draws, consecutive);
        assert!(covered >= 0.915, "batch {batch}, {draws:?}: {covered}");
        assert!(bias.abs() < 4.0, "batch {batch}, {draws:?}: the bias of ‖∇f‖² is {bias} standard errors");
    }
}

#[test]
fn a_split_batch_gives_the_same_objective_up_to_rounding() {
    let mut f = interpolating(1, 50, 9);
    let mut split = SplitBatch::new(f.clone(), Draws::Different);
    let x: Vec<f64> = normal(2, &[9]);
    for size in [1, 2, 7, 50] {
        let sample = Sample::new((0..size).collect(), 3);
        let (mut a, mut b) = (vec![0.0; 9], vec![0.0; 9]);
        let (u, v) = (f.value_and_gradient(&x, &sample, &mut a), split.value_and_gradient(&x, &sample, &mut b));
        close(u.value, v.value, 1e-14);
        a.add(-1.0, &b);
        assert!(a.norm() <= 1e-14 * b.norm());
    }
    assert_eq!(split.pairs().count(), 3, "a single term cannot be split");
    split.value_and_gradient(&x, &Sample::range(0..50), &mut x.zeros_like());
    assert_eq!(split.pairs().count(), 3, "a measurement must not add a pair");
}

#[test]
fn over_a_penalized_objective_the_pairs_estimate_tau() {
    let (n, d, mu) = (60, 8, 5.0);
    let mut f = noisy(5, n, d, 0.2);
    let x: Vec<f64> = normal(6, &[d]);
    let mut sphere = Sphere::new(1.0).unwrap();
    let lambda = vec![mu * (x.norm_squared() - 1.0)];
    let exact = strong_growth_of_lagrangian(&mut f, &mut sphere, &x, &lambda).rho(6, Draws::Independent);
    let mut hits = 0;
    for seed in 0..200 {
        let mut phi = SplitBatch::new(Penalized::new(&mut f, &mut sphere, mu), Draws::Independent).without_window();
        let (mut sampler, mut g) = (WithReplacement::new(n, 6, seed).unwrap(), vec![0.0; d]);
        for k in 0..100 {
            phi.value_and_gradient(&x, &drawn(&mut sampler, k), &mut g);
        }
        hits += u32::from(phi.pairs().rho_interval(6).contains(exact));
    }
    assert!(hits >= 180, "{hits} of 200");
}

/// The verdict of a run of STR with split batches.
fn watched(f: &mut LeastSquares<f64>, seed: u64, steps: u64) -> (Interpolation, String) {
    let (n, d) = (f.terms(), f.rows[0].len());
    let mut split = SplitBatch::new(f, Draws::Different).with_window(50);
    let mut method = Str::new(StrConfig::default()).unwrap();
    let start: Vec<f64> = normal(seed + 50, &[d]);
    let _ = minimize(&mut split)
        .method(&mut method)
        .sampler(Epochs::new(n, 10, seed).unwrap())
        .stop(Stop::steps(steps))
        .start(start)
        .unwrap();
    split.verdict()
}

#[test]
fn verdicts_distinguish_interpolation_from_noise_on_twenty_seeds_each() {
    for seed in 0..20 {
        let mut exact = interpolating(seed, 100, 10);
        let (verdict, why) = watched(&mut exact, seed, 2000);
        assert_eq!(verdict, Interpolation::Holds, "seed {seed}: {why}");
        let x: Vec<f64> = normal(seed + 50, &[10]);
        assert_eq!(probe(&mut exact, &x, 500).verdict, Interpolation::Holds, "seed {seed}");

        let mut noise = noisy(seed, 100, 10, 0.5);
        let (verdict, why) = watched(&mut noise, seed, 2000);
        assert_ne!(verdict, Interpolation::Holds, "seed {seed}: {why}");
        let found = probe(&mut noise, &x, 500);
        assert_eq!(found.verdict, Interpolation::Violated, "seed {seed}: {}", found.why);
        // With more unknowns than equations the noise can be fitted, and interpolation holds again.
        let mut fitted = noisy(seed, 20, 60, 0.5);
        assert_eq!(probe(&mut fitted, &normal(seed, &[60]), 500).verdict, Interpolation::Holds, "seed {seed}");
    }
}

#[test]
fn the_verdict_of_consecutive_steps_is_never_violated() {
    for seed in 0..20 {
        let mut f = noisy(seed, 100, 10, 0.5);
        let mut pairs = Consecutive::new(&mut f, Draws::Different).with_window(50);
        let mut method = Str::new(StrConfig::default()).unwrap();
        let start: Vec<f64> = normal(seed + 50, &[10]);
        let _ = minimize(&mut pairs)
            .method(&mut method)
            .sampler(Epochs::new(100, 10, seed).unwrap())
            .stop(Stop::steps(2000))
            .start(start)
            .unwrap();
        assert_eq!(pairs.verdict().0, Interpolation::Doubtful, "seed {seed}: {}", pairs.verdict().1);
    }
}

#[test]
fn the_curvature_of_one_equation_is_the_square_of_its_norm() {
    let mut f = interpolating(2, 40, 6);
    let rows = f.rows.clone();
    let largest = rows.iter().map(Vector::norm_squared).fold(0.0, f64::max);
    let mut sampler = Epochs::new(40, 1, 0).unwrap();
    let mut method =
        Str::new(StrConfig { region: RegionConfig { initial_radius: 0.1, ..Default::default() } }).unwrap();
    let mut state = method.init(&mut f, normal(3, &[6])).unwrap();
    let mut curvature = Curvature::default();
    for k in 0..200 {
        let sample = drawn(&mut sampler, k);
        let record = method.step(&mut f, &mut state, &sample).unwrap();
        let exact = rows[sample.indices()[0]].norm_squared();
        if let Some(kappa) = curvature.add(&record) {
            // κ comes from a difference of numbers of the size of f.
            let rounding = 20.0 * f64::EPSILON * record.value / record.step_length.powi(2);
            assert!((kappa - exact).abs() <= 1e-9 * exact + rounding, "step {k}: found {kappa}, expected {exact}");
        }
    }
    assert!(curvature.seen > 100 && curvature.negative == 0);
    close(curvature.largest, largest, 1e-6);
}

#[test]
fn the_power_method_finds_the_largest_eigenvalue_of_a_batch() {
    for seed in 0..10 {
        let mut f = interpolating(seed, 30, 8);
        let sample = Sample::range(0..12);
        let square = Mat::from_fn(8, 8, |i, j| f.rows[..12].iter().map(|a| a[i] * a[j]).sum::<f64>() / 12.0);
        let exact = square.self_adjoint_eigenvalues(faer::Side::Lower).unwrap()[7];
        let found = lipschitz(&mut f, &normal(seed, &[8]), &sample, 200);
        close(found, exact, 1e-4);
    }
}

#[test]
fn singular_values_of_jacobians_agree_with_closed_forms() {
    // Affine: J = A.
    let rows: Vec<Vec<f64>> = (0..4).map(|i| normal(i, &[9])).collect();
    let a = Mat::from_fn(4, 9, |i, j| rows[i][j]);
    let sigma = a.singular_values().unwrap();
    let mut affine = Affine::new(rows, vec![0.0; 4]).unwrap();
    let found = jacobian(&mut affine, &normal(9, &[9])).unwrap();
    close(found.smallest, sigma[3], 1e-10);
    close(found.largest, sigma[0], 1e-12);
    assert!(found.licq && found.rows == 4);
    // Stiefel: at sW with orthonormal W, JJᵀ is 4s² on the symmetric matrices and 0 on the others.
    let mut stiefel = Stiefel::new(12, 4).unwrap();
    let mut w: Mat<f64> = normal(1, &[12, 4]);
    stiefel.restore(&mut w).unwrap();
    let found = jacobian(&mut stiefel, &(1.5 * &w)).unwrap();
    close(found.smallest, 3.0, 1e-12);
    close(found.largest, 3.0, 1e-12);
    assert!(found.licq && found.rows == 10);
    let mut single = Stiefel::<f32>::new(12, 4).unwrap();
    let w = Mat::from_fn(12, 4, |i, j| w[(i, j)] as f32);
    close(jacobian(&mut single, &w).unwrap().smallest, 2.0, 1e-5);
    // (‖x‖² − 1)²: J = 0 wherever the constraint is satisfied.
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut squared = constraint_from_fn(
        1,
        |x, c| c[0] = (dot(x, x) - 1.0).powi(2),
        |x, v, out| out[0] = 4.0 * (dot(x, x) - 1.0) * dot(x, v),
        |x, y, out| out.iter_mut().zip(x).for_each(|(out, xi)| *out += 4.0 * (dot(x, x) - 1.0) * y[0] * xi),
    );
    assert!(!jacobian(&mut squared, &vec![1.0, 0.0]).unwrap().licq);
    assert!(jacobian(&mut squared, &vec![1.1, 0.0]).unwrap().licq);
    // Two equal equations.
    let mut twice = constraint_from_fn(
        2,
        |x, c| (c[0], c[1]) = (x[0] - 1.0, 2.0 * x[0] - 2.0),
        |_, v, out| (out[0], out[1]) = (v[0], 2.0 * v[0]),
        |_, y, out| out[0] += y[0] + 2.0 * y[1],
    );
    assert!(!jacobian(&mut twice, &vec![1.0, 5.0]).unwrap().licq);
}

#[test]
fn least_squares_multipliers_solve_the_normal_equations() {
    for seed in 0..20 {
        let rows: Vec<Vec<f64>> = (0..3).map(|i| normal(10 * seed + i, &[8])).collect();
        let mut affine = Affine::new(rows.clone(), vec![0.0; 3]).unwrap();
        let gradient: Vec<f64> = normal(seed + 500, &[8]);
        let lambda = least_squares_multipliers(&mut affine, &vec![0.0; 8], &gradient);
        let mut left = gradient;
        rows.iter().zip(&lambda).for_each(|(row, l)| left.add(*l, row));
        assert!(rows.iter().all(|row| row.dot(&left).abs() < 1e-11), "the residual must be orthogonal to every row");
    }
}

#[test]
fn the_constraint_violation_is_within_its_bound() {
    for seed in 0..50 {
        for mu in [0.1, 10.0, 1e3] {
            let mut f = Targets::<Vec<f64>>::random(seed, 5, &[7], 0.3, 2.0);
            let x: Vec<f64> = normal(seed + 77, &[7]);
            let report = kkt_report(&mut f, &mut Sphere::new(1.0).unwrap(), &x, mu).unwrap();
            assert!(report.constraint_norm <= report.feasibility_bound * (1.0 + 1e-12), "{report:?}");
            assert!(report.least_residual <= report.penalty_residual * (1.0 + 1e-12));
            close(report.pull, 2.0 * x.norm(), 1e-12);
            let mut f = Targets::<Mat<f64>>::random(seed, 5, &[7, 3], 0.3, 2.0);
            let x: Mat<f64> = normal(seed + 77, &[7, 3]);
            let report = kkt_report(&mut f, &mut Stiefel::new(7, 3).unwrap(), &x, mu).unwrap();
            assert!(report.constraint_norm <= report.feasibility_bound * (1.0 + 1e-12), "{report:?}");
            assert!(
                report.pull >= report.jacobian.smallest * (1.0 - 1e-9),
                "J has full rank on symmetric matrices, and c is symmetric"
            );
        }
    }
}

/// A trust region over a range of constants and radii.
fn regions() -> impl Iterator<Item = RegionConfig> {
    let all = [(0.05, 0.5), (0.3, 0.9), (0.5, 0.6)].into_iter();
    all.flat_map(|(accept_above, grow_above)| {
        [(2.0, 5.0), (1.3, 1.1), (8.0, 2.0)].into_iter().flat_map(move |(shrink, grow)| {
            [(1e-4, 10.0), (3.0, 3.0), (50.0, 1e3)].into_iter().map(move |(initial_radius, max_radius)| RegionConfig {
                initial_radius,
                max_radius,
                accept_above,
                shrink_below: accept_above,
                grow_above,
                shrink,
                grow,
            })
        })
    })
}

#[test]
fn short_steps_are_accepted_and_rejections_and_radii_are_within_their_bounds() {
    let mut short = 0;
    for (seed, region) in regions().enumerate() {
        let mut f = interpolating(seed as u64, 30, 5);
        // Steep rows, so that steps are rejected.
        f.rows.iter_mut().enumerate().for_each(|(i, row)| row.iter_mut().for_each(|a| *a *= 0.2 + i as f64 / 5.0));
        f.right = normals(seed as u64, 30);
        let lipschitz: Vec<f64> = f.rows.iter().map(Vector::norm_squared).collect();
        let mut method = Str::new(StrConfig { region: region.clone() }).unwrap();
        let mut state = method.init(&mut f, normal(seed as u64, &[5])).unwrap();
        let mut sampler = WithReplacement::new(30, 1, seed as u64).unwrap();
        let mut iterations = Iterations::default();
        for k in 0..1500 {
            let sample = drawn(&mut sampler, k);
            let record = method.step(&mut f, &mut state, &sample).unwrap();
            if record.step_size < bounds::accepted_below(&region, lipschitz[sample.indices()[0]]) * (1.0 - 1e-9) {
                short += 1;
                assert_eq!(record.verdict, Verdict::Accepted, "{region:?}, step {k}");
            }
            iterations.add(&record);
        }
        let steepest = lipschitz.iter().copied().fold(0.0, f64::max);
        assert!(
            iterations.unsuccessful as f64 <= iterations.unsuccessful_bound(&region, steepest),
            "{region:?}: {iterations:?}"
        );
        assert!(iterations.least_radius >= iterations.radius_bound(&region, steepest), "{region:?}: {iterations:?}");
        let row = bounds::rejections_in_a_row(&region, steepest, iterations.least_gradient);
        assert!(iterations.longest_rejection as f64 <= row, "{region:?}: {iterations:?}");
        assert!(iterations.unsuccessful > 0, "{region:?}: there must be rejections");
    }
    assert!(short > 1000, "{short} steps were short");
}

#[test]
fn the_model_error_is_within_its_bound() {
    let mut f = interpolating(4, 30, 5);
    // Flat terms with L below 1. There the paper's M = L is too small, but (1 + L)/2 is not.
    f.rows.iter_mut().for_each(|row| row.iter_mut().for_each(|a| *a *= 0.2));
    let steepest = f.rows.iter().map(Vector::norm_squared).fold(0.0, f64::max);
    assert!(steepest < 1.0);
    let mut method = Str::new(StrConfig::default()).unwrap();
    let mut state = method.init(&mut f, normal(1, &[5])).unwrap();
    let mut sampler = WithReplacement::new(30, 1, 0).unwrap();
    let mut as_stated = 0;
    for k in 0..200 {
        let record = method.step(&mut f, &mut state, &drawn(&mut sampler, k)).unwrap();
        let region = record.region.unwrap();
        let error = (record.value - region.predicted - region.trial.unwrap()).abs();
        let square = record.step_length.powi(2);
        assert!(error <= bounds::model_error(steepest) * square * (1.0 + 1e-9) + 1e-15);
        as_stated += u32::from(error > steepest * square);
    }
    assert!(as_stated > 0, "the paper's constant must fail here");
}

#[test]
fn a_penalized_step_on_a_quadratic_is_accepted_exactly_below_the_threshold() {
    // With an affine constraint φᵢ is a quadratic, so the curvature κ along g determines the trial.
    let (mut seen, region) = ([0, 0], RegionConfig { initial_radius: 0.5, ..RegionConfig::constrained() });
    for seed in 0..20 {
        let mut f = interpolating(seed, 20, 6);
        // Steeper than the model I + μJᵀJ.
        f.rows.iter_mut().for_each(|row| row.iter_mut().for_each(|a| *a *= 5.0));
        let affine = Affine::new(vec![normal::<Vec<f64>>(seed + 7, &[6])], vec![1.0]).unwrap();
        let penalty = 0.3;
        let mut method = StrP::new(StrPConfig { penalty, region: region.clone() }, affine.clone()).unwrap();
        let mut state = method.init(&mut f, normal(seed + 40, &[6])).unwrap();
        let (mut sampler, mut curvature) = (WithReplacement::new(20, 2, seed).unwrap(), Curvature::default());
        for k in 0..60 {
            let (sample, x) = (drawn(&mut sampler, k), state.point().clone());
            let record = method.step(&mut f, &mut state, &sample).unwrap();
            if record.gradient_norm < 1e-5 {
                break;
            }
            let mut phi = Penalized::new(&mut f, affine.clone(), penalty);
            let mut g = x.zeros_like();
            phi.value_and_gradient(&x, &sample, &mut g);
            let h = 1.0 + phi.penalty_curvature(&x, &g) / g.norm_squared();
            let kappa = curvature.add(&record).expect("the curvature is far above the rounding error");
            let threshold = bounds::accepted_below_with(&region, kappa, h);
            if (record.step_size / threshold - 1.0).abs() > 1e-6 {
                assert_eq!(record.verdict == Verdict::Accepted, record.step_size < threshold, "seed {seed}, step {k}");
                seen[usize::from(record.verdict == Verdict::Accepted)] += 1;
            }
        }
    }
    assert!(seen[0] > 10 && seen[1] > 100, "{seen:?}");
}

/// As in a run: with the default window. A verdict depends on both intervals.
#[test]
fn intervals_with_a_window_cover_the_exact_values_in_nine_of_ten_seeds() {
    let (n, d, seeds) = (60, 8, 400);
    let mut f = noisy(3, n, d, 0.2);
    let x: Vec<f64> = normal(4, &[d]);
    let at = strong_growth(&mut f, &x);
    for batch in [2, 4, 20] {
        let (mut gradients, mut rhos) = (0, 0);
        for seed in 0..seeds {
            let (mut sampler, mut gradient) = (WithReplacement::new(n, batch, seed).unwrap(), vec![0.0; d]);
            let mut split = SplitBatch::new(&mut f, Draws::Independent);
            for k in 0..600 {
                split.value_and_gradient(&x, &drawn(&mut sampler, k), &mut gradient);
            }
            gradients += u32::from(split.pairs().gradient_interval().contains(at.gradient_squared));
            rhos += u32::from(split.pairs().rho_interval(batch).contains(at.rho(batch, Draws::Independent)));
        }
        assert!(gradients >= 366 && rhos >= 366, "batch {batch}: {gradients} and {rhos} of {seeds}");
    }
}

/// On exact data, only random errors could give the verdict *violated*. They must not, at any step of a run.
#[test]
fn on_exact_data_the_verdict_is_never_violated() {
    for (n, d, batch) in [(200, 400, 2), (200, 180, 2), (100, 10, 4)] {
        for seed in 0..20 {
            let mut split = SplitBatch::new(interpolating(seed, n, d), Draws::Different);
            let mut method = Str::new(StrConfig::default()).unwrap();
            let mut state = method.init(&mut split, normal(seed + 50, &[d])).unwrap();
            let mut sampler = Epochs::new(n, batch, seed).unwrap();
            for k in 0..1000 {
                method.step(&mut split, &mut state, &drawn(&mut sampler, k)).unwrap();
                let (verdict, why) = split.verdict();
                assert_ne!(verdict, Interpolation::Violated, "n {n}, d {d}, seed {seed}, step {k}: {why}");
            }
        }
    }
}

#[test]
fn interpolation_holds_for_equal_terms_at_any_point() {
    let at = |gradient_squared, variance| {
        let point = StrongGrowth { gradient_squared, variance, terms: 5 };
        Evidence::exact(&point, 1.0 + variance / gradient_squared)
    };
    let (verdict, why) = at(0.91, 0.0).verdict(&at(1.0, 0.0), f64::EPSILON);
    assert_eq!((verdict, why.as_str()), (Interpolation::Holds, "the gradients of all terms are equal, up to rounding"));
    let (verdict, why) = at(1e-40, 1e-40).verdict(&at(1.0, 1.0), f64::EPSILON);
    assert_eq!((verdict, why.contains("vanish together")), (Interpolation::Holds, true), "{why}");
}

/// If f is a sum of squares of rounding errors, its size does not show this. The corrected ratio shows it.
#[test]
fn curvature_at_the_rounding_floor_is_ignored() {
    let (mut curvature, value) = (Curvature::default(), 1e-30);
    let mut record = StepRecord::plain(0, value, 1e-15, 1.0, 1e-15);
    let region = |trial, ratio| RegionRecord {
        radius: 1.0,
        exit: Exit::Interior,
        trial: Some(trial),
        predicted: 5e-31,
        ratio: Some(ratio),
        change: Change::Keep,
    };
    record.region = Some(region(8e-30, 1.0));
    assert_eq!((curvature.add(&record), curvature.unresolved), (None, 1));
    record.region = Some(region(4e-31, 1.2));
    close(curvature.add(&record).unwrap(), 0.8, 1e-12);
    assert_eq!((curvature.seen, curvature.unresolved), (1, 1));
}

#[test]
fn intervals_of_two_to_five_pairs_have_their_nominal_coverage() {
    // Normal numbers, for which Student's interval is exact.
    let trials = 4000;
    for pairs in 2..=5 {
        let numbers = normals(pairs as u64, 2 * pairs * trials);
        let (mut gradient, mut rho) = (0, 0);
        for trial in numbers.chunks_exact(2 * pairs) {
            let mut seen = Pairs::new(1000, Draws::Independent);
            for two in trial.chunks_exact(2) {
                seen.add(&Pair { product: 10.0 + two[0], distance_squared: 6.0 + two[1], sizes: [4, 4] });
            }
            gradient += usize::from(seen.gradient_interval().contains(10.0));
            // s² = 6/(1/4 + 1/4), and the variance of a batch of 4 is a quarter of it.
            rho += usize::from(seen.rho_interval(4).contains(1.0 + 3.0 / 10.0));
        }
        let share = |covered: usize| covered as f64 / trials as f64;
        assert!((share(gradient) - 0.95).abs() < 0.012, "‖∇f‖² of {pairs} pairs: {}", share(gradient));
        assert!(share(rho) > 0.94, "ρ of {pairs} pairs: {}", share(rho));
    }
}
