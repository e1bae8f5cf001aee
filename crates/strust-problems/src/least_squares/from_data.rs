//! Least squares for data from a file: regression.

use super::{LeastSquares, OWNER};
use crate::{
    classified::{split_last, split_rows},
    features::Labeled,
    rows::Rows,
    split::SplitRows,
};
use strust::Error;

impl LeastSquares<f64> {
    /// Linear regression: the rows of A are the features of the data points, and b are their labels. Sparse features
    /// become dense; more than 4 GiB are refused.
    ///
    /// ```
    /// use faer::Mat;
    /// use strust_problems::{Convex, Features, Labeled, LeastSquares};
    /// // The line through (0, 1), (1, 3), (2, 5).
    /// let features = Features::Dense(Mat::from_fn(3, 1, |i, _| i as f64));
    /// let f = LeastSquares::from_labeled(Labeled { features, labels: vec![1.0, 3.0, 5.0] })?.with_intercept()?;
    /// assert!(f.minimum()? < 1e-24);
    /// assert!(f.solved()?.solution().is_some_and(|x| (x[0] - 2.0).abs() < 1e-12 && (x[1] - 1.0).abs() < 1e-12));
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn from_labeled(data: Labeled) -> Result<Self, Error> {
        let Labeled { features, labels } = data;
        let rows = Rows::new(OWNER, features, labels.len())?.into_dense(OWNER, "data")?;
        Self::from_rows(rows, labels)
    }

    /// Holds out a test set: a fraction of the rows, rounded to whole rows, drawn at random with the seed.
    pub fn with_test_share(self, share: f64, seed: u64) -> Result<Self, Error> {
        // All rows are of one class.
        let parts = split_rows(OWNER, &vec![0; self.targets.len()], 1, share, seed)?;
        self.changed(|data| data.hold_out(parts))
    }

    /// Holds out the last rows as a test set: a fraction of the rows, rounded to whole rows.
    pub fn with_last_rows_as_test(self, share: f64) -> Result<Self, Error> {
        let parts = split_last(OWNER, self.targets.len(), share)?;
        self.changed(|data| data.hold_out(parts))
    }

    /// Gives every feature mean 0 and standard deviation 1 over the training set; a feature that is constant there
    /// becomes 0. The test set changes in the same way, so hold it out first. The targets stay as they are.
    pub fn standardized(self) -> Result<Self, Error> {
        self.changed(SplitRows::standardize)
    }

    /// Adds a last feature that is always 1. Standardize the others first.
    pub fn with_intercept(self) -> Result<Self, Error> {
        self.changed(SplitRows::add_intercept)
    }

    /// The problem with other data. Its solution is unknown.
    fn changed(self, change: impl FnOnce(&mut SplitRows<f64>) -> Result<(), Error>) -> Result<Self, Error> {
        let mut data = SplitRows::new(OWNER, Rows::Dense(self.rows), self.targets);
        data.test = self.test.map(|(rows, targets)| (Rows::Dense(rows), targets));
        change(&mut data)?;
        let dense = |(rows, targets): (Rows, Vec<f64>)| Ok::<_, Error>((rows.into_dense(OWNER, "data")?, targets));
        let (rows, targets) = dense((data.rows, data.targets))?;
        Ok(Self { test: data.test.map(dense).transpose()?, ..Self::from_rows(rows, targets)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Convex, Problem, contract, features::Features};
    use faer::Mat;
    use strust::prelude::*;

    /// y = 3x₀ − x₁ + 2, where x₁ is far from 0.
    fn plane(n: usize) -> Labeled {
        let (a, b) = (|i: usize| i as f64, |i: usize| 1e3 + (i * i % 7) as f64);
        let features = Features::Dense(Mat::from_fn(n, 2, |i, j| if j == 0 { a(i) } else { b(i) }));
        Labeled { features, labels: (0..n).map(|i| 3.0 * a(i) - b(i) + 2.0).collect() }
    }

    #[test]
    fn the_contract_holds_for_data_from_a_file_dense_and_sparse() {
        let data = plane(40);
        let sparse = Labeled { features: data.features.to_sparse(), labels: data.labels.clone() };
        let make = |data| LeastSquares::from_labeled(data).unwrap().with_test_share(0.25, 0).unwrap();
        let make = |data| make(data).standardized().unwrap().with_intercept().unwrap();
        let (mut a, b) = (make(data), make(sparse));
        assert_eq!((a.terms(), a.start(0).len()), (30, 3));
        assert_eq!((&a.rows, &a.targets), (&b.rows, &b.targets));
        contract::holds(&mut a, 1.95..2.05, 1e-13);
    }

    #[test]
    fn the_test_error_of_the_solution_is_0_on_exact_data() {
        let mut f = LeastSquares::from_labeled(plane(40)).unwrap();
        assert_eq!(f.test_metric(&vec![0.0, 0.0]), None);
        let f = f.with_last_rows_as_test(0.25).unwrap().standardized().unwrap().with_intercept().unwrap();
        assert_eq!(f.optimum(), None, "it is unknown until it is computed");
        let mut f = f.solved().unwrap();
        let x = f.solution().unwrap().to_vec();
        assert!(f.test_metric(&x).unwrap() < 1e-18 && f.minimum().unwrap() < 1e-18);
        // Without the intercept only the mean of the targets is missing.
        let mean = f.targets.iter().sum::<f64>() / 30.0;
        let without = vec![x[0], x[1], 0.0];
        assert!((f.test_metric(&without).unwrap() / mean.powi(2) - 1.0).abs() < 1e-10);
    }
}
