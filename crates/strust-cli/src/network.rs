//! The commands for networks: `strust train`, `strust evaluate`, `strust bench cifar10`.

use crate::{
    CommandFailure,
    args::{Jobs, Network, Runs, Shared, Single},
    commands,
    fit::input_files,
    session::{self, json, print, print_data},
    show::{heading, table},
};
use std::{
    io::Read as _,
    path::{Path, PathBuf},
};
use strust_data::read::open_plain;
use strust_fit::FittedModel;
#[cfg(not(feature = "torch"))]
use strust_lab::device::WITHOUT_TORCH;
use strust_lab::{
    analyze::network::{Scores, export},
    data::{experiment::Experiment, plan::Plan},
    io::{output::OutputFile, results::own_files},
    pipeline,
    registry::{methods, problems::is_network},
};

/// `strust train`: runs one job and saves its network. The same command resumes a stopped run.
pub fn train(
    file: &Path,
    save: &Path,
    method: &str,
    seed: u64,
    single: Single,
    network: &Network,
    shared: &Shared,
) -> Result<(), CommandFailure> {
    let runs = Runs { seeds: None, set: Vec::new(), single, jobs: Jobs { jobs: None } };
    let mut experiment = Experiment::open(file)?;
    if !experiment.has_network() {
        return Err(CommandFailure::Failed(format!(
            "{}: the experiment has no network; `strust train` needs a problem of kind `cifar10`, `convnet` or `gpt`",
            file.display()
        )));
    }
    let names: Vec<String> = experiment.methods.iter().map(|m| m.label.clone()).collect();
    experiment.methods.retain(|m| m.label == method);
    if experiment.methods.is_empty() && methods::all().iter().any(|e| e.name == method && !e.constrained) {
        experiment.methods.extend(methods::with_defaults(method));
    }
    if experiment.methods.is_empty() {
        let names = names.join(", ");
        return Err(CommandFailure::Usage(format!(
            "{}: there is no method `{method}`; choose one of {names}, or one of `strust list`",
            file.display()
        )));
    }
    experiment.problems.retain(is_network);
    if experiment.problems.len() > 1 {
        let many = experiment.problems.len();
        return Err(CommandFailure::Failed(format!(
            "{}: the experiment has {many} networks; keep only one",
            file.display()
        )));
    }
    (experiment.seeds, experiment.tune) = (vec![seed], None);
    // The only job can use all cores.
    experiment.set_of_networks("threads", u32::try_from(strust_lab::cores()).map_or(1, |cores| cores.min(1024)));
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    experiment.name = format!("{}-{}", experiment.name, method.chars().map(plain).collect::<String>());
    // Find this out now, not after hours of training.
    let mut inputs = input_files(&[file]);
    OutputFile::prepare([save], &inputs)?;
    if !is_model(save) {
        return Err(CommandFailure::Failed(format!(
            "{}: the file exists and is not a model: choose another file with --save",
            save.display()
        )));
    }

    let mut plan = commands::plan(&mut experiment, &runs, network)?;
    let begun = |folder: &Path| Plan::load(folder).ok().filter(|begun| is_same_training(begun, &plan));
    let folder = runs.single.out.clone().unwrap_or_else(|| {
        session::unused(Path::new("runs"), &experiment.name, |folder| !folder.exists() || begun(folder).is_some())
    });
    let data: Vec<PathBuf> = experiment.data_paths().collect();
    inputs.extend(input_files(&data.iter().map(PathBuf::as_path).collect::<Vec<_>>()));
    inputs.extend(own_files(&folder));
    let [model] = OutputFile::prepare([save], &inputs)?;
    let begun = begun(&folder);
    let resumes = begun.is_some();
    plan = begun.unwrap_or(plan);
    let pace = session::pace(runs.jobs, runs.single.saving, &experiment)?;
    session::conclude(&folder, shared, pace, &session::command_line(), |options| {
        let summary =
            if resumes { pipeline::resume(&folder, options)? } else { pipeline::start(&folder, &mut plan, options)? };
        // Save the model before printing: a closed output must not lose it.
        options.team.meanwhile(|| export(&folder, &plan, &model))?;
        Ok(summary)
    })?;
    if shared.quiet || shared.json { Ok(()) } else { print(&format!("Model: {}\n", save.display())) }
}

/// Whether a model may be written here: there is no file, or it starts like safetensors (a length, then JSON).
fn is_model(path: &Path) -> bool {
    let mut start = [0; 9];
    match open_plain(path).and_then(|mut file| file.read_exact(&mut start)) {
        Ok(()) => start[8] == b'{' && start[5..8] == [0; 3],
        Err(e) => e.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Whether two plans train the same network. The number of threads may differ: a run can resume on a machine with
/// another number of cores and keeps its own number of threads.
fn is_same_training(one: &Plan, other: &Plan) -> bool {
    let trained = |plan: &Plan| {
        let mut plan = plan.clone();
        let problems = plan.experiment.problems.iter_mut().chain(plan.jobs.iter_mut().map(|job| &mut job.problem));
        problems.for_each(|problem| drop(problem.parameters.remove("threads")));
        (plan.experiment, plan.jobs)
    };
    trained(one) == trained(other)
}

/// `strust evaluate`.
pub fn evaluate(model: &Path, unchecked: bool, network: &Network, shared: &Shared) -> Result<(), CommandFailure> {
    if FittedModel::is_one(model) {
        let why = "a model of `strust fit` needs the rows: strust evaluate MODEL DATA";
        return Err(CommandFailure::Usage(why.into()));
    }
    let missing =
        || CommandFailure::Usage("`strust evaluate` needs --data DIR, the folder with the test images".into());
    let data = network.data.as_deref().ok_or_else(missing)?;
    if network.precision.is_some() {
        return Err(CommandFailure::Usage(
            "`strust evaluate` always uses single precision: leave out --precision".into(),
        ));
    }
    let evaluation = measure(model, data, unchecked, network.device.as_deref().unwrap_or("auto"))?;
    if shared.json { print_data(&json(&evaluation)?) } else { print(&text(&evaluation, shared)) }
}

fn text(e: &Scores, shared: &Shared) -> String {
    let share = |share: Option<f64>| share.map_or("–".into(), |share| format!("{:.1} %", 100.0 * share));
    let title = format!("{} of {} images, on {}", share(Some(e.accuracy)), e.images, e.device);
    let mut classes = vec![["class", "images", "recall", "precision"].map(String::from).to_vec()];
    for class in &e.classes {
        classes.push(vec![class.name.clone(), class.images.to_string(), share(class.accuracy), share(class.precision)]);
    }
    let names = e.classes.iter().map(|class| class.name.clone());
    let mut confusion = vec![std::iter::once("true \\ predicted".into()).chain(names).collect::<Vec<_>>()];
    for (class, row) in e.classes.iter().zip(&e.confusion) {
        confusion.push(std::iter::once(class.name.clone()).chain(row.iter().map(usize::to_string)).collect());
    }
    format!(
        "{}\n{}\n{}\n{}",
        heading(&title, shared),
        table(&classes),
        heading("Confusion matrix", shared),
        table(&confusion)
    )
}

#[cfg(feature = "torch")]
fn measure(model: &Path, data: &Path, unchecked: bool, device: &str) -> Result<Scores, CommandFailure> {
    Ok(strust_lab::analyze::network::evaluate(model, data, unchecked, device)?)
}

#[cfg(not(feature = "torch"))]
fn measure(_: &Path, _: &Path, _: bool, _: &str) -> Result<Scores, CommandFailure> {
    Err(CommandFailure::Failed(WITHOUT_TORCH.into()))
}

/// `strust bench cifar10`.
#[cfg(not(feature = "torch"))]
pub fn bench(_device: &str, _memory_of: Option<&str>, _shared: &Shared) -> Result<(), CommandFailure> {
    Err(CommandFailure::Failed(WITHOUT_TORCH.into()))
}

#[cfg(feature = "torch")]
pub use with_torch::bench;

#[cfg(feature = "torch")]
mod with_torch {
    use super::{CommandFailure, Shared, heading, json, print, print_data, table};
    use serde::{Deserialize, Serialize};
    use std::{
        fmt::Write as _,
        process::{Command, Output},
        time::Instant,
    };
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

    /// `strust bench cifar10`. With `memory_of`, only measures the peak memory of one method in this process.
    pub fn bench(device: &str, memory_of: Option<&str>, shared: &Shared) -> Result<(), CommandFailure> {
        let failed = |e: strust_torch::Error| CommandFailure::Failed(e.to_string());
        if let Some(name) = memory_of {
            let method = if name == "sgd" { Measured::Sgd } else { Measured::Str };
            let peak = bench::peak_memory(method, BATCH, 5).map_err(failed)?;
            return print(&format!("{}\n", peak.unwrap_or(0)));
        }
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
            if theirs
                .as_ref()
                .is_some_and(|t| pytorch.as_ref().is_none_or(|p| t.images_per_second > p.images_per_second))
            {
                pytorch = theirs;
            }
        }
        let memory = (device == Device::Cpu).then(memory).flatten();
        let speed = best.expect("there is at least one turn");
        let (version, images) = pytorch.map(|p| (p.version, p.images_per_second)).unzip();
        let cost = Cost { speed, memory, epochs, pytorch_version: version, pytorch_images_per_second: images };
        if shared.json { print_data(&json(&cost)?) } else { print(&text(&cost, shared)) }
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

    fn text(cost: &Cost, shared: &Shared) -> String {
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
        let mut text = format!(
            "{}\n{}",
            heading(&format!("A step of ResNet-20, batch {BATCH}, on {}", cost.speed.device), shared),
            table(&rows)
        );
        if let Some(first) = cost.epochs.first() {
            let title =
                heading(&format!("An epoch of {STEPS} steps: total time divided by the number of runs"), shared);
            let _ = write!(text, "\n{title}\n{}", table(&epoch_rows(&cost.epochs)));
            let _ = writeln!(text, "\nThe first step ended {:.1} s after the start.", first.first_step);
        }
        if let Some(memory) = &cost.memory {
            let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
            let more = memory.str_peak_bytes as f64 - memory.sgd_peak_bytes as f64;
            let copies = more / cost.speed.parameter_bytes as f64;
            let (sgd, str) = (mb(memory.sgd_peak_bytes), mb(memory.str_peak_bytes));
            let _ = writeln!(text, "\nPeak memory: SGD {sgd}, STR {str}: {copies:.1} more copies of the parameters");
        }
        text
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
            ("golden_resnet20.py", include_str!("../../strust-torch/scripts/golden_resnet20.py")),
            ("pytorch_speed.py", include_str!("../../strust-torch/scripts/pytorch_speed.py")),
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_resumes_on_a_machine_with_another_number_of_cores() {
        let plan = |parameter: &str, value: u32| {
            let mut experiment = Experiment::open(Path::new("cifar10")).unwrap();
            experiment.set_of_networks(parameter, value);
            Plan::new(experiment, String::new(), strust_lab::this_machine(1, None))
        };
        assert!(is_same_training(&plan("threads", 2), &plan("threads", 16)));
        assert!(!is_same_training(&plan("threads", 2), &plan("train_images", 16)));
    }
}
