//! A network of two layers on handwritten digits, without a learning rate, beside Burn's Adam with seven of them.
//!
//! ```text
//! cargo run --release --example digits
//! ```

mod common;

use burn::{
    module::Module,
    nn::{Dropout, DropoutConfig, Linear, LinearConfig, Relu},
    tensor::{Device, Tensor},
};
use common::{Data, Network, compare};

#[derive(Module, Debug)]
struct Mlp {
    hidden: Linear,
    dropout: Dropout,
    output: Linear,
}

impl Mlp {
    fn new(device: &Device) -> Self {
        Self {
            hidden: LinearConfig::new(64, 64).init(device),
            dropout: DropoutConfig::new(0.2).init(),
            output: LinearConfig::new(64, 10).init(device),
        }
    }
}

impl Network for Mlp {
    fn scores(&self, images: Tensor<2>) -> Tensor<2> {
        let hidden = Relu::new().forward(self.hidden.forward(images));
        self.output.forward(self.dropout.forward(hidden))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    device.seed(0);
    let digits = strust_data::digits::images()?;
    let (train, test) = (Data::new(&digits.train, &device), Data::new(&digits.test, &device));
    let accuracy = compare(&Mlp::new(&device), &train, &test, 32, 20)?;
    assert!(accuracy > 95.0, "{accuracy} %");
    Ok(())
}
