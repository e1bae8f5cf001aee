//! A linear model.

use crate::terms::{ModelTerms, RowInputs};
use faer::{Accum, MatMut, MatRef, Par, linalg::matmul::matmul};
use pulp::NullaryFnOnce;
use strust::{
    objective::{Evaluation, Objective},
    sample::Sample,
};
use strust_data::loss::OutputLoss;

/// f(W, b) = (1/n) Σ uᵢ·loss(Wᵀaᵢ + b, yᵢ) + (λ/2)‖W‖². The intercepts b are not penalized.
///
/// The point has the layout of [`Weights`](crate::weights::Weights) with one layer. An evaluation divides W by the scales
/// of the inputs instead of dividing each row.
#[derive(Debug, Clone)]
pub(crate) struct LinearModel<'a, R> {
    terms: ModelTerms<'a, R>,
    /// The outputs of a piece, later their derivatives.
    z: Vec<f64>,
    /// The dense inputs of a piece.
    piece: Vec<f64>,
    /// W divided by the scales, if there are any.
    raw: Vec<f64>,
}

/// Rows of a piece. Their dense inputs fit into the cache.
pub(crate) const PIECE: usize = 64;
/// Rows of a mini-batch at most. The rows of longer passes follow each other.
const FEW: usize = 4096;

impl<'a, R: RowInputs> LinearModel<'a, R> {
    pub(crate) fn new(terms: ModelTerms<'a, R>) -> Self {
        let (d, k) = (terms.rows.inputs(), terms.outputs);
        Self {
            terms,
            z: vec![0.0; k * PIECE],
            piece: vec![0.0; terms.rows.dense_inputs() * PIECE],
            raw: vec![0.0; if terms.units.is_some() { d * k } else { 0 }],
        }
    }
    pub(crate) fn parameters(&self) -> usize {
        (self.terms.rows.inputs() + 1) * self.terms.outputs
    }

    fn evaluate(&mut self, x: &[f64], sample: &Sample, mut gradient: Option<&mut [f64]>) -> Evaluation {
        let Self { terms, z, piece, raw } = self;
        let (k, penalty) = (terms.outputs, terms.penalty);
        let (weights, bias) = x.split_at(terms.rows.inputs() * k);
        if let Some((_, scales)) = terms.units {
            raw.copy_from_slice(weights);
            divide_in_place(raw, k, scales);
        }
        if let Some(gradient) = gradient.as_deref_mut() {
            gradient.fill(0.0);
        }
        let raw = if terms.units.is_some() { raw } else { weights };
        let (share, mut sum) = (1.0 / sample.len() as f64, 0.0);
        let picked = sample.indices();
        let row = |term: usize, z: &mut [f64]| terms.add_loss(terms.index[term], z, share, &mut sum);
        pulp::Arch::new().dispatch(LinearPass {
            terms,
            picked,
            z,
            piece,
            raw,
            bias,
            row,
            out: gradient.as_deref_mut(),
        });
        let mut value = share * sum;
        if let Some(gradient) = gradient {
            if let Some((_, scales)) = terms.units {
                divide_in_place(gradient, k, scales);
            }
            gradient.iter_mut().zip(weights).for_each(|(g, w)| *g += penalty * w);
        }
        value += 0.5 * penalty * weights.iter().map(|w| w * w).sum::<f64>();
        match terms.loss {
            // The targets have the deviation 1.
            OutputLoss::Squares | OutputLoss::Huber(_) => Evaluation::of_squares(value, f64::EPSILON, 2.0),
            _ => Evaluation::new(value, f64::EPSILON),
        }
    }
}

/// Divides the `k` numbers of each input by its scale. Numbers after those of the inputs stay.
pub(crate) fn divide_in_place(numbers: &mut [f64], k: usize, scales: &[f64]) {
    for (numbers, scale) in numbers.chunks_exact_mut(k).zip(scales) {
        for number in numbers {
            *number /= scale;
        }
    }
}

/// One pass over some terms, compiled as one piece with the widest instructions of the machine. A struct, because a
/// closure cannot be marked `#[inline(always)]`.
///
/// `row` gets a term and its outputs Wᵀaᵢ + b, and replaces them by numbers rᵢ. Then Σ aᵢrᵢᵀ and Σ rᵢ are added to `out`.
pub(crate) struct LinearPass<'a, R, F> {
    pub(crate) terms: &'a ModelTerms<'a, R>,
    /// The positions of the terms.
    pub(crate) picked: &'a [usize],
    /// Space for the outputs of [`PIECE`] rows.
    pub(crate) z: &'a mut [f64],
    /// Space for the dense inputs of [`PIECE`] rows.
    pub(crate) piece: &'a mut [f64],
    /// W for inputs that were not divided by their scales.
    pub(crate) raw: &'a [f64],
    pub(crate) bias: &'a [f64],
    pub(crate) row: F,
    pub(crate) out: Option<&'a mut [f64]>,
}

impl<R: RowInputs, F: FnMut(usize, &mut [f64])> NullaryFnOnce for LinearPass<'_, R, F> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        let Self { terms, picked, z, piece, raw, bias, mut row, mut out } = self;
        let (k, dense) = (terms.outputs, terms.rows.dense_inputs());
        touch(terms, picked);
        for picked in picked.chunks(PIECE) {
            let z = &mut z[..k * picked.len()];
            z.chunks_exact_mut(k).for_each(|z| z.copy_from_slice(bias));
            let rows = &mut piece[..dense * picked.len()];
            if dense > 0 {
                for (row, &term) in rows.chunks_exact_mut(dense).zip(picked) {
                    terms.copy_shifted(terms.index[term], row);
                }
                if k == 1 {
                    z.iter_mut().zip(rows.chunks_exact(dense)).for_each(|(z, row)| *z += dot(row, raw));
                } else {
                    let (out, rows) = (MatMut::from_column_major_slice_mut(z, k, picked.len()), columns(rows, dense));
                    matmul(out, Accum::Add, columns(&raw[..dense * k], k), rows, 1.0, Par::Seq);
                }
            }
            if k == 1 {
                each_other(terms, picked, |term, j, v| z[term] += v * raw[j]);
            } else {
                each_other(terms, picked, |term, j, v| {
                    add(&mut z[term * k..(term + 1) * k], v, &raw[j * k..(j + 1) * k]);
                });
            }
            for (z, &term) in z.chunks_exact_mut(k).zip(picked) {
                row(term, z);
            }
            let Some(out) = out.as_deref_mut() else { continue };
            let (of_weights, of_bias) = out.split_at_mut(raw.len());
            if dense > 0 && k == 1 {
                for (z, row) in z.iter().zip(rows.chunks_exact(dense)) {
                    of_weights.iter_mut().zip(row).for_each(|(g, a)| *g += z * a);
                }
            } else if dense > 0 {
                let out = MatMut::from_column_major_slice_mut(&mut of_weights[..dense * k], k, dense);
                matmul(out, Accum::Add, columns(z, k), columns(rows, dense).transpose(), 1.0, Par::Seq);
            }
            if k == 1 {
                each_other(terms, picked, |term, j, v| of_weights[j] += v * z[term]);
            } else {
                each_other(terms, picked, |term, j, v| {
                    add(&mut of_weights[j * k..(j + 1) * k], v, &z[term * k..(term + 1) * k]);
                });
            }
            if terms.intercept {
                z.chunks_exact(k).for_each(|z| of_bias.iter_mut().zip(z).for_each(|(g, z)| *g += z));
            }
        }
    }
}

/// Numbers as columns of a given length.
pub(crate) fn columns(numbers: &[f64], length: usize) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(numbers, length, numbers.len() / length)
}

/// Calls `each` with the position of a row in the piece, an input that is not dense, and its value.
#[inline(always)]
fn each_other<R: RowInputs>(terms: &ModelTerms<'_, R>, picked: &[usize], mut each: impl FnMut(usize, usize, f64)) {
    for (position, &term) in picked.iter().enumerate() {
        terms.rows.for_each_other(terms.index[term], |j, value| each(position, j, value));
    }
}

/// Reads one number of each cache line of the rows. These reads do not depend on each other, so the machine waits for many
/// rows at once.
#[inline(always)]
fn touch<R: RowInputs>(terms: &ModelTerms<'_, R>, picked: &[usize]) {
    if picked.len() <= FEW {
        let rows = picked.iter().map(|&term| terms.index[term]);
        std::hint::black_box(rows.fold(0, |bits, i| bits ^ terms.goals[i].to_bits() ^ terms.rows.touch(i)));
    }
}

/// aᵀw with the first entries of w, in eight partial sums, in a fixed order.
#[inline(always)]
fn dot(a: &[f64], w: &[f64]) -> f64 {
    strust_data::numerics::dot(a, &w[..a.len()])
}

/// y ← y + a·x. Blocks of a fixed length suit the few classes of a row better than a loop of unknown length.
#[inline(always)]
fn add(y: &mut [f64], a: f64, x: &[f64]) {
    const LANES: usize = 4;
    let (y, y_rest) = y.as_chunks_mut::<LANES>();
    let (x, x_rest) = x.as_chunks::<LANES>();
    for (y, x) in y.iter_mut().zip(x) {
        for lane in 0..LANES {
            y[lane] += a * x[lane];
        }
    }
    y_rest.iter_mut().zip(x_rest).for_each(|(y, x)| *y += a * x);
}

impl<R: RowInputs> Objective for LinearModel<'_, R> {
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
