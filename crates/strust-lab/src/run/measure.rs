//! The metrics of a point, measured on the full sum. Their time and evaluations are not counted. Values are those of
//! the loss before it was multiplied by the problem's `scale`.

use super::prepare::Prepared;
use crate::{
    data::experiment::ProblemSpec,
    registry::{Quantity, TestMetric, problems},
};
use std::collections::BTreeMap;
use strust::{objective::full_value, prelude::*};
use strust_problems::Problem;

/// Measures the metrics of a problem.
pub(super) struct Measure<F: Objective, C: Constraint> {
    quantities: Vec<Quantity>,
    optimum: Option<f64>,
    constraint: Option<(C, C::Residual)>,
    test: Option<TestMetric<F>>,
}

impl<F: Problem, C: Constraint<Point = F::Point>> Measure<F, C> {
    /// For a problem. It takes the constraint and the metric on the test set.
    pub fn new(problem: &ProblemSpec, prepared: &mut Prepared<F, C>) -> Self {
        let constraint = prepared.constraint.take().map(|c| {
            let residual = c.new_residual();
            (c, residual)
        });
        let quantities = problems::quantities(problem).iter().map(|&(quantity, _)| quantity).collect();
        Self { quantities, optimum: prepared.f.optimum(), constraint, test: prepared.test.take() }
    }

    pub fn at(&mut self, f: &mut F, x: &F::Point, evaluations: Evaluations) -> BTreeMap<String, f64> {
        let (value, scale) = (full_value(f, x), f.scale());
        let mut numbers = BTreeMap::new();
        for &quantity in &self.quantities {
            let number = match quantity {
                Quantity::Objective | Quantity::TrainLoss => value / scale,
                Quantity::ObjectiveGap => (value - self.optimum.unwrap_or(f64::NAN)) / scale,
                Quantity::ConstraintNorm => self.constraint.as_mut().map_or(f64::NAN, |(c, residual)| {
                    c.residual(x, residual);
                    residual.norm()
                }),
                Quantity::TestLoss | Quantity::TestAccuracy => {
                    self.test.as_ref().and_then(|test| test(f, x)).unwrap_or(f64::NAN)
                }
            };
            numbers.insert(quantity.key().into(), number);
        }
        if self.test.is_some() {
            // The cost of a network: a value is a forward pass, a gradient is a forward and a backward pass.
            numbers.insert("forwards".into(), (evaluations.values + evaluations.gradients) as f64);
            numbers.insert("backwards".into(), evaluations.gradients as f64);
        }
        numbers
    }
}
