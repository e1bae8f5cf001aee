//! Problems with known answers for every method: the stop reason, the distance to x*, a ceiling on evaluations.

mod common;

use common::{LeastSquares, Targets, distance, normal, normals};
use faer::{Mat, prelude::Solve};
use strust::{
    methods::StrState,
    objective::{Evaluations, full_value_and_gradient},
    prelude::*,
    run::Report,
};

const SEEDS: u64 = 20;

/// The value that a share of the runs does not exceed.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() as f64 * share).ceil() as usize).clamp(1, values.len()) - 1]
}

fn work(evaluations: Evaluations) -> u64 {
    evaluations.values + evaluations.gradients
}

// ---- without constraints -------------------------------------------------------------------------------------

/// Interpolating least squares, 60 terms of 20 unknowns, batches of 10: of 20 seeds at least 19 converge, and 19
/// stay below the distance and the work.
fn interpolating_least_squares<M: Method<LeastSquares<f64>>>(method: impl Fn() -> M, distance_to: f64, ceiling: u64) {
    let (mut distances, mut works, mut converged) = (Vec::new(), Vec::new(), 0);
    for seed in 0..SEEDS {
        let answer = normals(seed + 500, 20);
        let mut f = LeastSquares::interpolating(seed, 60, &answer);
        f.rows.iter_mut().for_each(|row| row.iter_mut().for_each(|v| *v *= 2.0));
        f.right.iter_mut().for_each(|v| *v *= 2.0);
        let mut sampler = Epochs::new(60, 10, seed).unwrap();
        let stop = Stop::gradient_norm(1e-9).or(Stop::epochs(1500));
        let report = minimize(&mut f, &mut method(), &mut sampler, vec![0.0; 20], &stop).unwrap();
        converged += u64::from(report.reason == StopReason::GradientNorm);
        assert_eq!(report.reason.converged(), report.last.gradient_norm <= 1e-9);
        distances.push(distance(report.point(), &answer));
        works.push(work(report.evaluations) as f64);
    }
    let (far, long) = (quantile(distances, 0.95), quantile(works, 0.95));
    eprintln!("LS {converged} {far:e} {long}");
    assert!(converged >= 19, "{converged} of {SEEDS} converged");
    assert!(far < distance_to, "95 % of the runs end within {far}");
    assert!(long < ceiling as f64, "95 % of the runs take {long} evaluations");
}

#[test]
fn str_solves_interpolating_least_squares() {
    interpolating_least_squares(|| Str::new(StrConfig::default()).unwrap(), 1e-6, 10_000);
}

#[test]
fn sgd_solves_interpolating_least_squares() {
    interpolating_least_squares(|| Sgd::new(SgdConfig { learning_rate: 1.0, ..Default::default() }).unwrap(), 1e-6, 10_000);
}

#[test]
fn sgd_with_momentum_solves_interpolating_least_squares() {
    let config = SgdConfig { learning_rate: 0.3, momentum: 0.7, ..Default::default() };
    interpolating_least_squares(|| Sgd::new(config.clone()).unwrap(), 1e-6, 10_000);
}

#[test]
fn adam_solves_interpolating_least_squares() {
    let config = AdamConfig { learning_rate: 0.05, ..Default::default() };
    interpolating_least_squares(|| Adam::new(config.clone()).unwrap(), 1e-6, 10_000);
}

#[test]
fn the_line_search_solves_interpolating_least_squares_with_every_reset() {
    for reset in [Reset::Last, Reset::Max, Reset::Grow] {
        let config = LineSearchConfig { reset, ..Default::default() };
        interpolating_least_squares(|| LineSearch::new(config.clone()).unwrap(), 1e-6, 30_000);
    }
}

/// Rosenbrock's valley, as a sum of one term: no randomness at all.
fn rosenbrock<M>(mut method: M, tolerance: f64, budget: u64) -> Report<M::State>
where
    M: for<'a> Method<Valley<'a>>,
{
    let mut evaluate = valley;
    let mut f: Valley<'_> = from_fn(1, &mut evaluate);
    let stop = Stop::gradient_norm(tolerance).or(Stop::evaluations(budget));
    let report = minimize(&mut f, &mut method, &mut Epochs::new(1, 1, 0).unwrap(), vec![-1.2, 1.0], &stop).unwrap();
    report
}
type Valley<'a> = strust::objective::FromFn<Vec<f64>, &'a mut dyn FnMut(&Vec<f64>, &Sample, Option<&mut Vec<f64>>) -> f64>;
fn valley(x: &Vec<f64>, _: &Sample, gradient: Option<&mut Vec<f64>>) -> f64 {
    let (u, v) = (1.0 - x[0], x[1] - x[0] * x[0]);
    if let Some(g) = gradient {
        g[0] = -2.0 * u - 400.0 * x[0] * v;
        g[1] = 200.0 * v;
    }
    u * u + 100.0 * v * v
}

#[test]
fn explore_rosenbrock() {
    let r = rosenbrock(Str::new(StrConfig::default()).unwrap(), 1e-6, 200_000);
    eprintln!("ROS str {:?} {:?} {:?}", r.reason, r.point(), r.evaluations);
    let r = rosenbrock(Str::new(StrConfig { grow: 1.5, grow_above: 0.9, ..StrConfig::default() }).unwrap(), 1e-6, 200_000);
    eprintln!("ROS str2 {:?} {:?} {:?}", r.reason, r.point(), r.evaluations);
    let r = rosenbrock(LineSearch::new(LineSearchConfig{reset:Reset::Max, backtrack:0.5, ..Default::default()}).unwrap(), 1e-6, 200_000);
    eprintln!("ROS sls {:?} {:?} {:?}", r.reason, r.point(), r.evaluations);
    let r = rosenbrock(Adam::new(AdamConfig{learning_rate:0.02, ..Default::default()}).unwrap(), 1e-6, 200_000);
    eprintln!("ROS adam {:?} {:?} {:?}", r.reason, r.point(), r.evaluations);
}
