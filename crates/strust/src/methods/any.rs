//! A method whose type is hidden.

use super::{Measurement, Method, State};
use crate::{
    Error,
    objective::Objective,
    record::StepRecord,
    sample::Sample,
    saved::{Save, Saved},
    stop::StopReason,
    vector::Vector,
};
use std::{any::Any, fmt};

/// The objective as a hidden method sees it.
type DynObjective<'a, P> = &'a mut (dyn Objective<Point = P> + 'a);

/// Any method on points of type `P`, chosen while the program runs. A program with many methods compiles what it does
/// with them once, not once for each.
///
/// ```
/// use strust::{methods::AnyMethod, prelude::*};
/// let mut f = from_terms(1, |_, x: &Vec<f64>, g| { g[0] += 2.0 * x[0]; x[0] * x[0] });
/// for method in [AnyMethod::new(Str::default()), AnyMethod::new(Auto::default())] {
///     let report = minimize(&mut f).method(method).stop(Stop::steps(50)).start(vec![3.0])?;
///     assert!(report.point()[0].abs() < 1e-3);
/// }
/// # Ok::<(), strust::Error>(())
/// ```
pub struct AnyMethod<P>(Box<dyn DynMethod<P> + Send>);

impl<P: Vector + Send + 'static> AnyMethod<P> {
    /// Hides the type of a method.
    pub fn new<M, S>(method: M) -> Self
    where
        M: for<'a> Method<DynObjective<'a, P>, State = S> + Send + 'static,
        S: State<Point = P> + Send + 'static,
    {
        Self(Box::new(method))
    }
}

impl<P> fmt::Debug for AnyMethod<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyMethod")
    }
}

/// The state of an [`AnyMethod`].
pub struct AnyState<P>(Box<dyn DynState<P> + Send>);

impl<P> AnyState<P> {
    /// The state itself, if it has this type.
    #[must_use]
    pub fn downcast_ref<S: 'static>(&self) -> Option<&S> {
        self.0.as_any().downcast_ref()
    }
}

impl<P> fmt::Debug for AnyState<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyState")
    }
}

impl<P> Clone for AnyState<P> {
    fn clone(&self) -> Self {
        self.0.cloned()
    }
}

impl<P> Save for AnyState<P> {
    fn save(&self) -> Saved {
        self.0.save()
    }
}

impl<P: Vector> State for AnyState<P> {
    type Point = P;
    fn point(&self) -> &P {
        self.0.point()
    }
    fn into_point(self) -> P {
        self.0.into_point()
    }
    fn with_point(self, x: P) -> Self {
        self.0.with_point(x)
    }
    fn steps(&self) -> u64 {
        self.0.steps()
    }
    fn is_averaged(&self) -> bool {
        self.0.is_averaged()
    }
    fn settled(&self) -> Option<StopReason> {
        self.0.settled()
    }
    fn settles(&self) -> bool {
        self.0.settles()
    }
}

impl<F: Objective> Method<F> for AnyMethod<F::Point> {
    type State = AnyState<F::Point>;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        self.0.prepare(f, x)
    }
    fn init(&mut self, f: &mut F, x: F::Point) -> Result<Self::State, Error> {
        self.0.init(f, x)
    }
    fn step(&mut self, f: &mut F, state: &mut Self::State, sample: &Sample) -> Result<StepRecord, Error> {
        self.0.step(f, state, sample)
    }
    fn restore(&self, saved: &Saved) -> Result<Self::State, Error> {
        self.0.restore(saved)
    }
    fn measure(&mut self, f: &mut F, state: &Self::State) -> Result<Measurement, Error> {
        self.0.measure(f, state)
    }
}

/// [`Method`] over any objective. Both are called through pointers.
trait DynMethod<P> {
    fn prepare(&mut self, f: DynObjective<P>, x: &P) -> Result<(), Error>;
    fn init(&mut self, f: DynObjective<P>, x: P) -> Result<AnyState<P>, Error>;
    fn step(&mut self, f: DynObjective<P>, state: &mut AnyState<P>, sample: &Sample) -> Result<StepRecord, Error>;
    fn restore(&self, saved: &Saved) -> Result<AnyState<P>, Error>;
    fn measure(&mut self, f: DynObjective<P>, state: &AnyState<P>) -> Result<Measurement, Error>;
}

const OF_THIS_METHOD: &str = "a state belongs to the method that made it";

impl<P, M, S> DynMethod<P> for M
where
    P: Vector + Send + 'static,
    M: for<'a> Method<DynObjective<'a, P>, State = S>,
    S: State<Point = P> + Send + 'static,
{
    fn prepare(&mut self, mut f: DynObjective<P>, x: &P) -> Result<(), Error> {
        Method::prepare(self, &mut f, x)
    }
    fn init(&mut self, mut f: DynObjective<P>, x: P) -> Result<AnyState<P>, Error> {
        Method::init(self, &mut f, x).map(|state| AnyState(Box::new(state)))
    }
    fn step(&mut self, mut f: DynObjective<P>, state: &mut AnyState<P>, sample: &Sample) -> Result<StepRecord, Error> {
        Method::step(self, &mut f, state.0.as_any_mut().downcast_mut().expect(OF_THIS_METHOD), sample)
    }
    fn restore(&self, saved: &Saved) -> Result<AnyState<P>, Error> {
        Method::restore(self, saved).map(|state| AnyState(Box::new(state)))
    }
    fn measure(&mut self, mut f: DynObjective<P>, state: &AnyState<P>) -> Result<Measurement, Error> {
        Method::measure(self, &mut f, state.downcast_ref().expect(OF_THIS_METHOD))
    }
}

/// [`State`], called through a pointer.
trait DynState<P> {
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn cloned(&self) -> AnyState<P>;
    fn save(&self) -> Saved;
    fn point(&self) -> &P;
    fn into_point(self: Box<Self>) -> P;
    fn with_point(self: Box<Self>, x: P) -> AnyState<P>;
    fn steps(&self) -> u64;
    fn is_averaged(&self) -> bool;
    fn settled(&self) -> Option<StopReason>;
    fn settles(&self) -> bool;
}

impl<S: State + Send + 'static> DynState<S::Point> for S {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
    fn cloned(&self) -> AnyState<S::Point> {
        AnyState(Box::new(self.clone()))
    }
    fn save(&self) -> Saved {
        Save::save(self)
    }
    fn point(&self) -> &S::Point {
        State::point(self)
    }
    fn into_point(self: Box<Self>) -> S::Point {
        State::into_point(*self)
    }
    fn with_point(self: Box<Self>, x: S::Point) -> AnyState<S::Point> {
        AnyState(Box::new(State::with_point(*self, x)))
    }
    fn steps(&self) -> u64 {
        State::steps(self)
    }
    fn is_averaged(&self) -> bool {
        State::is_averaged(self)
    }
    fn settled(&self) -> Option<StopReason> {
        State::settled(self)
    }
    fn settles(&self) -> bool {
        State::settles(self)
    }
}
