//! Numbers with derivatives, so that a problem is written as its formula only.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// The largest number of variables.
const VARIABLES: usize = 10;

/// A number, its gradient with respect to the variables, and the derivatives of both along one direction (forward-mode
/// automatic differentiation, twice).
#[derive(Clone, Copy)]
pub(super) struct Jet {
    pub(super) value: f64,
    gradient: [f64; VARIABLES],
    /// The derivative of the value along the direction v.
    along: f64,
    /// The derivative of the gradient along v: the product of the Hessian with v.
    product: [f64; VARIABLES],
}

impl Jet {
    /// The variables at x, with derivatives along v if it is given: the i-th has the gradient eᵢ.
    pub(super) fn variables(x: &[f64], v: Option<&[f64]>) -> Vec<Self> {
        assert!(x.len() <= VARIABLES, "a problem has at most {VARIABLES} variables");
        let unit = |i| std::array::from_fn(|j| f64::from(i == j));
        let along = |i: usize| v.map_or(0.0, |v| v[i]);
        let variable = |(i, &value)| Self { gradient: unit(i), along: along(i), ..Self::from(value) };
        x.iter().enumerate().map(variable).collect()
    }
    /// The first n derivatives.
    pub(super) fn gradient(&self, n: usize) -> Vec<f64> {
        self.gradient[..n].to_vec()
    }
    /// The first n components of the Hessian's product with v.
    pub(super) fn product(&self, n: usize) -> Vec<f64> {
        self.product[..n].to_vec()
    }
    pub(super) fn powi(self, k: i32) -> Self {
        let second = if k == 1 { 0.0 } else { f64::from(k * (k - 1)) * self.value.powi(k - 2) };
        self.map(self.value.powi(k), f64::from(k) * self.value.powi(k - 1), second)
    }
    pub(super) fn exp(self) -> Self {
        self.map(self.value.exp(), self.value.exp(), self.value.exp())
    }
    pub(super) fn ln(self) -> Self {
        self.map(self.value.ln(), self.value.recip(), -self.value.powi(-2))
    }
    pub(super) fn sin(self) -> Self {
        self.map(self.value.sin(), self.value.cos(), -self.value.sin())
    }
    /// A function of one variable, by its value and its first two derivatives.
    fn map(self, value: f64, first: f64, second: f64) -> Self {
        let product = |i: usize| first * self.product[i] + second * self.along * self.gradient[i];
        Self {
            value,
            gradient: self.gradient.map(|g| first * g),
            along: first * self.along,
            product: std::array::from_fn(product),
        }
    }
    /// A function of two variables, by its value, its partial derivatives, and the second ones: twice by the first
    /// variable, by both, and twice by the second.
    fn join(self, other: Self, value: f64, (a, b): (f64, f64), (aa, ab, bb): (f64, f64, f64)) -> Self {
        let gradient = std::array::from_fn(|i| a * self.gradient[i] + b * other.gradient[i]);
        // The derivatives of the partial derivatives along v.
        let (of_a, of_b) = (aa * self.along + ab * other.along, ab * self.along + bb * other.along);
        let linear = |i: usize| a * self.product[i] + b * other.product[i];
        let product = |i: usize| linear(i) + of_a * self.gradient[i] + of_b * other.gradient[i];
        Self { value, gradient, along: a * self.along + b * other.along, product: std::array::from_fn(product) }
    }
}

impl From<f64> for Jet {
    fn from(value: f64) -> Self {
        Self { value, gradient: [0.0; VARIABLES], along: 0.0, product: [0.0; VARIABLES] }
    }
}

impl Neg for Jet {
    type Output = Self;
    fn neg(self) -> Self {
        self.map(-self.value, -1.0, 0.0)
    }
}

/// An operator on a and b, by its first and second partial derivatives. One of the operands may be a constant.
macro_rules! operator {
    ($trait:ident, $name:ident, |$a:ident, $b:ident| $partial:expr, $second:expr) => {
        impl $trait for Jet {
            type Output = Jet;
            fn $name(self, other: Jet) -> Jet {
                let ($a, $b) = (self.value, other.value);
                self.join(other, $a.$name($b), $partial, $second)
            }
        }
        impl $trait<f64> for Jet {
            type Output = Jet;
            fn $name(self, other: f64) -> Jet {
                self.$name(Jet::from(other))
            }
        }
        impl $trait<Jet> for f64 {
            type Output = Jet;
            fn $name(self, other: Jet) -> Jet {
                Jet::from(self).$name(other)
            }
        }
    };
}
operator!(Add, add, |_a, _b| (1.0, 1.0), (0.0, 0.0, 0.0));
operator!(Sub, sub, |_a, _b| (1.0, -1.0), (0.0, 0.0, 0.0));
operator!(Mul, mul, |a, b| (b, a), (0.0, 1.0, 0.0));
operator!(Div, div, |a, b| (b.recip(), -a / (b * b)), (0.0, -b.powi(-2), 2.0 * a / b.powi(3)));
