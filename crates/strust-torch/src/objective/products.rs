//! Products with the curvature of a model's loss on a batch, by differentiating twice.

use super::{BatchLoss, BatchSource, TorchObjective};
use crate::{Component, Flat, again::differentiable_again, parameters::differentiate};
use strust::objective::ProductKind;
use tch::Tensor;

impl<T: Component, L: BatchLoss> TorchObjective<T, L> {
    /// product ← H·v at the model's own parameters, on a batch that is prepared already. Returns false if libtorch cannot
    /// differentiate an operation of the model twice, or if the loss has no outputs for the Gauss–Newton matrix. The
    /// running statistics stay unchanged.
    pub(crate) fn product_here(
        &mut self,
        kind: ProductKind,
        on: &impl BatchSource<L>,
        v: &Flat<T>,
        product: &mut Flat<T>,
    ) -> bool {
        // A model that fails once fails always. Trying again would cost two passes.
        if self.without_products.contains(&kind) {
            return false;
        }
        let _held = on.held();
        let buffers = self.parameters.snapshot();
        let pieces = match kind {
            ProductKind::Hessian => self.hessian_product(on, v),
            ProductKind::GaussNewton => self.gauss_newton_product(on, v),
        };
        self.parameters.restore(&buffers);
        match pieces {
            Some(pieces) => self.parameters.write_flat(&pieces, product),
            None => self.without_products.push(kind),
        }
        !self.without_products.contains(&kind)
    }

    /// The gradient of gᵀv, where the gradient g is a function of the parameters.
    fn hessian_product(&mut self, on: &impl BatchSource<L>, v: &Flat<T>) -> Option<Vec<Tensor>> {
        let value = differentiable_again(|| self.forward(on));
        let gradient = self.parameters.try_derivatives(&value, true).ok()?;
        self.parameters.try_derivatives(&self.parameters.along(&gradient, v), false).ok()
    }

    /// JᵀBJv with the Jacobian J of the outputs z and the Hessian B of the loss in them. Jᵀu is linear in u, so the
    /// derivative of ⟨Jᵀu, v⟩ by u is Jv: reverse mode twice.
    fn gauss_newton_product(&mut self, on: &impl BatchSource<L>, v: &Flat<T>) -> Option<Vec<Tensor>> {
        let of = differentiable_again(|| on.outputs(&mut self.loss))?;
        let z = of.outputs;
        let u = z.zeros_like().set_requires_grad(true);
        let transposed = self.parameters.try_derivatives(&inner(&z, &u), true).ok()?;
        let change = differentiate(&self.parameters.along(&transposed, v), &[&u], true, false).ok()?.remove(0);
        let outputs = z.detach().set_requires_grad(true);
        let slope = differentiate(&(of.loss)(&outputs), &[&outputs], true, true).ok()?.remove(0);
        let bent = differentiate(&inner(&slope, &change), &[&outputs], false, false).ok()?.remove(0);
        self.parameters.try_derivatives(&inner(&z, &bent.detach()), false).ok()
    }
}

fn inner(a: &Tensor, b: &Tensor) -> Tensor {
    (a * b).sum(a.kind())
}
