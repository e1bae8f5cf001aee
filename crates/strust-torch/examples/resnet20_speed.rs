//! Measures details of ResNet-20 at batch 128. `strust bench cifar10` measures steps, epochs and memory.
//!
//! Run it with `cargo run --release -p strust-torch --example resnet20_speed` and these arguments:
//!
//! | arguments | measures |
//! |---|---|
//! | `newton cuda\|cpu [products]` | a step with products, and its passes alone |
//! | `profile tf32\|bf16 [FILE]` | the work of the GPU and the CUDA calls of the host in 390 steps of STR; FILE gets the trace |

use std::{env, path::Path};
use strust::{prelude::*, radius::RegionConfig};
use strust_problems::Problem;
use strust_torch::{DeviceMethod, DeviceRun, DeviceStr, Launch, bench, cuda, device};

const BATCH: usize = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["newton", name] => newton(name, 10),
        ["newton", name, products] => newton(name, products.parse()?),
        ["profile", arithmetic] => profile(arithmetic, None),
        ["profile", arithmetic, file] => profile(arithmetic, Some(Path::new(file))),
        _ => Err("the arguments are `newton cuda|cpu [products]` or `profile tf32|bf16 [FILE]`".into()),
    }
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
    let mut f = bench::synthetic(STEPS as usize * BATCH, device)?;
    if arithmetic == "bf16" {
        f = f.in_bf16();
    }
    let start = f.start(0);
    f.objective().set(&start);
    let config = StrConfig { region: RegionConfig { initial_radius: 0.1, max_radius: 0.1, ..Default::default() } };
    // The records are read only at the end.
    let method = DeviceStr::start(config, f.objective(), 1000)?;
    let mut run = DeviceRun::new(f.objective(), method, BATCH, STEPS as usize, Launch::Graph);
    let mut sampler = Epochs::new(f.terms(), BATCH, 0)?;
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
