//! The matrix of second derivatives, of all rows or of some, and its inverse.

use super::{
    row_sum::{PARTS, RowSum, SumAt},
    thinned,
};
use crate::{
    Error,
    linear::columns,
    terms::{ModelTerms, RowInputs},
};
use faer::{
    Accum, Mat, Par, Side,
    linalg::{
        matmul::triangular::{BlockStructure, matmul},
        solvers::{Llt, Solve},
        triangular_solve::solve_upper_triangular_in_place,
    },
};
use std::ops::Range;
use strust_data::loss::OutputLoss;

/// Beyond this many inputs only the diagonal is computed: a factorization would cost more than the products it saves.
pub(super) const MOST_INPUTS: usize = 2000;
/// Beyond this many inputs there are no standard errors: they would cost as much as the fit.
pub(super) const MOST_ERRORS: usize = 600;
/// The matrix may cost as much as this many passes over the rows. With more inputs, it is that of fewer rows.
const PASSES: f64 = 4.0;
/// … but not of fewer rows than this for each input.
const ROWS_PER_INPUT: usize = 4;
/// Rows whose products are added at a time.
const PIECE: usize = 256;
/// Eigenvalues below this share of the largest are rounding errors.
const RANK: f64 = 1e-13;
/// With a penalty above this share of the diagonal, a Cholesky factorization loses few digits.
const SAFE: f64 = 1e-9;

/// What is computed of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatrixKind {
    /// Its diagonal.
    Diagonal,
    /// All of it, of as many rows as are worth their cost.
    OfSome,
    /// All of it, of all rows.
    OfAll,
}

/// The cost of a matrix of some rows and of its factorization, in products with H. The numbers are nanoseconds, measured
/// once on two cores; only their ratio counts.
pub(super) fn matrix_cost<R: RowInputs + Sync>(sum: &RowSum<'_, R>, count: f64) -> f64 {
    let terms = &sum.terms;
    let (d, k) = (terms.rows.inputs() as f64, terms.outputs as f64);
    if d > MOST_INPUTS as f64 {
        return f64::INFINITY;
    }
    let (dense, others) = (terms.rows.dense_inputs() as f64, sum.others);
    let product = count * (0.3 * dense * (1.0 + 0.3 * k) + 3.0 * others * k + 10.0 * k) + 2000.0;
    let rows = share(sum, count) * count * k * (0.03 * dense * dense + 0.3 * others * dense + 0.7 * others * others);
    (rows + k * (0.05 * d * d * d + 20.0 * d * d)) / product
}

/// The matrix by outputs: the part that belongs to one output, for each of them. For one output it is H.
pub(super) struct SecondDerivatives {
    parts: Vec<Part>,
    outputs: usize,
    /// Whether it is H of all rows.
    exact: bool,
}

/// The matrix of one output, divided by the roots of its diagonal on both sides.
struct Part {
    /// Without the penalty; empty if only the diagonal is known.
    loss: Mat<f64>,
    /// The penalty of each parameter.
    penalty: Vec<f64>,
    /// The roots of the diagonal.
    roots: Vec<f64>,
    inverse: InverseForm,
}

enum InverseForm {
    Cholesky(Llt<f64>),
    /// Eigenvectors, and the inverses of eigenvalues.
    Eigen(Mat<f64>, Vec<f64>),
    /// A multiple of the identity.
    Diagonal(f64),
}

impl SecondDerivatives {
    /// At a point that was measured; `None` if it was interrupted.
    pub(super) fn of<R: RowInputs + Sync>(
        sum: &RowSum<'_, R>,
        positions: &[usize],
        at: &SumAt,
        kind: MatrixKind,
    ) -> Result<Option<Self>, Error> {
        let terms = &sum.terms;
        let (d, k) = (terms.rows.inputs(), terms.outputs);
        let share = if kind == MatrixKind::OfSome { share(sum, at.count) } else { 1.0 };
        let picked = thinned(&(0..positions.len()).collect::<Vec<_>>(), share);
        let is_matrix = kind != MatrixKind::Diagonal;
        let each = |range: Range<usize>| {
            let picked = &picked[range];
            if is_matrix { grams(terms, positions, picked, at) } else { diagonals(terms, positions, picked, at) }
        };
        // To add up large matrices costs more than it saves.
        let parts = if is_matrix && d * k > 300 { 2 } else { PARTS };
        let Some(parts) = sum.in_parts(picked.len(), parts, 4 * d * k, each)? else { return Ok(None) };
        let total = parts.into_iter().reduce(|mut all, part| {
            super::add(&mut all, 1.0, &part);
            all
        });
        let size = (d + 1) * k * if is_matrix { d + 1 } else { 1 };
        let mut total = total.unwrap_or_else(|| vec![0.0; size]);
        total.push(picked.len() as f64);
        sum.ranks.add(&mut total)?;
        let count = total.pop().unwrap_or(1.0);
        let scales: Vec<f64> = match terms.units {
            Some((_, scales)) => scales.iter().copied().chain([1.0]).collect(),
            None => vec![1.0; d + 1],
        };
        let part = |numbers: &[f64]| Part::new(numbers, &scales, count, terms.penalty, terms.intercept);
        let parts = total.chunks_exact(size / k).map(part).collect();
        Ok(Some(Self { parts, outputs: k, exact: k == 1 && is_matrix && share > 0.5 }))
    }

    /// H plus `region` times its diagonal, for one output.
    pub(super) fn matrix(&self, region: f64) -> Mat<f64> {
        let Part { loss, penalty, roots, .. } = &self.parts[0];
        Mat::from_fn(roots.len(), roots.len(), |i, j| {
            let diagonal = if i == j { penalty[i] + region * roots[i] * roots[i] } else { 0.0 };
            loss[(i, j)] * roots[i] * roots[j] + diagonal
        })
    }

    /// M with MMᵀ = H⁻¹, and M⁻¹, for one output. Directions in which the rows say nothing have the curvature [`SAFE`].
    pub(super) fn inverse_root(&self) -> (Mat<f64>, Mat<f64>) {
        let matrix = self.matrix(SAFE);
        let size = matrix.nrows();
        let Ok(llt) = matrix.llt(Side::Lower) else {
            let roots = &self.parts[0].roots;
            let diagonal =
                |of: &dyn Fn(f64) -> f64| Mat::from_fn(size, size, |i, j| if i == j { of(roots[i]) } else { 0.0 });
            return (diagonal(&|root| 1.0 / root), diagonal(&|root| root));
        };
        let root = llt.L().transpose().to_owned();
        let mut inverse = Mat::identity(size, size);
        solve_upper_triangular_in_place(root.as_ref(), inverse.as_mut(), Par::Seq);
        (inverse, root)
    }

    /// Whether it is H, so that no products are needed.
    pub(super) fn is_exact(&self) -> bool {
        self.exact
    }
    pub(super) fn is_diagonal(&self) -> bool {
        self.parts[0].loss.nrows() == 0
    }

    /// Prepares the inverse of the matrix plus `region` times its diagonal.
    pub(super) fn factor(&mut self, region: f64) {
        self.parts.iter_mut().for_each(|part| part.factor(region));
    }

    /// The product of the inverse and a vector.
    pub(super) fn solve(&self, vector: &[f64]) -> Vec<f64> {
        let k = self.outputs;
        let mut out = vec![0.0; vector.len()];
        for (c, part) in self.parts.iter().enumerate() {
            let of_part: Vec<f64> = vector.iter().skip(c).step_by(k).copied().collect();
            let solved = part.solve(of_part);
            out.iter_mut().skip(c).step_by(k).zip(solved).for_each(|(out, solved)| *out = solved);
        }
        out
    }

    /// Adds the product of `region` times the diagonal and v.
    pub(super) fn add_region(&self, region: f64, v: &[f64], out: &mut [f64]) {
        if region > 0.0 {
            for ((out, v), root) in out.iter_mut().zip(v).zip(self.roots()) {
                *out += region * root * root * v;
            }
        }
    }

    /// The largest change of a parameter relative to the largest parameter, in units in which H has the diagonal 1.
    pub(super) fn moves(&self, x: &[f64], next: &[f64]) -> f64 {
        let largest = |v: &mut dyn Iterator<Item = f64>| {
            v.zip(self.roots()).map(|(v, root)| (v * root).abs()).fold(f64::MIN_POSITIVE, f64::max)
        };
        largest(&mut next.iter().zip(x).map(|(next, x)| next - x)) / largest(&mut next.iter().copied())
    }

    /// The root of the diagonal for each parameter of a point.
    pub(super) fn roots(&self) -> impl Iterator<Item = f64> {
        let k = self.outputs;
        (0..self.parts[0].roots.len() * k).map(move |j| self.parts[j % k].roots[j / k])
    }

    /// The standard errors of the parameters, if they are not too many: the roots of the diagonal of φH⁻¹H₀H⁻¹/n, where H₀
    /// is H without the penalty. φ is the variance of a residual for a regression, and 1 for classes.
    pub(super) fn errors<R: RowInputs + Sync>(
        &self,
        at: &SumAt,
        sum: &RowSum<'_, R>,
    ) -> Result<Option<Vec<f64>>, Error> {
        let part = &self.parts[0];
        let size = part.roots.len();
        if !self.exact || size > MOST_ERRORS || at.count <= size as f64 {
            return Ok(None);
        }
        let dispersion = match sum.terms.loss {
            OutputLoss::Logistic | OutputLoss::Softmax => 1.0,
            OutputLoss::Squares | OutputLoss::Huber(_) => {
                let mut bend = [at.second.iter().sum::<f64>()];
                sum.ranks.add(&mut bend)?;
                at.squares * at.count / bend[0] * at.count / (at.count - size as f64)
            }
        };
        let half = part.solve_matrix(&part.loss);
        let whole = part.solve_matrix(&half.transpose().to_owned());
        let error = |j: usize| (dispersion * whole[(j, j)].max(0.0) / at.count).sqrt() / part.roots[j];
        Ok(Some((0..size).map(error).collect()))
    }
}

/// The share of the rows that the matrix is made of. A product of two dense entries costs far less than reading one, and for
/// several outputs a pass is as fast as the matrix.
fn share<R: RowInputs>(sum: &RowSum<'_, R>, count: f64) -> f64 {
    let terms = &sum.terms;
    let (d, k) = (terms.rows.inputs() as f64, terms.outputs);
    let affordable = match terms.loss {
        // One matrix serves all steps.
        OutputLoss::Squares => 1.0,
        _ if k > 1 => PASSES * 4.0 / d,
        _ => PASSES * 64.0 / d,
    };
    affordable.max(ROWS_PER_INPUT as f64 * (d + 1.0) / count).min(1.0)
}

/// Σ hᵢaᵢaᵢᵀ over some positions for each output, upper triangles, with a last entry 1 of each row for the intercept.
fn grams<R: RowInputs>(terms: &ModelTerms<'_, R>, positions: &[usize], picked: &[usize], at: &SumAt) -> Vec<f64> {
    let (d, dense, k) = (terms.rows.inputs(), terms.rows.dense_inputs(), terms.outputs);
    let mut all: Vec<Mat<f64>> = (0..k).map(|_| Mat::zeros(d + 1, d + 1)).collect();
    let (mut rows, mut scaled) = (vec![0.0; dense * PIECE], vec![0.0; dense * PIECE]);
    let mut others = Vec::new();
    for picked in picked.chunks(PIECE) {
        let rows = &mut rows[..dense * picked.len()];
        for (p, &at_position) in picked.iter().enumerate() {
            terms.copy_shifted(terms.index[positions[at_position]], &mut rows[p * dense..(p + 1) * dense]);
        }
        for (c, gram) in all.iter_mut().enumerate() {
            let h = |at_position: usize| {
                let p = at.second[at_position * k + c];
                terms.weight(terms.index[positions[at_position]]) * if k > 1 { p * (1.0 - p) } else { p }
            };
            if dense > 0 {
                let scaled = &mut scaled[..rows.len()];
                for (p, &at_position) in picked.iter().enumerate() {
                    let (root, range) = (h(at_position).sqrt(), p * dense..(p + 1) * dense);
                    scaled[range.clone()].iter_mut().zip(&rows[range]).for_each(|(out, a)| *out = root * a);
                }
                let scaled = columns(scaled, dense);
                let out = gram.as_mut().submatrix_mut(0, 0, dense, dense);
                matmul(
                    out,
                    BlockStructure::TriangularUpper,
                    Accum::Add,
                    scaled,
                    BlockStructure::Rectangular,
                    scaled.transpose(),
                    BlockStructure::Rectangular,
                    1.0,
                    Par::Seq,
                );
            }
            for (p, &at_position) in picked.iter().enumerate() {
                others.clear();
                terms.rows.for_each_other(terms.index[positions[at_position]], |j, v| others.push((j, v)));
                if terms.intercept {
                    others.push((d, 1.0));
                }
                let (h, row) = (h(at_position), &rows[p * dense..(p + 1) * dense]);
                for (first, &(j, v)) in others.iter().enumerate() {
                    let column = gram.col_as_slice_mut(j);
                    column[..dense].iter_mut().zip(row).for_each(|(out, a)| *out += h * v * a);
                    column[j] += h * v * v;
                    let mut in_order = true;
                    for &(i, u) in &others[..first] {
                        if i < j {
                            column[i] += h * u * v;
                        } else {
                            in_order = false;
                        }
                    }
                    // A sparse row need not be in order, and the values of an entry that it has twice are added.
                    for &(i, u) in others[..first].iter().filter(|&&(i, _)| !in_order && i >= j) {
                        gram[(j, i)] += if i == j { 2.0 } else { 1.0 } * h * u * v;
                    }
                }
            }
        }
    }
    all.iter().flat_map(|gram| (0..=d).flat_map(|j| gram.col_as_slice(j).to_vec())).collect()
}

/// Σ hᵢaᵢ² over some positions for each output.
fn diagonals<R: RowInputs>(terms: &ModelTerms<'_, R>, positions: &[usize], picked: &[usize], at: &SumAt) -> Vec<f64> {
    let (d, dense, k) = (terms.rows.inputs(), terms.rows.dense_inputs(), terms.outputs);
    let (mut all, mut row) = (vec![0.0; (d + 1) * k], vec![0.0; dense]);
    for &at_position in picked {
        let i = terms.index[positions[at_position]];
        terms.copy_shifted(i, &mut row);
        for c in 0..k {
            let p = at.second[at_position * k + c];
            let h = terms.weight(i) * if k > 1 { p * (1.0 - p) } else { p };
            let all = &mut all[c * (d + 1)..][..=d];
            all.iter_mut().zip(&row).for_each(|(out, a)| *out += h * a * a);
            terms.rows.for_each_other(i, |j, v| all[j] += h * v * v);
            all[d] += h;
        }
    }
    all
}

impl Part {
    /// From sums over `count` rows: a matrix column by column, or a diagonal.
    fn new(sums: &[f64], scales: &[f64], count: f64, penalty: f64, intercept: bool) -> Self {
        let size = scales.len();
        let is_matrix = sums.len() > size;
        let entry = |i: usize, j: usize| {
            let (i, j) = (i.min(j), i.max(j));
            sums[if is_matrix { j * size + i } else { j }] / (count * scales[i] * scales[j])
        };
        let penalty: Vec<f64> = (0..size).map(|j| if j + 1 < size { penalty } else { 0.0 }).collect();
        let root = |j: usize| {
            let diagonal = entry(j, j) + penalty[j];
            // An input that is 0 in all rows, or no intercept.
            if diagonal > 0.0 && (intercept || j + 1 < size) { diagonal.sqrt() } else { 1.0 }
        };
        let roots: Vec<f64> = (0..size).map(root).collect();
        let loss =
            if is_matrix { Mat::from_fn(size, size, |i, j| entry(i, j) / (roots[i] * roots[j])) } else { Mat::new() };
        Self { loss, penalty, roots, inverse: InverseForm::Diagonal(1.0) }
    }

    fn factor(&mut self, region: f64) {
        if self.loss.nrows() == 0 {
            self.inverse = InverseForm::Diagonal(1.0 / (1.0 + region));
            return;
        }
        let size = self.roots.len();
        let penalty = |j: usize| self.penalty[j] / self.roots[j].powi(2) + region;
        let mut matrix = self.loss.clone();
        for j in 0..size {
            matrix[(j, j)] += penalty(j);
        }
        // The intercept has no penalty, but a diagonal far from 0.
        if (0..size - 1).all(|j| penalty(j) > SAFE)
            && let Ok(llt) = matrix.llt(Side::Lower)
        {
            self.inverse = InverseForm::Cholesky(llt);
            return;
        }
        self.inverse = match matrix.self_adjoint_eigen(Side::Lower) {
            Ok(eigen) => {
                let values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();
                let least = RANK * values.iter().fold(0.0_f64, |most, value| most.max(*value));
                // A direction in which the rows say nothing stays as it is.
                let inverse = values.iter().map(|&value| if value > least { 1.0 / value } else { 0.0 }).collect();
                InverseForm::Eigen(eigen.U().to_owned(), inverse)
            }
            Err(_) => InverseForm::Diagonal(1.0),
        };
    }

    fn solve(&self, mut vector: Vec<f64>) -> Vec<f64> {
        vector.iter_mut().zip(&self.roots).for_each(|(v, root)| *v /= root);
        let size = vector.len();
        let mut solved: Vec<f64> = match &self.inverse {
            InverseForm::Diagonal(inverse) => vector.iter().map(|v| v * inverse).collect(),
            _ => self.solve_matrix(&Mat::from_fn(size, 1, |j, _| vector[j])).col_as_slice(0).to_vec(),
        };
        solved.iter_mut().zip(&self.roots).for_each(|(v, root)| *v /= root);
        solved
    }

    /// The product of the inverse and a matrix, in units in which the diagonal is 1.
    fn solve_matrix(&self, matrix: &Mat<f64>) -> Mat<f64> {
        match &self.inverse {
            InverseForm::Cholesky(llt) => llt.solve(matrix),
            InverseForm::Eigen(vectors, inverse) => {
                let mut inner = vectors.transpose() * matrix;
                for j in 0..inner.ncols() {
                    inner.col_as_slice_mut(j).iter_mut().zip(inverse).for_each(|(v, inverse)| *v *= inverse);
                }
                vectors * inner
            }
            InverseForm::Diagonal(inverse) => faer::Scale(*inverse) * matrix,
        }
    }
}
