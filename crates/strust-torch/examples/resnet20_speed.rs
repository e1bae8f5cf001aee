//! What a step costs: ResNet-20 at batch 128 with SGD, with the library's STR and with STR on the device.
//!
//! Run with `cargo run --release -p strust-torch --example resnet20_speed [cpu|cuda] [rounds]`; `memory` in place of the
//! device measures the peak of memory, and `epochs [cuda|cpu] [steps] [rounds]` whole epochs with each method, step by step
//! and as a CUDA graph, with a comparison of the two. PyTorch's own number comes from `scripts/pytorch_speed.py` of this crate.

use std::{env, fmt::Write as _, fs, process::Command};
use strust_torch::{
    Launch,
    bench::{self, Arithmetic, Measured, Optimiser},
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
        ["epochs", name, steps, rounds] => epochs(name, steps.parse()?, rounds.parse()?),
        ["epochs", name] => epochs(name, 390, 5),
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

/// Epochs with each method, each arithmetic, and both ways to give a step to the device. The losses of the steps go to
/// `losses.csv` in the folder `STRUST_OUT`, if that is set.
fn epochs(device: &str, steps: usize, rounds: usize) -> Result<(), Box<dyn std::error::Error>> {
    let device = device::open(device)?;
    println!("on {}, batch {BATCH}, {steps} steps an epoch, median of {rounds}", device::report(device)?);
    let mut curves: Vec<(String, Vec<f64>)> = Vec::new();
    for arithmetic in [Arithmetic::Single, Arithmetic::Tf32, Arithmetic::Bf16] {
        for launch in [Launch::Eager, Launch::Graph] {
            let mut sgd = f64::NAN;
            for method in [Optimiser::Sgd, Optimiser::Str, Optimiser::Adam] {
                let speed = bench::epochs(device, method, arithmetic, launch, 1, [BATCH, steps, rounds])?;
                let (name, seconds) = (format!("{method:?} {arithmetic:?} {launch:?}"), speed.median);
                if method == Optimiser::Sgd {
                    sgd = seconds;
                }
                let [tensors, reserved] = speed.peak.map(|bytes| bytes as f64 / 1e6);
                print!("{name:<18} {seconds:7.3} s  {:.3} × SGD  {tensors:6.0} of {reserved:6.0} MB", seconds / sgd);
                println!("  {} reads in {} epochs", speed.reads, rounds + 1);
                if let (Launch::Graph, Some(why)) = (launch, &speed.why_eager) {
                    println!("    {why}");
                }
                curves.push((name, speed.records.iter().map(|record| record.value).collect()));
            }
        }
    }
    if let Some(folder) = env::var_os("STRUST_OUT") {
        let names: Vec<&str> = curves.iter().map(|(name, _)| name.as_str()).collect();
        let mut text = format!("step,{}\n", names.join(","));
        for k in 0..curves[0].1.len() {
            write!(text, "{k}")?;
            curves.iter().try_for_each(|(_, values)| write!(text, ",{}", values[k]))?;
            text.push('\n');
        }
        fs::write(std::path::Path::new(&folder).join("losses.csv"), text)?;
    }
    Ok(())
}
