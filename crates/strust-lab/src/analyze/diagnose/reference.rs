//! What a full-batch method reaches from a point, and the curvature of mini-batches there: what a run is compared with.

use super::Effort;
use serde::{Deserialize, Serialize};
use strust::{diagnostics::lipschitz, objective::full_value, prelude::*};
use strust_problems::Problem;

/// What a full-batch method reaches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reference {
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

impl Reference {
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

/// STR-SQP without constraints, which is limited-memory BFGS with a trust region, from `start`.
pub(super) fn reference<F: Problem>(f: &mut F, start: &F::Point, x: &F::Point, effort: Effort) -> Option<Reference> {
    let (mut lower, mut upper) = (x.zeros_like(), x.zeros_like());
    for i in 0..x.dimension() {
        lower.set_component(i, f64::NEG_INFINITY);
        upper.set_component(i, f64::INFINITY);
    }
    reference_within(f, &mut Bounds::new(lower, upper).ok()?, start, x, effort)
}

/// STR-SQP from `start`.
pub(super) fn reference_within<F, C>(
    f: &mut F,
    constraint: &mut C,
    start: &F::Point,
    x: &F::Point,
    effort: Effort,
) -> Option<Reference>
where
    F: Problem,
    C: Constraint<Point = F::Point>,
{
    let numbers = f.terms().saturating_mul(x.dimension()).max(1);
    let steps = STEPS.min((budget(effort) / numbers) as u64);
    if steps < LEAST {
        return None;
    }
    let mut half = |f: &mut F, from: F::Point| -> Option<F::Point> {
        let method = StrSqp::new(StrSqpConfig::default(), &mut *constraint).ok()?;
        let report = minimize(f).method(method).full_batch().stop(Stop::steps(steps / 2)).start(from).ok()?;
        Some(report.point().clone())
    };
    let middle = half(f, start.clone())?;
    let halfway = full_value(f, &middle);
    let mut end = half(f, middle)?;
    let value = full_value(f, &end);
    end.add(-1.0, x);
    let found = Reference { value: value / f.scale(), halfway: halfway / f.scale(), distance: end.norm(), steps };
    (found.value.is_finite() && found.distance.is_finite()).then_some(found)
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
