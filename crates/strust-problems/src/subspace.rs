//! Orthogonal subspace fitting: the constrained experiment of the paper's section 5.2.

use crate::Problem;
use faer::{Accum, Mat, Par, Side, linalg::matmul::matmul};
use rand_distr::{Distribution, StandardNormal};
use strust::{
    Error,
    constraints::Stiefel,
    objective::{Objective, residual_rounding},
    sample::{Sample, generator},
    vector::{Real, Vector},
};

/// f(W) = (1/n) Σⱼ ‖(I − WWᵀ)xⱼ‖² over the columns xⱼ of a d×n matrix, subject to WᵀW = I.
///
/// The paper writes the sum as one Frobenius norm; a mini-batch method needs the mean, and with it the paper's
/// learning rates work. Its minimum over orthonormal W is the sum of the d − k smallest eigenvalues of
/// XXᵀ/n, reached at the top-k eigenvectors. That is also the minimum over *all* W, which is why a penalty of any
/// weight is exact on this problem.
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{Problem, subspace::SubspaceFit};
///
/// let mut f = SubspaceFit::<f64>::spiked(30, 3, 200, 0.0, 1)?;
/// let mut method = StrP::new(StrPConfig::default(), f.constraint())?;
/// let start = f.start(1);
/// let report = minimize(&mut f, &mut method, &mut Epochs::new(200, 32, 1)?, start, &Stop::epochs(15))?;
/// assert!(report.last.value < 1e-20 && report.last.constraint_norm < 1e-10);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SubspaceFit<T: Real = f64> {
    data: Mat<T>,
    k: usize,
    optimum: Optimum,
    /// Root mean square of ‖xⱼ‖: the size of the numbers whose difference is a residual.
    magnitude: f64,
    scratch: Option<Scratch<T>>,
}

/// Known at once for exact data; an eigenvalue problem, solved when it is asked for, for any other.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Optimum {
    Zero,
    FromData,
}

/// X_b (the columns of the batch), WᵀX_b, the residual X_b − WWᵀX_b and WᵀR.
#[derive(Debug, Clone)]
struct Scratch<T> {
    columns: Mat<T>,
    coordinates: Mat<T>,
    residual: Mat<T>,
    projected: Mat<T>,
}

impl<T: Real> SubspaceFit<T> {
    /// The spiked model of Dar et al. (2020), centred: x = Uz + ε with U a random d×k orthonormal basis,
    /// z ~ N(0, I) and ε ~ N(0, noise²·I). Without noise the data lie in a k-dimensional subspace exactly, and
    /// the minimum is 0.
    pub fn spiked(d: usize, k: usize, n: usize, noise: f64, seed: u64) -> Result<Self, Error> {
        check(d, k, n)?;
        if !(noise.is_finite() && noise >= 0.0) {
            return Err(out_of_range("noise", noise, "≥ 0"));
        }
        let basis = random_frame(d, k, seed, Stream::Basis);
        let coordinates = gaussian(k, n, seed, Stream::Coordinates);
        let mut data = &basis * &coordinates;
        if noise > 0.0 {
            data += noise * gaussian(d, n, seed, Stream::Noise);
        }
        let mut problem = Self::from_data(&data, k)?;
        if noise == 0.0 {
            problem.optimum = Optimum::Zero;
        }
        Ok(problem)
    }

    /// Fits a k-dimensional subspace to the columns of a d×n matrix, which are centred first.
    pub fn from_data(columns: &Mat<f64>, k: usize) -> Result<Self, Error> {
        let (d, n) = (columns.nrows(), columns.ncols());
        check(d, k, n)?;
        let mean: Vec<f64> = (0..d).map(|i| (0..n).map(|j| columns[(i, j)]).sum::<f64>() / n as f64).collect();
        let data = Mat::from_fn(d, n, |i, j| columns[(i, j)] - mean[i]);
        let magnitude = (data.squared_norm_l2() / n as f64).sqrt();
        if !magnitude.is_finite() {
            return Err(Error::NonFiniteValue { step: 0, value: magnitude });
        }
        let data = Mat::from_fn(d, n, |i, j| T::from_f64(data[(i, j)]));
        Ok(Self { data, k, optimum: Optimum::FromData, magnitude, scratch: None })
    }

    /// The constraint WᵀW = I of this problem.
    #[must_use]
    pub fn constraint(&self) -> Stiefel<T> {
        Stiefel::new(self.data.nrows(), self.k).expect("the sizes were checked when the problem was made")
    }

    /// The columns of the batch, their coordinates A = WᵀX and the residual R = X − WA, into the scratch space;
    /// the value ‖R‖²/b out. R is formed, never expanded: ‖X‖² − ‖A‖² would lose all digits below 1e-16.
    fn residual(&mut self, w: &Mat<T>, sample: &Sample) -> (f64, &mut Scratch<T>) {
        let (d, b) = (self.data.nrows(), sample.len());
        let s = self.scratch.get_or_insert_with(Scratch::empty);
        s.resize(d, self.k, b);
        for (j, &i) in sample.indices().iter().enumerate() {
            s.columns.col_as_slice_mut(j).copy_from_slice(self.data.col_as_slice(i));
        }
        let one = T::from_f64(1.0);
        matmul(&mut s.coordinates, Accum::Replace, w.transpose(), &s.columns, one, Par::Seq);
        Vector::copy_from(&mut s.residual, &s.columns);
        matmul(&mut s.residual, Accum::Add, w, &s.coordinates, -one, Par::Seq);
        (Vector::norm_squared(&s.residual) / b as f64, s)
    }
}

impl<T: Real> Scratch<T> {
    fn empty() -> Self {
        let empty = Mat::zeros(0, 0);
        Self { columns: empty.clone(), coordinates: empty.clone(), residual: empty.clone(), projected: empty }
    }
    /// Shapes for a batch of b; within the capacity of earlier batches this does not allocate.
    fn resize(&mut self, d: usize, k: usize, b: usize) {
        let shape = |m: &mut Mat<T>, rows, cols| {
            if (m.nrows(), m.ncols()) != (rows, cols) {
                m.resize_with(rows, cols, |_, _| T::default());
            }
        };
        shape(&mut self.columns, d, b);
        shape(&mut self.coordinates, k, b);
        shape(&mut self.residual, d, b);
        shape(&mut self.projected, k, b);
    }
}

impl<T: Real> Objective for SubspaceFit<T> {
    type Point = Mat<T>;
    fn terms(&self) -> usize {
        self.data.ncols()
    }
    fn value(&mut self, w: &Mat<T>, sample: &Sample) -> f64 {
        self.residual(w, sample).0
    }
    /// ∇f = −(2/b)(RAᵀ + X(WᵀR)ᵀ).
    fn value_and_gradient(&mut self, w: &Mat<T>, sample: &Sample, gradient: &mut Mat<T>) -> f64 {
        let (value, s) = self.residual(w, sample);
        let scale = T::from_f64(-2.0 / sample.len() as f64);
        matmul(&mut s.projected, Accum::Replace, w.transpose(), &s.residual, T::from_f64(1.0), Par::Seq);
        matmul(&mut *gradient, Accum::Replace, &s.residual, s.coordinates.transpose(), scale, Par::Seq);
        matmul(gradient, Accum::Add, &s.columns, s.projected.transpose(), scale, Par::Seq);
        value
    }
    /// A residual is the difference of two vectors of the size of a column, one of them rounded twice.
    fn rounding(&self, value: f64) -> f64 {
        residual_rounding(T::EPSILON, 2.0 * self.magnitude, value)
    }
    fn check_point(&self, w: &Mat<T>) -> Result<(), Error> {
        let (expected, found) = (vec![self.data.nrows(), self.k], Vector::shape(w));
        if expected != found {
            return Err(Error::Shape { place: "subspace fitting", expected, found });
        }
        Ok(())
    }
}

impl<T: Real> Problem for SubspaceFit<T> {
    /// A random orthonormal frame.
    fn start(&self, seed: u64) -> Mat<T> {
        let frame = random_frame(self.data.nrows(), self.k, seed, Stream::Start);
        Mat::from_fn(frame.nrows(), frame.ncols(), |i, j| T::from_f64(frame[(i, j)]))
    }
    fn optimum(&self) -> Option<f64> {
        match self.optimum {
            Optimum::Zero => Some(0.0),
            Optimum::FromData => tail_of_spectrum(&self.data, self.k),
        }
    }
}

/// The sum of all but the k largest eigenvalues of XXᵀ/n, from the smaller of the two Gram matrices; summed
/// directly, because a difference would cancel. `None` if the eigenvalues do not converge.
fn tail_of_spectrum<T: Real>(data: &Mat<T>, k: usize) -> Option<f64> {
    let n = data.ncols();
    let data = Mat::from_fn(data.nrows(), n, |i, j| data[(i, j)].into());
    let gram = if data.nrows() <= n { &data * data.transpose() } else { data.transpose() * &data };
    let eigenvalues = gram.self_adjoint_eigenvalues(Side::Lower).ok()?;
    let tail = eigenvalues.len().saturating_sub(k);
    Some(eigenvalues[..tail].iter().map(|e| e.max(0.0)).sum::<f64>() / n as f64)
}

/// One stream of random numbers for each use, so that changing one leaves the others.
#[derive(Clone, Copy)]
enum Stream {
    Basis,
    Coordinates,
    Noise,
    Start,
}

fn gaussian(rows: usize, columns: usize, seed: u64, stream: Stream) -> Mat<f64> {
    let mut rng = generator(seed, stream as u64);
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

fn random_frame(d: usize, k: usize, seed: u64, stream: Stream) -> Mat<f64> {
    gaussian(d, k, seed, stream).qr().compute_thin_Q()
}

fn check(d: usize, k: usize, n: usize) -> Result<(), Error> {
    if d == 0 {
        return Err(out_of_range("d", d, "≥ 1"));
    }
    if n == 0 {
        return Err(out_of_range("n", n, "≥ 1"));
    }
    if k == 0 || k > d {
        return Err(out_of_range("k", k, &format!("in [1, d] = [1, {d}]")));
    }
    Ok(())
}

fn out_of_range(field: &'static str, value: impl ToString, allowed: &str) -> Error {
    Error::OutOfRange { owner: "subspace fitting", field, value: value.to_string(), allowed: allowed.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strust::{diagnostics::gradient_slope, objective::full_value};

    #[test]
    fn the_gradient_passes_the_slope_check() {
        let mut f = SubspaceFit::<f64>::spiked(12, 3, 20, 0.3, 5).unwrap();
        let w = gaussian(12, 3, 8, Stream::Start);
        let slope = gradient_slope(&mut f, &w, &gaussian(12, 3, 9, Stream::Start), &Sample::range(2..9));
        assert!((1.9..2.1).contains(&slope), "{slope}");
    }

    #[test]
    fn the_optimum_is_reached_at_the_top_eigenvectors_and_nowhere_below() {
        let mut f = SubspaceFit::<f64>::spiked(15, 4, 60, 0.2, 3).unwrap();
        let optimum = f.optimum().unwrap();
        let gram = &f.data * f.data.transpose();
        let eigen = gram.self_adjoint_eigen(Side::Lower).unwrap();
        let top = Mat::from_fn(15, 4, |i, j| eigen.U()[(i, 14 - j)]);
        assert!((full_value(&mut f, &top) / optimum - 1.0).abs() < 1e-12);
        for seed in 0..20 {
            let w = f.start(seed);
            assert!(full_value(&mut f, &w) > optimum);
        }
    }

    #[test]
    fn exact_data_have_optimum_zero_also_when_computed() {
        let f = SubspaceFit::<f64>::spiked(40, 3, 30, 0.0, 3).unwrap();
        assert_eq!(f.optimum(), Some(0.0));
        assert!(tail_of_spectrum(&f.data, 3).unwrap() < 1e-14);
    }

    #[test]
    fn single_precision_agrees_with_double() {
        let (mut single, mut double) = (
            SubspaceFit::<f32>::spiked(20, 2, 10, 0.1, 1).unwrap(),
            SubspaceFit::<f64>::spiked(20, 2, 10, 0.1, 1).unwrap(),
        );
        let sample = Sample::range(0..10);
        let (a, b) = (single.start(4), double.start(4));
        assert!((single.value(&a, &sample) / double.value(&b, &sample) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn wrong_sizes_are_refused_with_the_range() {
        let error = SubspaceFit::<f64>::spiked(5, 6, 10, 0.0, 0).unwrap_err().to_string();
        assert_eq!(error, "subspace fitting: `k` is 6, but must be in [1, d] = [1, 5]");
        assert!(SubspaceFit::<f64>::spiked(5, 2, 0, 0.0, 0).is_err());
        assert!(SubspaceFit::<f64>::spiked(5, 2, 10, f64::NAN, 0).is_err());
        assert!(SubspaceFit::<f64>::from_data(&Mat::from_fn(3, 3, |_, _| f64::INFINITY), 1).is_err());
    }
}
