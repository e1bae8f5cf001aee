//! A network whose two hidden layers have orthonormal weights during the whole training: `StrSqp` keeps WᵀW = I.
//!
//! ```text
//! cargo run --release --example orthonormal
//! ```

mod common;

use burn::{
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor, activation::tanh},
};
use common::{Data, Network};
use strust::{
    constraints::{Constraint, Manifold},
    prelude::*,
};
use strust_burn::{Optimizer, Parameters};

#[derive(Module, Debug)]
struct Mlp {
    first: Linear,
    second: Linear,
    output: Linear,
}

impl Network for Mlp {
    fn scores(&self, images: Tensor<2>) -> Tensor<2> {
        let hidden = tanh(self.second.forward(tanh(self.first.forward(images))));
        self.output.forward(hidden)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    device.seed(0);
    let digits = strust_data::digits::images()?;
    let (train, test) = (Data::new(&digits.train, &device), Data::new(&digits.test, &device));
    let mut model = Mlp {
        first: LinearConfig::new(64, 32).init(&device),
        second: LinearConfig::new(32, 32).init(&device),
        output: LinearConfig::new(32, 10).init(&device),
    };

    let parameters = Parameters::of(&model)?;
    let mut weights = parameters.orthonormal::<f32>(&["first.weight", "second.weight"])?;
    let mut start: Vec<f32> = parameters.vector(&model)?;
    weights.restore(&mut start)?;
    model = parameters.module(model, &start)?;

    let method = StrSqp::new(StrSqpConfig::default(), weights.clone())?;
    let mut optimizer = Optimizer::<Vec<f32>>::new(method);
    let mut c = weights.new_residual();
    let (mut largest, mut loss) = (0.0_f64, f64::NAN);
    for epoch in 0..20 {
        for images in train.epoch(32, epoch) {
            (model, loss) = optimizer.step(model, |model| model.loss(images.clone()))?;
            weights.residual(&parameters.vector(&model)?, &mut c);
            largest = largest.max(c.norm());
        }
    }
    weights.residual(&parameters.vector(&model)?, &mut c);
    println!("loss of the last batch            {loss:.3}");
    println!("test images                       {:.2} %", 100.0 * test.accuracy(&model));
    println!("‖WᵀW − I‖, the largest of a step  {largest:.1e}");
    println!("‖WᵀW − I‖ at the end              {:.1e}", c.norm());
    assert!(test.accuracy(&model) > 0.9 && c.norm() < 1e-4);
    Ok(())
}
