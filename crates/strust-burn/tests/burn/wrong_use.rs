//! Mistakes get an error that says what is wrong and how to fix it.

use crate::models::{Net, Number, device, random};
use burn::{
    module::{Module, Param, ParamGroup},
    nn::{Linear, LinearConfig},
    tensor::{DType, Tensor},
};
use strust_burn::{Error, Optimizer};

/// The error of the first step.
fn error<M: Module>(module: M, loss: impl FnMut(&M) -> Tensor<1>) -> String {
    Optimizer::auto().step(module, loss).expect_err("this is a mistake").to_string()
}

#[test]
fn a_loss_that_is_not_finite_at_the_start() {
    let (device, _alone) = device();
    let error = error(Number::new(-1.0, &device), |number| number.x.val().log());
    assert!(error.starts_with("step 0: the objective is NaN at the current point"), "{error}");
}

#[test]
fn a_loss_of_several_numbers_or_without_a_gradient() {
    let (device, _alone) = device();
    let input = random([3, 4], &device);
    let several = error(Net::new(&device), |net| net.hidden.forward(input.clone()).sum_dim(1).reshape([3]));
    assert!(several.starts_with("the loss has 3 numbers, but must have 1"), "{several}");
    let detached = error(Net::new(&device), |net| net.loss(&input).detach());
    assert!(detached.starts_with("the loss does not depend on the module's parameters"), "{detached}");
    let partly = error(Net::new(&device), |net| net.output.weight.val().square().sum());
    assert!(partly.starts_with("the loss has no gradient for parameter `norm.gamma`"), "{partly}");
}

#[test]
fn a_module_without_anything_to_train() {
    let (device, _alone) = device();
    let plain = device.clone().without_autodiff();
    let on_plain_device = error(Number::new(1.0, &plain), |number| number.x.val());
    assert!(on_plain_device.contains("device.autodiff()"), "{on_plain_device}");
    assert_eq!(error(Number::new(1.0, &device).valid(), |number| number.x.val()), on_plain_device);
    assert_eq!(error(Number::new(1.0, &device).freeze(), |number| number.x.val()), on_plain_device);
}

#[test]
fn a_module_of_another_precision() {
    let (device, _alone) = device();
    let x = Tensor::<1>::from_data([1.0_f64], (&device, DType::F64));
    let wide = Number { x: Param::from_tensor(x) };
    let found = error(wide, |number| number.x.val());
    assert!(found.starts_with("parameter `x` is F64, but the method's vectors are F32"), "{found}");
}

#[test]
fn a_module_of_another_precision_than_the_loaded_state() {
    let (device, _alone) = device();
    let mut optimizer = Optimizer::auto();
    optimizer.step(Number::new(1.0, &device), |number| number.x.val().square()).unwrap();
    let x = Tensor::<1>::from_data([1.0_f64], (&device, DType::F64));
    let wide = Number { x: Param::from_tensor(x) };
    let mut resumed = Optimizer::auto().from_bytes(optimizer.to_bytes().unwrap()).unwrap();
    let found = resumed.step(wide.clone(), |number| number.x.val().square()).unwrap_err();
    assert!(matches!(&found, Error::Kind { expected, .. } if expected == "F32"), "{found}");
    let found = resumed.answer(wide).unwrap_err();
    assert!(matches!(&found, Error::Kind { .. }), "{found}");
}

#[derive(Module, Debug)]
struct Twice {
    a: Linear,
    b: Linear,
}

#[test]
fn a_parameter_at_two_places() {
    let (device, _alone) = device();
    let a = LinearConfig::new(2, 2).init(&device);
    let b = a.clone();
    let found = error(Twice { a, b }, |twice| twice.a.weight.val().sum());
    assert!(found.starts_with("`a.weight` and `b.weight` are the same parameter"), "{found}");
}

#[test]
fn a_module_that_changed_between_steps() {
    let (device, _alone) = device();
    let mut optimizer = Optimizer::auto();
    let loss = |layer: &Linear| layer.forward(Tensor::<2>::ones([1, layer.weight.dims()[0]], &device)).mean();
    let layer = LinearConfig::new(2, 2).init(&device);
    let (layer, _) = optimizer.step(layer, loss).unwrap();
    let wider = LinearConfig::new(3, 2).init(&device);
    let found = optimizer.step(wider, loss).unwrap_err();
    assert!(matches!(found, Error::OtherModule { .. }));
    assert!(found.to_string().contains("`weight` of shape [2, 2] is now `weight` of shape [3, 2]"), "{found}");
    let fewer = LinearConfig::new(2, 2).with_bias(false).init(&device);
    let found = optimizer.step(fewer, loss).unwrap_err();
    assert!(found.to_string().contains("there were 2, and now there are 1"), "{found}");
    let frozen = layer.clone().set_require_grad_group(ParamGroup::from_predicate("bias"), false);
    let found = optimizer.averaged(frozen, [()], |layer, ()| drop(loss(layer))).unwrap_err();
    assert!(matches!(found, Error::OtherModule { .. }), "{found}");
    // The run continues with its own module, also with a batch of another size.
    let (layer, _) = optimizer.step(layer, loss).unwrap();
    optimizer.step(layer, |layer| layer.forward(random([7, 2], &device)).mean()).unwrap();
}

#[test]
fn another_module_of_the_same_shapes_is_refused_but_a_copy_is_not() {
    let (device, _alone) = device();
    let input = random([16, 4], &device);
    let loss = |net: &Net| net.loss(&input);
    let mut optimizer = Optimizer::auto();
    let (first, _) = optimizer.step(Net::new(&device), loss).unwrap();
    let second = Net::new(&device);
    let found = optimizer.step(second.clone(), loss).unwrap_err();
    assert!(found.to_string().contains("but Burn's ids, which `clone` and `load_file` keep, are not"), "{found}");
    let found = optimizer.answer(second.clone()).unwrap_err();
    assert!(matches!(found, Error::OtherModule { .. }), "{found}");
    optimizer.step(second.clone().load_record(first.into_record()), loss).unwrap();

    // A loaded state belongs to the module of the next step.
    let mut resumed = Optimizer::auto().from_bytes(optimizer.to_bytes().unwrap()).unwrap();
    resumed.step(second, loss).unwrap();
    let found = resumed.step(Net::new(&device), loss).unwrap_err();
    assert!(matches!(found, Error::OtherModule { .. }), "{found}");
}
