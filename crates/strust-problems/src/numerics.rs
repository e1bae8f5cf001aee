//! Code that the problems share, in addition to that of `strust-data`: random matrices, evaluations, and checks of sizes.

use faer::Mat;
use strust::{
    Error,
    constraints::Constraint,
    methods::{StrSqp, StrSqpConfig},
    minimize,
    objective::{Evaluation, Objective, ProductKind},
    sample::Sample,
    stop::Stop,
    vector::{Elementwise, Real, Vector},
};

pub(crate) use strust_data::numerics::{
    DATA, START, at_least_one, axpy, dot, finite, normals, out_of_range, shape, size,
};

/// A matrix filled column by column.
pub(crate) fn fill<T: Real>(rows: usize, columns: usize, mut next: impl FnMut() -> f64) -> Mat<T> {
    let mut matrix = Mat::zeros(rows, columns);
    for j in 0..columns {
        matrix.col_as_slice_mut(j).fill_with(|| T::from_f64(next()));
    }
    matrix
}

/// A matrix of independent standard normal numbers.
pub(crate) fn gaussian(rows: usize, columns: usize, seed: u64, stream: u64) -> Mat<f64> {
    fill(rows, columns, normals(seed, stream))
}

/// A d×k matrix with orthonormal columns, which span a random subspace.
pub(crate) fn random_frame(d: usize, k: usize, seed: u64, stream: u64) -> Mat<f64> {
    gaussian(d, k, seed, stream).qr().compute_thin_Q()
}

/// The columns minus their mean.
pub(crate) fn centered(columns: &Mat<f64>) -> Mat<f64> {
    let (d, n) = (columns.nrows(), columns.ncols());
    let mean: Vec<f64> = (0..d).map(|i| (0..n).map(|j| columns[(i, j)]).sum::<f64>() / n as f64).collect();
    Mat::from_fn(d, n, |i, j| columns[(i, j)] - mean[i])
}

/// f*, by [`StrSqp`] on the full sum; `None` if it does not converge.
pub(crate) fn minimum<F, C>(mut f: F, constraint: C, start: F::Point) -> Option<f64>
where
    F: Objective<Point: Elementwise>,
    C: Constraint<Point = F::Point> + Clone,
{
    // Half of the digits of ∇f would be enough for all digits of f, but the violation counts at first order.
    let config = StrSqpConfig { tolerance: 1e-11, ..StrSqpConfig::default() };
    let mut solve = |config, start| {
        let method = StrSqp::new(config, constraint.clone()).ok()?;
        minimize(&mut f).method(method).full_batch().stop(Stop::steps(2000)).start(start).ok()
    };
    let mut report = solve(config.clone(), start)?;
    if !report.reason.converged() {
        // Rounding can stop L-BFGS short of so many digits. Newton's method needs only a few steps from there.
        report = solve(StrSqpConfig { products: 1000, ..config }, report.point().clone())?;
    }
    report.reason.converged().then_some(report.last.value)
}

/// Checks 1 ≤ k ≤ d and n ≥ 1, the sizes of a d×k matrix fitted to n points.
pub(crate) fn check_frame(owner: &'static str, d: usize, k: usize, n: usize) -> Result<(), Error> {
    at_least_one(owner, "d", d)?;
    at_least_one(owner, "n", n)?;
    if k == 0 || k > d {
        return Err(out_of_range(owner, "k", k, format_args!("in [1, d] = [1, {d}]")));
    }
    Ok(())
}

/// The mean of the sampled terms. Its gradient is added to `gradient`, which is zeroed before the call.
///
/// Implementations and all functions they call are `#[inline(always)]`. [`evaluate`] compiles them as one piece with
/// the widest instructions of the machine; a call that is not inlined would use the narrowest.
pub(crate) trait Evaluate {
    type Point: Vector;
    /// The number of terms.
    fn count(&self) -> usize;
    /// Checks the shape of a point.
    fn check(&self, x: &Self::Point) -> Result<(), Error>;
    fn evaluate(&mut self, x: &Self::Point, sample: &Sample, gradient: Option<&mut Self::Point>) -> f64;
    /// Adds H·v to `out`, which is zeroed before the call; H is the matrix of this kind for the sampled terms.
    fn add_product(
        &mut self,
        kind: ProductKind,
        x: &Self::Point,
        sample: &Sample,
        v: &Self::Point,
        out: &mut Self::Point,
    );
    /// The value with its rounding error.
    fn rounded(&self, value: f64) -> Evaluation {
        Evaluation::new(value, Self::Point::EPSILON)
    }
}

/// Implements [`Objective`] by [`Evaluate`]. The brackets hold the type parameters.
macro_rules! evaluated {
    ([$($parameters:tt)*] $problem:ty, $point:ty) => {
        impl<$($parameters)*> strust::objective::Objective for $problem {
            type Point = $point;

            fn terms(&self) -> usize {
                $crate::numerics::Evaluate::count(self)
            }
            fn value(
                &mut self,
                x: &$point,
                sample: &strust::sample::Sample,
            ) -> strust::objective::Evaluation {
                $crate::numerics::evaluate(self, x, sample, None)
            }
            fn value_and_gradient(
                &mut self,
                x: &$point,
                sample: &strust::sample::Sample,
                gradient: &mut $point,
            ) -> strust::objective::Evaluation {
                $crate::numerics::evaluate(self, x, sample, Some(gradient))
            }
            fn curvature_product(
                &mut self,
                kind: strust::objective::ProductKind,
                x: &$point,
                sample: &strust::sample::Sample,
                direction: &$point,
                product: &mut $point,
            ) -> bool {
                $crate::numerics::multiply(self, kind, x, sample, direction, product)
            }
            fn check_point(&self, x: &$point) -> Result<(), strust::Error> {
                $crate::numerics::Evaluate::check(self, x)
            }
        }
    };
}
pub(crate) use evaluated;

/// Makes a problem the objective in one of its fields.
macro_rules! objective_of {
    ($problem:ty, $field:ident: $inner:ty) => {
        impl strust::objective::ObjectiveWrapper for $problem {
            type Inner = $inner;
            fn wrapped(&self) -> &$inner {
                &self.$field
            }
            fn wrapped_mut(&mut self) -> &mut $inner {
                &mut self.$field
            }
        }
    };
}
pub(crate) use objective_of;

/// Runs [`Evaluate::evaluate`] with the widest instructions.
pub(crate) fn evaluate<E: Evaluate>(
    f: &mut E,
    x: &E::Point,
    sample: &Sample,
    gradient: Option<&mut E::Point>,
) -> Evaluation {
    /// A struct, because a closure cannot be marked `#[inline(always)]`.
    struct Call<'a, E: Evaluate>(&'a mut E, &'a E::Point, &'a Sample, Option<&'a mut E::Point>);

    impl<E: Evaluate> pulp::NullaryFnOnce for Call<'_, E> {
        type Output = f64;
        #[inline(always)]
        fn call(self) -> f64 {
            self.0.evaluate(self.1, self.2, self.3)
        }
    }

    let mut gradient = gradient;
    if let Some(gradient) = gradient.as_deref_mut() {
        gradient.set_zero();
    }
    let value = pulp::Arch::new().dispatch(Call(&mut *f, x, sample, gradient));
    f.rounded(value)
}

/// Runs [`Evaluate::add_product`] with the widest instructions. The product overwrites `out`.
pub(crate) fn multiply<E: Evaluate>(
    f: &mut E,
    kind: ProductKind,
    x: &E::Point,
    sample: &Sample,
    v: &E::Point,
    out: &mut E::Point,
) -> bool {
    struct Call<'a, E: Evaluate>(&'a mut E, ProductKind, &'a E::Point, &'a Sample, &'a E::Point, &'a mut E::Point);

    impl<E: Evaluate> pulp::NullaryFnOnce for Call<'_, E> {
        type Output = ();
        #[inline(always)]
        fn call(self) {
            self.0.add_product(self.1, self.2, self.3, self.4, self.5);
        }
    }

    out.set_zero();
    pulp::Arch::new().dispatch(Call(f, kind, x, sample, v, out));
    true
}

/// √(mean of squares); 0 for an empty slice.
pub(crate) fn rms(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len().max(1) as f64;
    (values.map(|v| v * v).sum::<f64>() / n).sqrt()
}

/// Checks that a number is finite and not negative.
pub(crate) fn not_negative(owner: &'static str, field: &'static str, value: f64) -> Result<(), Error> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(out_of_range(owner, field, value, "finite and ≥ 0")) }
}

/// Checks the data of an objective that is quadratic in them: they are finite and of a [`size`] that can be squared.
pub(crate) fn squarable<T: Real>(owner: &'static str, field: &'static str, matrix: &Mat<T>) -> Result<(), Error> {
    finite(owner, field, matrix)?;
    let entries = (0..matrix.ncols()).flat_map(|j| matrix.col_as_slice(j));
    size(owner, field, entries.fold(0.0, |largest, &v| largest.max(v.into().abs())))
}
