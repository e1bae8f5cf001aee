//! STR with curvature on the device makes the same steps as the library's method.

mod common;

use common::{TERMS, bits, steep_problem, store};
use std::{cell::Cell, rc::Rc};
use strust::{
    methods::{StrNewton, StrNewtonConfig},
    models::Exit,
    prelude::*,
    radius::Verdict,
    samplers::Sampler,
};
use strust_torch::{Component, DeviceMethod, DeviceNewton, TorchObjective};
use tch::{Kind, nn};

fn config(products: u64) -> StrNewtonConfig {
    StrNewtonConfig { products, at_boundary: 0, retreats: 0, forcing: 0.5, ..Default::default() }
}

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
    assert!(library.evaluations.products <= device.evaluations.products);
}

/// Makes steps with dropout, batch-norm and noise, to boundaries and inside. Returns how many were rejected, and how many
/// used fewer products than allowed.
fn the_same_steps<T: Component>(gauss_newton: bool, products: u64, steps: u64, tolerance: f64) -> [usize; 2] {
    let (one, other) = (store::<T>(), store::<T>());
    let (mut f, mut g) = (steep_problem::<T>(&one, 0.2, 0.2, 10.0), steep_problem::<T>(&other, 0.2, 0.2, 10.0));
    let make = if gauss_newton { StrNewton::gauss_newton } else { StrNewton::new };
    let mut library = make(config(products)).unwrap();
    let start = f.point();
    let mut state = library.init(&mut f, start).unwrap();
    let mut device = DeviceNewton::start(config(products), &g, 64).unwrap();
    if gauss_newton {
        device = device.gauss_newton();
    }
    let mut sampler = Epochs::new(TERMS, 16, 7).unwrap();
    let (mut sample, mut records) = (Sample::default(), Vec::new());
    for k in 0..steps {
        sampler.draw(k, &mut sample);
        records.push(library.step(&mut f, &mut state, &sample).unwrap());
        device.step(&mut g, &sample).unwrap();
    }
    let seen = device.records().unwrap();
    assert_eq!(seen.len(), steps as usize);
    seen.iter().zip(&records).for_each(|(d, l)| assert_same(d, l, tolerance));
    let count = |condition: &dyn Fn(&StepRecord) -> bool| records.iter().filter(|record| condition(record)).count();
    let inside = count(&|record| record.region.as_ref().unwrap().exit == Exit::Interior);
    assert!(inside > 0 && inside < steps as usize, "{inside} of {steps} steps end inside");
    assert!(seen.iter().all(|record| record.evaluations.products == products));
    let end = device.state(&g);
    assert!(near(end.radius(), state.radius(), tolerance) && end.steps() == steps);
    assert!(near(end.memory().largest_gradient(), state.memory().largest_gradient(), tolerance));
    let mut difference = end.point().clone();
    difference.add(-1.0, state.point());
    assert!(difference.norm() <= tolerance * state.point().norm());
    // The running statistics agree too.
    let mut difference = g.parameters().buffers().clone();
    difference.add(-1.0, f.parameters().buffers());
    assert!(difference.norm() <= tolerance * f.parameters().buffers().norm());
    [count(&|r| r.verdict == Verdict::Rejected), count(&|r| r.evaluations.products < products)]
}

#[test]
fn radii_verdicts_and_values_equal_those_of_the_librarys_method() {
    let [rejected, early] = the_same_steps::<f64>(false, 6, 60, 1e-6);
    assert!(rejected > 3 && early > 30, "{rejected} rejected, {early} end early");
    let [_, early] = the_same_steps::<f64>(true, 6, 60, 1e-6);
    assert!(early > 30, "{early} end early");
    // Here many steps use all products.
    let [_, early] = the_same_steps::<f64>(false, 1, 60, 1e-6);
    assert_eq!(early, 0);
    the_same_steps::<f64>(true, 2, 60, 1e-6);
    the_same_steps::<f32>(false, 6, 15, 1e-2);
}

#[test]
fn a_resumed_run_continues_with_the_radius_and_the_tolerance() {
    let run = |first: u64, last: u64, state: Option<_>| {
        let store = store::<f64>();
        let mut f = steep_problem::<f64>(&store, 0.0, 0.0, 10.0);
        let mut method = match state {
            Some(state) => DeviceNewton::resume(config(6), &mut f, &state, 10).unwrap(),
            None => DeviceNewton::start(config(6), &f, 10).unwrap(),
        };
        let (mut sampler, mut sample) = (Epochs::new(TERMS, 16, 7).unwrap(), Sample::default());
        for k in first..last {
            sampler.draw(k, &mut sample);
            method.step(&mut f, &sample).unwrap();
        }
        method.state(&f)
    };
    let (whole, half) = (run(0, 20, None), run(0, 10, None));
    let resumed = run(10, 20, Some(half));
    assert_eq!((bits(resumed.point()), resumed.steps(), resumed.memory()), (bits(whole.point()), 20, whole.memory()));
    assert_eq!(resumed.radius().to_bits(), whole.radius().to_bits());
}

/// x ↦ factor·Σcosh x with a factor that a test can change between evaluations.
fn bowl(store: &nn::VarStore, factor: Rc<Cell<f64>>) -> TorchObjective<f64, impl FnMut(&Sample) -> tch::Tensor> {
    let x = store.root().var("x", &[3], nn::Init::Const(1.0));
    TorchObjective::new(store, 1, move |_: &Sample| x.cosh().sum(Kind::Double) * factor.get()).unwrap()
}

#[test]
fn a_zero_gradient_changes_nothing_and_a_value_that_is_not_finite_freezes_the_point() {
    let (store, factor) = (store::<f64>(), Rc::new(Cell::new(0.0)));
    let mut f = bowl(&store, factor.clone());
    let mut method = DeviceNewton::start(config(6), &f, 10).unwrap();
    let sample = Sample::new(vec![0], 1);
    method.step(&mut f, &sample).unwrap();
    let record = method.records().unwrap().remove(0);
    assert_eq!((record.verdict, record.region.unwrap().exit), (Verdict::Accepted, Exit::Stationary));
    assert_eq!(f.point().to_vec(), [1.0; 3]);
    factor.set(f64::NAN);
    method.step(&mut f, &sample).unwrap();
    factor.set(1.0);
    method.step(&mut f, &sample).unwrap();
    assert_eq!(f.point().to_vec(), [1.0; 3]);
    let error = method.records().unwrap_err();
    assert!(matches!(error, Error::NonFiniteValue { step: 1, .. }), "{error}");
}

#[test]
fn a_first_product_that_is_not_finite_freezes_the_point_and_is_an_error() {
    let store = store::<f64>();
    let x = store.root().var("x", &[2], nn::Init::Const(0.0));
    // x^1.5 has the slope 0 and an infinite second derivative at 0; the other part makes the gradient nonzero.
    let loss = move |_: &Sample| x.pow_tensor_scalar(1.5).sum(Kind::Double) + x.sum(Kind::Double);
    let mut f = TorchObjective::<f64, _>::new(&store, 1, loss).unwrap();
    let mut method = DeviceNewton::start(config(6), &f, 10).unwrap();
    method.step(&mut f, &Sample::range(0..1)).unwrap();
    assert!(method.records().unwrap_or_default().is_empty());
    assert_eq!(f.point().to_vec(), [0.0; 2]);
    assert!(matches!(method.records().unwrap_err(), Error::NonFiniteCurvature { step: 0, .. }));
}
