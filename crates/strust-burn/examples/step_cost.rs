//! The time of a step of `auto` beside that of Burn's Adam, in turns within one run: medians, and the ratio.
//!
//! ```text
//! cargo run --release --example step_cost
//! cargo run --release --features vulkan --example step_cost -- vulkan
//! ```

mod common;

use burn::{
    module::Module,
    nn::{Linear, LinearConfig, Relu},
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Tensor},
};
use common::{ConvNet, Data, Network};
use rand_core::Rng;
use std::{env, time::Instant};
use strust::sample::generator;
use strust_burn::{Error, Optimizer, Place};
use strust_data::images::Images;

const STEPS: usize = 200;
/// The first steps compile kernels and are not counted.
const WARM: usize = 30;

#[derive(Module, Debug)]
struct Mlp {
    layers: Vec<Linear>,
}

impl Mlp {
    fn new(width: usize, device: &Device) -> Self {
        let sizes = [784, width, width, 10];
        Self { layers: sizes.windows(2).map(|size| LinearConfig::new(size[0], size[1]).init(device)).collect() }
    }
}

impl Network for Mlp {
    fn scores(&self, mut images: Tensor<2>) -> Tensor<2> {
        for (i, layer) in self.layers.iter().enumerate() {
            images = layer.forward(if i > 0 { Relu::new().forward(images) } else { images });
        }
        images
    }
}

fn median(mut seconds: Vec<f64>) -> f64 {
    let mut seconds = seconds.split_off(WARM);
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Seconds of a step: `auto`, Adam.
fn measure<N: Network, V: Place>(
    mut auto: Optimizer<V>,
    start: &N,
    data: &Data,
    batch: usize,
) -> Result<(f64, f64), Error> {
    let (mut ours, mut theirs) = (start.clone(), start.clone());
    let mut adam = AdamConfig::new().init();
    let (mut seconds, mut adam_seconds) = (Vec::new(), Vec::new());
    let device = start.devices()[0].clone();
    let timed = |seconds: &mut Vec<f64>, begin: Instant| {
        device.sync().expect("the device works");
        seconds.push(begin.elapsed().as_secs_f64());
    };
    for k in 0..STEPS {
        let images = data.epoch(batch, k).next().expect("there is a batch");
        let begin = Instant::now();
        (ours, _) = auto.step(ours, |model| model.loss(images.clone()))?;
        timed(&mut seconds, begin);
        let begin = Instant::now();
        let loss = theirs.loss(images);
        let gradients = GradientsParams::from_grads(loss.backward(), &theirs);
        theirs = adam.step(1e-3, theirs, gradients);
        // A loop that shows the loss reads it.
        let _: f64 = loss.into_scalar();
        timed(&mut adam_seconds, begin);
    }
    Ok((median(seconds), median(adam_seconds)))
}

/// Seconds to compute a sum and to read it from the device, as each product of vectors does.
fn reading(device: &Device) -> f64 {
    let read = |tensor: &Tensor<1>| {
        let begin = Instant::now();
        let _: f64 = tensor.clone().sum().into_scalar();
        begin.elapsed().as_secs_f64()
    };
    let one = Tensor::<1>::ones([1], &device.clone().inner());
    median((0..STEPS).map(|_| read(&one)).collect())
}

fn device(name: &str) -> Result<Device, String> {
    match name {
        "cpu" => Ok(Device::flex()),
        #[cfg(feature = "vulkan")]
        "vulkan" => Ok(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
        other => Err(format!("there is no device `{other}` in this build: cpu, or vulkan with --features vulkan")),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = env::args().nth(1).unwrap_or_else(|| "cpu".into());
    let device = device(&name)?.autodiff();
    device.seed(0);
    // Random images with random labels: on an easy task gradients underflow, and a CPU takes ten times as long for them.
    let mut random = generator(0, 0);
    let mut bytes = |n: usize, below: u32| (0..n).map(|_| (random.next_u32() % below) as u8).collect();
    let images = Images { pixels: bytes(784 * 2048, 256), labels: bytes(2048, 10), shape: [1, 28, 28] };
    let data = Data::new(&images, &device);
    println!("a sum is computed and read in {:.3} ms", 1e3 * reading(&device));
    println!(
        "{:>12} {:>10} {:>6} {:>8} {:>9} {:>9} {:>6}",
        "network", "parameters", "batch", "vectors", "auto", "Adam", "ratio"
    );
    for batch in [128, 512] {
        compare("convolutions", &ConvNet::new(&device), &data, batch)?;
    }
    for (width, batch) in [(128, 128), (512, 128), (512, 512), (2048, 512)] {
        compare("perceptron", &Mlp::new(width, &device), &data, batch)?;
    }
    Ok(())
}

fn compare<N: Network>(name: &str, model: &N, data: &Data, batch: usize) -> Result<(), Error> {
    let line = |vectors: &str, (ours, adam): (f64, f64)| {
        let (parameters, ratio) = (model.num_params(), ours / adam);
        let (ours, adam) = (1e3 * ours, 1e3 * adam);
        println!("{name:>12} {parameters:>10} {batch:>6} {vectors:>8} {ours:>6.2} ms {adam:>6.2} ms {ratio:>6.2}");
    };
    line("host", measure(Optimizer::auto(), model, data, batch)?);
    line("device", measure(Optimizer::auto_on_device(), model, data, batch)?);
    Ok(())
}
