//! SLS: SGD with a stochastic Armijo line search (Vaswani et al. 2019), the second baseline of section 5.1.

use crate::prelude::*;
use serde::{Deserialize, Serialize};
use strust::{config::FieldValue, radius::Verdict};

/// Where the search of a step starts (the three rules of the method's paper).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reset {
    /// At the last step size.
    Last,
    /// At the maximum.
    Max,
    /// At the last step size times γ^(b/n) for a batch of b of n terms, limited by the maximum.
    #[default]
    Grow,
}

impl FieldValue for Reset {
    fn number(&self) -> Option<f64> {
        None
    }
}

config! {
    /// Configuration of [`LineSearch`]. The defaults are the paper's for CIFAR-10.
    pub struct LineSearchConfig for "sls" {
        /// Sufficient decrease c of the Armijo condition.
        pub decrease: f64 = 0.05, Number(Range::open(0.0, 1.0));
        /// Factor β of each backtrack.
        pub backtrack: f64 = 0.9, Number(Range::open(0.0, 1.0));
        /// Largest step size, and the first one tried.
        pub max_step: f64 = 2.0, Number(Range::above(0.0));
        /// Where a search starts: last (the last step size), max (the maximum), grow (the last one times γ^(b/n)).
        pub reset: Reset = Reset::Grow, OneOf(&["last", "max", "grow"]);
        /// Growth γ over one pass of the data, for reset = grow.
        pub growth: f64 = 2.0, Number(Range::above(1.0));
        /// Backtracks after which a step is given up and x stays.
        pub max_backtracks: u64 = 100, Whole(Range::at_least(1.0));
    }
}

/// x ← x − η·g for the first η = η₀, βη₀, β²η₀ … with fᵢ(x − ηg) ≤ fᵢ(x) − cη‖g‖², on the same sample.
pub type LineSearch<V> = Baseline<LineSearchConfig, V>;

/// State of [`LineSearch`].
#[derive(Debug, Clone, PartialEq)]
pub struct LineSearchState<V> {
    /// x.
    pub x: V,
    /// The last step size.
    pub step_size: f64,
    /// Steps made.
    pub k: u64,
}
strust::saved!([V: Vector] LineSearchState<V> { x: vector, step_size, k });
strust::state!(LineSearchState);

/// The condition of a line search, and its backtracks.
pub(crate) struct Armijo {
    pub decrease: f64,
    pub backtrack: f64,
    pub max_backtracks: u64,
}

/// The half-line x − ηg, with scratch space for a trial point.
pub(crate) struct SearchLine<'a, V> {
    pub x: &'a mut V,
    pub gradient: &'a V,
    pub squared_norm: f64,
    pub trial: &'a mut V,
}

impl Armijo {
    /// Moves x to the first x − ηg, η = η₀, βη₀, β²η₀ …, at which f is at most the reference − cη‖g‖². Returns the
    /// verdict, the last η and the number of trials.
    pub fn search<F: Objective>(
        &self,
        f: &mut F,
        sample: &Sample,
        SearchLine { x, gradient, squared_norm, trial }: SearchLine<F::Point>,
        // Differs: the decrease is required up to rounding, as in STR. Otherwise the search would backtrack to tiny
        // steps at the rounding floor of f.
        Evaluation { value, rounding }: Evaluation,
        mut eta: f64,
    ) -> (Verdict, f64, u64) {
        let mut values = 0;
        loop {
            trial.set_sum(x, -eta, gradient);
            let at_trial = f.value(trial, sample).value;
            values += 1;
            if at_trial.is_finite() && at_trial <= value - self.decrease * eta * squared_norm + rounding {
                std::mem::swap(x, trial);
                return (Verdict::Accepted, eta, values);
            }
            if values > self.max_backtracks {
                // Differs: the authors' code takes a tiny fixed step here. We keep x and record the step as rejected.
                return (Verdict::Rejected, eta, values);
            }
            eta *= self.backtrack;
        }
    }
}

impl<F: Objective> Method<F> for LineSearch<F::Point> {
    type State = LineSearchState<F::Point>;

    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        Ok(LineSearchState { x, step_size: self.config.max_step, k: 0 })
    }

    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let c = &*self.config;
        let LineSearchState { x, step_size, k } = state;
        let g = scratch(&mut self.scratch.0, x);
        let trial = scratch(&mut self.scratch.1, x);
        let (at_x, squared_norm) = evaluate(f, x, sample, g, *k)?;

        let share = sample.len() as f64 / f.terms() as f64;
        let eta = match c.reset {
            _ if *k == 0 => c.max_step,
            Reset::Last => *step_size,
            Reset::Max => c.max_step,
            // Differs: the method's paper does not limit the step size here. Without the limit, many easy batches in a
            // row would make it arbitrarily large. With the limit, `max_step` has the same meaning for every reset.
            Reset::Grow => (*step_size * c.growth.powf(share)).min(c.max_step),
        };
        let rule = Armijo { decrease: c.decrease, backtrack: c.backtrack, max_backtracks: c.max_backtracks };
        let line = SearchLine { x, gradient: g, squared_norm, trial };
        let (verdict, eta, values) = rule.search(f, sample, line, at_x, eta);
        *step_size = eta;
        *k += 1;
        let norm = squared_norm.sqrt();
        Ok(StepRecord {
            verdict,
            evaluations: Evaluations { values, gradients: 1, products: 0 },
            ..StepRecord::plain(*k - 1, at_x.value, norm, eta, eta * norm)
        })
    }
    unconstrained!();
}
