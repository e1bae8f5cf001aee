//! Encoded rows: what a model computes with.

use crate::{DataError, features::Csr, ranks::Ranks};

/// A category that the model does not know, or a blank one: no input is 1.
pub const NONE: u32 = u32::MAX;

/// The inputs of a model for some rows. A row has dense numbers, then one-hot categories, then sparse features.
///
/// A category is stored as the number of the one input that is 1, so a column with many categories costs as much as a
/// number.
#[derive(Debug, Clone)]
pub struct EncodedRows {
    pub(crate) rows: usize,
    /// The number of inputs.
    pub(crate) inputs: usize,
    /// `numbers` entries for each row.
    pub(crate) dense: Vec<f64>,
    pub(crate) numbers: usize,
    /// `categories` entries for each row: an input, or [`NONE`].
    pub(crate) hot: Vec<u32>,
    pub(crate) categories: usize,
    /// The sparse features, and the input of the first of them.
    pub(crate) sparse: Option<(Csr, usize)>,
}

impl EncodedRows {
    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// The number of inputs.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs
    }
    /// The mean number of inputs of a row that may differ from 0, over the rows of all ranks.
    pub fn stored_per_row(&self, ranks: &Ranks<'_>) -> Result<f64, DataError> {
        let sparse = self.sparse.as_ref().map_or(0, |(csr, _)| csr.entries());
        let mut sums = [sparse as f64, self.rows as f64];
        ranks.add(&mut sums)?;
        Ok((self.numbers + self.categories) as f64 + sums[0] / sums[1].max(1.0))
    }

    /// The mean number of categories and sparse features of a row in memory.
    #[must_use]
    pub fn others_per_row(&self) -> f64 {
        let sparse = self.sparse.as_ref().map_or(0, |(csr, _)| csr.entries());
        self.categories as f64 + sparse as f64 / self.rows.max(1) as f64
    }

    /// The number of dense numbers of a row, which are its first inputs.
    #[must_use]
    pub fn numbers(&self) -> usize {
        self.numbers
    }
    /// The numbers of row `i`.
    #[inline(always)]
    #[must_use]
    pub fn dense(&self, i: usize) -> &[f64] {
        &self.dense[i * self.numbers..][..self.numbers]
    }
    /// The inputs of row `i` that are 1: one for each category, or [`NONE`].
    #[inline(always)]
    #[must_use]
    pub fn hot(&self, i: usize) -> &[u32] {
        &self.hot[i * self.categories..][..self.categories]
    }

    /// Calls `each` with the inputs of row `i` that may differ from 0, and their values.
    #[inline(always)]
    pub fn for_each(&self, i: usize, mut each: impl FnMut(usize, f64)) {
        for (j, &value) in self.dense(i).iter().enumerate() {
            each(j, value);
        }
        self.for_each_other(i, each);
    }

    /// The same without the dense numbers.
    #[inline(always)]
    pub fn for_each_other(&self, i: usize, mut each: impl FnMut(usize, f64)) {
        for &j in self.hot(i).iter().filter(|&&j| j != NONE) {
            each(j as usize, 1.0);
        }
        if let Some((csr, first)) = &self.sparse {
            csr.pairs(i).for_each(|(j, value)| each(first + j, value));
        }
    }
}
