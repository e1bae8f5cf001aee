//! The rows of a data set, dense or sparse, with or without labels.

use crate::numerics::{at_least_one, out_of_range, shape};
use faer::Mat;
use strust::Error;

/// Features of n data points and their labels: the output of the readers and the input of the classifiers.
#[derive(Debug, Clone, PartialEq)]
pub struct Labeled {
    /// One row per data point.
    pub features: Features,
    /// One label per row.
    pub labels: Vec<f64>,
}

impl Labeled {
    /// This number of rows, spaced evenly, so that a sorted file keeps all its classes; all rows if there are fewer.
    ///
    /// ```
    /// use faer::Mat;
    /// use strust_data::{Features, Labeled};
    /// let features = Features::Dense(Mat::zeros(6, 1));
    /// let data = Labeled { features, labels: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0] };
    /// assert_eq!(data.thinned(3)?.labels, [0.0, 2.0, 4.0]);
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn thinned(self, rows: usize) -> Result<Self, Error> {
        at_least_one("data", "rows", rows)?;
        let n = self.labels.len();
        shape("labels of a data set", vec![self.features.rows()], vec![n])?;
        if rows >= n {
            return Ok(self);
        }
        let kept: Vec<usize> = (0..rows).map(|i| i * n / rows).collect();
        Ok(Self { features: self.features.only(&kept), labels: kept.iter().map(|&i| self.labels[i]).collect() })
    }
}

/// An n×d matrix of features, one row per data point.
#[derive(Debug, Clone, PartialEq)]
pub enum Features {
    /// All entries.
    Dense(Mat<f64>),
    /// The entries that are not 0.
    Sparse(Csr),
}

impl Features {
    /// n, the number of data points.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.nrows(),
            Self::Sparse(matrix) => matrix.rows(),
        }
    }
    /// d, the number of features.
    #[must_use]
    pub fn columns(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.ncols(),
            Self::Sparse(matrix) => matrix.columns(),
        }
    }
    /// The selected rows, in this order.
    #[must_use]
    pub fn only(&self, rows: &[usize]) -> Self {
        match self {
            Self::Dense(matrix) => Self::Dense(Mat::from_fn(rows.len(), matrix.ncols(), |i, j| matrix[(rows[i], j)])),
            Self::Sparse(matrix) => Self::Sparse(matrix.only(rows)),
        }
    }
    /// All entries of the matrix, also those that are 0.
    #[must_use]
    pub fn to_dense(&self) -> Mat<f64> {
        match self {
            Self::Dense(matrix) => matrix.clone(),
            Self::Sparse(matrix) => {
                let mut dense = Mat::zeros(matrix.rows(), matrix.columns());
                (0..matrix.rows()).for_each(|i| matrix.pairs(i).for_each(|(j, v)| dense[(i, j)] = v));
                dense
            }
        }
    }
    /// The same matrix without its zeros.
    #[must_use]
    pub fn to_sparse(&self) -> Self {
        let Self::Dense(matrix) = self else { return self.clone() };
        let row = |i| (0..matrix.ncols()).map(move |j| (j, matrix[(i, j)])).filter(|&(_, v)| v != 0.0);
        Self::Sparse(Csr::of_rows(matrix.ncols(), 0, (0..matrix.nrows()).map(row)))
    }
    /// The number of stored entries; n·d for a dense matrix.
    #[must_use]
    pub fn stored(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.nrows() * matrix.ncols(),
            Self::Sparse(matrix) => matrix.entries(),
        }
    }
}

/// A sparse matrix, row by row. Row i has the values `values[row_starts[i]..row_starts[i + 1]]` in the columns
/// `indices[…]`.
///
/// ```
/// use strust_data::Csr;
/// // [0 5 0]
/// // [7 0 9]
/// let matrix = Csr::new(3, vec![0, 1, 3], vec![1, 0, 2], vec![5.0, 7.0, 9.0])?;
/// assert_eq!((matrix.rows(), matrix.columns()), (2, 3));
/// assert_eq!(matrix.row(1), (&[0, 2][..], &[7.0, 9.0][..]));
///
/// let error = Csr::new(3, vec![0, 2], vec![2, 2], vec![1.0, 1.0]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "sparse matrix: `indices` is 2 after 2 in row 0, but must be strictly increasing in each row"
/// );
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Csr {
    columns: usize,
    row_starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

impl Csr {
    /// Checks that the rows cover all entries, that the columns of each row exist and increase strictly, and that every
    /// value is finite.
    pub fn new(columns: usize, row_starts: Vec<usize>, indices: Vec<u32>, values: Vec<f64>) -> Result<Self, Error> {
        let refuse = |field, value: String, allowed: &str| Err(out_of_range("sparse matrix", field, value, allowed));
        shape("values of a sparse matrix", vec![indices.len()], vec![values.len()])?;
        if row_starts.first() != Some(&0) || row_starts.last() != Some(&indices.len()) {
            let (first, last) = (row_starts.first(), row_starts.last());
            return refuse(
                "row_starts",
                format!("from {first:?} to {last:?}"),
                &format!("from 0 to {}, the number of entries", indices.len()),
            );
        }
        if let Some(i) = row_starts.windows(2).position(|w| w[0] > w[1]) {
            return refuse("row_starts", format!("decreasing after row {i}"), "non-decreasing");
        }
        for (row, bounds) in row_starts.windows(2).enumerate() {
            let entries = &indices[bounds[0]..bounds[1]];
            if let Some([left, right, ..]) = entries.windows(2).find(|w| w[0] >= w[1]) {
                let found = format!("{right} after {left} in row {row}");
                return refuse("indices", found, "strictly increasing in each row");
            }
            // The last index is the largest.
            if let Some(&largest) = entries.last()
                && largest as usize >= columns
            {
                return refuse("indices", format!("{largest} in row {row}"), &format!("below {columns} (columns)"));
            }
        }
        if let Some(k) = values.iter().position(|v| !v.is_finite()) {
            return refuse("values", format!("{} at entry {k}", values[k]), "finite everywhere");
        }
        Ok(Self { columns, row_starts, indices, values })
    }
    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.row_starts.len() - 1
    }
    /// The number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }
    /// The number of stored entries.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.values.len()
    }
    /// The columns and the values of the stored entries of row `i`.
    #[must_use]
    #[inline]
    pub fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let range = self.row_starts[i]..self.row_starts[i + 1];
        (&self.indices[range.clone()], &self.values[range])
    }
    /// The column and the value of each stored entry of row `i`.
    #[inline(always)]
    pub fn pairs(&self, i: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
        let (indices, values) = self.row(i);
        indices.iter().zip(values).map(|(&j, &value)| (j as usize, value))
    }
    /// The matrix with these entries in each row, about this many in all. The columns of a row increase.
    pub(crate) fn of_rows<R>(columns: usize, entries: usize, rows: impl Iterator<Item = R>) -> Self
    where
        R: Iterator<Item = (usize, f64)>,
    {
        let (mut indices, mut values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
        let mut row_starts = vec![0];
        for row in rows {
            row.for_each(|(j, value)| {
                indices.push(j as u32);
                values.push(value);
            });
            row_starts.push(indices.len());
        }
        Self { columns, row_starts, indices, values }
    }
    /// The selected rows, in this order.
    #[must_use]
    pub fn only(&self, rows: &[usize]) -> Self {
        let entries = rows.iter().map(|&i| self.row(i).0.len()).sum();
        Self::of_rows(self.columns, entries, rows.iter().map(|&i| self.pairs(i)))
    }
    /// Adds the rows of another matrix below. The result has the columns of the wider one.
    ///
    /// ```
    /// use strust_data::Csr;
    /// let mut matrix = Csr::new(1, vec![0, 1], vec![0], vec![5.0])?;
    /// matrix.append(Csr::new(3, vec![0, 1], vec![2], vec![7.0])?);
    /// assert_eq!((matrix.columns(), matrix.row(1)), (3, (&[2][..], &[7.0][..])));
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn append(&mut self, below: Self) {
        let before = self.values.len();
        self.columns = self.columns.max(below.columns);
        self.row_starts.extend(below.row_starts.iter().skip(1).map(|start| before + start));
        self.indices.extend(below.indices);
        self.values.extend(below.values);
    }
    /// The same matrix with a last column of ones.
    pub fn with_ones(self) -> Result<Self, Error> {
        let last = u32::try_from(self.columns)
            .map_err(|_| out_of_range("sparse matrix", "columns", self.columns, "below 2³²"))?;
        let rows = (0..self.rows()).map(|i| self.pairs(i).chain([(last as usize, 1.0)]));
        Ok(Self::of_rows(self.columns + 1, self.entries() + self.rows(), rows))
    }
    /// The same matrix with additional zero columns. A test set may lack the last features of its training set.
    pub fn widened(self, columns: usize) -> Result<Self, Error> {
        if columns < self.columns {
            let allowed = format!("≥ {}, the current number of columns", self.columns);
            return Err(out_of_range("sparse matrix", "columns", columns, allowed));
        }
        Ok(Self { columns, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_inconsistent_sparse_matrix_is_an_error() {
        let message = |columns, starts: &[usize], indices: &[u32], values: &[f64]| {
            Csr::new(columns, starts.to_vec(), indices.to_vec(), values.to_vec()).unwrap_err().to_string()
        };
        assert_eq!(message(1, &[0, 1], &[0], &[]), "values of a sparse matrix: expected shape [1], found [0]");
        assert!(message(1, &[], &[], &[]).contains("`row_starts` is from None to None"));
        assert!(message(1, &[0, 2], &[0], &[1.0]).contains("from 0 to 1, the number of entries"));
        assert!(message(1, &[0, 1, 0, 1], &[0], &[1.0]).contains("decreasing after row 1"));
        assert!(message(1, &[0, 1], &[1], &[1.0]).contains("`indices` is 1 in row 0, but must be below 1"));
        assert!(message(1, &[0, 1], &[0], &[f64::NAN]).contains("`values` is NaN at entry 0"));
    }

    #[test]
    fn widening_adds_empty_columns_and_removes_none() {
        let matrix = Csr::new(2, vec![0, 1], vec![1], vec![3.0]).unwrap();
        assert_eq!(matrix.clone().widened(5).unwrap().columns(), 5);
        assert!(matrix.widened(1).unwrap_err().to_string().contains("must be ≥ 2"));
    }

    #[test]
    fn thinned_rows_are_spaced_evenly_dense_and_sparse() {
        let dense = Features::Dense(Mat::from_fn(7, 2, |i, j| (2 * i + j) as f64));
        for features in [dense.clone(), dense.to_sparse()] {
            let data = Labeled { features, labels: (0..7).map(f64::from).collect() };
            let thin = data.clone().thinned(3).unwrap();
            assert_eq!((thin.labels, thin.features.rows()), (vec![0.0, 2.0, 4.0], 3));
            assert_eq!(thin.features.to_dense(), Mat::from_fn(3, 2, |i, j| (4 * i + j) as f64));
            assert_eq!(data.clone().thinned(9).unwrap(), data);
            assert_eq!(data.thinned(0).unwrap_err().to_string(), "data: `rows` is 0, but must be ≥ 1");
        }
    }

    proptest! {
        #[test]
        fn checking_arbitrary_parts_never_panics(
            columns in 0..5_usize,
            starts in prop::collection::vec(0..6_usize, 0..5),
            indices in prop::collection::vec(0..6_u32, 0..6),
            values in prop::collection::vec(any::<f64>(), 0..6),
        ) {
            if let Ok(matrix) = Csr::new(columns, starts, indices, values) {
                for i in 0..matrix.rows() {
                    prop_assert!(matrix.row(i).0.iter().all(|&j| (j as usize) < columns));
                }
            }
        }
    }
}
