//! What a full-batch method reaches from a point, and the curvature of mini-batches there: what a run is compared with.

use super::Effort;
use strust::{
    diagnostics::lipschitz,
    objective::{Evaluation, ProductKind, Scaled, full_value, full_value_and_gradient},
    prelude::*,
    samplers::Sampler,
};
use strust_problems::Problem;

/// What a full-batch method reaches.
#[derive(Debug, Clone, Copy, PartialEq)]
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

/// ‖v‖, also if squares of its components are out of range.
pub(super) fn length<P: Vector>(v: &P) -> f64 {
    let norm = v.norm();
    if norm.is_normal() { norm } else { length_of(&v.components()) }
}

fn length_of(values: &[f64]) -> f64 {
    let largest = values.iter().fold(0.0_f64, |largest, v| largest.max(v.abs()));
    if !largest.is_normal() {
        return largest;
    }
    largest * values.iter().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt()
}

/// The gradient and the curvature at the start of a run. In these units they are 1, whatever the scales of the loss and of
/// the unknowns, so that no square under- or overflows.
pub(super) struct StartUnits {
    /// ‖∇f‖, rounded to a power of two: then a change of units does not change a digit.
    pub gradient: f64,
    /// L, the largest curvature of a few mini-batches; 0 if it is unknown.
    pub curvature: f64,
}

impl StartUnits {
    /// Measures them at a point. The curvature of a network would take too long.
    pub fn at<F: Problem>(f: &mut F, x: &F::Point, batch: usize, seed: u64, network: bool) -> Self {
        let mut units = Self { gradient: 1.0, curvature: 0.0 };
        if !network {
            let mut gradient = x.zeros_like();
            full_value_and_gradient(f, x, &mut gradient);
            units.gradient = power_of_two(length(&gradient));
            units.curvature = units.curvature(f, x, batch, seed);
        }
        units
    }

    /// The objective with gradients in these units.
    pub fn scaled<'a, F: Objective>(&self, f: &'a mut F) -> Scaled<&'a mut F> {
        Scaled::new(f, 1.0 / self.gradient)
    }

    /// The largest curvature of a few mini-batches at x; 0 if it is not finite.
    pub fn curvature<F: Objective>(&self, f: &mut F, x: &F::Point, batch: usize, seed: u64) -> f64 {
        self.gradient * curvature(&mut self.scaled(f), x, batch, seed)
    }

    /// A length of the unknowns: that of a step with 1/L along the gradient.
    fn length(&self) -> f64 {
        power_of_two(self.gradient / self.curvature)
    }
}

/// The power of two just below a number; 1 for those that have no inverse.
fn power_of_two(value: f64) -> f64 {
    if value.is_normal() && (1.0 / value).is_normal() { value.log2().floor().exp2() } else { 1.0 }
}

/// What a full-batch method without constraints reaches from `origin`, and how far it is from x. `None` if it would take
/// too long or fails.
pub(super) fn reference<F: Problem>(
    f: &mut F,
    origin: &F::Point,
    x: &F::Point,
    units: &StartUnits,
    effort: Effort,
) -> Option<ReferencePoint> {
    let steps = STEPS.min((budget(effort) / f.terms().saturating_mul(x.dimension()).max(1)) as u64);
    if steps < LEAST {
        return None;
    }
    let (origin, long, scale) = (origin.components(), units.length(), f.scale());
    let at = |moved: &[f64]| -> Vec<f64> { origin.iter().zip(moved).map(|(x, z)| x + long * z).collect() };
    let (mut point, mut gradient) = (x.clone(), x.zeros_like());
    let mut evaluate = |moved: &[f64], out: Option<&mut Vec<f64>>| {
        point.set_components(&at(moved));
        let value = match out {
            None => full_value(f, &point),
            Some(out) => {
                let value = full_value_and_gradient(f, &point, &mut gradient);
                *out = gradient.components().iter().map(|g| g / units.gradient).collect();
                value
            }
        };
        value / units.gradient / long
    };
    let mut flat = FullSum { evaluate: &mut evaluate, epsilon: F::Point::EPSILON };
    let value = |flat: &mut FullSum, moved: &[f64]| (flat.evaluate)(moved, None) * long * units.gradient / scale;
    let middle = flat.descend(vec![0.0; origin.len()], steps / 2)?;
    let halfway = value(&mut flat, &middle);
    let end = flat.descend(middle, steps / 2)?;
    let value = value(&mut flat, &end);
    let apart: Vec<f64> = at(&end).iter().zip(x.components()).map(|(a, b)| a - b).collect();
    let distance = length_of(&apart);
    Some(ReferencePoint { value, halfway, distance, steps }).filter(|r| r.value.is_finite() && r.distance.is_finite())
}

/// Mini-batches whose curvature is measured, and products with each Hessian.
const BATCHES: u64 = 4;
const PRODUCTS: u32 = 8;

fn curvature<F: Objective>(f: &mut F, x: &F::Point, batch: usize, seed: u64) -> f64 {
    let Ok(mut sampler) = Epochs::new(f.terms(), batch, seed) else { return 0.0 };
    let mut sample = Sample::default();
    let mut largest = 0.0_f64;
    for k in 0..BATCHES.min(sampler.steps_per_epoch()) {
        sampler.draw(k, &mut sample);
        let found = along_gradient(f, x, &sample);
        largest = if found.is_finite() { largest.max(found) } else { largest };
    }
    largest
}

/// The curvature of a mini-batch by the power method. Differences of gradients would lose a curvature that is far below
/// the gradient, so products are used if there are any.
fn along_gradient<F: Objective>(f: &mut F, x: &F::Point, sample: &Sample) -> f64 {
    let (mut v, mut product, mut estimate) = (x.zeros_like(), x.zeros_like(), 0.0);
    f.value_and_gradient(x, sample, &mut v);
    if v.norm() == 0.0 {
        v.copy_from(x);
    }
    for _ in 0..PRODUCTS {
        let norm = v.norm();
        if norm == 0.0 || !norm.is_finite() {
            break;
        }
        v.scale(1.0 / norm);
        if !f.curvature_product(ProductKind::Hessian, x, sample, &v, &mut product) {
            return lipschitz(f, x, sample, PRODUCTS);
        }
        estimate = product.norm();
        std::mem::swap(&mut v, &mut product);
    }
    estimate
}

#[cfg(test)]
mod tests {
    use super::*;
    use strust_problems::LeastSquares;

    #[test]
    fn what_a_full_batch_method_reaches_does_not_depend_on_the_scale_of_the_loss() {
        let reached = |scale: f64| {
            let mut f = Scaled::new(LeastSquares::<f64>::noisy(40, 6, 0.3, 0).unwrap(), scale);
            let x = f.start(0);
            let units = StartUnits::at(&mut f, &x, 8, 0, false);
            let optimum = f.optimum().unwrap() / scale;
            let found = reference(&mut f, &x, &x, &units, Effort::Report).unwrap();
            assert!((found.value / optimum - 1.0).abs() < 1e-9, "{scale:e}: {found:?}");
            (found.value, found.distance, units.curvature / scale)
        };
        let usual = reached(1.0);
        for power in [-900, -300, 300, 900] {
            assert_eq!(reached(f64::from(power).exp2()), usual, "2^{power}");
        }
    }
}
