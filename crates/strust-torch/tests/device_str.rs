//! STR on the device makes the same steps as the library's STR.

mod common;

use common::{TERMS, bits, steep_problem, store};
use std::{cell::Cell, rc::Rc};
use strust::{models::Exit, prelude::*, radius::Verdict, samplers::Sampler};
use strust_torch::{Component, DeviceMethod, DeviceStr, TorchObjective};
use tch::{Kind, nn};

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    a.to_bits() == b.to_bits() || (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

fn assert_same(device: &StepRecord, library: &StepRecord, tolerance: f64) {
    let (d, l) = (device.region.as_ref().unwrap(), library.region.as_ref().unwrap());
    assert_eq!((device.k, device.verdict, d.exit, d.change), (library.k, library.verdict, l.exit, l.change));
    let pairs = [
        (device.value, library.value),
        (device.gradient_norm, library.gradient_norm),
        (device.step_size, library.step_size),
        (device.step_length, library.step_length),
        (d.radius, l.radius),
        (d.predicted, l.predicted),
        (d.trial.unwrap_or(-1.0), l.trial.unwrap_or(-1.0)),
    ];
    for (i, (d, l)) in pairs.into_iter().enumerate() {
        assert!(near(d, l, tolerance), "step {}, number {i}: {d} against {l}", device.k);
    }
}

/// Makes 200 steps with dropout, batch-norm and noise. The initial radius is so large that steps are rejected.
fn the_same_steps<T: Component>(tolerance: f64) {
    let config = StrConfig::default();
    let (one, other) = (store::<T>(), store::<T>());
    let (mut f, mut g) = (steep_problem::<T>(&one, 0.2, 0.2, 10.0), steep_problem::<T>(&other, 0.2, 0.2, 10.0));
    let mut library = Str::new(config.clone()).unwrap();
    let start = f.point();
    let mut state = library.init(&mut f, start).unwrap();
    let mut device = DeviceStr::start(config, &g, 64).unwrap();
    let mut sampler = Epochs::new(TERMS, 16, 7).unwrap();
    let (mut sample, mut records) = (Sample::default(), Vec::new());
    for k in 0..200 {
        sampler.draw(k, &mut sample);
        records.push(library.step(&mut f, &mut state, &sample).unwrap());
        device.step(&mut g, &sample).unwrap();
    }
    let seen = device.records().unwrap();
    assert_eq!(seen.len(), 200);
    seen.iter().zip(&records).for_each(|(d, l)| assert_same(d, l, tolerance));
    let rejected = records.iter().filter(|r| r.verdict == Verdict::Rejected).count();
    assert!((5..150).contains(&rejected), "{rejected} of 200 rejected");
    let end = device.state(&g);
    assert!(near(end.radius(), state.radius(), tolerance) && end.steps() == 200);
    let mut difference = end.point().clone();
    difference.add(-1.0, state.point());
    assert!(difference.norm() <= tolerance * state.point().norm());
    // The running statistics agree too.
    let mut difference = g.parameters().buffers().clone();
    difference.add(-1.0, f.parameters().buffers());
    assert!(difference.norm() <= tolerance * f.parameters().buffers().norm());
    assert!(device.records().unwrap().is_empty());
}

#[test]
fn radii_verdicts_and_values_equal_those_of_the_librarys_method() {
    the_same_steps::<f64>(1e-9);
    the_same_steps::<f32>(1e-3);
}

/// x ↦ scale·‖x‖² with a factor that a test can change between evaluations.
fn bowl(store: &nn::VarStore, factor: Rc<Cell<f64>>) -> TorchObjective<f64, impl FnMut(&Sample) -> tch::Tensor> {
    let x = store.root().var("x", &[3], nn::Init::Const(1.0));
    TorchObjective::new(store, 1, move |_: &Sample| x.square().sum(Kind::Double) * factor.get()).unwrap()
}

#[test]
fn a_rejected_step_restores_every_bit_and_shrinks_the_radius() {
    let (store, factor) = (store::<f64>(), Rc::new(Cell::new(1e6)));
    let mut f = bowl(&store, factor);
    let before = bits(f.parameters().flat());
    let mut method = DeviceStr::start(StrConfig::default(), &f, 10).unwrap();
    method.step(&mut f, &Sample::range(0..1)).unwrap();
    let record = &method.records().unwrap()[0];
    assert_eq!((record.verdict, bits(f.parameters().flat())), (Verdict::Rejected, before));
    assert_eq!(method.state(&f).radius().to_bits(), 4.0_f64.to_bits());
}

#[test]
fn a_trial_that_is_not_finite_is_rejected_and_a_zero_gradient_changes_nothing() {
    let store = store::<f64>();
    let x = store.root().var("x", &[1], nn::Init::Const(1.0));
    // −log(2 − x) rises toward x = 2 and is not defined beyond.
    let mut f =
        TorchObjective::<f64, _>::new(&store, 1, |_: &Sample| (2.0_f64 - &x).log().sum(Kind::Double) * 10.0).unwrap();
    let mut method = DeviceStr::start(StrConfig::default(), &f, 10).unwrap();
    method.step(&mut f, &Sample::range(0..1)).unwrap();
    let record = method.records().unwrap().remove(0);
    let region = record.region.unwrap();
    assert_eq!((record.verdict, region.trial, region.ratio), (Verdict::Rejected, None, None));
    assert_eq!(f.point().to_vec(), [1.0]);

    let flat = common::store::<f64>();
    let factor = Rc::new(Cell::new(0.0));
    let mut f = bowl(&flat, factor);
    let mut method = DeviceStr::start(StrConfig::default(), &f, 10).unwrap();
    method.step(&mut f, &Sample::range(0..1)).unwrap();
    let record = method.records().unwrap().remove(0);
    assert_eq!((record.verdict, record.region.unwrap().exit), (Verdict::Accepted, Exit::Stationary));
    assert_eq!(method.state(&f).radius().to_bits(), 8.0_f64.to_bits());
}

#[test]
fn a_value_that_is_not_finite_freezes_the_point_and_is_an_error_after_the_good_records() {
    let (store, factor) = (store::<f64>(), Rc::new(Cell::new(0.25)));
    let mut f = bowl(&store, factor.clone());
    let mut method = DeviceStr::start(StrConfig::default(), &f, 100).unwrap();
    let sample = Sample::new(vec![0], 1);
    (0..3).for_each(|_| method.step(&mut f, &sample).unwrap());
    let good = bits(f.parameters().flat());
    factor.set(f64::NAN);
    method.step(&mut f, &sample).unwrap();
    factor.set(0.25);
    method.step(&mut f, &sample).unwrap();
    assert_eq!(bits(f.parameters().flat()), good);
    assert_eq!(method.records().unwrap().len(), 3);
    let error = method.records().unwrap_err();
    assert!(matches!(error, Error::NonFiniteValue { step: 3, .. }), "{error}");
    assert!(method.step(&mut f, &sample).is_err());
    assert_eq!(method.state(&f).steps(), 3);
}
