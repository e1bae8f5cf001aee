//! The curvature of the Lagrangian: limited-memory BFGS in its compact form, or BFGS with its matrix.

use super::{
    constants::{DAMPED, PAIRS, UNBOUNDED},
    dual::combined,
};
use crate::{models::CurvaturePair, vector::Vector};
use faer::{Mat, Side, linalg::solvers::PartialPivLu, prelude::Solve};

/// The entries of a matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Entries {
    pub(crate) entries: Mat<f64>,
}
crate::saved!([] Entries { entries: vector });

/// B = θI − U·N⁻¹·Uᵀ, or its entries, with U = [θS Y] and N = [[θSᵀS, L], [Lᵀ, −D]], where S has the steps, Y the changes of the
/// gradient, L is the strictly lower triangle of SᵀY and D its diagonal.
#[derive(Debug, Clone, PartialEq)]
pub struct LagrangianCurvature<V> {
    /// θ; the curvature in directions that no pair has seen.
    pub(crate) curvature: f64,
    /// (s, y), oldest first, with the changes y of the Lagrangian's gradient, so damped that sᵀy > 0.
    pub(crate) pairs: Vec<CurvaturePair<V>>,
    /// The products of all steps with each other, of all steps (rows) with all changes, and of all changes with each
    /// other.
    pub(crate) products: [Vec<Vec<f64>>; 3],
    /// B itself where x has few components. Then there are no pairs.
    pub(crate) matrix: Option<Entries>,
}
crate::saved!([V: Vector] LagrangianCurvature<V> { curvature, pairs, products, matrix });

impl<V: Vector> LagrangianCurvature<V> {
    pub(super) fn new(curvature: f64) -> Self {
        Self { curvature, pairs: Vec::new(), products: Default::default(), matrix: None }
    }
    /// The columns of U, as the vectors that they are multiples of.
    fn columns(&self) -> impl Iterator<Item = &V> {
        self.pairs.iter().map(|pair| &pair.step).chain(self.pairs.iter().map(|pair| &pair.change))
    }
    /// Uᵀv.
    pub(super) fn project(&self, v: &V) -> Vec<f64> {
        let scaled = |(i, column): (usize, &V)| {
            if i < self.pairs.len() { self.curvature * column.dot(v) } else { column.dot(v) }
        };
        self.columns().enumerate().map(scaled).collect()
    }
    /// Uᵀv for each of `rows` vectors v, given v ↦ their products with a column.
    pub(super) fn project_all(&self, rows: usize, product: impl Fn(&V) -> Vec<f64>) -> Vec<Vec<f64>> {
        let mut all = vec![Vec::with_capacity(2 * self.pairs.len()); rows];
        for (i, column) in self.columns().enumerate() {
            let scale = if i < self.pairs.len() { self.curvature } else { 1.0 };
            all.iter_mut().zip(product(column)).for_each(|(all, product)| all.push(scale * product));
        }
        all
    }
    /// v ← v + a·U·u.
    fn expand(&self, a: f64, u: &[f64], v: &mut V) {
        for (i, column) in self.columns().enumerate() {
            v.add(if i < self.pairs.len() { a * self.curvature * u[i] } else { a * u[i] }, column);
        }
    }
    /// N − UᵀU/τ; for τ = ∞ it is N.
    fn middle(&self, tau: f64) -> Mat<f64> {
        let (m, theta) = (self.pairs.len(), self.curvature);
        let [steps, mixed, changes] = &self.products;
        let gram = Mat::from_fn(2 * m, 2 * m, |i, j| match (i < m, j < m) {
            (true, true) => steps[i][j],
            (true, false) => mixed[i][j - m],
            (false, true) => mixed[j][i - m],
            (false, false) => changes[i - m][j - m],
        });
        let scale = |i: usize| if i < m { theta } else { 1.0 };
        Mat::from_fn(2 * m, 2 * m, |i, j| {
            let kept = match (i < m, j < m) {
                (true, true) => theta,
                (true, false) if i > j - m => 1.0,
                (false, true) if j > i - m => 1.0,
                (false, false) if i == j => return -gram[(i - m, j)] - gram[(i, j)] / tau,
                _ => 0.0,
            };
            (kept - scale(i) * scale(j) / tau) * gram[(i, j)]
        })
    }
    /// L of B + σI = LLᵀ, for a matrix B.
    pub(super) fn factor(&self, b: &Mat<f64>, sigma: f64) -> Mat<f64> {
        let shifted = Mat::from_fn(b.nrows(), b.nrows(), |i, j| b[(i, j)] + if i == j { sigma } else { 0.0 });
        shifted.llt(Side::Lower).map_or_else(
            |_| Mat::from_fn(b.nrows(), b.nrows(), |i, j| if i == j { (self.curvature + sigma).sqrt() } else { 0.0 }),
            |factor| factor.L().to_owned(),
        )
    }
    /// The inverse of B + σI.
    pub(super) fn inverse(&self, sigma: f64) -> Inverse<'_, V> {
        let tau = self.curvature + sigma;
        let factor = (!self.pairs.is_empty()).then(|| self.middle(tau).partial_piv_lu());
        Inverse { memory: self, tau, factor }
    }
    /// out ← B·v.
    fn multiply(&self, v: &V, out: &mut V) {
        if let Some(matrix) = &self.matrix {
            return out.set_components(&combined(&matrix.entries, &v.components()));
        }
        out.set_zero();
        out.add(self.curvature, v);
        if !self.pairs.is_empty() {
            let u = solve(&self.middle(f64::INFINITY).partial_piv_lu(), &self.project(v));
            self.expand(-1.0, &u, out);
        }
    }
    /// B as a matrix, for vectors like this one.
    pub(super) fn matrix(&self, like: &V) -> Mat<f64> {
        if let Some(matrix) = &self.matrix {
            return matrix.entries.clone();
        }
        let n = like.dimension();
        let (mut unit, mut column, mut matrix) = (like.zeros_like(), like.zeros_like(), Mat::zeros(n, n));
        for j in 0..n {
            unit.set_component(j, 1.0);
            self.multiply(&unit, &mut column);
            unit.set_component(j, 0.0);
            matrix.col_as_slice_mut(j).copy_from_slice(&column.components());
        }
        matrix
    }
    /// The step and the change with Powell's damping, and sᵀBs; `None` if B cannot use them.
    fn damped(&self, step: &V, mut change: V) -> Option<(V, V, f64)> {
        let mut product = step.zeros_like();
        self.multiply(step, &mut product);
        let (own, known) = (step.dot(&change), step.dot(&product));
        // A pair whose curvature is so negative says nothing that B could use.
        if !(own.is_finite() && known > 0.0) || own < -UNBOUNDED * known {
            return None;
        }
        if own < DAMPED * known {
            let share = (1.0 - DAMPED) * known / (known - own);
            change.scale_add(share, 1.0 - share, &product);
        }
        (step.dot(&change) > 0.0 && change.norm_squared().is_finite()).then_some((change, product, known))
    }
    /// B ← B − BssᵀB/sᵀBs + yyᵀ/sᵀy. The first pair sets the scale of B before.
    pub(super) fn learn_matrix(&mut self, step: &V, change: V) {
        if self.matrix.is_none() {
            if self.pairs.is_empty() {
                let Some((change, ..)) = self.damped(step, change.clone()) else { return };
                self.curvature = (change.norm_squared() / step.norm_squared()).sqrt();
            }
            self.matrix = Some(Entries { entries: self.matrix(step) });
            (self.pairs, self.products) = (Vec::new(), Default::default());
        }
        let Some((change, product, known)) = self.damped(step, change) else { return };
        let curved = step.dot(&change);
        let theta = (change.norm_squared() / step.norm_squared()).sqrt();
        let (y, bs) = (change.components(), product.components());
        let Some(Entries { entries: matrix }) = &mut self.matrix else { return };
        for j in 0..y.len() {
            let (from_y, from_bs) = (y[j] / curved, bs[j] / known);
            for (i, b) in matrix.col_as_slice_mut(j).iter_mut().enumerate() {
                *b += y[i] * from_y - bs[i] * from_bs;
            }
        }
        // Rounding must not leave a B that has no factor.
        if !matrix.is_all_finite() || matrix.llt(Side::Lower).is_err() {
            *self = Self::new(theta);
        } else {
            self.curvature = theta;
        }
    }
    /// Adds a pair.
    pub(super) fn learn(&mut self, step: V, change: V) {
        let length = step.norm_squared();
        let Some((change, ..)) = self.damped(&step, change) else { return };
        let curved = step.dot(&change);
        let theta = (change.norm_squared() / length).sqrt();
        if !theta.is_finite() {
            return;
        }
        self.curvature = theta;
        if self.pairs.len() == PAIRS {
            self.pairs.remove(0);
            for table in &mut self.products {
                table.remove(0);
                for row in table {
                    row.remove(0);
                }
            }
        }
        let [steps, mixed, changes] = &mut self.products;
        let with_steps = |v: &V| self.pairs.iter().map(|pair| pair.step.dot(v)).collect::<Vec<f64>>();
        let with_changes = |v: &V| self.pairs.iter().map(|pair| pair.change.dot(v)).collect::<Vec<f64>>();
        let (of_step, of_change) = (with_steps(&step), with_changes(&change));
        border(steps, of_step.clone(), of_step, length);
        border(mixed, with_changes(&step), with_steps(&change), curved);
        border(changes, of_change.clone(), of_change, change.norm_squared());
        self.pairs.push(CurvaturePair { step, change });
    }
}

/// Adds a last row, a last column and their corner to a square table.
fn border(table: &mut Vec<Vec<f64>>, mut row: Vec<f64>, column: Vec<f64>, corner: f64) {
    row.push(corner);
    table.iter_mut().zip(column).for_each(|(row, last)| row.push(last));
    table.push(row);
}

fn solve(factor: &PartialPivLu<f64>, right: &[f64]) -> Vec<f64> {
    let solved = factor.solve(Mat::from_fn(right.len(), 1, |i, _| right[i]));
    (0..right.len()).map(|i| solved[(i, 0)]).collect()
}

/// H = (B + σI)⁻¹ = I/τ + U·(N − UᵀU/τ)⁻¹·Uᵀ/τ² with τ = θ + σ.
#[derive(Debug)]
pub(super) struct Inverse<'a, V> {
    memory: &'a LagrangianCurvature<V>,
    tau: f64,
    factor: Option<PartialPivLu<f64>>,
}

impl<V: Vector> Inverse<'_, V> {
    /// (N − UᵀU/τ)⁻¹·Uᵀw/τ from Uᵀw, for [`Self::product`].
    pub fn weigh(&self, w: &[f64]) -> Vec<f64> {
        let solved = self.factor.as_ref().map_or_else(Vec::new, |factor| solve(factor, w));
        solved.into_iter().map(|w| w / self.tau).collect()
    }
    /// vᵀHw from vᵀw, Uᵀv and the weighed Uᵀw.
    pub fn product(&self, plain: f64, v: &[f64], weighed: &[f64]) -> f64 {
        (plain + v.iter().zip(weighed).map(|(v, w)| v * w).sum::<f64>()) / self.tau
    }
    /// v ← −H·v, from Uᵀv.
    pub fn apply_negative(&self, seen: &[f64], v: &mut V) {
        v.scale(-self.tau.recip());
        if self.factor.is_some() {
            self.memory.expand(-self.tau.recip(), &self.weigh(seen), v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dense BFGS update, from the same start.
    fn dense(theta: f64, pairs: &[CurvaturePair<Vec<f64>>]) -> Mat<f64> {
        let n = pairs[0].step.len();
        let mut b = Mat::from_fn(n, n, |i, j| if i == j { theta } else { 0.0 });
        for CurvaturePair { step: s, change: y } in pairs {
            let bs: Vec<f64> = (0..n).map(|i| (0..n).map(|j| b[(i, j)] * s[j]).sum()).collect();
            let (sbs, sy) = (s.dot(&bs), s.dot(y));
            b = Mat::from_fn(n, n, |i, j| b[(i, j)] - bs[i] * bs[j] / sbs + y[i] * y[j] / sy);
        }
        b
    }

    #[test]
    fn it_is_the_bfgs_matrix_and_its_inverse() {
        let mut memory = LagrangianCurvature::new(2.0);
        let hessian = [3.0, 1.0, 0.5, 7.0];
        for k in 0..4 {
            let s: Vec<f64> = (0..4).map(|i| f64::from(i * k + i + k).sin() + 0.3).collect();
            let y = (0..4).map(|i| hessian[i] * s[i]).collect();
            memory.learn(s, y);
        }
        assert_eq!(memory.pairs.len(), 4);
        let expected = dense(memory.curvature, &memory.pairs);
        let v = vec![0.2, -1.0, 0.7, 0.4];
        let mut product = v.zeros_like();
        memory.multiply(&v, &mut product);
        for i in 0..4 {
            let row: f64 = (0..4).map(|j| expected[(i, j)] * v[j]).sum();
            assert!((product[i] - row).abs() < 1e-9, "{product:?}");
        }
        // H(B + σI)v = v
        let inverse = memory.inverse(0.5);
        product.add(0.5, &v);
        let weighed = inverse.weigh(&memory.project(&v));
        let through = inverse.product(product.dot(&v), &memory.project(&product), &weighed);
        assert!((through - v.norm_squared()).abs() < 1e-9);
        inverse.apply_negative(&memory.project(&product), &mut product);
        for i in 0..4 {
            assert!((product[i] + v[i]).abs() < 1e-9, "{product:?}");
        }
    }

    #[test]
    fn negative_curvature_is_damped() {
        let mut memory = LagrangianCurvature::new(1.0);
        memory.learn(vec![1.0, 0.0], vec![-3.0, 1.0]);
        let CurvaturePair { step, change } = &memory.pairs[0];
        assert!((step.dot(change) - DAMPED).abs() < 1e-12);
    }

    #[test]
    fn the_matrix_is_that_of_all_pairs() {
        let mut memory = LagrangianCurvature::new(2.0);
        let mut pairs = Vec::new();
        for k in 0..6 {
            let step: Vec<f64> = (0..4).map(|i| f64::from(i * k + i + k).sin() + 0.3).collect();
            let change: Vec<f64> = step.iter().enumerate().map(|(i, s)| [3.0, 1.0, 0.5, 7.0][i] * s).collect();
            memory.learn_matrix(&step, change.clone());
            pairs.push(CurvaturePair { step, change });
        }
        // The first pair sets the scale.
        let theta = pairs[0].change.norm() / pairs[0].step.norm();
        let (found, expected) = (memory.matrix(&pairs[0].step), dense(theta, &pairs));
        assert!((found - expected).norm_max() < 1e-12);
        assert!(memory.pairs.is_empty());
    }

    #[test]
    fn pairs_become_a_matrix() {
        let mut memory = LagrangianCurvature::new(2.0);
        let pair = CurvaturePair { step: vec![1.0, 0.5], change: vec![2.0, 3.0] };
        memory.learn(pair.step.clone(), pair.change.clone());
        let expected = dense(memory.curvature, &[pair]);
        assert!((memory.matrix(&vec![0.0; 2]) - expected).norm_max() < 1e-12);
        let (step, change) = (vec![0.5, -1.0], vec![0.5, -4.0]);
        memory.learn_matrix(&step, change.clone());
        let mut product = vec![0.0; 2];
        memory.multiply(&step, &mut product);
        assert!(memory.pairs.is_empty() && (0..2).all(|i| (product[i] - change[i]).abs() < 1e-12), "{product:?}");
    }

    #[test]
    fn the_matrix_always_has_a_factor() {
        let mut memory = LagrangianCurvature::new(1.0);
        for k in 0..60 {
            // Curvatures over forty decades, negative ones, and numbers that are not finite.
            let size = 10.0_f64.powi((k * 7) % 41 - 20);
            let step: Vec<f64> = (0..3).map(|i| f64::from(i * k + i + 1).sin()).collect();
            let sign = if k % 5 == 0 { -1.0 } else { 1.0 };
            let mut change: Vec<f64> = step.iter().map(|s| sign * size * s + 0.1 * size).collect();
            if k % 11 == 0 {
                change[1] = if k % 2 == 0 { f64::NAN } else { f64::INFINITY };
            }
            memory.learn_matrix(&step, change);
            let b = memory.matrix(&step);
            for sigma in [0.0, 1.0, 1e20] {
                let factor = memory.factor(&b, sigma);
                assert!((0..3).all(|i| factor[(i, i)] > 0.0 && factor[(i, i)].is_finite()), "after {k}: {factor:?}");
            }
        }
        // Without a factor of its own, the scale alone is used.
        let indefinite = Mat::from_fn(3, 3, |i, j| if i == j { -1.0 } else { 0.0 });
        let factor = memory.factor(&indefinite, 0.0);
        assert!((factor[(1, 1)] - memory.curvature.sqrt()).abs() <= 1e-12 * factor[(1, 1)]);
    }
}
