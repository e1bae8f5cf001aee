//! A run of a method, and its saved state.

use crate::{
    array::{Array, Scalar},
    constraints::AnyConstraint,
    exception::{Guarded, RaisedException},
    expectation::{self, PyRows, rows_of},
    methods::{info, method},
    objective::AnyObjective,
    target::{Opened, PyTarget},
};
use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyDict, PyList},
};
use std::{
    ops::ControlFlow,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use strust::{
    kkt::Measurement,
    methods::AnyState,
    objective::ProductKind,
    prelude::*,
    run::{Observer, Run},
    saved::{Save, Saved},
    schedule::Schedule,
};

/// Time between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Everything that `strust.minimize` passes on.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Request {
    method: String,
    options: String,
    schedule: String,
    sampler: String,
    batch: Option<usize>,
    seed: u64,
    epochs: Option<u64>,
    steps: Option<u64>,
    seconds: Option<f64>,
    tolerance: Option<f64>,
    stagnation: bool,
    callback: Option<Py<PyAny>>,
    /// Steps between two measurements; 0 for an epoch. Without it, the stopping rule decides.
    measure: Option<u64>,
    constrained: bool,
    constraints: Py<PyList>,
    expectations: Option<Py<PyDict>>,
}

/// Minimizes from `start`, or from a saved state. A built-in problem needs no Python in the loop.
#[pyfunction]
pub fn minimize<'py>(
    py: Python<'py>,
    target: PyTarget<'py>,
    start: &Bound<'py, PyAny>,
    state: Option<Vec<u8>>,
    request: Request,
) -> PyResult<Bound<'py, PyDict>> {
    let exception = RaisedException::default();
    let kind = if request.method == "str-gauss-newton" { ProductKind::GaussNewton } else { ProductKind::Hessian };
    match target.open("x0", start, kind, &exception)? {
        Opened::Single(f, x) => run(py, f, x, state, &request, &exception),
        Opened::Double(f, x) => run(py, f, x, state, &request, &exception),
    }
}

fn run<'py, T: Scalar>(
    py: Python<'py>,
    mut objective: AnyObjective<T>,
    x: Array<T>,
    state: Option<Vec<u8>>,
    request: &Request,
    exception: &RaisedException,
) -> PyResult<Bound<'py, PyDict>> {
    let constraint = || AnyConstraint::new(request.constraints.bind(py), &x, exception);
    let schedule = request.schedule(objective.terms())?;
    let (mut strata, mut finish, mut count) = (Vec::new(), None, 0);
    let method = if let Some(rows) = &request.expectations {
        let rows = rows.bind(py).extract::<PyRows>()?.open(exception)?;
        (strata, count) = (rows.strata(), rows.len());
        let (method, end) = expectation::under(rows, &request.method, &request.options, constraint)?;
        finish = Some(end);
        method
    } else {
        method(&request.method, &request.options, schedule, constraint()?)?
    };
    let restore = |bytes: Vec<u8>| {
        let saved = decode(&bytes)?;
        if rows_of(&saved) != count {
            let known = rows_of(&saved);
            let why = format!("the state belongs to a run with {known} expectations, but there are {count}");
            return Err(PyValueError::new_err(format!("{why}: pass the constraints of the first run")));
        }
        Method::<AnyObjective<T>>::restore(&method, &saved).map_err(foreign)
    };
    let state = state.map(restore).transpose()?;
    let history = Arc::new(Mutex::new(Vec::new()));
    let watch = RunWatch {
        callback: request.callback.as_ref().map(|callback| callback.clone_ref(py)),
        exception: exception.clone(),
        history: Arc::clone(&history),
        looked: Instant::now(),
    };
    let (report, end) = py.detach(|| {
        let guarded = Guarded { method, exception: exception.clone() };
        let run = minimize_with(&mut objective, guarded, &strata, request)?.observe(watch);
        let report = match state {
            None => run.start(x),
            Some(state) => run.resume(state),
        };
        let report = report.map_err(|error| exception.take().unwrap_or_else(|| crate::error(error)))?;
        let finish = finish.filter(|_| report.breakdown.is_none() && !exception.happened());
        let end = finish.and_then(|finish| RaisedException::catch(|| finish(&mut objective, &report.state)));
        let end = end.and_then(|end| end.map_err(|error| exception.keep(crate::error(error))).ok());
        Ok::<_, PyErr>((report, end))
    })?;
    let history = std::mem::take(&mut *history.lock().expect("the run is over"));
    // After an exception nothing more was measured.
    let last = Some(report.last).filter(|last| last.value < f64::MAX).or(history.last().map(|(_, m)| *m));
    let result = PyDict::new(py);
    result.set_item("x", report.point().to_numpy(py)?)?;
    result.set_item("state", PyBytes::new(py, &encode(&report.state.save())?))?;
    result.set_item("reason", report.reason.code())?;
    result.set_item("message", report.reason.to_string())?;
    result.set_item("converged", report.reason.converged())?;
    result.set_item("breakdown", report.breakdown.as_ref().map(ToString::to_string))?;
    result.set_item("measured", last.map(numbers))?;
    result.set_item("steps", report.steps)?;
    result.set_item("accepted", report.accepted)?;
    result.set_item("values", report.evaluations.values)?;
    result.set_item("gradients", report.evaluations.gradients)?;
    result.set_item("products", report.evaluations.products)?;
    result.set_item("certificate", None::<()>)?;
    result.set_item("history", history.iter().map(|(k, m)| (*k, numbers(*m))).collect::<Vec<_>>())?;
    if let Some(end) = end {
        expectation::set_end(&result, &end, request.tolerance)?;
    }
    result.set_item("error", exception.take().map(|error| error.into_value(py)))?;
    Ok(result)
}

fn numbers(m: Measurement) -> (f64, f64, f64) {
    (m.value, m.gradient_norm, m.constraint_norm)
}

fn minimize_with<'a, T: Scalar, M: Method<AnyObjective<T>>>(
    f: &'a mut AnyObjective<T>,
    method: M,
    strata: &[usize],
    request: &Request,
) -> PyResult<Run<'a, AnyObjective<T>, M>> {
    let terms = f.terms();
    let run = strust::minimize(f).method(method).stop(request.stop()?);
    let run = match (request.sampler.as_str(), request.batch) {
        ("full", None) => run.full_batch().seed(request.seed),
        ("epochs", _) => {
            let epochs = Epochs::new(terms, request.batch_of(terms), request.seed).map_err(crate::error)?;
            run.sampler(epochs.stratified(strata))
        }
        ("with-replacement", batch) => {
            let batch = batch.unwrap_or(32.min(terms));
            run.sampler(WithReplacement::new(terms, batch, request.seed).map_err(crate::error)?)
        }
        ("full", Some(_)) => return Err(PyValueError::new_err("sampler=\"full\" has no batch")),
        (other, _) => {
            let all = "\"epochs\", \"with-replacement\" or \"full\"";
            return Err(PyValueError::new_err(format!("sampler is {other:?}, but must be {all}")));
        }
    };
    Ok(match request.measure {
        None => run,
        // The run checks the batch.
        Some(0) => run.measure_every(terms.div_ceil(request.batch_of(terms).max(1)) as u64),
        Some(steps) => run.measure_every(steps),
    })
}

impl Request {
    fn batch_of(&self, terms: usize) -> usize {
        if self.sampler == "full" { terms } else { self.batch.unwrap_or(32.min(terms)) }
    }
    fn schedule(&self, terms: usize) -> PyResult<Schedule> {
        let steps = match (self.steps, self.epochs) {
            (Some(steps), _) => Some(steps),
            (None, Some(epochs)) => Some(epochs.saturating_mul(terms.div_ceil(self.batch_of(terms).max(1)) as u64)),
            (None, None) => None,
        };
        match (self.schedule.as_str(), steps) {
            ("constant", _) => Ok(Schedule::Constant),
            ("cosine", _) if !info(&self.method)?.has("learning_rate") => {
                let why = format!("method={:?} has no learning rate, so it has no schedule", self.method);
                Err(PyValueError::new_err(why))
            }
            ("cosine", Some(steps)) => Ok(Schedule::cosine(steps)),
            ("cosine", None) => Err(PyValueError::new_err("schedule=\"cosine\" needs epochs or steps")),
            (other, _) => {
                let why = format!("schedule is {other:?}, but must be \"constant\" or \"cosine\"");
                Err(PyValueError::new_err(why))
            }
        }
    }
    fn stop(&self) -> PyResult<Stop> {
        let seconds = self.seconds.map(|seconds| {
            let wrong = |_| PyValueError::new_err(format!("seconds is {seconds}, but must be ≥ 0"));
            Duration::try_from_secs_f64(seconds).map_err(wrong)
        });
        let rules = [
            self.tolerance.map(if self.constrained { Stop::kkt } else { Stop::gradient_norm }),
            self.epochs.map(Stop::epochs),
            self.steps.map(Stop::steps),
            seconds.transpose()?.map(Stop::wall_clock),
            self.stagnation.then(|| Stop::stagnation(1e-8, 10)),
        ];
        let stop = Stop::Any(rules.into_iter().flatten().collect());
        Ok(if self.stagnation { stop.confirmed() } else { stop })
    }
}

fn encode(state: &Saved) -> PyResult<Vec<u8>> {
    rmp_serde::to_vec_named(state).map_err(|e| PyRuntimeError::new_err(format!("cannot save the state: {e}")))
}

fn decode(bytes: &[u8]) -> PyResult<Saved> {
    rmp_serde::from_slice(bytes).map_err(foreign)
}

fn foreign(why: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("this is not the state of such a method: {why}"))
}

/// Calls the user's callback after each measurement, and looks for Ctrl-C.
struct RunWatch {
    callback: Option<Py<PyAny>>,
    exception: RaisedException,
    history: Arc<Mutex<Vec<(u64, Measurement)>>>,
    looked: Instant,
}

impl RunWatch {
    fn end(&self, error: PyErr) -> ControlFlow<()> {
        self.exception.keep(error);
        ControlFlow::Break(())
    }
}

impl<T: Scalar> Observer<Array<T>> for RunWatch {
    fn step(&mut self, _: &StepRecord, _: &Array<T>) -> ControlFlow<()> {
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            // Clippy would name the method here, but its lifetime is not general enough.
            #[allow(clippy::redundant_closure_for_method_calls)]
            if let Err(error) = Python::attach(|py| py.check_signals()) {
                return self.end(error);
            }
        }
        ControlFlow::Continue(())
    }
    fn measured(&mut self, steps: u64, measurement: &Measurement, x: &Array<T>) -> ControlFlow<()> {
        self.history.lock().expect("only the run writes to it").push((steps, *measurement));
        let Some(callback) = &self.callback else { return ControlFlow::Continue(()) };
        let wants_to_stop = Python::attach(|py| {
            let x = x.to_numpy(py)?;
            callback.bind(py).call1((x, steps, numbers(*measurement)))?.is_truthy()
        });
        match wants_to_stop {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(error) => self.end(error),
        }
    }
}

/// A saved state in another form: `to_json` gives JSON text for MessagePack bytes, and the reverse.
#[pyfunction]
pub fn convert_state<'py>(
    py: Python<'py>,
    method: &str,
    dtype: &str,
    state: &Bound<'py, PyBytes>,
    to_json: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = state.as_bytes();
    let saved = if to_json { decode(bytes)? } else { serde_json::from_slice(bytes).map_err(foreign)? };
    let saved = match dtype {
        "float32" => state_of::<f32>(method, &saved)?.save(),
        "float64" => state_of::<f64>(method, &saved)?.save(),
        other => {
            let why = format!("dtype is {other:?}, but must be \"float32\" or \"float64\"");
            return Err(PyValueError::new_err(why));
        }
    };
    let bytes = if to_json { serde_json::to_vec(&saved).map_err(foreign)? } else { encode(&saved)? };
    Ok(PyBytes::new(py, &bytes))
}

/// The point and the number of steps of a saved state.
#[pyfunction]
pub fn point_of_state<'py>(
    py: Python<'py>,
    method: &str,
    dtype: &str,
    state: &Bound<'py, PyBytes>,
) -> PyResult<(Bound<'py, PyAny>, u64)> {
    fn position<'py, T: Scalar>(py: Python<'py>, method: &str, saved: &Saved) -> PyResult<(Bound<'py, PyAny>, u64)> {
        let state = state_of::<T>(method, saved)?;
        Ok((state.point().to_numpy(py)?.into_any(), state.steps()))
    }
    let saved = decode(state.as_bytes())?;
    if dtype == "float32" { position::<f32>(py, method, &saved) } else { position::<f64>(py, method, &saved) }
}

/// The saved state of a method.
fn state_of<T: Scalar>(name: &str, saved: &Saved) -> PyResult<AnyState<Array<T>>> {
    // A state does not depend on the constraint, but a method does.
    let constraint = || Ok(info(name)?.constrained.then(AnyConstraint::<T>::sphere));
    let method = if rows_of(saved) > 0 {
        expectation::under(expectation::any_row(), name, "{}", constraint)?.0
    } else {
        method(name, "{}", Schedule::Constant, constraint()?)?
    };
    Method::<AnyObjective<T>>::restore(&method, saved).map_err(foreign)
}
