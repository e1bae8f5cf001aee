//! One contract suite for all methods.

use crate::common::{Failure, LeastSquares, Log, Probe, Targets, bits, normal, normals};
use faer::Mat;
use std::{
    cell::RefCell,
    fmt::Debug,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};
use strust::{
    ErrorKind,
    constraints::{Affine, ConstraintWrapper, Manifold, Retraction, Sphere, Stiefel},
    expectation::{Expectation, MeanRow, Members},
    methods::{Averaged, InExpectation, StrLbfgs, StrLbfgsConfig, StrLsr1, StrLsr1Config, StrNewton, StrNewtonConfig},
    objective::{Counted, Evaluations},
    prelude::*,
    radius::Verdict,
    ranks::{Reduction, Sharded, ThreadRank, on_threads},
    samplers::Sampler,
    saved::Save,
    schedule::Schedule,
    vector::Elementwise,
};
use strust_baselines::{
    Adam, AdamConfig, AugLag, AugLagConfig, DoG, DoGConfig, Landing, LandingConfig, LineSearch, LineSearchConfig,
    Ponos, Prodigy, ProdigyConfig, ProjectedSgd, ProjectedSgdConfig, Reset, Riemannian, RiemannianConfig,
    ScheduleFreeAdamW, ScheduleFreeAdamWConfig, ScheduleFreePlus, ScheduleFreePlusConfig, ScheduleFreeSgd,
    ScheduleFreeSgdConfig, Sgd, SgdConfig,
};

pub type Wrapped<F> = Counted<Probe<F>>;

pub fn wrap<F: Objective>(f: F) -> (Wrapped<F>, Rc<RefCell<Log>>) {
    let probe = Probe::new(f);
    let log = Rc::clone(&probe.log);
    (Counted::new(probe), log)
}

pub const TERMS: usize = 13;
pub const STEPS: u64 = 60;

pub fn sampler() -> Epochs {
    Epochs::new(TERMS, 5, 11).unwrap()
}

/// A record as text. NaN is equal to itself there.
fn as_json(record: &StepRecord) -> String {
    serde_json::to_string(record).unwrap()
}

/// Runs the steps `range` and returns the records.
pub fn go<F, M>(f: &mut F, method: &mut M, state: &mut M::State, range: std::ops::Range<u64>) -> Vec<StepRecord>
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
        let again: StepRecord = serde_json::from_str(&as_json(&record)).unwrap();
        assert_eq!(as_json(&again), as_json(&record), "a record must survive JSON");
        let nothing = record.evaluations == Evaluations::default();
        assert_eq!(nothing, record.verdict == Verdict::Skipped, "{record:?}");
        assert_eq!(nothing, record.value.is_nan() && record.gradient_norm.is_nan(), "{record:?}");
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
    let text = serde_json::to_string(&first.save()).unwrap();
    drop((first_f, first_method, first));

    let mut second = method().restore(&serde_json::from_str(&text).unwrap()).unwrap();
    records.extend(go(&mut wrap(f()).0, &mut method(), &mut second, STEPS / 2..STEPS));
    assert!(records.iter().map(as_json).eq(whole_records.iter().map(as_json)));
    assert_eq!(bits(second.point()), bits(whole.point()));
    // Compare the whole state, not only x.
    assert_eq!(serde_json::to_string(&second.save()).unwrap(), serde_json::to_string(&whole.save()).unwrap());
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
            .observe(|record: &StepRecord, _: &F::Point| {
                records.push(as_json(record));
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

/// Whichever evaluation fails, and however it does: a step that does not succeed leaves the state as it was, bit for bit,
/// and the method as good as new.
pub fn a_step_is_a_transaction<F, M>(f: impl Fn() -> F, method: impl Fn() -> M, x: &F::Point, steps: u64)
where
    F: Objective,
    M: Method<Wrapped<F>>,
{
    let mut failed = [0, 0];
    for failure in [Failure::Nan, Failure::Panic] {
        let ((mut f, log), mut method) = (wrap(f()), method());
        let mut state = method.init(&mut f, x.clone()).unwrap();
        let (mut sampler, mut sample) = (sampler(), Sample::default());
        for k in 0..steps {
            sampler.draw(k, &mut sample);
            failed[failure as usize] += a_step_fails_safely(&mut f, &mut method, &mut state, &sample, &log, failure);
        }
    }
    assert!(failed[0] > 0 && failed[1] >= steps, "{failed:?}");
}

/// Makes a step, after tries in which each of its evaluations failed once. Returns the number of tries that did not succeed.
pub fn a_step_fails_safely<F: Objective, M: Method<F>>(
    f: &mut F,
    method: &mut M,
    state: &mut M::State,
    sample: &Sample,
    log: &RefCell<Log>,
    failure: Failure,
) -> u64 {
    let json = |state: &M::State| serde_json::to_string(&state.save()).unwrap();
    let (before, mut after, mut failed) = (json(state), state.clone(), 0);
    log.borrow_mut().calls = 0;
    let record = as_json(&method.step(f, &mut after, sample).unwrap());
    let calls = log.borrow().calls;
    for call in 0..calls {
        let mut tried = state.clone();
        (log.borrow_mut().calls, log.borrow_mut().fuse) = (0, Some((call, failure)));
        let outcome = catch_unwind(AssertUnwindSafe(|| method.step(f, &mut tried, sample)));
        log.borrow_mut().fuse = None;
        if let Ok(Ok(_)) = outcome {
            assert_eq!(failure, Failure::Nan, "evaluation {call} of {calls} was not made again");
        } else {
            failed += 1;
            assert_eq!(json(&tried), before, "step {}, evaluation {call} of {calls}", state.steps());
        }
    }
    let again = method.step(f, state, sample).unwrap();
    assert_eq!((as_json(&again), json(state)), (record, json(&after)));
    failed
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
                .observe(|record: &StepRecord, _: &F::Point| {
                    records.push(as_json(record));
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
            #[test]
            fn a_step_that_fails_at_any_evaluation_leaves_the_state_unchanged() {
                a_step_is_a_transaction(|| $f, || $method, &$start, STEPS);
            }
        }
    )*};
}

/// Counts the evaluations of a constraint, and fails in one of them.
struct Fused<C>(C, Rc<RefCell<Log>>);

impl<C> Fused<C> {
    fn call(&self) {
        self.1.borrow_mut().fails();
    }
}

impl<C: Constraint> ConstraintWrapper for Fused<C> {
    type Inner = C;
    fn wrapped(&self) -> &C {
        &self.0
    }
    fn wrapped_mut(&mut self) -> &mut C {
        &mut self.0
    }
    fn residual(this: &mut Self, x: &C::Point, c: &mut C::Residual) {
        this.call();
        this.0.residual(x, c);
    }
    fn jvp(this: &mut Self, x: &C::Point, v: &C::Point, out: &mut C::Residual) {
        this.call();
        this.0.jvp(x, v, out);
    }
    fn add_vjp(this: &mut Self, x: &C::Point, a: f64, y: &C::Residual, out: &mut C::Point) {
        this.call();
        this.0.add_vjp(x, a, y, out);
    }
}

impl<C: Manifold> Manifold for Fused<C> {
    fn project_tangent(&mut self, x: &C::Point, v: &mut C::Point) -> Result<(), Error> {
        self.call();
        self.0.project_tangent(x, v)
    }
    fn restore(&mut self, x: &mut C::Point) -> Result<(), Error> {
        self.call();
        self.0.restore(x)
    }
}

/// Methods evaluate constraints between and after their evaluations of f.
#[test]
fn a_step_that_fails_in_its_constraint_leaves_the_state_unchanged() {
    fn check<M: Method<Targets<Mat<f64>>>>(method: impl Fn(Fused<Stiefel>) -> M) {
        let log = Rc::default();
        let (mut f, mut method) = (matrices(), method(Fused(stiefel(Retraction::Qr), Rc::clone(&log))));
        let mut state = method.init(&mut f, frame()).unwrap();
        let (mut sampler, mut sample, mut failed) = (sampler(), Sample::default(), 0);
        for k in 0..30 {
            sampler.draw(k, &mut sample);
            failed += a_step_fails_safely(&mut f, &mut method, &mut state, &sample, &log, Failure::Panic);
        }
        assert!(failed >= 30, "{failed}");
    }
    check(|c| StrP::new(StrPConfig::default(), c).unwrap());
    check(|c| StrSqp::new(StrSqpConfig::default(), c).unwrap());
    check(|c| AugLag::new(auglag(), c).unwrap());
    check(|c| Landing::new(LandingConfig::default(), c).unwrap());
    check(|c| ProjectedSgd::new(ProjectedSgdConfig::default(), c).unwrap());
    check(|c| Riemannian::new(RiemannianConfig::default(), c).unwrap());
    check(|c| Averaged::of(StrSqp::new(StrSqpConfig::default(), c).unwrap()));
}

pub fn vectors() -> Targets<Vec<f64>> {
    Targets::random(1, TERMS, &[7], 0.3, 3.0)
}
pub fn singles() -> Targets<Vec<f32>> {
    Targets::random(1, TERMS, &[7], 0.3, 3.0)
}
pub fn matrices() -> Targets<Mat<f64>> {
    Targets::random(2, TERMS, &[6, 2], 0.3, 3.0)
}
pub fn squares() -> LeastSquares<f64> {
    LeastSquares::interpolating(3, TERMS, &normals(3, 7))
}
pub fn at() -> Vec<f64> {
    normal(9, &[7])
}
pub fn frame() -> Mat<f64> {
    normal(9, &[6, 2])
}
pub fn sls(reset: Reset) -> LineSearchConfig {
    LineSearchConfig { reset, ..Default::default() }
}
fn adamw() -> AdamConfig {
    AdamConfig { weight_decay: 0.01, ..Default::default() }
}
fn schedule_free_plus() -> ScheduleFreePlusConfig {
    ScheduleFreePlusConfig {
        weight_decay: 0.1,
        anneal_steps: 40,
        norm_decay: 0.9,
        warmup_steps: 10,
        average_after: 20,
        power: 2.0,
        ..Default::default()
    }
}
/// A row that binds and one over a group that some samples do not know.
fn mean_rows() -> Expectation<Targets<Vec<f64>>> {
    let (first, last) = (Members::new(TERMS, |i| i < 9), Members::new(TERMS, |i| i > 10));
    let rows = vec![MeanRow::mean(&first).equal_to(3.0), MeanRow::difference(&last, &first).between(-0.1, 0.1)];
    Expectation::new(Targets::random(4, TERMS, &[7], 0.5, 0.2), rows).unwrap()
}
fn affine() -> Affine<Vec<f64>> {
    Affine::new(vec![normal(20, &[7]), normal(21, &[7])], vec![0.5, -1.0]).unwrap()
}
/// Multipliers and penalty are updated several times within the test.
fn auglag() -> AugLagConfig {
    AugLagConfig { inner_epochs: 2, ..Default::default() }
}
pub fn stiefel(retraction: Retraction) -> Stiefel {
    Stiefel::new(6, 2).unwrap().with_retraction(retraction)
}

contract! {
    auto: vectors(), Auto::default(), at(), vec![0.0; 8];
    auto_on_least_squares: squares(), Auto::default(), at(), vec![0.0; 8];
    auto_in_f32: singles(), Auto::default(), normal(9, &[7]), vec![0.0; 8];
    auto_over_matrices: matrices(), Auto::default(), frame(), normal(9, &[2, 6]);
    auto_averaged_again: vectors(), Averaged::of(Auto::default()), at(), vec![0.0; 8];
    in_expectation: vectors(), InExpectation::new(mean_rows()), at(), vec![0.0; 8];
    in_expectation_with_exact_rows: vectors(), InExpectation::around(StrSqp::new(StrSqpConfig::default(), affine()).unwrap(), mean_rows()), at(), vec![0.0; 8];
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
    str_sqp_with_products: matrices(), StrSqp::new(StrSqpConfig { products: 50, ..Default::default() }, stiefel(Retraction::Qr)).unwrap(), frame(), normal(9, &[2, 6]);
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
    schedule_free_plus: vectors(), ScheduleFreePlus::default(), at(), vec![0.0; 8];
    schedule_free_plus_with_everything_on: matrices(), ScheduleFreePlus::new(schedule_free_plus()).unwrap(), frame(), normal(9, &[2, 6]);
    schedule_free_plus_in_f32: singles(), ScheduleFreePlus::default(), normal(9, &[7]), vec![0.0; 8];
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
