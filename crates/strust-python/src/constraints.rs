//! Constraints over arrays: those of the library by name, and functions of the user.

use crate::{
    array::{Array, Scalar, copy, readonly, shown},
    exception::RaisedException,
    function::{Handed, copy_into},
};
use faer::Mat;
use numpy::PyUntypedArrayMethods;
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyList},
};
use strust::{
    Error,
    constraints::{
        Affine, Bounds, Constraint, ConstraintWrapper, Manifold, Sense, Simplex, Sphere, Stiefel, at_most, both,
        by_newton,
    },
    vector::Vector,
};

type DynConstraint<T> = dyn Manifold<Point = Array<T>, Residual = Vec<f64>> + Send;

/// Any constraint over arrays.
pub struct AnyConstraint<T: Scalar>(Box<DynConstraint<T>>);

impl<T: Scalar> AnyConstraint<T> {
    /// A constraint from its description: a list of dictionaries that `strust.constraints` makes. `None` for an empty list.
    pub fn new(parts: &Bound<'_, PyList>, x: &Array<T>, exception: &RaisedException) -> PyResult<Option<Self>> {
        let mut all: Option<Self> = None;
        for part in parts {
            let next = part_from(part.cast::<PyDict>()?, x, exception)?;
            all = Some(match all {
                None => next,
                Some(before) => restorable(both(before, next).map_err(crate::error)?),
            });
        }
        Ok(all)
    }

    /// The unit sphere.
    pub fn sphere() -> Self {
        Self::of(Sphere::new(1.0).expect("the radius is positive"))
    }

    fn of(manifold: impl Manifold<Point = Array<T>, Residual = Vec<f64>> + Send + 'static) -> Self {
        Self(Box::new(manifold))
    }
}

fn part_from<T: Scalar>(
    part: &Bound<'_, PyDict>,
    x: &Array<T>,
    exception: &RaisedException,
) -> PyResult<AnyConstraint<T>> {
    let get = |key: &str| {
        part.get_item(key)?.ok_or_else(|| PyValueError::new_err(format!("a constraint has no `{key}`: {part}")))
    };
    let kind: String = get("kind")?.extract()?;
    let constraint = match kind.as_str() {
        "stiefel" => {
            let &[d, k] = x.dimensions() else {
                let shape = shown(x.dimensions());
                return Err(PyValueError::new_err(format!(
                    "the constraint \"stiefel\" needs a matrix x, but x0 has shape {shape}"
                )));
            };
            AnyConstraint::of(OnMatrix::new(Stiefel::new(d, k).map_err(crate::error)?, d, k))
        }
        "sphere" => AnyConstraint::of(Sphere::new(get("radius")?.extract()?).map_err(crate::error)?),
        "simplex" => AnyConstraint::of(Simplex::new(x, get("total")?.extract()?).map_err(crate::error)?),
        "affine" => {
            let rows: Vec<Bound<'_, PyAny>> = get("a")?.extract()?;
            let rows: PyResult<Vec<_>> = rows.iter().map(|row| of_shape("a row of A", row, x)).collect();
            AnyConstraint::of(Affine::new(rows?, get("b")?.extract()?).map_err(crate::error)?)
        }
        "bounds" => {
            let (lower, upper) = (get("lower")?, get("upper")?);
            let bounds = Bounds::new(of_shape("lower", &lower, x)?, of_shape("upper", &upper, x)?);
            AnyConstraint::of(bounds.map_err(crate::error)?)
        }
        "functions" => restorable(Functions {
            fun: get("fun")?.unbind(),
            jvp: get("jvp")?.unbind(),
            vjp: get("vjp")?.unbind(),
            rows: get("rows")?.extract()?,
            magnitude: get("magnitude")?.extract()?,
            point: Handed::default(),
            direction: Handed::default(),
            exception: exception.clone(),
        }),
        kind => return Err(PyValueError::new_err(format!("there is no constraint {kind:?}"))),
    };
    let at_most_zero: bool = get("at_most")?.extract()?;
    Ok(if at_most_zero { restorable(at_most(constraint)) } else { constraint })
}

/// An array with the shape of x.
fn of_shape<T: Scalar>(what: &str, object: &Bound<'_, PyAny>, x: &Array<T>) -> PyResult<Array<T>> {
    let array = readonly::<T>(what, object)?;
    if array.shape() != x.dimensions() {
        let (found, expected) = (shown(array.shape()), shown(x.dimensions()));
        return Err(PyValueError::new_err(format!("{what} has shape {found}, but x0 has shape {expected}")));
    }
    Ok(Array::from_numpy(&array))
}

/// A manifold: by Newton steps for equations, otherwise one without a projection.
fn restorable<T: Scalar, C>(constraint: C) -> AnyConstraint<T>
where
    C: Constraint<Point = Array<T>, Residual = Vec<f64>> + Send + 'static,
{
    let only_equations = constraint.bounds().is_none()
        && (0..constraint.new_residual().len()).all(|row| constraint.sense(row) == Sense::Equal);
    if only_equations {
        AnyConstraint::of(by_newton(constraint).expect("all rows are equations"))
    } else {
        AnyConstraint::of(WithoutProjection(constraint))
    }
}

impl<T: Scalar> ConstraintWrapper for AnyConstraint<T> {
    type Inner = DynConstraint<T>;
    fn wrapped(&self) -> &DynConstraint<T> {
        &*self.0
    }
    fn wrapped_mut(&mut self) -> &mut DynConstraint<T> {
        &mut *self.0
    }
}

impl<T: Scalar> Manifold for AnyConstraint<T> {
    fn project_tangent(&mut self, x: &Array<T>, v: &mut Array<T>) -> Result<(), Error> {
        self.0.project_tangent(x, v)
    }
    fn restore(&mut self, x: &mut Array<T>) -> Result<(), Error> {
        self.0.restore(x)
    }
}

/// A constraint for methods that need no projection onto it.
struct WithoutProjection<C>(C);

impl<C: Constraint> ConstraintWrapper for WithoutProjection<C> {
    type Inner = C;
    fn wrapped(&self) -> &C {
        &self.0
    }
    fn wrapped_mut(&mut self) -> &mut C {
        &mut self.0
    }
}

impl<C: Constraint> Manifold for WithoutProjection<C> {
    fn project_tangent(&mut self, _: &C::Point, _: &mut C::Point) -> Result<(), Error> {
        Err(no_projection())
    }
    fn restore(&mut self, _: &mut C::Point) -> Result<(), Error> {
        Err(no_projection())
    }
}

fn no_projection() -> Error {
    let why = "these inequalities have no projection; use method=\"str-sqp\"";
    Error::Retraction { set: "constraint", why: why.into() }
}

/// A constraint on matrices, applied to arrays.
struct OnMatrix<T: Scalar, C> {
    constraint: C,
    x: Mat<T>,
    v: Mat<T>,
    residual: Mat<T>,
}

impl<T: Scalar, C: Constraint<Point = Mat<T>, Residual = Mat<T>>> OnMatrix<T, C> {
    /// The constraint on matrices with d rows and k columns.
    fn new(constraint: C, d: usize, k: usize) -> Self {
        let residual = constraint.new_residual();
        Self { constraint, x: Mat::zeros(d, k), v: Mat::zeros(d, k), residual }
    }
}

#[deny(clippy::missing_trait_methods, reason = "a wrapper must not lose a part of the inner constraint")]
impl<T: Scalar, C: Constraint<Point = Mat<T>, Residual = Mat<T>>> Constraint for OnMatrix<T, C> {
    type Point = Array<T>;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0; self.residual.dimension()]
    }
    fn residual(&mut self, x: &Array<T>, c: &mut Vec<f64>) {
        copy(x, &mut self.x);
        self.constraint.residual(&self.x, &mut self.residual);
        c.copy_from_slice(&self.residual.components());
    }
    fn jvp(&mut self, x: &Array<T>, v: &Array<T>, out: &mut Vec<f64>) {
        copy(x, &mut self.x);
        copy(v, &mut self.v);
        self.constraint.jvp(&self.x, &self.v, &mut self.residual);
        out.copy_from_slice(&self.residual.components());
    }
    fn add_vjp(&mut self, x: &Array<T>, a: f64, y: &Vec<f64>, out: &mut Array<T>) {
        copy(x, &mut self.x);
        copy(out, &mut self.v);
        self.residual.set_components(y);
        self.constraint.add_vjp(&self.x, a, &self.residual, &mut self.v);
        copy(&self.v, out);
    }
    fn add_second_order_product(
        &mut self,
        x: &Array<T>,
        a: f64,
        y: &Vec<f64>,
        v: &Array<T>,
        out: &mut Array<T>,
    ) -> bool {
        let mut sum = self.v.clone();
        copy(x, &mut self.x);
        copy(v, &mut self.v);
        copy(out, &mut sum);
        self.residual.set_components(y);
        let has = self.constraint.add_second_order_product(&self.x, a, &self.residual, &self.v, &mut sum);
        copy(&sum, out);
        has
    }
    fn rounding(&self, _: &Array<T>, norm: f64) -> f64 {
        // The error of WᵀW − I depends on its size only.
        self.constraint.rounding(&self.x, norm)
    }
    fn redundant(&self) -> usize {
        self.constraint.redundant()
    }
    fn sense(&self, row: usize) -> Sense {
        self.constraint.sense(row)
    }
    fn bounds(&self) -> Option<&Bounds<Array<T>>> {
        // The constraints on matrices are equations without bounds.
        None
    }
    fn check_point(&self, x: &Array<T>) -> Result<(), Error> {
        let &[d, k] = x.dimensions() else { panic!("a matrix has two dimensions") };
        self.constraint.check_point(&Mat::zeros(d, k))
    }
}

impl<T: Scalar, C: Manifold<Point = Mat<T>, Residual = Mat<T>>> Manifold for OnMatrix<T, C> {
    fn project_tangent(&mut self, x: &Array<T>, v: &mut Array<T>) -> Result<(), Error> {
        copy(x, &mut self.x);
        copy(v, &mut self.v);
        self.constraint.project_tangent(&self.x, &mut self.v)?;
        copy(&self.v, v);
        Ok(())
    }
    fn restore(&mut self, x: &mut Array<T>) -> Result<(), Error> {
        copy(x, &mut self.x);
        self.constraint.restore(&mut self.x)?;
        copy(&self.x, x);
        Ok(())
    }
}

/// c(x), J·v and Jᵀ·y from functions of the user.
struct Functions<T: Scalar> {
    fun: Py<PyAny>,
    jvp: Py<PyAny>,
    vjp: Py<PyAny>,
    rows: usize,
    magnitude: f64,
    point: Handed<T>,
    direction: Handed<T>,
    exception: RaisedException,
}

impl<T: Scalar> Functions<T> {
    fn copy_rows(&self, what: &str, returned: &Bound<'_, PyAny>, to: &mut [f64]) -> PyResult<()> {
        let array = readonly::<f64>(what, returned)?;
        if array.len() != self.rows {
            let (found, expected) = (array.len(), self.rows);
            return Err(PyValueError::new_err(format!("{what} has {found} components, but must have {expected}")));
        }
        to.iter_mut().zip(array.as_array()).for_each(|(to, &from)| *to = from);
        Ok(())
    }
}

impl<T: Scalar> Constraint for Functions<T> {
    type Point = Array<T>;
    type Residual = Vec<f64>;
    fn new_residual(&self) -> Vec<f64> {
        vec![0.0; self.rows]
    }
    fn residual(&mut self, x: &Array<T>, c: &mut Vec<f64>) {
        let result = Python::attach(|py| {
            let returned = self.fun.bind(py).call1((self.point.array(py, x)?,))?;
            self.copy_rows("the value of the constraint", &returned, c)
        });
        self.exception.value(result);
    }
    fn jvp(&mut self, x: &Array<T>, v: &Array<T>, out: &mut Vec<f64>) {
        let result = Python::attach(|py| {
            let arguments = (self.point.array(py, x)?, self.direction.array(py, v)?);
            let returned = self.jvp.bind(py).call1(arguments)?;
            self.copy_rows("the product of jvp", &returned, out)
        });
        self.exception.value(result);
    }
    fn add_vjp(&mut self, x: &Array<T>, a: f64, y: &Vec<f64>, out: &mut Array<T>) {
        let result = Python::attach(|py| {
            let y = Array::from_vec(y.clone()).to_numpy(py)?;
            let returned = self.vjp.bind(py).call1((self.point.array(py, x)?, y))?;
            let mut product = out.zeros_like();
            copy_into("the product of vjp", &returned, &mut product)?;
            Ok(product)
        });
        let product = self.exception.value(result);
        out.add(a, &product);
    }
    fn rounding(&self, _: &Array<T>, norm: f64) -> f64 {
        Array::<T>::EPSILON.max(f64::EPSILON) * (norm + self.magnitude)
    }
}
