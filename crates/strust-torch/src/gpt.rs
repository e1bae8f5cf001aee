//! A decoder-only transformer (Vaswani et al. 2017; Radford et al. 2019), under the names of GPT-2.

use crate::again::is_differentiable_again;
use tch::{
    Kind, Tensor,
    nn::{self, Module},
};

/// The sizes of a [`Gpt`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GptShape {
    /// The number of layers.
    pub layers: usize,
    /// The width of the residual stream.
    pub width: usize,
    /// Attention heads per layer. They divide the width.
    pub heads: usize,
    /// The largest number of characters that a prediction can use.
    pub context: usize,
}

/// A transformer that predicts the next character at every position:
///
/// x = E(c) + P; in every layer x ← x + attention(norm(x)) and x ← x + W₂·gelu(W₁·norm(x)); logits = norm(x)·Eᵀ
///
/// Attention is causal: a position sees itself and earlier ones. Positions P are learned, and the embedding E is also
/// the output layer. Weights start at N(0, 0.02²), those that add to x at N(0, 0.02²/(2·layers)), biases at 0.
#[derive(Debug)]
pub struct Gpt {
    characters: nn::Embedding,
    positions: Tensor,
    blocks: Vec<GptBlock>,
    norm: nn::LayerNorm,
}

#[derive(Debug)]
struct GptBlock {
    heads: i64,
    norm1: nn::LayerNorm,
    /// Queries, keys and values.
    attend: nn::Linear,
    project: nn::Linear,
    norm2: nn::LayerNorm,
    widen: nn::Linear,
    narrow: nn::Linear,
}

const DEVIATION: f64 = 0.02;

fn normal(stdev: f64) -> nn::Init {
    nn::Init::Randn { mean: 0.0, stdev }
}

fn linear(path: nn::Path, inputs: i64, outputs: i64, stdev: f64) -> nn::Linear {
    let config = nn::LinearConfig { ws_init: normal(stdev), bs_init: Some(nn::Init::Const(0.0)), bias: true };
    nn::linear(path, inputs, outputs, config)
}

impl GptBlock {
    fn new(path: &nn::Path, shape: GptShape) -> Self {
        let width = shape.width as i64;
        let residual = DEVIATION / (2.0 * shape.layers as f64).sqrt();
        let norm = |name| nn::layer_norm(path / name, vec![width], nn::LayerNormConfig::default());
        Self {
            heads: shape.heads as i64,
            norm1: norm("ln_1"),
            attend: linear(path / "attn" / "c_attn", width, 3 * width, DEVIATION),
            project: linear(path / "attn" / "c_proj", width, width, residual),
            norm2: norm("ln_2"),
            widen: linear(path / "mlp" / "c_fc", width, 4 * width, DEVIATION),
            narrow: linear(path / "mlp" / "c_proj", 4 * width, width, residual),
        }
    }
    fn attention(&self, x: &Tensor) -> Tensor {
        let size = x.size();
        let [n, positions, width] = size[..] else { unreachable!("n×positions×width") };
        let all = x.apply(&self.attend).view([n, positions, 3, self.heads, width / self.heads]);
        let [q, k, v] = [0, 1, 2].map(|i| all.select(2, i).transpose(1, 2));
        let y = if is_differentiable_again() {
            plain_attention(&q, &k, &v)
        } else {
            Tensor::scaled_dot_product_attention::<Tensor>(&q, &k, &v, None, 0.0, true, None, false)
        };
        y.transpose(1, 2).reshape(&size[..]).apply(&self.project)
    }
    fn forward(&self, x: &Tensor) -> Tensor {
        let x = x + self.attention(&x.apply(&self.norm1));
        let inner = x.apply(&self.norm2).apply(&self.widen).gelu("tanh").apply(&self.narrow);
        x + inner
    }
}

/// Causal attention, operation by operation.
fn plain_attention(q: &Tensor, k: &Tensor, v: &Tensor) -> Tensor {
    let (positions, width) = (q.size()[2], q.size()[3]);
    let later = Tensor::ones([positions, positions], (Kind::Bool, q.device())).triu(1);
    let scores = q.matmul(&k.transpose(2, 3)) / (width as f64).sqrt();
    scores.masked_fill(&later, f64::NEG_INFINITY).softmax(3, None).matmul(v)
}

impl Gpt {
    /// Creates the layers under `path`, initialized from libtorch's generator, for this many different characters.
    #[must_use]
    pub fn new(path: &nn::Path, characters: i64, shape: GptShape) -> Self {
        let width = shape.width as i64;
        let embedding = nn::EmbeddingConfig { ws_init: normal(DEVIATION), ..Default::default() };
        Self {
            characters: nn::embedding(path / "wte", characters, width, embedding),
            positions: (path / "wpe").var("weight", &[shape.context as i64, width], normal(DEVIATION)),
            blocks: (0..shape.layers).map(|i| GptBlock::new(&(path / "h" / i), shape)).collect(),
            norm: nn::layer_norm(path / "ln_f", vec![width], nn::LayerNormConfig::default()),
        }
    }
}

impl Module for Gpt {
    /// The logits of the next character at every position, n×positions×characters, of codes n×positions.
    fn forward(&self, codes: &Tensor) -> Tensor {
        let mut x = codes.apply(&self.characters) + self.positions.narrow(0, 0, codes.size()[1]);
        for block in &self.blocks {
            x = block.forward(&x);
        }
        x.apply(&self.norm).linear(&self.characters.ws, None::<Tensor>)
    }
}
