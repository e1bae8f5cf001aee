//! Loops over slices, normal numbers, and checks of sizes: what objectives and readers share.

pub use strust::config::out_of_range;

use faer::Mat;
use rand_distr::{Distribution, StandardNormal};
use strust::{Error, sample::generator, vector::Real};

/// The streams of data and of starts are in the middle of the range, because samplers use both ends. A permutation must
/// not be correlated with the data that it permutes, even if both have the same seed.
pub const DATA: u64 = 1 << 62;
/// The stream of starts.
pub const START: u64 = DATA + 1;

/// Independent standard normal numbers.
pub fn normals(seed: u64, stream: u64) -> impl FnMut() -> f64 {
    let mut rng = generator(seed, stream);
    move || StandardNormal.sample(&mut rng)
}

/// ⟨a, b⟩ with eight partial sums. Their order is fixed, so the result is the same on every machine.
#[must_use]
#[inline(always)]
pub fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
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
pub fn axpy<T: Real>(a: T, x: &[T], y: &mut [T]) {
    debug_assert_eq!(x.len(), y.len());
    for (y, &x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// Checks that a number is not 0.
pub fn at_least_one(owner: &'static str, field: &'static str, value: usize) -> Result<(), Error> {
    if value == 0 { Err(out_of_range(owner, field, value, "≥ 1")) } else { Ok(()) }
}

/// Checks a shape. `place` says whose.
pub fn shape(place: &'static str, expected: Vec<usize>, found: Vec<usize>) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::Shape { place, expected, found }) }
}

/// Checks the largest |entry| of data: 0, or in [1e-75, 1e75]. A gradient contains squares of the data, and a method squares
/// the gradient. Beyond these limits this under- or overflows.
///
/// ```
/// use strust_data::limits;
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
pub fn finite<T: Real>(owner: &'static str, field: &'static str, matrix: &Mat<T>) -> Result<(), Error> {
    for j in 0..matrix.ncols() {
        if let Some(i) = matrix.col_as_slice(j).iter().position(|&v| !v.into().is_finite()) {
            let value: f64 = matrix[(i, j)].into();
            return Err(out_of_range(owner, field, format!("{value} at row {i}, column {j}"), "finite everywhere"));
        }
    }
    Ok(())
}
