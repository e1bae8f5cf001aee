//! Selected weights with orthonormal columns, in closed form.

use crate::{Component, Error, Flat, ModelParameters};
use std::marker::PhantomData;
use strust::{
    constraints::{Constraint, Manifold},
    vector::Vector,
};
use tch::{Device, Tensor};

/// The constraint c(x) = WᵀW − I = 0 for each selected weight W of a model. c has the entries of one weight after the
/// other.
///
/// A weight of more than two dimensions, such as that of a convolution, is a matrix with one row per output channel.
/// J·V = WᵀV + VᵀW and Jᵀ·Y = W(Y + Yᵀ), as for [`strust::constraints::Stiefel`].
#[derive(Debug)]
pub struct Orthonormal<T> {
    weights: Vec<Weight>,
    len: i64,
    device: Device,
    component: PhantomData<T>,
}

#[derive(Debug, Clone, Copy)]
struct Weight {
    offset: i64,
    rows: i64,
    columns: i64,
    transposed: bool,
    /// The index of its first entry in c.
    residual: i64,
}

impl Weight {
    /// The view of W in a vector of the model's shape.
    fn of<T: Component>(&self, x: &Flat<T>) -> Tensor {
        let (rows, columns) = if self.transposed { (self.columns, self.rows) } else { (self.rows, self.columns) };
        let matrix = x.tensor().narrow(0, self.offset, rows * columns).view_([rows, columns]);
        if self.transposed { matrix.tr() } else { matrix }
    }
    /// The view of its entries in c.
    fn residual<T: Component>(&self, c: &Flat<T>) -> Tensor {
        c.tensor().narrow(0, self.residual, self.columns * self.columns).view_([self.columns, self.columns])
    }
    fn eye<T: Component>(&self, device: Device) -> Tensor {
        Tensor::eye(self.columns, (T::KIND, device))
    }
}

impl<T: Component> Orthonormal<T> {
    /// Orthonormal columns. Each weight needs at least as many rows as columns.
    pub fn columns(parameters: &ModelParameters<T>, names: &[&str]) -> Result<Self, Error> {
        Self::new(parameters, names, false)
    }
    /// Orthonormal rows. Each weight needs at least as many columns as rows.
    pub fn rows(parameters: &ModelParameters<T>, names: &[&str]) -> Result<Self, Error> {
        Self::new(parameters, names, true)
    }

    fn new(parameters: &ModelParameters<T>, names: &[&str], transposed: bool) -> Result<Self, Error> {
        let (mut weights, mut len) = (Vec::new(), 0);
        for &name in names {
            let slot = parameters.slot(name)?;
            let outputs = slot.shape.first().copied().unwrap_or(1);
            let inputs = slot.len() / outputs;
            let (rows, columns) = if transposed { (inputs, outputs) } else { (outputs, inputs) };
            if columns > rows {
                let advice = if transposed { "ask for its columns" } else { "ask for its rows" };
                return Err(Error::TooWide { name: name.into(), rows, columns, advice });
            }
            weights.push(Weight { offset: slot.offset, rows, columns, transposed, residual: len });
            len += columns * columns;
        }
        Ok(Self { weights, len, device: parameters.device(), component: PhantomData })
    }
}

/// A + Aᵀ.
fn twice_symmetric(a: &Tensor) -> Tensor {
    a + a.tr()
}

impl<T: Component> Constraint for Orthonormal<T> {
    type Point = Flat<T>;
    type Residual = Flat<T>;

    fn new_residual(&self) -> Flat<T> {
        Flat::zeros(self.len, self.device)
    }
    fn residual(&mut self, x: &Flat<T>, c: &mut Flat<T>) {
        for weight in &self.weights {
            let w = weight.of(x);
            weight.residual(c).copy_(&(w.tr().matmul(&w) - weight.eye::<T>(self.device)));
        }
    }
    fn jvp(&mut self, x: &Flat<T>, v: &Flat<T>, out: &mut Flat<T>) {
        for weight in &self.weights {
            weight.residual(out).copy_(&twice_symmetric(&weight.of(x).tr().matmul(&weight.of(v))));
        }
    }
    fn add_vjp(&mut self, x: &Flat<T>, a: f64, y: &Flat<T>, out: &mut Flat<T>) {
        for weight in &self.weights {
            let product = weight.of(x).matmul(&(twice_symmetric(&weight.residual(y)) * a));
            let _ = weight.of(out).g_add_(&product);
        }
    }
    /// V(Y + Yᵀ) for each weight.
    fn add_second_order_product(&mut self, _: &Flat<T>, a: f64, y: &Flat<T>, v: &Flat<T>, out: &mut Flat<T>) -> bool {
        self.add_vjp(v, a, y, out);
        true
    }
    /// Each WᵀW − I is symmetric.
    fn redundant(&self) -> usize {
        self.weights.iter().map(|weight| (weight.columns * (weight.columns - 1) / 2) as usize).sum()
    }
    /// Each entry is a difference of numbers near 1, and there are `len` of them.
    fn rounding(&self, _: &Flat<T>, norm: f64) -> f64 {
        T::EPSILON * (norm + (self.len as f64).sqrt())
    }
    fn check_point(&self, x: &Flat<T>) -> Result<(), strust::Error> {
        let end = self.weights.iter().map(|w| w.offset + w.rows * w.columns).max().unwrap_or(0);
        if x.len() < end {
            return Err(strust::Error::Shape {
                place: "orthonormal weights",
                expected: vec![end as usize],
                found: x.shape(),
            });
        }
        Ok(())
    }
}

impl<T: Component> Manifold for Orthonormal<T> {
    /// V − W·sym(WᵀV). All other parameters stay unchanged.
    fn project_tangent(&mut self, x: &Flat<T>, v: &mut Flat<T>) -> Result<(), strust::Error> {
        for weight in &self.weights {
            let (w, mut v) = (weight.of(x), weight.of(v));
            let normal = w.matmul(&(twice_symmetric(&w.tr().matmul(&v)) * 0.5));
            let _ = v.g_sub_(&normal);
        }
        Ok(())
    }
    /// The factor Q of the QR decomposition with positive diagonal of R.
    fn restore(&mut self, x: &mut Flat<T>) -> Result<(), strust::Error> {
        for weight in &self.weights {
            let mut w = weight.of(x);
            let (q, r) = Tensor::linalg_qr(&w, "reduced");
            let pivots = r.diagonal(0, 0, 1);
            let smallest = pivots.abs().min().double_value(&[]);
            let limit = T::EPSILON * weight.rows as f64 * pivots.abs().max().double_value(&[]);
            if smallest.is_nan() || smallest <= limit {
                let why =
                    "the weight to retract is rank deficient or not finite: the step was too long, use a smaller one";
                return Err(strust::Error::Retraction { set: "orthonormal weights", why: why.into() });
            }
            w.copy_(&(q * pivots.sign()));
        }
        Ok(())
    }
}
