//! Rows on all terms: as exact constraints, and measured with their standard errors.

use super::{Expectation, IndexedRow, Members};
use crate::{
    Error,
    constraints::{Constraint, Sense},
    objective::{Evaluation, Objective, PIECE},
    sample::Sample,
    vector::Vector,
};
use std::{borrow::BorrowMut, marker::PhantomData};

/// A row measured on all terms of its score.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MeasuredRow {
    /// Σⱼ wⱼ·(mean over group j) of the true score, if there is one, else of the smooth one.
    pub value: f64,
    /// Its standard error, if the terms, with the groups they are in, are drawn from a larger population. NaN for a group
    /// with one member.
    pub standard_error: f64,
    /// The same sum of the smooth score.
    pub smooth: f64,
    /// The lower bound; −∞ without one.
    pub lower: f64,
    /// The upper bound; ∞ without one.
    pub upper: f64,
}

impl MeasuredRow {
    /// How far the value is outside of its bounds.
    #[must_use]
    pub fn violation(&self) -> f64 {
        (self.value - self.upper).max(self.lower - self.value).max(0.0)
    }
}

/// A standard error comes from the means of this many parts of a stratum. Its own relative error is about 7 %.
const PARTS: usize = 100;

/// The scores of a stratum: the terms that are in the same groups.
struct Stratum {
    /// One of its terms.
    first: usize,
    terms: f64,
    mean: f64,
    /// Σ (s − mean)² over its terms.
    squares: f64,
}

impl Stratum {
    fn new<O: Objective>(f: &mut O, x: &O::Point, members: &[usize], part: &mut Sample) -> Self {
        let count = members.len().min(PARTS.max(members.len().div_ceil(PIECE)));
        let (all, terms) = (Sample::range(0..0), members.len() as f64);
        let means: Vec<(f64, f64)> = (0..count)
            .map(|first| {
                part.set_terms_of(&all, members.iter().copied().skip(first).step_by(count));
                (part.len() as f64 / terms, f.value(x, part).value)
            })
            .collect();
        let mean = means.iter().map(|(share, mean)| share * mean).sum::<f64>();
        let spread = means.iter().map(|(share, part)| share * (part - mean).powi(2)).sum::<f64>();
        let squares = spread / (count as f64 - 1.0).max(1.0) * terms * (terms - 1.0);
        Self { first: members[0], terms, mean, squares }
    }
}

/// A group as the sum of its strata.
struct GroupMean<'a> {
    group: &'a Members,
    terms: f64,
    mean: f64,
}

impl<'a> GroupMean<'a> {
    fn new(group: &'a Members, strata: &[Stratum]) -> Self {
        let own = || strata.iter().filter(|stratum| group.contains(stratum.first));
        let terms = own().map(|stratum| stratum.terms).sum::<f64>();
        Self { group, terms, mean: own().map(|stratum| stratum.terms / terms * stratum.mean).sum() }
    }
}

impl IndexedRow {
    fn value(&self, means: &[GroupMean<'_>]) -> f64 {
        self.weights.iter().map(|&(group, weight)| weight * means[group].mean).sum()
    }

    /// Σᵢ (Σⱼ wⱼ·(sᵢ − mean of group j)/√(nⱼ(nⱼ − 1)) over the groups of term i)²: how a term that is drawn again moves the
    /// means of all its groups. For disjoint groups it is Σⱼ wⱼ²·(variance in group j)/nⱼ.
    fn variance(&self, means: &[GroupMean<'_>], strata: &[Stratum]) -> f64 {
        let of_stratum = |stratum: &Stratum| {
            let (mut slope, mut moved) = (0.0, 0.0);
            for &(group, weight) in &self.weights {
                let GroupMean { group, terms, mean } = means[group];
                if group.contains(stratum.first) {
                    let weight = weight / (terms * (terms - 1.0)).sqrt();
                    slope += weight;
                    moved += weight * (stratum.mean - mean);
                }
            }
            slope * slope * stratum.squares + moved * moved * stratum.terms
        };
        strata.iter().map(of_stratum).sum()
    }
}

impl<S: Objective, T: Objective<Point = S::Point>> Expectation<S, T> {
    /// Measures the rows on all terms. To measure them on held-out terms, make the same rows over those.
    pub fn measure(&mut self, x: &S::Point) -> Vec<MeasuredRow> {
        let mut members: Vec<Vec<usize>> = Vec::new();
        // Stratum 0 is in no group.
        for (i, stratum) in self.strata().into_iter().enumerate().filter(|(_, stratum)| *stratum > 0) {
            members.resize(members.len().max(stratum), Vec::new());
            members[stratum - 1].push(i);
        }
        let Self { score, rate, groups, rows, part } = self;
        let smooth: Vec<Stratum> = members.iter().map(|members| Stratum::new(score, x, members, part)).collect();
        let rates: Option<Vec<Stratum>> =
            rate.as_mut().map(|rate| members.iter().map(|members| Stratum::new(rate, x, members, part)).collect());
        let strata = rates.as_ref().unwrap_or(&smooth);
        let means = |strata| groups.iter().map(|group| GroupMean::new(group, strata)).collect::<Vec<_>>();
        let (smooth, means) = (means(&smooth), means(strata));
        let measured = |row: &IndexedRow| MeasuredRow {
            value: row.value(&means),
            standard_error: row.variance(&means, strata).sqrt(),
            smooth: row.value(&smooth),
            lower: row.lower,
            upper: row.upper,
        };
        rows.iter().map(measured).collect()
    }

    /// The smooth rows as exact constraints, for methods that see all terms, such as [`StrSqp`](crate::methods::StrSqp).
    ///
    /// ```
    /// use strust::{expectation::{constraint_from_terms, MeanRow, Members}, prelude::*};
    /// let mut f = from_terms(4, |i, x: &Vec<f64>, g| { let r = x[0] - i as f64; g[0] += r; 0.5 * r * r });
    /// let row = MeanRow::mean(&Members::new(4, |i| i < 2)).at_most(0.5);
    /// let score = |i: usize, x: &Vec<f64>, g: &mut Vec<f64>| { let s = i as f64 + 1.0; g[0] += s; s * x[0] };
    /// let rows = constraint_from_terms(4, score, vec![row])?; // 1.5·x ≤ 0.5
    /// let method = StrSqp::new(StrSqpConfig::default(), rows.on_all_terms())?;
    /// let report = minimize(&mut f).method(method).full_batch().start(vec![0.0])?;
    /// assert!((report.point()[0] - 1.0 / 3.0).abs() < 1e-8);
    /// # Ok::<(), strust::Error>(())
    /// ```
    #[must_use]
    pub fn on_all_terms(self) -> OnAllTerms<S, T> {
        let shifts = vec![0.0; self.len()];
        OnAllTerms::new(self, &shifts)
    }

    /// The smooth value of each row on all terms, and the slopes.
    fn evaluate_all(&mut self, x: &S::Point, mut slopes: Option<&mut [S::Point]>) -> Vec<Evaluation> {
        let Self { score, groups, rows, part, .. } = self;
        let mut values = vec![Evaluation { value: 0.0, rounding: 0.0 }; rows.len()];
        slopes.iter_mut().flat_map(|slopes| slopes.iter_mut()).for_each(Vector::set_zero);
        let mut scratch = slopes.is_some().then(|| x.zeros_like());
        let all = Sample::range(0..0);
        for (index, group) in groups.iter().enumerate() {
            let members = group.list();
            for piece in members.chunks(PIECE) {
                part.set_terms_of(&all, piece.iter().copied());
                let mean = match &mut scratch {
                    Some(slope) => score.value_and_gradient(x, part, slope),
                    None => score.value(x, part),
                };
                let share = piece.len() as f64 / members.len() as f64;
                for (i, row) in rows.iter().enumerate() {
                    for &(_, weight) in row.weights.iter().filter(|(group, _)| *group == index) {
                        values[i].value += share * weight * mean.value;
                        values[i].rounding += share * weight.abs() * mean.rounding;
                        if let (Some(slopes), Some(slope)) = (&mut slopes, &scratch) {
                            slopes[i].add(share * weight, slope);
                        }
                    }
                }
            }
        }
        values
    }
}

/// One side of a row: sign·(value − bound) ≤ 0 or = 0.
#[derive(Debug, Clone)]
struct RowSide {
    row: usize,
    sign: f64,
    bound: f64,
    sense: Sense,
}

/// The smooth rows of an [`Expectation`] on all terms, as exact constraints c(x) = 0 and c(x) ≤ 0:
/// [`Expectation::on_all_terms`]. An evaluation is a pass over the groups; the latest one is kept.
#[derive(Debug, Clone)]
pub struct OnAllTerms<S: Objective, T = S, E = Expectation<S, T>> {
    expectation: E,
    sides: Vec<RowSide>,
    /// The latest values with their point.
    values: Option<(S::Point, Vec<Evaluation>)>,
    /// The latest slopes with their point.
    slopes: Option<(S::Point, Vec<S::Point>)>,
    rate: PhantomData<T>,
}

impl<S, T, E> OnAllTerms<S, T, E>
where
    S: Objective,
    T: Objective<Point = S::Point>,
    E: BorrowMut<Expectation<S, T>>,
{
    /// The rows, with bounds for the smooth values that are `shifts` higher.
    pub(crate) fn new(expectation: E, shifts: &[f64]) -> Self {
        let mut sides = Vec::new();
        for (row, (IndexedRow { lower, upper, .. }, shift)) in expectation.borrow().rows.iter().zip(shifts).enumerate()
        {
            if lower >= upper {
                sides.push(RowSide { row, sign: 1.0, bound: upper + shift, sense: Sense::Equal });
                continue;
            }
            for (sign, bound) in [(1.0, upper), (-1.0, lower)] {
                if bound.is_finite() {
                    sides.push(RowSide { row, sign, bound: bound + shift, sense: Sense::AtMost });
                }
            }
        }
        Self { expectation, sides, values: None, slopes: None, rate: PhantomData }
    }

    fn values(&mut self, x: &S::Point) -> &[Evaluation] {
        if !self.values.as_ref().is_some_and(|(at, _)| same(at, x)) {
            self.values = Some((x.clone(), self.expectation.borrow_mut().evaluate_all(x, None)));
        }
        self.values.as_ref().map_or(&[], |(_, values)| values)
    }

    fn slopes(&mut self, x: &S::Point) -> &[S::Point] {
        if !self.slopes.as_ref().is_some_and(|(at, _)| same(at, x)) {
            let (_, mut slopes) = self
                .slopes
                .take()
                .unwrap_or_else(|| (x.clone(), vec![x.zeros_like(); self.expectation.borrow().len()]));
            self.expectation.borrow_mut().evaluate_all(x, Some(&mut slopes));
            self.slopes = Some((x.clone(), slopes));
        }
        self.slopes.as_ref().map_or(&[], |(_, slopes)| slopes)
    }

    /// The Euclidean norm of the violations.
    pub(crate) fn violation(&mut self, x: &S::Point) -> f64 {
        self.values(x);
        let values = self.values.iter().flat_map(|(_, values)| values);
        values
            .zip(&self.expectation.borrow().rows)
            .map(|(value, row)| row.violation(value.value).powi(2))
            .sum::<f64>()
            .sqrt()
    }
    /// out ← out + Σ λᵢ·∇(row i), for one multiplier of each row.
    pub(crate) fn add_rows(&mut self, x: &S::Point, multipliers: &[f64], out: &mut S::Point) {
        self.slopes(x).iter().zip(multipliers).for_each(|(slope, &multiplier)| out.add(multiplier, slope));
    }
}

/// Whether two points have the same bits.
fn same<V: Vector>(a: &V, b: &V) -> bool {
    (0..a.dimension()).all(|i| a.component(i).to_bits() == b.component(i).to_bits())
}

impl<S, T, E> Constraint for OnAllTerms<S, T, E>
where
    S: Objective,
    T: Objective<Point = S::Point>,
    E: BorrowMut<Expectation<S, T>>,
{
    type Point = S::Point;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0; self.sides.len()]
    }
    fn residual(&mut self, x: &S::Point, c: &mut Vec<f64>) {
        self.values(x);
        let Some((_, values)) = &self.values else { return };
        c.iter_mut().zip(&self.sides).for_each(|(c, side)| *c = side.sign * (values[side.row].value - side.bound));
    }
    fn jvp(&mut self, x: &S::Point, v: &S::Point, out: &mut Vec<f64>) {
        let products: Vec<f64> = self.slopes(x).iter().map(|slope| slope.dot(v)).collect();
        out.iter_mut().zip(&self.sides).for_each(|(out, side)| *out = side.sign * products[side.row]);
    }
    fn add_vjp(&mut self, x: &S::Point, a: f64, y: &Vec<f64>, out: &mut S::Point) {
        let mut multipliers = vec![0.0; self.expectation.borrow().len()];
        self.sides.iter().zip(y).for_each(|(side, y)| multipliers[side.row] += a * side.sign * y);
        self.add_rows(x, &multipliers, out);
    }
    /// A row is a difference of its means and its bound.
    fn rounding(&self, _: &S::Point, norm: f64) -> f64 {
        let of_means = self.values.iter().flat_map(|(_, values)| values).map(|value| value.rounding).sum::<f64>();
        let of_bounds = self.sides.iter().map(|side| side.bound.abs()).sum::<f64>();
        of_means + S::Point::EPSILON * (norm + of_bounds)
    }
    fn sense(&self, row: usize) -> Sense {
        self.sides[row].sense
    }
    fn check_point(&self, x: &S::Point) -> Result<(), Error> {
        self.expectation.borrow().check_point(x)
    }
}
