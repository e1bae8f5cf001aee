//! Borrowed rows of numbers.

use crate::{Error, terms::RowInputs};

/// An n×d matrix of another owner, row by row.
#[derive(Debug, Clone, Copy)]
pub enum ArrayRows<'a> {
    /// All entries, in double precision.
    Double(&'a [f64], usize),
    /// All entries, in single precision.
    Single(&'a [f32], usize),
    /// The entries that are not 0.
    Sparse(SparseRows<'a>),
}

/// Row i has the values `values[starts[i]..starts[i + 1]]` in the columns `columns[…]`. Values of the same entry are
/// added.
#[derive(Debug, Clone, Copy)]
pub struct SparseRows<'a> {
    starts: &'a [i64],
    columns: &'a [i32],
    values: &'a [f64],
    inputs: usize,
}

impl<'a> SparseRows<'a> {
    /// Checks that the rows cover all entries and that their columns exist.
    pub fn new(starts: &'a [i64], columns: &'a [i32], values: &'a [f64], inputs: usize) -> Result<Self, Error> {
        let covered =
            starts.first() == Some(&0) && starts.last().is_some_and(|&end| usize::try_from(end) == Ok(values.len()));
        let wrong = if columns.len() != values.len() {
            Some(format!("has {} columns for {} values", columns.len(), values.len()))
        } else if !covered || starts.windows(2).any(|pair| pair[0] > pair[1]) {
            Some(format!("has row starts that do not rise from 0 to {}, the number of its entries", values.len()))
        } else {
            let outside = columns.iter().find(|&&j| j < 0 || j as usize >= inputs);
            outside.map(|j| format!("has an entry in column {j}, but {inputs} columns"))
        };
        match wrong {
            Some(why) => Err(Error::Option(format!("the sparse matrix {why}"))),
            None => Ok(Self { starts, columns, values, inputs }),
        }
    }

    /// The columns and the values of the entries of row `i`.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> + use<'a> {
        let range = self.starts[i] as usize..self.starts[i + 1] as usize;
        self.columns[range.clone()].iter().zip(&self.values[range]).map(|(&j, &value)| (j as usize, value))
    }
}

impl ArrayRows<'_> {
    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Double(values, inputs) => values.len().checked_div(*inputs).unwrap_or(0),
            Self::Single(values, inputs) => values.len().checked_div(*inputs).unwrap_or(0),
            Self::Sparse(sparse) => sparse.starts.len() - 1,
        }
    }
    /// The number of inputs.
    #[must_use]
    pub fn inputs(&self) -> usize {
        match self {
            Self::Double(_, inputs) | Self::Single(_, inputs) => *inputs,
            Self::Sparse(sparse) => sparse.inputs,
        }
    }
    /// The mean number of entries of a row that may differ from 0.
    pub(crate) fn stored_per_row(&self) -> f64 {
        match self {
            Self::Sparse(sparse) => sparse.values.len() as f64 / self.rows().max(1) as f64,
            _ => self.inputs() as f64,
        }
    }

    /// Calls `each` with the inputs of row `i` that may differ from 0, and their values.
    #[inline(always)]
    pub(crate) fn for_each(&self, i: usize, mut each: impl FnMut(usize, f64)) {
        match self {
            Self::Double(values, d) => row(values, *d, i).iter().enumerate().for_each(|(j, &v)| each(j, v)),
            Self::Single(values, d) => row(values, *d, i).iter().enumerate().for_each(|(j, &v)| each(j, f64::from(v))),
            Self::Sparse(sparse) => sparse.row(i).for_each(|(j, value)| each(j, value)),
        }
    }
}

/// Row `i` of dense rows.
#[inline(always)]
fn row<T>(values: &[T], inputs: usize, i: usize) -> &[T] {
    &values[i * inputs..(i + 1) * inputs]
}

impl RowInputs for ArrayRows<'_> {
    fn inputs(&self) -> usize {
        self.inputs()
    }
    fn dense_inputs(&self) -> usize {
        if matches!(self, Self::Sparse(_)) { 0 } else { self.inputs() }
    }
    #[inline(always)]
    fn copy_dense(&self, i: usize, out: &mut [f64]) {
        match self {
            Self::Double(values, d) => out.copy_from_slice(row(values, *d, i)),
            Self::Single(values, d) => {
                out.iter_mut().zip(row(values, *d, i)).for_each(|(out, &value)| *out = f64::from(value));
            }
            Self::Sparse(_) => {}
        }
    }
    #[inline(always)]
    fn for_each_other(&self, i: usize, mut each: impl FnMut(usize, f64)) {
        if let Self::Sparse(sparse) = self {
            sparse.row(i).for_each(|(j, value)| each(j, value));
        }
    }
    fn others_per_row(&self) -> f64 {
        if matches!(self, Self::Sparse(_)) { self.stored_per_row() } else { 0.0 }
    }
    #[inline(always)]
    fn touch(&self, i: usize) -> u64 {
        match self {
            Self::Double(values, d) => row(values, *d, i).iter().step_by(8).fold(0, |bits, a| bits ^ a.to_bits()),
            Self::Single(values, d) => {
                row(values, *d, i).iter().step_by(16).fold(0, |bits, a| bits ^ u64::from(a.to_bits()))
            }
            Self::Sparse(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_rows_have_the_same_entries() {
        // [0 5 0]
        // [7 0 9]
        let sparse = SparseRows::new(&[0, 1, 3], &[1, 0, 2], &[5.0, 7.0, 9.0], 3).unwrap();
        let kinds = [
            ArrayRows::Double(&[0.0, 5.0, 0.0, 7.0, 0.0, 9.0], 3),
            ArrayRows::Single(&[0.0, 5.0, 0.0, 7.0, 0.0, 9.0], 3),
            ArrayRows::Sparse(sparse),
        ];
        for rows in kinds {
            assert_eq!((rows.rows(), rows.inputs()), (2, 3));
            let mut found = vec![0.0; 6];
            (0..2).for_each(|i| rows.for_each(i, |j, value| found[3 * i + j] = value));
            assert_eq!(found, [0.0, 5.0, 0.0, 7.0, 0.0, 9.0]);
        }
    }

    #[test]
    fn a_wrong_sparse_matrix_is_an_error_that_says_what() {
        let message = |starts: &[i64], columns: &[i32], values: &[f64]| {
            SparseRows::new(starts, columns, values, 3).unwrap_err().to_string()
        };
        assert_eq!(message(&[0, 1], &[0], &[]), "the sparse matrix has 1 columns for 0 values");
        assert_eq!(
            message(&[0, 2, 1], &[0], &[1.0]),
            "the sparse matrix has row starts that do not rise from 0 to 1, the number of its entries"
        );
        assert_eq!(message(&[0, 1], &[3], &[1.0]), "the sparse matrix has an entry in column 3, but 3 columns");
    }
}
