//! PoNoS (Galli, Rauhut and Schmidt 2023): a nonmonotone stochastic line search from a Polyak step.

use crate::{
    line_search::{Armijo, SearchLine},
    prelude::*,
};

config! {
    /// Configuration of [`Ponos`]. The defaults are those of the authors' code.
    pub struct PonosConfig for "ponos" {
        /// Sufficient decrease c of the line search.
        pub decrease: f64 = 0.5, Number(Range::open(0.0, 1.0));
        /// Factor δ of each backtrack.
        pub backtrack: f64 = 0.5, Number(Range::open(0.0, 1.0));
        /// Divisor c_p of the Polyak step f/(c_p‖g‖²), where a search starts.
        pub polyak: f64 = 0.1, Number(Range::above(0.0));
        /// Memory ξ of the reference value: 0 is the monotone search, 1 the mean of all values so far.
        pub memory: f64 = 1.0, Number(Range::closed(0.0, 1.0));
        /// Largest step size at which a search starts.
        pub max_step: f64 = 10.0, Number(Range::above(0.0));
        /// Smallest step size at which a search starts.
        pub min_step: f64 = 1e-6, Number(Range::above(0.0));
        /// Backtracks after which a step is given up and x stays.
        pub max_backtracks: u64 = 99, Whole(Range::at_least(1.0));
    }
    where |c| if c.min_step <= c.max_step { Ok(()) } else {
        Err(config::out_of_range(Self::NAME, "min_step", c.min_step, format!("at most `max_step` = {}", c.max_step)))
    }
}

/// x ← x − η·g for the first η = η₀, δη₀, δ²η₀ … with fᵢ(x − ηg) ≤ max(C, fᵢ(x)) − cη‖g‖², on the same sample.
///
/// C is a running mean of the values (Zhang and Hager 2004): Q' = ξQ + 1, C ← (ξQC + fᵢ(x))/Q', Q ← Q'. A search starts
/// at the Polyak step for the lower bound 0, shortened by the backtracks of the steps before:
/// η₀ = δˡ·fᵢ(x)/(c_p‖g‖²), between `min_step` and `max_step`. After a step with b backtracks l ← max(l + b − 1, 0), so
/// that most steps need none. The loss must not be negative. With the default ξ = 1 the first values stay in C, which then
/// falls no faster than 1/k; where the loss goes to 0, a smaller ξ arrives much earlier.
///
/// ```
/// use strust::prelude::*;
/// use strust_baselines::*;
/// let mut f = from_terms(2, |i, x: &Vec<f64>, g| {
///     g[i] += 2.0 * (x[i] - 3.0);
///     (x[i] - 3.0).powi(2)
/// });
/// let method = Ponos::new(PonosConfig { memory: 0.5, ..Default::default() })?;
/// let report = minimize(&mut f).method(method).batch(1).stop(Stop::steps(100)).start(vec![0.0, 0.0])?;
/// assert!((report.point()[0] - 3.0).abs() < 1e-3);
/// # Ok::<(), strust::Error>(())
/// ```
pub type Ponos<V> = Baseline<PonosConfig, V>;

/// State of [`Ponos`].
#[derive(Debug, Clone, PartialEq)]
pub struct PonosState<V> {
    /// x.
    pub x: V,
    /// C.
    pub mean: f64,
    /// Q.
    pub weight: f64,
    /// l.
    pub backtracks: u64,
    /// Steps made.
    pub k: u64,
}
strust::saved!([V: Vector] PonosState<V> { x: vector, mean, weight, backtracks, k });
strust::state!(PonosState);

impl<F: Objective> Method<F> for Ponos<F::Point> {
    type State = PonosState<F::Point>;

    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        Ok(PonosState { x, mean: 0.0, weight: 0.0, backtracks: 0, k: 0 })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let PonosConfig { decrease, backtrack, polyak, memory, max_step, min_step, max_backtracks } = *self.config;
        let PonosState { x, mean, weight, backtracks, k } = state;
        let gradient = scratch(&mut self.scratch.0, x);
        let (Evaluation { value, rounding }, squared_norm) = evaluate(f, x, sample, gradient, *k)?;

        // The state changes only after the last evaluation.
        let kept = memory * *weight;
        let new_weight = kept + 1.0;
        let new_mean = (kept * *mean + value) / new_weight;
        // 1e-8 is from the authors' code.
        // Differs: that code makes no step at all if ‖g‖ < 1e-8; here such a step is searched like any other.
        let polyak_step = value / (polyak * squared_norm + 1e-8) * backtrack.powf(*backtracks as f64);
        let first = polyak_step.min(max_step).max(min_step);

        let reference = Evaluation { value: new_mean.max(value), rounding };
        let rule = Armijo { decrease, backtrack, max_backtracks };
        let line = SearchLine { x, gradient, squared_norm, trial: scratch(&mut self.scratch.1, gradient) };
        let (verdict, eta, values) = rule.search(f, sample, line, reference, first);
        (*mean, *weight) = (new_mean, new_weight);
        *backtracks = (*backtracks + values - 1).saturating_sub(1);
        *k += 1;
        let norm = squared_norm.sqrt();
        Ok(StepRecord {
            verdict,
            evaluations: Evaluations { values, gradients: 1, products: 0 },
            ..StepRecord::plain(*k - 1, value, norm, eta, eta * norm)
        })
    }
    unconstrained!();
}
