//! Convolutions with 3×3 weights.

use crate::cuda;
use std::borrow::Borrow;
use tch::{
    Tensor,
    nn::{self, Module},
};

/// A convolution with 3×3 weights, a border of one zero and no bias, as it stands before a batch-norm:
///
/// y\[k, i, j\] = Σ w\[k, c, u, v\]·x\[c, s·i + u − 1, s·j + v − 1\]
///
/// with the stride s, over all channels c and over u, v from 0 to 2. The name of the weights is that of [`nn::conv2d`]; at
/// first they are drawn as He et al. (2015) have it for ReLU.
///
/// On a GPU, where the channels lie side by side in memory, it has kernels of its own for 16, 32, 48 or 64 channels (3 for the
/// images themselves) and a stride of 1 or 2 with results of a multiple of 8 rows and columns, in bfloat16
/// ([`cuda::bf16`]) or with TF32 allowed ([`cuda::set_tf32`]): cuDNN rounds so few channels up to the tiles it has. They
/// always give the same bits, and need compute capability 8. Their gradient cannot be differentiated again. Anything else is
/// libtorch's own convolution.
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
    /// Makes the weights under `path`, for so many channels of x and y.
    pub fn new<'a>(path: impl Borrow<nn::Path<'a>>, inputs: i64, outputs: i64, stride: i64) -> Self {
        let ws_init = nn::init::DEFAULT_KAIMING_NORMAL;
        let config = nn::ConvConfig { stride, padding: 1, bias: false, ws_init, ..Default::default() };
        let mut conv = nn::conv2d(path, inputs, outputs, 3, config);
        // As the images are; otherwise every pass would make a copy of every weight in that order.
        conv.ws.set_data(&channels_last(&conv.ws.detach()));
        Self { conv, stride }
    }
}

impl Module for Conv3x3 {
    fn forward(&self, x: &Tensor) -> Tensor {
        cuda::conv3x3(x, &self.conv.ws, self.stride).unwrap_or_else(|| self.conv.forward(x))
    }
}

/// The same numbers with the channels of a pixel side by side in memory.
pub(crate) fn channels_last(tensor: &Tensor) -> Tensor {
    tensor.permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2])
}
