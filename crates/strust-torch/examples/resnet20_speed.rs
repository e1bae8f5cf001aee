//! What a step costs: ResNet-20 at batch 128 with SGD, with the library's STR and with STR on the device.
//!
//! Run with `cargo run --release -p strust-torch --example resnet20_speed [cpu|cuda] [steps]`. PyTorch's own number comes
//! from `scripts/pytorch_speed.py` of this crate.

#![allow(clippy::cast_possible_wrap)] // libtorch counts in i64

use std::time::Instant;
use strust::prelude::*;
use strust_torch::{DeviceStr, Loss, ResNet20, TorchObjective, cross_entropy, device, seeded, supervised};
use tch::{Cuda, Device, Kind, Tensor, nn::ModuleT, nn::VarStore};

const BATCH: usize = 128;

type Step<'a> = (&'static str, Box<dyn FnMut(&Sample) + 'a>);

fn objective(store: &VarStore) -> Result<TorchObjective<f32, Loss<'static>>, strust_torch::Error> {
    let device = store.device();
    let net = seeded(0, || ResNet20::new(&store.root(), 10));
    let images = seeded(1, || Tensor::randn([BATCH as i64, 3, 32, 32], (Kind::Float, device)));
    let labels = Tensor::arange(BATCH as i64, (Kind::Int64, device)).remainder(10);
    let batch = move |_: &Sample| (images.shallow_clone(), labels.shallow_clone());
    supervised(store, BATCH, batch, move |x| net.forward_t(x, true), cross_entropy)
}

/// Median milliseconds of each step, taken in turn so that a busy machine slows them alike.
fn time(device: Device, rounds: u64, steps: &mut [Step]) -> Vec<f64> {
    const WARM_UP: u64 = 3;
    let mut times = vec![Vec::new(); steps.len()];
    for k in 1..=rounds + WARM_UP {
        let sample = Sample::new((0..BATCH).collect(), k);
        for ((_, step), times) in steps.iter_mut().zip(&mut times) {
            let began = Instant::now();
            step(&sample);
            if let Device::Cuda(index) = device {
                Cuda::synchronize(index as i64);
            }
            if k > WARM_UP {
                times.push(1e3 * began.elapsed().as_secs_f64());
            }
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    times.into_iter().map(median).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let device = device::open(&arguments.next().unwrap_or_else(|| "auto".into()))?;
    let rounds = arguments.next().map_or(Ok(20), |text| text.parse())?;
    println!("on {}", device::report(device)?);
    let stores = [(); 3].map(|()| VarStore::new(device));
    let [mut f, mut g, mut h] = [objective(&stores[0])?, objective(&stores[1])?, objective(&stores[2])?];
    let start = f.point();
    let region = StrConfig { initial_radius: 0.1, max_radius: 0.1, ..Default::default() };

    let mut sgd = Sgd::new(SgdConfig { learning_rate: 0.01, ..Default::default() })?;
    let mut sgd_state = sgd.init(&mut f, start.clone())?;
    let mut str = Str::new(region.clone())?;
    let mut str_state = str.init(&mut g, start)?;
    let mut on_device = DeviceStr::start(region, &h, 1000)?;
    let mut steps: [Step; 3] = [
        ("SGD", Box::new(|sample| assert!(sgd.step(&mut f, &mut sgd_state, sample).is_ok()))),
        ("STR", Box::new(|sample| assert!(str.step(&mut g, &mut str_state, sample).is_ok()))),
        ("STR on device", Box::new(|sample| assert!(on_device.step(&mut h, sample).is_ok()))),
    ];
    let times = time(device, rounds, &mut steps);
    for ((name, _), ms) in steps.iter().zip(&times) {
        println!("{name:<14} {ms:8.2} ms  {:7.0} images/s  {:.3} × SGD", 1e3 * BATCH as f64 / ms, ms / times[0]);
    }
    Ok(())
}
