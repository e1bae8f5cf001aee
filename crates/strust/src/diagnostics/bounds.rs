//! The constants and bounds of the paper's analysis as functions: as the paper states them, and as they are proved
//! here.
//!
//! L is a Lipschitz constant of the gradients of all mini-batches, ε is a lower bound of the norms ‖g_k‖ of the
//! mini-batch gradients over the steps in question, and r = 2/(1 − c₂).

use crate::radius::RegionConfig;

/// a_min = 2(1 − c₀)/(L − c₀), Lemma 4.1. **A step with a < a_min is always accepted.** a_min is infinite for L ≤ c₀:
/// then every step is accepted.
///
/// *Differs*: the paper states that every accepted a is at least a_min. This does not follow, because the proof
/// compares two upper bounds. The converse follows: fᵢ(x) − fᵢ(x + p) ≥ a‖g‖²(1 − La/2), the model predicts a‖g‖²(1 −
/// a/2), and the ratio of both exceeds c₀ exactly if a < a_min. With a small radius, smaller steps are accepted all the
/// time.
///
/// ```
/// use strust::{diagnostics::bounds::accepted_below, radius::RegionConfig};
/// let region = RegionConfig { accept_above: 0.5, shrink_below: 0.5, ..Default::default() };
/// assert_eq!(accepted_below(&region, 4.5), 0.25);
/// ```
#[must_use]
pub fn accepted_below(region: &RegionConfig, lipschitz: f64) -> f64 {
    accepted_below_with(region, lipschitz, 1.0)
}

/// The same for a model whose curvature along the step is h = pᵀHp/‖p‖² (Lemma 4.8, Algorithm 2): a < 2(1 − c₀)/(L −
/// c₀h). It holds for every step p with gᵀp < 0, along −g or not, if a is ‖p‖²/(−gᵀp).
///
/// *Differs*: the paper uses the largest possible h, 1 + μC². For steps with a smaller h that threshold is too large.
/// The threshold for h = 1 is valid for all steps.
#[must_use]
pub fn accepted_below_with(region: &RegionConfig, lipschitz: f64, curvature: f64) -> f64 {
    let c = region.accept_above;
    let below = lipschitz - c * curvature;
    if below > 0.0 { 2.0 * (1.0 - c) / below } else { f64::INFINITY }
}

/// M = (1 + L)/2 with |m(p) + fᵢ(x) − fᵢ(x + p)| ≤ M‖p‖², Lemma 4.2.
///
/// *Differs*: the paper has M = L, which is large enough only for L ≥ 1.
#[must_use]
pub fn model_error(lipschitz: f64) -> f64 {
    model_error_with(lipschitz, 1.0)
}

/// The same for a model with ‖H‖ ≤ h: M = (h + L)/2. The Hessian has h ≤ L, so M = L, as the paper states.
#[must_use]
pub fn model_error_with(lipschitz: f64, curvature: f64) -> f64 {
    0.5 * (curvature + lipschitz)
}

/// r = 2/(1 − c₂) of Lemma 4.4: the radius grows wherever Δ ≤ ‖g‖/(rM).
#[must_use]
pub fn growth_factor(region: &RegionConfig) -> f64 {
    2.0 / (1.0 - region.grow_above)
}

/// The radius is never below min(Δ₀, ε/(ν₁rM)), Corollary 4.5.
///
/// *Differs*: the paper has ε/(4rM). The 4 is the factor ν₁ by which the radius shrinks. A run that starts below this
/// bound violates it, so Δ₀ is part of the minimum.
///
/// ```
/// use strust::{diagnostics::bounds::radius_floor, radius::RegionConfig};
/// let region = RegionConfig { initial_radius: 1.0, shrink: 2.0, grow_above: 0.5, ..Default::default() };
/// assert_eq!(radius_floor(&region, 3.0, 0.16), 0.01); // 0.16/(2·4·2)
/// assert_eq!(radius_floor(&RegionConfig { initial_radius: 1e-9, ..region }, 3.0, 0.16), 1e-9);
/// ```
#[must_use]
pub fn radius_floor(region: &RegionConfig, lipschitz: f64, epsilon: f64) -> f64 {
    radius_floor_with(region, model_error(lipschitz), epsilon)
}

/// The same for a model with another M. It also holds if the radius shrinks to ‖p‖/ν₁ instead of Δ/ν₁, as with
/// [`Newton`](crate::models::Newton): a step with ‖p‖ ≤ ‖g‖/(rM) does not shrink the radius.
#[must_use]
pub fn radius_floor_with(region: &RegionConfig, model_error: f64, epsilon: f64) -> f64 {
    lowest_after_rejection(region, model_error, epsilon).min(region.initial_radius)
}

/// ε/(ν₁rM): the radius after a rejection is not smaller.
fn lowest_after_rejection(region: &RegionConfig, model_error: f64, epsilon: f64) -> f64 {
    epsilon / (region.shrink * growth_factor(region) * model_error)
}

/// The number of rejections in a row is at most log(ν₁rMΔ̄/ε)/log ν₁: each rejection happens at a radius above ε/(rM)
/// and divides it by ν₁.
#[must_use]
pub fn rejections_in_a_row(region: &RegionConfig, lipschitz: f64, epsilon: f64) -> f64 {
    rejections_in_a_row_with(region, model_error(lipschitz), epsilon)
}

/// The same for a model with another M.
#[must_use]
pub fn rejections_in_a_row_with(region: &RegionConfig, model_error: f64, epsilon: f64) -> f64 {
    let above = growth_factor(region) * model_error * region.max_radius / epsilon;
    (region.shrink * above).ln().max(0.0) / region.shrink.ln()
}

/// The paper's bound of #U/#S as printed, Lemma 4.6: log(4rMΔ̄/ε)/log ν with M = L and ν = ν₁.
///
/// It ignores the rejections before the first success; [`unsuccessful`] counts them.
#[must_use]
pub fn unsuccessful_ratio_as_stated(region: &RegionConfig, lipschitz: f64, epsilon: f64) -> f64 {
    (4.0 * growth_factor(region) * lipschitz * region.max_radius / epsilon).ln() / region.shrink.ln()
}

/// The number of rejections is at most
///
/// min{ (#S + 1)·log(ν₁rMΔ̄/ε)/log ν₁, (#S·log ν₂ + log(Δ₀/Δ_min))/log ν₁ }.
///
/// The first bound is Lemma 4.6 plus the rejections before the first success. The second bound is sharper, and only a
/// constant in it depends on ε. A rejection lowers log Δ by log ν₁, and an acceptance raises it by at most log ν₂.
/// After the last rejection, Δ is at least Δ_min = ε/(ν₁rM). So the limit of #U/#S is at most log ν₂/log ν₁, and the
/// factor log(1/ε) of Theorem 1 can be dropped.
///
/// ```
/// use strust::{diagnostics::bounds::unsuccessful, radius::RegionConfig};
/// let region = RegionConfig { shrink: 2.0, grow: 4.0, ..Default::default() };
/// let (few, many) = (unsuccessful(&region, 10.0, 1e-6, 10), unsuccessful(&region, 10.0, 1e-6, 1_000_000));
/// assert!(few > 20.0 && (many / 1e6 - 2.0).abs() < 1e-3);
/// ```
#[must_use]
pub fn unsuccessful(region: &RegionConfig, lipschitz: f64, epsilon: f64, successful: u64) -> f64 {
    unsuccessful_with(region, model_error(lipschitz), epsilon, successful)
}

/// The same for a model with another M. A radius that grows less, or shrinks more, only lowers the number of rejections.
#[must_use]
pub fn unsuccessful_with(region: &RegionConfig, model_error: f64, epsilon: f64, successful: u64) -> f64 {
    let successes = successful as f64;
    let in_rows = (successes + 1.0) * rejections_in_a_row_with(region, model_error, epsilon);
    let floor = lowest_after_rejection(region, model_error, epsilon);
    let start = (region.initial_radius / floor).ln().max(0.0);
    in_rows.min((successes * region.grow.ln() + start) / region.shrink.ln())
}

/// The constants of a problem in Theorem 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smoothness {
    /// L_max, for the gradients of all mini-batches.
    pub largest: f64,
    /// L_f, for the gradient of the sum.
    pub mean: f64,
    /// ρ of mini-batches, the largest along the run.
    pub rho: f64,
}

/// δ of Theorem 1, with 1/δ = (a_max + a_min) − ρ(a_max − a_min + L_f·a_max²) and a_min limited to a_max. `None` if 1/δ
/// is not positive: then the theorem does not apply.
///
/// Algorithm 1 guarantees only a ≤ 1, so a_max is 1 unless all steps of a run were shorter. The theorem also needs a ≥
/// a_min for every accepted step. A large radius ensures this; Lemma 4.1 does not ([`accepted_below`]).
///
/// ```
/// use strust::{diagnostics::bounds::{Smoothness, delta}, radius::RegionConfig};
/// let region = RegionConfig::default();
/// let calm = Smoothness { largest: 0.9, mean: 0.1, rho: 3.0 };
/// assert!((delta(&region, &calm, 1.0).unwrap() - 1.0 / (2.0 - 0.3)).abs() < 1e-12);
/// assert_eq!(delta(&region, &Smoothness { rho: 30.0, ..calm }, 1.0), None);
/// ```
#[must_use]
pub fn delta(region: &RegionConfig, problem: &Smoothness, largest_step: f64) -> Option<f64> {
    let least_step = accepted_below(region, problem.largest).min(largest_step);
    let spent = largest_step - least_step + problem.mean * largest_step * largest_step;
    let inverse = (largest_step + least_step) - problem.rho * spent;
    (inverse > 0.0).then(|| 1.0 / inverse)
}

/// The bound of Theorem 1: after K steps min_k E‖∇f(x_k)‖² ≤ (2δ/K)·(1 + u)·(f(x₀) − f*), where u bounds #U/#S.
#[must_use]
pub fn theorem_one(delta: f64, unsuccessful_ratio: f64, gap: f64, steps: u64) -> f64 {
    2.0 * delta / steps as f64 * (1.0 + unsuccessful_ratio) * gap
}
