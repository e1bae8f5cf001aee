//! Measures a step of ResNet-20 with SGD, with the library's STR and with STR on the device, and an epoch on a GPU.

mod newton;

pub use newton::{NewtonSpeed, newton};

use crate::{
    DeviceAdam, DeviceAuto, DeviceMethod, DeviceRun, DeviceSgd, DeviceStr, Error, ImageClassification, ImageLoss,
    Launch, TorchObjective,
    cuda::{self, OwnStream},
    device,
    images::ImageBytes,
};
use serde::{Deserialize, Serialize};
use std::{fs, panic::resume_unwind, process::Command, sync::Barrier, time::Instant};
use strust::{prelude::*, radius::RegionConfig, samplers::Sampler};
use strust_baselines::{AdamConfig, Sgd, SgdConfig};
use strust_problems::Problem;
use tch::{Cuda, Device};

/// Steps before the measurement. In them libtorch allocates memory and chooses its algorithms.
const WARM_UP: usize = 3;

/// A method whose step is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// SGD, the reference.
    Sgd,
    /// The library's STR.
    Str,
    /// [`DeviceStr`].
    DeviceStr,
}

impl Measured {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sgd, Self::Str, Self::DeviceStr];
}

/// The result of [`cifar10`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// The device, with libtorch's version.
    pub device: String,
    /// Threads of one operation on the CPU.
    pub threads: i32,
    /// Images per step.
    pub batch: usize,
    /// Steps of each method that were timed.
    pub rounds: usize,
    /// Milliseconds per step of SGD, median.
    pub sgd_step_ms: f64,
    /// The same for STR.
    pub str_step_ms: f64,
    /// The same for STR on the device.
    pub device_str_step_ms: f64,
    /// The time of STR's step divided by that of SGD's. It is the median over rounds; each round makes both steps in
    /// sequence.
    pub ratio: f64,
    /// The same for STR on the device.
    pub device_ratio: f64,
    /// `ratio` in processor time, on which other programs have little effect. Only on the CPU of a Linux machine.
    pub processor_ratio: Option<f64>,
    /// The same for STR on the device.
    pub device_processor_ratio: Option<f64>,
    /// Images per second of SGD.
    pub images_per_second: f64,
    /// Images per second of STR.
    pub str_images_per_second: f64,
    /// Milliseconds for an augmented batch, median. The steps above include it.
    pub batch_ms: f64,
    /// Bytes of one copy of the parameters.
    pub parameter_bytes: usize,
}

/// ResNet-20 on synthetic images of CIFAR-10's shape.
pub fn synthetic(images: usize, device: Device) -> Result<ImageClassification, Error> {
    let pixels: Vec<u8> = (0..images as u32 * 3 * 1024).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let labels: Vec<u8> = (0..images).map(|i| (i % 10) as u8).collect();
    ImageClassification::resnet20(
        &ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 32, 32] },
        None,
        10,
        device,
    )
}

type TimedStep<'a> = Box<dyn FnMut(&Sample) -> Result<(), Error> + 'a>;

/// Steps so short that all numbers stay finite.
fn short_steps() -> StrConfig {
    StrConfig { region: RegionConfig { initial_radius: 0.1, max_radius: 0.1, ..Default::default() } }
}

/// Starts a method and returns a function that makes a step on `f`.
fn stepper(method: Measured, f: &mut ImageClassification) -> Result<TimedStep<'_>, Error> {
    let region = short_steps();
    let start = f.start(0);
    Ok(match method {
        Measured::Sgd => {
            let mut sgd = Sgd::new(SgdConfig { learning_rate: 0.01, ..Default::default() })?;
            let mut state = sgd.init(f, start)?;
            Box::new(move |sample| Ok(sgd.step(f, &mut state, sample).map(drop)?))
        }
        Measured::Str => {
            let mut str = Str::new(region)?;
            let mut state = str.init(f, start)?;
            Box::new(move |sample| Ok(str.step(f, &mut state, sample).map(drop)?))
        }
        Measured::DeviceStr => {
            f.objective().set(&start);
            let mut str = DeviceStr::start(region, f.objective(), 100)?;
            Box::new(move |sample| Ok(str.step(f.objective(), sample)?))
        }
    })
}

/// Measures `rounds` steps of each method on augmented synthetic images of CIFAR-10's shape.
///
/// The methods step in turn, so that other work on the machine slows all of them equally.
///
/// ```no_run
/// let speed = strust_torch::bench::cifar10(tch::Device::Cpu, 128, 20)?;
/// println!("{:.0} images/s, STR's step is {:.2} of SGD's", speed.images_per_second, speed.ratio);
/// # Ok::<(), strust_torch::Error>(())
/// ```
pub fn cifar10(device: Device, batch: usize, rounds: usize) -> Result<Speed, Error> {
    let report = device::report(device)?;
    let rounds = rounds.max(1);
    let mut problems = Vec::new();
    for _ in Measured::ALL {
        problems.push(synthetic(4 * batch, device)?);
    }
    let batches = synthetic(4 * batch, device)?;
    let (terms, parameter_bytes) = (batches.terms(), batches.parameters() * size_of::<f32>());
    let mut steps: Vec<TimedStep> = Vec::new();
    for (method, f) in Measured::ALL.into_iter().zip(&mut problems) {
        steps.push(stepper(method, f)?);
    }
    steps.push(Box::new(|sample| {
        drop(batches.make_batch(sample));
        Ok(())
    }));

    let mut times = vec![Vec::new(); steps.len()];
    let mut busy = times.clone();
    let (mut sampler, mut sample) = (Epochs::new(terms, batch, 0)?, Sample::default());
    for k in 0..WARM_UP + rounds {
        sampler.draw(k as u64, &mut sample);
        for ((step, times), busy) in steps.iter_mut().zip(&mut times).zip(&mut busy) {
            wait(device);
            let (before, began) = (processor_time(), Instant::now());
            step(&sample)?;
            wait(device);
            if k >= WARM_UP {
                times.push(1e3 * began.elapsed().as_secs_f64());
                busy.extend(before.zip(processor_time()).map(|(before, after)| after - before));
            }
        }
    }
    let paired = |times: &[Vec<f64>], method: usize| median(times[method].iter().zip(&times[0]).map(|(a, b)| a / b));
    let on_cpu = device == Device::Cpu && busy[0].len() == rounds;
    let ms: Vec<f64> = times.iter().map(|times| median(times.iter().copied())).collect();
    Ok(Speed {
        device: report.to_string(),
        threads: report.threads,
        batch,
        rounds,
        sgd_step_ms: ms[0],
        str_step_ms: ms[1],
        device_str_step_ms: ms[2],
        ratio: paired(&times, 1),
        device_ratio: paired(&times, 2),
        processor_ratio: on_cpu.then(|| paired(&busy, 1)),
        device_processor_ratio: on_cpu.then(|| paired(&busy, 2)),
        images_per_second: 1e3 * batch as f64 / ms[0],
        str_images_per_second: 1e3 * batch as f64 / ms[1],
        batch_ms: ms[3],
        parameter_bytes,
    })
}

/// A method on the device, of which [`epochs`] measures an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimizer {
    /// [`DeviceSgd`].
    Sgd,
    /// [`DeviceStr`].
    Str,
    /// [`DeviceAdam`].
    Adam,
    /// [`DeviceAuto`].
    Auto,
}

impl Optimizer {
    /// All methods.
    pub const ALL: [Self; 4] = [Self::Sgd, Self::Str, Self::Adam, Self::Auto];
}

/// The arithmetic of convolutions and products on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arithmetic {
    /// Single precision.
    Single,
    /// Factors rounded to TF32.
    Tf32,
    /// bfloat16 in the network; see [`ImageClassification::in_bf16`].
    Bf16,
}

/// The result of [`epochs`].
#[derive(Debug, Clone, Serialize)]
pub struct EpochSpeed {
    /// The method.
    pub method: Optimizer,
    /// The arithmetic.
    pub arithmetic: Arithmetic,
    /// How the steps are launched.
    pub launch: Launch,
    /// The number of runs in parallel.
    pub runs: usize,
    /// Seconds of the median epoch, divided by the number of runs.
    pub median: f64,
    /// Seconds of each epoch until the last run has finished it. They include drawing the samples, all steps, and
    /// reading the records.
    pub seconds: Vec<f64>,
    /// Seconds from the start to the end of the first step. They include opening the device, copying the data and
    /// creating the model.
    pub first_step: f64,
    /// The records of all steps of the first run, including the epoch before the measurement.
    #[serde(skip)]
    pub records: Vec<StepRecord>,
    /// Why the steps were not replayed from a graph.
    pub why_eager: Option<String>,
    /// The peak of the GPU's memory in bytes: in tensors, without those that existed before; and allocated from the
    /// driver in total.
    pub peak: [u64; 2],
    /// How often the host read records of the first run.
    pub reads: u64,
}

/// Measures epochs on synthetic images of CIFAR-10's shape, for one run or several runs in parallel. `shape` is the
/// batch size, the steps per epoch and the number of epochs. One more epoch runs before the measurement. Runs in
/// parallel have different seeds, and each has its own thread and stream.
///
/// ```no_run
/// use strust_torch::{Launch, bench::{self, Arithmetic, Optimizer}};
/// let speed = bench::epochs(tch::Device::Cuda(0), Optimizer::Str, Arithmetic::Tf32, Launch::Graph, 1, [128, 390, 5])?;
/// println!("{:.2} s an epoch", speed.median);
/// # Ok::<(), strust_torch::Error>(())
/// ```
pub fn epochs(
    device: Device,
    method: Optimizer,
    arithmetic: Arithmetic,
    launch: Launch,
    runs: usize,
    shape: [usize; 3],
) -> Result<EpochSpeed, Error> {
    let began = Instant::now();
    device::report(device)?;
    cuda::set_tf32(arithmetic != Arithmetic::Single);
    // The first call resets the peak. libtorch keeps workspaces of all earlier streams, so the memory in use now is
    // subtracted below.
    let _ = cuda::peak_memory(device);
    let [before, _] = cuda::peak_memory(device);
    let runs = runs.max(1);
    let together = Barrier::new(runs);
    let run = &|seed: u64| {
        let mut turns = EpochBarrier { together: &together, left: shape[2] };
        let _stream = OwnStream::on(device);
        let mut problem = synthetic(shape[0] * shape[1], device)?;
        if arithmetic == Arithmetic::Bf16 {
            problem = problem.in_bf16();
        }
        let start = problem.start(seed);
        let f = problem.objective();
        f.set(&start);
        let turns = &mut turns;
        match method {
            Optimizer::Sgd => {
                let config = SgdConfig { learning_rate: 0.01, ..Default::default() };
                time_epochs::<DeviceSgd<f32>>(f, config, launch, shape, turns)
            }
            Optimizer::Str => time_epochs::<DeviceStr<f32>>(f, short_steps(), launch, shape, turns),
            Optimizer::Auto => time_epochs::<DeviceAuto<f32>>(f, AutoConfig::default(), launch, shape, turns),
            Optimizer::Adam => time_epochs::<DeviceAdam<f32>>(f, AdamConfig::default(), launch, shape, turns),
        }
    };
    let timed: Vec<TimedRun> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..runs as u64).map(|seed| scope.spawn(move || run(seed))).collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.collect::<Result<_, _>>()
    })?;
    let first_step = timed.iter().map(|timed| timed.first_step.duration_since(began).as_secs_f64()).fold(0.0, f64::max);
    // An epoch lasts from the first run that begins it to the last run that ends it.
    let epoch = |i: usize| {
        let begin = timed.iter().map(|timed| timed.epochs[i].0).min().expect("there is a run");
        let end = timed.iter().map(|timed| timed.epochs[i].1).max().expect("there is a run");
        end.duration_since(begin).as_secs_f64()
    };
    let seconds: Vec<f64> = (0..shape[2]).map(epoch).collect();
    let median = median(seconds.iter().copied()) / runs as f64;
    let TimedRun { records, why_eager, reads, .. } = timed.into_iter().next().expect("there is a run");
    let [in_tensors, reserved] = cuda::peak_memory(device);
    let peak = [in_tensors.saturating_sub(before), reserved];
    Ok(EpochSpeed { method, arithmetic, launch, runs, median, seconds, first_step, records, why_eager, peak, reads })
}

/// Lets all runs begin each epoch at the same time. If a run fails, the others continue.
struct EpochBarrier<'a> {
    together: &'a Barrier,
    left: usize,
}

impl EpochBarrier<'_> {
    fn next(&mut self) {
        self.left -= 1;
        self.together.wait();
    }
}

impl Drop for EpochBarrier<'_> {
    fn drop(&mut self) {
        (0..self.left).for_each(|_| self.next());
    }
}

struct TimedRun {
    first_step: Instant,
    /// The begin and end of each epoch.
    epochs: Vec<(Instant, Instant)>,
    records: Vec<StepRecord>,
    why_eager: Option<String>,
    reads: u64,
}

fn time_epochs<M: DeviceMethod<f32>>(
    f: &mut TorchObjective<f32, ImageLoss>,
    config: M::Config,
    launch: Launch,
    [batch, steps, rounds]: [usize; 3],
    turns: &mut EpochBarrier,
) -> Result<TimedRun, Error> {
    let method = M::start(config, f, steps)?;
    let mut run = DeviceRun::new(f, method, batch, steps, launch);
    let device = f.parameters().device();
    let mut sampler = Epochs::new(f.terms(), batch, 0)?;
    let mut records = Vec::new();
    run.steps(f, &mut sampler, 1)?;
    wait(device);
    let first_step = Instant::now();
    run.steps(f, &mut sampler, steps as u64 - 1)?;
    records.extend(run.method().records()?);
    let mut epochs = Vec::new();
    for _ in 0..rounds {
        wait(device);
        turns.next();
        let began = Instant::now();
        run.steps(f, &mut sampler, steps as u64)?;
        records.extend(run.method().records()?);
        epochs.push((began, Instant::now()));
    }
    let (why_eager, reads) = (run.why_eager().map(String::from), run.method().reads());
    Ok(TimedRun { first_step, epochs, records, why_eager, reads })
}

fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers[(numbers.len() - 1) / 2], numbers[numbers.len() / 2]);
    f64::midpoint(low, high)
}

/// The processor time of all threads of this process in seconds, if the system reports it.
fn processor_time() -> Option<f64> {
    let mut nanoseconds = 0.0;
    for task in fs::read_dir("/proc/self/task").ok()? {
        let line = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        nanoseconds += line.split_whitespace().next()?.parse::<f64>().ok()?;
    }
    Some(1e-9 * nanoseconds)
}

/// Waits for the GPU. A call returns before its work on a GPU is finished.
fn wait(device: Device) {
    if let Device::Cuda(index) = device {
        let _held = cuda::hold_off_capture();
        Cuda::synchronize(index as i64);
    }
}

/// The peak memory of this process in bytes, over `steps` steps of a method on the CPU. It is Linux's `VmHWM`, and
/// `None` on other systems.
///
/// It is the memory of the whole process. Measure each method in its own process, started by [`precise`]; the
/// difference of two results is then the memory that one method needs more than the other.
pub fn peak_memory(method: Measured, batch: usize, steps: usize) -> Result<Option<u64>, Error> {
    let mut f = synthetic(4 * batch, Device::Cpu)?;
    let (mut sampler, mut sample) = (Epochs::new(f.terms(), batch, 0)?, Sample::default());
    let mut step = stepper(method, &mut f)?;
    for k in 0..WARM_UP + steps {
        if k == WARM_UP {
            // Resets the peak, which so far is that of the start.
            let _ = fs::write("/proc/self/clear_refs", "5");
        }
        sampler.draw(k as u64, &mut sample);
        step(&sample)?;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    Ok(kilobytes.map(|kilobytes: u64| 1024 * kilobytes))
}

/// Configures a program so that its [`peak_memory`] is exact: glibc's allocator then gives each block of 64 KiB or more
/// its own pages and returns them to the system at once. By default it keeps freed blocks of up to 32 MB, which hides
/// differences of a few megabytes.
pub fn precise(program: &mut Command) -> &mut Command {
    program.env("MALLOC_MMAP_THRESHOLD_", "65536").env("MALLOC_TRIM_THRESHOLD_", "65536").env("MALLOC_ARENA_MAX", "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_consistent_and_can_be_saved_and_loaded() {
        tch::set_num_threads(1);
        let speed = cifar10(Device::Cpu, 4, 2).unwrap();
        assert_eq!((speed.batch, speed.rounds, speed.parameter_bytes), (4, 2, 4 * 269_722));
        assert!((speed.images_per_second * speed.sgd_step_ms / 4e3 - 1.0).abs() < 1e-12 && speed.ratio > 0.0);
        let text = serde_json::to_string(&speed).unwrap();
        assert_eq!(serde_json::from_str::<Speed>(&text).unwrap(), speed);
    }

    #[test]
    fn an_epoch_of_each_method_has_one_record_per_step_and_one_read() {
        tch::set_num_threads(1);
        for method in Optimizer::ALL {
            let speed = epochs(Device::Cpu, method, Arithmetic::Bf16, Launch::Graph, 2, [2, 3, 1]).unwrap();
            assert_eq!((speed.records.len(), speed.seconds.len(), speed.reads, speed.peak), (6, 1, 2, [0; 2]));
            assert_eq!(speed.why_eager.as_deref(), Some("CUDA graph: Cpu is no GPU"));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_memory_is_at_least_that_of_the_parameters() {
        tch::set_num_threads(1);
        for method in Measured::ALL {
            assert!(peak_memory(method, 2, 1).unwrap().unwrap() > 4 * 4 * 269_722);
        }
    }

    #[test]
    fn the_median_of_an_even_count_is_between_the_middle_two() {
        assert!((median([4.0, 1.0, 3.0, 2.0].into_iter()) - 2.5).abs() < f64::EPSILON);
        assert!((median([9.0, 1.0, 3.0].into_iter()) - 3.0).abs() < f64::EPSILON);
    }
}
