//! Problems with known answers for every method. The tests check the stop reason, the distance to x* and the number of
//! evaluations.

use crate::common::{LeastSquares, Targets, distance, normal, normals};
use faer::{Mat, prelude::Solve};
use std::ops::ControlFlow;
use strust::{
    constraints::{Affine, Manifold, Retraction, Sphere, Stiefel},
    kkt::Measurement,
    methods::StrState,
    objective::{Evaluation, Evaluations, full_value_and_gradient},
    prelude::*,
    radius::{RegionConfig, Verdict},
    run::{Observer, Report},
    samplers::Sampler,
};
use strust_baselines::{
    Adam, AdamConfig, AugLag, AugLagConfig, LineSearch, LineSearchConfig, ProjectedSgd, ProjectedSgdConfig, Reset,
    Riemannian, RiemannianConfig, Sgd, SgdConfig,
};

const SEEDS: u64 = 20;

/// The quantile of the values.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() as f64 * share).ceil() as usize).clamp(1, values.len()) - 1]
}

fn work(evaluations: Evaluations) -> u64 {
    evaluations.values + evaluations.gradients
}

// ---- without constraints -------------------------------------------------------------------------------------

/// Interpolating least squares with 60 terms, 20 unknowns and batches of 10. Of 20 seeds, at least 19 must converge,
/// and 19 must stay within the limits of distance and evaluations.
fn interpolating_least_squares<M: Method<LeastSquares<f64>>>(
    method: impl Fn() -> M,
    scale: f64,
    distance_to: f64,
    ceiling: u64,
) {
    let (mut distances, mut works, mut converged) = (Vec::new(), Vec::new(), 0);
    for seed in 0..SEEDS {
        let answer = normals(seed + 500, 20);
        let mut f = LeastSquares::interpolating(seed, 60, &answer);
        f.rows.iter_mut().for_each(|row| row.iter_mut().for_each(|v| *v *= scale));
        f.right.iter_mut().for_each(|v| *v *= scale);
        let mut sampler = Epochs::new(60, 10, seed).unwrap();
        let stop = Stop::gradient_norm(1e-9).or(Stop::epochs(1500));
        let report =
            minimize(&mut f).method(&mut method()).sampler(&mut sampler).stop(&stop).start(vec![0.0; 20]).unwrap();
        converged += u64::from(report.reason == StopReason::GradientNorm);
        assert_eq!(report.reason.converged(), report.last.gradient_norm <= 1e-9);
        distances.push(distance(report.point(), &answer));
        works.push(work(report.evaluations) as f64);
    }
    let (far, long) = (quantile(distances, 0.95), quantile(works, 0.95));
    assert!(converged >= 19, "{converged} of {SEEDS} converged");
    assert!(far < distance_to, "95 % of the runs end within {far}");
    assert!(long < ceiling as f64, "95 % of the runs take {long} evaluations");
}

#[test]
fn str_solves_interpolating_least_squares() {
    interpolating_least_squares(|| Str::new(StrConfig::default()).unwrap(), 2.0, 1e-7, 1_500);
    // f is ten times steeper than the model H = I. A full step overshoots, and only the radius makes the run converge.
    interpolating_least_squares(|| Str::new(StrConfig::default()).unwrap(), 8.0, 1e-7, 20_000);
}

#[test]
fn sgd_solves_interpolating_least_squares() {
    interpolating_least_squares(
        || Sgd::new(SgdConfig { learning_rate: 1.0, ..Default::default() }).unwrap(),
        2.0,
        1e-7,
        1_500,
    );
}

#[test]
fn sgd_with_momentum_solves_interpolating_least_squares() {
    let config = SgdConfig { learning_rate: 0.3, momentum: 0.7, ..Default::default() };
    interpolating_least_squares(|| Sgd::new(config.clone()).unwrap(), 2.0, 1e-7, 1_500);
}

#[test]
fn adam_solves_interpolating_least_squares() {
    let config = AdamConfig { learning_rate: 0.05, ..Default::default() };
    interpolating_least_squares(|| Adam::new(config.clone()).unwrap(), 2.0, 1e-7, 1_500);
}

#[test]
fn the_line_search_solves_interpolating_least_squares_with_every_reset() {
    for reset in [Reset::Last, Reset::Max, Reset::Grow] {
        let config = LineSearchConfig { reset, ..Default::default() };
        interpolating_least_squares(|| LineSearch::new(config.clone()).unwrap(), 2.0, 1e-7, 1_500);
    }
}

/// The Rosenbrock function as a sum with one term, without randomness.
struct Rosenbrock;

impl Objective for Rosenbrock {
    type Point = Vec<f64>;
    fn terms(&self) -> usize {
        1
    }
    fn value(&mut self, x: &Vec<f64>, _: &Sample) -> Evaluation {
        Evaluation::new((1.0 - x[0]).powi(2) + 100.0 * (x[1] - x[0] * x[0]).powi(2), f64::EPSILON)
    }
    fn value_and_gradient(&mut self, x: &Vec<f64>, sample: &Sample, g: &mut Vec<f64>) -> Evaluation {
        let v = x[1] - x[0] * x[0];
        (g[0], g[1]) = (-2.0 * (1.0 - x[0]) - 400.0 * x[0] * v, 200.0 * v);
        self.value(x, sample)
    }
}

fn rosenbrock<M: Method<Rosenbrock>>(mut method: M, tolerance: f64, budget: u64) -> Report<M::State> {
    let stop = Stop::gradient_norm(tolerance).or(Stop::evaluations(budget));
    minimize(&mut Rosenbrock).method(&mut method).stop(&stop).start(vec![-1.2, 1.0]).unwrap()
}

#[test]
fn every_unconstrained_method_minimizes_the_rosenbrock_function() {
    fn check<S: State<Point = Vec<f64>>>(what: &str, report: &Report<S>, ceiling: u64) {
        assert_eq!(report.reason, StopReason::GradientNorm, "{what}");
        assert!(distance(report.point(), &vec![1.0, 1.0]) < 1e-5, "{what}: {:?}", report.point());
        assert!(work(report.evaluations) < ceiling, "{what}: {:?}", report.evaluations);
    }
    let budget = 200_000;
    check("STR", &rosenbrock(Str::new(StrConfig::default()).unwrap(), 1e-6, budget), 40_000);
    let adam = AdamConfig { learning_rate: 0.02, ..Default::default() };
    check("Adam", &rosenbrock(Adam::new(adam).unwrap(), 1e-6, budget), 6_000);
    let sgd = SgdConfig { learning_rate: 1e-3, momentum: 0.9, ..Default::default() };
    check("SGD", &rosenbrock(Sgd::new(sgd).unwrap(), 1e-6, budget), 10_000);
    let sls = LineSearchConfig { reset: Reset::Max, backtrack: 0.5, ..Default::default() };
    check("SLS", &rosenbrock(LineSearch::new(sls).unwrap(), 1e-6, budget), 160_000);
}

// ---- with constraints ----------------------------------------------------------------------------------------

/// Four equal terms, so a batch equals the full sum, and only the order is random.
fn run<V, M>(mut method: M, target: &V, scale: f64, start: V, stop: &Stop) -> Report<M::State>
where
    V: strust::vector::Dense,
    M: Method<Targets<V>>,
{
    let mut f = Targets::new(vec![target.clone(); 4], scale);
    minimize(&mut f).method(&mut method).sampler(Epochs::new(4, 2, 3).unwrap()).stop(stop).start(start).unwrap()
}

fn penalized<C: Constraint>(penalty: f64, constraint: C) -> StrP<C> {
    StrP::new(StrPConfig { penalty, ..Default::default() }, constraint).unwrap()
}

fn auglag<C: Constraint>(learning_rate: f64, constraint: C) -> AugLag<C> {
    let config = AugLagConfig { learning_rate, penalty: 2.0, growth: 1.0, inner_epochs: 10, damping: 1.0 };
    AugLag::new(config, constraint).unwrap()
}

fn projected<M: Manifold>(manifold: M) -> ProjectedSgd<M> {
    ProjectedSgd::new(ProjectedSgdConfig { learning_rate: 0.3 }, manifold).unwrap()
}

fn riemannian<M: Manifold>(manifold: M) -> Riemannian<M> {
    Riemannian::new(RiemannianConfig { learning_rate: 0.3, ..Default::default() }, manifold).unwrap()
}

/// Checks that the run converged to a KKT point at `answer` within `ceiling` evaluations.
fn assert_kkt<S: State>(what: &str, report: &Report<S>, answer: &S::Point, within: f64, ceiling: u64)
where
    S::Point: Vector,
{
    let off = distance(report.point(), answer);
    assert_eq!(report.reason, StopReason::Kkt, "{what}");
    assert!(report.reason.converged());
    assert!(off < within, "{what}: distance {off} from the answer");
    assert!(work(report.evaluations) < ceiling, "{what}: {:?}", report.evaluations);
}

#[test]
fn every_constrained_method_finds_the_nearest_point_on_the_sphere() {
    let target: Vec<f64> = normal(1, &[8]);
    let radius = 1.5;
    let mut answer = target.zeros_like();
    answer.add(radius / target.norm(), &target);
    let sphere = || Sphere::new(radius).unwrap();
    let start = || normal::<Vec<f64>>(2, &[8]);
    let stop = |tolerance| Stop::kkt(tolerance).or(Stop::epochs(20_000));
    assert_kkt("STR-P", &run(penalized(1e3, sphere()), &target, 1.0, start(), &stop(1e-2)), &answer, 1e-2, 40_000);
    assert_kkt("projected SGD", &run(projected(sphere()), &target, 1.0, start(), &stop(1e-9)), &answer, 1e-8, 500);
    assert_kkt("Riemannian", &run(riemannian(sphere()), &target, 1.0, start(), &stop(1e-9)), &answer, 1e-8, 500);
    assert_kkt("AugLag", &run(auglag(0.05, sphere()), &target, 1.0, start(), &stop(1e-7)), &answer, 1e-6, 10_000);
}

fn solve<M: Method<LeastSquares<f64>>>(f: &LeastSquares<f64>, mut method: M, tolerance: f64) -> Report<M::State> {
    // Use the full sum as one batch. Without interpolation no constant step converges on mini-batches.
    let mut sampler = Epochs::new(12, 12, 0).unwrap();
    let stop = Stop::kkt(tolerance).or(Stop::epochs(100_000));
    minimize(&mut f.clone()).method(&mut method).sampler(&mut sampler).stop(&stop).start(vec![0.0; 6]).unwrap()
}

#[test]
fn every_constrained_method_solves_affine_least_squares() {
    // min ½‖Bx − y‖²/n subject to Ax = b, solved by its KKT system.
    let (d, n, m) = (6, 12, 2);
    let mut f = LeastSquares::<f64>::interpolating(4, n, &normals(4, d));
    f.rows.iter_mut().for_each(|row| row.iter_mut().for_each(|v| *v *= 2.0));
    f.right = normals(5, n);
    let rows: Vec<Vec<f64>> = (0..m).map(|i| normal(10 + i as u64, &[d])).collect();
    let right = vec![0.5, -1.0];
    let mut system = Mat::zeros(d + m, d + m);
    let mut side = Mat::zeros(d + m, 1);
    for (row, y) in f.rows.iter().zip(&f.right) {
        for i in 0..d {
            side[(i, 0)] += row[i] * y / n as f64;
            (0..d).for_each(|j| system[(i, j)] += row[i] * row[j] / n as f64);
        }
    }
    for (i, row) in rows.iter().enumerate() {
        for j in 0..d {
            (system[(d + i, j)], system[(j, d + i)]) = (row[j], row[j]);
        }
        side[(d + i, 0)] = right[i];
    }
    let solution = system.partial_piv_lu().solve(&side);
    let answer: Vec<f64> = (0..d).map(|i| solution[(i, 0)]).collect();
    let multipliers: Vec<f64> = (0..m).map(|i| solution[(d + i, 0)]).collect();

    let affine = || Affine::new(rows.clone(), right.clone()).unwrap();
    let report = solve(&f, penalized(100.0, affine()), 1e-3);
    assert_kkt("STR-P", &report, &answer, 1e-2, 50_000);
    let found = penalized(100.0, affine()).multipliers(report.point());
    assert!(distance(&found, &multipliers) < 1e-2, "found {found:?}, expected {multipliers:?}");
    assert_kkt("projected SGD", &solve(&f, projected(affine()), 1e-9), &answer, 1e-7, 2_000);
    assert_kkt("Riemannian", &solve(&f, riemannian(affine()), 1e-9), &answer, 1e-7, 2_000);
    let report = solve(&f, auglag(0.05, affine()), 1e-7);
    assert_kkt("AugLag", &report, &answer, 1e-5, 10_000);
    assert!(distance(&report.state.multipliers, &multipliers) < 1e-5);
}

/// The frame nearest to A, W* = UVᵀ, and the multipliers (WᵀA − I)/2 of ½‖W − A‖² at W*.
fn procrustes() -> (Mat<f64>, Mat<f64>, Mat<f64>) {
    let target: Mat<f64> = normal(7, &[8, 3]);
    let svd = target.thin_svd().unwrap();
    let answer = svd.U() * svd.V().transpose();
    let mut multipliers = answer.transpose() * &target;
    for i in 0..3 {
        for j in 0..3 {
            multipliers[(i, j)] = 0.5 * (multipliers[(i, j)] - f64::from(i == j));
        }
    }
    (target, answer, multipliers)
}

#[test]
fn every_constrained_method_finds_the_nearest_frame() {
    let (target, answer, multipliers) = procrustes();
    let stiefel = |retraction| Stiefel::new(8, 3).unwrap().with_retraction(retraction);
    let start = || {
        let mut x = normal::<Mat<f64>>(8, &[8, 3]);
        x.add(3.0, &answer);
        x
    };
    let stop = |tolerance| Stop::kkt(tolerance).or(Stop::epochs(50_000));
    let report = run(penalized(1e3, stiefel(Retraction::Qr)), &target, 1.0, start(), &stop(5e-3));
    assert_kkt("STR-P", &report, &answer, 5e-3, 50_000);
    let found = penalized(1e3, stiefel(Retraction::Qr)).multipliers(report.point());
    assert!(distance(&found, &multipliers) < 1e-2 * multipliers.norm(), "found {found:?}, expected {multipliers:?}");
    for retraction in [Retraction::Qr, Retraction::Polar] {
        let report = run(riemannian(stiefel(retraction)), &target, 1.0, start(), &stop(1e-9));
        assert_kkt("Riemannian", &report, &answer, 1e-8, 1_000);
    }
    let report = run(projected(stiefel(Retraction::Polar)), &target, 1.0, start(), &stop(1e-9));
    assert_kkt("projected SGD", &report, &answer, 1e-8, 1_000);
    let report = run(auglag(0.02, stiefel(Retraction::Qr)), &target, 1.0, start(), &stop(1e-7));
    assert_kkt("AugLag", &report, &answer, 1e-6, 20_000);
    assert!(distance(&report.state.multipliers, &multipliers) < 1e-5);
}

/// QR does not give the nearest point, and x − ηg is not tangent. If f is not invariant under rotations of the columns,
/// the fixed point of projected SGD with QR is not the minimizer. Subspace fitting is invariant; this problem is not.
#[test]
fn projected_sgd_with_qr_is_biased_if_the_objective_depends_on_more_than_the_span() {
    let (target, answer, _) = procrustes();
    let stop = Stop::kkt(1e-3).or(Stop::epochs(5_000));
    let report = run(projected(Stiefel::new(8, 3).unwrap()), &target, 1.0, answer.clone(), &stop);
    // The run starts at the answer, which is a KKT point, but leaves it.
    assert_eq!((report.reason, report.steps), (StopReason::Kkt, 0));
    let mut start = answer.clone();
    start.add(0.1, &normal(3, &[8, 3]));
    let report = run(projected(Stiefel::new(8, 3).unwrap()), &target, 1.0, start, &stop);
    assert_eq!(report.reason, StopReason::Epochs);
    assert!(distance(report.point(), &answer) > 0.05);
}

/// Stops a run when the measured gradient is small, even at an infeasible point.
struct SmallGradient(f64);

impl<P> Observer<P> for SmallGradient {
    fn step(&mut self, _: &StepRecord, _: &P) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn measured(&mut self, _: u64, measurement: &Measurement, _: &P) -> ControlFlow<()> {
        if measurement.gradient_norm <= self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn doubling_the_penalty_halves_the_violation_and_the_error_of_the_multipliers() {
    let (target, _, multipliers) = procrustes();
    let solve = |penalty: f64| {
        let start = normal::<Mat<f64>>(8, &[8, 3]);
        let mut f = Targets::new(vec![target.clone(); 4], 1.0);
        // A minimum of φ is not feasible, so no stopping rule counts it as converged.
        let report = minimize(&mut f)
            .method(penalized(penalty, Stiefel::new(8, 3).unwrap()))
            .sampler(Epochs::new(4, 2, 3).unwrap())
            .observe(SmallGradient(1e-8))
            .measure_every(2)
            .stop(Stop::gradient_norm(1e-8).or(Stop::epochs(100_000)))
            .start(start)
            .unwrap();
        assert_eq!(report.reason, StopReason::Observer, "μ = {penalty}");
        let found = penalized(penalty, Stiefel::new(8, 3).unwrap()).multipliers(report.point());
        (report.last.constraint_norm, distance(&found, &multipliers))
    };
    let runs: Vec<_> = [50.0, 100.0, 200.0, 400.0].into_iter().map(solve).collect();
    for pair in runs.windows(2) {
        let (violation, error) = (pair[0].0 / pair[1].0, pair[0].1 / pair[1].1);
        assert!((1.9..2.1).contains(&violation), "‖c‖ decreases by a factor of {violation}");
        assert!((1.8..2.2).contains(&error), "‖λ − λ*‖ decreases by a factor of {error}");
    }
}

// ---- the algorithms as printed in the paper ------------------------------------------------------------------

/// Algorithms 1 and 2 as printed, without a safeguard. The constraint is the sphere of radius 1; μ = 0 gives Algorithm
/// 1.
fn printed(
    f: &mut LeastSquares<f64>,
    c: &RegionConfig,
    mu: f64,
    x: &mut Vec<f64>,
    radius: &mut f64,
    sample: &Sample,
) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let violation = |x: &[f64]| dot(x, x) - 1.0;
    let mut g = vec![0.0; x.len()];
    let phi = f.value_and_gradient(x, sample, &mut g).value + 0.5 * mu * violation(x).powi(2);
    for i in 0..x.len() {
        g[i] += 2.0 * mu * violation(x) * x[i];
    }
    let (gg, jg) = (dot(&g, &g), 2.0 * dot(x, &g));
    let ghg = gg + mu * (jg * jg);
    let a = (gg / ghg).min(*radius / gg.sqrt());
    let trial: Vec<f64> = x.iter().zip(&g).map(|(x, g)| x - a * g).collect();
    let at_trial = f.value(&trial, sample).value + 0.5 * mu * violation(&trial).powi(2);
    let ratio = (phi - at_trial) / (a * gg - 0.5 * a * a * ghg);
    if ratio > c.accept_above {
        *x = trial;
    }
    if ratio < c.shrink_below {
        *radius /= c.shrink;
    } else if ratio > c.grow_above {
        *radius = (c.grow * *radius).min(c.max_radius);
    }
    ratio
}

/// Compares 200 steps of both, bit for bit. Both add the 7 unknowns in the same order.
fn agrees_with_the_printed_algorithm<M>(mut method: M, config: &RegionConfig, mu: f64)
where
    M: Method<LeastSquares<f64>, State = StrState<Vec<f64>>>,
{
    let (mut accepted, mut shrunk, mut grown, mut kept) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let mut f = LeastSquares::<f64>::interpolating(seed, 15, &normals(seed, 7));
        // f is steep, so that the radius matters. It does not interpolate, so f stays far above its rounding error.
        f.rows.iter_mut().for_each(|row| row.iter_mut().for_each(|v| *v *= 3.0));
        f.right.iter_mut().zip(normals(seed + 90, 15)).for_each(|(b, noise)| *b += 0.3 * noise);
        let (mut sampler, mut sample) = (WithReplacement::new(15, 2, seed).unwrap(), Sample::default());
        let mut state = method.init(&mut f, normal(seed + 40, &[7])).unwrap();
        let (mut x, mut radius) = (state.point().clone(), state.radius());
        for k in 0..200 {
            sampler.draw(k, &mut sample);
            let before = radius;
            let record = method.step(&mut f, &mut state, &sample).unwrap();
            let ratio = printed(&mut f, config, mu, &mut x, &mut radius, &sample);
            assert_eq!(
                (state.point(), state.radius()),
                (&x, radius),
                "seed {seed}, step {k}, ratio {ratio}, {record:?}"
            );
            accepted += u32::from(record.verdict == Verdict::Accepted);
            shrunk += u32::from(radius < before);
            grown += u32::from(radius > before);
            kept += u32::from(radius.to_bits() == before.to_bits());
        }
    }
    let total = 200 * SEEDS as u32;
    assert!(accepted > total / 4 && accepted < total, "{accepted} accepted");
    assert!(shrunk > 100 && grown > 100 && kept > 100, "every branch must occur: {shrunk}, {grown}, {kept}");
}

#[test]
fn str_equals_algorithm_1_bit_for_bit() {
    for region in [RegionConfig::default(), RegionConfig::constrained()] {
        let config = StrConfig { region: region.clone() };
        agrees_with_the_printed_algorithm(Str::new(config).unwrap(), &region, 0.0);
    }
}

#[test]
fn str_p_equals_algorithm_2_bit_for_bit() {
    for penalty in [1.0, 50.0] {
        let config = StrPConfig { penalty, ..Default::default() };
        let method = StrP::new(config.clone(), Sphere::new(1.0).unwrap()).unwrap();
        agrees_with_the_printed_algorithm(method, &config.region, penalty);
    }
}

#[test]
fn measurements_use_the_full_sum() {
    let mut f = LeastSquares::<f64>::interpolating(1, 1100, &normals(1, 5));
    let x: Vec<f64> = normal(2, &[5]);
    let mut g = x.zeros_like();
    // The full sum of 1100 terms is measured in three pieces.
    let value = full_value_and_gradient(&mut f, &x, &mut g);
    let mut whole = x.zeros_like();
    let expected = f.value_and_gradient(&x, &Sample::range(0..1100), &mut whole).value;
    assert!((value - expected).abs() < 1e-14 * expected && distance(&g, &whole) < 1e-14 * whole.norm());
    let report = minimize(&mut f)
        .method(Str::new(StrConfig::default()).unwrap())
        .sampler(Epochs::new(1100, 10, 0).unwrap())
        .stop(Stop::steps(0))
        .start(x)
        .unwrap();
    assert!((report.last.value - expected).abs() < 1e-14 * expected);
    assert!((report.last.gradient_norm - whole.norm()).abs() < 1e-14 * whole.norm());
}
