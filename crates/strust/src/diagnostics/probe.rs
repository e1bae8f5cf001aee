//! A test for interpolation near a point: follow full gradients downhill and compare the terms' gradients there.

use super::{
    interpolation::{Evidence, Interpolation},
    strong_growth::{StrongGrowth, strong_growth},
};
use crate::{
    objective::{Objective, full_value, full_value_and_gradient},
    sample::Draws,
    vector::Vector,
};

/// The result of [`probe`].
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// At the point itself.
    pub here: StrongGrowth,
    /// At the end of the descent.
    pub below: StrongGrowth,
    /// Full gradients used by the descent.
    pub gradients: u64,
    /// The verdict.
    pub verdict: Interpolation,
    /// Its reason.
    pub why: String,
}

/// The decrease of ‖∇f‖² after which each half of the descent ends.
const ENOUGH: f64 = 1e3;
/// The distance of the start of the descent from x, relative to ‖x‖.
const UPHILL: f64 = 1e-3;
/// The number of recent values that the next one is compared with. A monotone descent would reject the long steps of
/// this method.
const MEMORY: usize = 8;

/// Descends from x with at most `steps` full gradients, and compares ρ of single terms at the end and at the start.
///
/// On noisy data a run with mini-batches stalls before ∇f is small. Then noise and a slow valley look the same. Full
/// gradients can continue: if all terms become stationary together, interpolation holds near x; if their variance
/// stays, it is violated. The descent is Barzilai and Borwein's with a non-monotone safeguard. It needs no step size.
///
/// ```
/// use strust::{diagnostics::{Interpolation, probe}, prelude::*};
/// // ½(x − bᵢ)² for two terms, with the same minimizer x = 1 or with different ones.
/// let with = |b: [f64; 2]| from_fn(2, move |x: &Vec<f64>, sample: &Sample, mut g: Option<&mut Vec<f64>>| {
///     let scale = 1.0 / sample.len() as f64;
///     sample.indices().iter().map(|&i| {
///         if let Some(g) = g.as_deref_mut() {
///             g[0] += scale * (x[0] - b[i]) * (1.0 + i as f64);
///         }
///         0.5 * scale * (x[0] - b[i]).powi(2) * (1.0 + i as f64)
///     }).sum()
/// });
/// assert_eq!(probe(&mut with([1.0, 1.0]), &vec![3.0], 50).verdict, Interpolation::Holds);
/// assert_eq!(probe(&mut with([1.0, 2.0]), &vec![3.0], 50).verdict, Interpolation::Violated);
/// ```
pub fn probe<F: Objective + ?Sized>(f: &mut F, x: &F::Point, steps: u64) -> Probe {
    let here = strong_growth(f, x);
    // Start a little uphill. If a run has converged to rounding, there is no descent from x itself.
    let (mut start, mut uphill) = (x.clone(), x.zeros_like());
    full_value_and_gradient(f, x, &mut uphill);
    let (size, norm) = (x.norm(), uphill.norm());
    if norm > 0.0 {
        start.add(UPHILL * if size > 0.0 { size } else { 1.0 } / norm, &uphill);
    }
    // Far from a solution the variance is large with or without noise, so use the second half of the descent first.
    let (half_way, first) = descend(f, &start, steps / 2);
    let middle = strong_growth(f, &half_way);
    let (point, second) = descend(f, &half_way, steps - steps / 2);
    let (below, gradients) = (strong_growth(f, &point), first + second);
    let before = strong_growth(f, &start);
    let evidence = |at: &StrongGrowth| Evidence::exact(at, at.rho(1, Draws::Independent));
    let (verdict, why) = match evidence(&below).verdict(&evidence(&middle), F::Point::EPSILON) {
        (Interpolation::Doubtful, _) => evidence(&below).verdict(&evidence(&before), F::Point::EPSILON),
        sure => sure,
    };
    Probe { here, below, gradients, verdict, why }
}

/// The point with the smallest gradient of the descent, and the number of full gradients.
fn descend<F: Objective + ?Sized>(f: &mut F, start: &F::Point, steps: u64) -> (F::Point, u64) {
    let (mut x, mut g, mut trial) = (start.clone(), start.zeros_like(), start.zeros_like());
    let mut value = full_value_and_gradient(f, &x, &mut g);
    let mut squared = g.norm_squared();
    let (first, mut best) = (squared, (squared, x.clone()));
    // The first step is chosen to decrease f by a small fraction. Its curvature sets the next step.
    let mut size = if squared > 0.0 { 1e-3 * (value.abs() + squared) / squared } else { 0.0 };
    let mut recent = [value; MEMORY];
    let mut made = 1;
    while made < steps && best.0 > first / ENOUGH && squared > 0.0 && size.is_finite() {
        trial.set_sum(&x, -size, &g);
        let at_trial = full_value(f, &trial);
        let highest = recent.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        made += 1;
        if at_trial.is_nan() || at_trial > highest - 1e-4 * size * squared {
            size *= 0.25;
            if size * squared.sqrt() <= F::Point::EPSILON * x.norm() {
                break;
            }
            continue;
        }
        std::mem::swap(&mut x, &mut trial);
        let mut next = trial.zeros_like();
        value = full_value_and_gradient(f, &x, &mut next);
        recent[made as usize % MEMORY] = value;
        // p = −size·g and y = ∇f(x + p) − ∇f(x): ⟨p, p⟩/⟨p, y⟩.
        let along = size * (squared - g.dot(&next));
        let longer = if along > 0.0 { size * size * squared / along } else { 4.0 * size };
        size = longer.min(100.0 * size);
        g = next;
        squared = g.norm_squared();
        if squared < best.0 {
            best = (squared, x.clone());
        }
    }
    (best.1, made)
}
