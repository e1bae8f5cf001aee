//! Products with the Hessian and the Gauss–Newton matrix of a network's loss.
//!
//! A dot is the derivative along the direction V of the weights. Forward, with a⁰ fixed:
//!
//! ```text
//! ż = Va + Wȧ,   ȧ' = φ'(z)∘ż
//! ```
//!
//! and back from the derivatives δ of the loss with respect to the outputs, with their derivatives δ̇ = Bż:
//!
//! ```text
//! product = δ̇aᵀ + δȧᵀ,   δ̇' = φ'(z)∘(Wᵀδ̇ + Vᵀδ) + φ''(z)∘ż∘Wᵀδ,   δ' = φ'(z)∘Wᵀδ
//! ```
//!
//! for the Hessian (Pearlmutter 1994). The Gauss–Newton product is the usual backward pass with δ̇ in the place of δ.

use super::{Activation, DenseNetwork, ForwardPass, Layer, PullBack, Scratch, columns, columns_mut, multiply, widest};
use faer::{Accum, Mat, MatMut, MatRef, Par, linalg::matmul::matmul};
use pulp::NullaryFnOnce;
use strust::{objective::ProductKind, vector::Real};

/// What a product is made of: the matrix at the weights x, and the direction v.
#[derive(Clone, Copy)]
pub struct Tangent<'a, T> {
    /// The matrix.
    pub kind: ProductKind,
    /// The weights.
    pub x: &'a [T],
    /// The direction.
    pub v: &'a [T],
}

impl<T: Real> DenseNetwork<T> {
    /// The product with the curvature matrix of the loss on some data points, which overwrites `product`. `head` gets the
    /// outputs and their derivatives ż, in columns of the same width. It overwrites the outputs with the derivatives δ
    /// of the loss, and ż with Bż, where B is the Hessian of the loss in the outputs.
    pub fn product(
        &mut self,
        tangent: Tangent<'_, T>,
        data: &Mat<T>,
        rows: impl ExactSizeIterator<Item = usize>,
        head: impl FnOnce(ForwardPass<'_, T>, &mut [T]),
        product: &mut [T],
    ) {
        let batch = rows.len();
        let Tangent { kind, x, v } = tangent;
        self.forward(x, data, rows);
        let Self { layers, activation, scratch, along } = self;
        along.forward_along(layers, *activation, scratch, tangent, batch);
        let width = layers.last().map_or(1, |layer| layer.outputs);
        let outputs = &mut scratch.delta[..width * batch];
        head(ForwardPass { inputs: &scratch.inputs[0], outputs, width }, &mut along.delta[..width * batch]);
        match kind {
            ProductKind::Hessian => along.backward_along(layers, *activation, scratch, (x, v), batch, product),
            ProductKind::GaussNewton => {
                outputs.copy_from_slice(&along.delta[..width * batch]);
                scratch.backward(layers, *activation, x, batch, product, |_, _| {});
            }
        }
    }
}

/// Of products: `inputs` are the derivatives ȧ of the inputs of each layer, without ones, where that of the data is 0 and
/// has no space; `delta` is ż of the outputs, later δ̇.
impl<T: Real> Scratch<T> {
    /// Writes ȧ of every layer, and ż of the outputs to `delta`.
    fn forward_along(
        &mut self,
        layers: &[Layer],
        activation: Activation,
        at: &Self,
        Tangent { x, v, .. }: Tangent<'_, T>,
        batch: usize,
    ) {
        self.reserve(layers, 0, batch);
        for (l, layer) in layers.iter().enumerate() {
            let (before, after) = self.inputs.split_at_mut(l + 1);
            let out = after.first_mut().unwrap_or(&mut self.delta);
            let mut change = columns_mut(out, layer.outputs, batch);
            multiply(change.as_mut(), layer.matrix(v), columns(&at.inputs[l], layer.inputs + 1, batch));
            if l > 0 {
                add(change, layer.weights(x), columns(&before[l], layer.inputs, batch));
            }
            if let Some(hidden) = after.first_mut() {
                let hidden = &mut hidden[..layer.outputs * batch];
                widest(PullBack(activation, &at.inputs[l + 1], hidden, layer.outputs));
            }
        }
    }

    /// The product with the Hessian, from δ in the scratch space of the forward pass and δ̇ in this one.
    fn backward_along(
        &mut self,
        layers: &[Layer],
        activation: Activation,
        at: &mut Self,
        (x, v): (&[T], &[T]),
        batch: usize,
        product: &mut [T],
    ) {
        for (l, layer) in layers.iter().enumerate().rev() {
            let (delta, change) =
                (columns(&at.delta, layer.outputs, batch), columns(&self.delta, layer.outputs, batch));
            let mut out = layer.matrix_mut(product);
            multiply(out.as_mut(), change, columns(&at.inputs[l], layer.inputs + 1, batch).transpose());
            if l == 0 {
                break;
            }
            add(out.subcols_mut(0, layer.inputs), delta, columns(&self.inputs[l], layer.inputs, batch).transpose());
            let mut next = columns_mut(&mut self.next, layer.inputs, batch);
            multiply(next.as_mut(), layer.weights(x).transpose(), change);
            add(next, layer.weights(v).transpose(), delta);
            multiply(columns_mut(&mut at.next, layer.inputs, batch), layer.weights(x).transpose(), delta);
            let (next, back) = (&mut self.next[..layer.inputs * batch], &mut at.next[..layer.inputs * batch]);
            let a = &at.inputs[l];
            widest(PullBack(activation, a, next, layer.inputs));
            if activation == Activation::Tanh {
                widest(Bend { a, along: &self.inputs[l], back, change: next, width: layer.inputs });
            }
            widest(PullBack(activation, a, back, layer.inputs));
            std::mem::swap(&mut at.delta, &mut at.next);
            std::mem::swap(&mut self.delta, &mut self.next);
        }
    }
}

/// out ← out + A·B.
fn add<T: Real>(out: MatMut<'_, T>, a: MatRef<'_, T>, b: MatRef<'_, T>) {
    matmul(out, Accum::Add, a, b, T::from_f64(1.0), Par::Seq);
}

/// δ̇ ← δ̇ + φ''(z)∘ż∘Wᵀδ of tanh, where φ''(z)∘ż = −2a∘ȧ. Other activations have φ'' = 0. Columns of a have a 1 below.
struct Bend<'a, T> {
    a: &'a [T],
    along: &'a [T],
    back: &'a [T],
    change: &'a mut [T],
    width: usize,
}

impl<T: Real> NullaryFnOnce for Bend<'_, T> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { a, along, back, change, width } = self;
        let two = T::from_f64(-2.0);
        let columns = change.chunks_exact_mut(width).zip(a.chunks_exact(width + 1));
        for ((change, a), (along, back)) in columns.zip(along.chunks_exact(width).zip(back.chunks_exact(width))) {
            for ((change, &a), (&along, &back)) in change.iter_mut().zip(a).zip(along.iter().zip(back)) {
                *change += two * a * along * back;
            }
        }
    }
}
