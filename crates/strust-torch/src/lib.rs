//! Stochastic trust-region training of any libtorch model, on CPU and GPU.
//!
//! A model in a `tch` [`VarStore`](tch::nn::VarStore) becomes an [`Objective`](strust::objective::Objective) of the
//! library. Its parameters are views of one buffer, a [`Flat`], on which every method of [`strust`] runs unchanged.
//!
//! | item | what |
//! |---|---|
//! | [`supervised`], [`TorchObjective`] | model, batch and loss as a function of the parameters and the sample |
//! | [`DeviceAuto`], [`DeviceStr`], [`DeviceNewton`], [`DeviceSgd`], [`DeviceAdam`] | methods that run on the device without the host |
//! | [`DeviceRun`], [`QueuedLoss`] | captures a step of these methods as a CUDA graph and replays it |
//! | [`cuda`] | TF32, bfloat16, memory, profile and warnings of the GPU |
//! | [`NormRelu`], [`Conv3x3`] | layers with their own kernels on a GPU |
//! | [`Orthonormal`], [`AutodiffConstraint`] | constraints on parameters, in closed form and by automatic differentiation |
//! | [`ModelParameters`] | the parameters by name; safetensors files with PyTorch's names |
//! | [`ModelCheckpoint`] | state and buffers, to resume with the same bits |
//! | [`ResNet20`] | the model of the paper's section 5.1 |
//! | [`ImageClassification`], [`images`] | a network over images as a problem of the library |
//! | [`ConvNet`] | a small convolutional network |
//! | [`LanguageModel`], [`Gpt`] | a small transformer over the characters of a text |
//! | [`mod@bench`] | the time and memory of a step |
//! | [`device`] | opens the requested device, or returns an error |
//!
//! This crate needs libtorch. `eval "$(scripts/torch-env)"` installs the right version and sets the environment
//! variables. The crate never prints; [`cuda::take_warnings`] returns its warnings.
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
//! let report = minimize(&mut f).method(Str::new(StrConfig::default())?).sampler(&mut sampler).stop(Stop::epochs(100)).start(start)?;
//! assert!(report.last.value < 1e-8);
//! f.set(report.point()); // writes the result into the model
//! # Ok::<(), strust_torch::Error>(())
//! ```

// libtorch counts in i64; all counts here are far below its limit.
#![allow(clippy::cast_possible_wrap)]

mod again;
mod autodiff_constraint;
pub mod bench;
mod checkpoint;
mod classification;
mod conv3x3;
mod convnet;
pub mod cuda;
pub mod device;
mod device_adam;
mod device_auto;
mod device_method;
mod device_newton;
mod device_rate;
mod device_records;
mod device_region;
mod device_run;
mod device_sgd;
mod device_str;
mod error;
mod flat;
mod gpt;
pub mod images;
mod language;
mod leave;
mod model_file;
mod norm_relu;
mod objective;
mod orthonormal;
mod parameters;
pub mod resnet;
mod sample_queue;

pub use autodiff_constraint::AutodiffConstraint;
pub use checkpoint::ModelCheckpoint;
pub use classification::{ImageClassification, ImageLoss, NetworkFn};
pub use conv3x3::Conv3x3;
pub use convnet::ConvNet;
pub use device_adam::DeviceAdam;
pub use device_auto::DeviceAuto;
pub use device_method::DeviceMethod;
pub use device_newton::DeviceNewton;
pub use device_run::{DeviceRun, Launch};
pub use device_sgd::DeviceSgd;
pub use device_str::DeviceStr;
pub use error::Error;
pub use flat::{Component, Flat, LoadsTo};
pub use gpt::{Gpt, GptShape};
pub use language::{LanguageModel, TextLoss};
pub use leave::leave;
pub use norm_relu::NormRelu;
pub use objective::{
    BatchLoss, ModelOutputs, QueuedLoss, SupervisedLoss, TableLoss, TorchObjective, cross_entropy, seeded, supervised,
};
pub use orthonormal::Orthonormal;
pub use parameters::{ModelParameters, Slot};
pub use resnet::ResNet20;
