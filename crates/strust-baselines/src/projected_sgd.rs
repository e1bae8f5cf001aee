//! Projected SGD: a baseline of section 5.2.

use strust::{
    Error, config,
    config::{Checked, Config},
    constraints::Manifold,
    kkt::Measurement,
    methods::{Iterate, Method, evaluate, measure_on_manifold, scratch},
    objective::{Evaluation, Objective},
    record::StepRecord,
    sample::Sample,
    saved::{Load, Saved},
    schedule::Schedule,
    vector::Vector,
};

config! {
    /// Configuration of [`ProjectedSgd`]. The default is the paper's for subspace fitting.
    pub struct ProjectedSgdConfig for "sgd-proj" {
        /// Step size η.
        pub learning_rate: f64 = 5e-2, Number(Range::above(0.0));
    }
}

/// x ← restore(x − η·g): a step in the surrounding space, then a move back onto the set (QR on the Stiefel manifold).
///
/// QR gives the nearest frame only up to a rotation of its columns. This does not matter if the objective depends only
/// on the span of the columns, as in subspace fitting. For other objectives use
/// [`Retraction::Polar`](strust::constraints::Retraction::Polar); otherwise the fixed point is not the minimizer.
#[derive(Debug, Clone)]
pub struct ProjectedSgd<M: Manifold> {
    config: Checked<ProjectedSgdConfig>,
    schedule: Schedule,
    manifold: M,
    gradient: Option<M::Point>,
    trial: Option<M::Point>,
}

impl<M: Manifold> ProjectedSgd<M> {
    /// Checks the configuration.
    pub fn new(config: ProjectedSgdConfig, manifold: M) -> Result<Self, Error> {
        Ok(Self { config: config.check()?, schedule: Schedule::Constant, manifold, gradient: None, trial: None })
    }
    /// Multiplies η by the factor of a schedule.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }
}

impl<F: Objective, M: Manifold<Point = F::Point>> Method<F> for ProjectedSgd<M> {
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
        let (Evaluation { value, .. }, squared_norm) = evaluate(f, x, sample, g, *k)?;
        // In scratch space: if the retraction fails, x stays.
        let trial = scratch(&mut self.trial, x);
        trial.set_sum(x, -eta, g);
        self.manifold.restore(trial)?;
        std::mem::swap(x, trial);
        *k += 1;
        let norm = squared_norm.sqrt();
        Ok(StepRecord::plain(*k - 1, value, norm, eta, eta * norm))
    }
    fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
        Load::load(saved)
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        measure_on_manifold(f, &mut self.manifold, &state.x)
    }
}
