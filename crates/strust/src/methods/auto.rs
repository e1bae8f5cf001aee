//! The default method: a schedule-free trust region with learned curvature, without a learning rate.
//!
//! Its decisions are in [`controller`](super::controller).

use super::{
    Measurement, Method,
    controller::{Follow, Learned, TrialNumbers, middle_of_stable},
    finite,
};
use crate::{
    Error, config,
    config::{Checked, Config},
    kkt::measure,
    objective::{Evaluations, Objective},
    radius::Verdict,
    record::StepRecord,
    sample::Sample,
    saved::{Load, Saved},
    vector::{Elementwise, Vector},
};
use std::mem::swap;

config! {
    /// Configuration of [`Auto`]. The defaults are meant for every problem. They have no unit.
    pub struct AutoConfig for "auto" {
        /// Longest step of z, γ: in multiples of the middle of the stable range, which is 10/κ for long averages.
        pub gamma: f64 = 0.7, Number(Range::above(0.0));
        /// Length of a step of z against noise, q: in multiples of r̄/√(n·√k).
        pub noise: f64 = 0.7, Number(Range::above(0.0));
        /// Where gradients are taken, β: between z (0) and the average x (1).
        pub momentum: f64 = 0.9, Number(Range::from_to(0.0, 1.0));
        /// Power r of the weights of the average: while the noise stays the same, step k counts in proportion to kʳ.
        pub power: f64 = 3.0, Number(Range::at_least(0.0));
        /// Decay β₂ of the mean of squared gradients.
        pub beta2: f64 = 0.99, Number(Range::open(0.0, 1.0));
        /// Lower bound ε of the metric, relative to its mean.
        pub epsilon: f64 = 1e-6, Number(Range::above(0.0));
        /// Decoupled weight decay λ: each step divides z by 1 + a·λ. 0 minimizes f itself.
        pub weight_decay: f64 = 0.0, Number(Range::at_least(0.0));
    }
}

/// A trust region that needs no learning rate and no schedule: [`Auto::default()`] is meant for every problem.
///
/// There are three points: z, where steps are made; x, the weighted average of the z, which is the answer; y between
/// them, where gradients are taken. The model of f on a sample is gᵀΔ + ½κ·ΔᵀDΔ. Its curvature κ is learned from the
/// trials, and D is a diagonal metric.
///
/// ```text
/// y = z + β(x − z);   f₀, g = f(y), ∇f(y) on the sample
/// D = √(mean of g∘g) + ε·(its mean)            over about 1/(1−β₂) steps
/// d = D⁻¹g
/// n = mean of ½‖g − gₗₐₛₜ‖² in D⁻¹;   r̄ = largest ‖y − x₀‖ in D
/// a = min(γₖ·Γ/κ, q·r̄/√(n·√k), 1.5·aₗₐₛₜ)       Γ = (2 − c)/(2(1 − β) + c(2β − 1))
/// z' = (z − a·d)/(1 + a·λ);   x' = x + c(z' − x), c = (r+1)/(m+r+1);   y' = z' + β(x' − z')
/// f₁ = f(y') on the same sample;   Δ = y' − y;   h = 2(f₁ − f₀ − gᵀΔ)/ΔᵀDΔ
/// κ = (mean of h²)/(mean of h)                 over about the last quarter of the steps
/// accept if f₁ ≤ f₀ or h ≤ 3κ; otherwise only a and κ change
/// ```
///
/// m is the number of steps that the average remembers. It grows by 1 with each step, and is multiplied by the root of
/// n'/n whenever the noise falls from n to a new minimum n': points made with less noise count more. So the average
/// follows z quickly where the data interpolate.
///
/// The first bound of a is the trust region's. 2Γ/κ is the longest stable step, if the curvature h is random and κ is
/// E(h²)/E(h). γₖ is at most γ. It follows the mean of the balance b = gᵀ(z − x)/(a·gᵀd). Where z only wanders around the
/// average, b is ½ in the mean, whatever the length of the steps (the fluctuation–dissipation relation). If the noise
/// vanishes there, shorter steps bring z closer: γₖ is halved. Where z still advances, b is small, and γₖ grows back to γ.
///
/// The second bound makes steps shorter like k^−¼ where gradients are noisy, and vanishes where the data interpolate.
///
/// Multiplying f or x by a power of 2 changes no bit of the iterates, apart from that power. The first step promises to
/// reduce f by a thousandth.
///
/// With γ = 1, β = 0, D = 1, κ = 1 and without noise the step is that of [`Str`](super::Str) inside its region.
///
/// If f or its gradient is not finite at y, the next gradient is taken at the average x. The run breaks down only if
/// they are not finite there either.
///
/// ```
/// use strust::prelude::*;
/// let y = [1.0, 3.0, 5.0, 7.0]; // the line through (0,1), (1,3), (2,5), (3,7)
/// let mut f = from_residuals(4, |i, x: &Vec<f64>, g| {
///     (g[0], g[1]) = (1.0, i as f64);
///     x[0] + x[1] * i as f64 - y[i]
/// });
/// let report = minimize(&mut f).method(Auto::default()).batch(2).stop(Stop::epochs(200)).start(vec![0.0, 0.0])?;
/// assert!((report.point()[1] - 2.0).abs() < 1e-6);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Auto<V> {
    config: Checked<AutoConfig>,
    /// λ of each component, in place of the one in the configuration.
    decays: Option<V>,
    /// The vectors of a step.
    scratch: Option<[V; 8]>,
}

impl<V: Vector> Auto<V> {
    /// Checks the configuration.
    pub fn new(config: AutoConfig) -> Result<Self, Error> {
        Ok(Self { config: config.check()?, decays: None, scratch: None })
    }
    /// A weight decay λᵢ ≥ 0 for each component, such as 0 for the biases of a network, instead of one for all.
    ///
    /// ```
    /// use strust::prelude::*;
    /// let mut f = from_terms(1, |_, x: &Vec<f64>, g| { g[0] += x[0] - 1.0; g[1] += x[1] - 1.0; 1.0 - x[0] - x[1] + 0.5 * x.norm_squared() });
    /// let method = Auto::default().weight_decays(vec![0.0, 0.5])?;
    /// let report = minimize(&mut f).method(method).stop(Stop::steps(500)).start(vec![0.0, 0.0])?;
    /// assert!((report.point()[0] - 1.0).abs() < 1e-3 && report.point()[1] < 0.99);
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn weight_decays(self, decays: V) -> Result<Self, Error> {
        if let Some(wrong) = decays.components().into_iter().find(|decay| !(decay.is_finite() && *decay >= 0.0)) {
            return Err(config::out_of_range("auto", "weight_decays", wrong, "at least 0"));
        }
        Ok(Self { decays: Some(decays), ..self })
    }
}

impl AutoConfig {
    /// metric ← D, from the root of the mean of g∘g over so many steps. In the first steps the mean has less than its full
    /// weight.
    fn set_metric<V: Elementwise>(&self, metric: &mut V, root: &V, steps: u64) {
        let correction = (1.0 - self.beta2.powf(steps as f64)).sqrt().recip();
        let mean = correction * root.norm_1() / root.dimension() as f64;
        metric.set_affine(correction, root, self.epsilon * mean);
    }
}

impl<V: Elementwise> Auto<V> {
    /// The largest weight decay of a component.
    pub(super) fn largest_decay(&self) -> f64 {
        let own = |decays: &V| decays.components().into_iter().fold(0.0, f64::max);
        self.decays.as_ref().map_or(self.config.weight_decay, own)
    }
    /// metric ← D of the last accepted step. Returns false if there is none.
    pub(super) fn set_metric(&self, metric: &mut V, state: &AutoState<V>) -> bool {
        let accepted = state.learned.accepted;
        if accepted > 0 {
            self.config.set_metric(metric, &state.root, accepted);
        }
        accepted > 0
    }
}

impl<V: Vector> Default for Auto<V> {
    /// The settings for every problem.
    fn default() -> Self {
        Self::new(AutoConfig::default()).expect("the defaults are in their ranges")
    }
}

/// State of [`Auto`].
#[derive(Debug, Clone, PartialEq)]
pub struct AutoState<V> {
    /// x, the average: the answer.
    pub(crate) x: V,
    /// z, where steps are made.
    pub(crate) z: V,
    /// x₀, the start.
    pub(crate) start: V,
    /// The last gradient of an accepted step.
    pub(crate) gradient: V,
    /// The root of the mean of g∘g, without the correction of the first steps.
    pub(crate) root: V,
    /// The numbers that it has learned.
    pub(crate) learned: Learned,
    /// Steps made.
    pub(crate) k: u64,
}
crate::saved!([V: Vector] AutoState<V> { x: vector, z: vector, start: vector, gradient: vector, root: vector, learned, k });
crate::state!(AutoState<V>, is_averaged);

impl<V> AutoState<V> {
    /// The numbers that it has learned.
    #[must_use]
    pub fn learned(&self) -> &Learned {
        &self.learned
    }
    /// A state of its parts, for the version on a device.
    #[doc(hidden)]
    pub fn from_parts(parts: AutoParts<V>) -> Self {
        let AutoParts { x, z, start, gradient, root, learned, k } = parts;
        Self { x, z, start, gradient, root, learned, k }
    }
    /// The parts of a state.
    #[doc(hidden)]
    pub fn parts(&self) -> AutoParts<&V> {
        let Self { x, z, start, gradient, root, learned, k } = self;
        AutoParts { x, z, start, gradient, root, learned: *learned, k: *k }
    }
}

/// The parts of an [`AutoState`].
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct AutoParts<V> {
    pub x: V,
    pub z: V,
    pub start: V,
    pub gradient: V,
    pub root: V,
    pub learned: Learned,
    pub k: u64,
}

impl<F: Objective<Point: Elementwise>> Method<F> for Auto<F::Point> {
    type State = AutoState<F::Point>;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        self.scratch = None;
        if let Some(decays) = self.decays.as_ref().filter(|decays| decays.shape() != x.shape()) {
            return Err(Error::Shape { place: "weight decays", expected: x.shape(), found: decays.shape() });
        }
        f.check_point(x)
    }
    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        let (gradient, root) = (x.zeros_like(), x.zeros_like());
        Ok(AutoState { z: x.clone(), start: x.clone(), x, gradient, root, learned: Learned::default(), k: 0 })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let AutoConfig { gamma, noise, momentum, power, beta2, weight_decay, .. } = *self.config;
        let AutoState { x, z, start, gradient: last, root, learned, k } = state;
        let space = self.scratch.get_or_insert_with(|| std::array::from_fn(|_| x.zeros_like()));
        let [y, g, new_root, metric, d, new_z, new_x, trial] = space;

        between(y, momentum, x, z);
        let f0 = f.value_and_gradient(y, sample, g);
        let squared_norm = match finite(f0, g, *k) {
            Ok(squared_norm) => squared_norm,
            Err(error) if learned.at_average => return Err(error),
            Err(_) => {
                z.copy_from(x);
                learned.retreat();
                *k += 1;
                return Ok(record(*k - 1, f0.value, f64::INFINITY, 0.0, 0.0, Verdict::Rejected, 0));
            }
        };
        if squared_norm == 0.0 {
            *k += 1;
            return Ok(record(*k - 1, f0.value, 0.0, 0.0, 0.0, Verdict::Accepted, 0));
        }

        // D and d = D⁻¹g
        new_root.set_root(beta2, root, 1.0 - beta2, g);
        self.config.set_metric(metric, new_root, learned.accepted + 1);
        d.set_quotient(g, metric);

        // r̄² and n
        trial.set_sum(y, -1.0, start);
        let distance = trial.weighted_norm_squared(metric);
        trial.set_sum(g, -1.0, last);
        new_z.set_quotient(trial, metric);
        let measured = learned.with_measured(distance, 0.5 * trial.dot(new_z));

        let c = measured.noise.share(power);
        let longest = gamma * middle_of_stable(momentum, c);
        let a = measured.next_size(longest, measured.longest_against_noise(noise));
        let slope = g.dot(d);
        let a = a.unwrap_or_else(|| Learned::first_size(f0.value, slope));
        trial.set_sum(z, -1.0, x);
        let balance = g.dot(trial) / (a * slope);
        new_z.set_sum(z, -a, d);
        if let Some(decays) = &self.decays {
            trial.set_affine(a, decays, 1.0);
            new_x.set_quotient(new_z, trial);
            swap(new_z, new_x);
        } else if weight_decay > 0.0 {
            new_z.scale((1.0 + a * weight_decay).recip());
        }
        between(new_x, c, new_z, x);
        between(trial, momentum, new_x, new_z);
        let f1 = f.value(trial, sample).value;

        // Δ, in the place of d
        d.set_sum(trial, -1.0, y);
        let accepted =
            learned.judge(Follow::Moments, &TrialNumbers::of(f0, f1, g.dot(d), d.weighted_norm_squared(metric)));
        let length = d.norm();
        let verdict = if accepted {
            swap(x, new_x);
            swap(z, new_z);
            swap(root, new_root);
            swap(last, g);
            learned.accept(&measured, a, balance);
            Verdict::Accepted
        } else {
            learned.reject(a);
            Verdict::Rejected
        };
        *k += 1;
        Ok(record(*k - 1, f0.value, squared_norm.sqrt(), a, length, verdict, 1))
    }
    fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
        Load::load(saved)
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        Ok(measure(f, &state.x))
    }
}

/// point ← to + share·(from − to), without a difference: its sum is the same for every scale.
fn between<V: Vector>(point: &mut V, share: f64, from: &V, to: &V) {
    point.copy_from(to);
    point.scale_add(1.0 - share, share, from);
}

fn record(
    k: u64,
    value: f64,
    gradient_norm: f64,
    step_size: f64,
    step_length: f64,
    verdict: Verdict,
    trials: u64,
) -> StepRecord {
    let evaluations = Evaluations { values: trials, gradients: 1, products: 0 };
    StepRecord { verdict, evaluations, ..StepRecord::plain(k, value, gradient_norm, step_size, step_length) }
}
