//! `strust bench cifar10`: a step of STR on ResNet-20, compared with SGD and with PyTorch.

use super::{BenchBlock, BenchResults};
use serde::{Deserialize, Serialize};
use std::{
    fmt::Write as _,
    process::{Command, Output},
    time::Instant,
};
use strust_lab::Error;
use strust_torch::{
    Launch,
    bench::{self, Arithmetic, EpochSpeed, Measured, Optimizer, Speed},
    device::{self, Device},
};

const BATCH: usize = 128;
/// Steps of each method per turn.
const ROUNDS: usize = 15;
/// This program and PyTorch alternate this many times; the best result of each counts.
const TURNS: usize = 2;
/// Steps of an epoch of CIFAR-10.
const STEPS: usize = 390;
/// Timed epochs on a GPU.
const EPOCHS: usize = 2;

#[derive(Serialize)]
struct Cost {
    #[serde(flatten)]
    speed: Speed,
    #[serde(flatten)]
    memory: Option<Memory>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    epochs: Vec<EpochSpeed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pytorch_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pytorch_images_per_second: Option<f64>,
}

/// Peak memory in bytes. Each method runs in its own process.
#[derive(Serialize)]
struct Memory {
    sgd_peak_bytes: u64,
    str_peak_bytes: u64,
}

#[derive(Deserialize)]
struct PyTorch {
    version: String,
    images_per_second: f64,
}

/// The peak memory of one method in this process, in bytes; 0 if it is not known.
pub fn peak_memory(name: &str) -> Result<u64, Error> {
    let method = if name == "sgd" { Measured::Sgd } else { Measured::Str };
    Ok(bench::peak_memory(method, BATCH, 5).map_err(failed)?.unwrap_or(0))
}

#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failed(error: strust_torch::Error) -> Error {
    Error::Network(error.to_string())
}

/// A step of STR on ResNet-20, compared with SGD and with PyTorch.
pub fn cifar10(device: &str) -> Result<BenchResults, Error> {
    let began = Instant::now();
    let device = device::open(device).map_err(failed)?;
    let opening = began.elapsed().as_secs_f64();
    // Measured first, so that the time of the first step includes all initialization.
    let mut epochs = if device == Device::Cpu { Vec::new() } else { self::epochs(device).map_err(failed)? };
    if let Some(first) = epochs.first_mut() {
        first.first_step += opening;
    }
    let (mut best, mut pytorch): (Option<Speed>, Option<PyTorch>) = (None, None);
    for _ in 0..TURNS {
        let speed = bench::cifar10(device, BATCH, ROUNDS).map_err(failed)?;
        if best.as_ref().is_none_or(|best| speed.sgd_step_ms < best.sgd_step_ms) {
            best = Some(speed);
        }
        let theirs = self::pytorch(device);
        if theirs.as_ref().is_some_and(|t| pytorch.as_ref().is_none_or(|p| t.images_per_second > p.images_per_second)) {
            pytorch = theirs;
        }
    }
    let memory = (device == Device::Cpu).then(memory).flatten();
    let speed = best.expect("there is at least one turn");
    let (version, images) = pytorch.map(|p| (p.version, p.images_per_second)).unzip();
    let cost = Cost { speed, memory, epochs, pytorch_version: version, pytorch_images_per_second: images };
    Ok(BenchResults::new(&cost, blocks(&cost)))
}

/// Epochs of every method: operation by operation, as a CUDA graph, and with several runs in parallel.
fn epochs(device: Device) -> Result<Vec<EpochSpeed>, strust_torch::Error> {
    use {
        Arithmetic::{Bf16, Tf32},
        Launch::{Eager, Graph},
    };
    let ways = [(Tf32, Eager, 1), (Tf32, Graph, 1), (Bf16, Graph, 1), (Tf32, Graph, 4), (Bf16, Graph, 4)];
    let mut epochs = Vec::new();
    for (arithmetic, launch, runs) in ways {
        for method in Optimizer::ALL {
            epochs.push(bench::epochs(device, method, arithmetic, launch, runs, [BATCH, STEPS, EPOCHS])?);
        }
    }
    Ok(epochs)
}

/// A row per precision, launch mode and number of parallel runs: the seconds of an epoch with each method.
fn epoch_rows(epochs: &[EpochSpeed]) -> Vec<Vec<String>> {
    let header = [
        "",
        "runs in parallel",
        "SGD",
        "STR",
        "Adam",
        "Auto",
        "STR / SGD",
        "Auto / SGD",
        "memory of SGD",
        "of Auto",
        "",
    ];
    let row = |of: &[EpochSpeed]| {
        let [sgd, str, adam, auto] = [0, 1, 2, 3].map(|i| of[i].median);
        let mut row = vec![format!("{:?}, {:?}", of[0].arithmetic, of[0].launch).to_lowercase()];
        row.push(of[0].runs.to_string());
        row.extend([sgd, str, adam, auto].map(|seconds| format!("{seconds:.3} s")));
        row.extend([str, auto].map(|seconds| format!("{:.2}", seconds / sgd)));
        row.extend([0, 3].map(|i| format!("{:.1} MB", of[i].peak[0] as f64 / 1e6)));
        let why = of.iter().find_map(|e| e.why_eager.clone());
        row.push(why.filter(|_| of[0].launch == Launch::Graph).unwrap_or_default());
        row
    };
    std::iter::once(header.map(String::from).to_vec()).chain(epochs.chunks(Optimizer::ALL.len()).map(row)).collect()
}

fn blocks(cost: &Cost) -> Vec<BenchBlock> {
    let Speed { sgd_step_ms, str_step_ms, device_str_step_ms, ratio, device_ratio, .. } = cost.speed;
    let row = |name: &str, ms: f64, more: String| {
        vec![name.into(), format!("{ms:.1} ms"), images(1e3 * BATCH as f64 / ms), more]
    };
    let mut rows = vec![
        row("SGD", sgd_step_ms, String::new()),
        row("STR", str_step_ms, format!("{ratio:.2}× SGD")),
        row("STR, decided on the device", device_str_step_ms, format!("{device_ratio:.2}× SGD")),
    ];
    if let (Some(version), Some(theirs)) = (&cost.pytorch_version, cost.pytorch_images_per_second) {
        let share = cost.speed.images_per_second / theirs;
        let ms = 1e3 * BATCH as f64 / theirs;
        rows.push(row(&format!("PyTorch {version}, SGD"), ms, format!("strust is {share:.2}× as fast")));
    }
    let title = format!("A step of ResNet-20, batch {BATCH}, on {}", cost.speed.device);
    let mut blocks = vec![BenchBlock::new(title, rows)];
    if let Some(first) = cost.epochs.first() {
        blocks.push(BenchBlock {
            title: format!("An epoch of {STEPS} steps: total time divided by the number of runs"),
            rows: epoch_rows(&cost.epochs),
            notes: format!("\nThe first step ended {:.1} s after the start.\n", first.first_step),
        });
    }
    if let (Some(memory), Some(last)) = (&cost.memory, blocks.last_mut()) {
        let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
        let more = memory.str_peak_bytes as f64 - memory.sgd_peak_bytes as f64;
        let copies = more / cost.speed.parameter_bytes as f64;
        let (sgd, str) = (mb(memory.sgd_peak_bytes), mb(memory.str_peak_bytes));
        let _ = writeln!(last.notes, "\nPeak memory: SGD {sgd}, STR {str}: {copies:.1} more copies of the parameters");
    }
    blocks
}

fn images(per_second: f64) -> String {
    format!("{per_second:.0} images/s")
}

/// The peak memory of each method, measured in its own process.
fn memory() -> Option<Memory> {
    let peak = |method: &str| {
        let mut program = Command::new(std::env::current_exe().ok()?);
        bench::precise(&mut program).args(["bench", "cifar10", "--memory-of", method]);
        stdout(&program.output().ok()?)?.trim().parse().ok().filter(|&bytes| bytes > 0)
    };
    Some(Memory { sgd_peak_bytes: peak("sgd")?, str_peak_bytes: peak("str")? })
}

/// PyTorch's speed on the same device. `None` if there is no Python with PyTorch.
fn pytorch(device: Device) -> Option<PyTorch> {
    let python = ["STRUST_TORCH_PYTHON", "STRUST_PYTHON"].iter().find_map(std::env::var_os);
    let folder = tempfile::tempdir().ok()?;
    let scripts = [
        ("golden_resnet20.py", include_str!("../../scripts/golden_resnet20.py")),
        ("pytorch_speed.py", include_str!("../../scripts/pytorch_speed.py")),
    ];
    for (name, text) in scripts {
        std::fs::write(folder.path().join(name), text).ok()?;
    }
    let name = device::report(device).ok()?.name();
    let mut program = Command::new(python.unwrap_or_else(|| "python3".into()));
    program.arg(folder.path().join("pytorch_speed.py")).args([name, ROUNDS.to_string()]);
    // Python has its own libtorch.
    program.env_remove("LD_LIBRARY_PATH");
    serde_json::from_str(&stdout(&program.output().ok()?)?).ok()
}

fn stdout(output: &Output) -> Option<String> {
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
