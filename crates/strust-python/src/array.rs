//! NumPy arrays as points.

use numpy::{Element, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
};
use strust::vector::{Dense, Real};

/// A component type that NumPy has too: `float32` or `float64`.
pub trait Scalar: Real + Element {
    /// The name in NumPy.
    const NUMPY: &'static str;
}

impl Scalar for f32 {
    const NUMPY: &'static str = "float32";
}

impl Scalar for f64 {
    const NUMPY: &'static str = "float64";
}

/// A point of any shape, stored column by column. A matrix is stored like a faer matrix, so its saved form is the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Array<T> {
    values: Vec<T>,
    shape: Vec<usize>,
}

impl<T: Scalar> Dense for Array<T> {
    type Scalar = T;
    fn parts(&self) -> usize {
        1
    }
    fn part(&self, _: usize) -> &[T] {
        &self.values
    }
    fn part_mut(&mut self, _: usize) -> &mut [T] {
        &mut self.values
    }
    fn shape(&self) -> Vec<usize> {
        self.shape.clone()
    }
    fn with_shape(shape: &[usize]) -> Option<Self> {
        Some(Self { values: vec![T::default(); shape.iter().product()], shape: shape.to_vec() })
    }
}

impl<T: Scalar> Array<T> {
    /// A vector.
    pub fn from_vec(values: Vec<T>) -> Self {
        Self { shape: vec![values.len()], values }
    }
    /// The components, column by column.
    pub fn values(&self) -> &Vec<T> {
        &self.values
    }
    /// The shape.
    pub fn dimensions(&self) -> &[usize] {
        &self.shape
    }

    /// Copies an array of any memory layout.
    pub fn from_numpy(array: &PyReadonlyArrayDyn<'_, T>) -> Self {
        let mut point = Self { values: Vec::new(), shape: array.shape().to_vec() };
        // In the transposed array the rows are the columns.
        let columns = array.as_array().reversed_axes();
        match columns.as_slice() {
            Some(values) => point.values.extend_from_slice(values),
            None => point.values.extend(columns.iter().copied()),
        }
        point
    }

    /// self ← array, which has this shape.
    pub fn copy_numpy(&mut self, array: &PyReadonlyArrayDyn<'_, T>) {
        let columns = array.as_array().reversed_axes();
        match columns.as_slice() {
            Some(values) => self.values.copy_from_slice(values),
            None => self.values.iter_mut().zip(columns.iter()).for_each(|(to, &from)| *to = from),
        }
    }

    /// A new array, stored column by column. It owns its memory, so every view of it refers to this array.
    pub fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
        let array = PyArrayDyn::zeros(py, self.shape.clone(), true);
        array.try_readwrite()?.as_slice_mut()?.copy_from_slice(&self.values);
        Ok(array)
    }
}

/// to ← from, for two points with the same components in the same order: a matrix has a slice for each column.
pub fn copy<T: Scalar>(from: &impl Dense<Scalar = T>, to: &mut impl Dense<Scalar = T>) {
    let (parts, mut start) = (from.parts(), 0);
    for j in 0..parts.max(to.parts()) {
        if parts == to.parts() {
            to.part_mut(j).copy_from_slice(from.part(j));
        } else if parts == 1 {
            let column = to.part_mut(j);
            column.copy_from_slice(&from.part(0)[start..start + column.len()]);
            start += column.len();
        } else {
            let column = from.part(j);
            to.part_mut(0)[start..start + column.len()].copy_from_slice(column);
            start += column.len();
        }
    }
}

/// An array of component type T from anything that NumPy makes such an array of. `what` names it in messages.
pub fn readonly<'py, T: Scalar>(what: &str, object: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    if let Ok(array) = object.cast::<PyArrayDyn<T>>() {
        return borrowed(what, array);
    }
    let py = object.py();
    let numpy = numpy::get_array_module(py)?;
    let array = numpy.call_method1("asarray", (object,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !["b", "i", "u", "f"].contains(&kind.as_str()) {
        let dtype = array.getattr("dtype")?;
        return Err(PyTypeError::new_err(format!("{what} must be an array of real numbers, not of dtype {dtype}")));
    }
    let array = array.call_method1("astype", (T::NUMPY,))?;
    borrowed(what, array.cast::<PyArrayDyn<T>>()?)
}

fn borrowed<'py, T: Scalar>(what: &str, array: &Bound<'py, PyArrayDyn<T>>) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    array.try_readonly().map_err(|_| PyValueError::new_err(format!("{what} is being written by another call")))
}

/// A shape as Python writes it.
pub fn shown(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        all => format!("({})", all.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
