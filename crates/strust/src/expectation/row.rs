//! Groups of terms, and rows over their means.

use crate::{Error, config::out_of_range};
use std::sync::Arc;

/// A group: some of the terms. Copies share one list, and rows over copies evaluate the group once.
#[derive(Debug, Clone)]
pub struct Members(Arc<[bool]>);

impl Members {
    /// The terms i of `terms` with `is_member(i)`.
    pub fn new(terms: usize, is_member: impl FnMut(usize) -> bool) -> Self {
        Self((0..terms).map(is_member).collect())
    }
    /// All terms.
    #[must_use]
    pub fn all(terms: usize) -> Self {
        Self::new(terms, |_| true)
    }
    /// Whether term i is a member.
    #[must_use]
    pub fn contains(&self, i: usize) -> bool {
        self.0[i]
    }
    /// The number of terms, of which some are members.
    pub(super) fn terms(&self) -> usize {
        self.0.len()
    }
    /// The members.
    pub(super) fn list(&self) -> Vec<usize> {
        (0..self.terms()).filter(|&i| self.contains(i)).collect()
    }
    /// Whether both are copies of one group.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A row: lower ≤ Σⱼ wⱼ·(mean of the score over group j) ≤ upper.
///
/// ```
/// use strust::expectation::{MeanRow, Members};
/// let (women, men) = (Members::new(100, |i| i % 2 == 0), Members::new(100, |i| i % 2 == 1));
/// let budget = MeanRow::mean(&Members::all(100)).at_most(0.1);
/// let parity = MeanRow::difference(&men, &women).between(-0.02, 0.02);
/// let ratio = MeanRow::mean(&women).plus(-0.8, &men).at_least(0.0); // women/men ≥ 0.8
/// let quota = MeanRow::mean(&women).equal_to(0.3);
/// # let _ = (budget, parity, ratio, quota);
/// ```
#[derive(Debug, Clone)]
#[must_use = "give the row to an expectation"]
pub struct MeanRow {
    pub(super) parts: Vec<(f64, Members)>,
    pub(super) lower: f64,
    pub(super) upper: f64,
}

impl MeanRow {
    /// The mean over a group. It needs a bound.
    pub fn mean(group: &Members) -> Self {
        Self::weighted(1.0, group)
    }
    /// A multiple of the mean over a group. It needs a bound.
    pub fn weighted(weight: f64, group: &Members) -> Self {
        Self { parts: vec![(weight, group.clone())], lower: f64::NEG_INFINITY, upper: f64::INFINITY }
    }
    /// The mean over the first group minus the mean over the second.
    pub fn difference(first: &Members, second: &Members) -> Self {
        Self::mean(first).plus(-1.0, second)
    }
    /// Adds a multiple of the mean over another group.
    pub fn plus(mut self, weight: f64, group: &Members) -> Self {
        self.parts.push((weight, group.clone()));
        self
    }
    /// The sum is at most this.
    pub fn at_most(self, upper: f64) -> Self {
        Self { upper, ..self }
    }
    /// The sum is at least this.
    pub fn at_least(self, lower: f64) -> Self {
        Self { lower, ..self }
    }
    /// Both.
    pub fn between(self, lower: f64, upper: f64) -> Self {
        Self { lower, upper, ..self }
    }
    /// The sum is this.
    pub fn equal_to(self, value: f64) -> Self {
        self.between(value, value)
    }

    /// Checks the row for a score of so many terms.
    pub(super) fn check(&self, terms: usize) -> Result<(), Error> {
        let Self { parts, lower, upper } = self;
        if lower.is_nan() || upper.is_nan() || lower > upper || !(lower.is_finite() || upper.is_finite()) {
            let allowed =
                "a finite bound, and at most one below and one above: use at_most, at_least, between or equal_to";
            return Err(out_of_range("mean row", "bounds", format!("[{lower}, {upper}]"), allowed));
        }
        for (weight, group) in parts {
            if !weight.is_finite() {
                return Err(out_of_range("mean row", "weight", weight, "finite"));
            }
            if group.terms() != terms {
                let allowed = format!("over the {terms} terms of the score");
                return Err(out_of_range("mean row", "group", format!("over {} terms", group.terms()), allowed));
            }
            if !group.0.contains(&true) {
                return Err(out_of_range("mean row", "group", "empty", "a group with at least one member"));
            }
        }
        Ok(())
    }
}
