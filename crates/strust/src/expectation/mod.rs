//! Constraints that are expectations: rows over the means of groups of terms, known on mini-batches only.
//!
//! The mean of a score s(x; i) over a group of terms, a difference of two such means, a ratio: all of them are
//!
//! ```text
//! lower ≤ Σⱼ wⱼ·(mean of s(x; i) over the terms i of group j) ≤ upper
//! ```
//!
//! [`InExpectation`](crate::methods::InExpectation) minimizes under such rows.

mod all_terms;
mod row;

pub use all_terms::{MeasuredRow, OnAllTerms};
pub use row::{MeanRow, Members};

use crate::{
    Error,
    config::out_of_range,
    objective::{Evaluation, FromTerms, Objective, from_terms},
    sample::Sample,
    vector::Vector,
};

/// Rows over the means of a score, from one closure `(i, x, gradient) -> s(x; i)` for term i of `terms`. Add the gradient
/// of the score to `gradient`.
///
/// ```
/// use strust::{expectation::{constraint_from_terms, MeanRow, Members}, sample::Sample};
/// // The mean score of the even terms may exceed that of the odd terms by at most 0.5.
/// let (even, odd) = (Members::new(4, |i| i % 2 == 0), Members::new(4, |i| i % 2 == 1));
/// let row = MeanRow::difference(&even, &odd).at_most(0.5);
/// let score = |i: usize, x: &Vec<f64>, g: &mut Vec<f64>| { g[0] += i as f64; x[0] * i as f64 };
/// let mut rows = constraint_from_terms(4, score, vec![row])?;
/// let measured = rows.measure(&vec![-1.0]);
/// assert_eq!((measured[0].value, measured[0].violation()), (1.0, 0.5)); // −(0 + 2)/2 + (1 + 3)/2
/// # Ok::<(), strust::Error>(())
/// ```
pub fn constraint_from_terms<V, F>(
    terms: usize,
    score: F,
    rows: Vec<MeanRow>,
) -> Result<Expectation<FromTerms<V, F>>, Error>
where
    V: Vector,
    F: FnMut(usize, &V, &mut V) -> f64,
{
    Expectation::new(from_terms(terms, score), rows)
}

/// Rows over the means of a score. The score is any [`Objective`]: its value on a sample of terms is their mean.
///
/// If what counts is a rate that is not smooth, such as the share of terms above a threshold, give a smooth score to the
/// steps and the true one to the multipliers ([`Self::with_rate`]).
#[derive(Debug, Clone)]
pub struct Expectation<S, T = S> {
    score: S,
    rate: Option<T>,
    groups: Vec<Members>,
    rows: Vec<IndexedRow>,
    part: Sample,
}

/// Rows over the means of a score whose type is hidden.
pub type AnyExpectation<P> = Expectation<Box<dyn Objective<Point = P> + Send>>;

/// A row whose groups are numbers.
#[derive(Debug, Clone)]
pub(crate) struct IndexedRow {
    weights: Vec<(usize, f64)>,
    pub lower: f64,
    pub upper: f64,
}

impl IndexedRow {
    /// How far a value is outside of the bounds.
    pub fn violation(&self, value: f64) -> f64 {
        (value - self.upper).max(self.lower - value).max(0.0)
    }
}

impl<S: Objective> Expectation<S> {
    /// Checks that every row has a bound, and a weight for groups of the score's terms that have members.
    pub fn new(score: S, rows: Vec<MeanRow>) -> Result<Self, Error> {
        let mut groups: Vec<Members> = Vec::new();
        let mut indexed = Vec::new();
        for row in rows {
            row.check(score.terms())?;
            let mut weights: Vec<(usize, f64)> = Vec::new();
            for (weight, members) in row.parts {
                let known = groups.iter().position(|group| group.is(&members));
                let group = known.unwrap_or(groups.len());
                if known.is_none() {
                    groups.push(members);
                }
                weights.push((group, weight));
            }
            indexed.push(IndexedRow { weights, lower: row.lower, upper: row.upper });
        }
        if indexed.is_empty() {
            return Err(out_of_range("expectation", "rows", 0, "at least one row"));
        }
        Ok(Self { score, rate: None, groups, rows: indexed, part: Sample::default() })
    }
}

impl<S: Objective + Send + 'static> Expectation<S> {
    /// The same without the type of the score.
    #[must_use]
    pub fn hidden(self) -> AnyExpectation<S::Point> {
        let Self { score, rate, groups, rows, part } = self;
        let hidden = |score: S| Box::new(score) as Box<dyn Objective<Point = S::Point> + Send>;
        Expectation { score: hidden(score), rate: rate.map(hidden), groups, rows, part }
    }
}

impl<S: Objective, T: Objective<Point = S::Point>> Expectation<S, T> {
    /// States the true score, of which the first one is a smooth copy: the steps use the smooth one, the multipliers move
    /// until the means of the true one satisfy the rows. Its gradient is never used.
    pub fn with_rate<R: Objective<Point = S::Point>>(self, rate: R) -> Result<Expectation<S, R>, Error> {
        if rate.terms() != self.score.terms() {
            let allowed = format!("{}, as the smooth score has", self.score.terms());
            return Err(out_of_range("expectation", "terms of the rate", rate.terms(), allowed));
        }
        let Self { score, groups, rows, part, .. } = self;
        Ok(Expectation { score, rate: Some(rate), groups, rows, part })
    }
    /// The number of terms.
    pub fn terms(&self) -> usize {
        self.score.terms()
    }
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether there is no row; never.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// A number for each term. Terms have the same number if they are in the same groups, as
    /// [`Epochs::stratified`](crate::samplers::Epochs::stratified) wants it.
    ///
    /// ```
    /// use strust::{expectation::{constraint_from_terms, MeanRow, Members}, prelude::*};
    /// let f = from_terms(6, |_, x: &Vec<f64>, g| { g[0] += x[0]; 0.5 * x[0] * x[0] });
    /// let row = MeanRow::mean(&Members::new(6, |i| i < 2)).at_most(1.0);
    /// let rows = constraint_from_terms(6, |_, x: &Vec<f64>, g: &mut Vec<f64>| { g[0] += 1.0; x[0] }, vec![row])?;
    /// assert_eq!(rows.strata(), [1, 1, 0, 0, 0, 0]);
    /// let sampler = Epochs::over(&f).batch(3).stratified(&rows.strata()); // each batch has a member of the group
    /// # let _ = sampler;
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn strata(&self) -> Vec<usize> {
        let mut patterns: Vec<Vec<bool>> = vec![vec![false; self.groups.len()]];
        let stratum = |i: usize| {
            let pattern: Vec<bool> = self.groups.iter().map(|group| group.contains(i)).collect();
            patterns.iter().position(|known| *known == pattern).unwrap_or_else(|| {
                patterns.push(pattern);
                patterns.len() - 1
            })
        };
        (0..self.terms()).map(stratum).collect()
    }

    pub(crate) fn rows(&self) -> &[IndexedRow] {
        &self.rows
    }
    pub(crate) fn check_point(&self, x: &S::Point) -> Result<(), Error> {
        self.score.check_point(x)
    }

    /// The smooth value on a sample of each row that is `needed`, and the slopes of those that are `wanted`. `None`: the
    /// sample has no member of a group of the row.
    pub(crate) fn evaluate(
        &mut self,
        x: &S::Point,
        sample: &Sample,
        needed: impl Fn(usize) -> bool,
        slopes: Option<RowSlopes<'_, S::Point>>,
    ) -> Vec<Option<Evaluation>> {
        let Self { score, groups, rows, part, .. } = self;
        over_groups(groups, rows, part, sample, needed, slopes, |part, slope| match slope {
            Some(slope) => score.value_and_gradient(x, part, slope),
            None => score.value(x, part),
        })
    }

    /// The true value of each row on a sample, if the rows have one.
    pub(crate) fn rates(&mut self, x: &S::Point, sample: &Sample) -> Option<Vec<Option<Evaluation>>> {
        let Self { rate, groups, rows, part, .. } = self;
        let rate = rate.as_mut()?;
        Some(over_groups(
            groups,
            rows,
            part,
            sample,
            |_| true,
            None::<RowSlopes<'_, S::Point>>,
            |part, _| rate.value(x, part),
        ))
    }
}

/// Where slopes of rows go.
pub(crate) struct RowSlopes<'a, V> {
    pub wanted: &'a [bool],
    pub slopes: &'a mut [V],
    pub scratch: &'a mut V,
}

/// Adds the means of the groups in a sample to the rows. `mean` gets the members of one group in the sample, and a place
/// for the slope if a row wants it.
fn over_groups<V: Vector>(
    groups: &[Members],
    rows: &[IndexedRow],
    part: &mut Sample,
    sample: &Sample,
    needed: impl Fn(usize) -> bool,
    mut slopes: Option<RowSlopes<'_, V>>,
    mut mean: impl FnMut(&Sample, Option<&mut V>) -> Evaluation,
) -> Vec<Option<Evaluation>> {
    let present: Vec<bool> = groups.iter().map(|group| sample.indices().iter().any(|&i| group.contains(i))).collect();
    let known = |(i, row): (usize, &IndexedRow)| {
        let zero = Evaluation { value: 0.0, rounding: 0.0 };
        (needed(i) && row.weights.iter().all(|&(group, _)| present[group])).then_some(zero)
    };
    let mut values: Vec<Option<Evaluation>> = rows.iter().enumerate().map(known).collect();
    if let Some(RowSlopes { wanted, slopes, .. }) = &mut slopes {
        slopes.iter_mut().zip(*wanted).filter(|(_, wanted)| **wanted).for_each(|(slope, _)| slope.set_zero());
    }
    for (index, group) in groups.iter().enumerate() {
        let weight = |row: &IndexedRow| {
            row.weights.iter().filter(|(group, _)| *group == index).map(|(_, weight)| weight).sum::<f64>()
        };
        let users: Vec<(usize, f64)> = (0..rows.len())
            .filter(|&i| values[i].is_some())
            .map(|i| (i, weight(&rows[i])))
            .filter(|(_, weight)| *weight != 0.0)
            .collect();
        if users.is_empty() {
            continue;
        }
        part.set_terms_of(sample, sample.indices().iter().copied().filter(|&i| group.contains(i)));
        let steep = |space: &RowSlopes<'_, V>| users.iter().any(|&(i, _)| space.wanted[i]);
        let mut space = slopes.as_mut().filter(|space| steep(space));
        let Evaluation { value, rounding } = mean(part, space.as_mut().map(|space| &mut *space.scratch));
        for &(i, weight) in &users {
            if let Some(sum) = &mut values[i] {
                sum.value += weight * value;
                sum.rounding += weight.abs() * rounding;
            }
            if let Some(space) = space.as_mut().filter(|space| space.wanted[i]) {
                space.slopes[i].add(weight, space.scratch);
            }
        }
    }
    values
}
