//! The last layer of a network, as a linear model of its last hidden layer.

use crate::{
    Error,
    encoded::EncodedRows,
    ranks::Ranks,
    terms::{ModelTerms, RowInputs},
    weights::{LayerSpace, Weights},
};

/// The activations of the last hidden layer: one row for each term of a network.
pub(crate) struct HiddenRows {
    width: usize,
    flat: Vec<f64>,
    index: Vec<usize>,
    goals: Vec<f64>,
}

impl HiddenRows {
    /// Of the terms of a network; [`Error::Interrupted`] if a rank stops.
    pub(crate) fn new(
        weights: &Weights,
        terms: &ModelTerms<'_, EncodedRows>,
        ranks: &Ranks<'_>,
    ) -> Result<Self, Error> {
        let width = weights.widths[weights.widths.len() - 2];
        let (mut space, mut flat) = (LayerSpace::default(), Vec::with_capacity(terms.index.len() * width));
        for &i in terms.index.iter().take_while(|_| !ranks.is_interrupted()) {
            flat.extend_from_slice(weights.hidden(terms.rows, i, &mut space));
        }
        ranks.proceed()?;
        let goals = terms.index.iter().map(|&i| terms.goals[i]).collect();
        Ok(Self { width, flat, index: (0..terms.index.len()).collect(), goals })
    }

    /// The terms of the last layer, in the order of those of the network.
    pub(crate) fn terms<'a>(&'a self, of_network: &ModelTerms<'a, EncodedRows>) -> ModelTerms<'a, Self> {
        let ModelTerms { loss, outputs, penalty, intercept, .. } = *of_network;
        let Self { index, goals, .. } = self;
        ModelTerms { rows: self, index, goals, weights: None, units: None, loss, outputs, penalty, intercept }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.flat[i * self.width..(i + 1) * self.width]
    }
}

impl RowInputs for HiddenRows {
    fn inputs(&self) -> usize {
        self.width
    }
    fn dense_inputs(&self) -> usize {
        self.width
    }
    #[inline(always)]
    fn copy_dense(&self, i: usize, out: &mut [f64]) {
        out.copy_from_slice(self.row(i));
    }
    fn for_each_other(&self, _: usize, _: impl FnMut(usize, f64)) {}
    fn others_per_row(&self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn touch(&self, i: usize) -> u64 {
        self.row(i).iter().step_by(8).fold(0, |bits, a| bits ^ a.to_bits())
    }
}
