//! Batch-norm, sum and ReLU as one layer equal the three operations one by one: on the CPU bit for bit, and in single
//! precision and bfloat16, on the CPU and on a GPU, up to rounding.

#![allow(clippy::cast_possible_wrap)]

mod common;

use common::{channels_last, store, waves};
use std::{sync::MutexGuard, thread};
use strust::{prelude::*, radius::RegionConfig};
use strust_problems::Problem;
use strust_torch::{
    DeviceMethod, DeviceRun, DeviceStr, ImageClassification, Launch, NormRelu, ResNet20, cross_entropy, cuda,
    images::ImageBytes, seeded,
};
use tch::{
    Cuda, Device, Kind, Tensor,
    nn::{self, ModuleT},
};

const NAMES: [&str; 7] = ["y", "dx", "dr", "dw", "db", "running mean", "running variance"];

/// The inputs of a layer: x with a mean far from zero, r, and a gradient for each of two uses of y.
struct Given {
    x: Tensor,
    r: Option<Tensor>,
    dy: [Tensor; 2],
    train: bool,
}

impl Given {
    fn new(shape: [i64; 4], sum: bool, kind: Kind) -> Self {
        let wave = |phase| channels_last(&waves(&shape, phase, kind));
        let channel = waves(&[1, shape[1], 1, 1], 0.9, kind);
        let x = wave(0.3) * (&channel + 1.5) + channel + 3.0;
        Self { x, r: sum.then(|| wave(1.1)), dy: [wave(2.3), wave(3.1)], train: true }
    }
    /// The same layer with another x, r and dy.
    fn map(&self, f: impl Fn(&Tensor) -> Tensor) -> Self {
        Self { x: f(&self.x), r: self.r.as_ref().map(&f), dy: self.dy.each_ref().map(&f), train: self.train }
    }
    /// The elements whose value before the ReLU is within rounding of 0 if a layer computes in `kind`. There rounding
    /// decides on which side of ReLU's kink an element is, and so whether its gradient passes.
    fn near_the_kink(&self, kind: Kind) -> Tensor {
        let mut store = nn::VarStore::new(Device::Cpu);
        store.set_kind(Kind::Double);
        let norm = nn::batch_norm2d(store.root(), self.x.size()[1], nn::BatchNormConfig::default());
        fill(&store);
        tch::no_grad(|| {
            let normalized = norm.forward_t(&self.x, self.train);
            let r = self.r.as_ref().map_or_else(|| normalized.zeros_like(), Tensor::shallow_clone);
            // Statistics are in single precision for both kinds; terms of up to 16 cancel in x − μ. In bfloat16 the
            // normalized number may be rounded before r is added: by half a unit of its 8 bits, taken twice here.
            let of_the_sum = if kind == Kind::BFloat16 { 2.0_f64.powi(-8) } else { 0.0 };
            let margin = (normalized.abs() + r.abs()) * of_the_sum + 1e-4;
            (normalized + r).abs().le_tensor(&margin)
        })
    }
    /// Sets the gradient of y to 0 at these elements, so that their side of the kink changes no gradient.
    fn without_gradient_at(self, elements: &Tensor) -> Self {
        Self { dy: self.dy.each_ref().map(|dy| dy.masked_fill(elements, 0.0)), ..self }
    }
    /// y and all gradients of a layer that computes y from x, r, weight, bias, running mean and running variance.
    fn outcome(&self, device: Device, kind: Kind, layer: impl Fn(&Self, &nn::VarStore) -> [Tensor; 2]) -> Vec<Tensor> {
        let to = |x: &Tensor| x.to_device(device).to_kind(kind).detach();
        let mut here = self.map(to);
        here.x = here.x.set_requires_grad(true);
        here.r = here.r.map(|r| r.set_requires_grad(true));
        let mut store = nn::VarStore::new(device);
        if kind == Kind::Double {
            store.set_kind(kind);
        }
        let [y, again] = layer(&here, &store);
        let value = (&y * &here.dy[0]).sum(Kind::Float) + (&again * &here.dy[1]).sum(Kind::Float);
        let variables = store.variables();
        let none = Tensor::zeros([1], (kind, device)).set_requires_grad(true);
        let r = here.r.as_ref().unwrap_or(&none);
        let value = value + r.sum(Kind::Float) * 0.0 + none.sum(Kind::Float) * 0.0;
        let by = [&here.x, r, &variables["weight"], &variables["bias"]];
        let mut out = vec![y.detach()];
        out.extend(Tensor::run_backward(&[value], &by, false, false));
        out.extend(["running_mean", "running_var"].map(|name| variables[name].copy()));
        out.into_iter().map(|t| t.to_device(Device::Cpu).to_kind(Kind::Double)).collect()
    }
    fn ours(&self, device: Device, kind: Kind) -> Vec<Tensor> {
        self.outcome(device, kind, |given, store| {
            let norm = NormRelu::new(store.root(), given.x.size()[1], nn::BatchNormConfig::default());
            fill(store);
            norm.forward_two(&given.x, given.r.as_ref(), given.train)
        })
    }
    fn one_by_one(&self, device: Device, kind: Kind) -> Vec<Tensor> {
        self.outcome(device, kind, |given, store| {
            let norm = nn::batch_norm2d(store.root(), given.x.size()[1], nn::BatchNormConfig::default());
            fill(store);
            let y = norm.forward_t(&given.x, given.train);
            let y = given.r.as_ref().map_or_else(|| y.shallow_clone(), |r| &y + r).relu();
            [y.shallow_clone(), y]
        })
    }
}

fn fill(store: &nn::VarStore) {
    // tch always creates buffers in single precision.
    store.root().set_kind(store.kind());
    tch::no_grad(|| {
        for (i, name) in ["weight", "bias", "running_mean", "running_var"].iter().enumerate() {
            let tensor = &mut store.variables().remove(*name).unwrap();
            tensor.copy_(&(waves(&tensor.size(), i as f64, Kind::Double) * 0.5 + if i % 3 == 0 { 1.0 } else { 0.0 }));
        }
    });
}

fn assert_near(what: &str, found: &[Tensor], expected: &[Tensor], tolerance: f64) {
    for ((name, a), b) in NAMES.iter().zip(found).zip(expected) {
        assert_eq!(a.size(), b.size(), "{what}, {name}");
        let (error, norm) = ((a - b).norm().double_value(&[]), b.norm().double_value(&[]));
        let tolerance = if name.starts_with('d') { 3.0 * tolerance } else { tolerance };
        assert!(error <= tolerance * norm.max(1e-3), "{what}, {name}: {error:e} of {norm:e}");
    }
}

#[test]
fn on_the_cpu_the_layer_equals_the_operations_one_by_one_bit_for_bit() {
    tch::set_num_threads(1);
    for (kind, sum, train) in [Kind::Float, Kind::Double]
        .into_iter()
        .flat_map(|kind| [(kind, false, true), (kind, true, true), (kind, false, false), (kind, true, false)])
    {
        let given = Given { train, ..Given::new([3, 5, 4, 6], sum, Kind::Double) };
        let (ours, theirs) = (given.ours(Device::Cpu, kind), given.one_by_one(Device::Cpu, kind));
        for ((name, a), b) in NAMES.iter().zip(&ours).zip(&theirs) {
            assert!(a.equal(b), "{name}, {kind:?}, sum {sum}, training {train}");
        }
    }
}

#[test]
fn variables_have_pytorchs_names_and_the_module_has_no_sum() {
    let store = store::<f32>();
    let norm = NormRelu::new(store.root() / "bn1", 4, nn::BatchNormConfig::default());
    let mut names: Vec<String> = store.variables().into_keys().collect();
    names.sort();
    assert_eq!(names, ["bn1.bias", "bn1.running_mean", "bn1.running_var", "bn1.weight"]);
    let x = waves(&[2, 4, 3, 3], 0.1, Kind::Float);
    assert!(norm.forward_t(&x, false).equal(&norm.forward(&x, None, false)));
}

#[test]
fn without_cuda_profile_returns_an_error_with_the_reason() {
    if !cuda::BUILT_WITH_GRAPHS {
        let why = cuda::profile(None, || ()).unwrap_err().to_string();
        assert!(why.contains("built without CUDA"), "{why}");
    }
}

/// The GPU in single precision without TF32, for one test at a time.
fn gpu() -> (Device, MutexGuard<'static, ()>) {
    let gpu = common::gpu();
    cuda::set_tf32(false);
    gpu
}

/// One image, odd sizes, groups of one, two and four vectors, more rows than a block reads in one pass, and numbers of
/// channels without a kernel.
const SHAPES: [[i64; 4]; 11] = [
    [1, 16, 5, 7],
    [3, 32, 6, 6],
    [130, 16, 32, 32],
    [128, 32, 16, 16],
    [2, 64, 4, 4],
    [5, 4, 3, 3],
    [3, 68, 5, 5],
    [2, 8, 1, 3],
    [600, 24, 33, 9],
    [3, 6, 5, 5],
    [3, 2048, 2, 2],
];

/// Compares a layer with double precision, except at the few elements near ReLU's kink. Returns its results.
fn assert_equals_double_precision(device: Device, shape: [i64; 4], sum: bool, kind: Kind) -> (Given, Vec<Tensor>) {
    let what = format!("{shape:?}, sum {sum}, {kind:?} on {device:?}");
    let (tolerance, most) = if kind == Kind::Float { (3e-6, 2e-4) } else { (6e-3, 3e-3) };
    // Rounded first, so that both sides begin with the same numbers.
    let mut given = Given::new(shape, sum, Kind::Double).map(|x| x.to_kind(kind).to_kind(Kind::Double));
    if device == Device::Cpu {
        // In channels-last order libtorch adds up the batch in single precision, one row after the other.
        given = given.map(Tensor::contiguous);
    }
    let kink = given.near_the_kink(kind);
    let (count, all) = (i64::try_from(kink.sum(Kind::Int64)).unwrap(), kink.numel());
    assert!(count as f64 <= 1.0 + most * all as f64, "{what}: {count} of {all} elements are near the kink");
    let given = given.without_gradient_at(&kink);
    let ours = given.ours(device, kind);
    assert_near(&what, &ours, &given.one_by_one(Device::Cpu, Kind::Double), tolerance);
    (given, ours)
}

/// On the CPU the layer runs operation by operation.
#[test]
fn on_the_cpu_the_layer_equals_double_precision_up_to_rounding() {
    tch::set_num_threads(1);
    for (shape, sum) in SHAPES.into_iter().flat_map(|shape| [(shape, false), (shape, true)]) {
        for kind in [Kind::Float, Kind::BFloat16] {
            assert_equals_double_precision(Device::Cpu, shape, sum, kind);
        }
    }
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_the_layer_equals_double_precision_up_to_rounding_and_always_has_the_same_bits() {
    let (device, _alone) = gpu();
    for (shape, sum) in SHAPES.into_iter().flat_map(|shape| [(shape, false), (shape, true)]) {
        for kind in [Kind::Float, Kind::BFloat16] {
            let (given, ours) = assert_equals_double_precision(device, shape, sum, kind);
            for (a, b) in ours.iter().zip(&given.ours(device, kind)) {
                assert!(a.equal(b), "{shape:?}, sum {sum}, {kind:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_a_large_mean_does_not_cancel_and_a_number_that_is_not_finite_stays_in_its_channel() {
    let (device, _alone) = gpu();
    let mut given = Given::new([8, 16, 9, 9], false, Kind::Double);
    given.x = (given.x + 1e3).to_kind(Kind::Float).to_kind(Kind::Double);
    let (ours, expected) = (given.ours(device, Kind::Float), given.one_by_one(Device::Cpu, Kind::Double));
    for i in [0, 5, 6] {
        let error = (&ours[i] - &expected[i]).norm() / expected[i].norm();
        assert!(error.double_value(&[]) < 1e-3, "{}: {error}", NAMES[i]);
    }
    for not_finite in [f64::NAN, f64::INFINITY] {
        let _ = given.x.get(0).get(3).get(0).get(0).fill_(not_finite);
        let channels = given.ours(device, Kind::Float)[0].isnan().transpose(0, 1).reshape([16, -1]).any_dim(1, false);
        assert_eq!(Vec::<bool>::try_from(channels).unwrap(), (0..16).map(|c| c == 3).collect::<Vec<_>>());
    }
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_the_kernels_are_used_and_a_trial_keeps_no_autograd_graph() {
    let (device, _alone) = gpu();
    let names = |kind: Kind, shape: [i64; 4], last: bool| {
        let store = nn::VarStore::new(device);
        let norm = NormRelu::new(store.root(), shape[1], nn::BatchNormConfig::default());
        let x = waves(&shape, 0.1, kind).to_device(device);
        let x = if last { channels_last(&x) } else { x };
        Cuda::synchronize(0);
        let (y, profile) = cuda::profile(None, || norm.forward(&x, None, true)).unwrap();
        assert!(y.requires_grad());
        assert!(!tch::no_grad(|| norm.forward(&x, None, true)).requires_grad());
        profile.on_gpu.into_iter().map(|kernel| kernel.name).collect::<Vec<_>>()
    };
    let ours = |names: &[String], suffix: &str| {
        ["statistics_", "forward_"].iter().all(|name| names.contains(&format!("{name}{suffix}")))
    };
    for (kind, channels, suffix) in [(Kind::Float, 16, "F4"), (Kind::BFloat16, 16, "B8"), (Kind::BFloat16, 12, "B4")] {
        let found = names(kind, [4, channels, 8, 8], true);
        assert!(ours(&found, suffix) && found.len() == 2, "{found:?}");
    }
    assert!(!ours(&names(Kind::Float, [4, 16, 8, 8], false), "F4"));
    assert!(!ours(&names(Kind::Float, [4, 6, 8, 8], true), "F4"));
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_several_threads_get_the_results_of_one() {
    let (device, _alone) = gpu();
    let given = |i: i64| Given::new([3 + i, 16, 8, 8], i % 2 == 0, Kind::Float);
    let alone: Vec<_> = (0..4).map(|i| given(i).ours(device, Kind::Float)).collect();
    thread::scope(|scope| {
        for (i, expected) in alone.iter().enumerate() {
            // Threads cannot share a tensor.
            let expected: Vec<Vec<f64>> = expected.iter().map(|t| Vec::try_from(t.reshape([-1])).unwrap()).collect();
            scope.spawn(move || {
                for _ in 0..20 {
                    for (a, b) in given(i as i64).ours(device, Kind::Float).iter().zip(&expected) {
                        assert_eq!(&Vec::<f64>::try_from(a.reshape([-1])).unwrap(), b);
                    }
                }
            });
        }
    });
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_differentiating_the_gradient_is_an_error_with_the_reason() {
    let (device, _alone) = gpu();
    let store = nn::VarStore::new(device);
    let norm = NormRelu::new(store.root(), 8, nn::BatchNormConfig::default());
    let x = channels_last(&waves(&[2, 8, 3, 3], 0.1, Kind::Float).to_device(device)).set_requires_grad(true);
    let y = norm.forward(&x, None, true).sum(Kind::Float);
    let why = Tensor::f_run_backward(&[y], &[&x], true, true).unwrap_err().to_string();
    assert!(why.contains("cannot be differentiated twice"), "{why}");
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_resnet20_has_the_loss_and_the_gradient_of_the_cpu() {
    let (device, _alone) = gpu();
    let outcome = |device: Device, kind: Kind| {
        let mut store = nn::VarStore::new(Device::Cpu);
        let net = seeded(5, || ResNet20::new(&store.root(), 10));
        store.set_device(device);
        store.root().set_kind(kind);
        let images = waves(&[6, 3, 32, 32], 0.3, kind).to_device(device);
        let classes = Tensor::from_slice(&[1_i64, 0, 7, 3, 9, 3]).to_device(device);
        let loss = cross_entropy(&net.forward_t(&images, true), &classes);
        let mut named: Vec<(String, Tensor)> = store.variables().into_iter().collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        let by: Vec<&Tensor> = named.iter().map(|(_, t)| t).filter(|t| t.requires_grad()).collect();
        let mut all = Tensor::run_backward(&[&loss], &by, false, false);
        all.extend(named.iter().filter(|(_, t)| !t.requires_grad()).map(|(_, t)| t.copy()));
        all.push(loss.detach().reshape([1]));
        all.into_iter().map(|t| t.to_device(Device::Cpu).to_kind(Kind::Double)).collect::<Vec<_>>()
    };
    for (i, (a, b)) in outcome(device, Kind::Float).iter().zip(&outcome(Device::Cpu, Kind::Double)).enumerate() {
        let (error, norm) = ((a - b).norm().double_value(&[]), b.norm().double_value(&[]));
        // Near ReLU's kink rounding decides whether a gradient passes. Here the kinks of all layers add up.
        assert!(error <= 1e-2 * norm, "tensor {i}: {error:e} of {norm:e}");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_a_graph_of_resnet20_makes_the_same_steps_as_eager_launches() {
    let (device, _alone) = gpu();
    let labels: Vec<u8> = (0..64).map(|i| i % 10).collect();
    let pixels: Vec<u8> = (0..64 * 3072_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let images = ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 32, 32] };
    for (bf16, tolerance) in [(false, 2e-2), (true, 5e-2)] {
        let curve = |launch| {
            let mut f = ImageClassification::resnet20(&images, None, 10, device).unwrap();
            f = if bf16 { f.in_bf16() } else { f };
            let start = f.start(1);
            f.objective().set(&start);
            let config =
                StrConfig { region: RegionConfig { initial_radius: 0.02, max_radius: 0.02, ..Default::default() } };
            let method = DeviceStr::start(config, f.objective(), 100).unwrap();
            let mut run = DeviceRun::new(f.objective(), method, 16, 60, launch);
            run.steps(f.objective(), &mut Epochs::new(64, 16, 5).unwrap(), 20).unwrap();
            assert_eq!(run.is_captured(), launch == Launch::Graph, "{:?}", run.why_eager());
            run.method().records().unwrap()
        };
        for (a, b) in curve(Launch::Eager).iter().zip(&curve(Launch::Graph)) {
            let apart = (a.value - b.value).abs() / b.value;
            assert!(apart <= tolerance, "step {}: {} against {}, bf16 {bf16}", a.k, a.value, b.value);
        }
    }
}
