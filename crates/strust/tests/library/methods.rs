//! One contract suite for all methods.

use crate::common::{LeastSquares, Log, Probe, Targets, bits, normal, normals};
use faer::Mat;
use std::{cell::RefCell, fmt::Debug, rc::Rc};
use strust::{
    methods::StrState,
    models::Exit,
    objective::Evaluations,
    prelude::*,
    radius::Change,
    ranks::{Reduction, ThreadRank, on_threads},
    vector::Elementwise,
};

type Wrapped<F> = Counted<Probe<F>>;

fn wrap<F: Objective>(f: F) -> (Wrapped<F>, Rc<RefCell<Log>>) {
    let probe = Probe::new(f);
    let log = Rc::clone(&probe.log);
    (Counted::new(probe), log)
}

const TERMS: usize = 13;
const STEPS: u64 = 60;

fn sampler() -> Epochs {
    Epochs::new(TERMS, 5, 11).unwrap()
}

/// Runs the steps `range` and returns the records.
fn go<F, M>(f: &mut F, method: &mut M, state: &mut M::State, range: std::ops::Range<u64>) -> Vec<StepRecord>
where
    F: Objective,
    M: Method<F>,
{
    let (mut sampler, mut sample) = (sampler(), Sample::default());
    range
        .map(|k| {
            sampler.draw(k, &mut sample);
            method.step(f, state, &sample).expect("the step succeeds")
        })
        .collect()
}

fn records_count_the_evaluations<F: Objective, M: Method<Wrapped<F>>>(f: F, mut method: M, x: F::Point) {
    let (mut f, _) = wrap(f);
    let mut state = method.init(&mut f, x).unwrap();
    assert_eq!(f.evaluations(), Evaluations::default(), "init must not evaluate the objective");
    let (mut total, mut pairs) = (Evaluations::default(), 0);
    for k in 0..STEPS {
        let record = go(&mut f, &mut method, &mut state, k..k + 1).remove(0);
        total += record.evaluations;
        assert_eq!(f.evaluations(), total, "step {k}");
        assert_eq!((record.k, state.steps()), (k, k + 1));
        // STR-SQP may replace the samples of a pass by the full sum.
        let pass = sampler().steps_per_epoch();
        // A pair of a quasi-Newton matrix costs a second gradient.
        pairs += u64::from(record.evaluations.gradients == 2);
        assert!([0, 1, 2, pass].contains(&record.evaluations.gradients), "{:?}", record.evaluations);
        assert!(total.gradients - pairs <= (k + 1).next_multiple_of(pass), "step {k} has more gradients than samples");
        let again: StepRecord = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
        assert_eq!(again, record, "a record must survive JSON");
    }
}

fn a_step_uses_one_sample<F: Objective, M: Method<Wrapped<F>>>(f: F, mut method: M, x: F::Point) {
    let (mut f, log) = wrap(f);
    let mut state = method.init(&mut f, x).unwrap();
    let mut expected = Sample::default();
    for k in 0..STEPS {
        log.borrow_mut().samples.clear();
        let record = go(&mut f, &mut method, &mut state, k..k + 1).remove(0);
        sampler().draw(k, &mut expected);
        let seen = &log.borrow().samples;
        assert_eq!(
            seen.len() as u64,
            record.evaluations.values + record.evaluations.gradients + record.evaluations.products
        );
        let all_terms = seen
            .chunks(sampler().steps_per_epoch() as usize)
            .all(|pieces| pieces.iter().flat_map(|piece| piece.indices().iter().copied()).eq(0..TERMS));
        let one_sample = seen.iter().all(|s| *s == expected);
        assert!(one_sample || all_terms, "step {k}: found {seen:?}, expected {expected:?}");
    }
}

fn resuming_is_exact<F, M>(f: impl Fn() -> F, method: impl Fn() -> M, x: F::Point)
where
    F: Objective,
    M: Method<Wrapped<F>>,
    M::State: Clone + PartialEq + Debug,
{
    let (mut whole_f, mut whole_method) = (wrap(f()).0, method());
    let mut whole = whole_method.init(&mut whole_f, x.clone()).unwrap();
    let whole_records = go(&mut whole_f, &mut whole_method, &mut whole, 0..STEPS);

    let (mut first_f, mut first_method) = (wrap(f()).0, method());
    let mut first = first_method.init(&mut first_f, x).unwrap();
    let mut records = go(&mut first_f, &mut first_method, &mut first, 0..STEPS / 2);
    let text = serde_json::to_string(&first).unwrap();
    drop((first_f, first_method, first));

    let mut second: M::State = serde_json::from_str(&text).unwrap();
    records.extend(go(&mut wrap(f()).0, &mut method(), &mut second, STEPS / 2..STEPS));
    assert_eq!(records, whole_records);
    assert_eq!(bits(second.point()), bits(whole.point()));
    // Compare the whole state, not only x.
    assert_eq!(serde_json::to_string(&second).unwrap(), serde_json::to_string(&whole).unwrap());
}

fn the_same_seed_gives_the_same_records<F, M>(f: impl Fn() -> F, method: impl Fn() -> M, x: &F::Point)
where
    F: Objective<Point: Elementwise>,
    M: Method<Wrapped<F>>,
{
    let run = |sampler: &mut Epochs| {
        let (mut f, mut method, mut records) = (wrap(f()).0, method(), Vec::new());
        let report = minimize(&mut f)
            .method(&mut method)
            .sampler(sampler)
            .observe(|record: &StepRecord, _: &M::State| {
                records.push(record.clone());
                std::ops::ControlFlow::Continue(())
            })
            .stop(Stop::steps(STEPS))
            .start(x.clone())
            .unwrap();
        let point = bits(report.point());
        (records, point)
    };
    assert_eq!(run(&mut sampler()), run(&mut sampler()));
    assert_ne!(run(&mut sampler()), run(&mut Epochs::new(TERMS, 5, 12).unwrap()), "another seed must give another run");
}

fn broken_input_is_an_error<F, M>(f: impl Fn() -> F, method: impl Fn() -> M, x: &F::Point, wrong: F::Point)
where
    F: Objective<Point: Elementwise>,
    M: Method<Wrapped<F>>,
    M::State: Debug,
{
    let error = method().init(&mut wrap(f()).0, wrong).unwrap_err();
    assert!(matches!(error, Error::Shape { .. }), "{error}");

    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let (mut f, log) = wrap(f());
        log.borrow_mut().value = Some(bad);
        let mut method = method();
        let mut state = method.init(&mut f, x.clone()).unwrap();
        let before = bits(state.point());
        let error = method.step(&mut f, &mut state, &Sample::range(0..3)).unwrap_err();
        assert!(matches!(error, Error::NonFiniteValue { step: 0, value } if !value.is_finite()), "{error}");
        assert_eq!((bits(state.point()), state.steps()), (before, 0), "a failed step must not change the state");
        let report = minimize(&mut f).method(&mut method).sampler(&mut sampler()).stop(Stop::steps(1)).start(x.clone());
        let error = report.map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::NonFiniteStart { value } if !value.is_finite()), "{error}");
        assert_eq!(error.kind(), ErrorKind::Setup);
    }
    for bad in [f64::NAN, f64::INFINITY] {
        let (mut f, log) = wrap(f());
        log.borrow_mut().gradient = Some(bad);
        let mut method = method();
        let mut state = method.init(&mut f, x.clone()).unwrap();
        let error = method.step(&mut f, &mut state, &Sample::range(0..3)).unwrap_err();
        assert!(matches!(error, Error::NonFiniteGradient { step: 0, norm } if !norm.is_finite()), "{error}");
        assert_eq!(state.steps(), 0);
    }
}

/// With a fixed order of summation, the records and x have the same bits for any number of ranks. Batches of 5, 5 and 3
/// terms in blocks of 2 do not divide evenly, and some of 4 and 7 ranks have no block.
fn any_number_of_ranks_gives_the_same_run<F, M>(f: impl Fn() -> F + Sync, method: impl Fn() -> M + Sync, x: &F::Point)
where
    F: Objective<Point: Elementwise + Send + Sync>,
    M: Method<Sharded<F, ThreadRank>>,
{
    let run = |size| {
        on_threads(size, std::time::Duration::from_secs(60), |rank| {
            let mut f = Sharded::new(f(), rank).reduction(Reduction::FixedOrder { block: 2 }).check_every(7);
            let mut records = Vec::new();
            let report = minimize(&mut f)
                .method(method())
                .sampler(sampler())
                .observe(|record: &StepRecord, _: &M::State| {
                    records.push(record.clone());
                    std::ops::ControlFlow::Continue(())
                })
                .stop(Stop::steps(STEPS))
                .start(x.clone())
                .unwrap();
            assert_eq!(report.breakdown, None);
            let point = bits(report.point());
            (records, point)
        })
    };
    let alone = run(1).remove(0);
    for size in [2, 3, 4, 7] {
        for (rank, run) in run(size).into_iter().enumerate() {
            assert_eq!(run, alone, "rank {rank} of {size}");
        }
    }
}

macro_rules! contract {
    ($($name:ident: $f:expr, $method:expr, $start:expr, $wrong:expr;)*) => {$(
        mod $name {
            use super::*;
            #[test]
            fn the_records_count_every_evaluation() {
                records_count_the_evaluations($f, $method, $start);
            }
            #[test]
            fn every_evaluation_of_a_step_uses_the_same_sample() {
                a_step_uses_one_sample($f, $method, $start);
            }
            #[test]
            fn a_resumed_run_equals_an_uninterrupted_run() {
                resuming_is_exact(|| $f, || $method, $start);
            }
            #[test]
            fn the_same_seed_gives_the_same_run() {
                the_same_seed_gives_the_same_records(|| $f, || $method, &$start);
            }
            #[test]
            fn any_number_of_ranks_gives_the_same_run_in_a_fixed_order() {
                any_number_of_ranks_gives_the_same_run(|| $f, || $method, &$start);
            }
            #[test]
            fn a_wrong_shape_or_a_number_that_is_not_finite_is_an_error() {
                broken_input_is_an_error(|| $f, || $method, &$start, $wrong);
            }
        }
    )*};
}

/// Second-order steps of [`AutoNewton`] use all terms, so one part of the suite does not apply to it.
mod auto_newton {
    use super::*;

    /// Many races.
    fn often() -> AutoNewton<Vec<f64>> {
        AutoNewton::new(AutoNewtonConfig { share: 0.6 }).unwrap()
    }

    #[test]
    fn the_records_count_every_evaluation_and_samples_pay_for_them() {
        let (mut f, _) = wrap(squares());
        let mut method = often();
        let mut state = method.init(&mut f, at()).unwrap();
        let (mut total, mut paid) = (Evaluations::default(), 0.0);
        for k in 0..400 {
            let record = go(&mut f, &mut method, &mut state, k..k + 1).remove(0);
            total += record.evaluations;
            assert_eq!(f.evaluations(), total, "step {k}");
            paid += record.evaluations.price() / 4.0;
        }
        assert!(total.products > 0 && state.race.races.0 > 3, "{total:?}, {:?}", state.race);
        // The last second-order step may not be paid yet.
        assert!((300.0..460.0).contains(&paid), "the price of {paid} steps of Auto in 400 steps");
    }
    #[test]
    fn a_resumed_run_equals_an_uninterrupted_run() {
        resuming_is_exact(squares, often, at());
        resuming_is_exact(vectors, often, at());
    }
    #[test]
    fn the_same_seed_gives_the_same_run() {
        the_same_seed_gives_the_same_records(squares, often, &at());
    }
    #[test]
    fn any_number_of_ranks_gives_the_same_run_in_a_fixed_order() {
        any_number_of_ranks_gives_the_same_run(squares, often, &at());
    }
    #[test]
    fn a_wrong_shape_or_a_number_that_is_not_finite_is_an_error() {
        broken_input_is_an_error(squares, often, &at(), vec![0.0; 8]);
    }
}

fn vectors() -> Targets<Vec<f64>> {
    Targets::random(1, TERMS, &[7], 0.3, 3.0)
}
fn singles() -> Targets<Vec<f32>> {
    Targets::random(1, TERMS, &[7], 0.3, 3.0)
}
fn matrices() -> Targets<Mat<f64>> {
    Targets::random(2, TERMS, &[6, 2], 0.3, 3.0)
}
fn squares() -> LeastSquares<f64> {
    LeastSquares::interpolating(3, TERMS, &normals(3, 7))
}
fn at() -> Vec<f64> {
    normal(9, &[7])
}
fn frame() -> Mat<f64> {
    normal(9, &[6, 2])
}
fn sls(reset: Reset) -> LineSearchConfig {
    LineSearchConfig { reset, ..Default::default() }
}
fn adamw() -> AdamConfig {
    AdamConfig { weight_decay: 0.01, ..Default::default() }
}
fn affine() -> Affine<Vec<f64>> {
    Affine::new(vec![normal(20, &[7]), normal(21, &[7])], vec![0.5, -1.0]).unwrap()
}
/// Multipliers and penalty are updated several times within the test.
fn auglag() -> AugLagConfig {
    AugLagConfig { inner_epochs: 2, ..Default::default() }
}
fn stiefel(retraction: Retraction) -> Stiefel {
    Stiefel::new(6, 2).unwrap().with_retraction(retraction)
}

contract! {
    auto: vectors(), Auto::default(), at(), vec![0.0; 8];
    auto_on_least_squares: squares(), Auto::default(), at(), vec![0.0; 8];
    auto_in_f32: singles(), Auto::default(), normal(9, &[7]), vec![0.0; 8];
    auto_over_matrices: matrices(), Auto::default(), frame(), normal(9, &[2, 6]);
    auto_averaged_again: vectors(), Averaged::of(Auto::default()), at(), vec![0.0; 8];
    str_on_targets: vectors(), Str::new(StrConfig::default()).unwrap(), at(), vec![0.0; 8];
    str_on_least_squares: squares(), Str::new(StrConfig::default()).unwrap(), at(), vec![0.0; 8];
    str_in_f32: singles(), Str::new(StrConfig::default()).unwrap(), normal(9, &[7]), vec![0.0; 8];
    str_over_matrices: matrices(), Str::new(StrConfig::default()).unwrap(), frame(), normal(9, &[2, 6]);
    str_newton_on_targets: vectors(), StrNewton::default(), at(), vec![0.0; 8];
    str_newton_on_least_squares: squares(), StrNewton::default(), at(), vec![0.0; 8];
    str_newton_in_f32: singles(), StrNewton::default(), normal(9, &[7]), vec![0.0; 8];
    str_newton_over_matrices: matrices(), StrNewton::default(), frame(), normal(9, &[2, 6]);
    str_gauss_newton: squares(), StrNewton::gauss_newton(StrNewtonConfig::default()).unwrap(), at(), vec![0.0; 8];
    str_lbfgs_on_targets: vectors(), StrLbfgs::default(), at(), vec![0.0; 8];
    str_lbfgs_on_least_squares: squares(), StrLbfgs::new(StrLbfgsConfig { pairs: 3, every: 2, ..Default::default() }).unwrap(), at(), vec![0.0; 8];
    str_lbfgs_in_f32: singles(), StrLbfgs::default(), normal(9, &[7]), vec![0.0; 8];
    str_lbfgs_over_matrices: matrices(), StrLbfgs::default(), frame(), normal(9, &[2, 6]);
    str_lsr1_on_least_squares: squares(), StrLsr1::default(), at(), vec![0.0; 8];
    str_lsr1_in_f32: singles(), StrLsr1::new(StrLsr1Config { pairs: 2, ..Default::default() }).unwrap(), normal(9, &[7]), vec![0.0; 8];
    str_p_on_the_stiefel_manifold: matrices(), StrP::new(StrPConfig::default(), stiefel(Retraction::Qr)).unwrap(), frame(), normal(9, &[2, 6]);
    str_p_on_the_sphere: vectors(), StrP::new(StrPConfig { penalty: 10.0, ..Default::default() }, Sphere::new(2.0).unwrap()).unwrap(), at(), vec![0.0; 8];
    str_p_on_an_affine_set: vectors(), StrP::new(StrPConfig::default(), affine()).unwrap(), at(), vec![0.0; 8];
    str_sqp_on_the_sphere: vectors(), StrSqp::new(StrSqpConfig::default(), Sphere::new(2.0).unwrap()).unwrap(), at(), vec![0.0; 8];
    str_sqp_on_an_affine_set: vectors(), StrSqp::new(StrSqpConfig::default(), affine()).unwrap(), at(), vec![0.0; 8];
    str_sqp_with_bounds: vectors(), StrSqp::new(StrSqpConfig::default(), both(affine(), Bounds::new(vec![-0.5; 7], vec![2.0; 7]).unwrap()).unwrap()).unwrap(), at(), vec![0.0; 8];
    str_sqp_on_the_stiefel_manifold: matrices(), StrSqp::new(StrSqpConfig::default(), stiefel(Retraction::Qr)).unwrap(), frame(), normal(9, &[2, 6]);
    sgd: vectors(), Sgd::new(SgdConfig::default()).unwrap(), at(), vec![0.0; 8];
    sgd_with_momentum_and_decay: vectors(), Sgd::new(SgdConfig { momentum: 0.9, weight_decay: 0.01, learning_rate: 0.05 }).unwrap(), at(), vec![0.0; 8];
    adam: vectors(), Adam::new(AdamConfig::default()).unwrap(), at(), vec![0.0; 8];
    adam_in_f32: singles(), Adam::new(AdamConfig::default()).unwrap(), normal(9, &[7]), vec![0.0; 8];
    sgd_with_a_cosine: vectors(), Sgd::new(SgdConfig::default()).unwrap().schedule(Schedule::cosine(STEPS)), at(), vec![0.0; 8];
    adamw_with_a_cosine: vectors(), Adam::new(adamw()).unwrap().schedule(Schedule::cosine(STEPS)), at(), vec![0.0; 8];
    averaged_sgd: vectors(), Averaged::of(Sgd::default()), at(), vec![0.0; 8];
    averaged_str_p: matrices(), Averaged::of(StrP::new(StrPConfig::default(), stiefel(Retraction::Qr)).unwrap()), frame(), normal(9, &[2, 6]);
    averaged_twice: vectors(), Averaged::of(Averaged::of(Adam::default())), at(), vec![0.0; 8];
    prodigy: vectors(), Prodigy::default(), at(), vec![0.0; 8];
    prodigy_over_matrices: matrices(), Prodigy::new(ProdigyConfig { weight_decay: 0.01, ..Default::default() }).unwrap(), frame(), normal(9, &[2, 6]);
    prodigy_in_f32: singles(), Prodigy::default(), normal(9, &[7]), vec![0.0; 8];
    dog: vectors(), DoG::default(), at(), vec![0.0; 8];
    dog_averaged: squares(), Averaged::of(DoG::new(DoGConfig { weight_decay: 0.01, ..Default::default() }).unwrap()), at(), vec![0.0; 8];
    schedule_free_sgd: vectors(), ScheduleFreeSgd::new(ScheduleFreeSgdConfig { learning_rate: 0.1, warmup_steps: 20, ..Default::default() }).unwrap(), at(), vec![0.0; 8];
    schedule_free_adamw: vectors(), ScheduleFreeAdamW::new(ScheduleFreeAdamWConfig { weight_decay: 0.01, ..Default::default() }).unwrap(), at(), vec![0.0; 8];
    schedule_free_adamw_in_f32: singles(), ScheduleFreeAdamW::default(), normal(9, &[7]), vec![0.0; 8];
    ponos: vectors(), Ponos::default(), at(), vec![0.0; 8];
    ponos_on_least_squares: squares(), Ponos::default(), at(), vec![0.0; 8];
    sls_last: vectors(), LineSearch::new(sls(Reset::Last)).unwrap(), at(), vec![0.0; 8];
    sls_max: vectors(), LineSearch::new(sls(Reset::Max)).unwrap(), at(), vec![0.0; 8];
    sls_grow: vectors(), LineSearch::new(sls(Reset::Grow)).unwrap(), at(), vec![0.0; 8];
    projected_sgd: matrices(), ProjectedSgd::new(ProjectedSgdConfig::default(), stiefel(Retraction::Qr)).unwrap(), frame(), normal(9, &[2, 6]);
    projected_sgd_on_an_affine_set: vectors(), ProjectedSgd::new(ProjectedSgdConfig::default(), affine()).unwrap(), at(), vec![0.0; 8];
    riemannian_qr: matrices(), Riemannian::new(RiemannianConfig::default(), stiefel(Retraction::Qr)).unwrap(), frame(), normal(9, &[2, 6]);
    riemannian_polar: matrices(), Riemannian::new(RiemannianConfig::default(), stiefel(Retraction::Polar)).unwrap(), frame(), normal(9, &[2, 6]);
    riemannian_on_the_sphere: vectors(), Riemannian::new(RiemannianConfig::default(), Sphere::new(1.0).unwrap()).unwrap(), at(), vec![0.0; 8];
    landing_on_the_sphere: vectors(), Landing::new(LandingConfig::default(), Sphere::new(1.0).unwrap()).unwrap(), at(), vec![0.0; 8];
    landing_on_the_stiefel_manifold: matrices(), Landing::new(LandingConfig::default(), stiefel(Retraction::Qr)).unwrap(), frame(), normal(9, &[2, 6]);
    augmented_lagrangian: matrices(), AugLag::new(auglag(), stiefel(Retraction::Qr)).unwrap(), frame(), normal(9, &[2, 6]);
    augmented_lagrangian_on_the_sphere: vectors(), AugLag::new(auglag(), Sphere::new(1.0).unwrap()).unwrap(), at(), vec![0.0; 8];
}

/// Forces three rejections with every kind of bad trial value, then continues the run.
fn a_bad_trial_is_rejected<F, M>(f: impl Fn() -> F, method: impl Fn() -> M, x: &F::Point)
where
    F: Objective,
    M: Method<Wrapped<F>>,
{
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
        let (mut f, log) = wrap(f());
        let mut method = method();
        let mut state = method.init(&mut f, x.clone()).unwrap();
        // Make some normal steps first, so that x is not the start and the scratch space is used.
        go(&mut f, &mut method, &mut state, 0..7);
        let before = bits(state.point());
        log.borrow_mut().trial = Some(bad);
        for record in go(&mut f, &mut method, &mut state, 7..10) {
            assert_eq!(record.verdict, Verdict::Rejected, "a trial of {bad}");
            if let Some(region) = &record.region {
                assert_eq!(region.change, Change::Shrink);
                assert_eq!((region.trial.is_some(), region.ratio.is_some()), (bad.is_finite(), bad.is_finite()));
            }
        }
        assert_eq!(bits(state.point()), before, "x must be unchanged, bit for bit");
        log.borrow_mut().trial = None;
        let after = go(&mut f, &mut method, &mut state, 10..40);
        assert!(after.iter().any(|r| r.verdict == Verdict::Accepted), "the run must continue after {bad}");
        assert_ne!(bits(state.point()), before);
    }
}

#[test]
fn a_trial_that_is_nan_or_infinite_or_worse_is_rejected_and_keeps_x_bit_for_bit() {
    a_bad_trial_is_rejected(vectors, Auto::default, &at());
    a_bad_trial_is_rejected(singles, Auto::default, &normal(9, &[7]));
    a_bad_trial_is_rejected(vectors, || Str::new(StrConfig::default()).unwrap(), &at());
    a_bad_trial_is_rejected(singles, || Str::new(StrConfig::default()).unwrap(), &normal(9, &[7]));
    a_bad_trial_is_rejected(matrices, || StrP::new(StrPConfig::default(), stiefel(Retraction::Qr)).unwrap(), &frame());
    for reset in [Reset::Last, Reset::Max, Reset::Grow] {
        let config = LineSearchConfig { max_backtracks: 5, backtrack: 0.5, ..sls(reset) };
        a_bad_trial_is_rejected(vectors, || LineSearch::new(config.clone()).unwrap(), &at());
    }
    let config = PonosConfig { max_backtracks: 5, ..Default::default() };
    a_bad_trial_is_rejected(vectors, || Ponos::new(config.clone()).unwrap(), &at());
}

#[test]
fn each_rejection_divides_the_radius_by_the_shrink_factor() {
    let (mut f, log) = wrap(vectors());
    log.borrow_mut().trial = Some(f64::NAN);
    let mut method = Str::new(StrConfig::default()).unwrap();
    let mut state = method.init(&mut f, at()).unwrap();
    let records = go(&mut f, &mut method, &mut state, 0..1100);
    for (i, record) in (0..).zip(&records) {
        let expected = (8.0 * 0.5_f64.powi(i)).max(f64::MIN_POSITIVE);
        assert_eq!(record.region.as_ref().unwrap().radius.to_bits(), expected.to_bits(), "step {i}");
    }
    // After a thousand rejections the radius is still positive and grows again.
    assert_eq!(state.radius.to_bits(), f64::MIN_POSITIVE.to_bits());
    log.borrow_mut().trial = None;
    go(&mut f, &mut method, &mut state, 1100..1700);
    assert!(state.radius > 1e-3, "radius {}", state.radius);
}

#[test]
fn a_zero_gradient_makes_no_trial_and_keeps_the_radius() {
    let (mut f, _) = wrap(Targets::new(vec![vec![1.0, 2.0]], 1.0));
    let mut method = Str::new(StrConfig::default()).unwrap();
    let mut state: StrState<Vec<f64>> = method.init(&mut f, vec![1.0, 2.0]).unwrap();
    let record = method.step(&mut f, &mut state, &Sample::range(0..1)).unwrap();
    let region = record.region.unwrap();
    assert_eq!((region.exit, region.trial, region.ratio, region.change), (Exit::Stationary, None, None, Change::Keep));
    assert_eq!((record.evaluations.values, f.evaluations().values), (0, 0));
    assert_eq!((state.radius, state.k, state.x.as_slice()), (8.0, 1, [1.0, 2.0].as_slice()));
}

#[test]
fn a_method_can_be_reused_on_a_problem_of_another_size() {
    let mut method = Str::new(StrConfig::default()).unwrap();
    let mut small = Targets::<Vec<f64>>::random(1, TERMS, &[3], 0.3, 1.0);
    let mut large = Targets::<Vec<f64>>::random(1, TERMS, &[5], 0.3, 1.0);
    let first = minimize(&mut small)
        .method(&mut method)
        .sampler(&mut sampler())
        .stop(Stop::steps(10))
        .start(vec![0.0; 3])
        .unwrap();
    let second = minimize(&mut large)
        .method(&mut method)
        .sampler(&mut sampler())
        .stop(Stop::steps(10))
        .start(vec![0.0; 5])
        .unwrap();
    assert_eq!((first.point().len(), second.point().len()), (3, 5));
}

fn first_error<M: Method<Targets<Vec<f64>>>>(mut method: M) -> Error {
    let mut f = vectors();
    let mut state = method.init(&mut f, at()).unwrap();
    method.step(&mut f, &mut state, &Sample::range(0..3)).unwrap_err()
}

#[test]
fn a_constraint_that_is_not_finite_makes_the_step_fail() {
    let nan = || {
        constraint_from_fn(
            1,
            |_: &Vec<f64>, c: &mut Vec<f64>| c[0] = f64::NAN,
            |_, _, out| out[0] = 1.0,
            |_, _, out| out.set_zero(),
        )
    };
    let wild = || {
        constraint_from_fn(
            1,
            |_: &Vec<f64>, c: &mut Vec<f64>| c[0] = 1.0,
            |_, _, out| out[0] = 1.0,
            |_, _, out| out[0] = f64::INFINITY,
        )
    };
    let curved = || {
        constraint_from_fn(
            1,
            |_: &Vec<f64>, c: &mut Vec<f64>| c[0] = 1.0,
            |_, _, out| out[0] = f64::NAN,
            |_, _, out| out.set_zero(),
        )
    };
    let error = first_error(AugLag::new(AugLagConfig::default(), nan()).unwrap());
    assert!(matches!(error, Error::NonFiniteValue { step: 0, .. }), "{error}");
    let error = first_error(StrP::new(StrPConfig::default(), nan()).unwrap());
    assert!(matches!(error, Error::NonFiniteValue { step: 0, .. }), "{error}");
    let error = first_error(AugLag::new(AugLagConfig::default(), wild()).unwrap());
    assert!(matches!(error, Error::NonFiniteGradient { step: 0, .. }), "{error}");
    let error = first_error(StrP::new(StrPConfig::default(), wild()).unwrap());
    assert!(matches!(error, Error::NonFiniteGradient { step: 0, .. }), "{error}");
    let error = first_error(StrP::new(StrPConfig::default(), curved()).unwrap());
    assert!(matches!(error, Error::NonFiniteCurvature { step: 0, .. }), "{error}");
}

#[test]
fn the_augmented_lagrangian_updates_multipliers_and_penalty_after_each_round_of_inner_epochs() {
    let mut f = matrices();
    let mut method =
        AugLag::new(AugLagConfig { inner_epochs: 2, ..Default::default() }, stiefel(Retraction::Qr)).unwrap();
    let mut state = method.init(&mut f, frame()).unwrap();
    // 13 terms in batches of 5 are 3 steps per epoch; the last batch is smaller.
    for k in 0..30 {
        let (old, penalty) = (state.multipliers.clone(), state.penalty);
        go(&mut f, &mut method, &mut state, k..k + 1);
        if (k + 1) % 6 == 0 {
            let mut expected = old;
            let mut c: Mat<f64> = Mat::zeros(2, 2);
            stiefel(Retraction::Qr).residual(&state.x, &mut c);
            expected.add(0.5 * penalty, &c);
            assert_eq!(bits(&state.multipliers), bits(&expected), "step {k}");
            assert_eq!(state.penalty.to_bits(), (1.1 * penalty).to_bits());
        } else {
            assert_eq!((bits(&state.multipliers), state.penalty), (bits(&old), penalty), "step {k}");
        }
    }
}

#[test]
fn each_reset_rule_of_the_line_search_starts_as_in_its_paper() {
    // fᵢ = ½‖x‖² and 5 of 10 terms per step. Armijo holds for η ≤ 2(1 − c), so a search from 2 takes one backtrack.
    let run = |reset| {
        let mut f = Targets::new(vec![vec![0.0]; 10], 1.0);
        let mut method = LineSearch::new(LineSearchConfig { backtrack: 0.5, ..sls(reset) }).unwrap();
        let mut state = method.init(&mut f, vec![1.0]).unwrap();
        let mut steps = Vec::new();
        for _ in 0..3 {
            // Keep x away from 0.
            state.x = vec![1.0];
            let record = method.step(&mut f, &mut state, &Sample::range(0..5)).unwrap();
            steps.push((record.step_size, record.evaluations.values));
        }
        steps
    };
    assert_eq!(run(Reset::Last), [(1.0, 2), (1.0, 1), (1.0, 1)]);
    assert_eq!(run(Reset::Max), [(1.0, 2), (1.0, 2), (1.0, 2)]);
    // γ^(b/n) = √2. The second search starts at √2 and succeeds. The third starts at the maximum 2 and halves it.
    let grow = run(Reset::Grow);
    assert_eq!(grow[0], (1.0, 2));
    assert!((grow[1].0 - 2.0_f64.sqrt()).abs() < 1e-15 && grow[1].1 == 1, "{grow:?}");
    assert!((grow[2].0 - 1.0).abs() < 1e-15 && grow[2].1 == 2, "{grow:?}");
}

#[test]
fn adam_agrees_with_its_formula_from_the_first_step_to_a_million() {
    let AdamConfig { learning_rate: eta, beta1, beta2, epsilon, .. } = AdamConfig::default();
    let mut method = Adam::new(AdamConfig::default()).unwrap();
    let mut f = Targets::new(vec![vec![0.5]], 2.0);
    let mut state = method.init(&mut f, vec![2.0]).unwrap();
    let (mut x, mut m, mut v) = (2.0_f64, 0.0_f64, 0.0_f64);
    for k in 1..=200 {
        method.step(&mut f, &mut state, &Sample::range(0..1)).unwrap();
        let g = 2.0 * (x - 0.5);
        m = beta1 * m + (1.0 - beta1) * g;
        v = beta2 * v + (1.0 - beta2) * g * g;
        x -= eta * (m / (1.0 - beta1.powi(k))) / ((v / (1.0 - beta2.powi(k))).sqrt() + epsilon);
        assert!((state.x[0] - x).abs() <= 1e-13 * x.abs(), "step {k}: found {}, expected {x}", state.x[0]);
    }
    // After many steps both corrections are 1, and nothing overflows.
    state.k = 1_000_000;
    let (before, g) = (state.x[0], 2.0 * (state.x[0] - 0.5));
    let (m, v) = (beta1 * state.mean[0] + (1.0 - beta1) * g, beta2 * state.square[0] + (1.0 - beta2) * g * g);
    method.step(&mut f, &mut state, &Sample::range(0..1)).unwrap();
    assert!((state.x[0] - (before - eta * m / (v.sqrt() + epsilon))).abs() < 1e-15);
    assert_eq!(state.k, 1_000_001);
}

#[test]
fn a_cosine_ends_at_rest_and_a_constant_schedule_changes_no_bit() {
    let run = |schedule: Option<Schedule>| {
        let (mut f, mut method) = (vectors(), Sgd::new(SgdConfig { momentum: 0.5, ..Default::default() }).unwrap());
        if let Some(schedule) = schedule {
            method = method.schedule(schedule);
        }
        let mut state = method.init(&mut f, at()).unwrap();
        let records = go(&mut f, &mut method, &mut state, 0..STEPS);
        (records, bits(state.point()))
    };
    assert_eq!(run(None), run(Some(Schedule::Constant)));
    let (records, _) = run(Some(Schedule::cosine(STEPS - 1)));
    for (k, record) in (0..).zip(&records) {
        assert_eq!(record.step_size.to_bits(), (0.2 * Schedule::cosine(STEPS - 1).factor(k)).to_bits(), "step {k}");
    }
    assert_eq!(records.last().unwrap().step_length.to_bits(), 0);
}

#[test]
fn averaging_leaves_the_method_alone_and_weighs_its_iterates_by_the_formula() {
    let (mut f, mut plain) = (vectors(), Sgd::default());
    let mut iterate = plain.init(&mut f, at()).unwrap();
    let mut uniform = Averaged::new(AveragedConfig { power: 0.0 }, Sgd::default()).unwrap();
    let mut mean = uniform.init(&mut f, at()).unwrap();
    let mut cubic = Averaged::of(Sgd::default());
    let mut weighted = cubic.init(&mut f, at()).unwrap();
    let (mut sum, mut average) = (0.0, 0.0);
    for k in 0..STEPS {
        let record = go(&mut f, &mut plain, &mut iterate, k..k + 1);
        assert_eq!(go(&mut f, &mut uniform, &mut mean, k..k + 1), record);
        assert_eq!(go(&mut f, &mut cubic, &mut weighted, k..k + 1), record);
        assert_eq!(bits(&mean.inner.x), bits(&iterate.x), "the steps are those of the method");
        sum += iterate.x[0];
        let c = 4.0 / (k as f64 + 4.0);
        average += c * (iterate.x[0] - average);
        assert!((mean.point()[0] - sum / (k + 1) as f64).abs() < 1e-14);
        assert!((weighted.point()[0] - average).abs() < 1e-14);
    }
    assert!(mean.is_averaged() && !mean.inner.is_averaged());
    // The measurement is at the average, not at the last iterate.
    let measured = uniform.measure(&mut f, &mean).unwrap();
    let expected = plain.measure(&mut f, &iterate.with_point(mean.average.clone())).unwrap();
    assert_eq!(measured.value.to_bits(), expected.value.to_bits());
    assert_ne!(
        measured.value.to_bits(),
        uniform.measure(&mut f, &mean.clone().with_point(at())).unwrap().value.to_bits()
    );
}

#[test]
fn the_answer_of_the_schedule_free_methods_is_an_average() {
    let mut f = vectors();
    assert!(Method::init(&mut ScheduleFreeSgd::default(), &mut f, at()).unwrap().is_averaged());
    assert!(Method::init(&mut ScheduleFreeAdamW::default(), &mut f, at()).unwrap().is_averaged());
    assert!(!Method::init(&mut DoG::default(), &mut f, at()).unwrap().is_averaged());
}

#[test]
fn ponos_shortens_later_steps_by_the_backtracks_of_earlier_ones() {
    // fᵢ = ½x², so the Polyak step for c_p = 0.1 is ½/0.1 = 5. At a fixed x the reference is fᵢ(x), and the condition
    // holds for η ≤ 2(1 − c) = 1: three backtracks from 5.
    let mut f = Targets::new(vec![vec![0.0]; 10], 1.0);
    let mut method = Ponos::default();
    let mut state = method.init(&mut f, vec![1.0]).unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        state.x = vec![1.0];
        let record = method.step(&mut f, &mut state, &Sample::range(0..5)).unwrap();
        seen.push(((record.step_size * 1e6).round() / 1e6, record.evaluations.values, state.backtracks));
    }
    assert_eq!(seen, [(0.625, 4, 2), (0.625, 2, 2), (0.625, 2, 2), (0.625, 2, 2)]);
}
