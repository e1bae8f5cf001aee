//! `minimize`: stopping rules, observers, the report, resuming, and breakdowns.

use crate::common::{LeastSquares, Targets, bits, normal, normals};
use std::{
    cell::Cell,
    ops::ControlFlow,
    time::{Duration, Instant},
};
use strust::{
    ErrorKind,
    constraints::{Affine, Sphere},
    diagnostics::SplitBatch,
    kkt::Measurement,
    objective::{Counted, Evaluations, Penalized, Stoppable},
    prelude::*,
    radius::Verdict,
    run::Observer,
    sample::Draws,
    samplers::Sampler,
};
use strust_baselines::{
    AugLag, AugLagConfig, ProjectedSgd, ProjectedSgdConfig, Riemannian, RiemannianConfig, Sgd, SgdConfig, SgdState,
};

fn problem() -> LeastSquares<f64> {
    let mut f = LeastSquares::interpolating(1, 12, &normals(1, 5));
    f.rows.iter_mut().for_each(|row| row.iter_mut().for_each(|v| *v *= 2.0));
    f.right.iter_mut().for_each(|v| *v *= 2.0);
    f
}

/// Four steps per epoch.
fn sampler() -> Epochs {
    Epochs::new(12, 3, 1).unwrap()
}

fn method() -> Str<Vec<f64>> {
    Str::new(StrConfig::default()).unwrap()
}

fn go(stop: &Stop) -> Report<strust::methods::StrState<Vec<f64>>> {
    minimize(&mut problem()).method(&mut method()).sampler(&mut sampler()).stop(stop).start(vec![0.0; 5]).unwrap()
}

#[test]
fn each_budget_stops_the_run_on_time_and_never_counts_as_converged() {
    let report = go(&Stop::steps(7));
    assert_eq!((report.reason, report.steps, report.state.steps()), (StopReason::Steps, 7, 7));
    assert!(!report.reason.converged());

    let report = go(&Stop::epochs(3));
    assert_eq!((report.reason, report.steps), (StopReason::Epochs, 12));
    assert!(!report.reason.converged());

    let report = go(&Stop::evaluations(9));
    // A step has two evaluations, so the fifth step is the first to reach 9.
    assert_eq!((report.reason, report.steps), (StopReason::Evaluations, 5));
    assert_eq!((report.evaluations.values, report.evaluations.gradients), (5, 5));
    assert!(!report.reason.converged());
    // Budgets need only the measurements at the start and at the end.
    assert_eq!(report.measurements, 2);
}

#[test]
fn the_wall_clock_stops_a_run_after_its_limit() {
    let limit = Duration::from_millis(30);
    let began = Instant::now();
    let report = go(&Stop::wall_clock(limit));
    assert!(began.elapsed() >= limit);
    assert_eq!((report.reason, report.reason.converged()), (StopReason::WallClock, false));
    assert!(report.steps > 0);
    let report = go(&Stop::wall_clock(Duration::ZERO));
    assert_eq!((report.reason, report.steps), (StopReason::WallClock, 0));
}

#[test]
fn tolerances_stop_a_run_at_the_end_of_an_epoch_and_count_as_converged() {
    let report = go(&Stop::gradient_norm(1e-8).or(Stop::epochs(1000)));
    assert_eq!((report.reason, report.reason.converged()), (StopReason::GradientNorm, true));
    assert!(report.last.gradient_norm <= 1e-8 && report.steps.is_multiple_of(4));
    // At the start and once per epoch.
    assert_eq!(report.measurements, 1 + report.steps / 4);
    let kkt = go(&Stop::kkt(1e-8).or(Stop::epochs(1000)));
    assert_eq!((kkt.reason, kkt.reason.converged(), kkt.steps), (StopReason::Kkt, true, report.steps));
    // A start that is good enough needs no step.
    assert_eq!(go(&Stop::gradient_norm(1e9)).steps, 0);
}

#[test]
fn stagnation_stops_a_run_without_progress_and_does_not_count_as_converged() {
    let report = go(&Stop::stagnation(0.5, 3).or(Stop::epochs(2000)));
    assert_eq!((report.reason, report.reason.converged()), (StopReason::Stagnation, false));
    assert!(report.steps >= 12);
}

#[test]
fn rules_can_be_combined_with_or_and_and() {
    assert_eq!(go(&Stop::epochs(50).or(Stop::steps(3)).or(Stop::evaluations(1000))).reason, StopReason::Steps);
    // Both: at least 300 steps, and a small gradient.
    let early = go(&Stop::gradient_norm(1e-3).or(Stop::epochs(1000)));
    let both = go(&Stop::gradient_norm(1e-3).and(Stop::steps(300)).or(Stop::epochs(1000)));
    assert!(early.steps < 300, "the tolerance alone must take fewer steps than 300, found {}", early.steps);
    assert_eq!((both.reason, both.steps), (StopReason::GradientNorm, 300));
}

#[test]
fn a_tolerance_reached_on_the_last_step_of_a_budget_counts_as_converged_in_any_order() {
    let steps = go(&Stop::gradient_norm(1e-8).or(Stop::epochs(1000))).steps;
    for stop in [Stop::gradient_norm(1e-8).or(Stop::steps(steps)), Stop::steps(steps).or(Stop::gradient_norm(1e-8))] {
        assert_eq!(go(&stop).reason, StopReason::GradientNorm);
    }
}

#[test]
fn an_observer_sees_every_step_in_order_and_may_stop_the_run() {
    let (mut f, mut method, mut sampler) = (problem(), method(), sampler());
    let (mut seen, mut others) = (Vec::new(), 0);
    let report = minimize(&mut f)
        .method(&mut method)
        .sampler(&mut sampler)
        .observe(|record: &StepRecord, _: &_| {
            seen.push(record.k);
            if record.k == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .observe(|_: &StepRecord, _: &_| {
            others += 1;
            ControlFlow::Continue(())
        })
        .stop(Stop::steps(100))
        .start(vec![0.0; 5])
        .unwrap();
    assert_eq!((report.reason, report.reason.converged(), report.steps), (StopReason::Observer, false, 6));
    assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
    assert_eq!(others, 6, "the second observer must see the last step too");
}

/// Keeps the measurements.
#[derive(Default)]
struct Curve(Vec<Measurement>, Option<usize>);

impl<P> Observer<P> for &mut Curve {
    fn step(&mut self, _: &StepRecord, _: &P) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn measured(&mut self, _: u64, measurement: &Measurement, _: &P) -> ControlFlow<()> {
        self.0.push(*measurement);
        if self.1 == Some(self.0.len()) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn measurements_have_the_requested_interval_and_may_stop_the_run() {
    let (mut f, mut method, mut sampler) = (problem(), method(), sampler());
    let mut curve = Curve::default();
    let run = minimize(&mut f).method(&mut method).sampler(&mut sampler).observe(&mut curve).measure_every(5);
    let report = run.stop(Stop::steps(20)).start(vec![0.0; 5]).unwrap();
    assert_eq!(curve.0.len(), 4, "after 5, 10, 15 and 20 steps");
    assert_eq!(curve.0.last(), Some(&report.last));
    let mut curve = Curve(Vec::new(), Some(2));
    let run = minimize(&mut f).method(&mut method).sampler(&mut sampler).observe(&mut curve).measure_every(1);
    assert_eq!(run.stop(Stop::steps(20)).start(vec![0.0; 5]).unwrap().reason, StopReason::Observer);
}

#[test]
fn the_best_point_is_the_best_measured_point() {
    // A step size at the limit of stability makes SGD noisy without interpolation, so the last point is not the best.
    let mut f = Targets::<Vec<f64>>::random(1, 12, &[3], 1.0, 1.0);
    let config = SgdConfig { learning_rate: 0.9, ..Default::default() };
    let mut method = Sgd::new(config).unwrap();
    let mut worse = 0;
    for seed in 0..20 {
        let mut curve = Curve::default();
        let mut sampler = Epochs::new(12, 1, seed).unwrap();
        let run = minimize(&mut f).method(&mut method).sampler(&mut sampler).observe(&mut curve).measure_every(1);
        let report = run.stop(Stop::steps(60)).start(vec![5.0; 3]).unwrap();
        let least = curve.0.iter().map(|m| m.merit).fold(f64::INFINITY, f64::min);
        assert_eq!(report.best_measurement.merit.to_bits(), least.to_bits());
        let again = f.value(&report.best, &Sample::range(0..12)).value;
        assert!((again - least).abs() <= 1e-14 * least, "the best point must have the best measured value");
        worse += u32::from(report.last.merit > least);
    }
    assert!(worse >= 18, "the last point was worse in {worse} of 20 runs");
}

#[test]
fn a_run_resumed_from_a_report_equals_one_long_run() {
    let whole = go(&Stop::steps(50));
    let first = go(&Stop::steps(23));
    let (mut f, mut method, mut sampler) = (problem(), method(), sampler());
    let second =
        minimize(&mut f).method(&mut method).sampler(&mut sampler).stop(Stop::steps(50)).resume(first.state).unwrap();
    assert_eq!((second.steps, second.reason), (27, StopReason::Steps));
    assert_eq!(bits(second.point()), bits(whole.point()));
    assert_eq!((second.state.radius(), second.last), (whole.state.radius(), whole.last));
    assert_eq!(first.accepted + second.accepted, whole.accepted);
    // Epochs also count from the first step of the first run.
    let state = go(&Stop::steps(23)).state;
    let report =
        minimize(&mut f).method(&mut method).sampler(&mut sampler).stop(Stop::epochs(6)).resume(state).unwrap();
    assert_eq!((report.steps, report.reason), (1, StopReason::Epochs));
}

#[test]
fn resuming_a_state_of_another_shape_is_an_error() {
    let state = Method::<Targets<Vec<f64>>>::init(
        &mut method(),
        &mut Targets::<Vec<f64>>::random(1, 12, &[6], 1.0, 1.0),
        normal(1, &[6]),
    )
    .unwrap();
    let (mut f, mut method, mut sampler) = (problem(), method(), sampler());
    let error =
        minimize(&mut f).method(&mut method).sampler(&mut sampler).stop(Stop::steps(3)).resume(state).unwrap_err();
    assert_eq!(error.to_string(), "least squares: expected shape [5], found [6]");
}

#[test]
fn a_run_without_steps_measures_the_start_and_keeps_it() {
    let report = go(&Stop::steps(0));
    assert_eq!((report.reason, report.steps, report.accepted, report.measurements), (StopReason::Steps, 0, 0, 1));
    assert_eq!((report.point(), &report.best), (&vec![0.0; 5], &vec![0.0; 5]));
    assert_eq!(report.last, report.best_measurement);
    assert_eq!(report.acceptance_rate().to_bits(), 1.0_f64.to_bits());
    assert_eq!(report.evaluations, Evaluations::default());
}

#[test]
fn counts_in_the_report_agree_with_the_records() {
    let (mut f, mut method, mut sampler) = (Counted::new(problem()), method(), sampler());
    let (mut accepted, mut total) = (0, Evaluations::default());
    let report = minimize(&mut f)
        .method(&mut method)
        .sampler(&mut sampler)
        .observe(|record: &StepRecord, _: &_| {
            accepted += u64::from(record.verdict == Verdict::Accepted);
            total += record.evaluations;
            ControlFlow::Continue(())
        })
        .stop(Stop::steps(40))
        .start(vec![0.0; 5])
        .unwrap();
    assert_eq!((report.accepted, report.evaluations), (accepted, total));
    // Twelve terms are one piece, so each measurement is one full gradient in addition to the steps.
    assert_eq!(f.evaluations().gradients, total.gradients + report.measurements);
    assert_eq!(f.evaluations().values, total.values);
}

#[test]
fn a_sampler_that_does_not_match_the_objective_is_a_setup_error() {
    let mut f = problem();
    let mut refused = |sampler: Epochs| {
        let error = minimize(&mut f).sampler(sampler).start(vec![0.0; 5]).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Setup);
        error.to_string()
    };
    let fewer = refused(Epochs::new(3, 1, 0).unwrap());
    assert!(fewer.starts_with("the sampler draws from 3 terms, but the objective has 12"), "{fewer}");
    let more = refused(Epochs::new(40, 1, 0).unwrap());
    assert!(more.starts_with("the sampler draws from 40 terms, but the objective has 12"), "{more}");
    let batch = minimize(&mut f).batch(13).start(vec![0.0; 5]).map(|_| ()).unwrap_err().to_string();
    assert_eq!(batch, "epoch sampler: `batch` is 13, but must be in [1, 12]");
    let seed = minimize(&mut f).sampler(sampler()).seed(3).start(vec![0.0; 5]).map(|_| ()).unwrap_err().to_string();
    assert_eq!(seed, "run: `seed` is 3, but must be set on the sampler, which has its own seed");
}

#[test]
fn batch_and_seed_give_the_same_run_as_a_sampler() {
    let by_parts =
        minimize(&mut problem()).method(method()).batch(3).seed(1).stop(Stop::steps(9)).start(vec![0.0; 5]).unwrap();
    assert_eq!(bits(by_parts.point()), bits(go(&Stop::steps(9)).point()));
    // Twelve terms are fewer than a default batch, so both runs use all of them in each step.
    let full = minimize(&mut problem()).full_batch().stop(Stop::epochs(9)).start(vec![0.0; 5]).unwrap();
    let default = minimize(&mut problem()).stop(Stop::epochs(9)).start(vec![0.0; 5]).unwrap();
    assert_eq!((full.steps, default.steps), (9, 9));
    assert!((full.last.value - default.last.value).abs() <= 1e-12 * full.last.value);
}

#[test]
fn without_a_rule_a_run_stops_when_it_no_longer_improves_and_has_converged_at_a_minimum() {
    let report = minimize(&mut problem()).batch(3).start(vec![0.0; 5]).unwrap();
    assert!(report.reason.converged(), "{} {:?}", report.reason, report.last);
    assert!(report.last.value < 1e-8 * problem().value(&vec![0.0; 5], &Sample::range(0..12)).value);
}

/// SGD on ½x². It diverges if the learning rate is above 2.
fn diverging(learning_rate: f64, stop: Stop) -> Report<SgdState<Vec<f64>>> {
    let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
        g[0] += x[0];
        0.5 * x[0] * x[0]
    });
    let config = SgdConfig { learning_rate, ..Default::default() };
    minimize(&mut f).method(Sgd::new(config).unwrap()).stop(stop).start(vec![1.0]).unwrap()
}

#[test]
fn a_breakdown_reports_its_error_and_the_last_good_state() {
    let report = diverging(11.0, Stop::steps(1000));
    // |x| grows by a factor of ten per step, so its square overflows at step 155.
    assert_eq!((report.reason, report.reason.converged()), (StopReason::Breakdown, false));
    let error = report.breakdown.clone().unwrap();
    assert!(matches!(error, Error::NonFiniteValue { step: 155, .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Breakdown);
    assert_eq!((report.steps, report.state.k), (155, 128), "the state must be the last good copy");
    assert!(report.last.is_finite() && report.point()[0].is_finite());
    assert!((report.point()[0].abs().log10() - 128.0).abs() < 1e-9);
    // The best point is the start. A run resumed from the state breaks down at the same step.
    assert!((report.best[0] - 1.0).abs() < f64::EPSILON);
    assert!(diverging(0.5, Stop::steps(10)).breakdown.is_none());
}

#[test]
fn a_breakdown_on_one_sample_keeps_the_state_of_that_step() {
    // The third gradient evaluation is NaN, but the point itself is good.
    let mut calls = 0;
    let mut f = from_fn(1, |x: &Vec<f64>, sample: &Sample, g: Option<&mut Vec<f64>>| {
        if let Some(g) = g {
            g[0] = x[0];
            calls += usize::from(sample.seed().is_some());
            if calls == 3 && sample.seed().is_some() {
                return f64::NAN;
            }
        }
        0.5 * x[0] * x[0]
    });
    let report = minimize(&mut f).method(Sgd::<Vec<f64>>::default()).stop(Stop::steps(10)).start(vec![1.0]).unwrap();
    assert_eq!((report.reason, report.state.k), (StopReason::Breakdown, 2));
    assert!((report.point()[0] - 0.64).abs() < 1e-15 && report.last.is_finite());
}

#[test]
fn a_start_that_is_not_finite_is_a_setup_error() {
    let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
        g[0] += 1.0 / x[0];
        x[0].ln()
    });
    let error = minimize(&mut f).start(vec![-1.0]).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Setup);
    assert!(error.to_string().starts_with("the objective is NaN at the start: check the start"), "{error}");
}

#[test]
fn an_infeasible_point_never_counts_as_converged() {
    // The point on the unit circle nearest to (3, 4). With μ = 1 the penalty method ends at ‖c‖ = 1.92.
    fn nearest() -> impl Objective<Point = Vec<f64>> {
        from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
            let r = [x[0] - 3.0, x[1] - 4.0];
            (g[0], g[1]) = (2.0 * r[0], 2.0 * r[1]);
            r[0] * r[0] + r[1] * r[1]
        })
    }
    fn check<S: State<Point = Vec<f64>>>(report: &Report<S>, tolerance: f64) {
        let feasible = (report.point().norm_squared() - 1.0).abs() <= tolerance;
        assert_eq!(report.reason.converged(), feasible && report.last.gradient_norm <= tolerance, "{:?}", report.last);
    }
    let sphere = || Sphere::new(1.0).unwrap();
    for rule in [Stop::gradient_norm(1e-8), Stop::kkt(1e-8), Stop::gradient_norm(1e-8).and(Stop::kkt(1e-8))] {
        let stop = rule.or(Stop::steps(3000));
        let start = || vec![1.0, 0.2];
        let str_p = StrP::new(StrPConfig::default(), sphere()).unwrap();
        let report = minimize(&mut nearest()).method(str_p).stop(&stop).start(start()).unwrap();
        assert!(report.last.gradient_norm <= 1e-8 && report.last.constraint_norm > 1.9, "{:?}", report.last);
        check(&report, 1e-8);
        let auglag = AugLag::new(AugLagConfig::default(), sphere()).unwrap();
        check(&minimize(&mut nearest()).method(auglag).stop(&stop).start(start()).unwrap(), 1e-8);
        let projected = ProjectedSgd::new(ProjectedSgdConfig::default(), sphere()).unwrap();
        let report = minimize(&mut nearest()).method(projected).stop(&stop).start(start()).unwrap();
        assert!(report.reason.converged());
        check(&report, 1e-8);
        let riemannian = Riemannian::new(RiemannianConfig::default(), sphere()).unwrap();
        check(&minimize(&mut nearest()).method(riemannian).stop(&stop).start(start()).unwrap(), 1e-8);
    }
}

#[test]
fn the_method_and_the_observers_can_be_named_in_any_order() {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut f = problem();
    let report = minimize(&mut f)
        .observe(|record: &StepRecord, x: &Vec<f64>| {
            before.push((record.k, x.clone()));
            ControlFlow::Continue(())
        })
        .method(Sgd::default())
        .observe(|record: &StepRecord, x: &Vec<f64>| {
            after.push((record.k, x.clone()));
            if record.k == 6 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .start(vec![0.0; 5])
        .unwrap();
    assert_eq!((report.reason, report.steps), (StopReason::Observer, 7));
    let last = report.point().clone();
    drop(report);
    assert_eq!(before, after);
    assert_eq!((after.len(), &after[6]), (7, &(6, last)));
}

#[test]
fn an_infeasible_minimum_of_a_penalized_objective_never_counts_as_converged() {
    let nearest = from_terms(1, |_, x: &Vec<f64>, g: &mut Vec<f64>| {
        g[0] += 2.0 * (x[0] - 3.0);
        g[1] += 2.0 * (x[1] - 4.0);
        (x[0] - 3.0).powi(2) + (x[1] - 4.0).powi(2)
    });
    let mut phi = Counted::new(Penalized::new(nearest, Sphere::new(1.0).unwrap(), 1.0));
    let stop = Stop::kkt(1e-8).or(Stop::steps(2000));
    let sgd = Sgd::new(SgdConfig { learning_rate: 0.02, ..Default::default() }).unwrap();
    let report = minimize(&mut phi).method(sgd).stop(&stop).start(vec![1.0, 0.2]).unwrap();
    assert!(report.last.gradient_norm <= 1e-8 && report.last.constraint_norm > 1.9, "{:?}", report.last);
    assert_eq!(report.reason, StopReason::Steps);
}

#[test]
fn a_run_that_diverges_on_its_last_step_broke_down() {
    // The value overflows at step 155, and no further step evaluates it.
    let report = diverging(11.0, Stop::steps(155));
    assert_eq!((report.reason, report.state.k), (StopReason::Breakdown, 128));
    assert!(report.last.is_finite() && report.breakdown.is_some(), "{:?}", report.last);
}

#[test]
fn a_retraction_that_fails_leaves_the_state_unchanged() {
    // x − ηg = 0 has no nearest point on the sphere.
    let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
        g[0] += 4.0 * x[0];
        2.0 * x[0] * x[0]
    });
    let sphere = || Sphere::new(1.0).unwrap();
    let config = ProjectedSgdConfig { learning_rate: 0.25 };
    let mut method = ProjectedSgd::new(config, sphere()).unwrap();
    let mut state = method.init(&mut f, vec![1.0]).unwrap();
    let error = method.step(&mut f, &mut state, &Sample::range(0..1)).unwrap_err();
    assert_eq!((error.kind(), state.x.clone(), state.k), (ErrorKind::Breakdown, vec![1.0], 0));
    let report = minimize(&mut f).method(&mut method).stop(Stop::steps(9)).start(vec![1.0]).unwrap();
    assert_eq!((report.reason, report.point(), report.steps), (StopReason::Breakdown, &vec![1.0], 0));
    // A start that cannot be moved onto the sphere is a set-up error.
    let error = minimize(&mut f).method(method).start(vec![0.0]).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Setup);
}

#[test]
fn a_residual_that_is_not_finite_has_no_effect_on_later_products() {
    let mut c = constraint_from_fn(1, |x, c| c[0] = x[0], |_, v, out| out[0] = v[0], |_, y, out| out[0] += y[0]);
    let (x, mut out) = (vec![1.0], vec![0.0]);
    c.add_vjp(&x, 1.0, &vec![f64::NAN], &mut out);
    out[0] = 0.0;
    c.add_vjp(&x, 2.0, &vec![3.0], &mut out);
    assert_eq!(out, [6.0]);
}

#[test]
fn the_best_point_of_an_augmented_lagrangian_is_nearly_a_kkt_point() {
    let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
        g[0] += 2.0 * (x[0] - 3.0);
        g[1] += 2.0 * (x[1] - 4.0);
        (x[0] - 3.0).powi(2) + (x[1] - 4.0).powi(2)
    });
    let config = AugLagConfig { learning_rate: 0.05, penalty: 2.0, growth: 1.0, inner_epochs: 10, damping: 1.0 };
    let method = AugLag::new(config, Sphere::new(1.0).unwrap()).unwrap();
    let stop = Stop::kkt(1e-8).or(Stop::epochs(20_000));
    let report = minimize(&mut f).method(method).stop(stop).start(vec![1.0, 0.2]).unwrap();
    assert!(report.reason.converged() && report.best_measurement.kkt() <= 1e-8, "{:?}", report.best_measurement);
}

#[test]
fn a_method_can_be_used_again_for_a_state_of_another_size() {
    let (mut small, mut large) =
        (Targets::<Vec<f64>>::random(1, 12, &[3], 1.0, 1.0), Targets::<Vec<f64>>::random(1, 12, &[6], 1.0, 1.0));
    let mut method = method();
    let first = minimize(&mut large).method(&mut method).stop(Stop::steps(2)).start(vec![0.0; 6]);
    let state = first.unwrap().state;
    let _ = minimize(&mut small).method(&mut method).stop(Stop::steps(2)).start(vec![0.0; 3]).unwrap();
    let report = minimize(&mut large).method(&mut method).stop(Stop::steps(4)).resume(state.clone()).unwrap();
    assert_eq!(report.state.steps(), 4);
    // A constraint of another shape is a set-up error also when a run resumes.
    let affine = Affine::new(vec![vec![1.0, 1.0]], vec![1.0]).unwrap();
    let constrained = StrP::new(StrPConfig::default(), affine).unwrap();
    let error = minimize(&mut large).method(constrained).resume(state).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Shape { .. }), "{error}");
}

#[test]
fn a_tolerance_that_holds_when_a_budget_ends_is_the_reason() {
    // Two steps make an epoch, so the end is not one at which the run measures anyway.
    let mut f = from_terms(2, |_, x: &Vec<f64>, g| {
        g[0] += x[0];
        0.5 * x[0] * x[0]
    });
    let stop = Stop::gradient_norm(1e-8).or(Stop::steps(1));
    let report = minimize(&mut f).method(Str::default()).batch(1).stop(stop).start(vec![1.0]).unwrap();
    assert_eq!((report.reason, report.steps), (StopReason::GradientNorm, 1));
}

/// Draws the terms from the first to before the second number, out of twelve.
struct From(usize, usize);

impl Sampler for From {
    fn draw(&mut self, _: u64, sample: &mut Sample) {
        sample.set(self.0..self.1, 1);
    }
    fn terms(&self) -> usize {
        12
    }
    fn draws(&self) -> Draws {
        Draws::Different
    }
    fn steps_per_epoch(&self) -> u64 {
        4
    }
}

#[test]
fn a_sampler_that_draws_in_another_way_or_draws_nonsense_is_an_error() {
    let mut split = SplitBatch::new(problem(), Draws::Independent);
    let error = minimize(&mut split).batch(4).start(vec![0.0; 5]).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Draws { sampler: Draws::Different, .. }), "{error}");
    let fits = WithReplacement::over(&split).batch(4);
    assert!(minimize(&mut split).sampler(fits).stop(Stop::steps(3)).start(vec![0.0; 5]).is_ok());

    for (sampler, why) in [(From(10, 13), "it holds term 12"), (From(3, 3), "it is empty")] {
        let error = minimize(&mut problem()).sampler(sampler).start(vec![0.0; 5]).map(|_| ()).unwrap_err();
        assert!(error.to_string().starts_with(&format!("sample 0: {why}")), "{error}");
    }
    let both = minimize(&mut problem()).sampler(sampler()).batch(3).start(vec![0.0; 5]).map(|_| ()).unwrap_err();
    assert!(both.to_string().contains("only one of `batch`, `full_batch` and `sampler`"), "{both}");
}

#[test]
fn a_run_that_is_stopped_during_a_measurement_returns_its_state_at_once() {
    const PIECES: usize = 100;
    let (stop, measured) = (Cell::new(false), Cell::new(0));
    let f = || {
        let terms = from_fn(512 * PIECES, |x: &Vec<f64>, sample: &Sample, gradient: Option<&mut Vec<f64>>| {
            measured.set(measured.get() + usize::from(sample.seed().is_none()));
            if let Some(g) = gradient {
                g[0] = x[0];
            }
            0.5 * x[0] * x[0]
        });
        Stoppable::new(terms, || stop.get())
    };
    let stops_after = |steps: u64| {
        let stop = &stop;
        move |record: &StepRecord, _: &_| {
            stop.set(record.k + 1 >= steps);
            if stop.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    };
    let report = minimize(&mut f()).method(method()).observe(stops_after(5)).start(vec![1.0]).unwrap();
    assert_eq!((report.reason, report.steps, measured.get()), (StopReason::Observer, 5, PIECES), "only the start");
    assert!(report.breakdown.is_none() && report.last.value.is_nan() && report.point()[0] < 1.0);
    assert_eq!(bits(&report.best), bits(&vec![1.0]), "the start is the best point that was measured");
    // Before the first step there is nothing to return.
    let error = minimize(&mut f()).method(method()).start(vec![1.0]).unwrap_err();
    assert_eq!((error.kind(), measured.get()), (ErrorKind::Stopped, PIECES));
    // A measurement on the way, in the middle of its pieces.
    stop.set(false);
    let asked = Cell::new(0);
    let in_the_middle = || {
        asked.set(asked.get() + 1);
        asked.get() > PIECES + PIECES / 2
    };
    let mut f = Stoppable::new(f(), in_the_middle);
    let report = minimize(&mut f).method(method()).measure_every(3).stop(Stop::steps(10)).start(vec![1.0]).unwrap();
    assert_eq!((report.reason, report.steps, report.state.steps()), (StopReason::Observer, 3, 3));
    assert_eq!(measured.get(), 2 * PIECES + PIECES / 2);
}

#[test]
fn a_large_sample_is_evaluated_in_parts_that_can_be_stopped() {
    let terms = 200_000;
    let evaluated = Cell::new(0);
    let f = || {
        from_fn(terms, |x: &Vec<f64>, sample: &Sample, gradient: Option<&mut Vec<f64>>| {
            evaluated.set(evaluated.get() + sample.len());
            let mean = sample.indices().iter().sum::<usize>() as f64 / sample.len() as f64;
            if let Some(g) = gradient {
                g[0] = mean;
            }
            mean * x[0]
        })
    };
    let (x, all, mut gradient) = (vec![2.0], Sample::new((0..terms).collect(), 7), vec![0.0]);
    let mean = (terms - 1) as f64 / 2.0;
    let mut whole = Stoppable::new(f(), || false);
    let value = whole.value_and_gradient(&x, &all, &mut gradient).value;
    assert!((value - 2.0 * mean).abs() < 1e-9 * mean && (gradient[0] - mean).abs() < 1e-9 * mean);
    assert!((whole.value(&x, &all).value - value).abs() < 1e-9 * mean && !whole.is_stopped());
    evaluated.set(0);
    let mut stopped = Stoppable::new(f(), || evaluated.get() > 100_000);
    assert!(stopped.value(&x, &all).value.is_nan() && stopped.is_stopped());
    assert!(evaluated.get() < terms);
    // A mini-batch of a step is always evaluated.
    assert!(stopped.value(&x, &Sample::new(vec![1, 2, 3], 0)).value.is_finite());
}
