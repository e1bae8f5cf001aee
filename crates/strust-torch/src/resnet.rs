//! ResNet-20 for CIFAR (He, Zhang, Ren and Sun 2016, section 4.2), under PyTorch's names.

use crate::{Conv3x3, NormRelu, conv3x3::channels_last, cuda};
use tch::{
    Tensor,
    nn::{self, ModuleT},
};

const KAIMING: nn::Init = nn::init::DEFAULT_KAIMING_NORMAL;

/// Trainable parameters of [`ResNet20`] with ten classes.
pub const PARAMETERS: i64 = 269_722;

/// Three stages of three basic blocks with 16, 32 and 64 channels, with shortcuts without parameters (option A),
/// batch-norm and Kaiming initialization.
///
/// The names are those of PyTorch: `conv1.weight`, `bn1.weight`, `layer2.0.conv1.weight`, …, `linear.weight`,
/// `linear.bias`.
#[derive(Debug)]
pub struct ResNet20 {
    conv: Conv3x3,
    norm: NormRelu,
    blocks: Vec<Block>,
    linear: nn::Linear,
}

/// relu(norm(conv(relu(norm(conv(x))))) + shortcut(x)).
#[derive(Debug)]
struct Block {
    conv1: Conv3x3,
    norm1: NormRelu,
    conv2: Conv3x3,
    norm2: NormRelu,
    /// The number of zero channels on either side, if the block halves the image and doubles the channels.
    padding: Option<i64>,
}

fn norm_relu(path: nn::Path, channels: i64) -> NormRelu {
    let config = nn::BatchNormConfig { ws_init: nn::Init::Const(1.0), ..Default::default() };
    NormRelu::new(path, channels, config)
}

impl Block {
    fn new(path: &nn::Path, inputs: i64, outputs: i64) -> Self {
        let halves = inputs != outputs;
        Self {
            conv1: Conv3x3::new(path / "conv1", inputs, outputs, if halves { 2 } else { 1 }),
            norm1: norm_relu(path / "bn1", outputs),
            conv2: Conv3x3::new(path / "conv2", outputs, outputs, 1),
            norm2: norm_relu(path / "bn2", outputs),
            padding: halves.then_some((outputs - inputs) / 2),
        }
    }
    /// The input has two handles: one for the convolutions and one for the shortcut. So has the output.
    fn forward(&self, [x, shortcut]: &[Tensor; 2], train: bool) -> [Tensor; 2] {
        let inner = self.norm1.forward(&x.apply(&self.conv1), None, train);
        let x = inner.apply(&self.conv2);
        match self.padding {
            Some(channels) => self.norm2.forward_two(&x, Some(&halve(shortcut, channels)), train),
            None => self.norm2.forward_two(&x, Some(shortcut), train),
        }
    }
}

/// Every second pixel of every second row, with zero channels on either side.
fn halve(x: &Tensor, channels: i64) -> Tensor {
    cuda::halve(x, channels).unwrap_or_else(|| {
        let small = x.slice(2, None, None, 2).slice(3, None, None, 2);
        small.constant_pad_nd([0, 0, 0, 0, channels, channels])
    })
}

impl ResNet20 {
    /// Creates the layers under `path`, initialized from libtorch's generator.
    #[must_use]
    pub fn new(path: &nn::Path, classes: i64) -> Self {
        Self::wide(path, classes, 1)
    }

    /// The same with `width` times as many channels. Above 64 channels libtorch computes the convolutions.
    #[must_use]
    pub fn wide(path: &nn::Path, classes: i64, width: i64) -> Self {
        let mut blocks = Vec::new();
        let first = 16 * width;
        let mut inputs = first;
        for (stage, outputs) in [(1, first), (2, 2 * first), (3, 4 * first)] {
            for block in 0..3 {
                blocks.push(Block::new(&(path / format!("layer{stage}") / block), inputs, outputs));
                inputs = outputs;
            }
        }
        let linear = nn::LinearConfig { ws_init: KAIMING, bs_init: Some(nn::Init::Const(0.0)), bias: true };
        Self {
            conv: Conv3x3::new(path / "conv1", 3, first, 1),
            norm: norm_relu(path / "bn1", first),
            blocks,
            linear: nn::linear(path / "linear", 4 * first, classes, linear),
        }
    }
}

impl ModuleT for ResNet20 {
    /// Computes the logits of n×3×32×32 images.
    fn forward_t(&self, images: &Tensor, train: bool) -> Tensor {
        // Convolutions are fastest in this order, and every layer keeps it.
        let images = channels_last(images);
        let mut x = self.norm.forward_two(&images.apply(&self.conv), None, train);
        for block in &self.blocks {
            x = block.forward(&x, train);
        }
        let [x, _] = x;
        x.mean_dim([2_i64, 3].as_slice(), false, None).apply(&self.linear)
    }
}
