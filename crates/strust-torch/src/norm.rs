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
/// with μ and σ² the mean and the variance of each channel: in training mode those of the batch, by which the running ones
/// move, otherwise the running ones. Layers and names are those of [`nn::batch_norm2d`], and so are the numbers, to
/// rounding.
///
/// On a GPU, in training mode, where the channels lie side by side in memory and are a multiple of 4, in single precision
/// or bfloat16, it has kernels of its own, two forward and two backward, and no pass over memory for the sum, the ReLU or
/// their gradients. They always give the same bits, and need compute capability 8. Their gradient cannot be differentiated
/// again. Anything else runs operation by operation, and so does everything where the kernels cannot be compiled, which is
/// said once.
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
    /// Makes the layer's weight, bias and running statistics under `path`.
    pub fn new<'a>(path: impl Borrow<nn::Path<'a>>, channels: i64, config: BatchNormConfig) -> Self {
        Self { norm: nn::batch_norm2d(path, channels, config), config }
    }

    /// The formula above for images x, n×channels×rows×columns, and an r of the same shape, or none.
    pub fn forward(&self, x: &Tensor, residual: Option<&Tensor>, train: bool) -> Tensor {
        let [y] = self.fused(x, residual, train).unwrap_or_else(|| [self.plain(x, residual, train)]);
        y
    }
    /// The same result under two handles, for one that goes two ways, as the input of a residual block does: what comes
    /// back along the two is then added where it is read, and not in a pass of its own.
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
        // In place: nothing needs the numbers before, and a pass over memory is saved.
        let mut y = self.norm.forward_t(x, train);
        if let Some(residual) = residual {
            let _ = y.g_add_(residual);
        }
        y.relu_()
    }
}

impl ModuleT for NormRelu {
    /// Without a sum.
    fn forward_t(&self, x: &Tensor, train: bool) -> Tensor {
        self.forward(x, None, train)
    }
}
