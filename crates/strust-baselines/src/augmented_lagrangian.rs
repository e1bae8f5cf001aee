//! Stochastic augmented Lagrangian: a baseline of section 5.2.

use crate::prelude::*;
use strust::{
    constraints::{Constraint, check_equations},
    kkt::kkt,
};

config! {
    /// Configuration of [`AugLag`]. The defaults are the paper's for subspace fitting.
    pub struct AugLagConfig for "auglag" {
        /// Step size η of the inner SGD.
        pub learning_rate: f64 = 0.01, Number(Range::above(0.0));
        /// First penalty μ₀.
        pub penalty: f64 = 0.1, Number(Range::above(0.0));
        /// Factor of μ after each round of inner epochs.
        pub growth: f64 = 1.1, Number(Range::at_least(1.0));
        /// Epochs of SGD between two updates of the multipliers.
        pub inner_epochs: u64 = 10, Whole(Range::at_least(1.0));
        /// Damping of the multiplier update λ ← λ + damping·μ·c.
        pub damping: f64 = 0.5, Number(Range::up_to(0.0, 1.0));
    }
}

/// Steps of the power method for ‖J‖².
const POWER_STEPS: usize = 5;

/// SGD on f + ⟨λ, c⟩ + (μ/2)‖c‖²; after every `inner_epochs` passes λ ← λ + damping·μ·c(x) and μ ← growth·μ.
///
/// *Differs:* μ stops growing at 1/(η‖J‖²), half of where a step becomes unstable. In the paper it grows without bound,
/// and a fixed rate η then makes long runs diverge.
#[derive(Debug, Clone)]
pub struct AugLag<C: Constraint> {
    config: Checked<AugLagConfig>,
    schedule: Schedule,
    constraint: C,
    gradient: Option<C::Point>,
    next: Option<C::Point>,
    residual: Option<[C::Residual; 3]>,
}

impl<C: Constraint> AugLag<C> {
    /// Checks the configuration.
    pub fn new(config: AugLagConfig, constraint: C) -> Result<Self, Error> {
        let (config, schedule) = (config.check()?, Schedule::Constant);
        Ok(Self { config, schedule, constraint, gradient: None, next: None, residual: None })
    }
    /// Multiplies η by the factor of a schedule.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }
}

/// State of [`AugLag`].
#[derive(Debug, Clone, PartialEq)]
pub struct AugLagState<V, R> {
    /// x.
    pub x: V,
    /// λ.
    pub multipliers: R,
    /// μ.
    pub penalty: f64,
    /// Terms used since the last update of λ and μ; n terms are one epoch.
    pub terms_seen: u64,
    /// Steps made.
    pub k: u64,
}
strust::saved!([V: Vector, R: Vector] AugLagState<V, R> { x: vector, multipliers: vector, penalty, terms_seen, k });
strust::state!(AugLagState<V, R: Vector>);

impl<F: Objective, C: Constraint<Point = F::Point>> Method<F> for AugLag<C> {
    type State = AugLagState<F::Point, C::Residual>;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        (self.gradient, self.next, self.residual) = (None, None, None);
        f.check_point(x)?;
        check_equations(AugLagConfig::NAME, &self.constraint)?;
        self.constraint.check_point(x)
    }

    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        let multipliers = self.constraint.new_residual();
        Ok(AugLagState { x, multipliers, penalty: self.config.penalty, terms_seen: 0, k: 0 })
    }

    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let AugLagState { x, multipliers, penalty, terms_seen, k } = state;
        let g = scratch(&mut self.gradient, x);
        let zero = || multipliers.zeros_like();
        let [c, y, other] = self.residual.get_or_insert_with(|| [zero(), zero(), zero()]);

        let eta = self.config.learning_rate * self.schedule.factor(*k);
        let (step, mu) = (*k, *penalty);
        // After the first step, only too long a step has led to a point that is not finite.
        let cause = |error| match step {
            0 => error,
            _ => Error::PenaltyTooLarge { step, method: "the augmented Lagrangian", penalty: mu, rate: eta },
        };

        // ∇f + Jᵀ(λ + μc)
        let value = evaluate(f, x, sample, g, step).map_err(cause)?.0.value;
        self.constraint.residual(x, c);
        y.set_sum(multipliers, *penalty, c);
        self.constraint.add_vjp(x, 1.0, y, g);
        let (norm, constraint_norm) = (g.norm(), c.norm());
        let lagrangian = value + multipliers.dot(c) + 0.5 * *penalty * constraint_norm.powi(2);
        // f can be finite where the constraint is not.
        if !lagrangian.is_finite() {
            return Err(cause(Error::NonFiniteValue { step, value: lagrangian }));
        }
        if !norm.is_finite() {
            return Err(cause(Error::NonFiniteGradient { step, norm }));
        }

        // The new point is in scratch space until the last evaluation of the constraint.
        let next = scratch(&mut self.next, x);
        next.set_sum(x, -eta, g);
        let seen = *terms_seen + sample.len() as u64;
        let outer = seen >= self.config.inner_epochs.saturating_mul(f.terms() as u64);
        if outer {
            self.constraint.residual(next, c);
            y.set_sum(multipliers, self.config.damping * mu, c);
            let limit = (eta * largest_square(&mut self.constraint, next, other, c, g)).recip();
            let grown = self.config.growth * mu;
            *penalty = if limit.is_finite() { grown.min(limit.max(mu)) } else { grown };
            std::mem::swap(multipliers, y);
        }
        *terms_seen = if outer { 0 } else { seen };
        std::mem::swap(x, next);
        *k += 1;
        Ok(StepRecord {
            constraint_norm: Some(constraint_norm),
            ..StepRecord::plain(*k - 1, lagrangian, norm, eta, eta * norm)
        })
    }

    fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
        Load::load(saved)
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        let mut c = self.constraint.new_residual();
        self.constraint.residual(&state.x, &mut c);
        let mut y = c.zeros_like();
        y.set_sum(&state.multipliers, state.penalty, &c);
        let m = kkt(f, &mut self.constraint, &state.x, &y);
        // λ and μ change during the run, so values of the Lagrangian cannot be compared. KKT residuals can.
        Ok(Measurement { merit: m.kkt(), ..m })
    }
}

/// About ‖J(x)‖², by a few steps of the power method from the last gradient g. `y` and `other` are scratch space.
fn largest_square<C: Constraint + ?Sized>(
    constraint: &mut C,
    x: &C::Point,
    y: &mut C::Residual,
    other: &mut C::Residual,
    g: &mut C::Point,
) -> f64 {
    let mut square = f64::NAN;
    for _ in 0..POWER_STEPS {
        constraint.jvp(x, g, other);
        // Scaled, so that no power overflows.
        y.set_zero();
        y.add(other.norm().recip(), other);
        g.set_zero();
        constraint.add_vjp(x, 1.0, y, g);
        square = g.norm_squared();
    }
    square
}
