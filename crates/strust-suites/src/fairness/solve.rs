//! The ways to fit under rows: constraints that are expectations, and a Lagrangian with two tuned rates.

use super::{FairnessSettings, data::GroupedRows};
use serde::Serialize;
use std::cell::RefCell;
use strust::{
    expectation::{Expectation, MeanRow, MeasuredRow, Members},
    methods::{InExpectation, SqpVerdict},
    prelude::*,
    samplers::Sampler,
    schedule::Schedule,
};
use strust_baselines::{Adam, AdamConfig};
use strust_lab::Error;

/// What the rows bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// The mean probabilities of the groups.
    Parity,
    /// The same among the positive rows: equal opportunity.
    Opportunity,
}

/// −bound ≤ mean over one group − mean over another ≤ bound.
#[derive(Debug, Clone)]
pub struct Gap {
    groups: [Members; 2],
    bound: f64,
}

impl Gap {
    fn row(&self) -> MeanRow {
        let [first, second] = &self.groups;
        MeanRow::difference(first, second).between(-self.bound, self.bound)
    }
    /// The gap in a sample, with its slope; `None` if the sample has no member of a group.
    fn in_sample(&self, rows: &GroupedRows, x: &[f64], sample: &Sample) -> Option<(f64, Vec<f64>)> {
        let (mut value, mut slope) = (0.0, vec![0.0; x.len()]);
        for (sign, group) in [1.0, -1.0].into_iter().zip(&self.groups) {
            let members: Vec<usize> = sample.indices().iter().copied().filter(|&i| group.contains(i)).collect();
            let share = sign / members.len() as f64;
            if members.is_empty() {
                return None;
            }
            value += members.into_iter().map(|i| share * rows.add_probability(i, x, share, &mut slope)).sum::<f64>();
        }
        Some((value, slope))
    }
}

/// The gaps of a task: with two groups their difference, with more each group against all of them.
pub fn gaps(rows: &GroupedRows, kind: Kind, groups: usize, bound: f64) -> Vec<Gap> {
    let counts = |i: usize| kind == Kind::Parity || rows.positive[i];
    let members = |group: usize| Members::new(rows.len(), |i| rows.group[i] == Some(group) && counts(i));
    if groups == 2 {
        return vec![Gap { groups: [members(0), members(1)], bound }];
    }
    let all = Members::new(rows.len(), |i| rows.group[i].is_some() && counts(i));
    (0..groups).map(|group| Gap { groups: [members(group), all.clone()], bound }).collect()
}

/// f and the largest violation on all rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OnAllRows {
    pub value: f64,
    pub violation: f64,
}

/// A point after each epoch, and the last one.
pub struct EpochCourse {
    pub epochs: Vec<OnAllRows>,
    pub point: Vec<f64>,
}

/// A task with its training rows.
pub struct Fit<'a> {
    pub rows: &'a GroupedRows,
    pub gaps: Vec<Gap>,
    pub settings: FairnessSettings,
}

impl Fit<'_> {
    fn expectation(&self) -> Result<Expectation<impl Objective<Point = Vec<f64>>>, Error> {
        Ok(Expectation::new(self.rows.probability(), self.gaps.iter().map(Gap::row).collect())?)
    }
    fn start(&self) -> Vec<f64> {
        vec![0.0; self.rows.parameters]
    }
    /// The rows on all terms of this fit, with their standard errors.
    pub fn measured(&self, x: &Vec<f64>) -> Result<Vec<MeasuredRow>, Error> {
        Ok(self.expectation()?.measure(x))
    }
    fn measure(&self, x: &Vec<f64>) -> Result<OnAllRows, Error> {
        let violation = self.measured(x)?.iter().map(MeasuredRow::violation).fold(0.0, f64::max);
        Ok(OnAllRows { value: self.rows.loss().value(x, &Sample::range(0..self.rows.len())).value, violation })
    }

    /// Minimizes with steps of a method on stratified mini-batches, measured after each epoch.
    fn epochs<S: State<Point = Vec<f64>>>(
        &self,
        seed: u64,
        mut state: S,
        mut step: impl FnMut(&mut S, &Sample) -> Result<(), Error>,
    ) -> Result<(EpochCourse, S), Error> {
        let FairnessSettings { epochs, batch, .. } = self.settings;
        let batch = batch.min(self.rows.len());
        let strata = self.expectation()?.strata();
        let mut sampler = Epochs::new(self.rows.len(), batch, seed)?.stratified(&strata);
        let (mut sample, mut measured) = (Sample::default(), Vec::new());
        for k in 0..epochs * sampler.steps_per_epoch() {
            sampler.draw(k, &mut sample);
            step(&mut state, &sample)?;
            if (k + 1) % sampler.steps_per_epoch() == 0 {
                measured.push(self.measure(state.point())?);
            }
        }
        Ok((EpochCourse { epochs: measured, point: state.point().clone() }, state))
    }

    /// `InExpectation` with its default, and its end: the measurement, and whether it has converged.
    pub fn in_expectation(&self, seed: u64) -> Result<(EpochCourse, OnAllRows, bool), Error> {
        let mut f = self.rows.loss();
        let mut method = InExpectation::new(self.expectation()?);
        let state = method.init(&mut f, self.start())?;
        let step = |state: &mut _, sample: &Sample| Ok(method.step(&mut f, state, sample).map(drop)?);
        let (course, state) = self.epochs(seed, state, step)?;
        let end = method.finish(&mut f, &state, self.settings.end)?;
        let converged = end.certificate.verdict == SqpVerdict::Converged;
        Ok((EpochCourse { point: end.state.point().clone(), ..course }, self.measure(end.state.point())?, converged))
    }

    /// The minimum, from the origin on all rows, with the sum of the sizes of its multipliers: f and the multipliers
    /// belong to a point with the verdict *converged*. Without `constrained`, the minimum of f alone.
    pub fn minimum(&self, constrained: bool) -> Result<Option<FairMinimum>, Error> {
        let mut f = self.rows.loss();
        // A probability is below 2.
        let free = || vec![MeanRow::mean(&Members::all(self.rows.len())).at_most(2.0)];
        let bounds = if constrained { self.gaps.iter().map(Gap::row).collect() } else { free() };
        let mut method = InExpectation::new(Expectation::new(self.rows.probability(), bounds)?);
        let state = method.init(&mut f, self.start())?;
        let end = method.finish(&mut f, &state, 2000)?;
        if end.certificate.verdict != SqpVerdict::Converged {
            return Ok(None);
        }
        let multipliers = end.state.multipliers().iter().map(|y| y.abs()).sum();
        Ok(Some(FairMinimum { value: end.certificate.value, multipliers, point: end.state.point().clone() }))
    }

    /// Adam with a cosine on f + Σ μᵢcᵢ of the mini-batch. After each step μ ← μ + ηc, for each of the two bounds, at least 0.
    pub fn lagrangian(&self, seed: u64, rate: f64, dual_rate: f64) -> Result<EpochCourse, Error> {
        let Self { rows, gaps, settings } = self;
        let n = rows.len();
        let mut loss = rows.loss();
        // The multipliers of both bounds of each row, and the rows of the last mini-batch.
        let multipliers = RefCell::new(vec![[0.0_f64; 2]; gaps.len()]);
        let seen = RefCell::new(vec![None; gaps.len()]);
        let mut phi = from_fn(n, |x: &Vec<f64>, sample: &Sample, gradient: Option<&mut Vec<f64>>| {
            let Some(gradient) = gradient else { return loss.value(x, sample).value };
            let value = loss.value_and_gradient(x, sample, gradient).value;
            for ((gap, seen), [upper, lower]) in gaps.iter().zip(&mut *seen.borrow_mut()).zip(&*multipliers.borrow()) {
                *seen = gap.in_sample(rows, x, sample).map(|(value, slope)| {
                    gradient.add(upper - lower, &slope);
                    value
                });
            }
            value
        });
        let steps = settings.epochs * n.div_ceil(settings.batch.min(n)) as u64;
        let config = AdamConfig { learning_rate: rate, ..AdamConfig::default() };
        let mut adam: Adam<Vec<f64>> = Adam::new(config)?.schedule(Schedule::cosine(steps));
        let state = adam.init(&mut phi, self.start())?;
        let step = |state: &mut _, sample: &Sample| {
            adam.step(&mut phi, state, sample)?;
            for ((gap, seen), [upper, lower]) in gaps.iter().zip(&*seen.borrow()).zip(&mut *multipliers.borrow_mut()) {
                let Some(value) = seen else { continue };
                *upper = (*upper + dual_rate * (value - gap.bound)).max(0.0);
                *lower = (*lower - dual_rate * (value + gap.bound)).max(0.0);
            }
            Ok(())
        };
        Ok(self.epochs(seed, state, step)?.0)
    }
}

/// A minimum.
pub struct FairMinimum {
    pub value: f64,
    /// The sum of the sizes of the multipliers.
    pub multipliers: f64,
    pub point: Vec<f64>,
}
