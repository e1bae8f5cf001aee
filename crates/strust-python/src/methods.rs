//! The methods by name.

use crate::{
    array::{Array, Scalar},
    constraints::AnyConstraint,
};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::cell::RefCell;
use strust::{config::Config, methods::AnyMethod, prelude::*, schedule::Schedule};
use strust_baselines::by_name::{self, MethodInfo, MethodOptions, MethodParts};

/// All names.
pub const NAMES: &[&str] = &{
    let mut names = [""; by_name::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = by_name::ALL[i].name;
        i += 1;
    }
    names
};

/// What is known of a method.
pub fn info(name: &str) -> PyResult<&'static MethodInfo> {
    by_name::info(name).ok_or_else(|| {
        PyValueError::new_err(format!("there is no method {name:?}; the methods are {}", NAMES.join(", ")))
    })
}

/// Makes a method from its options as JSON.
pub fn method<T: Scalar>(
    name: &str,
    options: &str,
    schedule: Schedule,
    constraint: Option<AnyConstraint<T>>,
) -> PyResult<AnyMethod<Array<T>>> {
    match (info(name)?.constrained, &constraint) {
        (false, Some(_)) => {
            return Err(PyValueError::new_err(format!(
                "method={name:?} has no constraints; use \"auto\", which chooses \"str-sqp\" with constraints"
            )));
        }
        (true, None) => {
            return Err(PyValueError::new_err(format!(
                "method={name:?} needs constraints; without them use method=\"auto\""
            )));
        }
        _ => {}
    }
    let constraint = RefCell::new(constraint);
    let make = |_| Ok(constraint.take().expect("a method takes one constraint"));
    let parts = MethodParts { schedule, average: false, constraint: &make, expectation: &|| None };
    let config = by_name::config(name, &Json(options)).expect("the name is in the table");
    let method = config.and_then(|config| Ok(by_name::method(&config, &parts)?));
    method.map_err(|Wrong(error)| error)
}

/// The configuration of a method from its options as JSON.
pub fn config<C: Config>(options: &str) -> PyResult<C> {
    Json(options).config().map_err(|Wrong(error)| error)
}

/// MethodOptions as JSON.
struct Json<'a>(&'a str);

/// Why options cannot be used.
struct Wrong(PyErr);

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self(crate::error(error))
    }
}

impl MethodOptions for Json<'_> {
    type Error = Wrong;
    fn config<C: Config>(&self) -> Result<C, Wrong> {
        serde_json::from_str(self.0).map_err(|error| {
            // The place in the JSON text means nothing to the caller.
            let text = error.to_string();
            let why = text.rsplit_once(" at line ").map_or(text.as_str(), |(why, _)| why);
            Wrong(PyValueError::new_err(format!("options of {}: {why}", C::NAME)))
        })
    }
}
