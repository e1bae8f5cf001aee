//! What a step costs: ResNet-20 at batch 128 with SGD, with the library's STR and with STR on the device.
//!
//! Run with `cargo run --release -p strust-torch --example resnet20_speed [cpu|cuda] [rounds]`; `memory` in place of the
//! device measures the peak of memory. PyTorch's own number comes from `scripts/pytorch_speed.py` of this crate.

use std::{env, process::Command};
use strust_torch::{
    bench::{self, Measured},
    device,
};

const BATCH: usize = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["memory"] => memory(),
        // One method in a process of its own.
        ["memory", method] => {
            let method = Measured::ALL.into_iter().find(|m| format!("{m:?}") == method).ok_or("unknown method")?;
            println!("{}", bench::peak_memory(method, BATCH, 5)?.ok_or("this system does not tell the peak")?);
            Ok(())
        }
        [] => speed("auto", 20),
        [name] => speed(name, 20),
        [name, rounds, ..] => speed(name, rounds.parse()?),
    }
}

fn speed(device: &str, rounds: usize) -> Result<(), Box<dyn std::error::Error>> {
    let speed = bench::cifar10(device::open(device)?, BATCH, rounds)?;
    println!("on {}, batch {BATCH}, median of {rounds}", speed.device);
    let rows = [
        ("SGD", speed.sgd_step_ms, 1.0),
        ("STR", speed.str_step_ms, speed.ratio),
        ("STR on device", speed.device_str_step_ms, speed.device_ratio),
    ];
    for (name, ms, ratio) in rows {
        println!("{name:<14} {ms:8.2} ms  {:7.0} images/s  {ratio:.3} × SGD", 1e3 * BATCH as f64 / ms);
    }
    println!("{:<14} {:8.2} ms", "batch alone", speed.batch_ms);
    if let (Some(str), Some(on_device)) = (speed.processor_ratio, speed.device_processor_ratio) {
        println!("in processor time: STR {str:.3} × SGD, STR on device {on_device:.3} × SGD");
    }
    Ok(())
}

fn memory() -> Result<(), Box<dyn std::error::Error>> {
    for method in Measured::ALL {
        let name = format!("{method:?}");
        let output = bench::precise(Command::new(env::current_exe()?).args(["memory", &name])).output()?;
        let bytes: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
        println!("{name:<10} {:8.2} MB", bytes / 1e6);
    }
    Ok(())
}
