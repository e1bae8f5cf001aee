use super::{Constraint, Manifold, Retraction, Stiefel};
use crate::{
    Error,
    config::out_of_range,
    vector::{Real, Vector},
};
use faer::Mat;
use std::ops::Range;

/// A matrix W within a vector: `rows` × `columns` numbers from `start` on, column by column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The index of its first entry.
    pub start: usize,
    /// Rows of W.
    pub rows: usize,
    /// Columns of W.
    pub columns: usize,
}

/// Orthonormal matrices within a vector, such as the weights of a network's layers: WᵀW = I for a matrix with at least
/// as many rows as columns, and WWᵀ = I for the others. The other components of the vector are free.
///
/// c has the entries of WᵀW − I or WWᵀ − I of one matrix after the other.
///
/// ```
/// use strust::{constraints::{Frame, Frames, Manifold}, prelude::*};
/// // (x₁, x₂) is a unit vector, x₀ is free.
/// let mut frames = Frames::new(3, &[Frame { start: 1, rows: 2, columns: 1 }])?;
/// let mut x = vec![7.0_f64, 3.0, 4.0];
/// frames.restore(&mut x)?;
/// assert!(x[0] == 7.0 && (x[1] - 0.6).abs() < 1e-15 && (x[2] - 0.8).abs() < 1e-15);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Frames<T: Real = f64> {
    dimension: usize,
    parts: Vec<FramePart<T>>,
}

/// A matrix, its constraint and its scratch space. The matrix is transposed if it has more columns than rows.
#[derive(Debug, Clone)]
struct FramePart<T: Real> {
    frame: Frame,
    stiefel: Stiefel<T>,
    /// The first index of its equations.
    first_row: usize,
    point: Mat<T>,
    other: Mat<T>,
    residual: Mat<T>,
}

impl<T: Real> Frames<T> {
    /// The set for vectors with `dimension` components; the matrices must not overlap. Retracts by QR.
    pub fn new(dimension: usize, frames: &[Frame]) -> Result<Self, Error> {
        let mut ordered = frames.to_vec();
        ordered.sort_by_key(|frame| frame.start);
        let (mut end, mut first_row, mut parts) = (0, 0, Vec::new());
        for frame in ordered {
            let size = frame.rows.saturating_mul(frame.columns);
            if size == 0 || frame.start < end || frame.start.saturating_add(size) > dimension {
                let allowed = format!("not empty, within {dimension} components, and apart from the others");
                return Err(out_of_range("frames", "matrix", format!("{frame:?}"), allowed));
            }
            end = frame.start + size;
            let (d, k) = (frame.rows.max(frame.columns), frame.rows.min(frame.columns));
            let (point, other, residual) = (Mat::zeros(d, k), Mat::zeros(d, k), Mat::zeros(k, k));
            parts.push(FramePart { frame, stiefel: Stiefel::new(d, k)?, first_row, point, other, residual });
            first_row += k * k;
        }
        if parts.is_empty() {
            return Err(out_of_range("frames", "matrices", 0, "at least 1"));
        }
        Ok(Self { dimension, parts })
    }
    /// The same set with another retraction.
    #[must_use]
    pub fn with_retraction(mut self, retraction: Retraction) -> Self {
        for part in &mut self.parts {
            part.stiefel = part.stiefel.clone().with_retraction(retraction);
        }
        self
    }
}

impl Frame {
    /// The index in the vector of entry (i, j) of W, or of Wᵀ if W has more columns than rows.
    fn index(&self, i: usize, j: usize) -> usize {
        let (i, j) = if self.rows < self.columns { (j, i) } else { (i, j) };
        self.start + j * self.rows + i
    }
    fn read<T: Real>(&self, x: &[T], matrix: &mut Mat<T>) {
        for j in 0..matrix.ncols() {
            for i in 0..matrix.nrows() {
                matrix[(i, j)] = x[self.index(i, j)];
            }
        }
    }
    fn write<T: Real>(&self, matrix: &Mat<T>, x: &mut [T]) {
        for j in 0..matrix.ncols() {
            for i in 0..matrix.nrows() {
                x[self.index(i, j)] = matrix[(i, j)];
            }
        }
    }
}

impl<T: Real> FramePart<T> {
    fn equations(&self) -> Range<usize> {
        self.first_row..self.first_row + self.residual.ncols() * self.residual.ncols()
    }
    /// Copies the residual of this matrix to its place in c.
    fn write_residual(&self, c: &mut [T]) {
        let k = self.residual.ncols();
        for (j, column) in c[self.equations()].chunks_exact_mut(k).enumerate() {
            column.copy_from_slice(self.residual.col_as_slice(j));
        }
    }
    fn read_residual(&mut self, y: &[T]) {
        let k = self.residual.ncols();
        for (j, column) in y[self.equations()].chunks_exact(k).enumerate() {
            self.residual.col_as_slice_mut(j).copy_from_slice(column);
        }
    }
}

impl<T: Real> Constraint for Frames<T> {
    type Point = Vec<T>;
    type Residual = Vec<T>;
    fn new_residual(&self) -> Vec<T> {
        vec![T::default(); self.parts.last().map_or(0, |part| part.equations().end)]
    }
    fn residual(&mut self, x: &Vec<T>, c: &mut Vec<T>) {
        for part in &mut self.parts {
            part.frame.read(x, &mut part.point);
            part.stiefel.residual(&part.point, &mut part.residual);
            part.write_residual(c);
        }
    }
    fn jvp(&mut self, x: &Vec<T>, v: &Vec<T>, out: &mut Vec<T>) {
        for part in &mut self.parts {
            part.frame.read(x, &mut part.point);
            part.frame.read(v, &mut part.other);
            part.stiefel.jvp(&part.point, &part.other, &mut part.residual);
            part.write_residual(out);
        }
    }
    fn add_vjp(&mut self, x: &Vec<T>, a: f64, y: &Vec<T>, out: &mut Vec<T>) {
        for part in &mut self.parts {
            part.read_residual(y);
            part.frame.read(x, &mut part.point);
            part.frame.read(out, &mut part.other);
            part.stiefel.add_vjp(&part.point, a, &part.residual, &mut part.other);
            part.frame.write(&part.other, out);
        }
    }
    /// V(Y + Yᵀ) for each matrix.
    fn add_second_order_product(&mut self, _: &Vec<T>, a: f64, y: &Vec<T>, v: &Vec<T>, out: &mut Vec<T>) -> bool {
        self.add_vjp(v, a, y, out);
        true
    }
    /// At most the sum of all: each norm is at most the whole one.
    fn rounding(&self, _x: &Vec<T>, norm: f64) -> f64 {
        self.parts.iter().map(|part| part.stiefel.rounding(&part.point, norm)).sum()
    }
    fn redundant(&self) -> usize {
        self.parts.iter().map(|part| part.stiefel.redundant()).sum()
    }
    fn check_point(&self, x: &Vec<T>) -> Result<(), Error> {
        let (expected, found) = (vec![self.dimension], x.shape());
        if expected == found { Ok(()) } else { Err(Error::Shape { place: "frames, point", expected, found }) }
    }
}

impl<T: Real> Manifold for Frames<T> {
    fn project_tangent(&mut self, x: &Vec<T>, v: &mut Vec<T>) -> Result<(), Error> {
        for part in &mut self.parts {
            part.frame.read(x, &mut part.point);
            part.frame.read(v, &mut part.other);
            part.stiefel.project_tangent(&part.point, &mut part.other)?;
            part.frame.write(&part.other, v);
        }
        Ok(())
    }
    fn restore(&mut self, x: &mut Vec<T>) -> Result<(), Error> {
        for part in &mut self.parts {
            part.frame.read(x, &mut part.point);
            part.stiefel.restore(&mut part.point)?;
            part.frame.write(&part.point, x);
        }
        Ok(())
    }
}
