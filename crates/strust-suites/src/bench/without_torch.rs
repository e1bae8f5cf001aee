//! `strust bench cifar10` in a program without libtorch.

use super::BenchResults;
use strust_lab::{Error, device::WITHOUT_TORCH};

/// Fails with build instructions.
pub fn peak_memory(_name: &str) -> Result<u64, Error> {
    Err(Error::Network(WITHOUT_TORCH.into()))
}

/// Fails with build instructions.
pub fn cifar10(_device: &str) -> Result<BenchResults, Error> {
    Err(Error::Network(WITHOUT_TORCH.into()))
}
