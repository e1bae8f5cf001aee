//! Constraints on parameters by name.

use crate::models::{device, random};
use burn::{
    module::Module,
    nn::{Linear, LinearConfig, conv::Conv2dConfig},
    tensor::{Device, Tensor},
};
use strust::{constraints::both, prelude::*};
use strust_burn::{Error, Optimizer, Parameters};

#[derive(Module, Debug)]
struct Net {
    first: Linear,
    second: Linear,
}

impl Net {
    fn new(device: &Device) -> Self {
        Self { first: LinearConfig::new(6, 4).init(device), second: LinearConfig::new(4, 4).init(device) }
    }
    fn loss(&self, input: &Tensor<2>) -> Tensor<1> {
        (self.second.forward(self.first.forward(input.clone()).tanh()) - 1.0).square().mean()
    }
}

/// ‖WᵀW − I‖ along the shorter side.
fn distance(weight: Tensor<2>) -> f64 {
    let [rows, columns] = weight.dims();
    let weight = if rows < columns { weight.transpose() } else { weight };
    let gram = weight.clone().transpose().matmul(weight);
    let eye = Tensor::eye(rows.min(columns), &gram.device());
    (gram - eye).square().sum().into_scalar::<f64>().sqrt()
}

#[test]
fn weights_become_and_stay_orthonormal() {
    let (device, _alone) = device();
    let (mut net, input) = (Net::new(&device), random([32, 6], &device));
    let parameters = Parameters::of(&net).unwrap();
    let constraint = parameters.orthonormal::<f32>(&["first.weight", "second.weight"]).unwrap();
    let mut optimizer = Optimizer::<Vec<f32>>::new(StrSqp::new(StrSqpConfig::default(), constraint).unwrap());
    let (mut first, mut loss) = (None, f64::NAN);
    for k in 0..200 {
        (net, loss) = optimizer.step(net, |net| net.loss(&input)).unwrap();
        first.get_or_insert(loss);
        if k >= 30 {
            let distances = [distance(net.first.weight.val()), distance(net.second.weight.val())];
            assert!(distances.iter().all(|&d| d < 1e-3), "step {k}: {distances:?}");
        }
    }
    assert!(loss < 0.5 * first.unwrap(), "{loss} and {first:?}");
}

#[test]
fn a_norm_and_a_linear_condition_hold_together() {
    let (device, _alone) = device();
    let (mut net, input) = (Net::new(&device), random([32, 6], &device));
    let parameters = Parameters::of(&net).unwrap();
    let norm = parameters.unit_norm::<f32>(&["first.bias"]).unwrap();
    let sum = parameters.linear::<f32>("second.bias", &[1.0; 4], 2.0).unwrap();
    let method = StrSqp::new(StrSqpConfig::default(), both(norm, sum).unwrap()).unwrap();
    let mut optimizer = Optimizer::<Vec<f32>>::new(method);
    for _ in 0..200 {
        (net, _) = optimizer.step(net, |net| net.loss(&input)).unwrap();
    }
    let bias = |layer: &Linear| layer.bias.as_ref().unwrap().val();
    let square: f64 = bias(&net.first).square().sum().into_scalar();
    let sum: f64 = bias(&net.second).sum().into_scalar();
    assert!((square - 1.0).abs() < 1e-4 && (sum - 2.0).abs() < 1e-4, "{square} and {sum}");
}

#[test]
fn a_convolution_is_a_matrix_with_a_row_for_each_output() {
    let (device, _alone) = device();
    let layer = Conv2dConfig::new([2, 3], [2, 2]).init(&device);
    let parameters = Parameters::of(&layer).unwrap();
    let mut rows = parameters.orthonormal::<f32>(&["weight"]).unwrap();
    let mut x: Vec<f32> = parameters.vector(&layer).unwrap();
    strust::constraints::Manifold::restore(&mut rows, &mut x).unwrap();
    let layer = parameters.module(layer, &x).unwrap();
    assert!(distance(layer.weight.val().reshape([3, 8])) < 1e-5);
}

#[test]
fn wrong_names_and_lengths_are_named() {
    let (device, _alone) = device();
    let parameters = Parameters::of(&Net::new(&device)).unwrap();
    let error = parameters.orthonormal::<f32>(&["third.weight"]).unwrap_err();
    assert!(matches!(&error, Error::UnknownParameter { name, .. } if name == "third.weight"));
    assert!(error.to_string().ends_with("there are first.weight, first.bias, second.weight, second.bias"), "{error}");
    let error = parameters.linear::<f32>("first.bias", &[1.0; 3], 0.0).unwrap_err().to_string();
    assert_eq!(error, "coefficients of a linear condition: expected shape [4], found [3]");
}
