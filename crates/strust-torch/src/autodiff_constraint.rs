//! Any c(x) that libtorch can differentiate, as a constraint.

use crate::{Component, Error, Flat, ModelParameters, again::differentiable_again};
use strust::{constraints::Constraint, vector::Vector};
use tch::{Tensor, no_grad};

/// The constraint c(x) = 0, where a closure computes c from the model's parameters. Automatic differentiation computes
/// the products with its Jacobian.
///
/// ```
/// use strust::constraints::Constraint;
/// use strust_torch::{AutodiffConstraint, ModelParameters};
/// use tch::{Device, Kind, nn::{Init, VarStore}};
/// let store = VarStore::new(Device::Cpu);
/// let w = store.root().var("w", &[3], Init::Const(2.0));
/// // ‖w‖² = 1
/// let mut c = AutodiffConstraint::new(&ModelParameters::<f32>::new(&store)?, move || w.square().sum(Kind::Float) - 1.0)?;
/// let mut residual = c.new_residual();
/// let x = c.point();
/// c.residual(&x, &mut residual);
/// assert_eq!(residual.to_vec(), [11.0]);
/// # Ok::<(), strust_torch::Error>(())
/// ```
#[derive(Debug)]
pub struct AutodiffConstraint<T, C> {
    parameters: ModelParameters<T>,
    c: C,
    len: i64,
}

impl<T: Component, C: FnMut() -> Tensor> AutodiffConstraint<T, C> {
    /// The constraint c = 0. `c` computes c at the model's parameters, as a tensor of any fixed shape.
    pub fn new(parameters: &ModelParameters<T>, mut c: C) -> Result<Self, Error> {
        let now = no_grad(&mut c);
        if now.kind() != T::KIND {
            return Err(Error::Kind { name: "the constraint".into(), expected: T::KIND, found: now.kind() });
        }
        Ok(Self { parameters: parameters.share(), c, len: now.numel() as i64 })
    }
    /// A copy of the model's parameters.
    #[must_use]
    pub fn point(&self) -> Flat<T> {
        self.parameters.flat().clone()
    }

    /// Evaluates at x, then restores the model's parameters.
    fn at<R>(&mut self, x: &Flat<T>, evaluate: impl FnOnce(&mut Self, Tensor) -> R) -> R {
        let own = self.point();
        self.parameters.set(x);
        let c = (self.c)().reshape([-1]);
        assert_eq!(c.numel() as i64, self.len, "the constraint changed its number of components");
        let result = evaluate(self, c);
        self.parameters.set(&own);
        result
    }
}

impl<T: Component, C: FnMut() -> Tensor> Constraint for AutodiffConstraint<T, C> {
    type Point = Flat<T>;
    type Residual = Flat<T>;

    fn new_residual(&self) -> Flat<T> {
        Flat::zeros(self.len, self.parameters.device())
    }
    fn residual(&mut self, x: &Flat<T>, c: &mut Flat<T>) {
        no_grad(|| self.at(x, |_, value| c.copy_from(&Flat::adopt(value))));
    }
    /// Jᵀu is linear in u, so the derivative of ⟨Jᵀu, v⟩ by u is Jv: reverse mode twice.
    fn jvp(&mut self, x: &Flat<T>, v: &Flat<T>, out: &mut Flat<T>) {
        self.at(x, |this, c| {
            let u = c.zeros_like().set_requires_grad(true);
            let transposed = this.parameters.derivatives(&c.dot(&u), true);
            let along: Vec<Tensor> = this
                .parameters
                .slots()
                .iter()
                .zip(&transposed)
                .map(|(slot, j)| (j * slot.of(v)).sum(T::KIND))
                .collect();
            let product = Tensor::run_backward(&[Tensor::stack(&along, 0).sum(T::KIND)], &[&u], false, false);
            out.copy_from(&Flat::adopt(product[0].detach()));
        });
    }
    fn add_vjp(&mut self, x: &Flat<T>, a: f64, y: &Flat<T>, out: &mut Flat<T>) {
        let mut product = out.zeros_like();
        self.at(x, |this, c| this.parameters.gradient(&c.dot(y.tensor()), &mut product));
        out.add(a, &product);
    }
    /// The gradient of ⟨Jᵀy, v⟩, where Jᵀy is a function of the parameters.
    fn add_second_order_product(&mut self, x: &Flat<T>, a: f64, y: &Flat<T>, v: &Flat<T>, out: &mut Flat<T>) -> bool {
        let mut product = out.zeros_like();
        let pieces = differentiable_again(|| {
            self.at(x, |this, c| {
                let transposed = this.parameters.try_derivatives(&c.dot(y.tensor()), true).ok()?;
                this.parameters.try_derivatives(&this.parameters.along(&transposed, v), false).ok()
            })
        });
        if let Some(pieces) = &pieces {
            self.parameters.write_flat(pieces, &mut product);
            out.add(a, &product);
        }
        pieces.is_some()
    }
    fn check_point(&self, x: &Flat<T>) -> Result<(), strust::Error> {
        let (expected, found) = (self.parameters.flat().shape(), x.shape());
        if expected != found {
            return Err(strust::Error::Shape { place: "constraint by automatic differentiation", expected, found });
        }
        Ok(())
    }
}
