//! STR-P: Algorithm 2, which is Algorithm 1 over a penalized objective.

use super::{
    Measurement, Method,
    trust_region::{Scratch, StrState, trust_region_step},
};
use crate::{
    Error,
    config::{Checked, Config},
    constraints::{Constraint, check_equations},
    kkt::kkt,
    models::Penalty,
    objective::{Objective, Penalized, PenaltyScratch},
    radius::{RegionConfig, region_config},
    record::StepRecord,
    sample::Sample,
    saved::{Load, Saved},
    vector::Vector,
};

region_config! {
    /// Configuration of [`StrP`]. The defaults are the paper's for subspace fitting.
    pub struct StrPConfig for "str-p" {
        /// Penalty μ; a fixed μ leaves ‖c‖ = O(1/μ) unless the penalty is exact, as it is for subspace fitting.
        pub penalty: f64 = 1.0, Number(Range::above(0.0));
        region = RegionConfig::constrained(), RegionConfig::FIELDS;
    }
}

/// Stochastic trust region with a quadratic penalty, Algorithm 2.
///
/// STR on φᵢ(x) = fᵢ(x) + (μ/2)‖c(x)‖² ([`Penalized`]) with the model H = I + μJᵀJ ([`Penalty`]).
///
/// ```
/// use strust::{constraints::Sphere, prelude::*};
/// // The point on the unit circle nearest to (3, 4).
/// let mut f = from_terms(1, |_, x: &Vec<f64>, g| {
///     let r = [x[0] - 3.0, x[1] - 4.0];
///     g[0] += 2.0 * r[0];
///     g[1] += 2.0 * r[1];
///     r[0] * r[0] + r[1] * r[1]
/// });
/// let config = StrPConfig { penalty: 1e3, ..Default::default() };
/// let method = StrP::new(config, Sphere::new(1.0)?)?;
/// let report = minimize(&mut f).method(method).stop(Stop::steps(5000)).start(vec![1.0, 0.0])?;
/// assert!((report.point()[0] - 0.6).abs() < 0.01 && (report.point()[1] - 0.8).abs() < 0.01);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StrP<C: Constraint> {
    config: Checked<StrPConfig>,
    constraint: C,
    scratch: Scratch<C::Point>,
    penalty_scratch: Option<PenaltyScratch<C::Residual>>,
}

impl<C: Constraint> StrP<C> {
    /// Checks the configuration.
    pub fn new(config: StrPConfig, constraint: C) -> Result<Self, Error> {
        Ok(Self { config: config.check()?, constraint, scratch: None, penalty_scratch: None })
    }
    /// The multipliers λ = μ·c(x) of the paper's Corollary 4.13.
    pub fn multipliers(&mut self, x: &C::Point) -> C::Residual {
        let mut c = self.constraint.new_residual();
        self.constraint.residual(x, &mut c);
        let mut multipliers = c.zeros_like();
        multipliers.add(self.config.penalty, &c);
        multipliers
    }
}

impl<F: Objective, C: Constraint<Point = F::Point>> Method<F> for StrP<C> {
    type State = StrState<F::Point>;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        (self.scratch, self.penalty_scratch) = (None, None);
        f.check_point(x)?;
        check_equations(StrPConfig::NAME, &self.constraint)?;
        self.constraint.check_point(x)
    }

    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        Ok(StrState { x, radius: self.config.region.initial_radius, k: 0, memory: () })
    }

    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let Self { config, constraint, scratch, penalty_scratch } = self;
        let space = penalty_scratch.take().unwrap_or_else(|| PenaltyScratch::new(constraint));
        let mut phi = Penalized::with_scratch(f, constraint, config.penalty, space);
        let record = trust_region_step(&mut phi, &config.region, &mut Penalty, state, sample, scratch);
        let constraint_norm = Some(phi.gradient_constraint_norm());
        *penalty_scratch = Some(phi.into_scratch());
        Ok(StepRecord { constraint_norm, ..record? })
    }

    fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
        Load::load(saved)
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        let multipliers = self.multipliers(&state.x);
        let m = kkt(f, &mut self.constraint, &state.x, &multipliers);
        Ok(Measurement { merit: m.value + 0.5 * self.config.penalty * m.constraint_norm.powi(2), ..m })
    }
}
