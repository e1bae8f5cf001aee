//! What the examples share: images as tensors, and two ways to train on them.

#![allow(dead_code)] // each example uses a part of this

use burn::{
    module::Module,
    nn::{
        BatchNorm, BatchNormConfig, Linear, LinearConfig, Relu,
        conv::{Conv2d, Conv2dConfig},
        loss::CrossEntropyLossConfig,
        pool::MaxPool2dConfig,
    },
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Int, Tensor, TensorData},
};
use strust::{prelude::*, samplers::Sampler};
use strust_burn::{Error, Optimizer, Place};
use strust_data::images::Images;

/// The rates of which Adam gets the best.
pub const RATES: [f64; 7] = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1];

/// A network for images.
pub trait Network: Module {
    /// The scores of the classes, from pixels between 0 and 1.
    fn scores(&self, images: Tensor<2>) -> Tensor<2>;

    fn loss(&self, (images, labels): (Tensor<2>, Tensor<1, Int>)) -> Tensor<1> {
        let device = images.device();
        CrossEntropyLossConfig::new().init(&device).forward(self.scores(images), labels)
    }
}

/// Two convolutions with batch-norm, for images of 28×28 pixels.
#[derive(Module, Debug)]
pub struct ConvNet {
    first: Conv2d,
    norm: BatchNorm,
    second: Conv2d,
    output: Linear,
}

impl ConvNet {
    pub fn new(device: &Device) -> Self {
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

/// Images on a device.
pub struct Data {
    pixels: Tensor<2>,
    labels: Tensor<1, Int>,
    count: usize,
}

impl Data {
    pub fn new(images: &Images, device: &Device) -> Self {
        let (count, size) = (images.len(), images.shape.iter().product());
        let pixels: Vec<f32> = images.pixels.iter().map(|&p| f32::from(p) / 255.0).collect();
        let labels: Vec<i32> = images.labels.iter().map(|&label| i32::from(label)).collect();
        Self {
            pixels: Tensor::from_data(TensorData::new(pixels, [count, size]), device),
            labels: Tensor::from_data(TensorData::new(labels, [count]), device),
            count,
        }
    }
    fn rows(&self, rows: &[usize]) -> (Tensor<2>, Tensor<1, Int>) {
        let rows: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
        let rows = Tensor::<1, Int>::from_data(&*rows, &self.pixels.device());
        (self.pixels.clone().select(0, rows.clone()), self.labels.clone().select(0, rows))
    }
    /// The batches of an epoch, in a new random order.
    pub fn epoch(&self, batch: usize, epoch: usize) -> impl Iterator<Item = (Tensor<2>, Tensor<1, Int>)> {
        let steps = self.count / batch;
        let mut sampler = Epochs::new(self.count, batch, 1).expect("a batch is a part of the data");
        (0..steps).map(move |k| {
            let mut sample = Sample::default();
            sampler.draw((epoch * steps + k) as u64, &mut sample);
            self.rows(sample.indices())
        })
    }
    /// The share of images with the right class.
    pub fn accuracy<N: Network>(&self, model: &N) -> f64 {
        let model = model.valid();
        let right: i64 = (0..self.count.div_ceil(1000))
            .map(|piece| {
                let rows: Vec<usize> = (piece * 1000..self.count.min((piece + 1) * 1000)).collect();
                let (images, labels) = self.rows(&rows);
                let chosen = model.scores(images.inner()).argmax(1).reshape([rows.len()]);
                chosen.equal(labels.inner()).int().sum().into_scalar::<i64>()
            })
            .sum();
        right as f64 / self.count as f64
    }
}

/// Trains without a setting.
pub fn with_auto<N: Network, V: Place>(
    mut optimizer: Optimizer<V>,
    mut model: N,
    data: &Data,
    batch: usize,
    epochs: usize,
) -> Result<N, Error> {
    for epoch in 0..epochs {
        for images in data.epoch(batch, epoch) {
            (model, _) = optimizer.step(model, |model| model.loss(images.clone()))?;
        }
    }
    optimizer.averaged(model, data.epoch(batch, epochs), |model, images| drop(model.loss(images.clone())))
}

/// Trains with Burn's Adam and one rate.
pub fn with_adam<N: Network>(rate: f64, mut model: N, data: &Data, batch: usize, epochs: usize) -> N {
    let mut adam = AdamConfig::new().init();
    for epoch in 0..epochs {
        for images in data.epoch(batch, epoch) {
            let gradients = GradientsParams::from_grads(model.loss(images).backward(), &model);
            model = adam.step(rate, model, gradients);
        }
    }
    model
}

/// Prints the test accuracy of `auto`, and that of Adam with each rate, all from the same start.
pub fn compare<N: Network>(model: &N, train: &Data, test: &Data, batch: usize, epochs: usize) -> Result<f64, Error> {
    let accuracy = |model: &N| 100.0 * test.accuracy(model);
    let ours = accuracy(&with_auto(Optimizer::auto(), model.clone(), train, batch, epochs)?);
    println!("{epochs} epochs, batches of {batch}, {} parameters", model.num_params());
    println!("{:<14} {ours:6.2} % of the test images", "auto");
    for rate in RATES {
        let adam = accuracy(&with_adam(rate, model.clone(), train, batch, epochs));
        println!("{:<14} {adam:6.2} %", format!("Adam, {rate:.0e}"));
    }
    Ok(ours)
}
