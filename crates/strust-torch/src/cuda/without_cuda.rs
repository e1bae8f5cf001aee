//! The functions of `native.rs` in a build without CUDA.

use super::Usage;
use crate::Error;
use std::{ffi::CStr, path::Path};
use tch::{Tensor, nn::BatchNormConfig};

pub fn has_stream(_device: usize) -> bool {
    false
}
pub fn use_stream(_device: usize, _own: bool) -> Result<(), Error> {
    let advice = "run  eval \"$(scripts/torch-env cuda)\"  and build again";
    Err(Error::Graph(format!("this program was built without CUDA graphs; {advice}")))
}
pub fn profile_begin() -> Result<(), Error> {
    use_stream(0, true)
}
pub fn profile_end(_trace: Option<&Path>, _take: impl FnMut(bool, Usage)) -> Result<(), Error> {
    use_stream(0, true)
}
pub fn norm_relu<const HANDLES: usize>(
    _x: &Tensor,
    _rows: [&Tensor; 4],
    _other: Option<&Tensor>,
    _config: BatchNormConfig,
) -> Option<[Tensor; HANDLES]> {
    None
}
pub fn halve(_x: &Tensor, _pad: i64) -> Option<Tensor> {
    None
}
pub fn conv3x3(_x: &Tensor, _weight: &Tensor, _stride: i64) -> Option<Tensor> {
    None
}
pub fn auto_blocks(_y: &Tensor) -> Option<usize> {
    None
}
pub fn auto_launch<const N: usize>(_name: &CStr, _blocks: usize, _tensors: [&Tensor; N]) {}
pub fn pinned(tensor: &Tensor) -> Tensor {
    tensor.shallow_clone()
}
pub fn set_tf32(_on: bool) {}
pub fn bf16_begin() -> bool {
    false
}
pub fn bf16_end(_before: bool) {}
pub fn forbid_waiting(_on: bool) {}
pub fn peak_memory(_device: usize) -> [u64; 2] {
    [0; 2]
}

/// There is no capture without CUDA.
#[derive(Debug)]
pub enum Capture {}

impl Capture {
    pub fn of(device: usize, _body: impl FnOnce()) -> Result<Self, Error> {
        use_stream(device, true).map(|()| unreachable!("a build without CUDA has no stream"))
    }
    pub fn replay(&mut self) -> Result<(), Error> {
        match *self {}
    }
}
