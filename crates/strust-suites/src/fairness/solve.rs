//! The ways to fit under bounds: constraints that are expectations, and a Lagrangian with two tuned rates.

use super::FairnessSettings;
use std::cell::RefCell;
use strust::{
    expectation::{MeasuredRow, Members},
    methods::{ExpectationEnd, InExpectation, SqpVerdict},
    objective::full_value,
    prelude::*,
    samplers::Sampler,
    schedule::Schedule,
};
use strust_baselines::{Adam, AdamConfig};
use strust_lab::Error;
use strust_problems::{
    Problem,
    grouped::{GroupBound, Grouped},
};

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

/// A point on all rows with its verdict.
#[derive(Debug, Clone)]
pub struct FairEnd {
    pub measured: OnAllRows,
    /// The sum of the sizes of the multipliers.
    pub multipliers: f64,
    pub point: Vec<f64>,
    pub converged: bool,
}

impl FairEnd {
    /// f + 2·Σ|λ|·violation, an exact penalty.
    pub fn merit(&self, of: OnAllRows) -> f64 {
        of.value + 2.0 * self.multipliers * of.violation
    }
}

/// A task with its rows.
pub struct Fit {
    pub f: Grouped,
    pub settings: FairnessSettings,
}

impl Fit {
    /// The origin for a logistic model. There the units of a network would all be equal.
    fn start(&self, seed: u64) -> Vec<f64> {
        let start = self.f.start(seed);
        if self.f.is_network() { start } else { vec![0.0; start.len()] }
    }
    /// The bounds on all rows, with their standard errors.
    pub fn measured(&self, x: &Vec<f64>) -> Result<Vec<MeasuredRow>, Error> {
        Ok(self.f.expectation()?.measure(x))
    }
    fn measure(&self, x: &Vec<f64>) -> Result<OnAllRows, Error> {
        let violation = self.measured(x)?.iter().map(MeasuredRow::violation).fold(0.0, f64::max);
        Ok(OnAllRows { value: full_value(&mut self.f.clone(), x), violation })
    }

    /// Minimizes with steps of a method on stratified mini-batches, measured after each epoch.
    fn epochs<S: State<Point = Vec<f64>>>(
        &self,
        seed: u64,
        mut state: S,
        mut step: impl FnMut(&mut S, &Sample) -> Result<(), Error>,
    ) -> Result<(EpochCourse, S), Error> {
        let FairnessSettings { epochs, batch, .. } = self.settings;
        let rows = self.f.terms();
        let strata = self.f.expectation()?.strata();
        let mut sampler = Epochs::new(rows, batch.min(rows), seed)?.stratified(&strata);
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

    /// `InExpectation` with its default, and its end.
    pub fn in_expectation(&self, seed: u64) -> Result<(EpochCourse, FairEnd), Error> {
        let mut f = self.f.clone();
        let mut method = InExpectation::new(f.expectation()?);
        let start = self.start(seed);
        let state = method.init(&mut f, start)?;
        let step = |state: &mut _, sample: &Sample| Ok(method.step(&mut f, state, sample).map(drop)?);
        let (course, state) = self.epochs(seed, state, step)?;
        let end = method.finish(&mut f, &state, self.settings.end)?;
        Ok((course, self.end(&end)?))
    }

    /// The minimum of a logistic model, from the origin on all rows. `None` without the verdict *converged*.
    pub fn minimum(&self) -> Result<Option<FairEnd>, Error> {
        let mut f = self.f.clone();
        let mut method = InExpectation::new(f.expectation()?);
        let start = self.start(0);
        let state = method.init(&mut f, start)?;
        let end = self.end(&method.finish(&mut f, &state, 2000)?)?;
        Ok(Some(end).filter(|end| end.converged))
    }

    fn end(&self, end: &ExpectationEnd<Vec<f64>>) -> Result<FairEnd, Error> {
        Ok(FairEnd {
            measured: self.measure(end.state.point())?,
            multipliers: end.state.multipliers().iter().map(|y| y.abs()).sum(),
            point: end.state.point().clone(),
            converged: end.certificate.verdict == SqpVerdict::Converged,
        })
    }

    /// `Auto` without the bounds: f on all rows at its answer, which it returns.
    pub fn free(&self) -> Result<(f64, Vec<f64>), Error> {
        let mut f = self.f.clone();
        let mut method = Auto::default();
        let start = self.start(0);
        let state = method.init(&mut f, start)?;
        let step = |state: &mut _, sample: &Sample| Ok(method.step(&mut f, state, sample).map(drop)?);
        let (course, _) = self.epochs(0, state, step)?;
        Ok((self.measure(&course.point)?.value, course.point))
    }

    /// Adam with a cosine on f + Σ μᵢcᵢ of the mini-batch. After each step μ ← μ + ηc, for each of the two sides, at least 0.
    pub fn lagrangian(&self, seed: u64, rate: f64, dual_rate: f64) -> Result<EpochCourse, Error> {
        let (bounds, settings) = (self.f.bounds(), self.settings);
        let (mut loss, mut score, mut part, mut slope) =
            (self.f.clone(), self.f.score(), Sample::default(), Vec::new());
        // The multipliers of both sides of each bound, and the bounds on the last mini-batch.
        let multipliers = RefCell::new(vec![[0.0_f64; 2]; bounds.len()]);
        let seen = RefCell::new(vec![None; bounds.len()]);
        let mut phi = from_fn(loss.terms(), |x: &Vec<f64>, sample: &Sample, gradient: Option<&mut Vec<f64>>| {
            let Some(gradient) = gradient else { return loss.value(x, sample).value };
            let value = loss.value_and_gradient(x, sample, gradient).value;
            slope.resize(x.len(), 0.0);
            for ((bound, seen), [upper, lower]) in
                bounds.iter().zip(&mut *seen.borrow_mut()).zip(&*multipliers.borrow())
            {
                *seen = in_sample(bound, sample, |weight, members| {
                    part.set_terms_of(sample, members);
                    let mean = score.value_and_gradient(x, &part, &mut slope).value;
                    gradient.add((upper - lower) * weight, &slope);
                    weight * mean
                });
            }
            value
        });
        let rows = phi.terms();
        let steps = settings.epochs * rows.div_ceil(settings.batch.min(rows)) as u64;
        let config = AdamConfig { learning_rate: rate, ..AdamConfig::default() };
        let mut adam: Adam<Vec<f64>> = Adam::new(config)?.schedule(Schedule::cosine(steps));
        let state = adam.init(&mut phi, self.start(seed))?;
        let step = |state: &mut _, sample: &Sample| {
            adam.step(&mut phi, state, sample)?;
            for ((bound, seen), [upper, lower]) in
                bounds.iter().zip(&*seen.borrow()).zip(&mut *multipliers.borrow_mut())
            {
                let Some(value) = seen else { continue };
                // A side without a bound keeps the multiplier 0.
                *upper = (*upper + dual_rate * (value - bound.upper)).max(0.0);
                *lower = (*lower - dual_rate * (value - bound.lower)).max(0.0);
            }
            Ok(())
        };
        Ok(self.epochs(seed, state, step)?.0)
    }
}

/// The sum of `mean(weight, members)` over the groups of a bound in a sample; `None` if a group has no member there.
fn in_sample(bound: &GroupBound, sample: &Sample, mut mean: impl FnMut(f64, Vec<usize>) -> f64) -> Option<f64> {
    let members = |group: &Members| sample.indices().iter().copied().filter(|&i| group.contains(i)).collect::<Vec<_>>();
    let parts: Vec<(f64, Vec<usize>)> = bound.parts.iter().map(|(weight, group)| (*weight, members(group))).collect();
    let is_known = parts.iter().all(|(_, members)| !members.is_empty());
    is_known.then(|| parts.into_iter().map(|(weight, members)| mean(weight, members)).sum())
}
