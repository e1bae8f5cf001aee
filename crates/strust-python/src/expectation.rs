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
    expectation::{Expectation, MeanRow, Members},
    methods::{AnyMethod, AnyState, ExpectationEnd, InExpectation, InnerMethod},
    objective::ProductKind,
    prelude::*,
    saved::Saved,
};

/// Steps of the end at most: about twice as many as the hardest problem in docs/evidence/constraints.md needs.
const STEPS: u64 = 100;
/// A row that is further outside of its bounds is not satisfied.
const OUTSIDE: f64 = 1e-6;

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
                // Rows that share a group evaluate it once.
                let is_same = |group: &Members| mask.indexed_iter().all(|(i, &is)| group.contains(i) == is);
                let place = groups.iter().position(is_same).unwrap_or_else(|| {
                    groups.push(Members::new(mask.len(), |i| mask[i]));
                    groups.len() - 1
                });
                let group = &groups[place];
                row = Some(row.map_or_else(|| MeanRow::weighted(weight, group), |row| row.plus(weight, group)));
            }
            rows.extend(row.map(|row| row.between(*lower, *upper)));
        }
        let objective = |given| AnyObjective::new(Function::new(given, ProductKind::Hessian, exception));
        let rows = Expectation::new(objective(self.score), rows);
        let rated = rows.and_then(|rows| self.rate.map_or(Ok(rows.clone()), |rate| rows.with_rate(objective(rate))));
        rated.map_err(crate::error)
    }
}

/// The number of rows that a state knows: 0 for a run without them.
pub fn rows_of(state: &Saved) -> usize {
    let count = |rows: &Saved| Ok(if let Saved::List(rows) = rows { rows.len() } else { 0 });
    state.part("rows", count).unwrap_or(0)
}

/// Any row, to read states: they do not depend on it.
pub fn any_row<T: Scalar>() -> Expectation<AnyObjective<T>> {
    let zero = AnyObjective::new(from_terms(1, |_, _: &Array<T>, _: &mut Array<T>| 0.0));
    Expectation::new(zero, vec![MeanRow::mean(&Members::all(1)).at_most(0.0)])
        .expect("the row has a bound and a member")
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
            let config: AutoConfig = config(options)?;
            if config.weight_decay > 0.0 {
                let what = "weight_decay must be 0 under expectations: the steps on all terms have none, so they would undo it";
                return Err(PyValueError::new_err(what));
            }
            let auto = Auto::new(config).map_err(crate::error)?;
            Ok(around([auto.clone(), auto], rows))
        }
        ("str-sqp", Some(first), Some(second)) if options == "{}" => {
            let sqp = |exact| StrSqp::new(StrSqpConfig::default(), exact).map_err(crate::error);
            Ok(around([sqp(first)?, sqp(second)?], rows))
        }
        _ => Err(PyValueError::new_err(format!(
            "method={name:?} does not fit: under expectations use \"auto\"; with other constraints too it is \
             \"str-sqp\", without options"
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
    let (found, verdict) = (&end.certificate, end.state.settled());
    let is_enough = tol.is_some_and(|tol| found.stationarity.max(found.violation) <= tol);
    let reason = if is_enough { StopReason::Kkt } else { verdict.unwrap_or(StopReason::Steps) };
    result.set_item("x", end.state.point().to_numpy(result.py())?)?;
    // The steps keep smooth rows. The true rates, of counts, may still be outside.
    let outside = end.violation();
    let why = if outside > OUTSIDE {
        format!(", but a row is outside of its bounds by {outside:.1e}")
    } else {
        String::new()
    };
    result.set_item("reason", reason.code())?;
    result.set_item("message", format!("{reason} (on all terms){why}"))?;
    result.set_item("converged", reason.converged() && outside <= OUTSIDE)?;
    result.set_item("measured", (found.value, found.stationarity, found.violation.max(outside)))?;
    let verdict = verdict.map_or("running", |reason| if reason.converged() { "converged" } else { reason.code() });
    // The multipliers of the rows' sides come last, in the order of the rows, that of an upper side before a lower one.
    let mut sides = end.state.multipliers().iter().rev();
    let mut side = |is_there: bool| is_there.then(|| sides.next()).flatten().copied().unwrap_or(0.0);
    let mut rows = Vec::new();
    for row in end.rows.iter().rev() {
        let below = side(row.lower.is_finite() && row.lower < row.upper);
        let multiplier = side(row.upper.is_finite()) - below;
        rows.insert(0, (row.value, row.violation(), multiplier, row.standard_error));
    }
    result.set_item("certificate", (verdict, rows))
}
