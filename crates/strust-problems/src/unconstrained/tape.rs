//! Numbers that record how they were computed, so that a problem is written as its formula only.
//!
//! A sweep back over the record gives the gradient of a weighted sum of the results. Every number also has its tangent, the
//! derivative along a direction v. The same sweep differentiates its own result along v, which gives products with the
//! Hessian. Its cost is a small multiple of that of the formula, whatever the number of variables.

use std::{
    cell::RefCell,
    ops::{Add, Div, Mul, Neg, Sub},
};

/// The record of a computation. The first numbers are the variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Tape {
    operations: RefCell<Vec<[Edge; 2]>>,
    /// ∂/∂number of the weighted sum, and its derivative along v.
    adjoints: Vec<[f64; 2]>,
}

/// How a number depends on an operand: the partial derivative, and its derivative along v. An unused edge is all zeros.
#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    operand: usize,
    partial: f64,
    tangent: f64,
}

/// A number on a tape.
#[derive(Clone, Copy, Debug)]
pub struct TapeNumber<'t> {
    tape: &'t Tape,
    place: usize,
    pub(super) value: f64,
    pub(super) tangent: f64,
    /// A bound of the rounding error, as a multiple of the machine precision (running error analysis).
    pub(super) error: f64,
}

impl Tape {
    /// The variables at x, with tangents from the direction v or 0. Erases the record.
    pub(super) fn variables(&mut self, x: &[f64], v: Option<&[f64]>) -> Vec<TapeNumber<'_>> {
        self.operations.get_mut().clear();
        let tangent = |j: usize| v.map_or(0.0, |v| v[j]);
        x.iter().enumerate().map(|(j, &value)| self.push(value, tangent(j), 0.0, [Edge::default(); 2])).collect()
    }
    fn push(&self, value: f64, tangent: f64, error: f64, edges: [Edge; 2]) -> TapeNumber<'_> {
        let mut operations = self.operations.borrow_mut();
        operations.push(edges);
        TapeNumber { tape: self, place: operations.len() - 1, value, tangent, error }
    }
    /// The gradient of Σ wᵢrᵢ and its derivative along v, for the results r at these places, with the weights w and their
    /// derivatives along v. One pair for each number; the variables come first.
    pub(super) fn sweep(&mut self, weighted: impl Iterator<Item = (usize, [f64; 2])>) -> &[[f64; 2]] {
        let operations = self.operations.get_mut();
        self.adjoints.clear();
        self.adjoints.resize(operations.len(), [0.0; 2]);
        for (place, [weight, tangent]) in weighted {
            self.adjoints[place][0] += weight;
            self.adjoints[place][1] += tangent;
        }
        for (place, edges) in operations.iter().enumerate().rev() {
            let [adjoint, changing] = self.adjoints[place];
            for edge in edges {
                let target = &mut self.adjoints[edge.operand];
                target[0] += edge.partial * adjoint;
                target[1] += edge.partial * changing + edge.tangent * adjoint;
            }
        }
        &self.adjoints
    }
}

impl TapeNumber<'_> {
    /// The place on the tape.
    pub(super) fn place(self) -> usize {
        self.place
    }
    pub(super) fn powi(self, k: i32) -> Self {
        let (x, n) = (self.value, f64::from(k));
        let second = if k == 1 { 0.0 } else { n * (n - 1.0) * x.powi(k - 2) };
        self.map([x.powi(k), n * x.powi(k - 1), second])
    }
    pub(super) fn exp(self) -> Self {
        self.map([self.value.exp(); 3])
    }
    pub(super) fn ln(self) -> Self {
        let x = self.value;
        self.map([x.ln(), x.recip(), -(x * x).recip()])
    }
    pub(super) fn sin(self) -> Self {
        let (sin, cos) = self.value.sin_cos();
        self.map([sin, cos, -sin])
    }
    pub(super) fn cos(self) -> Self {
        let (sin, cos) = self.value.sin_cos();
        self.map([cos, -sin, -cos])
    }
    pub(super) fn atan(self) -> Self {
        let x = self.value;
        let slope = (1.0 + x * x).recip();
        self.map([x.atan(), slope, -2.0 * x * slope * slope])
    }
    pub(super) fn sqrt(self) -> Self {
        let root = self.value.sqrt();
        self.map([root, 0.5 / root, -0.25 / (root * self.value)])
    }
    pub(super) fn abs(self) -> Self {
        if self.value < 0.0 { -self } else { self }
    }
    /// A function of one variable, by its value and its first two derivatives.
    fn map(self, [value, first, second]: [f64; 3]) -> Self {
        let Self { tape, place, tangent, error, .. } = self;
        let edge = Edge { operand: place, partial: first, tangent: second * tangent };
        tape.push(value, first * tangent, first.abs() * error + value.abs(), [edge, Edge::default()])
    }
    /// A function of two variables, by its value, its partial derivatives and their derivatives along v.
    fn join(self, other: Self, value: f64, partials: [f64; 2], tangents: [f64; 2]) -> Self {
        let [a, b] = partials;
        let edges = [
            Edge { operand: self.place, partial: a, tangent: tangents[0] },
            Edge { operand: other.place, partial: b, tangent: tangents[1] },
        ];
        let error = a.abs() * self.error + b.abs() * other.error + value.abs();
        self.tape.push(value, a * self.tangent + b * other.tangent, error, edges)
    }
}

impl Neg for TapeNumber<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.map([-self.value, -1.0, 0.0])
    }
}

/// An operator: on two numbers by its partial derivatives and their derivatives along v, with a constant on the right or the
/// left by the first two derivatives.
macro_rules! operator {
    (
        $trait:ident, $name:ident, |$a:ident, $b:ident, $u:ident, $v:ident| $partials:expr, $tangents:expr,
        right: $right:expr, left: $left:expr
    ) => {
        impl $trait for TapeNumber<'_> {
            type Output = Self;
            fn $name(self, other: Self) -> Self {
                let ($a, $b, $u, $v) = (self.value, other.value, self.tangent, other.tangent);
                self.join(other, $a.$name($b), $partials, $tangents)
            }
        }
        impl $trait<f64> for TapeNumber<'_> {
            type Output = Self;
            fn $name(self, $b: f64) -> Self {
                let $a = self.value;
                let [first, second]: [f64; 2] = $right;
                self.map([$a.$name($b), first, second])
            }
        }
        impl<'t> $trait<TapeNumber<'t>> for f64 {
            type Output = TapeNumber<'t>;
            fn $name(self, other: TapeNumber<'t>) -> TapeNumber<'t> {
                let ($a, $b) = (self, other.value);
                let [first, second]: [f64; 2] = $left;
                other.map([$a.$name($b), first, second])
            }
        }
    };
}
operator!(Add, add, |a, b, _u, _v| [1.0, 1.0], [0.0, 0.0], right: [1.0, 0.0], left: [1.0, 0.0]);
operator!(Sub, sub, |a, b, _u, _v| [1.0, -1.0], [0.0, 0.0], right: [1.0, 0.0], left: [-1.0, 0.0]);
operator!(Mul, mul, |a, b, u, v| [b, a], [v, u], right: [b, 0.0], left: [a, 0.0]);
operator!(
    Div, div, |a, b, u, v| [b.recip(), -a / (b * b)], [-v / (b * b), (2.0 * a * v / b - u) / (b * b)],
    right: [b.recip(), 0.0], left: [-a / (b * b), 2.0 * a / (b * b * b)]
);
