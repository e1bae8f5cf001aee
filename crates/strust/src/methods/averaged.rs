//! Iterate averaging (Polyak and Juditsky 1992), around any method.

use super::{Measurement, Method, State};
use crate::{
    Error, config,
    config::{Checked, Config},
    objective::Objective,
    record::StepRecord,
    sample::Sample,
    saved::{Load, Save, Saved, vector},
    stop::StopReason,
    vector::Vector,
};

config! {
    /// Configuration of [`Averaged`].
    pub struct AveragedConfig for "averaged" {
        /// Power r of the weights: step k counts in proportion to about kʳ. 0 is the plain mean of all iterates.
        pub power: f64 = 3.0, Number(Range::at_least(0.0));
    }
}

/// Any method, with the average of its iterates as the answer: x̄ ← x̄ + c(x − x̄) with c = (r+1)/(k+r+1).
///
/// The weights are those of polynomial-decay averaging (Shamir and Zhang 2013). The steps of the method do not change;
/// its iterate is [`AveragedState::inner`]. On a manifold the average of points lies next to the manifold, not on it. If
/// the method [settles](State::settled), as [`StrSqp`](super::StrSqp) does when it has converged, its point is the answer.
///
/// ```
/// use strust::{methods::Averaged, prelude::*};
/// use strust_baselines::{Sgd};
/// let targets = [1.0, 3.0];
/// let mut f = from_terms(2, |i, x: &Vec<f64>, g| {
///     g[0] += x[0] - targets[i];
///     0.5 * (x[0] - targets[i]).powi(2)
/// });
/// let method = Averaged::of(Sgd::default());
/// let report = minimize(&mut f).method(method).batch(1).stop(Stop::steps(2000)).start(vec![0.0])?;
/// assert!((report.point()[0] - 2.0).abs() < 0.01); // the last iterate is up to 0.1 away
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Averaged<M> {
    config: Checked<AveragedConfig>,
    inner: M,
}

impl<M> Averaged<M> {
    /// Checks the configuration.
    pub fn new(config: AveragedConfig, inner: M) -> Result<Self, Error> {
        Ok(Self { config: config.check()?, inner })
    }
    /// A method with the default weights.
    #[must_use]
    pub fn of(inner: M) -> Self {
        Self::new(AveragedConfig::default(), inner).expect("the defaults are in their ranges")
    }
}

/// State of [`Averaged`].
#[derive(Debug, Clone, PartialEq)]
pub struct AveragedState<S, V> {
    /// The state of the method.
    pub(crate) inner: S,
    /// x̄.
    pub(crate) average: V,
}

impl<S: Save, V: Vector> Save for AveragedState<S, V> {
    fn save(&self) -> Saved {
        Saved::map([("inner", self.inner.save()), ("average", vector::save(&self.average))])
    }
}
impl<S: Load, V: Vector> Load for AveragedState<S, V> {
    fn load(saved: &Saved) -> Result<Self, Error> {
        Self::with_inner(saved, S::load)
    }
}
crate::serde_as_saved!([S: Load, V: Vector] AveragedState<S, V>);

impl<S, V> AveragedState<S, V> {
    /// The state of the method, with its iterate.
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S, V: Vector> AveragedState<S, V> {
    /// Loads a state, with its inner state by `load`.
    fn with_inner(saved: &Saved, load: impl FnOnce(&Saved) -> Result<S, Error>) -> Result<Self, Error> {
        Ok(Self { inner: saved.part("inner", load)?, average: saved.part("average", vector::load)? })
    }
}

impl<V: Vector, S: State<Point = V>> State for AveragedState<S, V> {
    type Point = V;
    fn point(&self) -> &V {
        &self.average
    }
    fn into_point(self) -> V {
        self.average
    }
    fn with_point(self, x: V) -> Self {
        Self { average: x, ..self }
    }
    fn steps(&self) -> u64 {
        self.inner.steps()
    }
    fn is_averaged(&self) -> bool {
        true
    }
    fn settled(&self) -> Option<StopReason> {
        self.inner.settled()
    }
    fn settles(&self) -> bool {
        self.inner.settles()
    }
}

impl<F: Objective + ?Sized, M: Method<F>> Method<F> for Averaged<M> {
    type State = AveragedState<M::State, F::Point>;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        self.inner.prepare(f, x)
    }
    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        let inner = self.inner.init(f, x)?;
        Ok(AveragedState { average: inner.point().clone(), inner })
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        let AveragedState { inner, average } = state;
        let (k, r) = (inner.steps() as f64, self.config.power);
        let record = self.inner.step(f, inner, sample)?;
        if inner.settled().is_some() {
            // The method has found its answer. A verdict such as *converged* is about this point, not about an average.
            average.copy_from(inner.point());
        } else {
            let c = (r + 1.0) / (k + r + 1.0);
            average.scale_add(1.0 - c, c, inner.point());
        }
        Ok(record)
    }
    fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
        AveragedState::with_inner(saved, |inner| self.inner.restore(inner))
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        self.inner.measure(f, &state.inner.clone().with_point(state.average.clone()))
    }
}
