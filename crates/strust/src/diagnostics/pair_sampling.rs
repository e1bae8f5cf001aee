//! Objectives that pass their gradients to the estimators during a run. They need no extra backward pass.

use super::{
    gradient_pairs::{Pair, Pairs},
    interpolation::{Evidence, Interpolation, TOO_FEW, rounding},
};
use crate::{
    objective::{Evaluation, Objective, ObjectiveWrapper},
    sample::{Draws, Sample},
    vector::Vector,
};

/// The default number of pairs in a running estimate. It gives an interval of roughly ten percent.
const WINDOW: u64 = 200;

/// The two estimates that a verdict compares: the latest, and the one with the largest gradient (by the lower end of
/// its interval).
#[derive(Debug, Clone)]
struct Watch {
    draws: Draws,
    now: Pairs,
    before: Option<Pairs>,
    /// The largest estimate of ‖∇f‖² + V: the scale for rounding errors.
    largest: f64,
    batch: usize,
    window: u64,
}

impl Watch {
    fn new(terms: usize, draws: Draws) -> Self {
        Self { draws, now: Pairs::new(terms, draws), before: None, largest: 0.0, batch: 1, window: WINDOW }
            .with_window(WINDOW)
    }
    fn with_window(self, window: u64) -> Self {
        Self { now: self.now.with_window(window), window, ..self }
    }
    fn without_window(self) -> Self {
        Self { now: self.now.without_window(), ..self }
    }
    fn add(&mut self, pair: &Pair, batch: usize) {
        self.now.add(pair);
        self.batch = batch;
        self.largest = self.largest.max(self.now.gradient_squared() + self.now.variance());
        // An estimate of ‖∇f‖² that is not significantly different from 0 cannot serve for comparison.
        let least = self.before.as_ref().map_or(0.0, |old| old.gradient_interval().low);
        if self.now.count() >= (self.window / 4).max(2) && self.now.gradient_interval().low > least {
            self.before = Some(self.now);
        }
    }
    fn verdict(&self, epsilon: f64) -> (Interpolation, String) {
        match &self.before {
            None => (Interpolation::Doubtful, TOO_FEW.into()),
            Some(before) => Evidence::estimated(&self.now, self.batch)
                .against(&Evidence::estimated(before, self.batch), rounding(self.largest, epsilon)),
        }
    }
}

/// Evaluates the gradient of every sample as two halves. They are a pair at one point, so they give unbiased estimates
/// of ‖∇f‖² and ρ from the gradients of the run itself.
///
/// Each half contains half of the terms, so the cost is one gradient in two calls, and two inner products. The mean of
/// both is the gradient, up to rounding. Do not use it if the terms of a batch interact, as in networks with batch
/// norm; use [`Consecutive`] there. Around a [`Penalized`](crate::objective::Penalized) objective, ρ is τ of the
/// Lagrangian with λ = μc(x).
///
/// ```
/// use strust::{diagnostics::SplitBatch, prelude::*, sample::Draws};
/// use strust_baselines::{Sgd, SgdConfig};
/// // ½aᵢ(x − 1)² with aᵢ = 1, 2, 1, 2, …: E(gᵢ²)/(E gᵢ)² = 2.5/1.5² for one term.
/// let f = from_fn(1000, |x: &Vec<f64>, sample: &Sample, mut g: Option<&mut Vec<f64>>| {
///     let scale = 1.0 / sample.len() as f64;
///     sample.indices().iter().map(|&i| {
///         let a = 1.0 + (i % 2) as f64;
///         if let Some(g) = g.as_deref_mut() {
///             g[0] += scale * a * (x[0] - 1.0);
///         }
///         0.5 * scale * a * (x[0] - 1.0).powi(2)
///     }).sum()
/// });
/// let mut f = SplitBatch::new(f, Draws::Independent);
/// let mut method = Sgd::new(SgdConfig { learning_rate: 1e-6, ..Default::default() })?;
/// let _ = minimize(&mut f).method(&mut method).sampler(WithReplacement::new(1000, 4, 0)?).stop(Stop::steps(2000)).start(vec![2.0])?;
/// let exact = 1.0 + (2.5 / 2.25 - 1.0) / 4.0;
/// assert!(f.pairs().rho_interval(4).contains(exact));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SplitBatch<F: Objective> {
    inner: F,
    watch: Watch,
    other: Option<F::Point>,
    halves: [Sample; 2],
}

impl<F: Objective> SplitBatch<F> {
    /// Estimates from the gradients of `inner`. `draws` is the way its samples are drawn.
    pub fn new(inner: F, draws: Draws) -> Self {
        let watch = Watch::new(inner.terms(), draws);
        Self { inner, watch, other: None, halves: <[Sample; 2]>::default() }
    }
    /// The number of pairs in the running estimate; 200 by default.
    #[must_use]
    pub fn with_window(self, window: u64) -> Self {
        Self { watch: self.watch.with_window(window), ..self }
    }
    /// Gives all pairs the same weight. Use this for gradients at one point.
    #[must_use]
    pub fn without_window(self) -> Self {
        Self { watch: self.watch.without_window(), ..self }
    }
    /// The running estimate.
    pub fn pairs(&self) -> &Pairs {
        &self.watch.now
    }
    /// Whether interpolation holds in this run so far, and why.
    pub fn verdict(&self) -> (Interpolation, String) {
        self.watch.verdict(F::Point::EPSILON)
    }
    /// Returns the wrapped objective.
    pub fn into_inner(self) -> F {
        self.inner
    }
}

/// The parts that both wrappers share.
macro_rules! wrapper {
    () => {
        type Inner = F;
        fn wrapped(&self) -> &F {
            &self.inner
        }
        fn wrapped_mut(&mut self) -> &mut F {
            &mut self.inner
        }
        fn draws(this: &Self) -> Option<Draws> {
            Some(this.watch.draws)
        }
    };
}

impl<F: Objective> ObjectiveWrapper for SplitBatch<F> {
    wrapper!();
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        if sample.measures() || sample.len() < 2 {
            return this.inner.value_and_gradient(x, sample, gradient);
        }
        let other = this.other.get_or_insert_with(|| x.zeros_like());
        let middle = sample.len() / 2;
        this.halves[0].set_part(sample, 0..middle);
        this.halves[1].set_part(sample, middle..sample.len());
        let sizes = [middle, sample.len() - middle];
        let [a, b] = sizes.map(|size| size as f64 / sample.len() as f64);
        let first = this.inner.value_and_gradient(x, &this.halves[0], gradient);
        let second = this.inner.value_and_gradient(x, &this.halves[1], other);
        // Compute ‖A − B‖² from the vector. The difference of three products would cancel.
        let product = gradient.dot(other);
        other.scale_add(-1.0, 1.0, gradient);
        let pair = Pair { product, distance_squared: other.norm_squared(), sizes };
        // A − b·(A − B) = a·A + b·B
        gradient.add(-b, other);
        this.watch.add(&pair, sample.len());
        Evaluation { value: a * first.value + b * second.value, rounding: a * first.rounding + b * second.rounding }
    }
}

/// Pairs the gradients of consecutive steps. It does not change evaluations, and adds an inner product every second
/// step.
///
/// The two gradients are at different points. After an accepted step p = −a·g, ⟨A, B⟩ is too small by about a·gᵀ∇²f g.
/// This is a fraction aκ of ‖g‖², where κ is the curvature along the step ([`Curvature`](super::Curvature) has its
/// mean). So ρ is overestimated where the curvature is positive. The verdict of this estimate is *holds* or *doubtful*,
/// never *violated*. If a batch can be split, prefer [`SplitBatch`].
#[derive(Debug, Clone)]
pub struct Consecutive<F: Objective> {
    inner: F,
    watch: Watch,
    last: Option<F::Point>,
    /// The size of the sample whose gradient is in `last`; 0 if the next gradient begins a pair.
    waiting: usize,
}

impl<F: Objective> Consecutive<F> {
    /// Estimates from the gradients of `inner`. `draws` is the way its samples are drawn.
    pub fn new(inner: F, draws: Draws) -> Self {
        let watch = Watch::new(inner.terms(), draws);
        Self { inner, watch, last: None, waiting: 0 }
    }
    /// The number of pairs in the running estimate; 200 by default.
    #[must_use]
    pub fn with_window(self, window: u64) -> Self {
        Self { watch: self.watch.with_window(window), ..self }
    }
    /// Gives all pairs the same weight. Use this for gradients at one point.
    #[must_use]
    pub fn without_window(self) -> Self {
        Self { watch: self.watch.without_window(), ..self }
    }
    /// The running estimate.
    pub fn pairs(&self) -> &Pairs {
        &self.watch.now
    }
    /// Whether interpolation holds in this run so far, and why. It is never [`Interpolation::Violated`].
    pub fn verdict(&self) -> (Interpolation, String) {
        match self.watch.verdict(F::Point::EPSILON) {
            (Interpolation::Violated, why) => {
                (Interpolation::Doubtful, format!("{why}; consecutive steps overestimate ρ, so this is no proof"))
            }
            other => other,
        }
    }
    /// Returns the wrapped objective.
    pub fn into_inner(self) -> F {
        self.inner
    }
}

impl<F: Objective> ObjectiveWrapper for Consecutive<F> {
    wrapper!();
    fn value_and_gradient(this: &mut Self, x: &F::Point, sample: &Sample, gradient: &mut F::Point) -> Evaluation {
        let value = this.inner.value_and_gradient(x, sample, gradient);
        if sample.measures() {
            return value;
        }
        let last = this.last.get_or_insert_with(|| x.zeros_like());
        if this.waiting == 0 {
            last.copy_from(gradient);
            this.waiting = sample.len();
        } else {
            let product = last.dot(gradient);
            last.scale_add(-1.0, 1.0, gradient);
            let pair = Pair { product, distance_squared: last.norm_squared(), sizes: [this.waiting, sample.len()] };
            this.watch.add(&pair, sample.len());
            this.waiting = 0;
        }
        value
    }
}
