//! The strong growth constant from pairs of independent mini-batches, with its confidence interval.

use super::strong_growth::Draws;
use serde::{Deserialize, Serialize};

/// The gradients A and B of two mini-batches at one point, as the estimators see them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// ⟨A, B⟩.
    pub product: f64,
    /// ‖A − B‖².
    pub distance_squared: f64,
    /// Terms of both batches.
    pub sizes: [usize; 2],
}

/// Two numbers that hold an unknown one with a confidence of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end; infinite where the data leave it open.
    pub high: f64,
}

impl Interval {
    /// Whether a number lies in it.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Running means of two estimates that each pair gives, in constant memory:
///
/// - G, of ‖∇f‖²: ⟨A, B⟩, and for different terms ⟨A, B⟩ + s²/n, because disjoint batches of a finite sum are
///   negatively correlated;
/// - s², of the variance of a term's gradient: ‖A − B‖²/(1/|A| + 1/|B|).
///
/// Both are unbiased for two batches at one point; ρ = 1 + s²·share/G is a ratio of means, and its interval is Fieller's,
/// which stays honest where G cannot be told from 0: it is open above then.
///
/// ```
/// use strust::diagnostics::{Draws, Pair, Pairs};
/// let mut pairs = Pairs::new(1000, Draws::Independent);
/// for k in 0..100 {
///     let noise = if k % 2 == 0 { 0.1 } else { -0.1 };
///     pairs.add(&Pair { product: 2.0 + noise, distance_squared: 6.0 - noise, sizes: [4, 4] });
/// }
/// // s² = 6/(1/4 + 1/4) = 12 for a term, so a batch of 4 has ρ = 1 + 12/4/2.
/// assert!((pairs.rho(4) - 2.5).abs() < 1e-12);
/// assert!(pairs.rho_interval(4).contains(2.5) && pairs.rho_interval(4).high < 2.6);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pairs {
    terms: usize,
    draws: Draws,
    /// What is left of an old pair's weight when a new one comes.
    keep: f64,
    /// Along a run gradients fall by orders of magnitude, and a plain mean would be that of the oldest pairs. So a pair is
    /// measured in units of those just before it, which do not depend on it.
    unit: f64,
    count: u64,
    weight: f64,
    weight_squared: f64,
    /// Weighted means of G and s².
    mean: [f64; 2],
    /// Weighted sums of squares and products around them: GG, Gs, ss.
    spread: [f64; 3],
}

impl Pairs {
    /// Pairs of batches out of `terms` terms, all of equal weight: right at a fixed point.
    #[must_use]
    pub fn new(terms: usize, draws: Draws) -> Self {
        Self {
            terms,
            draws,
            keep: 1.0,
            unit: 1.0,
            count: 0,
            weight: 0.0,
            weight_squared: 0.0,
            mean: [0.0; 2],
            spread: [0.0; 3],
        }
    }

    /// Forgets: the last `window` pairs carry most of the weight. Along a run, where ρ moves.
    #[must_use]
    pub fn with_window(self, window: u64) -> Self {
        Self { keep: 1.0 - 1.0 / window.max(1) as f64, ..self }
    }

    /// Adds a pair.
    pub fn add(&mut self, pair: &Pair) {
        let [a, b] = pair.sizes.map(|size| size.max(1) as f64);
        let variance = pair.distance_squared / (1.0 / a + 1.0 / b);
        let gradient = match self.draws {
            Draws::Independent => pair.product,
            Draws::Different => pair.product + variance / self.terms.max(1) as f64,
        };
        // ‖A‖² + ‖B‖²; where both are 0 there is nothing to learn.
        let square = pair.distance_squared + 2.0 * pair.product;
        if !(gradient.is_finite() && variance.is_finite() && square > 0.0) {
            return;
        }
        let forgets = self.keep < 1.0;
        if forgets && self.count == 0 {
            self.unit = square;
        }
        let (gradient, variance) = (gradient / self.unit, variance / self.unit);
        if forgets {
            self.unit += (square - self.unit) * (8.0 * (1.0 - self.keep)).min(0.5);
        }
        self.count += 1;
        self.weight = self.keep * self.weight + 1.0;
        self.weight_squared = self.keep * self.keep * self.weight_squared + 1.0;
        let before = [gradient - self.mean[0], variance - self.mean[1]];
        let step = 1.0 / self.weight;
        self.mean = [self.mean[0] + step * before[0], self.mean[1] + step * before[1]];
        let after = [gradient - self.mean[0], variance - self.mean[1]];
        let products = [before[0] * after[0], before[0] * after[1], before[1] * after[1]];
        for (sum, product) in self.spread.iter_mut().zip(products) {
            *sum = self.keep * *sum + product;
        }
    }

    /// Pairs seen.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }
    /// Pairs that the means rest on, old ones discounted.
    #[must_use]
    pub fn effective(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.weight * self.weight / self.weight_squared }
    }
    /// The estimate of ‖∇f‖²; it may be negative where noise hides it.
    #[must_use]
    pub fn gradient_squared(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.unit * self.mean[0] }
    }
    /// The estimate of V, the variance of one term's gradient.
    #[must_use]
    pub fn variance(&self) -> f64 {
        let n = self.terms as f64;
        let finite_sum = if self.draws == Draws::Different { (n - 1.0) / n } else { 1.0 };
        if self.count == 0 { f64::NAN } else { self.unit * self.mean[1] * finite_sum }
    }
    /// The interval of ‖∇f‖².
    #[must_use]
    pub fn gradient_interval(&self) -> Interval {
        let [gg, _, _] = self.errors();
        let reach = self.quantile() * gg.sqrt();
        Interval { low: self.unit * (self.mean[0] - reach), high: self.unit * (self.mean[0] + reach) }
    }

    /// ρ of a batch of that size; infinite where G is not positive.
    #[must_use]
    pub fn rho(&self, batch: usize) -> f64 {
        if self.count == 0 {
            return f64::NAN;
        }
        let noise = self.variance() * self.draws.share(batch, self.terms);
        if self.mean[0] > 0.0 { 1.0 + noise / self.gradient_squared() } else { f64::INFINITY }
    }

    /// The interval of ρ: 1 + share times Fieller's interval of V/G. Everything, where there are fewer than two pairs.
    #[must_use]
    pub fn rho_interval(&self, batch: usize) -> Interval {
        if self.effective() < 2.0 {
            return Interval { low: 1.0, high: f64::INFINITY };
        }
        let n = self.terms as f64;
        let finite_sum = if self.draws == Draws::Different { (n - 1.0) / n } else { 1.0 };
        let share = self.draws.share(batch, self.terms) * finite_sum;
        let Interval { low, high } = fieller(self.mean, self.errors(), self.quantile());
        let rho = |ratio: f64| if share == 0.0 { 1.0 } else { 1.0 + share * ratio };
        Interval { low: rho(low), high: rho(high) }
    }

    /// Variances and covariance of both means.
    fn errors(&self) -> [f64; 3] {
        let freedom = self.weight - self.weight_squared / self.weight;
        self.spread.map(|sum| sum / freedom * self.weight_squared / (self.weight * self.weight))
    }

    /// Student's 97.5 % quantile for the pairs there are, by the expansion of Cornish and Fisher.
    fn quantile(&self) -> f64 {
        const Z: f64 = 1.959_964;
        let v = (self.effective() - 1.0).max(1.0);
        Z + (Z.powi(3) + Z) / (4.0 * v) + (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / (96.0 * v * v)
    }
}

/// All θ ≥ 0 with (s − θG)² ≤ z²·Var(s − θG): Fieller's interval of the ratio s/G of two means.
fn fieller([g, s]: [f64; 2], [gg, gs, ss]: [f64; 3], z: f64) -> Interval {
    // aθ² − 2bθ + c ≤ 0
    let (a, b, c) = (g * g - z * z * gg, s * g - z * z * gs, s * s - z * z * ss);
    let root = (b * b - a * c).max(0.0).sqrt();
    if a > 0.0 && g > 0.0 {
        return Interval { low: ((b - root) / a).max(0.0), high: ((b + root) / a).max(0.0) };
    }
    // G cannot be told from 0, or is below it: nothing bounds the ratio from above, and the larger root from below
    // if s itself is not 0.
    let low = if c > 0.0 && a < 0.0 { ((b - root) / a).max((b + root) / a) } else { 0.0 };
    Interval { low: low.max(0.0), high: f64::INFINITY }
}
