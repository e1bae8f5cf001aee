//! A small convolutional network with batch-norm on MNIST, beside Burn's Adam with seven rates. The folder holds the four
//! files of MNIST, with or without `.gz`; `strust data mnist --to FOLDER` downloads them.
//!
//! ```text
//! cargo run --release --example mnist -- FOLDER [EPOCHS] [IMAGES]
//! ```

mod common;

use burn::tensor::Device;
use common::{ConvNet, Data, compare};
use std::env;

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
