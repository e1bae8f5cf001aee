//! The rows of a model, and the terms of its sum.

use strust_data::{encoded::EncodedRows, loss::OutputLoss};

/// Rows as a model reads them: dense inputs, then inputs of which few differ from 0.
pub(crate) trait RowInputs {
    /// The number of inputs.
    fn inputs(&self) -> usize;
    /// The number of dense inputs.
    fn dense_inputs(&self) -> usize;
    /// Writes the dense inputs of row `i`.
    fn copy_dense(&self, i: usize, out: &mut [f64]);
    /// Calls `each` with the other inputs of row `i` that may differ from 0, and their values.
    fn for_each_other(&self, i: usize, each: impl FnMut(usize, f64));
    /// The mean number of these other inputs of a row.
    fn others_per_row(&self) -> f64;
    /// Reads one number of each cache line of the dense inputs of row `i`.
    fn touch(&self, i: usize) -> u64;
}

impl RowInputs for EncodedRows {
    fn inputs(&self) -> usize {
        self.inputs()
    }
    fn dense_inputs(&self) -> usize {
        self.numbers()
    }
    #[inline(always)]
    fn copy_dense(&self, i: usize, out: &mut [f64]) {
        out.copy_from_slice(self.dense(i));
    }
    #[inline(always)]
    fn for_each_other(&self, i: usize, each: impl FnMut(usize, f64)) {
        self.for_each_other(i, each);
    }
    fn others_per_row(&self) -> f64 {
        self.others_per_row()
    }
    #[inline(always)]
    fn touch(&self, i: usize) -> u64 {
        let bits = self.hot(i).first().map_or(0, |&j| u64::from(j));
        self.dense(i).iter().step_by(8).fold(bits, |bits, a| bits ^ a.to_bits())
    }
}

/// f = (1/n) Σ uᵢ·loss(z(aᵢ), yᵢ) + (λ/2)‖W‖² over the rows of `index`, where the weights uᵢ have the mean 1.
#[derive(Debug)]
pub(crate) struct ModelTerms<'a, R> {
    pub(crate) rows: &'a R,
    pub(crate) index: &'a [usize],
    /// The target of each row: a class, or a standardized number.
    pub(crate) goals: &'a [f64],
    /// uᵢ of each row; `None` if all are 1.
    pub(crate) weights: Option<&'a [f64]>,
    /// The shift and the scale of each input, if the rows are not in their units: aᵢ = (v − shift)/scale. Only dense inputs
    /// may have a shift.
    pub(crate) units: Option<(&'a [f64], &'a [f64])>,
    pub(crate) loss: OutputLoss,
    pub(crate) outputs: usize,
    /// λ.
    pub(crate) penalty: f64,
    pub(crate) intercept: bool,
}

// Derived implementations would ask that the rows can be copied.
impl<R> Clone for ModelTerms<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<R> Copy for ModelTerms<'_, R> {}

impl<R: RowInputs> ModelTerms<'_, R> {
    /// uᵢ.
    #[inline(always)]
    pub(crate) fn weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[i])
    }

    /// Adds uᵢ·loss of row `i` to `sum`. The outputs become its derivatives times `share`.
    #[inline(always)]
    pub(crate) fn add_loss(&self, i: usize, z: &mut [f64], share: f64, sum: &mut f64) {
        let weight = self.weight(i);
        let mut loss = 0.0;
        self.loss.add(z, self.goals[i], weight * share, &mut loss);
        *sum += weight * loss;
    }

    /// Writes the dense inputs of row `i`, minus their shifts. The difference is taken before a product, so a large mean
    /// costs no digits.
    #[inline(always)]
    pub(crate) fn copy_shifted(&self, i: usize, out: &mut [f64]) {
        self.rows.copy_dense(i, out);
        if let Some((shift, _)) = self.units {
            out.iter_mut().zip(shift).for_each(|(a, shift)| *a -= shift);
        }
    }
}
