//! Functions of the user as objectives.

use crate::{
    array::{Array, Scalar, readonly, shown},
    exception::RaisedException,
};
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyTuple,
};
use strust::{
    objective::{Evaluation, Objective, ProductKind},
    sample::Sample,
    vector::Real,
};

/// The functions of the user, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct UserFunctions {
    /// What messages call `fun`.
    name: String,
    /// `fun(x, indices)`, or `fun(x)` without terms. It returns the value, and the gradient too unless `gradient` does.
    fun: Py<PyAny>,
    /// `jac(x, indices)`.
    gradient: Option<Py<PyAny>>,
    /// `hessp(x, p, indices)`.
    products: Option<Py<PyAny>>,
    /// The number of terms, if `fun` has indices.
    terms: Option<usize>,
    /// The size of the numbers whose differences are squared, or 0.
    magnitude: f64,
}

/// The functions of the user as an objective.
pub struct Function<T: Scalar> {
    given: UserFunctions,
    /// The matrix that `hessp` multiplies.
    kind: ProductKind,
    exception: RaisedException,
    /// Where x is handed over.
    handed: Handed<T>,
    /// Where the direction of a product is handed over.
    direction: Handed<T>,
    /// The last sample as an array.
    indices: Option<(Vec<usize>, Py<PyArray1<i64>>)>,
}

/// An array in which points are handed to Python. It is used again, unless someone has kept it.
pub struct Handed<T: Scalar>(Option<Py<PyArrayDyn<T>>>);

impl<T: Scalar> Default for Handed<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Scalar> Handed<T> {
    /// An array with the components of x. It is a copy: a function may keep it or write to it.
    pub fn array<'py>(&mut self, py: Python<'py>, x: &Array<T>) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
        if let Some(array) = &self.0
            && nobody_else_has(py, array)
        {
            let array = array.bind(py);
            // A function may have changed its shape or its flags in place.
            if array.shape() == x.dimensions()
                && array.is_fortran_contiguous()
                && let Ok(mut memory) = array.try_readwrite()
            {
                memory.as_slice_mut()?.copy_from_slice(x.values());
                return Ok(array.clone());
            }
        }
        let array = x.to_numpy(py)?;
        self.0 = Some(array.clone().unbind());
        Ok(array)
    }
}

/// Whether this is the only reference. A view of the array would be another one.
fn nobody_else_has<T: Scalar>(py: Python<'_>, array: &Py<PyArrayDyn<T>>) -> bool {
    // The function that replaces it is unsafe, and this crate has no unsafe code.
    #[allow(deprecated)]
    let references = array.get_refcnt(py);
    references == 1
}

impl<T: Scalar> Function<T> {
    pub fn new(given: UserFunctions, kind: ProductKind, exception: &RaisedException) -> Self {
        let (exception, handed, direction) = (exception.clone(), Handed::default(), Handed::default());
        Self { given, kind, exception, handed, direction, indices: None }
    }

    fn evaluate(&mut self, x: &Array<T>, sample: &Sample, gradient: Option<&mut Array<T>>) -> Evaluation {
        let result = Python::attach(|py| self.call(py, x, sample, gradient));
        let value = self.exception.value(result);
        Evaluation::of_squares(value, <T as Real>::EPSILON, self.given.magnitude)
    }

    fn call(
        &mut self,
        py: Python<'_>,
        x: &Array<T>,
        sample: &Sample,
        gradient: Option<&mut Array<T>>,
    ) -> PyResult<f64> {
        let x = self.handed.array(py, x)?.into_any();
        let arguments = self.arguments(py, vec![x], sample)?;
        let returned = self.given.fun.bind(py).call1(&arguments)?;
        let name = &self.given.name;
        if let Some(jac) = &self.given.gradient {
            if let Some(gradient) = gradient {
                let returned = jac.bind(py).call1(&arguments)?;
                copy_gradient(&name.replace("fun", "jac"), &returned, gradient)?;
            }
            return number(&returned, name, "must return a number");
        }
        let pair = returned.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2).ok_or_else(|| {
            let kind = returned.get_type();
            PyTypeError::new_err(format!(
                "{name} must return a tuple (value, gradient), not {kind}; for a function that returns the value alone, \
                 pass its gradient as jac"
            ))
        })?;
        if let Some(gradient) = gradient {
            copy_gradient(name, &pair.get_item(1)?, gradient)?;
        }
        number(&pair.get_item(0)?, name, "must return a number and its gradient")
    }

    /// product ← Hv by `hessp`. False if there is none for this matrix.
    fn multiply(
        &mut self,
        py: Python<'_>,
        kind: ProductKind,
        x: &Array<T>,
        sample: &Sample,
        direction: &Array<T>,
        product: &mut Array<T>,
    ) -> PyResult<bool> {
        let Some(hessp) = self.given.products.as_ref().filter(|_| self.kind == kind) else { return Ok(false) };
        let hessp = hessp.bind(py).clone();
        let x = self.handed.array(py, x)?.into_any();
        let direction = self.direction.array(py, direction)?.into_any();
        let arguments = self.arguments(py, vec![x, direction], sample)?;
        copy_into("the product of hessp", &hessp.call1(&arguments)?, product)?;
        Ok(true)
    }

    /// The arguments of a function: these, and the terms of the sample if there are terms.
    fn arguments<'py>(
        &mut self,
        py: Python<'py>,
        mut arguments: Vec<Bound<'py, PyAny>>,
        sample: &Sample,
    ) -> PyResult<Bound<'py, PyTuple>> {
        if self.given.terms.is_some() {
            arguments.push(self.indices(py, sample)?.into_any());
        }
        PyTuple::new(py, arguments)
    }

    /// The terms of the sample as an array. A step evaluates the same sample twice.
    fn indices<'py>(&mut self, py: Python<'py>, sample: &Sample) -> PyResult<Bound<'py, PyArray1<i64>>> {
        if let Some((last, array)) = &self.indices
            && last == sample.indices()
        {
            return Ok(array.bind(py).clone());
        }
        let terms = sample.indices().iter().map(|&i| i64::try_from(i).expect("an index of a term fits"));
        let array = PyArray1::from_iter(py, terms);
        // The function gets the same array again.
        array.getattr("flags")?.setattr("writeable", false)?;
        self.indices = Some((sample.indices().to_vec(), array.clone().unbind()));
        Ok(array)
    }
}

impl<T: Scalar> Objective for Function<T> {
    type Point = Array<T>;
    fn terms(&self) -> usize {
        self.given.terms.unwrap_or(1)
    }
    fn value(&mut self, x: &Array<T>, sample: &Sample) -> Evaluation {
        self.evaluate(x, sample, None)
    }
    fn value_and_gradient(&mut self, x: &Array<T>, sample: &Sample, gradient: &mut Array<T>) -> Evaluation {
        self.evaluate(x, sample, Some(gradient))
    }
    fn curvature_product(
        &mut self,
        kind: ProductKind,
        x: &Array<T>,
        sample: &Sample,
        direction: &Array<T>,
        product: &mut Array<T>,
    ) -> bool {
        let result = Python::attach(|py| self.multiply(py, kind, x, sample, direction, product));
        self.exception.value(result)
    }
}

/// A number from anything with `__float__`.
fn number(object: &Bound<'_, PyAny>, name: &str, rule: &str) -> PyResult<f64> {
    object.extract().map_err(|error: PyErr| {
        let wrong = PyTypeError::new_err(format!("{name} {rule}: {}", error.value(object.py())));
        wrong.set_cause(object.py(), Some(error));
        wrong
    })
}

/// gradient ← what `owner` returned, which must have the shape of x.
fn copy_gradient<T: Scalar>(owner: &str, returned: &Bound<'_, PyAny>, gradient: &mut Array<T>) -> PyResult<()> {
    copy_into(&format!("the gradient of {owner}"), returned, gradient)
}

/// to ← what a function returned, which must have the shape of `to`.
pub fn copy_into<T: Scalar>(what: &str, returned: &Bound<'_, PyAny>, to: &mut Array<T>) -> PyResult<()> {
    let array = readonly::<T>(what, returned)?;
    if array.shape() != to.dimensions() {
        let (found, expected) = (shown(array.shape()), shown(to.dimensions()));
        return Err(PyValueError::new_err(format!("{what} has shape {found}, but must have shape {expected}")));
    }
    to.copy_numpy(&array);
    Ok(())
}
