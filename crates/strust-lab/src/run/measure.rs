//! The metrics of a point, measured on the full sum. Their time and evaluations are not counted.

use super::prepare::Prepared;
use crate::registry::{Quantity, problems};
use std::collections::BTreeMap;
use strust::{objective::full_value, prelude::*};
use strust_problems::Problem;

/// Measures the metrics of a problem.
pub(super) struct Measure<F: Objective, C: Constraint> {
    quantities: Vec<Quantity>,
    optimum: Option<f64>,
    constraint: Option<(C, C::Residual)>,
    accuracy: Option<crate::registry::Accuracy<F>>,
}

impl<F: Problem, C: Constraint<Point = F::Point>> Measure<F, C> {
    /// For a problem of this kind. It takes the constraint.
    pub fn new(kind: &str, prepared: &mut Prepared<F, C>) -> Self {
        let constraint = prepared.constraint.take().map(|c| {
            let residual = c.new_residual();
            (c, residual)
        });
        let quantities = problems::quantities(kind).iter().map(|&(quantity, _)| quantity).collect();
        Self { quantities, optimum: prepared.f.optimum(), constraint, accuracy: prepared.accuracy }
    }

    pub fn at(&mut self, f: &mut F, x: &F::Point, evaluations: Evaluations) -> BTreeMap<String, f64> {
        let value = full_value(f, x);
        let mut numbers = BTreeMap::new();
        for &quantity in &self.quantities {
            let number = match quantity {
                Quantity::Objective | Quantity::TrainLoss => value,
                Quantity::ObjectiveGap => value - self.optimum.unwrap_or(f64::NAN),
                Quantity::ConstraintNorm => self.constraint.as_mut().map_or(f64::NAN, |(c, residual)| {
                    c.residual(x, residual);
                    residual.norm()
                }),
                Quantity::TestAccuracy => self.accuracy.and_then(|accuracy| accuracy(f, x)).unwrap_or(f64::NAN),
            };
            numbers.insert(quantity.key().into(), number);
        }
        if self.accuracy.is_some() {
            // The cost of a network: a value is a forward pass, a gradient is a forward and a backward pass.
            numbers.insert("forwards".into(), (evaluations.values + evaluations.gradients) as f64);
            numbers.insert("backwards".into(), evaluations.gradients as f64);
        }
        numbers
    }
}
