//! Rows of features as the objectives read them, and what can be done to them before a run: standardize, take a kernel,
//! add an intercept.

use crate::{
    features::{Csr, Features},
    numerics::{at_least_one, axpy, dot, finite, out_of_range, shape},
};
use faer::Mat;
use strust::Error;

/// Features as the objectives read them, with contiguous rows. A faer matrix is column-major, so a dense one is stored
/// transposed: one column per data point.
#[derive(Debug, Clone)]
pub enum Rows {
    /// All entries.
    Dense(Mat<f64>),
    /// The entries that are not 0.
    Sparse(Csr),
}

impl Rows {
    /// Checks that the matrix is not empty and is finite, and that the number of labels matches.
    pub fn new(owner: &'static str, features: Features, labels: usize) -> Result<Self, Error> {
        at_least_one(owner, "rows", features.rows())?;
        at_least_one(owner, "columns", features.columns())?;
        shape("labels of a data set", vec![features.rows()], vec![labels])?;
        Ok(match features {
            Features::Dense(matrix) => {
                finite(owner, "features", &matrix)?;
                Self::Dense(matrix.transpose().to_owned())
            }
            Features::Sparse(matrix) => Self::Sparse(matrix),
        })
    }
    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.ncols(),
            Self::Sparse(matrix) => matrix.rows(),
        }
    }
    /// The number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.nrows(),
            Self::Sparse(matrix) => matrix.columns(),
        }
    }
    /// The root mean square of every column.
    #[must_use]
    pub fn scales(&self) -> Vec<f64> {
        let mut squares = vec![0.0; self.columns()];
        match self {
            Self::Dense(matrix) => {
                for i in 0..matrix.ncols() {
                    squares.iter_mut().zip(matrix.col_as_slice(i)).for_each(|(sum, v)| *sum += v * v);
                }
            }
            Self::Sparse(matrix) => {
                (0..matrix.rows()).for_each(|i| matrix.pairs(i).for_each(|(j, v)| squares[j] += v * v));
            }
        }
        squares.iter().map(|sum| (sum / self.rows() as f64).sqrt()).collect()
    }
    /// The selected rows, in this order; at least one.
    pub fn only(&self, owner: &'static str, rows: &[usize]) -> Result<Self, Error> {
        at_least_one(owner, "rows", rows.len())?;
        Ok(match self {
            Self::Dense(matrix) => Self::Dense(Mat::from_fn(matrix.nrows(), rows.len(), |j, i| matrix[(j, rows[i])])),
            Self::Sparse(matrix) => Self::Sparse(matrix.only(rows)),
        })
    }
    /// The selected rows with their labels.
    pub fn part<T: Copy>(&self, owner: &'static str, labels: &[T], rows: &[usize]) -> Result<(Self, Vec<T>), Error> {
        Ok((self.only(owner, rows)?, rows.iter().map(|&i| labels[i]).collect()))
    }
    /// aᵢᵀx.
    #[must_use]
    #[inline(always)]
    pub fn dot(&self, i: usize, x: &[f64]) -> f64 {
        match self {
            Self::Dense(matrix) => dot(matrix.col_as_slice(i), x),
            Self::Sparse(matrix) => matrix.pairs(i).map(|(j, v)| v * x[j]).sum(),
        }
    }
    /// y ← y + c·aᵢ.
    #[inline(always)]
    pub fn add_to(&self, i: usize, c: f64, y: &mut [f64]) {
        match self {
            Self::Dense(matrix) => axpy(c, matrix.col_as_slice(i), y),
            Self::Sparse(matrix) => matrix.pairs(i).for_each(|(j, v)| y[j] += c * v),
        }
    }

    /// The rows without sparsity. `why` is the key that needs it.
    pub fn into_dense(self, owner: &'static str, why: &'static str) -> Result<Mat<f64>, Error> {
        check_numbers(owner, why, self.rows(), self.columns())?;
        Ok(match self {
            Self::Dense(matrix) => matrix,
            Self::Sparse(matrix) => {
                let mut dense = Mat::zeros(matrix.columns(), matrix.rows());
                for i in 0..matrix.rows() {
                    let column = dense.col_as_slice_mut(i);
                    matrix.pairs(i).for_each(|(j, v)| column[j] = v);
                }
                dense
            }
        })
    }

    /// Gives every feature mean 0 and standard deviation 1 over these rows, and changes the rows of `test` in the same
    /// way. The result is dense.
    pub fn standardize(&mut self, owner: &'static str, test: Option<&mut Self>) -> Result<(), Error> {
        let mut train = self.clone().into_dense(owner, "standardize")?;
        let scaling = FeatureScaling::of(owner, train.ncols(), train.nrows(), |i, j| train[(j, i)])?;
        scaling.apply(&mut train);
        if let Some(test) = test {
            let mut dense = test.clone().into_dense(owner, "standardize")?;
            scaling.apply(&mut dense);
            *test = Self::Dense(dense);
        }
        *self = Self::Dense(train);
        Ok(())
    }

    /// Replaces the features of a row a by its kernel values exp(−‖a − aⱼ‖²/(2σ²)) with all of these rows aⱼ; also in the
    /// rows of `test`.
    pub fn take_kernel(&mut self, owner: &'static str, bandwidth: f64, test: Option<&mut Self>) -> Result<(), Error> {
        if !(bandwidth.is_finite() && bandwidth > 0.0) {
            return Err(out_of_range(owner, "bandwidth", bandwidth, "finite and > 0"));
        }
        let all = self.rows() + test.as_ref().map_or(0, |test| test.rows());
        check_numbers(owner, "kernel", self.rows(), all)?;
        if let Some(test) = test {
            *test = Self::Dense(test.kernel(self, bandwidth));
        }
        *self = Self::Dense(self.kernel(self, bandwidth));
        Ok(())
    }

    /// Column i has the kernel values of row i with all rows of `centers`.
    fn kernel(&self, centers: &Self, bandwidth: f64) -> Mat<f64> {
        let mut row = vec![0.0; self.columns()];
        let mut square = |rows: &Self, i: usize| {
            row.fill(0.0);
            rows.add_to(i, 1.0, &mut row);
            rows.dot(i, &row)
        };
        let squares: Vec<f64> = (0..centers.rows()).map(|j| square(centers, j)).collect();
        let factor = -0.5 / (bandwidth * bandwidth);
        let mut kernel = Mat::zeros(centers.rows(), self.rows());
        for i in 0..self.rows() {
            row.fill(0.0);
            self.add_to(i, 1.0, &mut row);
            let own = self.dot(i, &row);
            for (j, value) in kernel.col_as_slice_mut(i).iter_mut().enumerate() {
                // Rounding can make the distance of nearly equal rows negative.
                let distance = (own + squares[j] - 2.0 * centers.dot(j, &row)).max(0.0);
                *value = (factor * distance).exp();
            }
        }
        kernel
    }

    /// The rows with a last feature that is always 1.
    pub fn with_ones(self) -> Result<Self, Error> {
        Ok(match self {
            Self::Dense(matrix) => {
                let d = matrix.nrows();
                let entry = |j, i| if j == d { 1.0 } else { matrix[(j, i)] };
                Self::Dense(Mat::from_fn(d + 1, matrix.ncols(), entry))
            }
            Self::Sparse(matrix) => Self::Sparse(matrix.with_ones()?),
        })
    }
}

/// Refuses a dense matrix that is too large. `why` is the key that needs it.
fn check_numbers(owner: &'static str, why: &'static str, rows: usize, columns: usize) -> Result<(), Error> {
    const MOST: usize = 1 << 29;
    if rows.saturating_mul(columns) <= MOST {
        return Ok(());
    }
    let size = 8.0 * rows as f64 * columns as f64 / f64::from(1 << 30);
    let found = format!("on, for a dense matrix of {rows} × {columns} numbers ({size:.1} GiB)");
    Err(out_of_range(owner, why, found, "used for at most 4 GiB: set `rows` to use fewer rows of the file"))
}

/// What makes features of mean 0 and standard deviation 1: v ← (v − mean)·factor.
///
/// A feature that is constant over the training set becomes 0 there.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureScaling {
    means: Vec<f64>,
    factors: Vec<f64>,
}

impl FeatureScaling {
    /// The scaling of n×d features; `at(i, j)` is feature j of row i.
    pub fn of(owner: &'static str, n: usize, d: usize, at: impl Fn(usize, usize) -> f64) -> Result<Self, Error> {
        let mean = |j: usize| (0..n).map(|i| at(i, j)).sum::<f64>() / n as f64;
        let factor = |j: usize, mean: f64| {
            // The mean of equal numbers may be rounded, so the deviation would not be 0.
            if (1..n).all(|i| at(i, j).to_bits() == at(0, j).to_bits()) {
                return 0.0;
            }
            let variance = (0..n).map(|i| (at(i, j) - mean).powi(2)).sum::<f64>() / n as f64;
            Some(1.0 / variance.sqrt()).filter(|factor| factor.is_finite()).unwrap_or(0.0)
        };
        let means: Vec<f64> = (0..d).map(mean).collect();
        let factors: Vec<f64> = means.iter().enumerate().map(|(j, &mean)| factor(j, mean)).collect();
        if factors.iter().all(|&factor| factor == 0.0) {
            let allowed = "off, because every feature is constant over the training set";
            return Err(out_of_range(owner, "standardize", "on", allowed));
        }
        Ok(Self { means, factors })
    }

    /// The scaled value of feature j.
    #[must_use]
    pub fn scaled(&self, j: usize, value: f64) -> f64 {
        (value - self.means[j]) * self.factors[j]
    }

    /// Scales data points that are columns.
    fn apply(&self, columns: &mut Mat<f64>) {
        for i in 0..columns.ncols() {
            columns.col_as_slice_mut(i).iter_mut().enumerate().for_each(|(j, v)| *v = self.scaled(j, *v));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(n: usize, d: usize, entries: &[f64]) -> Rows {
        Rows::new("test", Features::Dense(Mat::from_fn(n, d, |i, j| entries[d * i + j])), n).unwrap()
    }

    fn sparse(n: usize, d: usize, entries: &[f64]) -> Rows {
        let features = Features::Dense(Mat::from_fn(n, d, |i, j| entries[d * i + j]));
        Rows::new("test", features.to_sparse(), n).unwrap()
    }

    /// The entries row by row.
    fn entries(rows: &Rows) -> Vec<f64> {
        let matrix = rows.clone().into_dense("test", "test").unwrap();
        (0..matrix.ncols()).flat_map(|i| matrix.col_as_slice(i).to_vec()).collect()
    }

    #[test]
    fn standardized_training_rows_have_mean_0_and_deviation_1_and_test_rows_follow() {
        for make in [rows, sparse] {
            // The means are 2, 0 and 7; the deviations are 1 and 2, and the last feature is constant.
            let mut train = make(2, 3, &[1.0, -2.0, 7.0, 3.0, 2.0, 7.0]);
            let mut test = make(1, 3, &[4.0, 1.0, 9.0]);
            train.standardize("test", Some(&mut test)).unwrap();
            assert_eq!(entries(&train), [-1.0, -1.0, 0.0, 1.0, 1.0, 0.0]);
            assert_eq!(entries(&test), [2.0, 0.5, 0.0], "a constant feature has no effect");
        }
        let message = rows(3, 2, &[5.0; 6]).standardize("test", None).unwrap_err().to_string();
        assert_eq!(
            message,
            "test: `standardize` is on, but must be off, because every feature is constant over the training set"
        );
        // The sum of ten times 0.1 is not 1, and 1e-200² is 0.
        let mut hard = rows(10, 2, &[[0.1, 1.0]; 10].concat());
        assert!(hard.standardize("test", None).is_err());
        hard = rows(2, 2, &[1e-200, 0.0, 0.0, 1.0]);
        hard.standardize("test", None).unwrap();
        assert_eq!(entries(&hard), [0.0, -1.0, 0.0, 1.0]);
    }

    #[test]
    fn the_kernel_is_that_of_the_formula() {
        for make in [rows, sparse] {
            // The squared distances are 25 between the training rows, and 9 and 16 from the test row.
            let mut train = make(2, 2, &[0.0, 0.0, 3.0, 4.0]);
            let mut test = make(1, 2, &[3.0, 0.0]);
            train.take_kernel("test", 2.0, Some(&mut test)).unwrap();
            let k = |square: f64| (-square / 8.0).exp();
            assert_eq!(entries(&train), [1.0, k(25.0), k(25.0), 1.0]);
            assert_eq!(entries(&test), [k(9.0), k(16.0)]);
        }
        for bandwidth in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let message = rows(1, 1, &[1.0]).take_kernel("test", bandwidth, None).unwrap_err().to_string();
            assert_eq!(message, format!("test: `bandwidth` is {bandwidth}, but must be finite and > 0"));
        }
    }

    #[test]
    fn a_kernel_that_does_not_fit_into_memory_is_an_error_before_it_is_computed() {
        let empty = Csr::new(1, vec![0; 30_001], vec![], vec![]).unwrap();
        let message = Rows::Sparse(empty).take_kernel("test", 1.0, None).unwrap_err().to_string();
        assert_eq!(
            message,
            "test: `kernel` is on, for a dense matrix of 30000 × 30000 numbers (6.7 GiB), but must be used for at most \
             4 GiB: set `rows` to use fewer rows of the file"
        );
    }

    #[test]
    fn an_intercept_is_a_last_feature_of_ones() {
        for make in [rows, sparse] {
            let with = make(2, 2, &[1.0, 0.0, 3.0, 4.0]).with_ones().unwrap();
            assert_eq!(entries(&with), [1.0, 0.0, 1.0, 3.0, 4.0, 1.0]);
        }
    }

    proptest! {
        #[test]
        fn dense_and_sparse_rows_do_the_same(
            entries in prop::collection::vec(prop_oneof![Just(0.0), -2.0..2.0], 12),
            x in prop::collection::vec(-2.0..2.0, 4),
        ) {
            let dense = Features::Dense(Mat::from_fn(3, 4, |i, j| entries[4 * i + j]));
            let sparse = dense.to_sparse();
            prop_assert_eq!(&Features::Dense(sparse.to_dense()), &dense);
            let (dense, sparse) = (Rows::new("test", dense, 3).unwrap(), Rows::new("test", sparse, 3).unwrap());
            let mean_square = |j: usize| (0..3).map(|i| entries[4 * i + j].powi(2)).sum::<f64>() / 3.0;
            for (j, (a, b)) in dense.scales().into_iter().zip(sparse.scales()).enumerate() {
                prop_assert!((a - b).abs() < 1e-14 && (a * a - mean_square(j)).abs() < 1e-14);
            }
            for i in 0..3 {
                prop_assert!((dense.dot(i, &x) - sparse.dot(i, &x)).abs() < 1e-14);
                let (mut a, mut b) = (x.clone(), x.clone());
                dense.add_to(i, 0.5, &mut a);
                sparse.add_to(i, 0.5, &mut b);
                prop_assert_eq!(a, b);
            }
        }
    }
}
