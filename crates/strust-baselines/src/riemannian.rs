//! Riemannian gradient descent: a baseline of section 5.2.

use strust::{
    Error, config,
    config::{Checked, Config},
    constraints::{Manifold, Retraction, check_equations},
    kkt::Measurement,
    methods::{Iterate, Method, evaluate, measure_on_manifold, scratch},
    objective::Objective,
    record::StepRecord,
    sample::Sample,
    saved::{Load, Saved},
    schedule::Schedule,
    vector::Vector,
};

config! {
    /// Configuration of [`Riemannian`]. The defaults are the paper's for subspace fitting.
    pub struct RiemannianConfig for "riemannian" {
        /// Step size η.
        pub learning_rate: f64 = 5e-2, Number(Range::above(0.0));
        /// How the Stiefel manifold is returned to: qr or polar. Used where the manifold is built from this table.
        pub retraction: Retraction = Retraction::Qr, OneOf(&["qr", "polar"]);
    }
}

/// x ← R_x(−η·Pg): the gradient projected onto the tangent space, then a retraction.
///
/// On the Stiefel manifold Pg = g − W·sym(Wᵀg); choose its retraction by
/// [`Stiefel::with_retraction`](strust::constraints::Stiefel::with_retraction).
#[derive(Debug, Clone)]
pub struct Riemannian<M: Manifold> {
    config: Checked<RiemannianConfig>,
    schedule: Schedule,
    manifold: M,
    gradient: Option<M::Point>,
    trial: Option<M::Point>,
}

impl<M: Manifold> Riemannian<M> {
    /// Checks the configuration.
    pub fn new(config: RiemannianConfig, manifold: M) -> Result<Self, Error> {
        check_equations("riemannian", &manifold)?;
        Ok(Self { config: config.check()?, schedule: Schedule::Constant, manifold, gradient: None, trial: None })
    }
    /// Multiplies η by the factor of a schedule.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }
}

impl<F: Objective, M: Manifold<Point = F::Point>> Method<F> for Riemannian<M> {
    type State = Iterate<F::Point>;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        (self.gradient, self.trial) = (None, None);
        f.check_point(x)?;
        self.manifold.check_point(x)
    }
    fn init(&mut self, f: &mut F, mut x: F::Point) -> Result<Self::State, Error> {
        self.prepare(f, &x)?;
        self.manifold.restore(&mut x).map_err(|error| Error::Start { why: error.to_string() })?;
        Ok(Iterate { x, k: 0 })
    }
    fn step(&mut self, f: &mut F, Iterate { x, k }: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let eta = self.config.learning_rate * self.schedule.factor(*k);
        let g = scratch(&mut self.gradient, x);
        let value = evaluate(f, x, sample, g, *k)?.0.value;
        self.manifold.project_tangent(x, g)?;
        // In scratch space: if the retraction fails, x stays.
        let trial = scratch(&mut self.trial, x);
        trial.set_sum(x, -eta, g);
        self.manifold.restore(trial)?;
        std::mem::swap(x, trial);
        *k += 1;
        let norm = g.norm();
        Ok(StepRecord::plain(*k - 1, value, norm, eta, eta * norm))
    }
    fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
        Load::load(saved)
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        measure_on_manifold(f, &mut self.manifold, &state.x)
    }
}
