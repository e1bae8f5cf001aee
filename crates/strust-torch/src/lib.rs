//! Stochastic trust-region training of any libtorch model, on CPU and GPU.

mod checkpoint;
pub mod device;
mod device_str;
mod differentiated;
mod error;
mod flat;
mod ledger;
mod model_file;
mod objective;
mod orthonormal;
mod parameters;
pub mod resnet;

pub use checkpoint::{Checkpoint, OnDevice};
pub use device_str::DeviceStr;
pub use differentiated::Differentiated;
pub use error::Error;
pub use flat::{Component, Flat};
pub use objective::{Loss, TorchObjective, seeded, supervised};
pub use orthonormal::Orthonormal;
pub use parameters::{Parameters, Slot};
pub use resnet::ResNet20;
