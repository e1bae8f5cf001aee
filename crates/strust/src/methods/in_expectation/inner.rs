//! The methods that can make the steps: `Auto`, and `StrSqp` with exact rows and bounds.

use crate::{
    Error,
    config::out_of_range,
    constraints::{Constraint, both},
    methods::{Auto, AutoState, Certificate, Measurement, Method, State, StrSqp, StrSqpConfig, StrSqpState},
    objective::Objective,
    record::StepRecord,
    sample::Sample,
    saved::Saved,
    vector::Elementwise,
};

/// A method whose steps [`InExpectation`](super::InExpectation) can make on a Lagrangian: [`Auto`], or [`StrSqp`] for exact
/// rows and bounds in addition. Users do not implement it.
pub trait InnerMethod<V: Elementwise> {
    /// Its state.
    type State: State<Point = V>;
    /// [`Method::init`].
    fn init<F: Objective<Point = V>>(&mut self, f: &mut F, x: V) -> Result<Self::State, Error>;
    /// [`Method::prepare`].
    fn prepare<F: Objective<Point = V>>(&mut self, f: &mut F, x: &V) -> Result<(), Error>;
    /// A step on a mini-batch.
    fn step<F: Objective<Point = V>>(
        &mut self,
        f: &mut F,
        state: &mut Self::State,
        sample: &Sample,
    ) -> Result<StepRecord, Error>;
    /// [`Method::restore`].
    fn restore(&self, saved: &Saved) -> Result<Self::State, Error>;
    /// [`Method::measure`].
    fn measure<F: Objective<Point = V>>(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error>;
    /// z, where the steps are made.
    fn iterate(state: &Self::State) -> &V;
    /// metric ← D of the last step. Returns false if there is none yet.
    fn metric(&self, state: &Self::State, metric: &mut V) -> bool;
    /// Solves the problem on all terms under more rows, from a point, in at most so many steps.
    fn solve<F, C>(&mut self, f: &mut F, rows: C, x: V, steps: u64) -> Result<(StrSqpState<V>, Certificate), Error>
    where
        F: Objective<Point = V>,
        C: Constraint<Point = V>;
}

/// Minimizes f on all terms under exact constraints, from x.
fn solve<F, C>(
    f: &mut F,
    (config, constraint): (StrSqpConfig, C),
    x: F::Point,
    steps: u64,
) -> Result<(StrSqpState<F::Point>, Certificate), Error>
where
    F: Objective,
    C: Constraint<Point = F::Point>,
{
    let mut method = StrSqp::new(config, constraint)?;
    let mut state = method.init(f, x)?;
    let all = Sample::all(f.terms());
    while state.steps() < steps && state.settled().is_none() {
        method.step(f, &mut state, &all)?;
    }
    let certificate = method.certify(f, &state);
    Ok((state, certificate))
}

/// The functions that are those of [`Method`].
macro_rules! as_method {
    ($state:ty) => {
        type State = $state;
        fn init<F: Objective<Point = V>>(&mut self, f: &mut F, x: V) -> Result<Self::State, Error> {
            Method::init(self, f, x)
        }
        fn prepare<F: Objective<Point = V>>(&mut self, f: &mut F, x: &V) -> Result<(), Error> {
            Method::prepare(self, f, x)
        }
        fn measure<F: Objective<Point = V>>(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
            Method::measure(self, f, state)
        }
        fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
            crate::saved::Load::load(saved)
        }
    };
}

impl<V: Elementwise> InnerMethod<V> for Auto<V> {
    as_method!(AutoState<V>);
    fn step<F: Objective<Point = V>>(
        &mut self,
        f: &mut F,
        state: &mut Self::State,
        sample: &Sample,
    ) -> Result<StepRecord, Error> {
        Method::step(self, f, state, sample)
    }
    fn iterate(state: &Self::State) -> &V {
        &state.z
    }
    fn metric(&self, state: &Self::State, metric: &mut V) -> bool {
        self.set_metric(metric, state)
    }
    fn solve<F, C>(&mut self, f: &mut F, rows: C, x: V, steps: u64) -> Result<(StrSqpState<V>, Certificate), Error>
    where
        F: Objective<Point = V>,
        C: Constraint<Point = V>,
    {
        if self.largest_decay() > 0.0 {
            let why = "0: the steps on all terms have no decay, so they would undo it";
            return Err(out_of_range("in-expectation", "weight_decay", self.largest_decay(), why));
        }
        solve(f, (StrSqpConfig::default(), rows), x, steps)
    }
}

impl<V: Elementwise, D: Constraint<Point = V>> InnerMethod<V> for StrSqp<D> {
    as_method!(StrSqpState<V>);
    /// Without turns of the full sum: they would minimize the Lagrangian, whose multipliers are not final.
    fn step<F: Objective<Point = V>>(
        &mut self,
        f: &mut F,
        state: &mut Self::State,
        sample: &Sample,
    ) -> Result<StepRecord, Error> {
        let mut g = state.x.zeros_like();
        self.step_on_batch(f, state, sample, &mut g)
    }
    fn iterate(state: &Self::State) -> &V {
        state.batch.as_ref().map_or(&state.x, |batch| &batch.iterate)
    }
    fn metric(&self, state: &Self::State, metric: &mut V) -> bool {
        metric.set_affine(0.0, &state.x, 1.0);
        true
    }
    fn solve<F, C>(&mut self, f: &mut F, rows: C, x: V, steps: u64) -> Result<(StrSqpState<V>, Certificate), Error>
    where
        F: Objective<Point = V>,
        C: Constraint<Point = V>,
    {
        solve(f, (self.config(), both(self.constraint(), rows)?), x, steps)
    }
}
