//! Constrained problems with data: STR-SQP on mini-batches beside projected SGD and the landing method, as medians over
//! 20 seeds after 8 epochs of batches of 32.

use strust::{constraints::Manifold, objective::full_value, prelude::*};
use strust_baselines::{Landing, LandingConfig, ProjectedSgd, ProjectedSgdConfig};
use strust_problems::{ConstrainedLogistic, GeneralizedEigenvalues, Logistic, Mixture, Nmf, Pca, Problem, Procrustes};

const SEEDS: u64 = 20;
const EPOCHS: u64 = 8;
const BATCH: usize = 32;

/// |f − f*| and ‖c‖ at the end of a run.
fn end<P: Problem, M: Method<P>>(f: &mut P, method: M, seed: u64) -> (f64, f64) {
    let (start, mut sampler) = (f.start(seed), Epochs::new(f.terms(), BATCH, seed).unwrap());
    let run = minimize(&mut *f).method(method).sampler(&mut sampler);
    let report = run.stop(Stop::epochs(EPOCHS)).start(start).unwrap();
    // STR-SQP may end earlier, at a KKT point.
    assert!([StopReason::Epochs, StopReason::Kkt].contains(&report.reason), "{}", report.reason);
    let value = full_value(f, report.point());
    ((value - f.optimum().expect("f* is known")).abs(), report.last.constraint_norm)
}

/// The medians over the seeds.
fn medians(run: impl Fn(u64) -> (f64, f64)) -> (f64, f64) {
    let ends: Vec<(f64, f64)> = (0..SEEDS).map(run).collect();
    let median = |pick: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = ends.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        f64::midpoint(values[values.len() / 2 - 1], values[values.len() / 2])
    };
    (median(|end| end.0), median(|end| end.1))
}

/// The medians of STR-SQP, and those of the best of three rates of projected SGD.
fn compare<P, C>(problem: impl Fn(u64) -> P, constraint: impl Fn(&P) -> C) -> [(f64, f64); 2]
where
    P: Problem,
    C: Manifold<Point = P::Point>,
{
    let sqp = medians(|seed| {
        let mut f = problem(seed);
        let method = StrSqp::new(StrSqpConfig::default(), constraint(&f)).unwrap();
        end(&mut f, method, seed)
    });
    let rates = [0.01, 0.05, 0.2].map(|learning_rate| {
        medians(|seed| {
            let mut f = problem(seed);
            let method = ProjectedSgd::new(ProjectedSgdConfig { learning_rate }, constraint(&f)).unwrap();
            end(&mut f, method, seed)
        })
    });
    let best = rates.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    [sqp, best]
}

#[track_caller]
fn reaches([sqp, sgd]: [(f64, f64); 2], gap: f64, times: f64) {
    assert!(sqp.0 < gap && sqp.1 < 1e-13, "{sqp:?}");
    assert!(sqp.0 * times < sgd.0, "STR-SQP {sqp:?}, projected SGD {sgd:?}");
    assert!(sgd.1 < 1e-13, "{sgd:?}");
}

fn pca(seed: u64) -> Pca {
    Pca::decaying(50, 3, 1000, 0.8, seed).unwrap()
}

#[test]
fn principal_components_are_ten_times_better_than_by_projected_sgd() {
    reaches(compare(pca, Pca::constraint), 1e-4, 10.0);
}

#[test]
fn generalized_eigenvalues_are_ten_times_better_than_by_projected_sgd() {
    let problem = |seed| GeneralizedEigenvalues::new(pca(seed), 10.0, seed).unwrap();
    reaches(compare(problem, GeneralizedEigenvalues::constraint), 5e-4, 10.0);
}

#[test]
fn the_procrustes_problem_is_solved_five_times_better_than_by_projected_sgd_and_exactly_on_exact_data() {
    let problem = |noise: f64| move |seed| Procrustes::random(20, 4, 1000, noise, seed).unwrap();
    reaches(compare(problem(0.1), Procrustes::constraint), 2e-4, 5.0);
    let [exact, _] = compare(problem(0.0), Procrustes::constraint);
    assert!(exact.0 < 1e-11 && exact.1 < 1e-13, "{exact:?}");
}

#[test]
fn logistic_regression_on_a_sphere_is_better_than_by_projected_sgd() {
    let problem = |seed| {
        let loss = Logistic::separable(1000, 50, 0.1, seed).unwrap().with_wrong_labels(0.1, seed).unwrap();
        ConstrainedLogistic::new(loss, 10, seed).unwrap()
    };
    reaches(compare(problem, ConstrainedLogistic::constraint), 4e-4, 2.0);
}

#[test]
fn the_weights_of_a_mixture_are_as_good_as_by_the_best_rate_of_projected_sgd() {
    let problem = |seed| Mixture::gaussians(2, 10, 1000, 2.0, seed).unwrap();
    reaches(compare(problem, Mixture::constraint), 1e-2, 1.0);
}

#[test]
fn nonnegative_factors_fit_much_better_than_at_the_start() {
    let problem = |seed| Nmf::random(100, 12, 2, 2, 0.0, seed).unwrap();
    let (start, _) = medians(|seed| {
        let mut f = problem(seed);
        let x = f.start(seed);
        (full_value(&mut f, &x), 0.0)
    });
    let [sqp, _] = compare(problem, Nmf::constraint);
    assert!(sqp.0 < 0.3 * start, "{sqp:?} from {start}");
}

#[test]
fn the_landing_method_comes_close_to_the_constraint_and_the_optimum() {
    let (gap, violation) = medians(|seed| {
        let mut f = pca(seed);
        let method = Landing::new(LandingConfig::default(), f.constraint()).unwrap();
        end(&mut f, method, seed)
    });
    assert!(gap < 1e-2 && violation < 2e-3 && violation > 1e-6, "{gap} {violation}");
}
