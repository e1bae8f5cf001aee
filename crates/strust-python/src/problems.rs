//! The built-in problems, over arrays.

use crate::{
    array::{Array, copy, readonly},
    objective::AnyObjective,
};
use faer::Mat;
use numpy::{PyArrayDyn, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::{
    exceptions::{PyIndexError, PyRuntimeError, PyValueError},
    prelude::*,
};
use std::sync::{Arc, Mutex, MutexGuard};
use strust::{
    Error,
    objective::{Evaluation, Objective, Peers, ProductKind, Sliced},
    sample::{Draws, Sample},
    vector::{Dense, Vector},
};
use strust_problems::{
    Activation, Classified, Convex, Csr, Features, Labeled, LeastSquares, Logistic, Mlp, Softmax, SubspaceFit, digits,
};

/// A problem of the library, applied to arrays.
struct OnArray<P: Objective> {
    problem: P,
    x: P::Point,
    gradient: P::Point,
    direction: P::Point,
    minimum: Minimum<P>,
}

/// Computes f*, if that is possible.
type Minimum<P> = fn(&P) -> Result<Option<f64>, Error>;

/// f* of a problem that knows it or does not.
#[allow(clippy::unnecessary_wraps)] // It is a `Minimum`.
fn known<P: strust_problems::Problem>(problem: &P) -> Result<Option<f64>, Error> {
    Ok(problem.optimum())
}

/// f* of a convex problem: known, or computed.
fn computed<P: Convex>(problem: &P) -> Result<Option<f64>, Error> {
    problem.optimum().map_or_else(|| problem.minimum(), Ok).map(Some)
}

#[deny(clippy::missing_trait_methods, reason = "a wrapper must not lose a part of the inner objective")]
impl<P: Objective<Point: Dense<Scalar = f64>>> Objective for OnArray<P> {
    type Point = Array<f64>;
    fn terms(&self) -> usize {
        self.problem.terms()
    }
    fn value(&mut self, x: &Array<f64>, sample: &Sample) -> Evaluation {
        copy(x, &mut self.x);
        self.problem.value(&self.x, sample)
    }
    fn value_and_gradient(&mut self, x: &Array<f64>, sample: &Sample, gradient: &mut Array<f64>) -> Evaluation {
        copy(x, &mut self.x);
        let value = self.problem.value_and_gradient(&self.x, sample, &mut self.gradient);
        copy(&self.gradient, gradient);
        value
    }
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        x: &Array<f64>,
        sample: &Sample,
        direction: &Array<f64>,
        product: &mut Array<f64>,
    ) -> bool {
        copy(x, &mut self.x);
        copy(direction, &mut self.direction);
        // The gradient is scratch space.
        let has = self.problem.curvature_product(kind, &self.x, sample, &self.direction, &mut self.gradient);
        if has {
            copy(&self.gradient, product);
        }
        has
    }
    fn constraint_norm(&mut self, x: &Array<f64>) -> f64 {
        copy(x, &mut self.x);
        self.problem.constraint_norm(&self.x)
    }
    fn draws(&self) -> Option<Draws> {
        self.problem.draws()
    }
    fn peers(&mut self) -> Option<&mut dyn Peers> {
        self.problem.peers()
    }
    fn sliced(&mut self) -> Option<&mut dyn Sliced<Point = Array<f64>>> {
        None
    }
    fn check_point(&self, x: &Array<f64>) -> Result<(), Error> {
        let (expected, found) = (Vector::shape(&self.x), x.dimensions().to_vec());
        if expected == found { Ok(()) } else { Err(Error::Shape { place: "x0 of this problem", expected, found }) }
    }
}

/// What a problem of the library has beside its objective.
trait BuiltIn: Objective<Point = Array<f64>> + Send {
    fn start(&self, seed: u64) -> Array<f64>;
    fn optimum(&self) -> Result<Option<f64>, Error>;
}

impl<P: strust_problems::Problem<Point: Dense<Scalar = f64> + Send> + Send> BuiltIn for OnArray<P> {
    fn start(&self, seed: u64) -> Array<f64> {
        let x = self.problem.start(seed);
        let mut array = Array::with_shape(&Vector::shape(&x)).expect("an array has any shape");
        copy(&x, &mut array);
        array
    }
    fn optimum(&self) -> Result<Option<f64>, Error> {
        (self.minimum)(&self.problem)
    }
}

/// A built-in problem.
#[pyclass(frozen, module = "strust._native")]
pub struct Problem {
    built_in: Arc<Mutex<dyn BuiltIn>>,
    /// The name of the constraint that belongs to it.
    #[pyo3(get)]
    constraint: Option<&'static str>,
}

impl Problem {
    fn new<P>(problem: Result<P, Error>, minimum: Minimum<P>, constraint: Option<&'static str>) -> PyResult<Self>
    where
        P: strust_problems::Problem<Point: Dense<Scalar = f64> + Send> + Send + 'static,
    {
        let problem = problem.map_err(crate::error)?;
        let x = problem.start(0);
        let problem = OnArray { problem, gradient: x.zeros_like(), direction: x.zeros_like(), x, minimum };
        Ok(Self { built_in: Arc::new(Mutex::new(problem)), constraint })
    }
    fn get(&self) -> MutexGuard<'_, dyn BuiltIn + 'static> {
        self.built_in.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
    /// The problem as an objective.
    pub fn objective(&self) -> AnyObjective<f64> {
        AnyObjective::shared(self.built_in.clone())
    }
}

#[pymethods]
impl Problem {
    /// The number of terms.
    #[getter]
    fn terms(&self) -> usize {
        self.get().terms()
    }
    /// A start that depends only on the seed.
    fn start<'py>(&self, py: Python<'py>, seed: u64) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        self.get().start(seed).to_numpy(py)
    }
    /// The least value of the full sum, if it is known or can be computed.
    fn optimum(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        py.detach(|| self.get().optimum()).map_err(crate::error)
    }
    /// The mean of the given terms, or of all, and its gradient.
    #[pyo3(signature = (x, indices=None))]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        indices: Option<Vec<usize>>,
    ) -> PyResult<(f64, Bound<'py, PyArrayDyn<f64>>)> {
        let x = Array::from_numpy(&readonly::<f64>("x", x)?);
        let terms = self.terms();
        let sample = match indices {
            None => Sample::range(0..terms),
            Some(indices) => match indices.iter().find(|&&i| i >= terms) {
                Some(i) => return Err(PyIndexError::new_err(format!("there is no term {i}: there are {terms}"))),
                None if indices.is_empty() => return Err(PyValueError::new_err("indices is empty")),
                None => Sample::new(indices, 0),
            },
        };
        self.get().check_point(&x).map_err(crate::error)?;
        let mut gradient = x.zeros_like();
        let value = py.detach(|| self.get().value_and_gradient(&x, &sample, &mut gradient).value);
        Ok((value, gradient.to_numpy(py)?))
    }
}

fn matrix(array: &PyReadonlyArray2<'_, f64>) -> Mat<f64> {
    let view = array.as_array();
    Mat::from_fn(view.nrows(), view.ncols(), |i, j| view[(i, j)])
}

/// The rows of a sparse matrix: starts, column indices, values and the number of columns.
type SparseRows<'py> = (Vec<usize>, Vec<u32>, PyReadonlyArray1<'py, f64>, usize);

/// Features, dense or sparse.
#[derive(FromPyObject)]
pub enum GivenRows<'py> {
    Dense(PyReadonlyArray2<'py, f64>),
    Sparse(SparseRows<'py>),
}

impl GivenRows<'_> {
    fn features(&self) -> PyResult<Features> {
        Ok(match self {
            Self::Dense(array) => Features::Dense(matrix(array)),
            Self::Sparse((starts, indices, values, columns)) => Features::Sparse(
                Csr::new(*columns, starts.clone(), indices.clone(), values.as_array().to_vec())
                    .map_err(crate::error)?,
            ),
        })
    }
    fn labeled(&self, labels: Vec<f64>) -> PyResult<Labeled> {
        Ok(Labeled { features: self.features()?, labels })
    }
}

#[pyfunction]
pub fn least_squares(a: PyReadonlyArray2<'_, f64>, b: Vec<f64>) -> PyResult<Problem> {
    Problem::new(LeastSquares::new(&matrix(&a), b), computed, None)
}

#[pyfunction]
pub fn random_least_squares(n: usize, d: usize, condition: Option<f64>, noise: f64, seed: u64) -> PyResult<Problem> {
    let problem = match condition {
        Some(condition) => LeastSquares::conditioned(n, d, condition, noise, seed),
        None if noise == 0.0 => LeastSquares::interpolating(n, d, seed),
        None => LeastSquares::noisy(n, d, noise, seed),
    };
    Problem::new(problem, computed, None)
}

#[pyfunction]
pub fn logistic(x: GivenRows<'_>, labels: Vec<f64>, regularization: f64, intercept: bool) -> PyResult<Problem> {
    let problem = Logistic::new(x.labeled(labels)?, regularization);
    Problem::new(problem.and_then(|p| if intercept { p.with_intercept() } else { Ok(p) }), computed, None)
}

#[pyfunction]
pub fn softmax(x: GivenRows<'_>, labels: Vec<f64>, regularization: f64, intercept: bool) -> PyResult<Problem> {
    let problem = Softmax::new(x.labeled(labels)?, regularization);
    Problem::new(problem.and_then(|p| if intercept { p.with_intercept() } else { Ok(p) }), computed, None)
}

#[pyfunction]
pub fn subspace(rows: PyReadonlyArray2<'_, f64>, k: usize) -> PyResult<Problem> {
    let view = rows.as_array();
    let columns = Mat::from_fn(view.ncols(), view.nrows(), |i, j| view[(j, i)]);
    Problem::new(SubspaceFit::from_data(&columns, k), known, Some("stiefel"))
}

#[pyfunction]
pub fn spiked_subspace(d: usize, k: usize, n: usize, noise: f64, seed: u64) -> PyResult<Problem> {
    Problem::new(SubspaceFit::spiked(d, k, n, noise, seed), known, Some("stiefel"))
}

#[pyfunction]
pub fn mlp(x: PyReadonlyArray2<'_, f64>, labels: Vec<f64>, hidden: Vec<usize>, activation: &str) -> PyResult<Problem> {
    let activation = match activation {
        "relu" => Activation::Relu,
        "tanh" => Activation::Tanh,
        other => {
            let why = format!("activation is {other:?}, but must be \"relu\" or \"tanh\"");
            return Err(PyValueError::new_err(why));
        }
    };
    let data = Labeled { features: Features::Dense(matrix(&x)), labels };
    let data = Classified::from_labeled(&data).map_err(crate::error)?;
    Problem::new(Mlp::new(&data, None, &hidden, activation), known, None)
}

/// A matrix of images and their labels.
type Images<'py> = (Bound<'py, PyArrayDyn<f64>>, Vec<usize>);

/// The 1797 handwritten digits: the training set and the test set.
#[pyfunction]
pub fn load_digits(py: Python<'_>) -> PyResult<Vec<Images<'_>>> {
    let (train, test) = digits::load().map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    [train, test]
        .iter()
        .map(|set| {
            let mut features = Array::with_shape(&[set.rows(), set.columns()]).expect("an array has any shape");
            copy(set.features(), &mut features);
            Ok((features.to_numpy(py)?, set.labels().to_vec()))
        })
        .collect()
}
