//! The exact strong growth constant, from the gradient of every term.

use crate::{
    constraints::Constraint,
    objective::Objective,
    sample::{Draws, Sample},
    vector::Vector,
};

/// The two sides of the strong growth condition (the paper's Assumption 3): ‖∇f(x)‖² and the variance of the gradients
/// of the terms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StrongGrowth {
    /// ‖∇f(x)‖²; for the Lagrangian ‖∇f(x) + J(x)ᵀλ‖².
    pub gradient_squared: f64,
    /// V = (1/n) Σ ‖∇fᵢ(x) − ∇f(x)‖². It does not depend on the multipliers, because they shift every ∇fᵢ equally.
    pub variance: f64,
    /// n.
    pub terms: usize,
}

impl StrongGrowth {
    /// ρ = E‖g‖²/‖∇f‖² = 1 + V·share/‖∇f‖² for the gradient g of a mini-batch. It is 1 where all terms have the same
    /// gradient. It is infinite where ∇f = 0 but not every ∇fᵢ = 0: there interpolation fails.
    ///
    /// ```
    /// use strust::{diagnostics::StrongGrowth, sample::Draws};
    /// let at = StrongGrowth { gradient_squared: 2.0, variance: 6.0, terms: 11 };
    /// assert_eq!(at.rho(1, Draws::Independent), 4.0); // E‖∇fᵢ‖² = 2 + 6
    /// assert_eq!(at.rho(11, Draws::Different), 1.0); // all terms
    /// ```
    #[must_use]
    pub fn rho(&self, batch: usize, draws: Draws) -> f64 {
        let noise = self.variance * draws.share(batch, self.terms);
        if noise == 0.0 { 1.0 } else { 1.0 + noise / self.gradient_squared }
    }
}

/// ‖∇f(x)‖² and V(x) from the gradient of every term: n gradients and two vectors of memory.
///
/// ```
/// use strust::{diagnostics::strong_growth, prelude::*, sample::Draws};
/// // f₀ = ½(x − 1)², f₁ = ½(x + 1)²: no interpolation. At x = 1 the gradients are 0 and 2.
/// let mut f = from_fn(2, |x: &Vec<f64>, sample: &Sample, mut g: Option<&mut Vec<f64>>| {
///     let scale = 1.0 / sample.len() as f64;
///     sample.indices().iter().map(|&i| {
///         let r = x[0] + [-1.0, 1.0][i];
///         if let Some(g) = g.as_deref_mut() {
///             g[0] += scale * r;
///         }
///         0.5 * scale * r * r
///     }).sum()
/// });
/// let at = strong_growth(&mut f, &vec![1.0]);
/// assert_eq!((at.gradient_squared, at.variance), (1.0, 1.0));
/// assert_eq!(at.rho(1, Draws::Independent), 2.0); // (0² + 2²)/2 over 1²
/// assert!(strong_growth(&mut f, &vec![0.0]).rho(1, Draws::Independent).is_infinite());
/// ```
pub fn strong_growth<F: Objective + ?Sized>(f: &mut F, x: &F::Point) -> StrongGrowth {
    let (mean, variance) = moments(f, x);
    StrongGrowth { gradient_squared: mean.norm_squared(), variance, terms: f.terms() }
}

/// The same for the Lagrangian (the paper's Assumption 8): ρ of the result is τ for these multipliers.
///
/// V does not depend on λ, and [least-squares multipliers](crate::kkt::least_squares_multipliers) minimize ‖∇f + Jᵀλ‖.
/// So τ *for any λ*, as in the paper, is τ for these multipliers. At a KKT point it is infinite unless all terms have
/// the same gradient there.
pub fn strong_growth_of_lagrangian<F, C>(
    f: &mut F,
    constraint: &mut C,
    x: &F::Point,
    multipliers: &C::Residual,
) -> StrongGrowth
where
    F: Objective + ?Sized,
    C: Constraint<Point = F::Point> + ?Sized,
{
    let (mut mean, variance) = moments(f, x);
    constraint.add_vjp(x, 1.0, multipliers, &mut mean);
    StrongGrowth { gradient_squared: mean.norm_squared(), variance, terms: f.terms() }
}

/// ∇f and V in one pass (Welford). The difference of two large sums would lose a small variance.
fn moments<F: Objective + ?Sized>(f: &mut F, x: &F::Point) -> (F::Point, f64) {
    let (mut mean, mut gradient) = (x.zeros_like(), x.zeros_like());
    let mut sum = 0.0;
    let n = f.terms();
    for i in 0..n {
        f.value_and_gradient(x, &Sample::range(i..i + 1), &mut gradient);
        gradient.add(-1.0, &mean);
        let count = (i + 1) as f64;
        mean.add(1.0 / count, &gradient);
        // ⟨g − old mean, g − new mean⟩ = ‖g − old mean‖²(1 − 1/count)
        sum += gradient.norm_squared() * (1.0 - 1.0 / count);
    }
    (mean, sum / n.max(1) as f64)
}
