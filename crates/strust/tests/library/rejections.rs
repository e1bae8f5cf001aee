//! What a method does where it cannot step: a bad trial, a zero gradient, a constraint that is not finite.

use crate::{
    common::{Targets, bits, normal},
    methods::{TERMS, Wrapped, at, frame, go, matrices, sampler, singles, sls, stiefel, vectors, wrap},
};
use strust::{
    constraints::Retraction,
    methods::StrState,
    models::Exit,
    prelude::*,
    radius::{Change, Verdict},
};
use strust_baselines::{AugLag, AugLagConfig, LineSearch, LineSearchConfig, Ponos, PonosConfig, Reset};

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
    assert_eq!(state.radius().to_bits(), f64::MIN_POSITIVE.to_bits());
    log.borrow_mut().trial = None;
    go(&mut f, &mut method, &mut state, 1100..1700);
    assert!(state.radius() > 1e-3, "radius {}", state.radius());
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
    assert_eq!((state.radius(), state.steps(), state.point().as_slice()), (8.0, 1, [1.0, 2.0].as_slice()));
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
    let nan = || constraint_from_fn(1, |_, c| c[0] = f64::NAN, |_, _, out| out[0] = 1.0, |_, _, out| out.fill(0.0));
    let wild =
        || constraint_from_fn(1, |_, c| c[0] = 1.0, |_, _, out| out[0] = 1.0, |_, _, out| out[0] = f64::INFINITY);
    let curved = || constraint_from_fn(1, |_, c| c[0] = 1.0, |_, _, out| out[0] = f64::NAN, |_, _, out| out.fill(0.0));
    let error = first_error(AugLag::new(AugLagConfig::default(), nan()).unwrap());
    assert!(matches!(error, Error::NonFiniteValue { step: 0, .. }), "{error}");
    let error = first_error(StrP::new(StrPConfig::default(), nan()).unwrap());
    assert!(matches!(error, Error::NonFiniteValue { step: 0, .. }), "{error}");
    let error = first_error(AugLag::new(AugLagConfig::default(), wild()).unwrap());
    assert!(matches!(error, Error::NonFiniteGradient { step: 0, .. }), "{error}");
    let error = first_error(StrP::new(StrPConfig::default(), wild()).unwrap());
    assert!(matches!(error, Error::NonFiniteGradient { step: 0, .. }), "{error}");
    let error = first_error(StrP::new(StrPConfig::default(), curved()).unwrap());
    assert!(matches!(error, Error::NonFiniteJacobian { step: 0, .. }), "{error}");
}

/// Why a run of this method cannot start.
fn start_error<M: Method<Targets<Vec<f64>>>>(method: M) -> String {
    minimize(&mut vectors()).method(method).full_batch().start(at()).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_closure_that_leaves_out_a_row_is_an_error_at_the_start() {
    let set = |rows, c: fn(&[f64], &mut [f64]), jvp: fn(&[f64], &[f64], &mut [f64])| {
        constraint_from_fn(rows, c, jvp, |_, y, out| out[0] += y[0])
    };
    let one = |x: &[f64], c: &mut [f64]| c[0] = x[0];
    let both = |x: &[f64], c: &mut [f64]| c.copy_from_slice(&x[..2]);
    let (jvp, short) = (
        |_: &[f64], v: &[f64], out: &mut [f64]| out.copy_from_slice(&v[..2]),
        |_: &[f64], v: &[f64], out: &mut [f64]| out[0] = v[0],
    );
    let error = |closure| {
        let why = format!("the number of rows that the closure for {closure} writes: it leaves out row 1");
        format!("constraint_from_fn: `rows` is 2, but must be {why}")
    };
    assert_eq!(start_error(StrP::new(StrPConfig::default(), set(2, one, jvp)).unwrap()), error("c(x)"));
    assert_eq!(start_error(StrSqp::new(StrSqpConfig::default(), set(2, one, jvp)).unwrap()), error("c(x)"));
    assert_eq!(
        start_error(StrSqp::new(StrSqpConfig::default(), at_most(set(2, both, short))).unwrap()),
        error("J(x)v")
    );
    assert!(
        minimize(&mut vectors())
            .method(StrP::new(StrPConfig::default(), set(2, both, jvp)).unwrap())
            .start(at())
            .is_ok()
    );
}

#[test]
fn a_constraint_that_is_nan_at_the_start_is_an_error_that_says_what_to_check() {
    let nan = || constraint_from_fn(1, |_, c| c[0] = f64::NAN, |_, v, out| out[0] = v[0], |_, y, out| out[0] += y[0]);
    let expected = "start: the gradient or the constraint is not finite there: check both, and the start, for NaN, infinity and overflow";
    assert_eq!(start_error(StrP::new(StrPConfig::default(), nan()).unwrap()), expected);
}
