//! A small convolutional network for images of any size.

use crate::NormRelu;
use tch::{
    Tensor,
    nn::{self, ModuleT},
};

/// The channels of the three convolutions.
const CHANNELS: [i64; 3] = [16, 32, 64];

/// Three 3×3 convolutions with 16, 32 and 64 channels, each with ReLU, the first two with max-pooling by 2; the mean over
/// the image; a linear layer. With one channel and ten classes it has 23,946 parameters.
///
/// With `batch_norm` each convolution is followed by [`NormRelu`] and has no bias.
#[derive(Debug)]
pub struct ConvNet {
    layers: Vec<(nn::Conv2D, Option<NormRelu>)>,
    linear: nn::Linear,
}

impl ConvNet {
    /// The smallest height and width of an image: it is halved twice.
    pub const SMALLEST: usize = 4;

    /// Creates the layers under `path`, with Kaiming initialization from libtorch's generator.
    #[must_use]
    pub fn new(path: &nn::Path, channels: i64, classes: i64, batch_norm: bool) -> Self {
        let ws_init = nn::init::DEFAULT_KAIMING_NORMAL;
        let conv = nn::ConvConfig { padding: 1, bias: !batch_norm, ws_init, ..Default::default() };
        let norm = nn::BatchNormConfig { ws_init: nn::Init::Const(1.0), ..Default::default() };
        let mut layers = Vec::new();
        let mut inputs = channels;
        for (i, outputs) in (1..).zip(CHANNELS) {
            let layer = nn::conv2d(path / format!("conv{i}"), inputs, outputs, 3, conv);
            layers.push((layer, batch_norm.then(|| NormRelu::new(path / format!("bn{i}"), outputs, norm))));
            inputs = outputs;
        }
        let linear = nn::LinearConfig { ws_init, bs_init: Some(nn::Init::Const(0.0)), bias: true };
        Self { layers, linear: nn::linear(path / "linear", inputs, classes, linear) }
    }
}

impl ModuleT for ConvNet {
    /// Computes the logits of n×channels×rows×columns images.
    fn forward_t(&self, images: &Tensor, train: bool) -> Tensor {
        let mut x = images.shallow_clone();
        for (i, (conv, norm)) in self.layers.iter().enumerate() {
            if i > 0 {
                x = x.max_pool2d_default(2);
            }
            x = x.apply(conv);
            x = match norm {
                Some(norm) => norm.forward(&x, None, train),
                None => x.relu_(),
            };
        }
        x.mean_dim([2_i64, 3].as_slice(), false, None).apply(&self.linear)
    }
}
