//! A linear model of arrays.

use super::{rows::ArrayRows, terms::ArrayTerms};
use crate::{
    loss::OutputLoss,
    objectives::{add, dense_dot},
};
use faer::{Accum, MatMut, MatRef, Par, linalg::matmul::matmul};
use pulp::NullaryFnOnce;
use strust::{
    objective::{Evaluation, Objective},
    sample::Sample,
};

/// f(W, b) = (1/n) Σ uᵢ·loss(Wᵀaᵢ + b, yᵢ) + (λ/2)‖W‖². The intercepts b are not penalized.
///
/// The point has the layout of [`Weights`](crate::weights::Weights) with one layer. An evaluation divides W by the scales
/// of the inputs instead of dividing each row.
#[derive(Debug, Clone)]
pub(crate) struct ArrayLinear<'a> {
    terms: ArrayTerms<'a>,
    space: LinearSpace,
}

/// Rows of a dense piece. It fits into the cache.
const PIECE: usize = 64;

#[derive(Debug, Clone)]
struct LinearSpace {
    /// The outputs of a piece, later their derivatives.
    z: Vec<f64>,
    /// v − shift of a piece.
    piece: Vec<f64>,
    /// W divided by the scales.
    raw: Vec<f64>,
}

impl<'a> ArrayLinear<'a> {
    pub(crate) fn new(terms: ArrayTerms<'a>) -> Self {
        let (d, k) = (terms.rows.inputs(), terms.outputs);
        Self {
            terms,
            space: LinearSpace { z: vec![0.0; k * PIECE], piece: vec![0.0; d * pieces(&terms)], raw: vec![0.0; d * k] },
        }
    }
    pub(crate) fn parameters(&self) -> usize {
        (self.terms.rows.inputs() + 1) * self.terms.outputs
    }

    fn evaluate(&mut self, x: &[f64], sample: &Sample, mut gradient: Option<&mut [f64]>) -> Evaluation {
        let Self { terms, space } = self;
        let (k, penalty, scales) = (terms.outputs, terms.penalty, &terms.units.scale);
        let (weights, bias) = x.split_at(space.raw.len());
        for ((raw, w), scale) in space.raw.chunks_exact_mut(k).zip(weights.chunks_exact(k)).zip(scales) {
            raw.iter_mut().zip(w).for_each(|(raw, w)| *raw = w / scale);
        }
        if let Some(gradient) = gradient.as_deref_mut() {
            gradient.fill(0.0);
        }
        let pass = ArrayPass { terms, space, bias, sample, gradient: gradient.as_deref_mut() };
        let mut value = pulp::Arch::new().dispatch(pass);
        if let Some(gradient) = gradient {
            for ((g, w), scale) in gradient.chunks_exact_mut(k).zip(weights.chunks_exact(k)).zip(scales) {
                g.iter_mut().zip(w).for_each(|(g, w)| *g = *g / scale + penalty * w);
            }
        }
        value += 0.5 * penalty * weights.iter().map(|w| w * w).sum::<f64>();
        match terms.loss {
            // The targets have the deviation 1.
            OutputLoss::Squares => Evaluation::of_squares(value, f64::EPSILON, 2.0),
            _ => Evaluation::new(value, f64::EPSILON),
        }
    }
}

/// One evaluation without the penalty. The gradient is that of the weights of v − shift.
struct ArrayPass<'a> {
    terms: &'a ArrayTerms<'a>,
    space: &'a mut LinearSpace,
    bias: &'a [f64],
    sample: &'a Sample,
    gradient: Option<&'a mut [f64]>,
}

impl NullaryFnOnce for ArrayPass<'_> {
    type Output = f64;
    #[inline(always)]
    fn call(self) -> f64 {
        let Self { terms, space: LinearSpace { z, piece, raw }, bias, sample, mut gradient } = self;
        let (k, d, share) = (terms.outputs, terms.rows.inputs(), 1.0 / sample.len() as f64);
        touch(terms, sample);
        let mut sum = 0.0;
        for picked in sample.indices().chunks(PIECE) {
            let z = &mut z[..k * picked.len()];
            z.chunks_exact_mut(k).for_each(|z| z.copy_from_slice(bias));
            let dense = shifted(terms, picked, piece);
            match dense {
                Some(rows) if k == 1 => {
                    z.iter_mut().zip(rows.chunks_exact(d)).for_each(|(z, row)| *z += dense_dot(row, raw));
                }
                Some(rows) => {
                    let (out, rows) = (MatMut::from_column_major_slice_mut(z, k, picked.len()), columns(rows, d));
                    matmul(out, Accum::Add, columns(raw, k), rows, 1.0, Par::Seq);
                }
                None if k == 1 => each_stored(terms, picked, |term, j, v| z[term] += v * raw[j]),
                None => each_stored(terms, picked, |term, j, v| {
                    add(&mut z[term * k..(term + 1) * k], v, &raw[j * k..(j + 1) * k]);
                }),
            }
            for (z, &term) in z.chunks_exact_mut(k).zip(picked) {
                sum += terms.differentiate(terms.index[term], z);
            }
            let Some(gradient) = gradient.as_deref_mut() else { continue };
            for z in z.iter_mut() {
                *z *= share;
            }
            let (of_weights, of_bias) = gradient.split_at_mut(raw.len());
            match dense {
                Some(rows) if k == 1 => {
                    for (z, row) in z.iter().zip(rows.chunks_exact(d)) {
                        of_weights.iter_mut().zip(row).for_each(|(g, a)| *g += z * a);
                    }
                }
                Some(rows) => {
                    let out = MatMut::from_column_major_slice_mut(of_weights, k, d);
                    matmul(out, Accum::Add, columns(z, k), columns(rows, d).transpose(), 1.0, Par::Seq);
                }
                None if k == 1 => each_stored(terms, picked, |term, j, v| of_weights[j] += v * z[term]),
                None => each_stored(terms, picked, |term, j, v| {
                    add(&mut of_weights[j * k..(j + 1) * k], v, &z[term * k..(term + 1) * k]);
                }),
            }
            if terms.intercept {
                z.chunks_exact(k).for_each(|z| of_bias.iter_mut().zip(z).for_each(|(g, z)| *g += z));
            }
        }
        share * sum
    }
}

/// Rows of the dense space: none for sparse rows.
fn pieces(terms: &ArrayTerms<'_>) -> usize {
    if matches!(terms.rows, ArrayRows::Sparse(_)) { 0 } else { PIECE }
}

/// Numbers as columns of a given length.
fn columns(numbers: &[f64], length: usize) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(numbers, length, numbers.len() / length)
}

/// Calls `each` with the position of a row in the piece, an input and its value.
#[inline(always)]
fn each_stored(terms: &ArrayTerms<'_>, picked: &[usize], mut each: impl FnMut(usize, usize, f64)) {
    for (position, &term) in picked.iter().enumerate() {
        terms.rows.for_each(terms.index[term], |j, value| each(position, j, value));
    }
}

/// v − shift of some dense rows. The difference is taken before the product, so a large mean costs no digits.
#[inline(always)]
fn shifted<'a>(terms: &ArrayTerms<'_>, picked: &[usize], piece: &'a mut [f64]) -> Option<&'a [f64]> {
    let (d, shift) = (terms.rows.inputs(), &terms.units.shift);
    if matches!(terms.rows, ArrayRows::Sparse(_)) {
        return None;
    }
    let piece = &mut piece[..d * picked.len()];
    for (row, &term) in piece.chunks_exact_mut(d).zip(picked) {
        let (i, places) = (terms.index[term], row.iter_mut().zip(shift));
        match terms.rows {
            ArrayRows::Double(values, _) => {
                places.zip(&values[i * d..(i + 1) * d]).for_each(|((a, shift), value)| *a = value - shift);
            }
            ArrayRows::Single(values, _) => {
                places.zip(&values[i * d..(i + 1) * d]).for_each(|((a, shift), &value)| *a = f64::from(value) - shift);
            }
            ArrayRows::Sparse(_) => {}
        }
    }
    Some(piece)
}

/// Reads one number of each cache line of the dense rows. These reads do not depend on each other, so the machine waits for
/// many rows at once.
#[inline(always)]
fn touch(terms: &ArrayTerms<'_>, sample: &Sample) {
    if sample.len() == terms.index.len() {
        return;
    }
    let bits = sample.indices().iter().map(|&term| terms.index[term]).fold(0, |bits, i| match terms.rows {
        ArrayRows::Double(values, d) => {
            values[i * d..(i + 1) * d].iter().step_by(8).fold(bits, |bits, a| bits ^ a.to_bits())
        }
        ArrayRows::Single(values, d) => {
            values[i * d..(i + 1) * d].iter().step_by(16).fold(bits, |bits, a| bits ^ u64::from(a.to_bits()))
        }
        ArrayRows::Sparse(_) => bits,
    });
    std::hint::black_box(bits);
}

impl Objective for ArrayLinear<'_> {
    type Point = Vec<f64>;
    fn terms(&self) -> usize {
        self.terms.index.len()
    }
    fn value(&mut self, x: &Vec<f64>, sample: &Sample) -> Evaluation {
        self.evaluate(x, sample, None)
    }
    fn value_and_gradient(&mut self, x: &Vec<f64>, sample: &Sample, gradient: &mut Vec<f64>) -> Evaluation {
        self.evaluate(x, sample, Some(gradient))
    }
}
