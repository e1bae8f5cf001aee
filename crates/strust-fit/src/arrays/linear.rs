//! A linear model of arrays.

use super::{rows::ArrayRows, terms::ArrayTerms};
use crate::{
    loss::OutputLoss,
    objectives::{add, add_dense_outputs, dense_dot},
};
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

#[derive(Debug, Clone)]
struct LinearSpace {
    /// The outputs of one row, later their derivatives.
    z: Vec<f64>,
    /// v − shift of one row.
    row: Vec<f64>,
    /// W divided by the scales.
    raw: Vec<f64>,
}

impl<'a> ArrayLinear<'a> {
    pub(crate) fn new(terms: ArrayTerms<'a>) -> Self {
        let (d, k) = (terms.rows.inputs(), terms.outputs);
        Self { terms, space: LinearSpace { z: vec![0.0; k], row: vec![0.0; d], raw: vec![0.0; d * k] } }
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
        let Self { terms, space: LinearSpace { z, row, raw }, bias, sample, mut gradient } = self;
        let (k, share) = (terms.outputs, 1.0 / sample.len() as f64);
        touch(terms, sample);
        let mut sum = 0.0;
        for &term in sample.indices() {
            let i = terms.index[term];
            let dense = shifted(terms, i, row);
            z.copy_from_slice(bias);
            match dense {
                Some(row) if k == 1 => z[0] += dense_dot(row, raw),
                Some(row) => add_dense_outputs(row, raw, z),
                None => terms.rows.for_each(i, |j, value| add(z, value, &raw[j * k..(j + 1) * k])),
            }
            sum += terms.differentiate(i, z);
            let Some(gradient) = gradient.as_deref_mut() else { continue };
            for z in z.iter_mut() {
                *z *= share;
            }
            let (of_weights, of_bias) = gradient.split_at_mut(raw.len());
            match dense {
                Some(row) if k == 1 => of_weights.iter_mut().zip(row).for_each(|(g, a)| *g += z[0] * a),
                Some(row) => row.iter().zip(of_weights.chunks_exact_mut(k)).for_each(|(&a, g)| add(g, a, z)),
                None => terms.rows.for_each(i, |j, value| add(&mut of_weights[j * k..(j + 1) * k], value, z)),
            }
            if terms.intercept {
                of_bias.iter_mut().zip(&*z).for_each(|(g, z)| *g += z);
            }
        }
        share * sum
    }
}

/// v − shift of a dense row. The difference is taken before the product, so a large mean costs no digits.
#[inline(always)]
fn shifted<'a>(terms: &ArrayTerms<'_>, i: usize, row: &'a mut [f64]) -> Option<&'a [f64]> {
    let d = row.len();
    let places = row.iter_mut().zip(&terms.units.shift);
    match terms.rows {
        ArrayRows::Double(values, _) => {
            places.zip(&values[i * d..(i + 1) * d]).for_each(|((a, shift), value)| *a = value - shift);
        }
        ArrayRows::Single(values, _) => {
            places.zip(&values[i * d..(i + 1) * d]).for_each(|((a, shift), &value)| *a = f64::from(value) - shift);
        }
        ArrayRows::Sparse(_) => return None,
    }
    Some(row)
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
