//! The shift and the scale of each input.

use super::rows::ArrayRows;

/// A model sees (v − shift)/scale.
#[derive(Debug, Clone, PartialEq)]
pub struct InputUnits {
    /// Subtracted; 0 for sparse rows, whose zeros must stay zeros.
    pub shift: Vec<f64>,
    /// The divisor, > 0.
    pub scale: Vec<f64>,
}

impl InputUnits {
    /// Measures rows with their weights: the mean, and the deviation from the shift. The scale of a sparse input is its
    /// largest size, because a rare feature would otherwise become huge. An input without a scale has 1. Rows of weight 0
    /// do not count.
    #[must_use]
    pub fn measure(rows: &ArrayRows<'_>, weights: Option<&[f64]>, center: bool, scale: bool) -> Self {
        let (d, index) = (rows.inputs(), used(rows.rows(), weights));
        let mut units = Self { shift: vec![0.0; d], scale: vec![1.0; d] };
        let sparse = matches!(rows, ArrayRows::Sparse(_));
        let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
        let total: f64 = index.iter().map(|&i| weight(i)).sum();
        if center && !sparse {
            for &i in &index {
                rows.for_each(i, |j, value| units.shift[j] += weight(i) * value);
            }
            units.shift.iter_mut().for_each(|shift| *shift /= total);
        }
        if scale {
            let mut sizes = vec![0.0_f64; d];
            for &i in &index {
                rows.for_each(i, |j, value| {
                    sizes[j] = if sparse {
                        sizes[j].max(value.abs())
                    } else {
                        sizes[j] + weight(i) * (value - units.shift[j]).powi(2)
                    }
                });
            }
            for ((unit, size), shift) in units.scale.iter_mut().zip(sizes).zip(&units.shift) {
                let size = if sparse { size } else { (size / total).sqrt() };
                // The mean of equal numbers may be rounded, so their deviation need not be 0.
                if size.is_normal() && size > 1e-14 * shift.abs() {
                    *unit = size;
                }
            }
        }
        units
    }
}

/// The rows with a weight above 0.
pub(crate) fn used(rows: usize, weights: Option<&[f64]>) -> Vec<usize> {
    (0..rows).filter(|&i| weights.is_none_or(|weights| weights[i] > 0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::rows::SparseRows;

    #[test]
    fn a_weight_counts_like_repeated_rows() {
        let values = [1.0, 0.1, 3.0, 0.1, 8.0, 0.1];
        let rows = ArrayRows::Double(&values, 2);
        let weighted = InputUnits::measure(&rows, Some(&[3.0, 1.0, 0.0]), true, true);
        let repeated = ArrayRows::Double(&[1.0, 0.1, 1.0, 0.1, 1.0, 0.1, 3.0, 0.1], 2);
        assert_eq!(weighted, InputUnits::measure(&repeated, None, true, true));
        assert!((weighted.shift[0] - 1.5).abs() < 1e-15 && (weighted.scale[0] - 0.75_f64.sqrt()).abs() < 1e-15);
        assert!((weighted.scale[1] - 1.0).abs() < 1e-15, "a constant input has no scale");
    }

    #[test]
    fn sparse_inputs_are_divided_by_their_largest_size() {
        let rows = ArrayRows::Sparse(SparseRows::new(&[0, 1, 3], &[1, 0, 1], &[-5.0, 7.0, 2.0], 3).unwrap());
        let units = InputUnits::measure(&rows, None, true, true);
        assert_eq!(units, InputUnits { shift: vec![0.0; 3], scale: vec![7.0, 5.0, 1.0] });
    }
}
