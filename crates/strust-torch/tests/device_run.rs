//! Methods on the device make the library's steps: from samples on the host, from queued samples, and, on a GPU, as a
//! CUDA graph.

#![allow(clippy::cast_possible_wrap)]

mod common;

use common::{TERMS, bits, gpu, requires, steep_problem, store, waves};
use std::{cell::Cell, rc::Rc, sync::Barrier};
use strust::{methods::StrNewtonConfig, prelude::*, sample::Draws, samplers::Sampler, schedule::Schedule};
use strust_baselines::{Adam, AdamConfig, Sgd, SgdConfig};
use strust_problems::Problem;
use strust_torch::{
    BatchLoss, Component, DeviceAdam, DeviceMethod, DeviceNewton, DeviceRun, DeviceSgd, DeviceStr, ImageClassification,
    Launch, QueuedLoss, TableLoss, TorchObjective, cross_entropy, cuda, device, images::ImageBytes,
};
use tch::{Cuda, Device, Kind, Tensor, nn};

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    a.to_bits() == b.to_bits() || (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

fn assert_near(a: &[StepRecord], b: &[StepRecord], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert_eq!((a.k, a.verdict, &a.evaluations), (b.k, b.verdict, &b.evaluations));
        let pairs = [
            (a.value, b.value),
            (a.gradient_norm, b.gradient_norm),
            (a.step_size, b.step_size),
            (a.step_length, b.step_length),
        ];
        for (i, (a_i, b_i)) in pairs.into_iter().enumerate() {
            assert!(near(a_i, b_i, tolerance), "step {}, number {i}: {a_i} against {b_i}", a.k);
        }
    }
}

/// Makes 60 steps of the library's method and of ours, with dropout, batch-norm and noise. Then each resumes from the
/// state of the other and makes 20 more.
macro_rules! the_librarys_steps {
    ($T:ty, $library:ident, $device:ident, $config:expr, $schedule:expr, $tolerance:expr) => {{
        let (one, other) = (store::<$T>(), store::<$T>());
        let (mut f, mut g) = (steep_problem::<$T>(&one, 0.2, 0.2, 3.0), steep_problem::<$T>(&other, 0.2, 0.2, 3.0));
        let mut library = $library::new($config).unwrap().schedule($schedule);
        let start = f.point();
        let mut state = library.init(&mut f, start).unwrap();
        let mut device = $device::start($config, &g, 7).unwrap().schedule($schedule);
        let mut sampler = Epochs::new(TERMS, 16, 7).unwrap();
        let (mut sample, mut records) = (Sample::default(), Vec::new());
        for k in 0..60 {
            sampler.draw(k, &mut sample);
            records.push(library.step(&mut f, &mut state, &sample).unwrap());
            device.step(&mut g, &sample).unwrap();
        }
        assert_near(&device.records().unwrap(), &records, $tolerance);
        assert!(records[59].value < 0.7 * records[0].value, "it learns: {} {}", records[0].value, records[59].value);
        // Each resumes from the state of the other.
        let seen = device.state(&g);
        let mut device = $device::resume($config, &mut g, &state, 100).unwrap().schedule($schedule);
        let mut library = $library::new($config).unwrap().schedule($schedule);
        let start = f.point();
        library.init(&mut f, start).unwrap();
        (state, records) = (seen, Vec::new());
        for k in 60..80 {
            sampler.draw(k, &mut sample);
            records.push(library.step(&mut f, &mut state, &sample).unwrap());
            device.step(&mut g, &sample).unwrap();
        }
        assert_near(&device.records().unwrap(), &records, $tolerance);
        assert_eq!(device.state(&g).k, 80);
    }};
}

/// A cosine that ends after 70 of 80 steps.
const SCHEDULES: [Schedule; 2] = [Schedule::Constant, Schedule::cosine(70)];

#[test]
fn sgd_makes_the_librarys_steps() {
    let plain = SgdConfig { learning_rate: 0.1, ..Default::default() };
    let heavy = SgdConfig { learning_rate: 0.02, momentum: 0.9, weight_decay: 1e-3 };
    for schedule in SCHEDULES {
        the_librarys_steps!(f64, Sgd, DeviceSgd, plain.clone(), schedule, 1e-9);
        the_librarys_steps!(f64, Sgd, DeviceSgd, heavy.clone(), schedule, 1e-9);
        the_librarys_steps!(f32, Sgd, DeviceSgd, plain.clone(), schedule, 1e-3);
        the_librarys_steps!(f32, Sgd, DeviceSgd, heavy.clone(), schedule, 1e-3);
    }
}

#[test]
fn adam_makes_the_librarys_steps() {
    // The gradient of a bias before batch-norm is only rounding error; with a small ε Adam would follow it.
    let plain = AdamConfig { learning_rate: 0.02, epsilon: 1e-3, ..Default::default() };
    let decoupled = AdamConfig { weight_decay: 0.1, ..plain.clone() };
    for schedule in SCHEDULES {
        for config in [&plain, &decoupled] {
            the_librarys_steps!(f64, Adam, DeviceAdam, config.clone(), schedule, 1e-9);
            the_librarys_steps!(f32, Adam, DeviceAdam, config.clone(), schedule, 1e-3);
        }
    }
}

/// After a value that is not finite the point stays unchanged, and an error follows the good records.
fn freezes<M: DeviceMethod<f64>>(good_steps: u64, start: impl FnOnce(&TorchObjective<f64, Bowl>) -> M) {
    let (store, factor) = (store::<f64>(), Rc::new(Cell::new(0.25)));
    let x = store.root().var("x", &[3], nn::Init::Const(1.0));
    let mut f = TorchObjective::over(&store, 1, Bowl(x, factor.clone())).unwrap();
    let mut method = start(&f);
    let sample = Sample::new(vec![0], 1);
    (0..good_steps).for_each(|_| method.step(&mut f, &sample).unwrap());
    let good = bits(f.parameters().flat());
    for factor_now in [f64::NAN, 0.25] {
        factor.set(factor_now);
        method.step(&mut f, &sample).unwrap();
    }
    assert_eq!(bits(f.parameters().flat()), good);
    if good_steps > 0 {
        assert_eq!(method.records().unwrap().len() as u64, good_steps);
    }
    assert!(matches!(method.records(), Err(strust::Error::NonFiniteValue { step, .. }) if step == good_steps));
    assert!(method.step(&mut f, &sample).is_err());
}

struct Bowl(Tensor, Rc<Cell<f64>>);

impl BatchLoss for Bowl {
    fn mean(&mut self, _: &Sample) -> Tensor {
        self.0.square().sum(Kind::Double) * self.1.get()
    }
}

#[test]
fn a_value_that_is_not_finite_freezes_the_point() {
    for good in [0, 3] {
        freezes(good, |f| DeviceSgd::start(SgdConfig { momentum: 0.5, ..Default::default() }, f, 100).unwrap());
        freezes(good, |f| DeviceAdam::start(AdamConfig::default(), f, 100).unwrap());
        freezes(good, |f| DeviceStr::start(StrConfig::default(), f, 100).unwrap());
    }
}

/// A sampler that always draws the same sample.
struct Always(Vec<usize>);

impl Sampler for Always {
    fn draw(&mut self, _: u64, sample: &mut Sample) {
        *sample = Sample::new(self.0.clone(), 1);
    }
    fn terms(&self) -> usize {
        TERMS
    }
    fn draws(&self) -> Draws {
        Draws::Different
    }
    fn steps_per_epoch(&self) -> u64 {
        1
    }
}

/// Checks queued samples (16 terms) and samples from the host, which have another size (8 terms).
fn keeps_its_statistics<M: DeviceMethod<f64>>(config: &M::Config) {
    for size in [16, 8] {
        let store = store::<f64>();
        let net = common::Net::new(&store, 0.0);
        let inputs = waves(&[TERMS as i64, 8], 0.3, Kind::Double);
        let _ = inputs.get(TERMS as i64 - 1).fill_(f64::NAN);
        let loss = TableLoss::new(
            inputs,
            Tensor::zeros([TERMS as i64], (Kind::Int64, Device::Cpu)),
            move |x| net.forward(x, true),
            cross_entropy,
        );
        let mut f = TorchObjective::over(&store, TERMS, loss).unwrap();
        let method = M::start(config.clone(), &f, 100).unwrap();
        let mut run = DeviceRun::new(&mut f, method, 16, 5, Launch::Graph);
        let before = bits(f.parameters().buffers());
        run.steps(&mut f, &mut Always((0..size).collect()), 3).unwrap();
        let good = bits(f.parameters().buffers());
        assert_ne!(good, before);
        run.steps(&mut f, &mut Always((TERMS - size..TERMS).collect()), 1).unwrap();
        assert_eq!(bits(f.parameters().buffers()), good);
        assert_eq!(run.method().records().unwrap().len(), 3);
        assert!(matches!(run.method().records(), Err(strust::Error::NonFiniteValue { step: 3, .. })));
    }
}

#[test]
fn a_value_that_is_not_finite_does_not_change_the_running_statistics() {
    keeps_its_statistics::<DeviceSgd<f64>>(&SgdConfig::default());
    keeps_its_statistics::<DeviceAdam<f64>>(&AdamConfig::default());
    keeps_its_statistics::<DeviceStr<f64>>(&StrConfig::default());
}

/// A small convolutional network with batch-norm on synthetic images.
fn images(device: Device) -> ImageClassification {
    let pixels: Vec<u8> = (0..44 * 3 * 64_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let labels: Vec<u8> = (0..44).map(|i| i % 4).collect();
    let bytes = ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 8, 8] };
    let mut f = ImageClassification::new(&bytes, None, 4, device, |path| {
        let conv = nn::conv2d(path / "conv", 3, 8, 3, nn::ConvConfig { padding: 1, ..Default::default() });
        let norm = nn::batch_norm2d(path / "norm", 8, nn::BatchNormConfig::default());
        let linear = nn::linear(path / "linear", 8, 4, nn::LinearConfig::default());
        Box::new(move |x, train| {
            let x = x.apply(&conv).apply_t(&norm, train).relu();
            x.mean_dim([2_i64, 3].as_slice(), false, None).apply(&linear)
        })
    })
    .unwrap()
    .without_random_numbers();
    let start = f.start(1);
    f.objective().set(&start);
    f
}

fn end<M: DeviceMethod<f32>>(f: &mut ImageClassification, method: &mut M) -> (Vec<StepRecord>, Vec<u8>, Vec<u8>) {
    let parameters = f.objective().parameters();
    (method.records().unwrap(), bits(parameters.flat()), bits(parameters.buffers()))
}

#[test]
fn queued_samples_give_the_same_steps_bit_for_bit() {
    tch::set_num_threads(1);
    // 44 images in batches of 8: the sixth batch of an epoch has four.
    let sampler = || Epochs::new(44, 8, 5).unwrap();
    let one_by_one = {
        let mut f = images(Device::Cpu);
        let mut method = DeviceStr::start(StrConfig::default(), f.objective(), 100).unwrap();
        let (mut sampler, mut sample) = (sampler(), Sample::default());
        for k in 0..27 {
            sampler.draw(k, &mut sample);
            method.step(f.objective(), &sample).unwrap();
        }
        end(&mut f, &mut method)
    };
    // For any number of queued samples, and also if a graph is asked for without a GPU.
    for (room, launch) in [(1, Launch::Eager), (3, Launch::Graph), (100, Launch::Eager)] {
        let mut f = images(Device::Cpu);
        let method = DeviceStr::start(StrConfig::default(), f.objective(), 100).unwrap();
        let mut run = DeviceRun::new(f.objective(), method, 8, room, launch);
        let mut sampler = sampler();
        run.steps(f.objective(), &mut sampler, 13).unwrap();
        run.steps(f.objective(), &mut sampler, 14).unwrap();
        assert!(!run.is_captured() && run.why_eager().is_some());
        let mut method = run.into_method();
        assert_eq!(end(&mut f, &mut method), one_by_one);
    }
}

fn few_products() -> StrNewtonConfig {
    StrNewtonConfig { products: 4, at_boundary: 0, retreats: 0, ..Default::default() }
}

#[test]
fn queued_samples_give_the_same_products_bit_for_bit() {
    tch::set_num_threads(1);
    for gauss_newton in [false, true] {
        let start = |f: &mut ImageClassification| {
            let method = DeviceNewton::start(few_products(), f.objective(), 100).unwrap();
            if gauss_newton { method.gauss_newton() } else { method }
        };
        let (mut f, mut g) = (images(Device::Cpu), images(Device::Cpu));
        let (mut method, queued) = (start(&mut f), start(&mut g));
        let (mut sampler, mut sample) = (Epochs::new(44, 8, 5).unwrap(), Sample::default());
        for k in 0..9 {
            sampler.draw(k, &mut sample);
            method.step(f.objective(), &sample).unwrap();
        }
        let mut run = DeviceRun::new(g.objective(), queued, 8, 4, Launch::Eager);
        run.steps(g.objective(), &mut Epochs::new(44, 8, 5).unwrap(), 9).unwrap();
        assert_eq!(end(&mut g, &mut run.into_method()), end(&mut f, &mut method));
    }
}

#[test]
fn the_host_reads_once_an_epoch() {
    tch::set_num_threads(1);
    let mut f = images(Device::Cpu);
    let method = DeviceStr::start(StrConfig::default(), f.objective(), 5).unwrap();
    let mut run = DeviceRun::new(f.objective(), method, 8, 5, Launch::Eager);
    let mut sampler = Epochs::new(40, 8, 5).unwrap();
    for epoch in 1..=3 {
        run.steps(f.objective(), &mut sampler, 4).unwrap();
        assert_eq!(run.method().reads(), epoch - 1);
        run.steps(f.objective(), &mut sampler, 1).unwrap();
        assert_eq!(run.method().reads(), epoch);
    }
    assert_eq!(run.method().records().unwrap().len(), 15);
    assert_eq!(run.method().reads(), 3);
}

#[test]
fn a_run_goes_on_with_its_own_objective_alone() {
    tch::set_num_threads(1);
    let (mut f, mut other) = (images(Device::Cpu), images(Device::Cpu));
    let mut sampler = Epochs::new(44, 8, 5).unwrap();
    let begin = |f: &mut ImageClassification| {
        let method = DeviceStr::start(StrConfig::default(), f.objective(), 100).unwrap();
        DeviceRun::new(f.objective(), method, 8, 5, Launch::Eager)
    };
    let (mut run, _) = (begin(&mut f), begin(&mut other));
    assert!(run.steps(other.objective(), &mut sampler, 1).is_err());
    run.steps(f.objective(), &mut sampler, 1).unwrap();
    let mut next = begin(&mut f);
    let error = run.steps(f.objective(), &mut sampler, 1).unwrap_err().to_string();
    assert!(error.contains("another run was started on this objective"), "{error}");
    next.steps(f.objective(), &mut sampler, 1).unwrap();
}

/// Regression from a table by a small network.
fn table<T: Component>(
    device: Device,
    store: &nn::VarStore,
    peek: bool,
) -> TorchObjective<T, impl QueuedLoss + use<T>> {
    let net = common::Net::new(store, 0.0);
    let inputs = waves(&[TERMS as i64, 8], 0.3, T::KIND).to_device(device);
    let classes = (waves(&[TERMS as i64], 1.7, Kind::Double) * 1e3).remainder(4.0).floor();
    let model = move |x: &Tensor| {
        let y = net.forward(x, true);
        // Reading a number from the device cannot be captured.
        if peek && y.sum(Kind::Double).double_value(&[]).is_nan() { y * 0.0 } else { y }
    };
    let loss = |y: &Tensor, t: &Tensor| cross_entropy(y, t) * 10.0;
    TorchObjective::over(
        store,
        TERMS,
        TableLoss::new(inputs, classes.to_kind(Kind::Int64).to_device(device), model, loss),
    )
    .unwrap()
}

/// The records of 250 steps. Waiting is an error in the last 200.
fn never_waits<T: Component, L: QueuedLoss, M: DeviceMethod<T>>(
    f: &mut TorchObjective<T, L>,
    method: M,
    launch: Launch,
) -> Vec<StepRecord> {
    let mut run = DeviceRun::new(f, method, 16, 60, launch);
    let mut sampler = Epochs::new(TERMS - 4, 16, 7).unwrap();
    run.steps(f, &mut sampler, 50).unwrap();
    assert_eq!(run.is_captured(), launch == Launch::Graph, "{:?}", run.why_eager());
    cuda::without_waiting(|| run.steps(f, &mut sampler, 200)).unwrap();
    assert_eq!(run.method().reads(), 0);
    run.method().records().unwrap()
}

#[test]
#[ignore = "needs a GPU"]
fn a_graph_makes_the_same_steps_as_eager_launches_and_never_waits() {
    let (device, _alone) = gpu();
    let curves = |launch| {
        let made = |start: &dyn Fn(&mut nn::VarStore) -> Vec<StepRecord>| {
            let mut store = nn::VarStore::new(device);
            store.set_kind(Kind::Double);
            start(&mut store)
        };
        [
            made(&|store| {
                let mut f = table::<f64>(device, store, false);
                let method = DeviceStr::start(StrConfig::default(), &f, 1000).unwrap();
                never_waits(&mut f, method, launch)
            }),
            made(&|store| {
                let mut f = table::<f64>(device, store, false);
                let method = DeviceNewton::start(few_products(), &f, 1000).unwrap();
                never_waits(&mut f, method, launch)
            }),
            made(&|store| {
                let mut f = table::<f64>(device, store, false);
                let method = DeviceNewton::start(few_products(), &f, 1000).unwrap();
                never_waits(&mut f, method.gauss_newton(), launch)
            }),
            made(&|store| {
                let mut f = table::<f64>(device, store, false);
                let method = DeviceSgd::start(SgdConfig { momentum: 0.5, ..Default::default() }, &f, 1000).unwrap();
                never_waits(&mut f, method.schedule(Schedule::cosine(240)), launch)
            }),
            made(&|store| {
                let mut f = table::<f64>(device, store, false);
                let config = AdamConfig { weight_decay: 0.1, ..Default::default() };
                let method = DeviceAdam::start(config, &f, 1000).unwrap();
                never_waits(&mut f, method.schedule(Schedule::cosine(240)), launch)
            }),
        ]
    };
    for (eager, graph) in curves(Launch::Eager).iter().zip(&curves(Launch::Graph)) {
        assert_near(eager, graph, 1e-6);
    }
}

#[test]
#[ignore = "needs a GPU"]
fn a_run_continues_if_a_step_cannot_be_captured_and_reports_the_reason() {
    let (device, _alone) = gpu();
    let curve = |peek| {
        let mut store = nn::VarStore::new(device);
        store.set_kind(Kind::Double);
        let mut f = table::<f64>(device, &store, peek);
        let method = DeviceStr::start(StrConfig::default(), &f, 1000).unwrap();
        let mut run = DeviceRun::new(&mut f, method, 16, 60, Launch::Graph);
        run.steps(&mut f, &mut Epochs::new(TERMS, 16, 7).unwrap(), 100).unwrap();
        assert_eq!(run.is_captured(), !peek);
        assert_eq!(run.why_eager().is_some(), peek, "{:?}", run.why_eager());
        let warned = cuda::take_warnings().iter().any(|warning| warning.starts_with("a step cannot be captured"));
        assert_eq!(warned, peek);
        run.method().records().unwrap()
    };
    let peeked = curve(true);
    // The next run is captured again.
    assert_near(&peeked, &curve(false), 1e-6);
}

#[test]
#[ignore = "needs a GPU"]
fn a_graph_makes_the_same_steps_on_images_in_single_precision_and_in_bfloat16() {
    let (device, _alone) = gpu();
    let curve = |launch, bf16: bool| {
        let mut f = images(device);
        f = if bf16 { f.in_bf16() } else { f };
        let method = DeviceStr::start(StrConfig::default(), f.objective(), 1000).unwrap();
        let mut run = DeviceRun::new(f.objective(), method, 8, 60, launch);
        let mut sampler = Epochs::new(44, 8, 5).unwrap();
        run.steps(f.objective(), &mut sampler, 30).unwrap();
        cuda::without_waiting(|| run.steps(f.objective(), &mut sampler, 30)).unwrap();
        run.method().records().unwrap()
    };
    for (bf16, tolerance) in [(false, 1e-3), (true, 5e-2)] {
        let (eager, graph) = (curve(Launch::Eager, bf16), curve(Launch::Graph, bf16));
        for (a, b) in eager.iter().zip(&graph) {
            assert!(near(a.value, b.value, tolerance), "step {}: {} against {}", a.k, a.value, b.value);
        }
    }
}

/// The records of steps on images, the last of which are replayed.
fn captured(device: Device) -> Vec<StepRecord> {
    let mut f = images(device);
    let method = DeviceStr::start(StrConfig::default(), f.objective(), 1000).unwrap();
    let mut run = DeviceRun::new(f.objective(), method, 8, 60, Launch::Graph);
    run.steps(f.objective(), &mut Epochs::new(44, 8, 5).unwrap(), 30).unwrap();
    assert!(run.is_captured(), "{:?}", run.why_eager());
    run.method().records().unwrap()
}

#[test]
#[ignore = "needs a GPU"]
fn jobs_begin_and_end_while_others_capture() {
    let (device, _alone) = gpu();
    let (pixels, labels) = ([7; 2 * 3 * 1024], [0, 1]);
    let bytes = ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 32, 32] };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..20).for_each(|_| drop(captured(device))));
        }
        scope.spawn(|| {
            for _ in 0..100 {
                device::report(device).unwrap();
                ImageClassification::resnet20(&bytes, None, 2, device).unwrap();
            }
        });
    });
}

#[test]
#[ignore = "needs a GPU"]
fn no_two_threads_share_a_stream() {
    let (device, _alone) = gpu();
    let together = Barrier::new(33);
    let streams = std::thread::scope(|scope| {
        let own = || {
            let stream = cuda::OwnStream::on(device);
            together.wait();
            stream.is_ok()
        };
        let threads: Vec<_> = (0..33).map(|_| scope.spawn(own)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|&own| own).count()
    });
    assert_eq!(streams, 32);
    // All streams have been returned.
    assert!(cuda::OwnStream::on(device).is_ok());
}

#[test]
#[ignore = "needs two GPUs"]
fn a_step_is_captured_on_a_second_gpu() {
    let (first, _alone) = gpu();
    if !requires("two-gpus", Cuda::device_count() > 1) {
        return;
    }
    for (a, b) in captured(first).iter().zip(&captured(Device::Cuda(1))) {
        assert!(near(a.value, b.value, 1e-3), "step {}: {} against {}", a.k, a.value, b.value);
    }
}
