//! What a full-batch method reaches from a point, and the curvature of mini-batches there: what a run is compared with.

use super::Effort;
use serde::{Deserialize, Serialize};
use strust::{
    diagnostics::lipschitz,
    objective::{Evaluation, full_value, full_value_and_gradient},
    prelude::*,
};
use strust_problems::Problem;

/// What a full-batch method reaches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReferencePoint {
    /// f at its end, without the scale of the loss.
    pub value: f64,
    /// f after half of its steps.
    pub halfway: f64,
    /// The distance of its end from the point that is examined.
    pub distance: f64,
    /// Its steps.
    pub steps: u64,
}

/// The share of f by which the second half must lower it, if it still falls.
const FALLS: f64 = 0.05;

impl ReferencePoint {
    /// Whether f still falls at its end.
    pub(super) fn still_falls(&self) -> bool {
        self.halfway - self.value > FALLS * self.halfway.abs()
    }
}

/// The largest number of steps, and of numbers in the gradients of all terms of all steps.
const STEPS: u64 = 100;
fn budget(effort: Effort) -> usize {
    match effort {
        Effort::Report => 2_000_000_000,
        Effort::Asked => 20_000_000_000,
    }
}
/// With fewer steps the reference would be worse than none.
const LEAST: u64 = 20;

/// The value at a point, and the gradient if there is a place for it.
type FullEvaluation<'a> = &'a mut dyn FnMut(&[f64], Option<&mut Vec<f64>>) -> f64;

/// The full sum over plain numbers. Its type does not depend on the problem, so that the method is compiled once.
struct FullSum<'a> {
    evaluate: FullEvaluation<'a>,
    /// The relative rounding error.
    epsilon: f64,
}

impl Objective for FullSum<'_> {
    type Point = Vec<f64>;
    fn terms(&self) -> usize {
        1
    }
    fn value(&mut self, x: &Vec<f64>, _: &Sample) -> Evaluation {
        let value = (self.evaluate)(x, None);
        Evaluation { value, rounding: self.epsilon * value.abs() }
    }
    fn value_and_gradient(&mut self, x: &Vec<f64>, _: &Sample, gradient: &mut Vec<f64>) -> Evaluation {
        let value = (self.evaluate)(x, Some(gradient));
        Evaluation { value, rounding: self.epsilon * value.abs() }
    }
}

impl FullSum<'_> {
    /// STR-SQP without constraints, which is limited-memory BFGS with a trust region.
    fn descend(&mut self, start: Vec<f64>, steps: u64) -> Option<Vec<f64>> {
        let free = Bounds::new(vec![f64::NEG_INFINITY; start.len()], vec![f64::INFINITY; start.len()]).ok()?;
        let method = StrSqp::new(StrSqpConfig::default(), free).ok()?;
        let report = minimize(self).method(method).full_batch().stop(Stop::steps(steps)).start(start).ok()?;
        Some(report.point().clone())
    }
}

/// What a full-batch method without constraints reaches from `start`, and how far it is from x. `None` if it would take
/// too long or fails.
pub(super) fn reference<F: Problem>(
    f: &mut F,
    start: &F::Point,
    x: &F::Point,
    effort: Effort,
) -> Option<ReferencePoint> {
    let steps = STEPS.min((budget(effort) / f.terms().saturating_mul(x.dimension()).max(1)) as u64);
    if steps < LEAST {
        return None;
    }
    let (mut point, mut gradient, scale) = (x.clone(), x.zeros_like(), f.scale());
    let mut evaluate = |values: &[f64], out: Option<&mut Vec<f64>>| {
        point.set_components(values);
        match out {
            None => full_value(f, &point),
            Some(out) => {
                let value = full_value_and_gradient(f, &point, &mut gradient);
                *out = gradient.components();
                value
            }
        }
    };
    let mut flat = FullSum { evaluate: &mut evaluate, epsilon: F::Point::EPSILON };
    let middle = flat.descend(start.components(), steps / 2)?;
    let halfway = (flat.evaluate)(&middle, None) / scale;
    let end = flat.descend(middle, steps / 2)?;
    let value = (flat.evaluate)(&end, None) / scale;
    let distance = end.iter().zip(x.components()).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    Some(ReferencePoint { value, halfway, distance, steps }).filter(|r| r.value.is_finite() && r.distance.is_finite())
}

/// Mini-batches whose curvature is measured, and products with each Hessian.
const BATCHES: u64 = 4;
const PRODUCTS: u32 = 8;

/// The largest curvature of a few mini-batches at x; 0 if it is not finite.
pub(super) fn curvature<F: Objective>(f: &mut F, x: &F::Point, batch: usize, seed: u64) -> f64 {
    let Ok(mut sampler) = Epochs::new(f.terms(), batch, seed) else { return 0.0 };
    let mut sample = Sample::default();
    let mut largest = 0.0_f64;
    for k in 0..BATCHES.min(sampler.steps_per_epoch()) {
        sampler.draw(k, &mut sample);
        let found = lipschitz(f, x, &sample, PRODUCTS);
        largest = if found.is_finite() { largest.max(found) } else { largest };
    }
    largest
}
