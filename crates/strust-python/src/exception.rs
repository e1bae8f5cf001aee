//! Exceptions and Ctrl-C during a run.

use pyo3::prelude::*;
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Mutex},
};
use strust::{Error, kkt::Measurement, methods::Method, objective::Objective, prelude::*, saved::Saved};

/// The exception that ends a run, shared by the functions of the user and the loop.
#[derive(Debug, Clone, Default)]
pub struct RaisedException(Arc<Mutex<Option<PyErr>>>);

/// What unwinds the stack when a function of the user raises an exception.
struct Raised;

impl RaisedException {
    /// Keeps the first exception.
    pub fn keep(&self, error: PyErr) {
        self.0.lock().expect("no panic in here").get_or_insert(error);
    }
    /// The exception, if there is one.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().expect("no panic in here").take()
    }
    /// Whether there is one.
    pub fn happened(&self) -> bool {
        self.0.lock().expect("no panic in here").is_some()
    }
    /// The result of a function of the user. After an exception the current step is left without a trace: see
    /// [`Guarded`].
    pub fn value<R>(&self, result: PyResult<R>) -> R {
        result.unwrap_or_else(|error| {
            self.keep(error);
            // This calls no panic hook, so nothing is printed.
            resume_unwind(Box::new(Raised))
        })
    }
    /// Runs `action` until its end or until an exception: then `None`.
    pub fn catch<R>(action: impl FnOnce() -> R) -> Option<R> {
        // An exception leaves only scratch space half done: a step is a transaction.
        match catch_unwind(AssertUnwindSafe(action)) {
            Ok(result) => Some(result),
            Err(panic) if panic.is::<Raised>() => None,
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// A method whose step ends when a function of the user raises an exception. A step is a transaction, so the state is then
/// the state before the step.
pub struct Guarded<M> {
    pub method: M,
    pub exception: RaisedException,
}

/// The step that ended is an error of the run, whatever the exception was. The caller looks for the exception first.
const ENDED: Error = Error::NonFiniteValue { step: 0, value: f64::NAN };

impl<F: Objective, M: Method<F>> Method<F> for Guarded<M> {
    type State = M::State;

    fn prepare(&mut self, f: &mut F, x: &F::Point) -> Result<(), Error> {
        RaisedException::catch(|| self.method.prepare(f, x)).unwrap_or(Err(ENDED))
    }
    fn init(&mut self, f: &mut F, x: F::Point) -> Result<M::State, Error> {
        RaisedException::catch(|| self.method.init(f, x)).unwrap_or(Err(ENDED))
    }
    fn step(&mut self, f: &mut F, state: &mut M::State, sample: &Sample) -> Result<StepRecord, Error> {
        RaisedException::catch(|| self.method.step(f, state, sample)).unwrap_or(Err(ENDED))
    }
    fn restore(&self, saved: &Saved) -> Result<M::State, Error> {
        self.method.restore(saved)
    }
    fn measure(&mut self, f: &mut F, state: &M::State) -> Result<Measurement, Error> {
        if self.exception.happened() {
            // The run is over. It takes the state as it is only if its measurement is finite, and this one is never the
            // best.
            let most = f64::MAX;
            return Ok(Measurement { value: most, merit: most, gradient_norm: most, constraint_norm: most });
        }
        RaisedException::catch(|| self.method.measure(f, state)).unwrap_or(Err(ENDED))
    }
}
