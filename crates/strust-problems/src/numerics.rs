//! Code that the problems share: loops over slices, normal numbers, and checks of sizes.

use faer::Mat;
use rand_distr::{Distribution, StandardNormal};
use strust::{
    Error,
    constraints::Constraint,
    methods::{StrSqp, StrSqpConfig},
    minimize,
    objective::{Evaluation, Objective, ProductKind},
    sample::{Sample, generator},
    stop::Stop,
    vector::{Elementwise, Real, Vector},
};

/// The streams of data and of starts are in the middle of the range, because samplers use both ends. A permutation must
/// not be correlated with the data that it permutes, even if both have the same seed.
pub(crate) const DATA: u64 = 1 << 62;
pub(crate) const START: u64 = DATA + 1;

/// Independent standard normal numbers.
pub(crate) fn normals(seed: u64, stream: u64) -> impl FnMut() -> f64 {
    let mut rng = generator(seed, stream);
    move || StandardNormal.sample(&mut rng)
}

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
    C: Constraint<Point = F::Point>,
{
    // Half of the digits of ∇f would be enough for all digits of f, but the violation counts at first order.
    let method = StrSqp::new(StrSqpConfig { tolerance: 1e-11, ..StrSqpConfig::default() }, constraint).ok()?;
    let report = minimize(&mut f).method(method).full_batch().stop(Stop::steps(2000)).start(start).ok()?;
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

/// ⟨a, b⟩ with eight partial sums. Their order is fixed, so the result is the same on every machine.
#[inline(always)]
pub(crate) fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    const LANES: usize = 8;
    debug_assert_eq!(a.len(), b.len());
    let mut sums = [0.0_f64; LANES];
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane].into() * b[lane].into();
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(&a, &b)| a.into() * b.into()).sum();
    sums.iter().sum::<f64>() + rest
}

/// y ← y + a·x.
#[inline(always)]
pub(crate) fn axpy<T: Real>(a: T, x: &[T], y: &mut [T]) {
    debug_assert_eq!(x.len(), y.len());
    for (y, &x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// √(mean of squares); 0 for an empty slice.
pub(crate) fn rms(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len().max(1) as f64;
    (values.map(|v| v * v).sum::<f64>() / n).sqrt()
}

pub(crate) fn out_of_range(
    owner: &'static str,
    field: &'static str,
    value: impl std::fmt::Display,
    allowed: impl std::fmt::Display,
) -> Error {
    Error::OutOfRange { owner, field, value: value.to_string(), allowed: allowed.to_string() }
}

pub(crate) fn at_least_one(owner: &'static str, field: &'static str, value: usize) -> Result<(), Error> {
    if value == 0 { Err(out_of_range(owner, field, value, "≥ 1")) } else { Ok(()) }
}

pub(crate) fn shape(place: &'static str, expected: Vec<usize>, found: Vec<usize>) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::Shape { place, expected, found }) }
}

/// Checks that a number is finite and not negative.
pub(crate) fn not_negative(owner: &'static str, field: &'static str, value: f64) -> Result<(), Error> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(out_of_range(owner, field, value, "finite and ≥ 0")) }
}

/// Checks the largest |entry| of data: 0, or in [1e-75, 1e75]. A gradient contains squares of the data, and a method squares
/// the gradient. Beyond these limits this under- or overflows.
///
/// ```
/// use strust_problems::limits;
/// assert!(limits::size("subspace fitting", "data", 255.0).is_ok());
/// let error = limits::size("subspace fitting", "data", 3e-160).unwrap_err().to_string();
/// assert!(error.starts_with("subspace fitting: `data` is 3e-160 at its largest entry, but must be"), "{error}");
/// ```
pub fn size(owner: &'static str, field: &'static str, largest: f64) -> Result<(), Error> {
    if largest == 0.0 || (1e-75..=1e75).contains(&largest) {
        return Ok(());
    }
    let allowed =
        "in [1e-75, 1e75] there, because squares of gradients under- or overflow: multiply the data by a constant";
    Err(out_of_range(owner, field, format!("{largest:e} at its largest entry"), allowed))
}

/// Reports the first entry of a matrix that is NaN or infinite.
pub(crate) fn finite<T: Real>(owner: &'static str, field: &'static str, matrix: &Mat<T>) -> Result<(), Error> {
    for j in 0..matrix.ncols() {
        if let Some(i) = matrix.col_as_slice(j).iter().position(|&v| !v.into().is_finite()) {
            let value: f64 = matrix[(i, j)].into();
            return Err(out_of_range(owner, field, format!("{value} at row {i}, column {j}"), "finite everywhere"));
        }
    }
    Ok(())
}

/// Checks the data of an objective that is quadratic in them: they are finite and of a [`size`] that can be squared.
pub(crate) fn squarable<T: Real>(owner: &'static str, field: &'static str, matrix: &Mat<T>) -> Result<(), Error> {
    finite(owner, field, matrix)?;
    let entries = (0..matrix.ncols()).flat_map(|j| matrix.col_as_slice(j));
    size(owner, field, entries.fold(0.0, |largest, &v| largest.max(v.into().abs())))
}
