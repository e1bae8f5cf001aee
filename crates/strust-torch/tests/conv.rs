//! Convolutions by our kernels equal those in double precision, up to the rounding of their factors. They give the same
//! bits each time, and so do whole runs of ResNet-20.

mod common;

use common::{bits, channels_last, store, waves};
use std::sync::MutexGuard;
use strust::prelude::*;
use strust_problems::Problem;
use strust_torch::{
    Conv3x3, DeviceMethod, DeviceRun, DeviceStr, ImageClassification, Launch, cuda, images::ImageBytes, seeded,
};
use tch::{
    Cuda, Device, Kind, Tensor,
    nn::{self, Module},
};

const NAMES: [&str; 3] = ["y", "dx", "dw"];

fn noise(shape: &[i64], seed: u64) -> Tensor {
    seeded(seed, || Tensor::randn(shape, (Kind::Double, Device::Cpu)))
}

/// The shapes of the images and of a layer.
#[derive(Debug, Clone, Copy)]
struct Case {
    n: i64,
    inputs: i64,
    outputs: i64,
    size: [i64; 2],
    stride: i64,
}

impl Case {
    fn x(self) -> Tensor {
        channels_last(&noise(&[self.n, self.inputs, self.size[0], self.size[1]], 1))
    }
    fn weight(self) -> Tensor {
        noise(&[self.outputs, self.inputs, 3, 3], 2) / (self.inputs as f64).sqrt()
    }
    /// y and the gradients of x and of the weights. Images, which have 3 channels, have no gradient. The inputs are
    /// rounded to `kind` first.
    fn outcome(self, device: Device, kind: Kind, layer: impl Fn(&nn::VarStore, &Tensor) -> Tensor) -> Vec<Tensor> {
        let to = |x: &Tensor| x.to_device(device).to_kind(kind);
        let mut store = nn::VarStore::new(device);
        if kind == Kind::Double {
            store.set_kind(kind);
        }
        let x = to(&self.x()).set_requires_grad(self.inputs != 3);
        let y = layer(&store, &x);
        let dy = channels_last(&noise(&y.size(), 3));
        let value = (&y * to(&dy)).sum(Kind::Float);
        let variables = store.variables();
        let weight = &variables["weight"];
        let mut out = vec![y.detach()];
        let by = if self.inputs == 3 { vec![weight] } else { vec![&x, weight] };
        out.extend(Tensor::run_backward(&[value], &by, false, false));
        out.into_iter().map(|t| t.to_device(Device::Cpu).to_kind(Kind::Double)).collect()
    }
    fn ours(self, device: Device, kind: Kind) -> Vec<Tensor> {
        self.outcome(device, kind, |store, x| {
            let conv = seeded(0, || Conv3x3::new(store.root(), self.inputs, self.outputs, self.stride));
            tch::no_grad(|| store.variables().remove("weight").unwrap().copy_(&self.weight()));
            if kind == Kind::BFloat16 { cuda::bf16(|| conv.forward(x)) } else { conv.forward(x) }
        })
    }
    /// The results in double precision, with x and dy rounded to `kind`.
    fn expected(self, kind: Kind) -> Vec<Tensor> {
        let round = |x: &Tensor| x.to_kind(kind).to_kind(Kind::Double);
        let x = round(&self.x()).set_requires_grad(self.inputs != 3);
        let weight = self.weight().set_requires_grad(true);
        let y = x.conv2d(&weight, None::<Tensor>, [self.stride; 2], [1; 2], [1; 2], 1);
        let dy = round(&noise(&y.size(), 3));
        let by = if self.inputs == 3 { vec![&weight] } else { vec![&x, &weight] };
        let mut out = vec![y.detach()];
        out.extend(Tensor::run_backward(&[(&y * &dy).sum(Kind::Double)], &by, false, false));
        out
    }
}

#[test]
fn on_the_cpu_the_layer_equals_libtorchs_convolution_bit_for_bit() {
    tch::set_num_threads(1);
    for (inputs, stride) in [(3, 1), (16, 2), (5, 1)] {
        let case = Case { n: 2, inputs, outputs: 16, size: [8, 16], stride };
        let theirs = case.outcome(Device::Cpu, Kind::Float, |store, x| {
            let config = nn::ConvConfig { stride, padding: 1, bias: false, ..Default::default() };
            let mut conv = seeded(0, || nn::conv2d(store.root(), inputs, 16, 3, config));
            conv.ws.set_data(&channels_last(&case.weight().to_kind(Kind::Float)));
            x.apply(&conv)
        });
        for ((name, a), b) in NAMES.iter().zip(case.ours(Device::Cpu, Kind::Float)).zip(theirs) {
            assert!(a.equal(&b), "{name}, {case:?}");
        }
    }
}

#[test]
fn the_weights_have_pytorchs_name() {
    let store = store::<f32>();
    let _ = seeded(0, || Conv3x3::new(store.root() / "conv1", 3, 16, 1));
    assert_eq!(store.variables().into_keys().collect::<Vec<_>>(), ["conv1.weight"]);
}

/// The GPU with TF32, for one test at a time.
fn gpu() -> (Device, MutexGuard<'static, ()>) {
    let gpu = common::gpu();
    cuda::set_tf32(true);
    gpu
}

/// The layers of ResNet-20, and others: one image, batches that do not fill the last tile, several blocks of input and
/// of output channels, sizes that are no power of two.
fn cases() -> impl Iterator<Item = Case> {
    let shapes = [
        (128, 3, 16, [32, 32], 1),
        (128, 16, 16, [32, 32], 1),
        (128, 16, 32, [32, 32], 2),
        (128, 32, 32, [16, 16], 1),
        (128, 32, 64, [16, 16], 2),
        (128, 64, 64, [8, 8], 1),
        // Does not fit into the shared memory at once.
        (128, 64, 64, [16, 16], 2),
        (1, 16, 16, [8, 8], 1),
        (5, 16, 48, [8, 24], 1),
        (3, 48, 16, [24, 40], 1),
        (80, 64, 64, [8, 8], 1),
        (7, 48, 64, [16, 48], 2),
        (2, 3, 32, [64, 16], 2),
        (600, 32, 16, [16, 8], 1),
    ];
    shapes.into_iter().map(|(n, inputs, outputs, size, stride)| Case { n, inputs, outputs, size, stride })
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_the_layer_equals_double_precision_up_to_rounding_and_always_has_the_same_bits() {
    let (device, _alone) = gpu();
    for case in cases() {
        // Rounding changes a factor by at most 5e-4 (TF32) or 4e-3 (bfloat16). In bfloat16 y is rounded too.
        for (kind, tolerance) in [(Kind::Float, 5e-4), (Kind::BFloat16, 4e-3)] {
            let ours = case.ours(device, kind);
            let names = NAMES.iter().filter(|name| case.inputs != 3 || **name != "dx");
            for ((name, a), b) in names.zip(&ours).zip(&case.expected(kind)) {
                let (error, norm) = ((a - b).norm().double_value(&[]), b.norm().double_value(&[]));
                assert!(
                    a.size() == b.size() && error <= tolerance * norm,
                    "{name}: {error:e} of {norm:e}, {case:?}, {kind:?}"
                );
            }
            for (a, b) in ours.iter().zip(&case.ours(device, kind)) {
                assert!(a.equal(b), "{case:?}, {kind:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_the_kernels_are_used_for_all_supported_shapes() {
    let (device, _alone) = gpu();
    let layer = |[n, inputs, height, width]: [i64; 4], [outputs, stride]: [i64; 2], kind: Kind, last: bool| {
        let store = nn::VarStore::new(device);
        let conv = seeded(0, || Conv3x3::new(store.root(), inputs, outputs, stride));
        let x = waves(&[n, inputs, height, width], 0.1, kind).to_device(device);
        let x = if last { channels_last(&x) } else { x };
        let forward = || if kind == Kind::BFloat16 { cuda::bf16(|| conv.forward(&x)) } else { conv.forward(&x) };
        assert!(!tch::no_grad(forward).requires_grad());
        Cuda::synchronize(0);
        let (y, profile) = cuda::profile(None, forward).unwrap();
        assert!(y.requires_grad());
        profile.on_gpu.iter().any(|kernel| kernel.name == "convolve")
    };
    let ours = |shape, kind, last| layer(shape, [16, 1], kind, last);
    for kind in [Kind::Float, Kind::BFloat16] {
        for Case { n, inputs, outputs, size: [height, width], stride } in cases() {
            assert!(layer([n, inputs, height, width], [outputs, stride], kind, true));
        }
        assert!(ours([4, 16, 8, 8], kind, true));
        assert!(ours([4, 3, 32, 32], kind, true));
        assert!(!ours([4, 16, 8, 8], kind, false));
        assert!(!ours([4, 16, 8, 9], kind, true));
        assert!(!ours([4, 12, 8, 8], kind, true));
        assert!(!ours([4, 128, 8, 8], kind, true));
    }
    cuda::set_tf32(false);
    assert!(!ours([4, 16, 8, 8], Kind::Float, true));
    assert!(ours([4, 16, 8, 8], Kind::BFloat16, true));
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_a_number_that_is_not_finite_affects_only_its_neighbors() {
    let (device, _alone) = gpu();
    let store = nn::VarStore::new(device);
    let conv = seeded(0, || Conv3x3::new(store.root(), 16, 16, 1));
    for not_finite in [f64::NAN, f64::INFINITY] {
        let x = channels_last(&waves(&[2, 16, 8, 8], 0.1, Kind::Float).to_device(device));
        let _ = x.get(1).get(3).get(0).get(7).fill_(not_finite);
        let finite = tch::no_grad(|| conv.forward(&x)).isfinite();
        assert_eq!(i64::try_from(finite.logical_not().sum(Kind::Int64)).unwrap(), 16 * 4);
        let near = finite.get(1).narrow(1, 0, 2).narrow(2, 6, 2);
        assert!(!bool::try_from(near.any()).unwrap());
    }
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_differentiating_the_gradient_is_an_error_with_the_reason() {
    let (device, _alone) = gpu();
    let store = nn::VarStore::new(device);
    let conv = seeded(0, || Conv3x3::new(store.root(), 16, 16, 1));
    let x = channels_last(&waves(&[2, 16, 8, 8], 0.1, Kind::Float).to_device(device)).set_requires_grad(true);
    let y = conv.forward(&x).sum(Kind::Float);
    let why = Tensor::f_run_backward(&[y], &[&x], true, true).unwrap_err().to_string();
    assert!(why.contains("cannot be differentiated twice"), "{why}");
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_training_resnet20_gives_the_same_bits_as_a_graph_and_step_by_step() {
    let (device, _alone) = gpu();
    let labels: Vec<u8> = (0..128).map(|i| i % 10).collect();
    let pixels: Vec<u8> = (0..128 * 3072_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let images = ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 32, 32] };
    for bf16 in [false, true] {
        let outcome = |launch| {
            let mut f = ImageClassification::resnet20(&images, None, 10, device).unwrap();
            f = if bf16 { f.in_bf16() } else { f };
            let start = f.start(1);
            f.objective().set(&start);
            let method = DeviceStr::start(StrConfig::default(), f.objective(), 100).unwrap();
            let mut run = DeviceRun::new(f.objective(), method, 32, 60, launch);
            run.steps(f.objective(), &mut Epochs::new(128, 32, 5).unwrap(), 40).unwrap();
            assert_eq!(run.is_captured(), launch == Launch::Graph, "{:?}", run.why_eager());
            let values: Vec<f64> = run.method().records().unwrap().iter().map(|record| record.value).collect();
            (values, bits(&f.objective().point()))
        };
        let [first, again] = [Launch::Eager, Launch::Eager].map(outcome);
        assert_eq!(first.0, again.0, "eager and eager, bf16 {bf16}");
        let graph = outcome(Launch::Graph);
        assert_eq!(first.0, graph.0, "eager and graph, bf16 {bf16}");
        assert!(first.1 == again.1 && first.1 == graph.1);
    }
}
