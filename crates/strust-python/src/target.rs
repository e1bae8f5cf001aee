//! What is minimized or measured: functions of the user, or a built-in problem.

use crate::{
    array::{Array, readonly},
    exception::RaisedException,
    function::{Function, UserFunctions},
    objective::AnyObjective,
    problems::Problem,
};
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use strust::objective::ProductKind;

#[derive(FromPyObject)]
pub enum PyTarget<'py> {
    Problem(PyRef<'py, Problem>),
    Functions(UserFunctions),
}

/// An objective and a point. Functions of the user have the component type of the point, and a problem has doubles.
pub enum Opened {
    Single(AnyObjective<f32>, Array<f32>),
    Double(AnyObjective<f64>, Array<f64>),
}

impl PyTarget<'_> {
    /// The objective, and x as its point. `what` names x in messages, and `kind` is the matrix of the products.
    pub fn open(
        self,
        what: &str,
        x: &Bound<'_, PyAny>,
        kind: ProductKind,
        exception: &RaisedException,
    ) -> PyResult<Opened> {
        Ok(match self {
            Self::Functions(given) if x.cast::<PyArrayDyn<f32>>().is_ok() => {
                let f = AnyObjective::new(Function::new(given, kind, exception));
                Opened::Single(f, Array::from_numpy(&readonly(what, x)?))
            }
            Self::Functions(given) => {
                let f = AnyObjective::new(Function::new(given, kind, exception));
                Opened::Double(f, Array::from_numpy(&readonly(what, x)?))
            }
            Self::Problem(problem) => Opened::Double(problem.objective(), Array::from_numpy(&readonly(what, x)?)),
        })
    }
}
