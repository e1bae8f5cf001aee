//! Two classes and several groups: a model whose means over groups are bounded, on all rows or from mini-batches.

mod rows;

pub use rows::{GroupRule, GroupedFile, GroupedRows};

use crate::{
    Problem,
    any_constraint::any_constraint,
    network::{Activation, DenseNetwork, ForwardPass},
    numerics::{minimum, shape},
};
use rows::check_groups;
use std::sync::Arc;
use strust::{
    Error,
    constraints::{AnyConstraint, ConstraintWrapper, Manifold, Retraction},
    expectation::{AnyExpectation, Expectation, MeanRow, Members, OnAllTerms},
    objective::{Evaluation, Objective},
    sample::Sample,
    vector::Vector,
};

const OWNER: &str = "grouped";
/// The weight of (λ/2)‖x‖², so that a model without hidden units has one minimum.
const RIDGE: f64 = 1e-3;

/// What a bound compares between groups. p is the predicted probability of the positive class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// The mean of p: |difference| ≤ bound.
    Score,
    /// The mean of p over the positive rows: equal opportunity, |difference| ≤ bound.
    Opportunity,
    /// The mean probability of the wrong class, a loss in [0, 1]: |difference| ≤ bound.
    Loss,
    /// The mean of p of a group is at least `bound` times that of each other group: the four-fifths rule for 0.8.
    Ratio,
}

/// lower ≤ Σ wⱼ·(mean of a score over group j) ≤ upper.
#[derive(Debug, Clone)]
pub struct GroupBound {
    /// The weights and the groups.
    pub parts: Vec<(f64, Members)>,
    /// The lower bound.
    pub lower: f64,
    /// The upper bound.
    pub upper: f64,
}

impl GroupBound {
    /// The same for an [`Expectation`].
    pub fn row(&self) -> MeanRow {
        let sum = self.parts[1..]
            .iter()
            .fold(MeanRow::weighted(self.parts[0].0, &self.parts[0].1), |row, (w, group)| row.plus(*w, group));
        sum.between(self.lower, self.upper)
    }
}

/// A number that each row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowNumber {
    /// The cross-entropy.
    Loss,
    /// p.
    Probability,
    /// The probability of the wrong class.
    Wrong,
}

impl RowNumber {
    /// The number and its slope, from the output z and the class y.
    #[inline(always)]
    fn at(self, z: f64, y: f64) -> (f64, f64) {
        let sign = 1.0 - 2.0 * y;
        let e = (-z.abs()).exp();
        let (far, near) = (e / (1.0 + e), 1.0 / (1.0 + e));
        let p = if z > 0.0 { near } else { far };
        match self {
            Self::Loss => ((sign * z).max(0.0) + e.ln_1p(), p - y),
            Self::Probability => (p, far * near),
            Self::Wrong => ((y - p).abs(), sign * far * near),
        }
    }
}

/// The mean of a number over rows; that of the loss has a regularizer.
#[derive(Debug, Clone)]
pub struct RowMeans {
    rows: Arc<GroupedRows>,
    network: DenseNetwork<f64>,
    number: RowNumber,
}

impl RowMeans {
    fn evaluate(&mut self, x: &Vec<f64>, sample: &Sample, gradient: Option<&mut Vec<f64>>) -> Evaluation {
        let Self { rows, network, number } = self;
        let (indices, share) = (sample.indices(), 1.0 / sample.len() as f64);
        let mut gradient = gradient;
        let head = |pass: ForwardPass<'_, f64>| {
            let mut sum = 0.0;
            for (z, &i) in pass.outputs.iter_mut().zip(indices) {
                let (value, slope) = number.at(*z, rows.positive[i]);
                sum += value;
                *z = share * slope;
            }
            share * sum
        };
        let batch = indices.iter().copied();
        let slope = gradient.as_deref_mut().map(Vec::as_mut_slice);
        let mut value = network.evaluate(x, &rows.columns, batch, head, slope);
        if *number == RowNumber::Loss {
            value += 0.5 * RIDGE * x.dot(x);
            if let Some(gradient) = gradient {
                gradient.add(RIDGE, x);
            }
        }
        Evaluation::new(value, f64::EPSILON)
    }
}

impl Objective for RowMeans {
    type Point = Vec<f64>;
    fn terms(&self) -> usize {
        self.rows.len()
    }
    fn value(&mut self, x: &Vec<f64>, sample: &Sample) -> Evaluation {
        self.evaluate(x, sample, None)
    }
    fn value_and_gradient(&mut self, x: &Vec<f64>, sample: &Sample, gradient: &mut Vec<f64>) -> Evaluation {
        self.evaluate(x, sample, Some(gradient))
    }
    fn check_point(&self, x: &Vec<f64>) -> Result<(), Error> {
        shape("parameters of a model", vec![self.network.parameters()], vec![x.len()])
    }
}

/// The mean cross-entropy of a logistic model, or of a network with one hidden layer, with the regularizer
/// (0.001/2)‖x‖², where means over groups of rows are bounded.
///
/// Two groups have one difference; with more, each group is compared with all rows that are in a group.
///
/// ```
/// use strust::{methods::InExpectation, prelude::*};
/// use strust_problems::{Problem, grouped::{Compared, Grouped, GroupedRows}};
///
/// let rows = GroupedRows::made(1000, &[(0.4, 1.0), (0.6, 1.0)], 0);
/// let mut f = Grouped::new(rows, 0, Compared::Score, 0.02)?;
/// let (method, start) = (InExpectation::new(f.expectation()?), f.start(0));
/// let report = minimize(&mut f).method(method).batch(64).stop(Stop::epochs(100)).start(start)?;
/// let rows = f.expectation()?.measure(report.point());
/// assert!(rows[0].violation() < 0.02, "{rows:?}");
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Grouped {
    loss: RowMeans,
    compared: Compared,
    bound: f64,
    is_network: bool,
    test: Option<Arc<GroupedRows>>,
}

crate::numerics::objective_of!(Grouped, loss: RowMeans);

impl Grouped {
    /// A model with so many hidden units, none for a logistic model, of at least two groups.
    pub fn new(rows: GroupedRows, hidden: usize, compared: Compared, bound: f64) -> Result<Self, Error> {
        check_groups(rows.groups())?;
        let widths: Vec<usize> = [rows.inputs(), hidden, 1].into_iter().filter(|&width| width > 0).collect();
        let network = DenseNetwork::new(OWNER, &widths, Activation::Relu)?;
        let loss = RowMeans { rows: Arc::new(rows), network, number: RowNumber::Loss };
        let f = Self { loss, compared, bound, is_network: hidden > 0, test: None };
        f.expectation()?;
        Ok(f)
    }

    /// The same with rows that measure the accuracy.
    #[must_use]
    pub fn with_test(self, rows: GroupedRows) -> Self {
        Self { test: Some(Arc::new(rows)), ..self }
    }

    /// Whether it has hidden units.
    #[must_use]
    pub fn is_network(&self) -> bool {
        self.is_network
    }

    /// The same model and bounds for other rows, such as held-out ones.
    #[must_use]
    pub fn on(&self, rows: GroupedRows) -> Self {
        Self { loss: RowMeans { rows: Arc::new(rows), ..self.loss.clone() }, ..self.clone() }
    }

    /// The mean that is bounded.
    #[must_use]
    pub fn score(&self) -> RowMeans {
        let number = if self.compared == Compared::Loss { RowNumber::Wrong } else { RowNumber::Probability };
        RowMeans { number, ..self.loss.clone() }
    }

    /// The bounds.
    #[must_use]
    pub fn bounds(&self) -> Vec<GroupBound> {
        let rows = &self.loss.rows;
        let counts = |i: usize| self.compared != Compared::Opportunity || rows.positive[i] > 0.0;
        let group = |group: usize| Members::new(rows.len(), |i| rows.group[i] == Some(group) && counts(i));
        let groups: Vec<Members> = (0..rows.groups()).map(group).collect();
        let gap = |first: &Members, second: &Members| GroupBound {
            parts: vec![(1.0, first.clone()), (-1.0, second.clone())],
            lower: -self.bound,
            upper: self.bound,
        };
        if self.compared == Compared::Ratio {
            let pairs = groups.iter().enumerate().flat_map(|(i, first)| {
                groups.iter().enumerate().filter(move |(j, _)| i != *j).map(move |(_, second)| (first, second))
            });
            let ratio = |(first, second): (&Members, &Members)| GroupBound {
                parts: vec![(1.0, first.clone()), (-self.bound, second.clone())],
                lower: 0.0,
                upper: f64::INFINITY,
            };
            return pairs.map(ratio).collect();
        }
        if let [first, second] = &groups[..] {
            return vec![gap(first, second)];
        }
        let all = Members::new(rows.len(), |i| rows.group[i].is_some() && counts(i));
        groups.iter().map(|group| gap(group, &all)).collect()
    }

    /// The bounds as expectations, for methods that know them from mini-batches.
    pub fn expectation(&self) -> Result<Expectation<RowMeans>, Error> {
        Expectation::new(self.score(), self.bounds().iter().map(GroupBound::row).collect())
    }

    /// The bounds as exact constraints. Each evaluation is a pass over all rows.
    pub fn constraint(&self) -> Result<GroupConstraint, Error> {
        Ok(GroupConstraint(self.expectation()?.on_all_terms()))
    }

    /// The share of the rows whose class is predicted.
    pub fn accuracy(&mut self, x: &[f64]) -> f64 {
        let RowMeans { rows, network, .. } = &mut self.loss;
        let mut right = 0;
        for first in (0..rows.len()).step_by(strust::objective::PIECE) {
            let piece = first..rows.len().min(first + strust::objective::PIECE);
            let pass = network.forward(x, &rows.columns, piece.clone());
            right += pass.outputs.iter().zip(piece).filter(|(z, i)| (**z > 0.0) == (rows.positive[*i] > 0.0)).count();
        }
        right as f64 / rows.len() as f64
    }
}

/// The bounds of a [`Grouped`] on all rows. It is no manifold: methods that need one are refused.
#[derive(Debug, Clone)]
pub struct GroupConstraint(OnAllTerms<RowMeans>);

impl ConstraintWrapper for GroupConstraint {
    type Inner = OnAllTerms<RowMeans>;
    fn wrapped(&self) -> &Self::Inner {
        &self.0
    }
    fn wrapped_mut(&mut self) -> &mut Self::Inner {
        &mut self.0
    }
}

impl Manifold for GroupConstraint {
    fn project_tangent(&mut self, _: &Vec<f64>, _: &mut Vec<f64>) -> Result<(), Error> {
        Err(no_manifold())
    }
    fn restore(&mut self, _: &mut Vec<f64>) -> Result<(), Error> {
        Err(no_manifold())
    }
}

fn no_manifold() -> Error {
    Error::Retraction {
        set: "bounds between groups",
        why: "they are inequalities, on which no point can be projected: use str-sqp or in-expectation".into(),
    }
}

impl Problem for Grouped {
    /// That of [`DenseNetwork::start`].
    fn start(&self, seed: u64) -> Vec<f64> {
        self.loss.network.start(seed)
    }
    /// The minimum that [`StrSqp`](strust::methods::StrSqp) finds on all rows, for a logistic model.
    fn optimum(&self) -> Option<f64> {
        let constraint = self.constraint().ok().filter(|_| !self.is_network)?;
        minimum(self.loss.clone(), &constraint, self.start(0))
    }
    fn test_metric(&mut self, x: &Vec<f64>) -> Option<f64> {
        let rows = self.test.clone()?;
        Some(Self { loss: RowMeans { rows, ..self.loss.clone() }, ..self.clone() }.accuracy(x))
    }
    fn any_constraint(&self, _: Retraction) -> Option<AnyConstraint<Vec<f64>>> {
        self.constraint().ok().map(any_constraint)
    }
    fn any_expectation(&self) -> Option<AnyExpectation<Vec<f64>>> {
        self.expectation().ok().map(Expectation::hidden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;
    use strust::{
        constraints::Constraint, diagnostics::jacobian_slope, methods::InExpectation, objective::full_value, prelude::*,
    };

    fn problem(hidden: usize, compared: Compared, bound: f64) -> Grouped {
        Grouped::new(GroupedRows::made(300, &[(0.3, 0.5), (0.7, 2.0)], 1), hidden, compared, bound).unwrap()
    }

    #[test]
    fn the_contract_of_a_problem_holds() {
        for (hidden, compared) in
            [(0, Compared::Score), (5, Compared::Opportunity), (5, Compared::Loss), (0, Compared::Ratio)]
        {
            let mut f = problem(hidden, compared, 0.05);
            contract::holds(&mut f, 1.9..2.1, 1e-12);
            let mut c = f.constraint().unwrap();
            let y = vec![0.7; c.new_residual().len()];
            let (slope, mismatch) = jacobian_slope(&mut c, &f.start(0), &problem(hidden, compared, 0.05).start(1), &y);
            assert!(mismatch < 1e-12 && (hidden == 0 || (1.9..2.1).contains(&slope)), "{slope} {mismatch}");
        }
    }

    #[test]
    fn from_mini_batches_and_on_all_rows_the_minimum_is_the_same() {
        for (compared, bound) in
            [(Compared::Score, 0.02), (Compared::Opportunity, 0.02), (Compared::Loss, 0.05), (Compared::Ratio, 0.8)]
        {
            let mut f = problem(0, compared, bound);
            let optimum = f.optimum().unwrap();
            let free = minimize(&mut f.clone()).full_batch().start(f.start(0)).unwrap();
            assert!(full_value(&mut f, free.point()) < optimum - 1e-4, "{compared:?}: the bound has a cost");
            let mut method = InExpectation::new(f.expectation().unwrap());
            let start = f.start(0);
            let report = minimize(&mut f).method(&mut method).batch(32).stop(Stop::epochs(20)).start(start).unwrap();
            let end = method.finish(&mut f, &report.state, 500).unwrap();
            assert!((end.certificate.value - optimum).abs() < 1e-8, "{compared:?}: {:?} {optimum}", end.certificate);
            assert!(end.rows.iter().all(|row| row.violation() < 1e-8), "{compared:?}: {:?}", end.rows);
        }
    }

    #[test]
    fn methods_that_need_a_manifold_are_refused() {
        let (f, mut x) = (problem(0, Compared::Score, 0.1), vec![0.0; 11]);
        let error = f.constraint().unwrap().restore(&mut x).unwrap_err().to_string();
        assert!(error.contains("they are inequalities"), "{error}");
        let alone = GroupedRows::made(20, &[(1.0, 1.0)], 0);
        let error = Grouped::new(alone, 0, Compared::Score, 0.1).unwrap_err().to_string();
        assert_eq!(error, "grouped: `groups` is 1, but must be at least 2");
        let empty = GroupedRows::made(20, &[(0.01, 1.0), (0.99, 1.0)], 0);
        assert!(Grouped::new(empty, 0, Compared::Score, 0.1).is_err(), "nobody is in the first group");
    }
}
