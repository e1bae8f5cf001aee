//! What samples, records, wrappers and methods promise each other.

use crate::{
    common::{LeastSquares, Probe, bits, normal, normals},
    methods::{TERMS, at, squares, vectors},
};
use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};
use strust::{
    constraints::{Affine, Sphere},
    diagnostics::{Consecutive, SplitBatch},
    methods::{Averaged, StrLbfgs, StrLbfgsConfig, StrLsr1, StrNewton, StrNewtonConfig},
    objective::{
        Consensus, Counted, Evaluation, Evaluations, ObjectiveWrapper, Peers, ProductKind, Scaled, Sliced,
        with_products,
    },
    prelude::*,
    radius::{RegionConfig, Verdict},
    ranks::{Reduction, Sharded, on_threads},
    sample::Draws,
    samplers::Sampler,
};
use strust_baselines::Adam;

#[test]
fn only_a_sampler_that_draws_every_term_once_makes_a_sample_of_all_terms() {
    let drawn = |sampler: &mut dyn Sampler| {
        let mut sample = Sample::default();
        sampler.draw(3, &mut sample);
        (sample.is_all(), sample.len())
    };
    let f = vectors();
    assert_eq!(drawn(&mut Epochs::over(&f)), (true, TERMS));
    assert_eq!(drawn(&mut Epochs::over(&f).batch(5)), (false, 5));
    assert_eq!(drawn(&mut FullBatch::over(&f)), (true, TERMS));
    assert_eq!(drawn(&mut WithReplacement::over(&f)), (false, TERMS));
    let (mut part, mut all) = (Sample::default(), Sample::default());
    all.set_all(0..TERMS, 1);
    part.set_part(&all, 0..TERMS);
    assert!(!part.is_all() && all.clone().is_all());
}

/// A sampler that calls some terms all of them.
struct Boastful;

impl Sampler for Boastful {
    fn draw(&mut self, k: u64, sample: &mut Sample) {
        sample.set_all(0..TERMS - 1, k);
    }
    fn terms(&self) -> usize {
        TERMS
    }
    fn draws(&self) -> Draws {
        Draws::Different
    }
    fn steps_per_epoch(&self) -> u64 {
        1
    }
}

#[test]
fn a_sample_that_falsely_claims_to_be_all_terms_is_an_error() {
    let error = minimize(&mut vectors()).sampler(Boastful).start(at()).unwrap_err();
    assert!(error.to_string().contains("it claims to be all 13 terms, but has 12"), "{error}");
}

/// With n draws out of n terms, the function of every step is another one. Only a measurement of the full sum may say
/// converged.
#[test]
fn str_sqp_does_not_mistake_draws_with_replacement_for_the_full_sum() {
    for seed in 0..20 {
        let mut f = vectors();
        let mut method = StrSqp::new(StrSqpConfig::default(), Sphere::new(2.0).unwrap()).unwrap();
        let sampler = WithReplacement::over(&f).seed(seed);
        let report = minimize(&mut f).method(&mut method).sampler(sampler).stop(Stop::steps(300)).start(at()).unwrap();
        assert!(report.state.learned().is_some(), "seed {seed}: the steps were not on mini-batches");
        let certificate = method.certify(&mut f, &report.state);
        assert!(!report.reason.converged() || certificate.stationarity < 1e-6, "seed {seed}: {certificate:?}");
    }
}

/// At 0 both terms have the same value, bit for bit, and opposite gradients.
#[test]
fn a_pair_of_gradients_never_mixes_two_functions() {
    let mut f = from_terms(2, |i, x: &Vec<f64>, g| {
        let center = if i == 0 { 2.0 } else { -2.0 };
        g[0] += x[0] - center;
        0.5 * (x[0] - center).powi(2)
    });
    let region = RegionConfig { initial_radius: 2.0, ..RegionConfig::with_curvature() };
    let config = StrLbfgsConfig { every: 1, region, ..Default::default() };
    let mut method = StrLbfgs::new(config).unwrap();
    let mut state = method.init(&mut f, vec![-2.0]).unwrap();
    method.step(&mut f, &mut state, &Sample::new(vec![0], 0)).unwrap();
    assert_eq!(*state.point(), [0.0]);
    method.step(&mut f, &mut state, &Sample::new(vec![1], 1)).unwrap();
    let pairs = state.memory().pairs();
    assert_eq!(pairs.map(|(step, change)| (step[0], change[0])).collect::<Vec<_>>(), [(2.0, 2.0)]);
}

/// The gradient of every full batch has noise of its own. The Hessian is I, so every pair has y = s only if both gradients
/// have the same noise.
#[test]
fn the_full_batch_is_another_function_in_each_step_if_the_objective_reads_the_seed() {
    let mut f = from_fn(TERMS, |x: &Vec<f64>, sample: &Sample, g: Option<&mut Vec<f64>>| {
        let noise = normals(sample.seed().unwrap_or(0), 3);
        if let Some(g) = g {
            (0..3).for_each(|j| g[j] = x[j] + noise[j]);
        }
        (0..3).map(|j| 0.5 * x[j] * x[j] + noise[j] * x[j]).sum()
    });
    let method = StrLbfgs::new(StrLbfgsConfig { every: 1, ..Default::default() }).unwrap();
    let report = minimize(&mut f).method(method).full_batch().stop(Stop::steps(9)).start(vec![5.0; 3]).unwrap();
    let pairs = report.state.memory().pairs();
    assert!(pairs.len() > 3 && report.evaluations.gradients > 13, "{:?}", report.evaluations);
    for (step, change) in pairs {
        assert!(step.iter().zip(change).all(|(s, y)| (s - y).abs() < 1e-9), "{step:?}, {change:?}");
    }
}

/// Steps on the full sum that skip samples to pay for them.
fn sqp() -> StrSqp<Affine<Vec<f64>>> {
    let rows = Affine::new(vec![normal(20, &[7])], vec![0.5]).unwrap();
    StrSqp::new(StrSqpConfig::default(), rows).unwrap()
}

#[test]
fn steps_that_evaluate_nothing_say_so_and_enter_no_rate_and_no_stop() {
    let (mut f, mut skipped, mut accepted) = (squares(), 0, 0);
    let run = minimize(&mut f).method(sqp()).batch(5).stop(Stop::steps(50));
    let report = run
        .observe(|record: &StepRecord, _: &_| {
            skipped += u64::from(record.verdict == Verdict::Skipped);
            accepted += u64::from(record.verdict == Verdict::Accepted);
            assert_eq!(record.verdict == Verdict::Skipped, record.evaluations == Evaluations::default());
            // The documented way to stop at a small value: 0 was reported while nothing was evaluated.
            let is_small = record.value < 1e-300 || record.gradient_norm < 1e-300;
            if is_small { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .start(at())
        .unwrap();
    assert_eq!(
        (report.reason, report.steps, report.skipped, report.accepted),
        (StopReason::Steps, 50, skipped, accepted)
    );
    assert!(skipped > 10, "{skipped}");
    let rate = accepted as f64 / (50 - skipped) as f64;
    assert_eq!(report.acceptance_rate().to_bits(), rate.to_bits());
}

#[test]
fn an_average_passes_on_what_its_method_has_found_out() {
    let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
        let r = [x[0] - 3.0, x[1] - 4.0];
        (g[0], g[1]) = (g[0] + 2.0 * r[0], g[1] + 2.0 * r[1]);
        r[0] * r[0] + r[1] * r[1]
    });
    let sphere = Sphere::new(1.0).unwrap();
    let method = Averaged::of(StrSqp::new(StrSqpConfig::default(), sphere).unwrap());
    let report = minimize(&mut f).method(method).full_batch().start(vec![1.0, 0.0]).unwrap();
    assert_eq!(report.reason, StopReason::Kkt);
    assert!((report.point()[0] - 0.6).abs() < 1e-6 && (report.point()[1] - 0.8).abs() < 1e-6, "{:?}", report.point());

    // The unit circle and x₀ + x₁ = 5.
    let line = Affine::new(vec![vec![1.0, 1.0]], vec![5.0]).unwrap();
    let rows = both(Sphere::new(1.0).unwrap(), line).unwrap();
    let method = Averaged::of(StrSqp::new(StrSqpConfig::default(), rows).unwrap());
    let run = minimize(&mut f).method(method).full_batch().stop(Stop::steps(500));
    assert_eq!(run.start(vec![1.0, 0.0]).unwrap().reason, StopReason::Infeasible);
}

#[test]
fn a_settled_state_makes_no_more_steps() {
    let mut f = vectors();
    let mut method = StrSqp::new(StrSqpConfig::default(), Sphere::new(2.0).unwrap()).unwrap();
    let report = minimize(&mut f).method(&mut method).full_batch().start(at()).unwrap();
    assert_eq!(report.reason, StopReason::Kkt);
    let x = bits(report.point());
    let again = minimize(&mut f).method(&mut method).full_batch().resume(report.state).unwrap();
    assert_eq!((again.reason, again.steps, bits(again.point())), (StopReason::Kkt, 0, x));
}

/// An objective with all parts that an objective can have.
struct Everything {
    f: LeastSquares<f64>,
    agreed: u64,
}

impl ObjectiveWrapper for Everything {
    type Inner = LeastSquares<f64>;
    fn wrapped(&self) -> &LeastSquares<f64> {
        &self.f
    }
    fn wrapped_mut(&mut self) -> &mut LeastSquares<f64> {
        &mut self.f
    }
    fn constraint_norm(_: &mut Self, _: &Vec<f64>) -> f64 {
        0.25
    }
    fn draws(_: &Self) -> Option<Draws> {
        Some(Draws::Different)
    }
    fn check_point(_: &Self, _: &Vec<f64>) -> Result<(), Error> {
        Err(Error::Start { why: "everything".into() })
    }
    fn peers(this: &mut Self) -> Option<&mut dyn Peers> {
        Some(this)
    }
    fn sliced(this: &mut Self) -> Option<&mut dyn Sliced<Point = Vec<f64>>> {
        Some(this)
    }
}

impl Peers for Everything {
    fn agree(&mut self, consensus: &mut Consensus) -> Result<(), Error> {
        self.agreed += 1;
        consensus.stop = true;
        Ok(())
    }
    fn failure(&mut self) -> Option<Error> {
        Some(Error::Start { why: "failure".into() })
    }
}

impl Sliced for Everything {
    fn slices(&self) -> Vec<usize> {
        vec![3]
    }
    fn value_and_gradient_in_slices(
        &mut self,
        x: &Vec<f64>,
        sample: &Sample,
        gradient: &mut Vec<f64>,
        _: &mut dyn FnMut(&Vec<f64>, usize),
    ) -> Evaluation {
        self.value_and_gradient(x, sample, gradient)
    }
}

fn everything() -> Everything {
    Everything { f: squares(), agreed: 0 }
}

/// Every part of a wrapper is that of the inner objective.
fn passes_on<F: Objective<Point = Vec<f64>>>(mut f: F, name: &str, slices: bool) {
    let (x, v, sample) = (at(), normal::<Vec<f64>>(4, &[7]), Sample::new(vec![1, 4, 2], 9));
    let (mut g, mut found) = (vec![0.0; 7], vec![0.0; 7]);
    let mut plain = everything();
    let (expected, seen) =
        (plain.value_and_gradient(&x, &sample, &mut g), f.value_and_gradient(&x, &sample, &mut found));
    assert!((expected.value - seen.value).abs() < 1e-12 * expected.value, "{name}");
    assert!(g.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-12), "{name}");
    assert_eq!(plain.value(&x, &sample), f.value(&x, &sample), "{name}");
    assert_eq!(f.terms(), TERMS, "{name}");
    for kind in [ProductKind::Hessian, ProductKind::GaussNewton] {
        assert_eq!(
            plain.curvature_product(kind, &x, &sample, &v, &mut g),
            f.curvature_product(kind, &x, &sample, &v, &mut found),
            "{name}"
        );
        assert_eq!(g, found, "{name}");
    }
    assert_eq!(f.constraint_norm(&x).to_bits(), 0.25_f64.to_bits(), "{name}");
    assert_eq!(f.draws(), Some(Draws::Different), "{name}");
    assert!(f.check_point(&x).unwrap_err().to_string().contains("everything"), "{name}");
    assert_eq!(f.sliced().map(|f| f.slices()), slices.then(|| vec![3]), "{name}");
    let peers = f.peers().unwrap_or_else(|| panic!("{name} has lost its peers"));
    let mut consensus = Consensus { steps: 1, elapsed: Duration::ZERO, stop: false, fingerprint: &|| 0 };
    peers.agree(&mut consensus).unwrap();
    assert!(consensus.stop && peers.failure().unwrap().to_string().contains("failure"), "{name}");
}

#[test]
fn a_wrapper_loses_no_part_of_its_objective() {
    passes_on(everything(), "itself", true);
    passes_on(&mut everything(), "a reference", true);
    passes_on(Box::new(everything()), "a box", true);
    passes_on(Counted::new(everything()), "Counted", false);
    passes_on(Scaled::new(everything(), 1.0), "Scaled", true);
    passes_on(Probe::new(everything()), "a wrapper of a test", false);
    passes_on(SplitBatch::new(everything(), Draws::Different), "SplitBatch", false);
    passes_on(Consecutive::new(everything(), Draws::Different), "Consecutive", false);
    let mut twin = squares();
    let product = move |x: &Vec<f64>, sample: &Sample, v: &Vec<f64>, out: &mut Vec<f64>| {
        assert!(twin.curvature_product(ProductKind::Hessian, x, sample, v, out));
    };
    passes_on(with_products(everything(), ProductKind::Hessian, product), "WithProducts", true);
}

/// An estimator around ranks: an observer of one rank stops all of them at the same step.
#[test]
fn ranks_agree_through_an_estimator() {
    let steps = on_threads(3, Duration::from_secs(60), |rank| {
        let stops = strust::ranks::Group::rank(&rank) == 1;
        let sharded = Sharded::new(squares(), rank).reduction(Reduction::FixedOrder { block: 2 });
        let mut f = SplitBatch::new(sharded, Draws::Different);
        let run = minimize(&mut f).method(Str::default()).batch(6).stop(Stop::steps(50));
        let stop = |record: &StepRecord, _: &_| {
            if stops && record.k == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let report = run.observe(stop).start(at()).unwrap();
        (report.reason, report.steps)
    });
    assert_eq!(steps.into_iter().collect::<Vec<_>>(), [(StopReason::Observer, 5); 3]);
}

/// A method that has run on three unknowns resumes on seven as a new one does.
fn forgets_its_scratch_space<M: Method<LeastSquares<f64>>>(make: impl Fn() -> M) {
    let small = || LeastSquares::interpolating(3, TERMS, &normals(3, 3));
    let state = {
        let (mut f, mut method) = (squares(), make());
        minimize(&mut f).method(&mut method).full_batch().stop(Stop::steps(4)).start(at()).unwrap().state
    };
    let resumed = |method: &mut M, state: M::State| {
        let mut f = squares();
        let run = minimize(&mut f).method(method).full_batch().stop(Stop::steps(12));
        bits(run.resume(state).unwrap().point())
    };
    let expected = resumed(&mut make(), state.clone());
    let mut used = make();
    let _ = minimize(&mut small()).method(&mut used).full_batch().stop(Stop::steps(6)).start(vec![1.0; 3]).unwrap();
    assert_eq!(resumed(&mut used, state), expected);
}

#[test]
fn a_method_that_resumes_on_another_shape_has_no_old_vectors() {
    forgets_its_scratch_space(Auto::default);
    forgets_its_scratch_space(Str::default);
    forgets_its_scratch_space(StrNewton::default);
    forgets_its_scratch_space(|| StrNewton::gauss_newton(StrNewtonConfig::default()).unwrap());
    forgets_its_scratch_space(StrLbfgs::default);
    forgets_its_scratch_space(StrLsr1::default);
    forgets_its_scratch_space(Adam::default);
}

#[test]
fn a_budget_of_evaluations_counts_products() {
    let mut f = squares();
    let (budget, mut before_last) = (50, 0);
    let run = minimize(&mut f).method(StrNewton::default()).batch(5).stop(Stop::evaluations(budget));
    let mut total = Evaluations::default();
    let report = run
        .observe(|record: &StepRecord, _: &_| {
            before_last = total.count();
            total += record.evaluations;
            ControlFlow::Continue(())
        })
        .start(at())
        .unwrap();
    assert_eq!((report.reason, report.evaluations), (StopReason::Evaluations, total));
    assert!(total.products > 10 && before_last < budget && total.count() >= budget, "{total:?}");
}

/// With dropout, a full sum without the seed of the step would be another function.
#[test]
fn steps_on_the_full_sum_have_the_seed_of_their_sample() {
    fn check<M: Method<Counted<Probe<LeastSquares<f64>>>>>(mut method: M, steps: u64) -> u64 {
        let (mut f, log) = crate::methods::wrap(squares());
        let mut state = method.init(&mut f, at()).unwrap();
        let (mut sampler, mut sample, mut larger) = (crate::methods::sampler(), Sample::default(), 0);
        for k in 0..steps {
            sampler.draw(k, &mut sample);
            log.borrow_mut().samples.clear();
            method.step(&mut f, &mut state, &sample).unwrap();
            let samples = &log.borrow().samples;
            assert!(samples.iter().all(|seen| seen.seed() == sample.seed()), "step {k}");
            let terms: BTreeSet<usize> = samples.iter().flat_map(|sample| sample.indices().to_vec()).collect();
            larger += u64::from(terms.len() > sample.len());
        }
        larger
    }
    assert!(check(sqp(), 300) > 5);
}
