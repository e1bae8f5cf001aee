//! Models, data and helpers that the test files share. No file uses all of them.
#![allow(dead_code, clippy::cast_possible_wrap)]

use std::sync::{Mutex, MutexGuard, PoisonError};
use strust::{sample::Sample, vector::Vector};
use strust_torch::{Component, SupervisedLoss, TorchObjective, cross_entropy, cuda, seeded, supervised};
use tch::{
    Cuda, Device, Kind, Tensor,
    nn::{self, ModuleT, VarStore},
};

pub fn bits<V: Vector>(x: &V) -> Vec<u8> {
    let mut out = Vec::new();
    x.write(&mut out);
    out
}

/// Whether a test can run that needs a special resource. If `available` is false, the test fails if `STRUST_REQUIRE`
/// names the resource (names are separated by commas); otherwise it is skipped.
#[track_caller]
pub fn requires(resource: &str, available: bool) -> bool {
    let required = std::env::var("STRUST_REQUIRE").unwrap_or_default();
    let named = required.split(',').any(|name| name.trim() == resource);
    assert!(available || !named, "STRUST_REQUIRE names `{resource}`, but it is not available here");
    if !available {
        eprintln!("skipped: `{resource}` is not available here");
    }
    available
}

/// The first GPU, for one test at a time: TF32 and the ban on waiting affect the whole process. Tests that use it are
/// marked `#[ignore]`, so they fail without a GPU only if they are asked for.
pub fn gpu() -> (Device, MutexGuard<'static, ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let why = if cuda::BUILT_WITH_GRAPHS { "" } else { ", and a build after  eval \"$(scripts/torch-env cuda)\"" };
    assert!(cuda::BUILT_WITH_GRAPHS && Cuda::is_available(), "this test needs a GPU{why}");
    (Device::Cuda(0), ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The same numbers in channels-last order.
pub fn channels_last(x: &Tensor) -> Tensor {
    x.permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2])
}

/// Numbers from a formula, so that no test depends on the state of libtorch's generator.
pub fn waves(shape: &[i64], phase: f64, kind: Kind) -> Tensor {
    let n: i64 = shape.iter().product();
    let index = Tensor::arange(n, (Kind::Double, Device::Cpu));
    ((&index * 0.7 + phase).sin() * (&index * 0.013 + 2.0 * phase).cos()).to_kind(kind).reshape(shape)
}

/// Fills every variable of a store with numbers from a formula, scaled by the size of a row.
pub fn fill(store: &VarStore) {
    // tch always creates buffers in single precision.
    store.root().set_kind(store.kind());
    let mut variables: Vec<_> = store.variables().into_iter().collect();
    variables.sort_by(|a, b| a.0.cmp(&b.0));
    tch::no_grad(|| {
        for (i, (name, tensor)) in variables.iter_mut().enumerate() {
            if tensor.dim() > 1 {
                let row = tensor.numel() as f64 / tensor.size()[0] as f64;
                tensor.copy_(&(waves(&tensor.size(), i as f64, tensor.kind()) * (2.0 / row).sqrt() * 1.5));
            } else if name.ends_with("bias") {
                tensor.copy_(&(waves(&tensor.size(), i as f64, tensor.kind()) * 0.1));
            }
        }
    });
}

pub const TERMS: usize = 64;

/// A classifier with batch-norm and dropout on noisy inputs. Each of them could make a trial a different function.
pub struct Net {
    first: nn::Linear,
    norm: nn::BatchNorm,
    last: nn::Linear,
    pub dropout: f64,
}

impl Net {
    pub fn new(store: &VarStore, dropout: f64) -> Self {
        let root = store.root();
        // The layers draw from libtorch's only generator, and tests run in parallel.
        let net = seeded(0, || Self {
            first: nn::linear(&root / "first", 8, 16, nn::LinearConfig::default()),
            norm: nn::batch_norm1d(
                &root / "norm",
                16,
                nn::BatchNormConfig { ws_init: nn::Init::Const(1.0), ..Default::default() },
            ),
            last: nn::linear(&root / "last", 16, 4, nn::LinearConfig::default()),
            dropout,
        });
        fill(store);
        net
    }
    pub fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        self.norm.forward_t(&x.apply(&self.first), train).relu().dropout(self.dropout, train).apply(&self.last)
    }
}

pub fn indices(sample: &Sample) -> Tensor {
    Tensor::from_slice(&sample.indices().iter().map(|&i| i as i64).collect::<Vec<_>>())
}

/// [`Net`] on 64 synthetic points. `noise` is drawn for each sample, like augmentation.
pub fn problem<T: Component>(store: &VarStore, dropout: f64, noise: f64) -> TorchObjective<T, SupervisedLoss<'static>> {
    steep_problem(store, dropout, noise, 1.0)
}

/// The same with the loss multiplied by `steepness`, so that steps of length ‖g‖ are too long.
pub fn steep_problem<T: Component>(
    store: &VarStore,
    dropout: f64,
    noise: f64,
    steepness: f64,
) -> TorchObjective<T, SupervisedLoss<'static>> {
    let net = Net::new(store, dropout);
    let inputs = waves(&[TERMS as i64, 8], 0.3, T::KIND);
    let targets = (waves(&[TERMS as i64], 1.7, Kind::Double) * 1e3).remainder(4.0).floor().to_kind(Kind::Int64);
    let batch = move |sample: &Sample| {
        let index = indices(sample);
        let x = inputs.index_select(0, &index);
        (&x + x.randn_like() * noise, targets.index_select(0, &index))
    };
    let loss = move |y: &Tensor, t: &Tensor| cross_entropy(y, t) * steepness;
    supervised::<T>(store, TERMS, batch, move |x| net.forward(x, true), loss).unwrap()
}

/// A store of the component type with nothing in it.
pub fn store<T: Component>() -> VarStore {
    // The tensors are small, and tests run in parallel.
    tch::set_num_threads(1);
    let mut store = VarStore::new(Device::Cpu);
    store.set_kind(T::KIND);
    store
}
