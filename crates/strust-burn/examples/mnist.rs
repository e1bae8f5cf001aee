//! A small convolutional network with batch-norm on MNIST, beside Burn's Adam with seven rates. The folder holds the four
//! files of MNIST, with or without `.gz`; `strust data mnist --to FOLDER` downloads them.
//!
//! ```text
//! cargo run --release --example mnist -- FOLDER [EPOCHS] [IMAGES]
//! ```

mod common;

use burn::{
    module::Module,
    nn::{
        BatchNorm, BatchNormConfig, Linear, LinearConfig, Relu,
        conv::{Conv2d, Conv2dConfig},
        pool::MaxPool2dConfig,
    },
    tensor::{Device, Tensor},
};
use common::{Data, Network, compare};
use std::env;

#[derive(Module, Debug)]
struct ConvNet {
    first: Conv2d,
    norm: BatchNorm,
    second: Conv2d,
    output: Linear,
}

impl ConvNet {
    fn new(device: &Device) -> Self {
        Self {
            first: Conv2dConfig::new([1, 8], [5, 5]).init(device),
            norm: BatchNormConfig::new(8).init(device),
            second: Conv2dConfig::new([8, 16], [5, 5]).init(device),
            output: LinearConfig::new(256, 10).init(device),
        }
    }
}

impl Network for ConvNet {
    fn scores(&self, images: Tensor<2>) -> Tensor<2> {
        let [count, _] = images.dims();
        let (relu, pool) = (Relu::new(), MaxPool2dConfig::new([2, 2]).init());
        let images = images.reshape([count, 1, 28, 28]);
        let maps = pool.forward(relu.forward(self.norm.forward(self.first.forward(images))));
        let maps = pool.forward(relu.forward(self.second.forward(maps)));
        self.output.forward(maps.reshape([count, 256]))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let Some(folder) = arguments.next() else {
        return Err("name the folder of MNIST: cargo run --release --example mnist -- FOLDER [EPOCHS] [IMAGES]".into());
    };
    let epochs = arguments.next().map_or(Ok(3), |epochs| epochs.parse())?;
    let images = arguments.next().map_or(Ok(usize::MAX), |images| images.parse())?;
    let device = Device::flex().autodiff();
    device.seed(0);
    let mnist = strust_data::images::mnist(folder.as_ref())?;
    let (train, test) = (Data::new(&mnist.train.take(images), &device), Data::new(&mnist.test, &device));
    compare(&ConvNet::new(&device), &train, &test, 128, epochs)?;
    Ok(())
}
