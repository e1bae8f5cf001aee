//! What the files of the methods begin with: imports, the types of most methods, and the functions of [`Method`] that
//! are the same in many.

pub(crate) use strust::{
    Error, config,
    config::{Checked, Config},
    constraints::Manifold,
    kkt::{Measurement, measure},
    methods::{Iterate, Method, evaluate, measure_on_manifold, scratch},
    objective::{Evaluation, Evaluations, Objective},
    record::StepRecord,
    sample::Sample,
    saved::{Load, Saved},
    schedule::Schedule,
    vector::{Elementwise, Vector},
};

/// A method for min f(x) by its configuration.
#[derive(Debug, Clone)]
pub struct Baseline<C, V> {
    pub(crate) config: Checked<C>,
    pub(crate) schedule: Schedule,
    pub(crate) scratch: (Option<V>, Option<V>),
}

/// A configuration with a learning rate, which a schedule can change during a run.
pub trait HasRate: Config {}

impl<C: Config, V: Vector> Baseline<C, V> {
    /// Checks the configuration.
    pub fn new(config: C) -> Result<Self, Error> {
        Ok(Self { config: config.check()?, schedule: Schedule::Constant, scratch: (None, None) })
    }
    /// Multiplies the learning rate by the factor of a schedule.
    #[must_use]
    pub fn schedule(self, schedule: Schedule) -> Self
    where
        C: HasRate,
    {
        Self { schedule, ..self }
    }
}

impl<C: Config, V: Vector> Default for Baseline<C, V> {
    /// With the default configuration.
    fn default() -> Self {
        Self::new(C::default()).expect("the defaults are in their ranges")
    }
}

/// A method for min f(x) on a manifold by its configuration.
#[derive(Debug, Clone)]
pub struct BaselineOnManifold<C, M: Manifold> {
    pub(crate) config: Checked<C>,
    pub(crate) schedule: Schedule,
    pub(crate) manifold: M,
    pub(crate) gradient: Option<M::Point>,
    pub(crate) trial: Option<M::Point>,
}

impl<C: HasRate, M: Manifold> BaselineOnManifold<C, M> {
    pub(crate) fn with(config: C, manifold: M) -> Result<Self, Error> {
        Ok(Self { config: config.check()?, schedule: Schedule::Constant, manifold, gradient: None, trial: None })
    }
    /// Multiplies the learning rate by the factor of a schedule.
    #[must_use]
    pub fn schedule(self, schedule: Schedule) -> Self {
        Self { schedule, ..self }
    }
    /// Moves x by −η·g and back onto the set. The move is in scratch space: if the retraction fails, x stays.
    pub(crate) fn retract(&mut self, x: &mut M::Point, eta: f64) -> Result<(), Error> {
        let trial = scratch(&mut self.trial, x);
        trial.set_sum(x, -eta, scratch(&mut self.gradient, x));
        self.manifold.restore(trial)?;
        std::mem::swap(x, trial);
        Ok(())
    }
}

/// The functions of [`Method`] for a [`Baseline`], except `init` and `step`.
macro_rules! unconstrained {
    () => {
        fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
            self.scratch = (None, None);
            f.check_point(x)
        }
        fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
            Load::load(saved)
        }
        fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
            Ok(measure(f, &state.x))
        }
    };
}
pub(crate) use unconstrained;

/// The functions of [`Method`] for a [`BaselineOnManifold`], except `step`.
macro_rules! on_manifold {
    () => {
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
        fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
            Load::load(saved)
        }
        fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
            measure_on_manifold(f, &mut self.manifold, &state.x)
        }
    };
}
pub(crate) use on_manifold;
