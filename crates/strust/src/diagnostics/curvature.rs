//! Curvature along every trial, at no extra cost, and the largest curvature of a sample, at the cost of some gradients.

use crate::{objective::Objective, record::StepRecord, run::Observer, sample::Sample, vector::Vector};
use std::ops::ControlFlow;

/// The curvature along the trials of a trust region, without extra evaluations. The step is p = −a·g, so
///
/// κ = 2(fᵢ(x + p) − fᵢ(x) + a‖g‖²) / ‖p‖²
///
/// is pᵀ∇²fᵢp/‖p‖² averaged over the path from x to x + p, and |κ| ≤ Lᵢ. The largest κ of a run is a lower estimate of
/// L_max. The constants computed from it (a_min, M) are the most favorable ones that are consistent with the run.
///
/// κ comes from a difference of nearly equal numbers. A trial counts as unresolved and is ignored in two cases: if this
/// difference is within ten rounding errors of fᵢ, or if the [correction for
/// rounding](crate::radius::RegionConfig::judge) changed the ratio by more than 1 %.
///
/// ```
/// use strust::{diagnostics::Curvature, prelude::*};
/// let mut f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
///     if let Some(g) = g {
///         g[0] = 3.0 * x[0];
///     }
///     1.5 * x[0] * x[0]
/// });
/// let mut curvature = Curvature::default();
/// let mut method = Str::new(StrConfig::default())?;
/// let _ = minimize(&mut f).method(&mut method)
///     .observe(&mut curvature)
///     .stop(Stop::steps(5)).start(vec![1.0])?;
/// assert!((curvature.largest - 3.0).abs() < 1e-12);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curvature {
    /// Trials with a resolved curvature.
    pub seen: u64,
    /// Trials whose curvature was below the rounding error.
    pub unresolved: u64,
    /// Trials with negative curvature. f is not convex there.
    pub negative: u64,
    /// The largest κ, a lower estimate of L_max.
    pub largest: f64,
    /// The smallest κ.
    pub least: f64,
    /// The mean κ.
    pub mean: f64,
    /// The mean of a·κ. A step with a·κ = 1 goes to the minimum along its direction.
    pub mean_step: f64,
    /// Relative rounding error of fᵢ.
    epsilon: f64,
}

impl Default for Curvature {
    /// For values computed in `f64`.
    fn default() -> Self {
        Self::with_epsilon(f64::EPSILON)
    }
}

impl Curvature {
    /// For values with this relative rounding error: [`Vector::EPSILON`] of the point.
    #[must_use]
    pub fn with_epsilon(epsilon: f64) -> Self {
        Self {
            seen: 0,
            unresolved: 0,
            negative: 0,
            largest: f64::NEG_INFINITY,
            least: f64::INFINITY,
            mean: 0.0,
            mean_step: 0.0,
            epsilon,
        }
    }

    /// Counts a step. Returns its curvature κ if there was a trial and κ is resolved.
    pub fn add(&mut self, record: &StepRecord) -> Option<f64> {
        let region = record.region.as_ref()?;
        let trial = region.trial?;
        let squared = record.step_length * record.step_length;
        // ⟨g, p⟩ = −‖g‖‖p‖
        let bend = trial - record.value + record.gradient_norm * record.step_length;
        let rounding = 10.0 * self.epsilon * (record.value.abs() + trial.abs());
        let plain = (record.value - trial) / region.predicted;
        let corrected = region.ratio.is_some_and(|ratio| (ratio - plain).abs() > 0.01 * plain.abs());
        if squared == 0.0 || bend.abs() <= rounding || corrected {
            self.unresolved += 1;
            return None;
        }
        let kappa = 2.0 * bend / squared;
        self.seen += 1;
        self.negative += u64::from(kappa < 0.0);
        self.largest = self.largest.max(kappa);
        self.least = self.least.min(kappa);
        self.mean += (kappa - self.mean) / self.seen as f64;
        self.mean_step += (record.step_size * kappa - self.mean_step) / self.seen as f64;
        Some(kappa)
    }
}

impl<P> Observer<P> for &mut Curvature {
    fn step(&mut self, record: &StepRecord, _: &P) -> ControlFlow<()> {
        self.add(record);
        ControlFlow::Continue(())
    }
}

/// The largest |curvature| of a sample at x: the spectral norm of ∇²fᵢ(x), which is the local Lipschitz constant Lᵢ. It
/// is computed by the power method, with Hessian products from differences of gradients. An iteration takes two
/// gradients.
///
/// The result is a lower estimate that grows with `iterations`. It is exact for a Hessian of rank 1, such as that of
/// one equation.
///
/// ```
/// use strust::{diagnostics::lipschitz, prelude::*};
/// // ½(3x₀ + 4x₁)²: the Hessian is aaᵀ, and ‖a‖² = 25.
/// let mut f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
///     let r = 3.0 * x[0] + 4.0 * x[1];
///     if let Some(g) = g {
///         (g[0], g[1]) = (3.0 * r, 4.0 * r);
///     }
///     0.5 * r * r
/// });
/// let l = lipschitz(&mut f, &vec![1.0, 0.0], &Sample::range(0..1), 5);
/// assert!((l - 25.0).abs() < 1e-6);
/// ```
pub fn lipschitz<F: Objective + ?Sized>(f: &mut F, x: &F::Point, sample: &Sample, iterations: u32) -> f64 {
    let (mut v, mut up, mut down, mut moved) = (x.zeros_like(), x.zeros_like(), x.zeros_like(), x.zeros_like());
    // For a quadratic function the gradient is in the range of the Hessian, which the eigenvectors span.
    f.value_and_gradient(x, sample, &mut v);
    if v.norm_squared() == 0.0 {
        v.copy_from(x);
    }
    let mut estimate = 0.0;
    for _ in 0..iterations {
        let norm = v.norm();
        if norm == 0.0 || !norm.is_finite() {
            break;
        }
        let h = F::Point::EPSILON.cbrt() * (1.0 + x.norm());
        moved.set_sum(x, h / norm, &v);
        f.value_and_gradient(&moved, sample, &mut up);
        moved.set_sum(x, -h / norm, &v);
        f.value_and_gradient(&moved, sample, &mut down);
        up.add(-1.0, &down);
        estimate = up.norm() / (2.0 * h);
        std::mem::swap(&mut v, &mut up);
    }
    estimate
}
