//! A basis of vectors of which only the products are known.

use super::{KeptPairs, Local};
use crate::vector::Vector;

/// A column that is closer than this to the span of the others adds no dimension. Its distance comes from a difference of
/// squares, whose rounding error is ε.
const DEPENDENT: f64 = 1e-6;

/// An orthonormal basis of g and the columns of the pairs, by their products alone (Cholesky with pivoting, g first).
#[derive(Debug, Clone)]
pub(super) struct Basis {
    /// The columns that the space was made for.
    pub(super) most: usize,
    /// The products of the columns, each divided by its length.
    products: Vec<f64>,
    pub(super) lengths: Vec<f64>,
    /// Row i: the coordinates of column i, divided by its length.
    pub(super) coordinates: Vec<f64>,
    /// The square of the part of each column that the basis does not have.
    rest: Vec<f64>,
    /// The columns that the basis was made from.
    pub(super) pivots: Vec<usize>,
}

impl Basis {
    pub(super) fn new(most: usize) -> Self {
        let (table, list) = (|| vec![0.0; most * most], || vec![0.0; most]);
        Self {
            most,
            products: table(),
            lengths: list(),
            coordinates: table(),
            rest: list(),
            pivots: Vec::with_capacity(most),
        }
    }
    /// The basis of g and of all pairs.
    pub(super) fn build<V: Vector>(&mut self, pairs: KeptPairs<'_, V>, at: &Local<'_, V>) {
        let (most, n) = (self.most, 2 * pairs.len() + 1);
        self.lengths[0] = at.gradient_squared.sqrt();
        for i in 1..n {
            self.lengths[i] = pairs.product(i - 1, i - 1).sqrt();
            let product = pairs.column(i - 1).dot(at.gradient) / self.lengths[0] / self.lengths[i];
            self.products[i * most] = product;
            self.products[i] = product;
            for j in 1..i {
                let product = pairs.product(i - 1, j - 1) / self.lengths[i] / self.lengths[j];
                self.products[i * most + j] = product;
                self.products[j * most + i] = product;
            }
        }
        self.coordinates.fill(0.0);
        self.rest[..n].fill(1.0);
        self.pivots.clear();
        while self.pivots.len() < n {
            let largest = (0..n).max_by(|&i, &j| self.rest[i].total_cmp(&self.rest[j])).unwrap_or(0);
            let pivot = if self.pivots.is_empty() { 0 } else { largest };
            if self.rest[pivot] <= DEPENDENT * DEPENDENT {
                break;
            }
            self.add(pivot, n);
        }
    }
    /// Adds the part of a column that the basis does not have.
    fn add(&mut self, pivot: usize, n: usize) {
        let (most, k) = (self.most, self.pivots.len());
        let size = if k == 0 { 1.0 } else { self.rest[pivot].sqrt() };
        for i in 0..n {
            let known: f64 = (0..k).map(|j| self.coordinates[i * most + j] * self.coordinates[pivot * most + j]).sum();
            let new = match i {
                _ if i == pivot => size,
                // A pivot is in the span of the pivots until then.
                _ if self.pivots.contains(&i) => 0.0,
                0 => 0.0,
                _ if k == 0 => self.products[i * most],
                _ => (self.products[i * most + pivot] - known) / size,
            };
            self.coordinates[i * most + k] = new;
            self.rest[i] -= new * new;
        }
        self.rest[pivot] = 0.0;
        self.pivots.push(pivot);
    }
    /// direction ← the vector with the coordinates −z. Uses z as scratch space.
    pub(super) fn expand<V: Vector>(
        &self,
        pairs: KeptPairs<'_, V>,
        at: &Local<'_, V>,
        z: &mut [f64],
        direction: &mut V,
    ) {
        let n = self.pivots.len();
        direction.set_zero();
        // The pivots in terms of the basis are a lower triangle: solve with its transpose.
        for k in (0..n).rev() {
            let row = self.pivots[k] * self.most;
            let weight = z[k] / self.coordinates[row + k];
            (0..k).for_each(|j| z[j] -= weight * self.coordinates[row + j]);
            let column = if self.pivots[k] == 0 { at.gradient } else { pairs.column(self.pivots[k] - 1) };
            direction.add(-weight / self.lengths[self.pivots[k]], column);
        }
    }
}
