//! Instruments that measure a problem at a point.

use crate::{
    array::{Array, Scalar, readonly},
    constraints::AnyConstraint,
    exception::RaisedException,
    objective::AnyObjective,
    target::{Opened, PyTarget},
};
use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    types::{PyDict, PyList},
};
use std::path::PathBuf;
use strust::{
    diagnostics::{SplitBatch, gradient_slope, jacobian_slope, kkt_report, lipschitz, strong_growth},
    objective::{Objective, ProductKind},
    sample::{Draws, Sample, generator},
    samplers::{Epochs, Sampler},
    vector::Vector,
};

/// Measures with the component type of x.
macro_rules! at {
    ($target:expr, $x:expr, |$f:ident, $point:ident, $exception:ident| $body:expr) => {{
        let $exception = RaisedException::default();
        match $target.open("x", $x, ProductKind::Hessian, &$exception)? {
            Opened::Single(mut $f, $point) => $body,
            Opened::Double(mut $f, $point) => {
                $f.check_point(&$point).map_err(crate::error)?;
                $body
            }
        }
    }};
}

/// Measures without the GIL. An exception of a function comes out as itself.
fn measured<R: Send>(py: Python<'_>, exception: &RaisedException, measure: impl FnOnce() -> R + Send) -> PyResult<R> {
    py.detach(|| RaisedException::catch(measure)).ok_or_else(|| {
        exception.take().unwrap_or_else(|| PyRuntimeError::new_err("a measurement ended without a result"))
    })
}

/// ρ at x for batches of `batch` terms: exactly, or from `pairs` pairs of batches with an interval.
#[pyfunction]
#[pyo3(signature = (target, x, batch, pairs, seed))]
pub fn measure_strong_growth<'py>(
    py: Python<'py>,
    target: PyTarget<'py>,
    x: &Bound<'py, PyAny>,
    batch: Option<usize>,
    pairs: Option<u64>,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let (batch, terms, found) = at!(target, x, |f, point, exception| {
        let terms = f.terms();
        let batch = batch.unwrap_or(32.min(terms));
        (batch, terms, measured(py, &exception, || growth(&mut f, &point, batch, pairs, seed))??)
    });
    let result = PyDict::new(py);
    for (key, number) in ["rho", "low", "high", "gradient_squared", "variance"].iter().zip(found) {
        result.set_item(*key, number)?;
    }
    result.set_item("batch", batch)?;
    result.set_item("terms", terms)?;
    Ok(result)
}

fn growth<T: Scalar>(
    f: &mut AnyObjective<T>,
    x: &Array<T>,
    batch: usize,
    pairs: Option<u64>,
    seed: u64,
) -> PyResult<[f64; 5]> {
    let Some(count) = pairs else {
        let exact = strong_growth(f, x);
        let rho = exact.rho(batch, Draws::Different);
        return Ok([rho, rho, rho, exact.gradient_squared, exact.variance]);
    };
    if batch < 2 {
        return Err(PyValueError::new_err("batch must be at least 2: its halves are compared"));
    }
    let mut sampler = Epochs::new(f.terms(), batch, seed).map_err(crate::error)?;
    let mut halves = SplitBatch::new(f.clone(), Draws::Different).without_window();
    let (mut sample, mut gradient) = (Sample::default(), x.zeros_like());
    for k in 0..count {
        sampler.draw(k, &mut sample);
        halves.value_and_gradient(x, &sample, &mut gradient);
    }
    let found = halves.pairs();
    let interval = found.rho_interval(batch);
    Ok([found.rho(batch), interval.low, interval.high, found.gradient_squared(), found.variance()])
}

/// The largest curvature at x on all terms.
#[pyfunction]
pub fn measure_curvature<'py>(
    py: Python<'py>,
    target: PyTarget<'py>,
    x: &Bound<'py, PyAny>,
    iterations: u32,
) -> PyResult<f64> {
    at!(target, x, |f, point, exception| {
        let all = Sample::range(0..f.terms());
        measured(py, &exception, || lipschitz(&mut f, &point, &all, iterations))
    })
}

/// A direction of random signs. Its length is that of x, or 1.
fn signs<V: Vector>(like: &V, seed: u64) -> V {
    use rand_core::Rng as _;
    let mut rng = generator(seed, 0);
    let mut v = like.zeros_like();
    (0..v.dimension()).for_each(|i| v.set_component(i, if rng.next_u32() & 1 == 0 { 1.0 } else { -1.0 }));
    v
}

/// The slope of the error of the linear model with the gradient: 2 if the gradient is right.
#[pyfunction]
pub fn measure_gradient_slope<'py>(
    py: Python<'py>,
    target: PyTarget<'py>,
    x: &Bound<'py, PyAny>,
    indices: Option<Vec<usize>>,
    seed: u64,
) -> PyResult<f64> {
    at!(target, x, |f, point, exception| {
        let sample = indices.map_or_else(|| Sample::range(0..f.terms()), |indices| Sample::new(indices, 0));
        let direction = signs(&point, seed);
        measured(py, &exception, || gradient_slope(&mut f, &point, &direction, &sample))
    })
}

/// The slope of a constraint's linear model, and the relative mismatch of both products.
#[pyfunction]
pub fn measure_jacobian_slope<'py>(
    py: Python<'py>,
    constraints: &Bound<'py, PyList>,
    x: &Bound<'py, PyAny>,
    seed: u64,
) -> PyResult<(f64, f64)> {
    let exception = RaisedException::default();
    let point = Array::from_numpy(&readonly::<f64>("x", x)?);
    let mut constraint = some(AnyConstraint::new(constraints, &point, &exception)?)?;
    let direction = signs(&point, seed);
    measured(py, &exception, || {
        use strust::constraints::Constraint as _;
        let y = signs(&constraint.new_residual(), seed + 1);
        jacobian_slope(&mut constraint, &point, &direction, &y)
    })
}

fn some<T: Scalar>(constraint: Option<AnyConstraint<T>>) -> PyResult<AnyConstraint<T>> {
    constraint.ok_or_else(|| PyValueError::new_err("there is no constraint"))
}

/// The KKT report at x.
#[pyfunction]
pub fn measure_kkt<'py>(
    py: Python<'py>,
    target: PyTarget<'py>,
    constraints: &Bound<'py, PyList>,
    x: &Bound<'py, PyAny>,
    penalty: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let report = at!(target, x, |f, point, exception| {
        let mut constraint = some(AnyConstraint::new(constraints, &point, &exception)?)?;
        measured(py, &exception, || kkt_report(&mut f, &mut constraint, &point, penalty))?
    })
    .map_err(crate::error)?;
    let result = PyDict::new(py);
    for (key, number) in [
        ("gradient_norm", report.gradient_norm),
        ("constraint_norm", report.constraint_norm),
        ("residual", report.least_residual),
        ("multiplier_norm", report.multiplier_norm),
        ("smallest_singular_value", report.jacobian.smallest),
        ("largest_singular_value", report.jacobian.largest),
    ] {
        result.set_item(key, number)?;
    }
    result.set_item("licq", report.jacobian.licq)?;
    Ok(result)
}

/// The diagnosis of a folder of results, as JSON.
#[pyfunction]
pub fn diagnose_folder(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    let found = py.detach(|| strust_lab::analyze::diagnose::diagnose(&folder));
    let found = found.map_err(|error| PyValueError::new_err(error.to_string()))?;
    serde_json::to_string(&found).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
