//! The minimum of a linear model, by Newton's method on all rows.
//!
//! f(W, b) = (1/n) Σ uᵢ·loss(Wᵀaᵢ + b, yᵢ) + (λ/2)‖W‖² is convex. A step s minimizes its quadratic model gᵀs + ½sᵀHs, and
//! the decrease that the model predicts is the distance f − f* from the minimum, up to terms of higher order. So the fit
//! knows how far it is from its end.
//!
//! ```text
//! x = minimum of f on a part of the rows, if there are many
//! repeat   f, g at x;   P = H of all or some rows, factored, or its diagonal where products are cheaper
//!          s: conjugate gradients on Hs = −g, preconditioned by P; s = −P⁻¹g where P is H itself
//!          accept x + s if f falls;   otherwise add μ to the diagonal, as a smaller region would
//! until    the predicted decrease is a rounding error, and the weights no longer change
//! ```
//!
//! A part of the rows is every k-th one, and sums have an order that does not depend on the number of threads. So the same
//! rows give the same bits, and the seed plays no part.

mod quadratic;
mod row_sum;
mod second;
mod under;

pub(crate) use quadratic::QuadraticModel;
pub(crate) use under::{BoundedFit, MeanBound, RowMean, RowScore};

use crate::{
    Error,
    ranks::Ranks,
    terms::{ModelTerms, RowInputs},
    train::{Trained, TrainingEnd, TrainingLimits},
    weights::Weights,
};
use row_sum::{RowSum, SumAt};
use second::{MOST_ERRORS, MatrixKind, SecondDerivatives, matrix_cost};
use strust_data::loss::OutputLoss;

/// Steps at most. Convex losses need about ten; a loss without a minimum never ends.
const MOST_STEPS: u64 = 60;
/// A fit has converged where the predicted decrease is below this share of f.
pub(crate) const GAP: f64 = 1e-10;
/// Beyond that, steps go on until they change the weights by less than this share.
const STILL: f64 = 1e-7;
/// … but no more than this many: where columns are almost equal, rounding limits the weights.
const REFINEMENTS: u64 = 4;
/// A part of the rows has at least this many, and this many for each parameter.
const PART: [usize; 2] = [10_000, 10];
/// The accuracy on a part of the rows: with fewer rows the minimum is another one.
const ROUGH: f64 = 1e-3;
/// The first μ, relative to the diagonal of H, and its factor after a rejection. It falls as fast.
const REGION: [f64; 2] = [1e-2, 10.0];
/// A tolerance of the conjugate gradients. The square of it is what a step leaves of the gap.
const FORCING: [f64; 2] = [0.1, 1e-4];
/// The rounding error of f, relative to it: that of a sum over many rows.
const ROUNDING: f64 = 1e-13;
/// A matrix that costs less than this many products is worth it in any case.
const FEW_PRODUCTS: f64 = 10.0;
/// Products of a step at most.
const MOST_PRODUCTS: f64 = 500.0;

/// Minimizes a quadratic model over a set.
pub(crate) type OverSet<'a> = dyn FnMut(QuadraticModel) -> Result<Vec<f64>, Error> + 'a;

/// Whether a fit with so many inputs and outputs has a matrix for [`minimum_over`].
pub(crate) fn has_matrix(inputs: usize, outputs: usize) -> bool {
    outputs == 1 && inputs <= second::MOST_INPUTS
}

/// Fits a linear, logistic or softmax model. It has converged if the predicted decrease is below the share `gap` of f.
pub(crate) fn minimum<R: RowInputs + Sync>(
    terms: ModelTerms<'_, R>,
    gap: f64,
    ranks: &Ranks<'_>,
    limits: &mut TrainingLimits<'_>,
) -> Result<Trained, Error> {
    let start = vec![0.0; (terms.rows.inputs() + 1) * terms.outputs];
    Ok(minimum_over(terms, start, None, gap, ranks, limits)?.0)
}

/// The same over a set of weights, from a point of the set; the intercept is free. Also returns f.
pub(crate) fn minimum_over<R: RowInputs + Sync>(
    terms: ModelTerms<'_, R>,
    mut start: Vec<f64>,
    mut over: Option<&mut OverSet<'_>>,
    gap: f64,
    ranks: &Ranks<'_>,
    limits: &mut TrainingLimits<'_>,
) -> Result<(Trained, f64), Error> {
    let all: Vec<usize> = (0..terms.index.len()).collect();
    let (interrupted, any_stops) = (limits.interrupted, limits.any_stops);
    let means = row_sum::means(&terms, &all, ranks, interrupted, any_stops)?;
    let centered = ModelTerms { units: Some((&means.shift, &means.scale)), ..terms };
    let others = row_sum::others(&terms, ranks)?;
    let sum = RowSum { terms: centered, ranks, interrupted, any_stops, others };
    let (part, count) = (PART[0].max(PART[1] * sum.parameters()) as f64, ranks.total(all.len() as f64));
    let most = limits.epochs.unwrap_or(MOST_STEPS).min(MOST_STEPS);
    let weights = |x: &[f64]| Weights { widths: vec![terms.rows.inputs(), terms.outputs], flat: means.back(x) };
    let mut curve = Vec::new();
    let mut watch = |k: u64, x: &[f64], value: f64| {
        curve.extend(limits.learned(k as f64, &weights(x)));
        (limits.report)(k as f64, value);
    };
    // One matrix is all that a sum of squares needs.
    if count > 4.0 * part && terms.loss != OutputLoss::Squares {
        let rows = thinned(&all, part / count);
        let mut run = NewtonRun { sum: &sum, positions: &rows, gap: ROUGH, most, watch: &mut |_, _, _| {} };
        start = run.from(start, over.as_deref_mut())?.x;
    }
    let mut run = NewtonRun { sum: &sum, positions: &all, gap, most, watch: &mut watch };
    let Minimum { x, value, steps, mut end, errors } = run.from(start, over)?;
    if end == TrainingEnd::Epochs && most == MOST_STEPS && terms.penalty == 0.0 && terms.loss.is_of_classes() {
        end = TrainingEnd::NoMinimum;
    }
    let weights = weights(&x);
    Ok((Trained { weights, free: None, curve, end, epochs: steps as f64, batch: count as usize, errors }, value))
}

/// Where Newton's method ended.
struct Minimum {
    x: Vec<f64>,
    value: f64,
    steps: u64,
    end: TrainingEnd,
    errors: Option<Vec<f64>>,
}

/// Where the quadratic model has its minimum.
struct ProposedPoint {
    next: Vec<f64>,
    /// The decrease that the model predicts.
    predicted: f64,
    /// Products with H.
    products: usize,
}

/// Every k-th position, about this share of them.
fn thinned(positions: &[usize], share: f64) -> Vec<usize> {
    positions.iter().copied().step_by((1.0 / share).floor().max(1.0) as usize).collect()
}

/// Newton's method on some rows.
struct NewtonRun<'a, 'b, R> {
    sum: &'a RowSum<'b, R>,
    positions: &'a [usize],
    gap: f64,
    most: u64,
    /// Called after each step with their number, the point and f.
    watch: &'a mut dyn FnMut(u64, &[f64], f64),
}

impl<R: RowInputs + Sync> NewtonRun<'_, '_, R> {
    fn from(&mut self, mut x: Vec<f64>, mut over: Option<&mut OverSet<'_>>) -> Result<Minimum, Error> {
        let (sum, positions) = (self.sum, self.positions);
        let end = |x, value, steps, end| Ok(Minimum { x, value, steps, end, errors: None });
        let Some(mut at) = sum.measure(positions, &x)? else { return end(x, f64::NAN, 0, TrainingEnd::Interrupted) };
        if !at.value.is_finite() {
            return end(x, at.value, 0, TrainingEnd::Breakdown);
        }
        // What rounding leaves of f where it tends to 0. That of classes only tends to 0 if it has no minimum.
        let floor = if sum.terms.loss.is_of_classes() { 0.0 } else { f64::EPSILON * at.value };
        // A matrix pays where it costs less than the products that it saves. At first that is a guess.
        let cost = matrix_cost(sum, at.count);
        let mut pays = cost < FEW_PRODUCTS;
        let (mut curvature, mut region, mut last, mut refinements) = (None::<SecondDerivatives>, 0.0, f64::INFINITY, 0);
        for k in 1..=self.most {
            // The matrix of a sum of squares never changes.
            let is_old = curvature.as_ref().is_none_or(|known: &SecondDerivatives| known.is_diagonal() && pays);
            if is_old || sum.terms.loss != OutputLoss::Squares {
                let kind = match over {
                    Some(_) => MatrixKind::OfAll,
                    None if pays => MatrixKind::OfSome,
                    None => MatrixKind::Diagonal,
                };
                curvature = SecondDerivatives::of(sum, positions, &at, kind)?;
            }
            let Some(curvature) = &mut curvature else { return end(x, at.value, k - 1, TrainingEnd::Interrupted) };
            let (next, after, predicted) = loop {
                let forcing = match sum.terms.loss {
                    // The model is f itself.
                    OutputLoss::Squares => FORCING[1],
                    _ => FORCING[0].min((last / at.value).sqrt()).max(FORCING[1]),
                };
                // Where a matrix would have been cheaper, the next step has one.
                let most = if curvature.is_diagonal() { cost.min(MOST_PRODUCTS) } else { MOST_PRODUCTS };
                let found = match over.as_deref_mut() {
                    Some(over) => Some(over_set(over, &x, &at, curvature, region)?),
                    None => self.step(&x, &at, curvature, region, forcing, most)?,
                };
                let Some(ProposedPoint { mut next, predicted, products }) = found else {
                    return end(x, at.value, k - 1, TrainingEnd::Interrupted);
                };
                pays |= products as f64 >= cost;
                sum.center(&mut next);
                let moves = curvature.moves(&x, &next);
                // A step that changes nothing needs no trial.
                if region == 0.0 && predicted <= self.gap * at.value.abs() + floor && moves < STILL {
                    let errors = self.errors(&at, curvature, over.is_some())?;
                    return Ok(Minimum { x: next, value: at.value, steps: k, end: TrainingEnd::Converged, errors });
                }
                let Some(after) = sum.measure(positions, &next)? else {
                    return end(x, at.value, k - 1, TrainingEnd::Interrupted);
                };
                let rounding = ROUNDING * at.value.abs() + floor;
                if after.value <= at.value - 1e-4 * predicted + rounding {
                    break (next, after, predicted);
                }
                if region > 1.0 / f64::EPSILON {
                    return end(x, at.value, k - 1, TrainingEnd::Breakdown);
                }
                region = (REGION[1] * region).max(REGION[0]);
            };
            let close = region == 0.0 && predicted <= self.gap * after.value.abs() + floor;
            region = if region > REGION[0] { region / REGION[1] } else { 0.0 };
            (x, at) = (next, after);
            (self.watch)(k, &x, at.value);
            refinements += u64::from(close);
            if close && (self.gap >= ROUGH || refinements > REFINEMENTS || predicted > 0.25 * last) {
                let errors = self.errors(&at, curvature, over.is_some())?;
                return Ok(Minimum { x, value: at.value, steps: k, end: TrainingEnd::Converged, errors });
            }
            last = predicted;
        }
        end(x, at.value, self.most, TrainingEnd::Epochs)
    }

    /// The standard errors, if there are not too many weights. A weight at a limit of a set has none.
    fn errors(&self, at: &SumAt, known: &SecondDerivatives, over_set: bool) -> Result<Option<Vec<f64>>, Error> {
        let inputs = self.sum.terms.rows.inputs();
        if over_set || self.gap >= ROUGH || self.sum.terms.outputs > 1 || inputs > MOST_ERRORS {
            return Ok(None);
        }
        if known.is_exact() {
            return known.errors(at, self.sum);
        }
        let Some(mut all) = SecondDerivatives::of(self.sum, self.positions, at, MatrixKind::OfAll)? else {
            return Ok(None);
        };
        all.factor(0.0);
        all.errors(at, self.sum)
    }

    /// The minimum of the model; `None` if it was interrupted.
    fn step(
        &self,
        x: &[f64],
        at: &SumAt,
        curvature: &mut SecondDerivatives,
        region: f64,
        forcing: f64,
        most: f64,
    ) -> Result<Option<ProposedPoint>, Error> {
        curvature.factor(region);
        let mut next = x.to_vec();
        let mut s = vec![0.0; x.len()];
        let mut r: Vec<f64> = at.gradient.iter().map(|g| -g).collect();
        let mut p = curvature.solve(&r);
        let mut rz = dot(&r, &p);
        if curvature.is_exact() {
            add(&mut next, 1.0, &p);
            return Ok(Some(ProposedPoint { next, predicted: 0.5 * rz, products: 0 }));
        }
        let (first, mut products) = (rz, 0);
        while (products as f64) < most {
            products += 1;
            let Some(mut hp) = self.sum.product(self.positions, at, &p)? else { return Ok(None) };
            curvature.add_region(region, &p, &mut hp);
            let bend = dot(&p, &hp);
            if bend <= 0.0 {
                break;
            }
            let alpha = rz / bend;
            add(&mut s, alpha, &p);
            add(&mut r, -alpha, &hp);
            let z = curvature.solve(&r);
            let before = std::mem::replace(&mut rz, dot(&r, &z));
            if rz <= forcing * forcing * first {
                break;
            }
            let beta = rz / before;
            p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + beta * *p);
        }
        // gᵀs + ½sᵀHs = ½gᵀs − ½sᵀr with the residual r = −g − Hs.
        let predicted = 0.5 * (dot(&s, &r) - dot(&s, &at.gradient));
        add(&mut next, 1.0, &s);
        Ok(Some(ProposedPoint { next, predicted, products }))
    }
}

/// The minimum of the model over a set.
fn over_set(
    over: &mut OverSet<'_>,
    x: &[f64],
    at: &SumAt,
    curvature: &SecondDerivatives,
    region: f64,
) -> Result<ProposedPoint, Error> {
    let model = |region: f64| QuadraticModel::new(x, at.value, &at.gradient, curvature.matrix(region));
    let next = over(model(region))?;
    let predicted = at.value - model(0.0).at(&next);
    Ok(ProposedPoint { next, predicted, products: 0 })
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    strust_data::numerics::dot(a, b)
}

fn add(y: &mut [f64], a: f64, x: &[f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
}

#[cfg(test)]
mod tests;
