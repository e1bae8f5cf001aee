//! A fully connected network: layers, forward and backward pass, start. Its loss is that of the problem that uses it.

mod products;

pub use products::Tangent;

use crate::{
    numerics::{START, at_least_one, finite, normals, out_of_range},
    simd_math::tanh,
};
use faer::{Accum, Mat, MatMut, MatRef, Par, linalg::matmul::matmul};
use pulp::NullaryFnOnce;
use strust::{Error, constraints::Frame, vector::Real};

/// The largest number of parameters: 16 GiB in `f64`.
const MOST: usize = 1 << 31;
/// Data points per measurement, to limit the scratch space for large data sets.
pub const PIECE: usize = 256;

/// The activation function φ of the hidden units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activation {
    /// max(z, 0).
    #[default]
    Relu,
    /// tanh z.
    Tanh,
    /// z, so the network is a product of matrices.
    Linear,
}

/// Layers aˡ = φ(Wˡaˡ⁻¹ + bˡ), the last one without φ, over flat points: for each layer Wˡ, column by column, then bˡ.
#[derive(Debug, Clone)]
pub struct DenseNetwork<T> {
    layers: Vec<Layer>,
    activation: Activation,
    scratch: Scratch<T>,
    /// Space for derivatives along a direction. It is empty before the first product.
    along: Scratch<T>,
}

/// The position of a layer's matrix \[W b\] in the flat vector, and its shape.
#[derive(Debug, Clone, Copy)]
struct Layer {
    start: usize,
    inputs: usize,
    outputs: usize,
}

impl Layer {
    fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.outputs * (self.inputs + 1)
    }
    fn matrix<'a, T>(&self, x: &'a [T]) -> MatRef<'a, T> {
        MatRef::from_column_major_slice(&x[self.range()], self.outputs, self.inputs + 1)
    }
    /// W without b.
    fn weights<'a, T>(&self, x: &'a [T]) -> MatRef<'a, T> {
        self.matrix(x).subcols(0, self.inputs)
    }
    fn matrix_mut<'a, T>(&self, x: &'a mut [T]) -> MatMut<'a, T> {
        MatMut::from_column_major_slice_mut(&mut x[self.range()], self.outputs, self.inputs + 1)
    }
}

/// Data as the network reads them: each data point is a column with a 1 below it.
pub fn with_ones<T: Real>(owner: &'static str, features: &Mat<f64>) -> Result<Mat<T>, Error> {
    let d = features.ncols();
    let entry = |i, j| T::from_f64(if i < d { features[(j, i)] } else { 1.0 });
    let columns = Mat::from_fn(d + 1, features.nrows(), entry);
    // A number that is finite in f64 can be infinite in f32.
    finite(owner, "features", &columns)?;
    Ok(columns)
}

impl<T: Real> DenseNetwork<T> {
    /// `widths` are those of the data, of the hidden layers and of the output. `owner` names the network in errors.
    pub fn new(owner: &'static str, widths: &[usize], activation: Activation) -> Result<Self, Error> {
        let (mut layers, mut start) = (Vec::new(), 0_usize);
        for pair in widths.windows(2) {
            let [inputs, outputs] = [pair[0], pair[1]];
            at_least_one(owner, "hidden", outputs)?;
            layers.push(Layer { start, inputs, outputs });
            let size = inputs.checked_add(1).and_then(|columns| columns.checked_mul(outputs));
            start = size.and_then(|size| size.checked_add(start)).filter(|&end| end <= MOST).ok_or_else(|| {
                let [features, hidden @ .., outputs] = widths else { unreachable!("there are at least two widths") };
                let allowed =
                    format!("widths of at most {MOST} parameters, with {features} features and {outputs} outputs");
                out_of_range(owner, "hidden", format!("{hidden:?}"), allowed)
            })?;
        }
        Ok(Self { layers, activation, scratch: Scratch::default(), along: Scratch::default() })
    }

    /// The weights of the hidden layers, without biases.
    #[must_use]
    pub fn hidden_weights(&self) -> Vec<Frame> {
        let hidden = &self.layers[..self.layers.len() - 1];
        hidden.iter().map(|l| Frame { start: l.start, rows: l.outputs, columns: l.inputs }).collect()
    }

    /// The number of parameters of a point.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.range().end)
    }

    /// Biases are 0. Weights are N(0, 2/inputs) for ReLU (He et al. 2015) and N(0, 2/(inputs + outputs)) otherwise
    /// (Glorot and Bengio 2010). This keeps the size of the activations from layer to layer.
    #[must_use]
    pub fn start(&self, seed: u64) -> Vec<T> {
        let mut next = normals(seed, START);
        let mut x = vec![T::default(); self.parameters()];
        for layer in &self.layers {
            let fan = match self.activation {
                Activation::Relu => layer.inputs,
                Activation::Tanh | Activation::Linear => layer.inputs + layer.outputs,
            };
            let scale = (2.0 / fan as f64).sqrt();
            let weights = layer.start..layer.start + layer.inputs * layer.outputs;
            x[weights].fill_with(|| T::from_f64(scale * next()));
        }
        x
    }

    /// The loss that `head` computes from the inputs and the outputs of some data points. `head` overwrites the outputs
    /// with its derivatives, from which the gradient follows.
    pub fn evaluate(
        &mut self,
        x: &[T],
        data: &Mat<T>,
        rows: impl ExactSizeIterator<Item = usize>,
        head: impl FnOnce(ForwardPass<'_, T>) -> f64,
        gradient: Option<&mut [T]>,
    ) -> f64 {
        let Some(gradient) = gradient else { return head(self.forward(x, data, rows)) };
        self.evaluate_in_slices(x, data, rows, head, gradient, |_, _| {})
    }

    /// The same with the gradient, whose layers are ready from the last to the first. `ready` is called at each place of
    /// [`Self::slices`].
    pub fn evaluate_in_slices<G: AsMut<[T]> + ?Sized>(
        &mut self,
        x: &[T],
        data: &Mat<T>,
        rows: impl ExactSizeIterator<Item = usize>,
        head: impl FnOnce(ForwardPass<'_, T>) -> f64,
        gradient: &mut G,
        ready: impl FnMut(&G, usize),
    ) -> f64 {
        let batch = rows.len();
        let value = head(self.forward(x, data, rows));
        self.scratch.backward(&self.layers, self.activation, x, batch, gradient, ready);
        value
    }

    /// Where the layers begin, from the last one to the second.
    #[must_use]
    pub fn slices(&self) -> Vec<usize> {
        self.layers.iter().skip(1).rev().map(|layer| layer.start).collect()
    }

    /// The outputs of some data points.
    pub fn forward(
        &mut self,
        x: &[T],
        data: &Mat<T>,
        rows: impl ExactSizeIterator<Item = usize>,
    ) -> ForwardPass<'_, T> {
        let batch = rows.len();
        self.scratch.forward(&self.layers, self.activation, x, data, rows);
        let width = self.layers.last().map_or(1, |layer| layer.outputs);
        ForwardPass { inputs: &self.scratch.inputs[0], outputs: &mut self.scratch.delta[..width * batch], width }
    }
}

/// A forward pass: what the head of a network sees.
pub struct ForwardPass<'a, T> {
    /// The data points, each with a 1 below it.
    pub inputs: &'a [T],
    /// Columns of `width` numbers, one for each data point.
    pub outputs: &'a mut [T],
    /// The number of outputs of a data point.
    pub width: usize,
}

/// Working space. A column is a data point. A smaller batch uses the first columns.
#[derive(Debug, Clone, Default)]
struct Scratch<T> {
    /// The inputs of each layer: the batch, then the hidden units. Each column ends with a 1 for the bias.
    inputs: Vec<Vec<T>>,
    /// The scores, later the derivatives with respect to the output of a layer.
    delta: Vec<T>,
    /// The same for the previous layer, while it is computed.
    next: Vec<T>,
}

impl<T: Real> Scratch<T> {
    /// Makes space for a batch, whose columns of inputs end with this many ones.
    fn reserve(&mut self, layers: &[Layer], ones: usize, batch: usize) {
        self.inputs.resize_with(layers.len(), Vec::new);
        for (l, (space, layer)) in self.inputs.iter_mut().zip(layers).enumerate() {
            // Derivatives of the data are 0 and need no space.
            if l > 0 || ones > 0 {
                grow(space, (layer.inputs + ones) * batch);
            }
            grow(&mut self.delta, layer.outputs * batch);
            // Both have the same size, because they are swapped.
            grow(&mut self.next, layer.outputs * batch);
        }
    }

    /// Writes the scores of some data points to `delta`.
    fn forward(
        &mut self,
        layers: &[Layer],
        activation: Activation,
        x: &[T],
        data: &Mat<T>,
        rows: impl ExactSizeIterator<Item = usize>,
    ) {
        let batch = rows.len();
        self.reserve(layers, 1, batch);
        for (column, i) in self.inputs[0].chunks_exact_mut(layers[0].inputs + 1).zip(rows) {
            column.copy_from_slice(data.col_as_slice(i));
        }
        for (l, layer) in layers.iter().enumerate() {
            let (before, after) = self.inputs.split_at_mut(l + 1);
            let input = columns(&before[l], layer.inputs + 1, batch);
            if let Some(hidden) = after.first_mut() {
                let out = columns_mut(hidden, layer.outputs + 1, batch).subrows_mut(0, layer.outputs);
                multiply(out, layer.matrix(x), input);
                widest(Activate(activation, &mut hidden[..(layer.outputs + 1) * batch], layer.outputs));
            } else {
                multiply(columns_mut(&mut self.delta, layer.outputs, batch), layer.matrix(x), input);
            }
        }
    }

    /// The gradient, from the derivatives with respect to the scores in `delta`. All but the first layer are announced.
    fn backward<G: AsMut<[T]> + ?Sized>(
        &mut self,
        layers: &[Layer],
        activation: Activation,
        x: &[T],
        batch: usize,
        gradient: &mut G,
        mut ready: impl FnMut(&G, usize),
    ) {
        for (l, layer) in layers.iter().enumerate().rev() {
            let delta = columns(&self.delta, layer.outputs, batch);
            let input = columns(&self.inputs[l], layer.inputs + 1, batch);
            multiply(layer.matrix_mut(gradient.as_mut()), delta, input.transpose());
            if l > 0 {
                ready(gradient, layer.start);
                multiply(columns_mut(&mut self.next, layer.inputs, batch), layer.weights(x).transpose(), delta);
                let next = &mut self.next[..layer.inputs * batch];
                widest(PullBack(activation, &self.inputs[l], next, layer.inputs));
                std::mem::swap(&mut self.delta, &mut self.next);
            }
        }
    }
}

fn grow<T: Real>(space: &mut Vec<T>, size: usize) {
    if space.len() < size {
        // The ones below the columns. All other entries are overwritten.
        space.resize(size, T::from_f64(1.0));
    }
}

fn columns<T>(space: &[T], rows: usize, batch: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(&space[..rows * batch], rows, batch)
}

fn columns_mut<T>(space: &mut [T], rows: usize, batch: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(&mut space[..rows * batch], rows, batch)
}

/// Runs a loop with the widest instructions of this machine.
pub fn widest<F: NullaryFnOnce>(f: F) -> F::Output {
    pulp::Arch::new().dispatch(f)
}

/// out ← A·B.
fn multiply<T: Real>(out: MatMut<'_, T>, a: MatRef<'_, T>, b: MatRef<'_, T>) {
    matmul(out, Accum::Replace, a, b, T::from_f64(1.0), Par::Seq);
}

/// z ← φ(z), in columns of `width` numbers and a 1, which is unchanged. NaN must stay NaN, because it rejects a trial.
///
/// The loops are structs, because a closure cannot be marked `#[inline(always)]`, and only inlined code is compiled
/// with the widest instructions.
struct Activate<'a, T>(Activation, &'a mut [T], usize);

impl<T: Real> NullaryFnOnce for Activate<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self(activation, z, width) = self;
        let zero = T::default();
        for column in z.chunks_exact_mut(width + 1) {
            for z in &mut column[..width] {
                *z = match activation {
                    Activation::Relu if *z < zero => zero,
                    Activation::Relu | Activation::Linear => *z,
                    Activation::Tanh => T::from_f64(tanh((*z).into())),
                };
            }
        }
    }
}

/// delta ← delta∘φ'(z) in columns of `width` numbers, from a = φ(z) with a 1 below each column.
struct PullBack<'a, T>(Activation, &'a [T], &'a mut [T], usize);

impl<T: Real> NullaryFnOnce for PullBack<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self(activation, a, delta, width) = self;
        let (zero, one) = (T::default(), T::from_f64(1.0));
        for (delta, a) in delta.chunks_exact_mut(width).zip(a.chunks_exact(width + 1)) {
            for (delta, &a) in delta.iter_mut().zip(a) {
                *delta = match activation {
                    Activation::Relu if a > zero => *delta,
                    Activation::Relu => zero,
                    // 1 − a² as a product, which does not cancel where a ≈ ±1.
                    Activation::Tanh => *delta * ((one - a) * (one + a)),
                    Activation::Linear => *delta,
                };
            }
        }
    }
}
