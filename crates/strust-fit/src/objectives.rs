//! The functions to minimize: the mean loss of a linear model, and of a network.

use crate::{encoded::EncodedRows, loss::OutputLoss};
use faer::Mat;
use pulp::NullaryFnOnce;
use strust::{
    Error,
    objective::{Evaluation, Objective},
    sample::Sample,
};
use strust_data::network::{Activation, DenseNetwork, ForwardPass};

/// What a model is trained on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrainingRows<'a> {
    pub(crate) rows: &'a EncodedRows,
    /// The rows of the file that are terms of the sum.
    pub(crate) terms: &'a [usize],
    /// Those of this rank, by their places in `rows`.
    pub(crate) index: &'a [usize],
    /// The target of each of `rows`: a class, or a standardized number.
    pub(crate) goals: &'a [f64],
    pub(crate) loss: OutputLoss,
    pub(crate) outputs: usize,
    /// λ.
    pub(crate) penalty: f64,
    pub(crate) intercept: bool,
}

/// f(W, b) = (1/n) Σ loss(Wᵀaᵢ + b, yᵢ) + (λ/2)‖W‖². The intercepts b are not penalized.
///
/// The point has the layout of [`Weights`](crate::weights::Weights) with one layer.
#[derive(Debug, Clone)]
pub(crate) struct LinearModel<'a> {
    data: TrainingRows<'a>,
    /// The outputs of one row, later their derivatives.
    z: Vec<f64>,
}

impl<'a> LinearModel<'a> {
    pub(crate) fn new(data: TrainingRows<'a>) -> Self {
        Self { data, z: vec![0.0; data.outputs] }
    }
    pub(crate) fn parameters(&self) -> usize {
        (self.data.rows.inputs() + 1) * self.data.outputs
    }

    fn evaluate(&mut self, x: &[f64], sample: &Sample, mut gradient: Option<&mut Vec<f64>>) -> Evaluation {
        if let Some(gradient) = gradient.as_deref_mut() {
            gradient.fill(0.0);
        }
        let Self { data, z } = self;
        let value =
            pulp::Arch::new().dispatch(LinearPass { data, z, x, sample, gradient: gradient.map(Vec::as_mut_slice) });
        match data.loss {
            // The targets have the deviation 1.
            OutputLoss::Squares => Evaluation::of_squares(value, f64::EPSILON, 2.0),
            _ => Evaluation::new(value, f64::EPSILON),
        }
    }
}

/// One evaluation, compiled as one piece with the widest instructions of the machine. A struct, because a closure cannot
/// be marked `#[inline(always)]`.
struct LinearPass<'a> {
    data: &'a TrainingRows<'a>,
    z: &'a mut [f64],
    x: &'a [f64],
    sample: &'a Sample,
    gradient: Option<&'a mut [f64]>,
}

impl NullaryFnOnce for LinearPass<'_> {
    type Output = f64;
    #[inline(always)]
    fn call(self) -> f64 {
        let Self { data, z, x, sample, mut gradient } = self;
        let TrainingRows { rows, index, goals, loss, outputs, penalty, intercept, .. } = *data;
        let (weights, bias) = x.split_at(rows.inputs() * outputs);
        let scale = 1.0 / sample.len() as f64;
        touch(data, sample);
        let mut sum = 0.0;
        for &term in sample.indices() {
            let i = index[term];
            z.copy_from_slice(bias);
            if outputs == 1 {
                z[0] += dot(rows, i, weights);
            } else {
                add_outputs(rows, i, weights, z);
            }
            sum += loss.differentiate(z, goals[i]);
            if let Some(gradient) = gradient.as_deref_mut() {
                for z in z.iter_mut() {
                    *z *= scale;
                }
                let (of_weights, of_bias) = gradient.split_at_mut(rows.inputs() * outputs);
                if outputs == 1 {
                    add_row(rows, i, z[0], of_weights);
                } else {
                    add_products(rows, i, z, of_weights);
                }
                if intercept {
                    of_bias.iter_mut().zip(&*z).for_each(|(g, z)| *g += z);
                }
            }
        }
        if penalty == 0.0 {
            return scale * sum;
        }
        if let Some(gradient) = gradient {
            gradient.iter_mut().zip(weights).for_each(|(g, w)| *g += penalty * w);
        }
        scale * sum + 0.5 * penalty * weights.iter().map(|w| w * w).sum::<f64>()
    }
}

/// Reads one number of each cache line of the rows. These reads do not depend on each other, so the machine waits for many
/// rows at once; the products would wait for one row after the other.
#[inline(always)]
fn touch(data: &TrainingRows<'_>, sample: &Sample) {
    const LINE: usize = 64 / size_of::<f32>();
    let mut bits = 0;
    for &term in sample.indices() {
        let i = data.index[term];
        bits ^= data.goals[i].to_bits();
        bits ^= data.rows.dense(i).iter().step_by(LINE).fold(0, |bits, a| bits ^ u64::from(a.to_bits()));
        bits ^= data.rows.hot(i).first().map_or(0, |&j| u64::from(j));
    }
    std::hint::black_box(bits);
}

/// aᵢᵀw.
#[inline(always)]
fn dot(rows: &EncodedRows, i: usize, w: &[f64]) -> f64 {
    let mut sum = dense_dot(rows.dense(i), w);
    sum += rows.hot(i).iter().filter(|&&j| j != crate::encoded::NONE).map(|&j| w[j as usize]).sum::<f64>();
    if let Some((csr, first)) = &rows.sparse {
        let (indices, values) = csr.row(i);
        sum += indices.iter().zip(values).map(|(&j, &v)| v * w[first + j as usize]).sum::<f64>();
    }
    sum
}

/// aᵀw with the first entries of w, in eight partial sums, in a fixed order.
#[inline(always)]
pub(crate) fn dense_dot<T: Copy + Into<f64>>(a: &[T], w: &[f64]) -> f64 {
    const LANES: usize = 8;
    let (b, b_rest) = w[..a.len()].as_chunks::<LANES>();
    let (a, a_rest) = a.as_chunks::<LANES>();
    let mut sums = [0.0_f64; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane].into() * b[lane];
        }
    }
    let sum = sums.iter().sum::<f64>();
    sum + a_rest.iter().zip(b_rest).map(|(&a, &b)| a.into() * b).sum::<f64>()
}

/// g ← g + s·aᵢ.
#[inline(always)]
fn add_row(rows: &EncodedRows, i: usize, s: f64, g: &mut [f64]) {
    g.iter_mut().zip(rows.dense(i)).for_each(|(g, &a)| *g += s * f64::from(a));
    rows.hot(i).iter().filter(|&&j| j != crate::encoded::NONE).for_each(|&j| g[j as usize] += s);
    if let Some((csr, first)) = &rows.sparse {
        let (indices, values) = csr.row(i);
        indices.iter().zip(values).for_each(|(&j, &v)| g[first + j as usize] += s * v);
    }
}

/// z ← z + Wᵀaᵢ.
#[inline(always)]
fn add_outputs(rows: &EncodedRows, i: usize, weights: &[f64], z: &mut [f64]) {
    let k = z.len();
    add_dense_outputs(rows.dense(i), weights, z);
    rows.for_each_other(i, |j, value| add(z, value, &weights[j * k..(j + 1) * k]));
}

/// z ← z + Wᵀa. The sums stay in registers, in blocks of outputs.
#[inline(always)]
fn add_dense_outputs<T: Copy + Into<f64>>(dense: &[T], weights: &[f64], z: &mut [f64]) {
    let k = z.len();
    let mut at = 0;
    while at + 8 <= k {
        add_block::<8, T>(dense, weights, k, at, z);
        at += 8;
    }
    while at + 2 <= k {
        add_block::<2, T>(dense, weights, k, at, z);
        at += 2;
    }
    if at < k {
        add_block::<1, T>(dense, weights, k, at, z);
    }
}

/// The products of the dense part with the outputs `at..at + B` of k. Even and odd inputs have sums of their own, so that an
/// addition need not wait for the one before.
#[inline(always)]
fn add_block<const B: usize, T: Copy + Into<f64>>(dense: &[T], weights: &[f64], k: usize, at: usize, z: &mut [f64]) {
    let mut sums = [[0.0; B]; 2];
    let mut start = at;
    for (j, &a) in dense.iter().enumerate() {
        let (sum, w) = (&mut sums[j % 2], &weights[start..start + B]);
        for lane in 0..B {
            sum[lane] += a.into() * w[lane];
        }
        start += k;
    }
    for lane in 0..B {
        z[at + lane] += sums[0][lane] + sums[1][lane];
    }
}

/// G ← G + aᵢzᵀ.
#[inline(always)]
fn add_products(rows: &EncodedRows, i: usize, z: &[f64], gradient: &mut [f64]) {
    let k = z.len();
    rows.for_each(i, |j, value| add(&mut gradient[j * k..(j + 1) * k], value, z));
}

/// y ← y + a·x. Blocks of a fixed length suit the few classes of a row better than a loop of unknown length.
#[inline(always)]
pub(crate) fn add(y: &mut [f64], a: f64, x: &[f64]) {
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

impl Objective for LinearModel<'_> {
    type Point = Vec<f64>;
    fn terms(&self) -> usize {
        self.data.index.len()
    }
    fn value(&mut self, x: &Vec<f64>, sample: &Sample) -> Evaluation {
        self.evaluate(x, sample, None)
    }
    fn value_and_gradient(&mut self, x: &Vec<f64>, sample: &Sample, gradient: &mut Vec<f64>) -> Evaluation {
        self.evaluate(x, sample, Some(gradient))
    }
}

/// f(x) = (1/n) Σ loss(z(aᵢ), yᵢ) + (λ/2)‖x‖², with the outputs z of a network with hidden layers max(0, Wa + b).
#[derive(Debug, Clone)]
pub(crate) struct NetworkModel<'a> {
    network: DenseNetwork<f32>,
    /// Each row is a column with a 1 below it.
    columns: Mat<f32>,
    data: TrainingRows<'a>,
    z: Vec<f64>,
}

impl<'a> NetworkModel<'a> {
    pub(crate) fn new(data: TrainingRows<'a>, widths: &[usize]) -> Result<Self, Error> {
        let network = DenseNetwork::new("network", widths, Activation::Relu)?;
        let inputs = data.rows.inputs();
        let mut columns = Mat::zeros(inputs + 1, data.index.len());
        for (term, &i) in data.index.iter().enumerate() {
            let column = columns.col_as_slice_mut(term);
            data.rows.for_each(i, |j, value| column[j] = value as f32);
            column[inputs] = 1.0;
        }
        Ok(Self { network, columns, data, z: vec![0.0; data.outputs] })
    }
    pub(crate) fn start(&self, seed: u64) -> Vec<f32> {
        self.network.start(seed)
    }

    fn evaluate(&mut self, x: &[f32], sample: &Sample, mut gradient: Option<&mut [f32]>) -> Evaluation {
        let Self { network, columns, data: TrainingRows { index, goals, loss, penalty, .. }, z } = self;
        let terms = sample.indices();
        let weight = 1.0 / terms.len() as f64;
        let head = |pass: ForwardPass<'_, f32>| {
            let mut sum = 0.0;
            for (outputs, &term) in pass.outputs.chunks_exact_mut(pass.width).zip(terms) {
                z.iter_mut().zip(&*outputs).for_each(|(z, &out)| *z = f64::from(out));
                sum += loss.differentiate(z, goals[index[term]]);
                outputs.iter_mut().zip(&*z).for_each(|(out, z)| *out = (weight * z) as f32);
            }
            weight * sum
        };
        let mut value = network.evaluate(x, columns, terms.iter().copied(), head, gradient.as_deref_mut());
        if *penalty > 0.0 {
            value += 0.5 * *penalty * x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
            let shrink = *penalty as f32;
            gradient.into_iter().flatten().zip(x).for_each(|(g, x)| *g += shrink * x);
        }
        Evaluation::new(value, f64::from(f32::EPSILON))
    }
}

impl Objective for NetworkModel<'_> {
    type Point = Vec<f32>;
    fn terms(&self) -> usize {
        self.data.index.len()
    }
    fn value(&mut self, x: &Vec<f32>, sample: &Sample) -> Evaluation {
        self.evaluate(x, sample, None)
    }
    fn value_and_gradient(&mut self, x: &Vec<f32>, sample: &Sample, gradient: &mut Vec<f32>) -> Evaluation {
        self.evaluate(x, sample, Some(gradient))
    }
}
