//! A constraint with scaled rows, together with the finite bounds.

use crate::{
    constraints::{Constraint, Sense},
    vector::Vector,
};
use std::cell::RefCell;

/// C = w∘c and A = w∘J at any point: first the rows of the constraint, then one row for each finite bound.
pub(super) struct ScaledRows<C: Constraint> {
    /// Its products need scratch space of their own.
    constraint: RefCell<(C, C::Residual)>,
    weights: Vec<f64>,
    pub senses: Vec<Sense>,
    /// The component of each finite bound, and −1 for a lower or +1 for an upper bound.
    pub bounds: Vec<(usize, f64)>,
}

/// Whether a row can be violated from both sides.
fn is_equal(sense: Sense) -> bool {
    sense == Sense::Equal
}

impl<C: Constraint> ScaledRows<C> {
    pub fn new(constraint: C, weights: &[f64]) -> Self {
        let senses = (0..weights.len()).map(|i| constraint.sense(i)).collect();
        let bounds = constraint.bounds().map_or_else(Vec::new, |bounds| bounds.finite().to_vec());
        let residual = constraint.new_residual();
        Self { constraint: RefCell::new((constraint, residual)), weights: weights.to_vec(), senses, bounds }
    }
    /// The number of rows and finite bounds.
    pub fn len(&self) -> usize {
        self.weights.len() + self.bounds.len()
    }
    /// x ← the nearest point within the bounds.
    pub fn clip(&self, x: &mut C::Point) {
        if let Some(bounds) = self.constraint.borrow().0.bounds() {
            bounds.clip(x);
        }
    }
    /// trial ← x + p within the bounds. Rounding must not move it away from a bound with a multiplier.
    pub fn set_trial(&self, x: &C::Point, p: &C::Point, y: &[f64], trial: &mut C::Point) {
        trial.set_sum(x, 1.0, p);
        if let Some(bounds) = self.constraint.borrow().0.bounds() {
            bounds.clip_to(&y[self.weights.len()..], trial);
        }
    }
    /// C(x).
    pub fn residual(&self, x: &C::Point) -> Vec<f64> {
        let (constraint, c) = &mut *self.constraint.borrow_mut();
        constraint.residual(x, c);
        let mut scaled = c.components();
        scaled.iter_mut().zip(&self.weights).for_each(|(c, weight)| *c *= weight);
        scaled.extend(constraint.bounds().into_iter().flat_map(|bounds| bounds.violations(x)));
        scaled
    }
    /// A(x)v.
    pub fn product(&self, x: &C::Point, v: &C::Point) -> Vec<f64> {
        let (constraint, c) = &mut *self.constraint.borrow_mut();
        constraint.jvp(x, v, c);
        let mut scaled = c.components();
        scaled.iter_mut().zip(&self.weights).for_each(|(c, weight)| *c *= weight);
        scaled.extend(self.bounds.iter().map(|&(i, side)| side * v.component(i)));
        scaled
    }
    /// out ← out + A(x)ᵀy.
    pub fn add_transposed(&self, x: &C::Point, y: &[f64], out: &mut C::Point) {
        let (constraint, c) = &mut *self.constraint.borrow_mut();
        let (rows, of_bounds) = y.split_at(self.weights.len());
        let scaled: Vec<f64> = rows.iter().zip(&self.weights).map(|(y, weight)| y * weight).collect();
        if scaled.iter().any(|&y| y != 0.0) {
            c.set_components(&scaled);
            constraint.add_vjp(x, 1.0, c, out);
        }
        for (&(i, side), &y) in self.bounds.iter().zip(of_bounds) {
            if y != 0.0 {
                out.set_component(i, out.component(i) + side * y);
            }
        }
    }
    /// out ← out + Σ yᵢ∇²Cᵢ(x)v over the rows; bounds have no curvature. A constraint without such products gets central
    /// differences of A(x)ᵀy, over a step that is short beside `length`.
    pub fn add_second_order_product(&self, x: &C::Point, y: &[f64], v: &C::Point, length: f64, out: &mut C::Point) {
        let (constraint, c) = &mut *self.constraint.borrow_mut();
        let scaled: Vec<f64> = y.iter().zip(&self.weights).map(|(y, weight)| y * weight).collect();
        if scaled.iter().all(|&y| y == 0.0) {
            return;
        }
        c.set_components(&scaled);
        let mut product = x.zeros_like();
        if !constraint.add_second_order_product(x, 1.0, c, v, &mut product) {
            product.set_zero();
            let h = C::Point::EPSILON.cbrt() * length / v.norm();
            let mut point = x.zeros_like();
            for side in [1.0, -1.0] {
                point.set_sum(x, side * h, v);
                constraint.add_vjp(&point, side / (2.0 * h), c, &mut product);
            }
        }
        out.add(1.0, &product);
    }
    /// The rounding error of C at a point where it is `c`.
    pub fn rounding(&self, x: &C::Point, c: &[f64]) -> f64 {
        let plain = c.iter().zip(&self.weights).map(|(c, weight)| (c / weight).powi(2)).sum::<f64>().sqrt();
        self.weights.iter().copied().fold(0.0, f64::max) * self.constraint.borrow().0.rounding(x, plain)
    }
    /// v(C).
    pub fn violation(&self, c: &[f64]) -> f64 {
        let one = |(c, sense): (&f64, &Sense)| if is_equal(*sense) { c.abs() } else { c.max(0.0) };
        c.iter().zip(&self.senses).map(one).sum()
    }
    /// The Euclidean norm of the violated rows.
    pub fn distance(&self, c: &[f64]) -> f64 {
        let one = |(c, sense): (&f64, &Sense)| if is_equal(*sense) { *c } else { c.max(0.0) };
        c.iter().zip(&self.senses).map(one).map(|c| c * c).sum::<f64>().sqrt()
    }
    /// Whether row i must be 0.
    pub fn is_equation(&self, i: usize) -> bool {
        self.senses.get(i).is_some_and(|sense| is_equal(*sense))
    }
    /// Σ|yᵢCᵢ| over inequalities and bounds.
    pub fn complementarity(&self, c: &[f64], y: &[f64]) -> f64 {
        (0..y.len()).filter(|&i| !self.is_equation(i)).map(|i| (y[i] * c[i]).abs()).sum()
    }
    /// The bounds of y for a penalty.
    pub fn limits(&self, penalty: f64) -> (Vec<f64>, Vec<f64>) {
        let lower = self.senses.iter().map(|sense| if is_equal(*sense) { -penalty } else { 0.0 });
        let upper = self.senses.iter().map(|_| penalty);
        let free = self.bounds.len();
        (
            lower.chain(std::iter::repeat_n(0.0, free)).collect(),
            upper.chain(std::iter::repeat_n(f64::INFINITY, free)).collect(),
        )
    }
    /// The multipliers of the scaled rows and of the finite bounds.
    pub fn join(&self, rows: &[f64], bounds: &C::Point) -> Vec<f64> {
        let scaled = rows.iter().zip(&self.weights).map(|(y, weight)| y / weight);
        let side = |&(i, side): &(usize, f64)| (side * bounds.component(i)).max(0.0);
        scaled.chain(self.bounds.iter().map(side)).collect()
    }
    /// The reverse of [`Self::join`].
    pub fn split(&self, y: &[f64], rows: &mut [f64], bounds: &mut C::Point) {
        for (i, (row, weight)) in rows.iter_mut().zip(&self.weights).enumerate() {
            *row = y[i] * weight;
        }
        if self.bounds.is_empty() {
            return;
        }
        bounds.set_zero();
        for (&(i, side), &y) in self.bounds.iter().zip(&y[rows.len()..]) {
            if y != 0.0 {
                bounds.set_component(i, bounds.component(i) + side * y);
            }
        }
    }
}
