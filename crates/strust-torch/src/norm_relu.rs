//! Batch-norm, a sum and ReLU as one operation.

use crate::cuda;
use std::borrow::Borrow;
use tch::{
    Tensor,
    nn::{self, BatchNormConfig, ModuleT},
};

/// Batch-norm over images, an optional sum, and ReLU:
///
/// y = max(0, (x − μ)/√(σ² + ε)·w + b + r)
///
/// with μ and σ² the mean and the variance of each channel. Training mode uses those of the batch and updates the
/// running ones; evaluation mode uses the running ones. Layers, names and results are those of [`nn::batch_norm2d`], up
/// to rounding.
///
/// On a GPU this layer has its own kernels if all of these hold:
///
/// - it is in training mode;
/// - the tensors are in channels-last order, and the number of channels is a multiple of 4;
/// - the arithmetic is single precision or bfloat16;
/// - the GPU has compute capability 8 or higher.
///
/// There are two kernels forward and two backward. The sum, the ReLU and their gradients need no extra pass over
/// memory. The kernels always give the same bits. Their gradient cannot be differentiated again. In all other cases,
/// and if the kernels cannot be compiled, the layer runs operation by operation. [`cuda::take_warnings`] reports a
/// failed compilation once.
///
/// ```
/// use strust_torch::{NormRelu, seeded};
/// use tch::{Device, Kind, Tensor, nn};
///
/// let store = nn::VarStore::new(Device::Cpu);
/// let norm = NormRelu::new(store.root() / "bn1", 4, nn::BatchNormConfig::default());
/// let x = seeded(0, || Tensor::randn([2, 4, 8, 8], (Kind::Float, Device::Cpu)));
/// let y = norm.forward(&x, Some(&x.ones_like()), true);
/// assert_eq!(y.size(), [2, 4, 8, 8]);
/// assert!(y.min().double_value(&[]) >= 0.0);
/// ```
#[derive(Debug)]
pub struct NormRelu {
    norm: nn::BatchNorm,
    config: BatchNormConfig,
}

impl NormRelu {
    /// Creates the layer's weight, bias and running statistics under `path`.
    pub fn new<'a>(path: impl Borrow<nn::Path<'a>>, channels: i64, config: BatchNormConfig) -> Self {
        Self { norm: nn::batch_norm2d(path, channels, config), config }
    }

    /// The formula above for images x, n×channels×rows×columns. `residual` is r, of the same shape; without it r is 0.
    pub fn forward(&self, x: &Tensor, residual: Option<&Tensor>, train: bool) -> Tensor {
        let [y] = self.fused(x, residual, train).unwrap_or_else(|| [self.plain(x, residual, train)]);
        y
    }
    /// The same result with two handles, for a tensor with two uses, such as the input of a residual block. The kernels
    /// then add the two gradients when they read them, without an extra pass over memory.
    pub fn forward_two(&self, x: &Tensor, residual: Option<&Tensor>, train: bool) -> [Tensor; 2] {
        self.fused(x, residual, train).unwrap_or_else(|| {
            let y = self.plain(x, residual, train);
            [y.shallow_clone(), y]
        })
    }

    fn fused<const HANDLES: usize>(&self, x: &Tensor, r: Option<&Tensor>, train: bool) -> Option<[Tensor; HANDLES]> {
        let nn::BatchNorm { running_mean, running_var, ws, bs, .. } = &self.norm;
        let rows = [ws.as_ref()?, bs.as_ref()?, running_mean, running_var];
        if train { cuda::norm_relu(x, rows, r, self.config) } else { None }
    }
    fn plain(&self, x: &Tensor, residual: Option<&Tensor>, train: bool) -> Tensor {
        // In place, to save a pass over memory. Nothing else uses the values.
        let mut y = self.norm.forward_t(x, train);
        if let Some(residual) = residual {
            let _ = y.g_add_(residual);
        }
        y.relu_()
    }
}

impl ModuleT for NormRelu {
    /// The layer without r.
    fn forward_t(&self, x: &Tensor, train: bool) -> Tensor {
        self.forward(x, None, train)
    }
}
