//! Measures ResNet-20 at batch 128 with SGD, with the library's STR and with STR on the device.
//!
//! Run it with `cargo run --release -p strust-torch --example resnet20_speed` and these arguments:
//!
//! | arguments | measures |
//! |---|---|
//! | `[cpu\|cuda] [rounds]` | the time of a step |
//! | `memory` | the peak memory |
//! | `epochs cuda\|cpu [steps rounds]` | epochs of each method, operation by operation and as a CUDA graph |
//! | `graphs cuda\|cpu [steps rounds]` | epochs of SGD and STR, only as CUDA graphs |
//! | `newton cuda\|cpu [products]` | a step with products, and its passes alone |
//! | `profile tf32\|bf16 [FILE]` | the work of the GPU and the CUDA calls of the host in 390 steps of STR; FILE gets the trace |
//!
//! `scripts/pytorch_speed.py` of this crate measures PyTorch.

use std::{env, fmt::Write as _, fs, path::Path, process::Command};
use strust::{prelude::*, radius::RegionConfig};
use strust_problems::Problem;
use strust_torch::{
    DeviceMethod, DeviceRun, DeviceStr, ImageClassification, Launch,
    bench::{self, Arithmetic, Measured, Optimizer},
    cuda, device,
    images::ImageBytes,
};

const BATCH: usize = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["memory"] => memory(),
        // Each method has its own process.
        ["memory", method] => {
            let method = Measured::ALL.into_iter().find(|m| format!("{m:?}") == method).ok_or("unknown method")?;
            println!("{}", bench::peak_memory(method, BATCH, 5)?.ok_or("this system does not report the peak")?);
            Ok(())
        }
        ["epochs", name, steps, rounds] => epochs(name, steps.parse()?, rounds.parse()?, &EVERYTHING),
        ["epochs", name] => epochs(name, 390, 5, &EVERYTHING),
        ["graphs", name, steps, rounds] => epochs(name, steps.parse()?, rounds.parse()?, &GRAPHS),
        ["graphs", name] => epochs(name, 390, 5, &GRAPHS),
        ["newton", name] => newton(name, 10),
        ["newton", name, products] => newton(name, products.parse()?),
        ["profile", arithmetic] => profile(arithmetic, None),
        ["profile", arithmetic, file] => profile(arithmetic, Some(Path::new(file))),
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

/// The combinations to measure.
struct Choice<'a> {
    arithmetics: &'a [Arithmetic],
    launches: &'a [Launch],
    methods: &'a [Optimizer],
}

const EVERYTHING: Choice = Choice {
    arithmetics: &[Arithmetic::Single, Arithmetic::Tf32, Arithmetic::Bf16],
    launches: &[Launch::Eager, Launch::Graph],
    methods: &[Optimizer::Sgd, Optimizer::Str, Optimizer::Adam],
};
const GRAPHS: Choice = Choice {
    arithmetics: &[Arithmetic::Tf32, Arithmetic::Bf16],
    launches: &[Launch::Graph],
    methods: &[Optimizer::Sgd, Optimizer::Str],
};

/// Measures epochs with each method, arithmetic and launch. If `STRUST_OUT` names a folder, the losses of all steps are
/// written to `losses.csv` there.
fn epochs(device: &str, steps: usize, rounds: usize, choice: &Choice) -> Result<(), Box<dyn std::error::Error>> {
    let device = device::open(device)?;
    println!("on {}, batch {BATCH}, {steps} steps an epoch, median of {rounds}", device::report(device)?);
    let mut curves: Vec<(String, Vec<f64>)> = Vec::new();
    for &arithmetic in choice.arithmetics {
        for &launch in choice.launches {
            let mut sgd = f64::NAN;
            for &method in choice.methods {
                let speed = bench::epochs(device, method, arithmetic, launch, 1, [BATCH, steps, rounds])?;
                let (name, seconds) = (format!("{method:?} {arithmetic:?} {launch:?}"), speed.median);
                if method == Optimizer::Sgd {
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

/// A step of STR with products, operation by operation and as a CUDA graph.
fn newton(device: &str, products: u64) -> Result<(), Box<dyn std::error::Error>> {
    const SHAPE: [usize; 3] = [BATCH, 20, 5];
    let device = device::open(device)?;
    println!("on {}, batch {BATCH}, {products} products a step, median of {}", device::report(device)?, SHAPE[2]);
    for launch in [Launch::Eager, Launch::Graph] {
        let speed = bench::newton(device, launch, products, SHAPE)?;
        let (step, passes, ratio) = (speed.step_ms, speed.passes_ms, speed.ratio);
        println!("{launch:?}: step {step:.2} ms, passes {passes:.2} ms, {ratio:.3} × passes");
        if let (Launch::Graph, Some(why)) = (launch, &speed.why_eager) {
            println!("    {why}");
        }
    }
    Ok(())
}

/// 390 steps of STR as a CUDA graph under the profiler.
fn profile(arithmetic: &str, trace: Option<&Path>) -> Result<(), Box<dyn std::error::Error>> {
    const STEPS: u32 = 390;
    let device = device::open("cuda")?;
    cuda::set_tf32(true);
    let images = STEPS * BATCH as u32;
    let pixels: Vec<u8> = (0..images * 3072).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let labels: Vec<u8> = (0..images).map(|i| (i % 10) as u8).collect();
    let bytes = ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 32, 32] };
    let mut f = ImageClassification::resnet20(&bytes, None, 10, device)?;
    if arithmetic == "bf16" {
        f = f.in_bf16();
    }
    let start = f.start(0);
    f.objective().set(&start);
    let config = StrConfig { region: RegionConfig { initial_radius: 0.1, max_radius: 0.1, ..Default::default() } };
    // The records are read only at the end.
    let method = DeviceStr::start(config, f.objective(), 1000)?;
    let mut run = DeviceRun::new(f.objective(), method, BATCH, STEPS as usize, Launch::Graph);
    let mut sampler = Epochs::new(images as usize, BATCH, 0)?;
    run.steps(f.objective(), &mut sampler, 30)?;
    run.method().records()?;
    let (steps, profile) = cuda::profile(trace, || run.steps(f.objective(), &mut sampler, STEPS.into()))?;
    steps?;
    let (seconds, count) = profile.on_gpu.iter().fold((0.0, 0), |(s, n), k| (s + k.seconds, n + k.count));
    println!("STR {arithmetic}, {STEPS} steps: {seconds:.3} s in {count} kernels and copies, {} a step", count / 390);
    for kernel in profile.on_gpu.iter().take(40) {
        let name: String = kernel.name.chars().take(110).collect();
        println!(
            "{:5.1} %  {:8.2} µs a step  {:6}  {name}",
            1e2 * kernel.seconds / seconds,
            1e6 * kernel.seconds / f64::from(STEPS),
            kernel.count
        );
    }
    for call in &profile.calls {
        println!("{:8.3} ms  {:6}  {}", 1e3 * call.seconds, call.count, call.name);
    }
    Ok(())
}
