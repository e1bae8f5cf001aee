//! The landing method: a baseline that needs no retraction.

use crate::prelude::*;
use strust::{
    constraints::{Constraint, check_equations},
    kkt::{kkt, least_squares_multipliers},
    objective::full_value_and_gradient,
};

config! {
    /// Configuration of [`Landing`].
    pub struct LandingConfig for "landing" {
        /// Step size η.
        pub learning_rate: f64 = 5e-2, Number(Range::above(0.0));
        /// Weight λ of the direction towards the constraint.
        pub attraction: f64 = 1.0, Number(Range::above(0.0));
    }
}

/// x ← x − η(g + J(x)ᵀy + λ·J(x)ᵀc(x)), where y minimizes ‖g + J(x)ᵀy‖.
///
/// The first direction, the gradient without its part across the constraint, keeps c to first order. The second one,
/// orthogonal to it, is the gradient of (λ/2)‖c‖². So x approaches the set c(x) = 0 while f decreases, without ever being
/// moved back onto it. Ablin and Peyré (2022) introduced the method on orthogonal matrices; this form is for all
/// equations. It needs ηλ‖J‖² < 2, and ‖c‖ does not tend to 0 with a constant η on mini-batches.
///
/// *Differs:* on the Stiefel manifold they take the direction skew(GWᵀ)W, another metric than the Euclidean one of
/// g + Jᵀy.
///
/// ```
/// use strust::{constraints::Sphere, prelude::*};
/// use strust_baselines::*;
/// // The point on the unit circle nearest to (3, 4).
/// let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
///     let r = [x[0] - 3.0, x[1] - 4.0];
///     g[0] += 2.0 * r[0];
///     g[1] += 2.0 * r[1];
///     r[0] * r[0] + r[1] * r[1]
/// });
/// let method = Landing::new(LandingConfig::default(), Sphere::new(1.0)?)?;
/// let report = minimize(&mut f).method(method).stop(Stop::kkt(1e-8).or(Stop::steps(1000))).start(vec![1.0, 0.0])?;
/// assert!(report.reason.converged());
/// assert!((report.point()[0] - 0.6).abs() < 1e-8 && (report.point()[1] - 0.8).abs() < 1e-8);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Landing<C: Constraint> {
    config: Checked<LandingConfig>,
    schedule: Schedule,
    constraint: C,
    gradient: Option<C::Point>,
    residual: Option<C::Residual>,
}

impl<C: Constraint> Landing<C> {
    /// Checks the configuration. The constraint must consist of equations.
    pub fn new(config: LandingConfig, constraint: C) -> Result<Self, Error> {
        check_equations(LandingConfig::NAME, &constraint)?;
        Ok(Self { config: config.check()?, schedule: Schedule::Constant, constraint, gradient: None, residual: None })
    }
    /// Multiplies η by the factor of a schedule.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }
}

impl<F: Objective, C: Constraint<Point = F::Point>> Method<F> for Landing<C> {
    type State = Iterate<F::Point>;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        (self.gradient, self.residual) = (None, None);
        f.check_point(x)?;
        self.constraint.check_point(x)
    }
    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        Ok(Iterate { x, k: 0 })
    }
    fn step(&mut self, f: &mut F, Iterate { x, k }: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let eta = self.config.learning_rate * self.schedule.factor(*k);
        let g = scratch(&mut self.gradient, x);
        let c = self.residual.get_or_insert_with(|| self.constraint.new_residual());
        let value = evaluate(f, x, sample, g, *k)?.0.value;
        self.constraint.residual(x, c);
        let constraint_norm = c.norm();
        // y + λc
        let mut y = least_squares_multipliers(&mut self.constraint, x, g);
        y.add(self.config.attraction, c);
        self.constraint.add_vjp(x, 1.0, &y, g);
        let norm = g.norm();
        // f can be finite where the constraint is not.
        if !norm.is_finite() {
            return Err(Error::NonFiniteGradient { step: *k, norm });
        }
        x.add(-eta, g);
        *k += 1;
        Ok(StepRecord {
            constraint_norm: Some(constraint_norm),
            ..StepRecord::plain(*k - 1, value, norm, eta, eta * norm)
        })
    }
    fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
        Load::load(saved)
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        let mut g = state.x.zeros_like();
        full_value_and_gradient(f, &state.x, &mut g);
        let y = least_squares_multipliers(&mut self.constraint, &state.x, &g);
        let m = kkt(f, &mut self.constraint, &state.x, &y);
        // f can fall while x leaves the set. KKT residuals can be compared.
        Ok(Measurement { merit: m.kkt(), ..m })
    }
}
