//! Constraints that are expectations: the method under them, and the end of a run.

use crate::{
    array::{Array, Scalar},
    constraints::AnyConstraint,
    exception::RaisedException,
    function::{Function, UserFunctions},
    methods::config,
    objective::AnyObjective,
};
use numpy::PyReadonlyArray2;
use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use strust::{
    Error,
    expectation::{Expectation, MeanRow, MeasuredRow, Members},
    methods::{AnyMethod, AnyState, ExpectationEnd, InExpectation, InnerMethod},
    objective::ProductKind,
    prelude::*,
    saved::Saved,
};

/// Steps of the end at most: twice what the hardest problem of docs/constraints.md needs.
const STEPS: u64 = 100;

/// The rows as `strust.constraints` describes them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct PyRows<'py> {
    score: UserFunctions,
    rate: Option<UserFunctions>,
    /// For each row its weights, a mask of the terms for each weight, and its bounds.
    rows: Vec<(Vec<f64>, PyReadonlyArray2<'py, bool>, f64, f64)>,
}

impl PyRows<'_> {
    pub fn open<T: Scalar>(self, exception: &RaisedException) -> PyResult<Expectation<AnyObjective<T>>> {
        let mut groups: Vec<Members> = Vec::new();
        let mut rows = Vec::new();
        for (weights, masks, lower, upper) in &self.rows {
            let mut row: Option<MeanRow> = None;
            for (&weight, mask) in weights.iter().zip(masks.as_array().outer_iter()) {
                // Rows over one group share it, so that it is evaluated once.
                let known = groups.iter().position(|group| mask.indexed_iter().all(|(i, &is)| group.contains(i) == is));
                let group = known.unwrap_or(groups.len());
                if known.is_none() {
                    groups.push(Members::new(mask.len(), |i| mask[i]));
                }
                row = Some(match row {
                    None => MeanRow::weighted(weight, &groups[group]),
                    Some(row) => row.plus(weight, &groups[group]),
                });
            }
            rows.extend(row.map(|row| row.between(*lower, *upper)));
        }
        let objective = |given| AnyObjective::new(Function::new(given, ProductKind::Hessian, exception));
        let rows = Expectation::new(objective(self.score), rows).map_err(crate::error)?;
        match self.rate {
            None => Ok(rows),
            Some(rate) => rows.with_rate(objective(rate)).map_err(crate::error),
        }
    }
}

/// A row of no meaning, for states: they do not depend on it.
pub fn no_rows<T: Scalar>() -> Expectation<AnyObjective<T>> {
    let zero = AnyObjective::new(from_terms(1, |_, _: &Array<T>, _: &mut Array<T>| 0.0));
    Expectation::new(zero, vec![MeanRow::mean(&Members::all(1)).at_most(0.0)])
        .expect("the row has a bound and a member")
}

/// The number of rows that a state knows: 0 for a run without them.
pub fn rows_of(state: &Saved) -> usize {
    let count = |rows: &Saved| Ok(if let Saved::List(rows) = rows { rows.len() } else { 0 });
    state.part("rows", count).unwrap_or(0)
}

/// Puts the answer of a run on the rows.
pub type Finish<T> =
    Box<dyn FnOnce(&mut AnyObjective<T>, &AnyState<Array<T>>) -> Result<ExpectationEnd<Array<T>>, Error> + Send>;

/// The method under these rows, and its end.
pub fn under<T: Scalar>(
    rows: Expectation<AnyObjective<T>>,
    name: &str,
    options: &str,
    constraint: impl Fn() -> PyResult<Option<AnyConstraint<T>>>,
) -> PyResult<(AnyMethod<Array<T>>, Finish<T>)> {
    match (name, constraint()?, constraint()?) {
        ("auto", None, None) => {
            let auto = Auto::new(config(options)?).map_err(crate::error)?;
            Ok(around([auto.clone(), auto], rows))
        }
        ("str-sqp", Some(first), Some(second)) => {
            let sqp = |exact| StrSqp::new(StrSqpConfig::default(), exact).map_err(crate::error);
            Ok(around([sqp(first)?, sqp(second)?], rows))
        }
        _ => Err(PyValueError::new_err(format!(
            "method={name:?} does not fit: with expectations use \"auto\", and \"str-sqp\" with other constraints too"
        ))),
    }
}

fn around<T, I>([inner, last]: [I; 2], rows: Expectation<AnyObjective<T>>) -> (AnyMethod<Array<T>>, Finish<T>)
where
    T: Scalar,
    I: InnerMethod<Array<T>, State: Send> + Send + 'static,
{
    let mut last = InExpectation::around(last, rows.clone());
    let finish: Finish<T> =
        Box::new(move |f, state| last.finish(f, state.downcast_ref().expect("the state of this method"), STEPS));
    (AnyMethod::new(InExpectation::around(inner, rows)), finish)
}

/// Replaces the answer of a run by its end.
pub fn set_end<T: Scalar>(
    result: &Bound<'_, PyDict>,
    end: &ExpectationEnd<Array<T>>,
    tol: Option<f64>,
) -> PyResult<()> {
    let (py, found) = (result.py(), &end.certificate);
    let verdict = end.state.settled();
    let is_enough = tol.is_some_and(|tol| found.stationarity.max(found.violation) <= tol);
    let reason = if is_enough { StopReason::Kkt } else { verdict.unwrap_or(StopReason::Steps) };
    result.set_item("x", end.state.point().to_numpy(py)?)?;
    result.set_item("reason", reason.code())?;
    result.set_item("message", format!("{reason} (on all terms)"))?;
    result.set_item("converged", reason.converged())?;
    result.set_item("measured", (found.value, found.stationarity, found.violation))?;
    let certificate = PyDict::new(py);
    let verdict = verdict.map_or("running", |reason| if reason.converged() { "converged" } else { reason.code() });
    certificate.set_item("verdict", verdict)?;
    certificate.set_item("complementarity", found.complementarity)?;
    certificate.set_item("uncertainty", found.uncertainty)?;
    let column = |number: fn(&MeasuredRow) -> f64| end.rows.iter().map(number).collect::<Vec<_>>();
    certificate.set_item("value", column(|row| row.value))?;
    certificate.set_item("smooth", column(|row| row.smooth))?;
    certificate.set_item("standard_error", column(|row| row.standard_error))?;
    certificate.set_item("violation", column(MeasuredRow::violation))?;
    certificate.set_item("multiplier", multipliers(end))?;
    result.set_item("certificate", certificate)
}

/// The multiplier of each row: positive at an upper bound, negative at a lower one.
fn multipliers<T: Scalar>(end: &ExpectationEnd<Array<T>>) -> Vec<f64> {
    // Those of the rows' sides come last, in the order of the rows, an upper side before a lower one.
    let mut sides = end.state.multipliers().iter().rev();
    let mut side = || sides.next().copied().unwrap_or(0.0);
    let of_row = |row: &MeasuredRow| {
        let is_equation = row.lower >= row.upper;
        let below = if row.lower.is_finite() && !is_equation { side() } else { 0.0 };
        if row.upper.is_finite() { side() - below } else { -below }
    };
    let mut all: Vec<f64> = end.rows.iter().rev().map(of_row).collect();
    all.reverse();
    all
}
