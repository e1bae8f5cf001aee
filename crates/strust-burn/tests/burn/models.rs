//! Layers that draw numbers or keep statistics, frozen parameters, groups.

use burn::{
    module::{Module, Param, ParamGroup, RunningState},
    nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Linear, LinearConfig},
    tensor::{DType, Device, Distribution, Tensor},
};
use std::{
    cell::RefCell,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use strust::{methods::StrNewton, prelude::*};
use strust_burn::{Error, Optimizer, Parameters};

/// Burn has one generator for all threads, and a step seeds it.
static GENERATOR: Mutex<()> = Mutex::new(());

/// A seeded device with autodiff, alone.
pub fn device() -> (Device, MutexGuard<'static, ()>) {
    let alone = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    let device = Device::flex().autodiff();
    device.seed(3);
    (device, alone)
}

pub fn random<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.5, 1.0), device)
}

/// The components of a tensor.
pub fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

#[derive(Module, Debug)]
pub struct Net {
    pub norm: BatchNorm,
    pub hidden: Linear,
    pub dropout: Dropout,
    pub output: Linear,
}

impl Net {
    pub fn new(device: &Device) -> Self {
        Self {
            norm: BatchNormConfig::new(4).init(device),
            hidden: LinearConfig::new(4, 6).init(device),
            dropout: DropoutConfig::new(0.3).init(),
            output: LinearConfig::new(6, 1).init(device),
        }
    }
    pub fn loss(&self, input: &Tensor<2>) -> Tensor<1> {
        let hidden = self.hidden.forward(self.norm.forward(input.clone())).tanh();
        let error = self.output.forward(self.dropout.forward(hidden)) - input.clone().sum_dim(1);
        error.square().mean()
    }
    pub fn mean(&self) -> Vec<f32> {
        numbers(self.valid().norm.running_mean.value())
    }
}

pub fn near(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs().max(1.0))
}

#[test]
fn both_evaluations_of_a_step_draw_the_same_mask_and_the_next_step_another_one() {
    let (device, _alone) = device();
    let (mut net, input) = (Net::new(&device), random([8, 4], &device));
    let masks = RefCell::new(Vec::new());
    let mut optimizer = Optimizer::auto();
    for _ in 0..3 {
        let loss = |net: &Net| {
            masks.borrow_mut().push(numbers(net.dropout.forward(Tensor::<1>::ones([64], &input.device()))));
            net.loss(&input)
        };
        (net, _) = optimizer.step(net, loss).unwrap();
    }
    let masks = masks.into_inner();
    assert_eq!(masks.len(), 6);
    for step in masks.chunks(2) {
        assert_eq!(step[0], step[1]);
        assert!(step[0].contains(&0.0) && step[0].iter().any(|&kept| kept > 1.0), "a mask of training");
    }
    assert!(masks[0] != masks[2] && masks[2] != masks[4]);
}

#[test]
fn a_trial_records_no_graph() {
    let (device, _alone) = device();
    let (net, input) = (Net::new(&device), random([8, 4], &device));
    let mut tracked = Vec::new();
    let loss = |net: &Net| {
        let loss = net.loss(&input);
        tracked.push(loss.is_tracked());
        loss
    };
    Optimizer::auto().step(net, loss).unwrap();
    assert_eq!(tracked, [true, false]);
}

#[test]
fn running_statistics_move_once_a_step() {
    let (device, _alone) = device();
    let (mut net, input) = (Net::new(&device), random([32, 4], &device));
    let mean = numbers(input.clone().mean_dim(0));
    let mut optimizer = Optimizer::auto();
    for k in 1..=5 {
        (net, _) = optimizer.step(net, |net| net.loss(&input)).unwrap();
        let share = 1.0 - 0.9_f32.powi(k);
        let expected: Vec<f32> = mean.iter().map(|mean| share * mean).collect();
        assert!(near(&net.mean(), &expected), "after {k} steps: {:?} and not {expected:?}", net.mean());
    }
}

#[test]
fn running_statistics_move_once_in_a_step_with_several_gradients() {
    let (device, _alone) = device();
    let (mut net, input) = (Net::new(&device), random([32, 4], &device));
    let mean = numbers(input.clone().mean_dim(0));
    let gradients = RefCell::new(0);
    let mut optimizer = Optimizer::<Vec<f32>>::new(StrNewton::default());
    let loss = |net: &Net| {
        *gradients.borrow_mut() += u32::from(net.hidden.weight.val().is_require_grad());
        net.loss(&input)
    };
    (net, _) = optimizer.step(net, loss).unwrap();
    assert!(gradients.into_inner() > 1);
    let expected: Vec<f32> = mean.iter().map(|mean| 0.1 * mean).collect();
    assert!(near(&net.mean(), &expected), "{:?} and not {expected:?}", net.mean());
}

#[test]
fn steps_keep_gradient_checkpointing() {
    let (_, _alone) = device();
    let device = Device::flex().autodiff().gradient_checkpointing();
    let (mut net, input) = (Net::new(&device), random([32, 4], &device));
    for _ in 0..3 {
        (net, _) = Optimizer::auto().step(net, |net| net.loss(&input)).unwrap();
    }
    let answer = Optimizer::auto().averaged(net.clone(), [&input], |net, input| drop(net.loss(input))).unwrap();
    for net in [net, answer] {
        let own = net.hidden.weight.val().gradient_checkpointing_strategy();
        assert_eq!(own, device.gradient_checkpointing_strategy());
    }
}

#[test]
fn a_loss_may_be_in_another_precision() {
    let (device, _alone) = device();
    let (net, input) = (Net::new(&device), random([32, 4], &device));
    let (_, expected) = Optimizer::auto().step(net.clone(), |net| net.loss(&input)).unwrap();
    let (_, found) = Optimizer::auto().step(net, |net| net.loss(&input).cast(DType::F64)).unwrap();
    assert_eq!(found.to_bits(), expected.to_bits());
}

#[test]
fn an_average_gets_the_mean_of_the_statistics_of_its_batches() {
    let (device, _alone) = device();
    let mut net = Net::new(&device);
    let batches: Vec<Tensor<2>> = (0..4).map(|k| random([16, 4], &device) + f64::from(k)).collect();
    let mut optimizer = Optimizer::auto();
    for batch in &batches {
        (net, _) = optimizer.step(net, |net| net.loss(batch)).unwrap();
    }
    let before = Parameters::of(&net).unwrap().vector::<Vec<f32>, _>(&net).unwrap();
    let answer = optimizer.averaged(net, &batches, |net, batch| drop(net.loss(batch))).unwrap();
    let means: Vec<Vec<f32>> = batches.iter().map(|batch| numbers(batch.clone().mean_dim(0))).collect();
    let expected: Vec<f32> = (0..4).map(|j| means.iter().map(|mean| mean[j]).sum::<f32>() / 4.0).collect();
    assert!(near(&answer.mean(), &expected), "{:?} and not {expected:?}", answer.mean());
    let after = Parameters::of(&answer).unwrap().vector::<Vec<f32>, _>(&answer).unwrap();
    assert_eq!(before, after, "the parameters stay");
}

#[test]
fn an_average_leaves_the_statistics_of_clones() {
    let (device, _alone) = device();
    let (net, input) = (Net::new(&device), random([32, 4], &device));
    let mut optimizer = Optimizer::auto();
    let (net, _) = optimizer.step(net, |net| net.loss(&input)).unwrap();
    let before = net.mean();
    let answer = optimizer.averaged(net.clone(), [&input], |net, input| drop(net.loss(input))).unwrap();
    assert_eq!(net.mean(), before);
    assert!(!near(&answer.mean(), &before));
}

#[test]
fn an_average_without_statistics_takes_no_batch() {
    let (device, _alone) = device();
    let batches = std::iter::from_fn(|| -> Option<()> { panic!("a batch was taken") });
    Optimizer::auto().averaged(Number::new(1.0, &device), batches, |_, ()| ()).unwrap();
}

/// Counts its evaluations.
#[derive(Module, Debug)]
struct Counter {
    number: Number,
    count: RunningState<Tensor<1>>,
}

#[test]
fn a_statistic_that_is_not_a_moving_average_is_refused() {
    let (device, _alone) = device();
    let counter = Counter { number: Number::new(1.0, &device), count: RunningState::new(Tensor::zeros([1], &device)) };
    let count = |counter: &Counter| counter.count.update(counter.count.value_sync() + 1.0);
    let error = Optimizer::auto().averaged(counter.clone(), [()], |counter, ()| count(counter)).unwrap_err();
    assert!(matches!(error, Error::NotAnAverage), "{error}");
    assert_eq!(numbers(counter.count.value_sync()), [0.0]);
}

#[test]
fn frozen_parameters_stay_and_the_module_can_still_be_trained() {
    let (device, _alone) = device();
    let input = random([16, 4], &device);
    let mut net = Net::new(&device).set_require_grad_group(ParamGroup::from_predicate("hidden"), false);
    let (weight, bias) = (numbers(net.hidden.weight.val()), numbers(net.output.bias.as_ref().unwrap().val()));
    assert!(Parameters::of(&net).unwrap().slots().iter().all(|slot| !slot.name.starts_with("hidden")));
    let mut optimizer = Optimizer::auto();
    for _ in 0..5 {
        (net, _) = optimizer.step(net, |net| net.loss(&input)).unwrap();
    }
    assert_eq!(numbers(net.hidden.weight.val()), weight);
    assert_ne!(numbers(net.output.bias.as_ref().unwrap().val()), bias);
    assert!(net.output.weight.is_require_grad() && !net.hidden.weight.is_require_grad());
    let net = optimizer.averaged(net, [&input], |net, input| drop(net.loss(input))).unwrap();
    assert_eq!(numbers(net.hidden.weight.val()), weight);
}

#[test]
fn groups_have_their_own_weight_decay() {
    let (device, _alone) = device();
    let input = random([16, 4], &device);
    let net = Net::new(&device);
    let parameters = Parameters::of(&net).unwrap();
    let run = |decay: f64| {
        let decays: Vec<f32> = parameters.filled(|name| if name == "output.weight" { decay } else { 0.0 });
        let mut optimizer = Optimizer::new(Auto::default().weight_decays(decays).unwrap());
        let mut net = net.clone();
        for _ in 0..60 {
            (net, _) = optimizer.step(net, |net| net.loss(&input)).unwrap();
        }
        net.output.weight.val().square().sum().into_scalar::<f64>()
    };
    let (free, decayed) = (run(0.0), run(1.0));
    assert!(decayed < 0.5 * free, "{decayed} and {free}");
}

#[test]
fn observers_get_every_record() {
    let (device, _alone) = device();
    let (mut net, input) = (Net::new(&device), random([16, 4], &device));
    let records = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&records);
    let mut optimizer = Optimizer::auto().observe(move |record| seen.lock().unwrap().push(record.clone()));
    for k in 0..4 {
        let loss;
        (net, loss) = optimizer.step(net, |net| net.loss(&input)).unwrap();
        let records = records.lock().unwrap();
        assert_eq!((records.len(), records[k].k, records[k].value), (k + 1, k as u64, loss));
    }
    assert_eq!(optimizer.steps(), 4);
}

/// A parameter of one number.
#[derive(Module, Debug)]
pub struct Number {
    pub x: Param<Tensor<1>>,
}

impl Number {
    pub fn new(x: f32, device: &Device) -> Self {
        Self { x: Param::from_tensor(Tensor::from_floats([x], device)) }
    }
}

#[derive(Module, Debug)]
struct WithEmpty {
    before: Number,
    empty: Param<Tensor<2>>,
    after: Number,
}

#[test]
fn a_parameter_without_components_stays_between_the_others() {
    let (device, _alone) = device();
    let empty = || Param::from_tensor(Tensor::zeros([0, 3], &device));
    let mut module = WithEmpty { before: Number::new(1.0, &device), empty: empty(), after: Number::new(2.0, &device) };
    let mut optimizer = Optimizer::auto();
    for _ in 0..100 {
        let loss = |module: &WithEmpty| {
            module.before.x.val().square() + (module.after.x.val() - 1.0).square() + module.empty.val().sum()
        };
        (module, _) = optimizer.step(module, loss).unwrap();
    }
    assert_eq!(module.empty.dims(), [0, 3]);
    let [before, after] = [module.before, module.after].map(|number| numbers(number.x.val())[0]);
    assert!(before.abs() < 1e-3 && (after - 1.0).abs() < 1e-3, "{before} and {after}");
}

#[test]
fn a_trial_that_is_not_finite_is_rejected() {
    let (device, _alone) = device();
    let mut number = Number::new(1.0, &device);
    let calls = RefCell::new(0);
    let records = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&records);
    let mut optimizer = Optimizer::auto().observe(move |record| seen.lock().unwrap().push(record.verdict));
    for _ in 0..6 {
        let loss = |number: &Number| {
            *calls.borrow_mut() += 1;
            let square = number.x.val().square();
            if *calls.borrow() == 2 { square * f64::NAN } else { square }
        };
        (number, _) = optimizer.step(number, loss).unwrap();
    }
    let verdicts = records.lock().unwrap();
    assert_eq!(verdicts[0], strust::radius::Verdict::Rejected);
    assert!(verdicts[1..].contains(&strust::radius::Verdict::Accepted));
    assert!(numbers(number.x.val())[0] < 1.0);
}
