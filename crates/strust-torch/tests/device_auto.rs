//! Auto on the device makes the same steps as the library's Auto.

mod common;

use common::{TERMS, bits, steep_problem, store};
use std::{cell::Cell, rc::Rc};
use strust::{methods::AutoState, prelude::*};
use strust_torch::{Component, DeviceAuto, DeviceMethod, Flat, TorchObjective};
use tch::{Kind, nn};

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

fn assert_near<T: Component>(what: &str, a: &Flat<T>, b: &Flat<T>, tolerance: f64) {
    let mut difference = a.clone();
    difference.add(-1.0, b);
    assert!(difference.norm() <= tolerance * b.norm(), "{what} in {}: {} of {}", T::NAME, difference.norm(), b.norm());
}

fn the_same_steps<T: Component>(steps: u64, tolerance: f64) {
    let (one, other) = (store::<T>(), store::<T>());
    let (mut f, mut g) = (steep_problem::<T>(&one, 0.2, 0.2, 10.0), steep_problem::<T>(&other, 0.2, 0.2, 10.0));
    let mut library = Auto::default();
    let start = f.point();
    let mut state = library.init(&mut f, start).unwrap();
    let mut device = DeviceAuto::start(AutoConfig::default(), &g, 64).unwrap();
    let mut sampler = Epochs::new(TERMS, 16, 7).unwrap();
    let mut sample = Sample::default();
    let mut expected = Vec::new();
    for k in 0..steps {
        sampler.draw(k, &mut sample);
        expected.push(library.step(&mut f, &mut state, &sample).unwrap());
        device.step(&mut g, &sample).unwrap();
    }
    let seen = device.records().unwrap();
    assert_eq!(seen.len(), expected.len());
    for (d, l) in seen.iter().zip(&expected) {
        assert_eq!((d.k, d.verdict, d.evaluations), (l.k, l.verdict, l.evaluations));
        let pairs = [d.value, d.gradient_norm, d.step_size, d.step_length].into_iter().zip([
            l.value,
            l.gradient_norm,
            l.step_size,
            l.step_length,
        ]);
        for (i, (d, l)) in pairs.enumerate() {
            assert!(near(d, l, tolerance), "step {}, number {i}: {d} against {l}", expected[0].k);
        }
    }
    let AutoState { x, z, start, gradient, root, learned, k } = device.state(&g);
    assert_eq!((k, learned.accepted), (state.k, state.learned.accepted));
    if T::NAME == "f32" {
        // The bias before batch-norm has no effect. Its gradient is only rounding errors, which the metric enlarges.
        return;
    }
    assert_near("x", &x, &state.x, tolerance);
    assert_near("z", &z, &state.z, tolerance);
    assert_near("start", &start, &state.start, tolerance);
    assert_near("gradient", &gradient, &state.gradient, tolerance);
    assert_near("root", &root, &state.root, tolerance);
    assert!(near(learned.curvature.unwrap(), state.learned.curvature.unwrap(), tolerance));
    assert!(near(learned.noise, state.learned.noise, tolerance));
    assert!(near(learned.remembered, state.learned.remembered, tolerance));
}

#[test]
fn sizes_verdicts_and_values_equal_those_of_the_librarys_method() {
    the_same_steps::<f64>(200, 1e-8);
    the_same_steps::<f32>(40, 1e-3);
}

/// ‖x‖² times a factor that a test can change between evaluations.
fn bowl(store: &nn::VarStore, factor: Rc<Cell<f64>>) -> TorchObjective<f64, impl FnMut(&Sample) -> tch::Tensor> {
    let x = store.root().var("x", &[3], nn::Init::Const(1.0));
    TorchObjective::new(store, 1, move |_: &Sample| x.square().sum(Kind::Double) * factor.get()).unwrap()
}

#[test]
fn a_resumed_run_equals_an_uninterrupted_run_bit_for_bit() {
    let sample = Sample::new(vec![0], 1);
    let run = |cut: Option<usize>| {
        let store = store::<f64>();
        let mut f = bowl(&store, Rc::new(Cell::new(0.3)));
        let mut method = DeviceAuto::start(AutoConfig::default(), &f, 10).unwrap();
        for k in 0..30 {
            if cut == Some(k) {
                let state = method.state(&f);
                f.set(&state.start);
                method = DeviceAuto::resume(AutoConfig::default(), &mut f, &state, 10).unwrap();
            }
            method.step(&mut f, &sample).unwrap();
        }
        let state = method.state(&f);
        (bits(&state.x), bits(&state.z), bits(f.parameters().flat()), state.learned)
    };
    assert_eq!(run(None), run(Some(13)));
}

#[test]
fn one_value_that_is_not_finite_moves_z_to_the_average_and_two_are_an_error() {
    let (store, factor) = (store::<f64>(), Rc::new(Cell::new(0.25)));
    let mut f = bowl(&store, factor.clone());
    let mut method = DeviceAuto::start(AutoConfig::default(), &f, 100).unwrap();
    let sample = Sample::new(vec![0], 1);
    (0..9).for_each(|_| method.step(&mut f, &sample).unwrap());
    let before = method.state(&f);
    assert_ne!(bits(&before.x), bits(&before.z));
    factor.set(f64::NAN);
    method.step(&mut f, &sample).unwrap();
    let after = method.state(&f);
    assert_eq!((bits(&after.x), bits(&after.z)), (bits(&before.x), bits(&before.x)));
    assert_eq!(method.records().unwrap().pop().unwrap().verdict, Verdict::Rejected);
    factor.set(0.25);
    method.step(&mut f, &sample).unwrap();
    assert_eq!(method.records().unwrap().len(), 1);

    factor.set(f64::NAN);
    method.step(&mut f, &sample).unwrap();
    method.step(&mut f, &sample).unwrap();
    assert_eq!(method.records().unwrap().len(), 1);
    let error = method.records().unwrap_err();
    assert!(matches!(error, Error::NonFiniteValue { step: 12, .. }), "{error}");
    assert_eq!(method.state(&f).k, 12);
}
