//! Convolutions with 3×3 weights.

use crate::cuda;
use std::borrow::Borrow;
use tch::{
    Tensor,
    nn::{self, Module},
};

/// A convolution with 3×3 weights, a border of one zero and no bias, as used before a batch-norm:
///
/// y\[k, i, j\] = Σ w\[k, c, u, v\]·x\[c, s·i + u − 1, s·j + v − 1\]
///
/// with the stride s, over all channels c and over u, v from 0 to 2. The weights have the name that [`nn::conv2d`]
/// uses. They are initialized as in He et al. (2015) for ReLU.
///
/// On a GPU this layer has its own kernels if all of these hold:
///
/// - the tensors are in channels-last order;
/// - there are 16, 32, 48 or 64 channels; the input may also have 3, as images have;
/// - the stride is 1 or 2, and the result has a multiple of 8 rows and columns;
/// - the arithmetic is bfloat16 ([`cuda::bf16`]), or TF32 is allowed ([`cuda::set_tf32`]);
/// - the GPU has compute capability 8 or higher.
///
/// cuDNN is slow here because it pads so few channels to its tile size. Our kernels always give the same bits. Their
/// gradient cannot be differentiated again. In all other cases the layer uses libtorch's convolution.
///
/// ```
/// use strust_torch::Conv3x3;
/// use tch::{Device, Kind, Tensor, nn};
///
/// let store = nn::VarStore::new(Device::Cpu);
/// let conv = Conv3x3::new(store.root() / "conv1", 3, 16, 2);
/// let x = Tensor::ones([2, 3, 32, 32], (Kind::Float, Device::Cpu));
/// assert_eq!(x.apply(&conv).size(), [2, 16, 16, 16]);
/// ```
#[derive(Debug)]
pub struct Conv3x3 {
    conv: nn::Conv2D,
    stride: i64,
}

impl Conv3x3 {
    /// Creates the weights under `path`, for this number of channels of x and of y.
    pub fn new<'a>(path: impl Borrow<nn::Path<'a>>, inputs: i64, outputs: i64, stride: i64) -> Self {
        let ws_init = nn::init::DEFAULT_KAIMING_NORMAL;
        let config = nn::ConvConfig { stride, padding: 1, bias: false, ws_init, ..Default::default() };
        let mut conv = nn::conv2d(path, inputs, outputs, 3, config);
        // The order of the images. In another order every pass would copy every weight.
        conv.ws.set_data(&channels_last(&conv.ws.detach()));
        Self { conv, stride }
    }
}

impl Module for Conv3x3 {
    fn forward(&self, x: &Tensor) -> Tensor {
        cuda::conv3x3(x, &self.conv.ws, self.stride).unwrap_or_else(|| self.conv.forward(x))
    }
}

/// The same numbers in channels-last order: the channels of a pixel are adjacent in memory.
pub(crate) fn channels_last(tensor: &Tensor) -> Tensor {
    tensor.permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2])
}
