//! The strong growth constant from pairs of independent mini-batches, with its confidence interval.

use crate::{sample::Draws, statistics::student_quantile};

/// The input of the estimators: inner product and distance of the gradients A and B of two mini-batches at one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// ⟨A, B⟩.
    pub product: f64,
    /// ‖A − B‖².
    pub distance_squared: f64,
    /// Terms of both batches.
    pub sizes: [usize; 2],
}

/// A 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end; infinite if the data do not bound it.
    pub high: f64,
}

impl Interval {
    /// Whether a number is in the interval.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Running means of two estimates from each pair, in constant memory:
///
/// - G, an estimate of ‖∇f‖²: ⟨A, B⟩, or ⟨A, B⟩ + s²/n for different terms, because disjoint batches of a finite sum
///   are negatively correlated;
/// - s², an estimate of the variance of a term's gradient: ‖A − B‖²/(1/|A| + 1/|B|).
///
/// Both are unbiased for two batches at one point. ρ = 1 + s²·share/G is a ratio of means, and its interval is
/// Fieller's. If G is not significantly different from 0, this interval has no upper end.
///
/// ```
/// use strust::{diagnostics::{Pair, Pairs}, sample::Draws};
/// let mut pairs = Pairs::new(1000, Draws::Independent);
/// for k in 0..100 {
///     let noise = if k % 2 == 0 { 0.1 } else { -0.1 };
///     pairs.add(&Pair { product: 2.0 + noise, distance_squared: 6.0 - noise, sizes: [4, 4] });
/// }
/// // s² = 6/(1/4 + 1/4) = 12 for a term, so ρ = 1 + 12/4/2 for a batch of 4.
/// assert!((pairs.rho(4) - 2.5).abs() < 1e-12);
/// assert!(pairs.rho_interval(4).contains(2.5) && pairs.rho_interval(4).high < 2.6);
/// ```
///
/// Along a run, gradients decrease by orders of magnitude, and the oldest pairs would dominate a mean over a
/// [window](Pairs::with_window). So each pair is divided by a unit: the mean of ‖A‖² + ‖B‖² over the pairs just before
/// it. ρ does not depend on the unit. ‖∇f‖² and V use the last unit, and the interval of ‖∇f‖² includes its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pairs {
    terms: usize,
    draws: Draws,
    count: u64,
    /// The means of G and s², in units.
    means: Means,
    /// Absent without a window: then the unit is 1.
    unit: Option<Unit>,
}

/// The mean of ‖A‖² + ‖B‖² over the last pairs. It is the unit of the next pair, so the unit is independent of that
/// pair.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Unit {
    /// The mean of ‖A‖² + ‖B‖².
    sizes: Means,
    /// The mean of (‖A‖² + ‖B‖²)/unit. Its spread is random only: it does not include the decrease along the run.
    news: Means,
}

impl Unit {
    /// The relative variance of the unit.
    fn error(&self) -> f64 {
        let chance = self.news.variance() / (self.news.mean[0] * self.news.mean[0]);
        if chance.is_finite() { chance / self.sizes.effective() } else { 0.0 }
    }
    /// The divisor for the next pair. Dividing by a number with a random error gives a quotient that is too large on
    /// average, by the relative variance.
    fn divisor(&self) -> f64 {
        self.sizes.mean[0] * (1.0 + self.error())
    }
    fn add(&mut self, size: f64) {
        if self.sizes.weight > 0.0 {
            self.news.add([size / self.sizes.mean[0], 0.0]);
        }
        self.sizes.add([size, 0.0]);
    }
}

impl Pairs {
    /// Pairs of batches out of `terms` terms, with equal weights. Use this at a fixed point.
    #[must_use]
    pub fn new(terms: usize, draws: Draws) -> Self {
        Self { terms, draws, count: 0, means: Means::new(1.0), unit: None }
    }

    /// Gives most of the weight to the last `window` pairs. Use this along a run, where ρ changes.
    #[must_use]
    pub fn with_window(self, window: u64) -> Self {
        let window = window.max(1) as f64;
        let [all, few] = [window, (window / 8.0).max(2.0)].map(|pairs| Means::new(1.0 - 1.0 / pairs));
        Self { means: all, unit: Some(Unit { sizes: few, news: all }), ..self }
    }

    /// Starts again, with equal weights.
    #[must_use]
    pub fn without_window(self) -> Self {
        Self::new(self.terms, self.draws)
    }

    /// Adds a pair.
    pub fn add(&mut self, pair: &Pair) {
        let [a, b] = pair.sizes.map(|size| size.max(1) as f64);
        let variance = pair.distance_squared / (1.0 / a + 1.0 / b);
        let gradient = match self.draws {
            Draws::Independent => pair.product,
            Draws::Different => pair.product + variance / self.terms.max(1) as f64,
        };
        // ‖A‖² + ‖B‖². If both are 0, the pair has no information.
        let size = pair.distance_squared + 2.0 * pair.product;
        if !(gradient.is_finite() && variance.is_finite() && size > 0.0) {
            return;
        }
        let divisor = match &mut self.unit {
            None => 1.0,
            Some(unit) => {
                let divisor = if self.count == 0 { size } else { unit.divisor() };
                unit.add(size);
                divisor
            }
        };
        self.means.add([gradient / divisor, variance / divisor]);
        self.count += 1;
    }

    /// The number of pairs.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }
    /// The effective number of pairs in the means. Old pairs count less.
    #[must_use]
    pub fn effective(&self) -> f64 {
        self.means.effective()
    }
    /// The estimate of ‖∇f‖². It can be negative if the noise is large.
    #[must_use]
    pub fn gradient_squared(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.unit() * self.means.mean[0] }
    }
    /// The estimate of V, the variance of one term's gradient.
    #[must_use]
    pub fn variance(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.unit() * self.means.mean[1] * self.finite_sum() }
    }
    /// The interval of ‖∇f‖²; all numbers if there are fewer than two pairs.
    #[must_use]
    pub fn gradient_interval(&self) -> Interval {
        if self.effective() < 2.0 {
            return Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let (unit, mean, [gg, _, _]) = (self.unit(), self.means.mean[0], self.means.errors());
        let error = self.unit.as_ref().map_or(0.0, |unit| unit.sizes.quantile() * unit.error().sqrt());
        // The errors of the mean and of its unit are not independent, so add them, not their squares.
        let reach = unit * (self.means.quantile() * gg.sqrt() + error * mean.abs());
        Interval { low: unit * mean - reach, high: unit * mean + reach }
    }

    fn unit(&self) -> f64 {
        self.unit.as_ref().map_or(1.0, |unit| unit.sizes.mean[0])
    }

    /// ρ of a batch of this size; infinite if G is not positive.
    #[must_use]
    pub fn rho(&self, batch: usize) -> f64 {
        if self.count == 0 {
            return f64::NAN;
        }
        let [gradient, variance] = self.means.mean;
        if gradient > 0.0 { 1.0 + self.share(batch) * variance / gradient } else { f64::INFINITY }
    }

    /// The interval of ρ: 1 + share times Fieller's interval of V/G; all ρ ≥ 1 if there are fewer than two pairs.
    #[must_use]
    pub fn rho_interval(&self, batch: usize) -> Interval {
        if self.effective() < 2.0 {
            return Interval { low: 1.0, high: f64::INFINITY };
        }
        let Interval { low, high } = fieller(self.means.mean, self.means.errors(), self.means.quantile());
        let share = self.share(batch);
        let rho = |ratio: f64| if share == 0.0 { 1.0 } else { 1.0 + share * ratio };
        Interval { low: rho(low), high: rho(high) }
    }

    /// The fraction of s² that is the variance of the mean over a batch.
    fn share(&self, batch: usize) -> f64 {
        self.draws.share(batch, self.terms) * self.finite_sum()
    }

    /// V/s². s² estimates the variance with the divisor n − 1.
    fn finite_sum(&self) -> f64 {
        let n = self.terms as f64;
        if self.draws == Draws::Different { (n - 1.0) / n } else { 1.0 }
    }
}

/// Means of two numbers with weights that decrease with age, and the errors of these means.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Means {
    /// The factor by which each new number reduces the old weights.
    keep: f64,
    weight: f64,
    weight_squared: f64,
    mean: [f64; 2],
    /// Weighted sums around the means: squares of the first number, products, squares of the second.
    spread: [f64; 3],
}

impl Means {
    fn new(keep: f64) -> Self {
        Self { keep, weight: 0.0, weight_squared: 0.0, mean: [0.0; 2], spread: [0.0; 3] }
    }

    fn add(&mut self, [x, y]: [f64; 2]) {
        self.weight = self.keep * self.weight + 1.0;
        self.weight_squared = self.keep * self.keep * self.weight_squared + 1.0;
        let before = [x - self.mean[0], y - self.mean[1]];
        let step = 1.0 / self.weight;
        self.mean = [self.mean[0] + step * before[0], self.mean[1] + step * before[1]];
        let after = [x - self.mean[0], y - self.mean[1]];
        let products = [before[0] * after[0], before[0] * after[1], before[1] * after[1]];
        for (sum, product) in self.spread.iter_mut().zip(products) {
            *sum = self.keep * *sum + product;
        }
    }

    /// The number of equally weighted values that would give the same errors.
    fn effective(&self) -> f64 {
        if self.weight > 0.0 { self.weight * self.weight / self.weight_squared } else { 0.0 }
    }

    /// The variance of the first number.
    fn variance(&self) -> f64 {
        self.spread[0] / self.freedom()
    }

    /// Variances and covariance of both means.
    fn errors(&self) -> [f64; 3] {
        self.spread.map(|sum| sum / self.freedom() / self.effective())
    }

    fn freedom(&self) -> f64 {
        self.weight - self.weight_squared / self.weight
    }

    /// Student's 97.5 % quantile for these means.
    fn quantile(&self) -> f64 {
        student_quantile(self.effective() - 1.0)
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
    // G is negative or not significantly different from 0, so the ratio has no upper bound. The larger root is a lower
    // bound if s is significantly different from 0.
    let low = if c > 0.0 && a < 0.0 { ((b - root) / a).max((b + root) / a) } else { 0.0 };
    Interval { low: low.max(0.0), high: f64::INFINITY }
}
