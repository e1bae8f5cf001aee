//! Stochastic trust-region training of any libtorch model, on CPU and GPU.
//!
//! A model made from a `tch` [`VarStore`](tch::nn::VarStore) becomes an [`Objective`](strust::objective::Objective) of the
//! library: its parameters are views of one buffer, a [`Flat`], over which every method of [`strust`] runs unchanged.
//!
//! | item | what |
//! |---|---|
//! | [`supervised`], [`TorchObjective`] | model, batch and loss as a function of the parameters and the sample |
//! | [`DeviceStr`], [`DeviceSgd`], [`DeviceAdam`] | methods with nothing coming back to the host |
//! | [`DeviceRun`], [`QueuedLoss`] | their steps captured once as a CUDA graph and replayed |
//! | [`cuda`] | TF32, bfloat16, memory and profile of the GPU |
//! | [`NormRelu`] | batch-norm, a sum and ReLU as one, with kernels of its own on a GPU |
//! | [`Orthonormal`], [`Differentiated`] | constraints on parameters, in closed form and by automatic differentiation |
//! | [`Parameters`] | the views by name; safetensors under PyTorch's names |
//! | [`Checkpoint`] | state and buffers, to go on bit for bit |
//! | [`ResNet20`] | the model of the paper's section 5.1 |
//! | [`ImageClassification`], [`images`] | a network over images as a problem of the library |
//! | [`mod@bench`] | what a step costs |
//! | [`device`] | the device that was asked for, or an error |
//!
//! It is built against libtorch: `eval "$(scripts/torch-env)"` gets the right one and sets the variables.
//!
//! ```
//! use strust::prelude::*;
//! use strust_torch::{seeded, supervised};
//! use tch::{Device, Kind, Tensor, nn, nn::Module};
//!
//! // y = x₀ − 2x₁ from 32 points.
//! let store = nn::VarStore::new(Device::Cpu);
//! let net = seeded(0, || nn::linear(store.root(), 2, 1, Default::default()));
//! let x = seeded(1, || Tensor::randn([32, 2], (Kind::Float, Device::Cpu)));
//! let y = x.matmul(&Tensor::from_slice(&[1.0_f32, -2.0]).view([2, 1]));
//! let batch = |sample: &Sample| {
//!     let rows = Tensor::from_slice(&sample.indices().iter().map(|&i| i as i64).collect::<Vec<_>>());
//!     (x.index_select(0, &rows), y.index_select(0, &rows))
//! };
//! let loss = |out: &Tensor, y: &Tensor| out.mse_loss(y, tch::Reduction::Mean);
//! let mut f = supervised::<f32>(&store, 32, batch, |x| net.forward(x), loss)?;
//!
//! let (start, mut sampler) = (f.point(), Epochs::new(32, 8, 0)?);
//! let report = minimize(&mut f, &mut Str::new(StrConfig::default())?, &mut sampler, start, &Stop::epochs(100))?;
//! assert!(report.last.value < 1e-8);
//! f.set(report.point()); // the model takes the result
//! # Ok::<(), strust_torch::Error>(())
//! ```

// libtorch counts in i64; no count here comes near its end.
#![allow(clippy::cast_possible_wrap)]

pub mod bench;
mod checkpoint;
mod classification;
mod conv;
pub mod cuda;
pub mod device;
mod device_adam;
mod device_method;
mod device_run;
mod device_sgd;
mod device_str;
mod differentiated;
mod error;
mod flat;
pub mod images;
mod ledger;
mod model_file;
mod norm;
mod objective;
mod orthonormal;
mod parameters;
mod queue;
pub mod resnet;

pub use checkpoint::{Checkpoint, OnDevice};
pub use classification::{ImageClassification, ImageLoss, Network};
pub use conv::Conv3x3;
pub use device_adam::DeviceAdam;
pub use device_method::DeviceMethod;
pub use device_run::{DeviceRun, Launch};
pub use device_sgd::DeviceSgd;
pub use device_str::DeviceStr;
pub use differentiated::Differentiated;
pub use error::Error;
pub use flat::{Component, Flat};
pub use norm::NormRelu;
pub use objective::{BatchLoss, Loss, QueuedLoss, TorchObjective, cross_entropy, seeded, supervised};
pub use orthonormal::Orthonormal;
pub use parameters::{Parameters, Slot};
pub use queue::{Queue, TableLoss};
pub use resnet::ResNet20;
