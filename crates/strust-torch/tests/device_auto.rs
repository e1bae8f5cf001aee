//! Auto on the device makes the same steps as the library's Auto.

#![allow(clippy::cast_possible_wrap)]

mod common;

use common::{TERMS, bits, gpu, indices, steep_problem, store, waves};
use std::{cell::Cell, rc::Rc};
use strust::{
    methods::{AutoParts, Learned},
    prelude::*,
    radius::Verdict,
    samplers::Sampler,
};
use strust_torch::{BatchLoss, Component, DeviceAuto, DeviceMethod, Flat, TorchObjective, cuda};
use tch::{Device, Kind, Tensor, nn};

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

fn assert_near<T: Component>(what: &str, a: &Flat<T>, b: &Flat<T>, tolerance: f64) {
    let mut difference = a.clone();
    difference.add(-1.0, b);
    assert!(difference.norm() <= tolerance * b.norm(), "{what} in {}: {} of {}", T::NAME, difference.norm(), b.norm());
}

/// Runs the library's method on f and the device's method on g, which is the same function.
fn the_same_steps<T: Component, L: BatchLoss, M: BatchLoss>(
    f: &mut TorchObjective<T, L>,
    g: &mut TorchObjective<T, M>,
    config: AutoConfig,
    steps: u64,
    tolerance: f64,
) {
    let mut library = Auto::new(config.clone()).unwrap();
    let start = f.point();
    let mut state = library.init(f, start).unwrap();
    let mut device = DeviceAuto::start(config, g, 64).unwrap();
    let mut sampler = Epochs::new(TERMS, 16, 7).unwrap();
    let mut sample = Sample::default();
    let mut expected = Vec::new();
    for k in 0..steps {
        sampler.draw(k, &mut sample);
        expected.push(library.step(f, &mut state, &sample).unwrap());
        device.step(g, &sample).unwrap();
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
    let (on_device, state) = (device.state(g), state.parts());
    let AutoParts { x, z, start, gradient, root, learned, k } = on_device.parts();
    assert_eq!((k, learned.accepted()), (state.k, state.learned.accepted()));
    let host = |v: &Flat<T>| v.to_device(Device::Cpu);
    let [x, z, start, gradient, root] = [x, z, start, gradient, root].map(host);
    assert_near("x", &x, state.x, tolerance);
    assert_near("z", &z, state.z, tolerance);
    assert_near("start", &start, state.start, tolerance);
    assert_near("gradient", &gradient, state.gradient, tolerance);
    assert_near("root", &root, state.root, tolerance);
    assert!([learned, state.learned].iter().all(|l| l.curvature().is_some() && l.size().is_some()));
    // All but the number of accepted steps, which is compared above, and the flag at the end.
    let numbers = |l: &Learned| l.numbers()[1..10].to_vec();
    for (i, (d, l)) in numbers(&learned).into_iter().zip(numbers(&state.learned)).enumerate() {
        assert!(near(d, l, 100.0 * tolerance), "number {i}: {d} against {l}");
    }
}

#[test]
fn sizes_verdicts_and_values_equal_those_of_the_librarys_method() {
    for weight_decay in [0.0, 0.1] {
        let (one, other) = (store::<f64>(), store::<f64>());
        let [mut f, mut g] = [&one, &other].map(|store| steep_problem::<f64>(store, 0.2, 0.2, 10.0));
        the_same_steps(&mut f, &mut g, AutoConfig { weight_decay, ..Default::default() }, 200, 1e-8);
    }
    let (one, other) = (store::<f32>(), store::<f32>());
    let [mut f, mut g] = [&one, &other].map(|store| curved::<f32>(store, Device::Cpu));
    the_same_steps(&mut f, &mut g, AutoConfig::default(), 40, 1e-3);
}

#[test]
#[ignore = "needs a GPU"]
fn the_kernels_make_the_steps_of_the_librarys_method() {
    fn check<T: Component>(device: Device, weight_decay: f64, steps: u64, tolerance: f64) {
        let (one, mut other) = (store::<T>(), store::<T>());
        other.set_device(device);
        let (mut f, mut g) = (curved::<T>(&one, Device::Cpu), curved::<T>(&other, device));
        the_same_steps(&mut f, &mut g, AutoConfig { weight_decay, ..Default::default() }, steps, tolerance);
    }
    let (device, _alone) = gpu();
    check::<f64>(device, 0.0, 200, 1e-8);
    check::<f64>(device, 0.1, 200, 1e-8);
    check::<f32>(device, 0.0, 40, 1e-3);
    assert_eq!(cuda::take_warnings(), [""; 0]);
}

/// A nonlinear least-squares problem with noise: more parameters than threads in one block of a kernel, and not a
/// multiple of them.
fn curved<T: Component>(store: &nn::VarStore, device: Device) -> TorchObjective<T, impl FnMut(&Sample) -> Tensor> {
    let width = 1003;
    let x = nn::VarStore::root(store).var("x", &[width], nn::Init::Const(0.0));
    let matrix = waves(&[TERMS as i64, width], 0.3, T::KIND).to_device(device);
    let target = waves(&[TERMS as i64], 1.7, T::KIND).to_device(device);
    TorchObjective::new(store, TERMS, move |sample: &Sample| {
        let index = indices(sample).to_device(device);
        let seen = matrix.index_select(0, &index).mv(&x);
        (seen.tanh() + seen * 0.1 - target.index_select(0, &index)).square().mean(T::KIND)
    })
    .unwrap()
}

/// ‖x‖² times a factor that a test can change between evaluations.
fn bowl(store: &nn::VarStore, factor: Rc<Cell<f64>>) -> TorchObjective<f64, impl FnMut(&Sample) -> tch::Tensor> {
    let x = store.root().var("x", &[3], nn::Init::Const(1.0));
    TorchObjective::new(store, 1, move |_: &Sample| x.square().sum(Kind::Double) * factor.get()).unwrap()
}

#[test]
fn a_resumed_run_equals_an_uninterrupted_run_bit_for_bit() {
    resumed_on(Device::Cpu);
}

#[test]
#[ignore = "needs a GPU"]
fn a_resumed_run_with_kernels_equals_an_uninterrupted_run_bit_for_bit() {
    let (device, _alone) = gpu();
    resumed_on(device);
}

fn resumed_on(device: Device) {
    let sample = Sample::new(vec![0], 1);
    let run = |cut: Option<usize>| {
        let mut store = store::<f64>();
        store.set_device(device);
        let mut f = bowl(&store, Rc::new(Cell::new(0.3)));
        let mut method = DeviceAuto::start(AutoConfig::default(), &f, 10).unwrap();
        for k in 0..30 {
            if cut == Some(k) {
                let state = method.state(&f);
                f.set(state.parts().start);
                method = DeviceAuto::resume(AutoConfig::default(), &mut f, &state, 10).unwrap();
            }
            method.step(&mut f, &sample).unwrap();
        }
        let state = method.state(&f);
        (bits(state.parts().x), bits(state.parts().z), bits(f.parameters().flat()), *state.learned())
    };
    assert_eq!(run(None), run(Some(13)));
}

#[test]
fn one_value_that_is_not_finite_moves_z_to_the_average_and_two_are_an_error() {
    not_finite_on(Device::Cpu);
}

#[test]
#[ignore = "needs a GPU"]
fn the_kernels_too_move_z_to_the_average_once() {
    let (device, _alone) = gpu();
    not_finite_on(device);
}

fn not_finite_on(device: Device) {
    let (mut store, factor) = (store::<f64>(), Rc::new(Cell::new(0.25)));
    store.set_device(device);
    let mut f = bowl(&store, factor.clone());
    let mut method = DeviceAuto::start(AutoConfig::default(), &f, 100).unwrap();
    let sample = Sample::new(vec![0], 1);
    (0..9).for_each(|_| method.step(&mut f, &sample).unwrap());
    let state_before = method.state(&f);
    let before = state_before.parts();
    assert_ne!(bits(before.x), bits(before.z));
    factor.set(f64::NAN);
    method.step(&mut f, &sample).unwrap();
    let state_after = method.state(&f);
    let after = state_after.parts();
    assert_eq!((bits(after.x), bits(after.z)), (bits(before.x), bits(before.x)));
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
    assert_eq!(method.state(&f).steps(), 12);
}
