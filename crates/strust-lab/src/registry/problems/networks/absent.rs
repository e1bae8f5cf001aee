//! The networks of a program that was built without libtorch: they are listed and planned, but do not run.

use super::network_config::{Cifar10Config, ConvnetConfig, GptConfig, Predictions};
use crate::{
    Error,
    device::WITHOUT_TORCH,
    registry::{AnySetup, Assembler},
};
use std::path::Path;

pub(super) fn cifar10(c: &Cifar10Config, _: Assembler) -> Result<AnySetup, Error> {
    Err(Error::Network(format!("{}: {WITHOUT_TORCH}", c.data)))
}
pub(super) fn convnet(_: &ConvnetConfig, _: Assembler) -> Result<AnySetup, Error> {
    Err(Error::Network(WITHOUT_TORCH.into()))
}
pub(super) fn gpt(_: &GptConfig, _: Assembler) -> Result<AnySetup, Error> {
    Err(Error::Network(WITHOUT_TORCH.into()))
}
pub(crate) fn predictions(_: &Path, _: &Path, _: bool, _: &str) -> Result<Predictions, Error> {
    Err(Error::Network(WITHOUT_TORCH.into()))
}
