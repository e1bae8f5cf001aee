//! Numbers with derivatives, so that a problem is written as its formula only.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// The largest number of variables.
const VARIABLES: usize = 10;

/// A number and its gradient with respect to the variables (forward-mode automatic differentiation).
#[derive(Clone, Copy)]
pub(super) struct Jet {
    pub(super) value: f64,
    gradient: [f64; VARIABLES],
}

impl Jet {
    /// The variables at x: the i-th has the gradient eᵢ.
    pub(super) fn variables(x: &[f64]) -> Vec<Self> {
        assert!(x.len() <= VARIABLES, "a problem has at most {VARIABLES} variables");
        let unit = |i| std::array::from_fn(|j| f64::from(i == j));
        x.iter().enumerate().map(|(i, &value)| Self { value, gradient: unit(i) }).collect()
    }
    /// The first n derivatives.
    pub(super) fn gradient(&self, n: usize) -> Vec<f64> {
        self.gradient[..n].to_vec()
    }
    pub(super) fn powi(self, k: i32) -> Self {
        self.map(self.value.powi(k), f64::from(k) * self.value.powi(k - 1))
    }
    pub(super) fn exp(self) -> Self {
        self.map(self.value.exp(), self.value.exp())
    }
    pub(super) fn ln(self) -> Self {
        self.map(self.value.ln(), self.value.recip())
    }
    pub(super) fn sin(self) -> Self {
        self.map(self.value.sin(), self.value.cos())
    }
    /// A function of one variable, by its value and its derivative.
    fn map(self, value: f64, derivative: f64) -> Self {
        Self { value, gradient: self.gradient.map(|g| derivative * g) }
    }
    /// A function of two variables, by its value and its partial derivatives.
    fn join(self, other: Self, value: f64, (a, b): (f64, f64)) -> Self {
        let gradient = std::array::from_fn(|i| a * self.gradient[i] + b * other.gradient[i]);
        Self { value, gradient }
    }
}

impl From<f64> for Jet {
    fn from(value: f64) -> Self {
        Self { value, gradient: [0.0; VARIABLES] }
    }
}

impl Neg for Jet {
    type Output = Self;
    fn neg(self) -> Self {
        self.map(-self.value, -1.0)
    }
}

/// An operator on a and b, by its partial derivatives. One of the operands may be a constant.
macro_rules! operator {
    ($trait:ident, $name:ident, |$a:ident, $b:ident| $partial:expr) => {
        impl $trait for Jet {
            type Output = Jet;
            fn $name(self, other: Jet) -> Jet {
                let ($a, $b) = (self.value, other.value);
                self.join(other, $a.$name($b), $partial)
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
operator!(Add, add, |_a, _b| (1.0, 1.0));
operator!(Sub, sub, |_a, _b| (1.0, -1.0));
operator!(Mul, mul, |a, b| (b, a));
operator!(Div, div, |a, b| (b.recip(), -a / (b * b)));
