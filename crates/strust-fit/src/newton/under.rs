//! The minimum of f where means over rows are bounded, such as the difference of the mean scores of two groups.
//!
//! `StrSqp` minimizes f on all rows, in coordinates u = Lᵀx in which the Hessian LLᵀ at the minimum without bounds is the
//! identity. So f is almost ½‖u − u*‖², and few steps are enough without second derivatives of the means.

use super::{
    row_sum::{CenteredUnits, RowSum, SumAt, means, others},
    second::{MatrixKind, SecondDerivatives},
};
use crate::{
    Error,
    ranks::Ranks,
    terms::{ModelTerms, RowInputs},
};
use faer::{Accum, Col, ColRef, Mat, MatRef, Par, linalg::matmul::matmul};
use std::{cell::RefCell, ops::ControlFlow};
use strust::{
    constraints::{Constraint, Sense},
    methods::{StrSqp, StrSqpConfig, StrSqpState},
    minimize,
    objective::{Evaluation, Objective},
    record::StepRecord,
    run::Report,
    sample::Sample,
    stop::{Stop, StopReason},
};

/// Steps of `StrSqp` at most.
const MOST_STEPS: u64 = 500;

/// A number that the output z of a row has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RowScore {
    /// shift + scale·z: the prediction of a regression.
    Output { shift: f64, scale: f64 },
    /// 1/(1 + exp(−z/width)): with the width 1, the probability of the second class.
    Probability { width: f64 },
    /// The probability of the wrong class: a loss in [0, 1].
    Wrong,
    /// Whether the second class is predicted. It has no slope.
    Decision,
}

impl RowScore {
    /// The score and its slope.
    #[inline(always)]
    fn at(self, z: f64, goal: f64) -> (f64, f64) {
        match self {
            Self::Output { shift, scale } => (shift + scale * z, scale),
            Self::Probability { width } => logistic(z / width, 1.0 / width),
            Self::Wrong => {
                let sign = 1.0 - 2.0 * goal;
                logistic(sign * z, sign)
            }
            Self::Decision => (f64::from(u8::from(z > 0.0)), 0.0),
        }
    }
}

/// 1/(1 + exp(−z)), and `factor` times its slope. Nothing overflows.
#[inline(always)]
fn logistic(z: f64, factor: f64) -> (f64, f64) {
    let e = (-z.abs()).exp();
    let (far, near) = (e / (1.0 + e), 1.0 / (1.0 + e));
    (if z > 0.0 { near } else { far }, factor * far * near)
}

/// The mean of a score over some terms, plus a number.
#[derive(Debug, Clone)]
pub(crate) struct RowMean {
    pub(crate) positions: Vec<usize>,
    pub(crate) score: RowScore,
    pub(crate) plus: f64,
}

/// sign·(mean − middle) ≤ most, where the middle of some means is an unknown of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MeanBound {
    pub(crate) mean: usize,
    pub(crate) sign: f64,
    pub(crate) middle: Option<usize>,
    pub(crate) most: f64,
}

/// Where f is minimal.
pub(crate) struct BoundedMinimum {
    /// The weights of the model.
    pub(crate) x: Vec<f64>,
    pub(crate) value: f64,
    pub(crate) reason: StopReason,
}

/// Coordinates u with x = Mu.
struct HessianMetric {
    /// M and its inverse; of a large one only the diagonals.
    matrix: Mat<f64>,
    inverse: Mat<f64>,
    is_diagonal: bool,
}

impl HessianMetric {
    /// MMᵀ = H⁻¹ at a point; only the diagonal of H if it is large.
    fn at<R: RowInputs + Sync>(sum: &RowSum<'_, R>, positions: &[usize], at: &SumAt) -> Result<Option<Self>, Error> {
        let is_diagonal = !super::has_matrix(sum.terms.rows.inputs(), sum.terms.outputs);
        let kind = if is_diagonal { MatrixKind::Diagonal } else { MatrixKind::OfAll };
        let Some(curvature) = SecondDerivatives::of(sum, positions, at, kind)? else { return Ok(None) };
        let (matrix, inverse) = if is_diagonal {
            let roots: Vec<f64> = curvature.roots().collect();
            let diagonal = |of: &dyn Fn(f64) -> f64| Mat::from_fn(roots.len(), 1, |j, _| of(roots[j]));
            (diagonal(&|root| 1.0 / root), diagonal(&|root| root))
        } else {
            curvature.inverse_root()
        };
        Ok(Some(Self { matrix, inverse, is_diagonal }))
    }

    /// x = Mu.
    fn point(&self, u: &[f64]) -> Vec<f64> {
        self.product(self.matrix.as_ref(), u)
    }
    /// u = M⁻¹x.
    fn coordinates(&self, x: &[f64]) -> Vec<f64> {
        self.product(self.inverse.as_ref(), x)
    }
    /// Mᵀg.
    fn slope(&self, gradient: &[f64]) -> Vec<f64> {
        let matrix = if self.is_diagonal { self.matrix.as_ref() } else { self.matrix.transpose() };
        self.product(matrix, gradient)
    }

    fn product(&self, matrix: MatRef<'_, f64>, v: &[f64]) -> Vec<f64> {
        if self.is_diagonal {
            return v.iter().enumerate().map(|(j, v)| v * matrix[(j, 0)]).collect();
        }
        let mut out = Col::zeros(v.len());
        matmul(out.as_mat_mut(), Accum::Replace, matrix, ColRef::from_slice(v).as_mat(), 1.0, Par::Seq);
        out.iter().copied().collect()
    }
}

/// f(x) − tᵀ(x − x₀) in the coordinates u, followed by the middles.
struct SumInMetric<'a, 'b, R> {
    sum: &'a RowSum<'b, R>,
    positions: &'a [usize],
    metric: &'a HessianMetric,
    /// x₀ and t = ∇f(x₀).
    free: &'a [f64],
    tilt: &'a [f64],
    failure: &'a RefCell<Option<Error>>,
}

impl<R: RowInputs + Sync> Objective for SumInMetric<'_, '_, R> {
    type Point = Vec<f64>;
    fn terms(&self) -> usize {
        1
    }
    fn value(&mut self, u: &Vec<f64>, sample: &Sample) -> Evaluation {
        self.value_and_gradient(u, sample, &mut vec![0.0; u.len()])
    }
    fn value_and_gradient(&mut self, u: &Vec<f64>, _: &Sample, gradient: &mut Vec<f64>) -> Evaluation {
        let d = self.sum.parameters();
        let mut x = self.metric.point(&u[..d]);
        let measured = self.sum.measure(self.positions, &x);
        let Some(mut at) = kept(measured, self.failure) else { return Evaluation::new(f64::NAN, f64::EPSILON) };
        super::add(&mut at.gradient, -1.0, self.tilt);
        *gradient = self.metric.slope(&at.gradient);
        gradient.resize(u.len(), 0.0);
        super::add(&mut x, -1.0, self.free);
        Evaluation::new(at.value - super::dot(self.tilt, &x), f64::EPSILON)
    }
}

/// A measurement; `None` if it was stopped or failed, and the reason is kept.
fn kept<T>(measured: Result<Option<T>, Error>, failure: &RefCell<Option<Error>>) -> Option<T> {
    measured.unwrap_or_else(|why| {
        failure.borrow_mut().get_or_insert(why);
        None
    })
}

/// The bounds as rows of a constraint in the coordinates u and the middles.
struct MeanRows<'a, 'b, R> {
    sum: &'a RowSum<'b, R>,
    metric: &'a HessianMetric,
    means: &'a [RowMean],
    bounds: &'a [MeanBound],
    /// A middle is so many times its coordinate.
    unit: f64,
    /// The last point, the means there and their slopes.
    at: (Vec<f64>, Vec<(f64, Vec<f64>)>),
    failure: &'a RefCell<Option<Error>>,
}

impl<R: RowInputs + Sync> MeanRows<'_, '_, R> {
    fn measure(&mut self, u: &[f64]) {
        if self.at.0 == u {
            return;
        }
        let d = self.sum.parameters();
        let x = self.metric.point(&u[..d]);
        let mean = |mean: &RowMean| {
            let (value, slope) =
                kept(self.sum.mean(&mean.positions, &x, |z, goal| mean.score.at(z, goal)), self.failure)
                    .unwrap_or_else(|| (f64::NAN, vec![0.0; d]));
            (value + mean.plus, self.metric.slope(&slope))
        };
        self.at = (u.to_vec(), self.means.iter().map(mean).collect());
    }
}

impl<R: RowInputs + Sync> Constraint for MeanRows<'_, '_, R> {
    type Point = Vec<f64>;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0; self.bounds.len()]
    }
    fn residual(&mut self, u: &Vec<f64>, c: &mut Vec<f64>) {
        self.measure(u);
        let d = self.sum.parameters();
        for (c, bound) in c.iter_mut().zip(self.bounds) {
            let middle = bound.middle.map_or(0.0, |k| self.unit * u[d + k]);
            *c = bound.sign * (self.at.1[bound.mean].0 - middle) - bound.most;
        }
    }
    fn jvp(&mut self, u: &Vec<f64>, v: &Vec<f64>, out: &mut Vec<f64>) {
        self.measure(u);
        let d = self.sum.parameters();
        for (out, bound) in out.iter_mut().zip(self.bounds) {
            let middle = bound.middle.map_or(0.0, |k| self.unit * v[d + k]);
            *out = bound.sign * (super::dot(&self.at.1[bound.mean].1, &v[..d]) - middle);
        }
    }
    fn add_vjp(&mut self, u: &Vec<f64>, a: f64, y: &Vec<f64>, out: &mut Vec<f64>) {
        self.measure(u);
        let d = self.sum.parameters();
        for (y, bound) in y.iter().zip(self.bounds).filter(|(y, _)| **y != 0.0) {
            let factor = a * y * bound.sign;
            super::add(&mut out[..d], factor, &self.at.1[bound.mean].1);
            if let Some(k) = bound.middle {
                out[d + k] -= factor * self.unit;
            }
        }
    }
    fn rounding(&self, _: &Vec<f64>, norm: f64) -> f64 {
        let size = self.at.1.iter().fold(1.0_f64, |most, (mean, _)| most.max(mean.abs()));
        f64::EPSILON * (norm + size)
    }
    fn sense(&self, _: usize) -> Sense {
        Sense::AtMost
    }
}

/// Fits with bounds on means, near a point x₀ without bounds.
///
/// They minimize f(x) − ∇f(x₀)ᵀ(x − x₀). At the minimum of f this is f itself. Elsewhere, as in the last layer of a network
/// that stopped early, x₀ stays the answer as long as it satisfies the bounds, and the change of f beyond first order, the
/// Bregman divergence from x₀, is minimal otherwise.
pub(crate) struct BoundedFit<'a, 'b, R> {
    terms: ModelTerms<'a, R>,
    ranks: &'b Ranks<'b>,
    interrupted: &'b dyn Fn() -> bool,
    any_stops: &'b dyn Fn(bool) -> bool,
    units: CenteredUnits,
    positions: Vec<usize>,
    others: f64,
    metric: HessianMetric,
    /// x₀ and ∇f(x₀).
    free: Vec<f64>,
    tilt: Vec<f64>,
}

impl<'a, 'b, R: RowInputs + Sync> BoundedFit<'a, 'b, R> {
    /// Prepares fits from the weights x₀.
    pub(crate) fn new(
        terms: ModelTerms<'a, R>,
        free: &[f64],
        ranks: &'b Ranks<'b>,
        interrupted: &'b dyn Fn() -> bool,
        any_stops: &'b dyn Fn(bool) -> bool,
    ) -> Result<Self, Error> {
        let positions: Vec<usize> = (0..terms.index.len()).collect();
        let units = means(&terms, &positions, ranks, interrupted, any_stops)?;
        let free = units.to_fit(free);
        let others = others(&terms, ranks)?;
        let metric = HessianMetric { matrix: Mat::new(), inverse: Mat::new(), is_diagonal: true };
        let mut fit =
            Self { terms, ranks, interrupted, any_stops, units, positions, others, metric, free, tilt: Vec::new() };
        let at = fit.sum().measure(&fit.positions, &fit.free)?.ok_or(Error::Interrupted)?;
        fit.metric = HessianMetric::at(&fit.sum(), &fit.positions, &at)?.ok_or(Error::Interrupted)?;
        fit.tilt = at.gradient;
        Ok(fit)
    }

    fn sum(&self) -> RowSum<'_, R> {
        let terms = ModelTerms { units: Some((&self.units.shift, &self.units.scale)), ..self.terms };
        let Self { ranks, interrupted, any_stops, others, .. } = self;
        RowSum { terms, ranks, interrupted: *interrupted, any_stops: *any_stops, others: *others }
    }

    /// x₀.
    pub(crate) fn free(&self) -> &[f64] {
        &self.free
    }

    /// Some means at a point.
    pub(crate) fn means(&self, means: &[RowMean], x: &[f64]) -> Result<Vec<f64>, Error> {
        let sum = self.sum();
        let mean = |mean: &RowMean| {
            let found = sum.mean(&mean.positions, x, |z, goal| mean.score.at(z, goal))?;
            Ok(found.ok_or(Error::Interrupted)?.0 + mean.plus)
        };
        means.iter().map(mean).collect()
    }

    /// The standard deviation of the output of some terms at x₀.
    pub(crate) fn deviation(&self, positions: &[usize]) -> Result<f64, Error> {
        let sum = self.sum();
        let mean = |score: &(dyn Fn(f64) -> f64 + Sync)| {
            let found = sum.mean(positions, &self.free, |z, _| (score(z), 0.0))?;
            Ok::<_, Error>(found.ok_or(Error::Interrupted)?.0)
        };
        let center = mean(&|z| z)?;
        Ok(mean(&|z| (z - center).powi(2))?.sqrt())
    }

    /// The minimum where bounds on some means hold, from a point or x₀. `each` gets its value and the weights after every
    /// step.
    pub(crate) fn minimum(
        &self,
        means: &[RowMean],
        bounds: &[MeanBound],
        start: Option<&[f64]>,
        each: &mut dyn FnMut(f64, Vec<f64>),
    ) -> Result<BoundedMinimum, Error> {
        let (sum, d, failure) = (self.sum(), self.free.len(), RefCell::new(None));
        let middles = bounds.iter().filter_map(|bound| bound.middle).max().map_or(0, |k| k + 1);
        let mut rows = MeanRows {
            sum: &sum,
            metric: &self.metric,
            means,
            bounds,
            unit: 1.0,
            at: (Vec::new(), Vec::new()),
            failure: &failure,
        };
        let mut u = self.metric.coordinates(start.unwrap_or(&self.free));
        if start.is_none() {
            // The gradient is 0 at x₀. Halfway to the origin it is as long as u, so the method begins with the curvature 1.
            for u in &mut u {
                *u *= 0.5;
            }
        }
        rows.measure(&u);
        // A step of a middle changes the rows by as much as one of u.
        rows.unit =
            rows.at.1.iter().map(|(_, slope)| super::dot(slope, slope)).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        for k in 0..middles {
            let of_middle = bounds.iter().filter(|bound| bound.middle == Some(k)).map(|bound| rows.at.1[bound.mean].0);
            let (low, high) =
                of_middle.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), mean| (low.min(mean), high.max(mean)));
            u.push(0.5 * (low + high) / rows.unit);
        }
        rows.at = (Vec::new(), Vec::new());
        let mut f = SumInMetric {
            sum: &sum,
            positions: &self.positions,
            metric: &self.metric,
            free: &self.free,
            tilt: &self.tilt,
            failure: &failure,
        };
        let report: Report<StrSqpState<Vec<f64>>> = minimize(&mut f)
            .method(StrSqp::new(StrSqpConfig::default(), rows)?)
            .full_batch()
            .stop(Stop::epochs(MOST_STEPS))
            .observe(|record: &StepRecord, u: &Vec<f64>| {
                each(record.value, self.units.back(&self.metric.point(&u[..d])));
                if failure.borrow().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .start(u)?;
        if let Some(why) = failure.take() {
            return Err(why);
        }
        self.ranks.check()?;
        self.ranks.proceed()?;
        let x = self.metric.point(&report.point()[..d]);
        Ok(BoundedMinimum { x, value: report.last.value, reason: report.reason })
    }

    /// The weights of the model at a point.
    pub(crate) fn weights(&self, x: &[f64]) -> Vec<f64> {
        self.units.back(x)
    }
}
