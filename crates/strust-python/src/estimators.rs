//! What `strust.sklearn` computes with: models of arrays.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyBytes};
use std::{
    cell::{Cell, RefCell},
    time::{Duration, Instant},
};
use strust_fit::{
    Error,
    arrays::{
        ArrayOptions, ArrayRows, ArrayTask, InputUnits, ModelStream, OutputLoss, fit_arrays, rows::SparseRows,
        stream_arrays,
    },
    constrain::{VIOLATION, WeightConstraint},
    train::TrainingEnd,
};

/// Numbers that Python gets.
type Doubles<'py> = Bound<'py, PyArray1<f64>>;

/// How often the signals of the process are checked.
const SIGNALS: Duration = Duration::from_millis(50);

/// A matrix of Python: a C-contiguous array, or the parts of a CSR matrix and its number of columns.
#[derive(FromPyObject)]
pub(crate) enum PyMatrix<'py> {
    Double(PyReadonlyArray2<'py, f64>),
    Single(PyReadonlyArray2<'py, f32>),
    Sparse(PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i32>, PyReadonlyArray1<'py, f64>, usize),
}

impl PyMatrix<'_> {
    fn rows(&self) -> PyResult<ArrayRows<'_>> {
        Ok(match self {
            Self::Double(array) => ArrayRows::Double(array.as_slice()?, array.shape()[1]),
            Self::Single(array) => ArrayRows::Single(array.as_slice()?, array.shape()[1]),
            Self::Sparse(starts, columns, values, inputs) => {
                let sparse = SparseRows::new(starts.as_slice()?, columns.as_slice()?, values.as_slice()?, *inputs);
                ArrayRows::Sparse(sparse.map_err(python_error)?)
            }
        })
    }
}

/// Options of a model, by name.
#[allow(clippy::struct_excessive_bools, reason = "each is a parameter of an estimator")]
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ModelOptions {
    loss: String,
    outputs: usize,
    hidden: Vec<usize>,
    l2: f64,
    intercept: bool,
    nonnegative: bool,
    sum_to_one: bool,
    unit_norm: bool,
    target_scale: f64,
    epochs: u64,
    tolerance: f64,
    validation: f64,
    seed: u64,
}

impl ModelOptions {
    fn split(self) -> PyResult<(ArrayOptions, OutputLoss, usize)> {
        let loss = match self.loss.as_str() {
            "squares" => OutputLoss::Squares,
            "logistic" => OutputLoss::Logistic,
            "softmax" => OutputLoss::Softmax,
            other => return Err(PyValueError::new_err(format!("there is no loss {other:?}"))),
        };
        let constraint = WeightConstraint {
            nonnegative: self.nonnegative,
            sum_to_one: self.sum_to_one,
            unit_norm: self.unit_norm,
            rules: Vec::new(),
        };
        let options = ArrayOptions {
            hidden: self.hidden,
            l2: self.l2,
            intercept: self.intercept,
            constraint,
            target_scale: self.target_scale,
            epochs: self.epochs,
            tolerance: self.tolerance,
            validation: self.validation,
            seed: self.seed,
        };
        Ok((options, loss, self.outputs))
    }
}

/// Targets, weights and units of the rows of a model.
struct ModelRows<'py> {
    goals: PyReadonlyArray1<'py, f64>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    units: InputUnits,
}

impl<'py> ModelRows<'py> {
    fn new(
        goals: PyReadonlyArray1<'py, f64>,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        units: (PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>),
    ) -> PyResult<Self> {
        let units = InputUnits { shift: units.0.as_slice()?.to_vec(), scale: units.1.as_slice()?.to_vec() };
        Ok(Self { goals, weights, units })
    }
    fn task<'a>(&'a self, rows: &'a ArrayRows<'a>, loss: OutputLoss, outputs: usize) -> PyResult<ArrayTask<'a>> {
        let weights = self.weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let (goals, units) = (self.goals.as_slice()?, &self.units);
        let (n, d) = (rows.rows(), rows.inputs());
        let fits = goals.len() == n && weights.is_none_or(|weights| weights.len() == n);
        if !fits || units.shift.len() != d || units.scale.len() != d {
            return Err(PyValueError::new_err(format!("targets, weights and units must fit {n} rows of {d} inputs")));
        }
        Ok(ArrayTask { rows, goals, weights, units, loss, outputs })
    }
}

/// The shift and the scale of each input.
#[pyfunction]
pub(crate) fn input_units<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    center: bool,
    scale: bool,
) -> PyResult<(Doubles<'py>, Doubles<'py>)> {
    let (rows, weights) = (matrix.rows()?, weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?);
    let units = py.detach(|| InputUnits::measure(&rows, weights, center, scale));
    Ok((PyArray1::from_vec(py, units.shift), PyArray1::from_vec(py, units.scale)))
}

/// Fits a model: its weights in the units of the inputs, the epochs, why it ended, and its scores.
#[pyfunction]
pub(crate) fn fit_model<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    goals: PyReadonlyArray1<'py, f64>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    units: (PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>),
    options: ModelOptions,
) -> PyResult<(Doubles<'py>, f64, &'static str, Vec<f64>)> {
    let (rows, data) = (matrix.rows()?, ModelRows::new(goals, weights, units)?);
    let (options, loss, outputs) = options.split()?;
    let task = data.task(&rows, loss, outputs)?;
    let model = watched(py, |interrupted| fit_arrays(&task, &options, interrupted))?;
    if options.constraint.is_active() {
        let in_units = |(w, scale): (&f64, &f64)| options.target_scale * w / scale;
        let weights: Vec<f64> = model.weights.flat.iter().zip(&data.units.scale).map(in_units).collect();
        let violation = options.constraint.violation(&weights);
        if violation > VIOLATION {
            let epochs = model.epochs;
            let why = format!("the weights violate the constraints by {violation:.1e} after {epochs} epochs");
            return Err(PyValueError::new_err(format!("{why}: increase max_epochs, or choose fewer constraints")));
        }
    }
    Ok((PyArray1::from_vec(py, model.weights.flat), model.epochs, name(model.end), model.scores))
}

/// Continues a model with one pass over some rows: its weights, and the state for the next call.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "named in Python")]
pub(crate) fn stream_model<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    goals: PyReadonlyArray1<'py, f64>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    units: (PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>),
    options: ModelOptions,
    state: Option<&[u8]>,
    start: Option<PyReadonlyArray1<'py, f64>>,
    seen: f64,
    call: u64,
) -> PyResult<(Doubles<'py>, Bound<'py, PyBytes>)> {
    let (rows, data) = (matrix.rows()?, ModelRows::new(goals, weights, units)?);
    let (options, loss, outputs) = options.split()?;
    let task = data.task(&rows, loss, outputs)?;
    let stream: Option<ModelStream> = restored(state)?;
    let start = start.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    let stream = watched(py, |interrupted| stream_arrays(&task, &options, stream, start, seen, call, interrupted))?;
    Ok((PyArray1::from_vec(py, stream.flat()), saved(py, &stream)?))
}

/// Computes without the interpreter. Ctrl-C, or another exception of a signal handler, ends it.
fn watched<T: Send>(py: Python<'_>, compute: impl FnOnce(&dyn Fn() -> bool) -> Result<T, Error> + Send) -> PyResult<T> {
    let (result, raised) = py.detach(|| {
        let (checked, raised) = (Cell::new(Instant::now()), RefCell::new(None));
        let result = compute(&|| {
            if checked.get().elapsed() >= SIGNALS {
                checked.set(Instant::now());
                if let Err(error) = Python::attach(|py: Python<'_>| py.check_signals()) {
                    raised.replace(Some(error));
                }
            }
            raised.borrow().is_some()
        });
        (result, raised.into_inner())
    });
    match raised {
        Some(error) => Err(error),
        None => result.map_err(python_error),
    }
}

fn python_error(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn name(end: TrainingEnd) -> &'static str {
    match end {
        TrainingEnd::Converged => "converged",
        TrainingEnd::Epochs => "epochs",
        TrainingEnd::Interrupted => "interrupted",
        TrainingEnd::Breakdown => "breakdown",
        TrainingEnd::NoMinimum => "no-minimum",
    }
}

fn saved<'py>(py: Python<'py>, state: &impl serde::Serialize) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = rmp_serde::to_vec_named(state).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &bytes))
}

fn restored<T: serde::de::DeserializeOwned>(state: Option<&[u8]>) -> PyResult<Option<T>> {
    let read = |bytes| rmp_serde::from_slice(bytes);
    state.map(read).transpose().map_err(|error| PyValueError::new_err(format!("the saved state is damaged: {error}")))
}
