//! A network.

use crate::{
    Error,
    terms::{ModelTerms, RowInputs},
};
use faer::Mat;
use strust::{
    objective::{Evaluation, Objective},
    sample::Sample,
};
use strust_data::network::{Activation, DenseNetwork, ForwardPass};

/// Rows per piece when a loss is measured.
const PIECE: usize = 256;

/// f(x) = (1/n) Σ uᵢ·loss(z(aᵢ), yᵢ) + (λ/2)‖x‖², with the outputs z of a network with hidden layers max(0, Wa + b).
///
/// Only the rows of one mini-batch are copied, so sparse rows stay sparse.
#[derive(Debug, Clone)]
pub(crate) struct NetworkModel<'a, R> {
    network: DenseNetwork<f32>,
    terms: ModelTerms<'a, R>,
    batch: DenseBatch,
    z: Vec<f64>,
}

/// Rows as columns, each with a 1 below it.
#[derive(Debug, Clone)]
struct DenseBatch {
    columns: Mat<f32>,
    rows: Vec<usize>,
    /// The dense inputs of a row.
    dense: Vec<f64>,
}

impl DenseBatch {
    /// Both evaluations of a step have the same rows, so they are copied once.
    fn fill<R: RowInputs>(&mut self, terms: &ModelTerms<'_, R>, rows: impl Iterator<Item = usize> + Clone) {
        if self.rows.iter().copied().eq(rows.clone()) {
            return;
        }
        self.rows.clear();
        self.rows.extend(rows);
        let d = terms.rows.inputs();
        if self.columns.ncols() < self.rows.len() {
            self.columns = Mat::zeros(d + 1, self.rows.len());
        }
        let scaled = |j: usize, value: f64| terms.units.map_or(value, |(_, scale)| value / scale[j]) as f32;
        for (c, &i) in self.rows.iter().enumerate() {
            let column = self.columns.col_as_slice_mut(c);
            terms.copy_shifted(i, &mut self.dense);
            column.iter_mut().zip(&self.dense).enumerate().for_each(|(j, (out, &value))| *out = scaled(j, value));
            column[self.dense.len()..].fill(0.0);
            terms.rows.for_each_other(i, |j, value| column[j] += scaled(j, value));
            column[d] = 1.0;
        }
    }
}

impl<'a, R: RowInputs> NetworkModel<'a, R> {
    pub(crate) fn new(terms: ModelTerms<'a, R>, widths: &[usize]) -> Result<Self, Error> {
        let network = DenseNetwork::new("network", widths, Activation::Relu)?;
        let dense = vec![0.0; terms.rows.dense_inputs()];
        let batch = DenseBatch { columns: Mat::zeros(widths[0] + 1, 0), rows: Vec::new(), dense };
        Ok(Self { network, terms, batch, z: vec![0.0; terms.outputs] })
    }
    pub(crate) fn start(&self, seed: u64) -> Vec<f32> {
        self.network.start(seed)
    }

    /// The weighted mean loss of some rows, without the penalty; of fewer if it is interrupted.
    pub(crate) fn mean_loss(&mut self, x: &[f32], rows: &[usize], interrupted: &dyn Fn() -> bool) -> f64 {
        let Self { network, terms, batch, z } = self;
        let (mut sum, mut total) = (0.0, 0.0);
        for piece in rows.chunks(PIECE) {
            if interrupted() {
                break;
            }
            batch.fill(terms, piece.iter().copied());
            let pass = network.forward(x, &batch.columns, 0..piece.len());
            for (outputs, &i) in pass.outputs.chunks_exact(pass.width).zip(piece) {
                z.iter_mut().zip(outputs).for_each(|(z, &out)| *z = f64::from(out));
                terms.add_loss(i, z, 1.0, &mut sum);
                total += terms.weight(i);
            }
        }
        sum / total
    }

    fn evaluate(&mut self, x: &[f32], sample: &Sample, mut gradient: Option<&mut [f32]>) -> Evaluation {
        let Self { network, terms, batch, z } = self;
        let indices = sample.indices();
        batch.fill(terms, indices.iter().map(|&term| terms.index[term]));
        let share = 1.0 / indices.len() as f64;
        let head = |pass: ForwardPass<'_, f32>| {
            let mut sum = 0.0;
            for (outputs, &term) in pass.outputs.chunks_exact_mut(pass.width).zip(indices) {
                z.iter_mut().zip(&*outputs).for_each(|(z, &out)| *z = f64::from(out));
                terms.add_loss(terms.index[term], z, share, &mut sum);
                outputs.iter_mut().zip(&*z).for_each(|(out, &z)| *out = z as f32);
            }
            share * sum
        };
        let mut value = network.evaluate(x, &batch.columns, 0..indices.len(), head, gradient.as_deref_mut());
        let penalty = terms.penalty;
        value += 0.5 * penalty * x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
        gradient.into_iter().flatten().zip(x).for_each(|(g, x)| *g += penalty as f32 * x);
        Evaluation::new(value, f64::from(f32::EPSILON))
    }
}

impl<R: RowInputs> Objective for NetworkModel<'_, R> {
    type Point = Vec<f32>;
    fn terms(&self) -> usize {
        self.terms.index.len()
    }
    fn value(&mut self, x: &Vec<f32>, sample: &Sample) -> Evaluation {
        self.evaluate(x, sample, None)
    }
    fn value_and_gradient(&mut self, x: &Vec<f32>, sample: &Sample, gradient: &mut Vec<f32>) -> Evaluation {
        self.evaluate(x, sample, Some(gradient))
    }
}
