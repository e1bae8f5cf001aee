//! A data set as linear models read it: rows with targets, and a test set that changes with them.

use crate::rows::Rows;
use faer::Mat;
use strust::Error;
use strust_data::numerics::out_of_range;

/// Rows with targets of type T.
#[derive(Debug, Clone)]
pub(crate) struct SplitRows<T> {
    /// The problem, for messages.
    owner: &'static str,
    pub rows: Rows,
    pub targets: Vec<T>,
    /// The rows and targets of the test set.
    pub test: Option<(Rows, Vec<T>)>,
    /// Whether the last feature is the constant 1.
    pub intercept: bool,
}

impl<T: Copy> SplitRows<T> {
    pub fn new(owner: &'static str, rows: Rows, targets: Vec<T>) -> Self {
        Self { owner, rows, targets, test: None, intercept: false }
    }

    /// Keeps the first rows and holds out the second ones.
    pub fn hold_out(&mut self, (train, test): (Vec<usize>, Vec<usize>)) -> Result<(), Error> {
        let part = |rows: &[usize]| self.rows.part(self.owner, &self.targets, rows);
        let (test, (rows, targets)) = (part(&test)?, part(&train)?);
        (self.rows, self.targets, self.test) = (rows, targets, Some(test));
        Ok(())
    }

    /// Gives every feature mean 0 and standard deviation 1 over the training set.
    pub fn standardize(&mut self) -> Result<(), Error> {
        self.check_no_intercept("standardize")?;
        self.rows.standardize(self.owner, self.test.as_mut().map(|(rows, _)| rows))
    }

    /// Replaces the features by kernel values with the training set.
    pub fn take_kernel(&mut self, bandwidth: f64) -> Result<(), Error> {
        self.check_no_intercept("kernel")?;
        self.rows.take_kernel(self.owner, bandwidth, self.test.as_mut().map(|(rows, _)| rows))
    }

    /// Adds a last feature that is always 1.
    pub fn add_intercept(&mut self) -> Result<(), Error> {
        self.check_no_intercept("intercept")?;
        for rows in std::iter::once(&mut self.rows).chain(self.test.as_mut().map(|(rows, _)| rows)) {
            *rows = std::mem::replace(rows, Rows::Dense(Mat::new())).with_ones()?;
        }
        self.intercept = true;
        Ok(())
    }

    fn check_no_intercept(&self, field: &'static str) -> Result<(), Error> {
        if self.intercept {
            return Err(out_of_range(self.owner, field, "changed after an intercept was added", "changed before"));
        }
        Ok(())
    }

    /// The number of features without the intercept.
    #[inline(always)]
    pub fn penalized(&self) -> usize {
        self.rows.columns() - usize::from(self.intercept)
    }
}
