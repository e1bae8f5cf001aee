//! The terms of a sum over rows.

use super::{rows::ArrayRows, units::InputUnits};
use crate::loss::OutputLoss;

/// f = (1/n) Σ uᵢ·loss(z(aᵢ), yᵢ) + (λ/2)‖W‖² over the rows of `index`, where aᵢ is a row in its units and the weights uᵢ
/// have the mean 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrayTerms<'a> {
    pub(crate) rows: &'a ArrayRows<'a>,
    pub(crate) index: &'a [usize],
    /// The target of each row: a class, or a standardized number.
    pub(crate) goals: &'a [f64],
    /// uᵢ of each row; `None` if all are 1.
    pub(crate) weights: Option<&'a [f64]>,
    pub(crate) units: &'a InputUnits,
    pub(crate) loss: OutputLoss,
    pub(crate) outputs: usize,
    /// λ.
    pub(crate) penalty: f64,
    pub(crate) intercept: bool,
}

impl ArrayTerms<'_> {
    /// uᵢ·loss of row `i`. The outputs become its derivatives.
    #[inline(always)]
    pub(crate) fn differentiate(&self, i: usize, z: &mut [f64]) -> f64 {
        let loss = self.loss.differentiate(z, self.goals[i]);
        let Some(weights) = self.weights else { return loss };
        for z in z.iter_mut() {
            *z *= weights[i];
        }
        weights[i] * loss
    }
    /// A row in its units.
    #[inline(always)]
    pub(crate) fn for_each_scaled(&self, i: usize, mut each: impl FnMut(usize, f64)) {
        let InputUnits { shift, scale } = self.units;
        self.rows.for_each(i, |j, value| each(j, (value - shift[j]) / scale[j]));
    }
}
