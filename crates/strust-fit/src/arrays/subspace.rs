//! The best-fitting subspace of rows in an array, dense or sparse.

use super::{
    rows::ArrayRows,
    train::{OnePass, WatchStep},
};
use crate::{
    Error,
    constrain::{FullSumEnd, solved},
    train::{Trained, TrainingEnd, TrainingLimits},
};
use faer::{Accum, Mat, MatRef, Par, linalg::matmul::matmul};
use rand_core::Rng;
use serde::{Deserialize, Serialize};
use strust::{
    constraints::Stiefel,
    methods::{AutoState, State},
    objective::{Evaluation, Objective},
    sample::{Sample, generator},
};
use strust_data::limits;

/// The stream of the signs of the start.
const SIGNS: u64 = (1 << 62) + 60;
/// Rows that are read for the start.
const START_ROWS: usize = 2000;
/// Steps of orthogonal iteration at the start.
const START_TURNS: usize = 4;
/// Rows that are copied at a time.
const PIECE: usize = 256;
/// A fit of at most this many entries × components uses all rows in every step.
const FEW: usize = 20_000_000;
/// The fit ends when the distance changes by less than this multiple of the tolerance in 20 steps.
const SETTLED: f64 = 1e3;
/// Rows of a mini-batch.
const BATCH: usize = 256;

/// f(W) = (1/n) Σ ‖(I − WWᵀ)(aᵢ − m)‖² over the rows aᵢ, subject to WᵀW = I.
///
/// The rows are borrowed: a piece of them is copied at a time.
#[derive(Debug)]
struct ArraySubspace<'a> {
    rows: &'a ArrayRows<'a>,
    mean: &'a [f64],
    components: usize,
    /// The root mean square of ‖aᵢ − m‖, the size of what a residual is a difference of.
    magnitude: f64,
    piece: Mat<f64>,
}

/// How to fit a subspace.
#[derive(Debug, Clone, Copy)]
pub struct SubspaceOptions {
    /// k.
    pub components: usize,
    /// The most epochs.
    pub epochs: u64,
    /// The relative tolerance of the gradient.
    pub tolerance: f64,
    /// The seed of the start and the mini-batches.
    pub seed: u64,
}

/// A fitted subspace.
#[derive(Debug, Clone)]
pub struct ArrayFrame {
    /// W, with orthonormal columns.
    pub frame: Mat<f64>,
    /// Epochs made.
    pub epochs: f64,
    /// Why it ended.
    pub end: TrainingEnd,
}

impl<'a> ArraySubspace<'a> {
    fn new(rows: &'a ArrayRows<'a>, mean: &'a [f64], components: usize) -> Result<Self, Error> {
        let mut f = Self { rows, mean, components, magnitude: 0.0, piece: Mat::zeros(mean.len(), 0) };
        let (n, of_mean) = (rows.rows(), mean.iter().map(|m| m * m).sum::<f64>());
        let (mut sum, mut largest) = (0.0, 0.0_f64);
        for i in 0..n {
            // Σ(aⱼ − mⱼ)² = Σ (aⱼ − mⱼ)² − mⱼ² over the stored entries + Σ mⱼ² over all.
            sum += of_mean;
            rows.for_each(i, |j, value| {
                sum += value * (value - 2.0 * mean[j]);
                largest = largest.max(value.abs());
            });
        }
        limits::size("subspace", "X", largest)?;
        f.magnitude = (sum.max(0.0) / n as f64).sqrt();
        Ok(f)
    }

    /// Copies rows to columns and subtracts the mean.
    fn fill(&mut self, indices: &[usize]) {
        if self.piece.ncols() < indices.len() {
            self.piece = Mat::zeros(self.mean.len(), indices.len());
        }
        for (c, &i) in indices.iter().enumerate() {
            let column = self.piece.col_as_slice_mut(c);
            column.iter_mut().zip(self.mean).for_each(|(a, m)| *a = -m);
            self.rows.for_each(i, |j, value| column[j] += value);
        }
    }

    /// With A = WᵀX and R = X − WA, f = ‖R‖²/n and ∇f = XM + WS, where M = −(2/n)Aᵀ(2I − WᵀW) and S = (2/n)AAᵀ.
    fn evaluate(&mut self, w: &Mat<f64>, sample: &Sample, mut gradient: Option<&mut Mat<f64>>) -> Evaluation {
        let (d, k) = (self.mean.len(), self.components);
        let scale = 2.0 / sample.len() as f64;
        let mut twice = Mat::<f64>::zeros(k, k);
        matmul(&mut twice, Accum::Replace, w.transpose(), w, -1.0, Par::Seq);
        (0..k).for_each(|j| twice[(j, j)] += 2.0);
        let mut spread = Mat::<f64>::zeros(k, k);
        if let Some(gradient) = gradient.as_deref_mut() {
            gradient.fill(0.0);
        }
        let mut sum = 0.0;
        for indices in sample.indices().chunks(PIECE) {
            self.fill(indices);
            let b = indices.len();
            let x = self.piece.subcols(0, b);
            let mut a = Mat::<f64>::zeros(k, b);
            matmul(&mut a, Accum::Replace, w.transpose(), x, 1.0, Par::Seq);
            // The residual itself: ‖X‖² − ‖A‖² would lose its digits where the fit is good.
            let mut residual = x.to_owned();
            matmul(&mut residual, Accum::Add, w, &a, -1.0, Par::Seq);
            sum += residual.squared_norm_l2();
            let Some(gradient) = gradient.as_deref_mut() else { continue };
            let mut m = Mat::<f64>::zeros(b, k);
            matmul(&mut m, Accum::Replace, a.transpose(), &twice, -scale, Par::Seq);
            matmul(gradient.as_mut(), Accum::Add, x, &m, 1.0, Par::Seq);
            matmul(&mut spread, Accum::Add, &a, a.transpose(), scale, Par::Seq);
        }
        if let Some(gradient) = gradient {
            matmul(gradient.as_mut(), Accum::Add, w, &spread, 1.0, Par::Seq);
        }
        debug_assert_eq!(w.nrows(), d);
        Evaluation::of_squares(sum / sample.len() as f64, f64::EPSILON, 2.0 * self.magnitude)
    }

    /// An orthonormal basis of k random sums of rows, which lean to the directions of large variance, turned further to
    /// them by some steps of orthogonal iteration.
    fn start(&mut self, seed: u64) -> Mat<f64> {
        let (n, k) = (self.rows.rows(), self.components);
        let step = n.div_ceil(START_ROWS);
        let chosen: Vec<usize> = (0..n).step_by(step).collect();
        let mut rng = generator(seed, SIGNS);
        let mut sums = Mat::<f64>::zeros(self.mean.len(), k);
        for indices in chosen.chunks(PIECE) {
            self.fill(indices);
            let signs = Mat::from_fn(indices.len(), k, |_, _| if rng.next_u64() >> 63 == 0 { 1.0 } else { -1.0 });
            let x = self.piece.subcols(0, indices.len());
            matmul(sums.as_mut(), Accum::Add, x, &signs, 1.0, Par::Seq);
        }
        let mut frame = orthonormal(sums.as_ref());
        for _ in 0..START_TURNS {
            sums.fill(0.0);
            for indices in chosen.chunks(PIECE) {
                self.fill(indices);
                let x = self.piece.subcols(0, indices.len());
                let coordinates = x.transpose() * &frame;
                matmul(sums.as_mut(), Accum::Add, x, &coordinates, 1.0, Par::Seq);
            }
            frame = orthonormal(sums.as_ref());
        }
        frame
    }
}

/// Q of the QR decomposition.
fn orthonormal(matrix: MatRef<'_, f64>) -> Mat<f64> {
    matrix.qr().compute_thin_Q()
}

impl Objective for ArraySubspace<'_> {
    type Point = Mat<f64>;
    fn terms(&self) -> usize {
        self.rows.rows()
    }
    fn value(&mut self, w: &Mat<f64>, sample: &Sample) -> Evaluation {
        self.evaluate(w, sample, None)
    }
    fn value_and_gradient(&mut self, w: &Mat<f64>, sample: &Sample, gradient: &mut Mat<f64>) -> Evaluation {
        self.evaluate(w, sample, Some(gradient))
    }
}

/// Fits a subspace through `mean` by `StrSqp` on the Stiefel manifold. Large data start on mini-batches.
pub fn fit_subspace(
    rows: &ArrayRows<'_>,
    mean: &[f64],
    options: SubspaceOptions,
    interrupted: &WatchStep<'_>,
) -> Result<ArrayFrame, Error> {
    let SubspaceOptions { components: k, epochs, tolerance, seed } = options;
    let mut f = ArraySubspace::new(rows, mean, k)?;
    let (n, start) = (rows.rows(), f.start(seed));
    if f.magnitude == 0.0 || k == mean.len() {
        // All rows are equal, or every frame spans the whole space.
        return Ok(ArrayFrame { frame: start, epochs: 0.0, end: TrainingEnd::Converged });
    }
    let few = rows.stored_per_row() * (n * k) as f64 <= FEW as f64;
    let batch = if few { n } else { BATCH.min(n) };
    let end = FullSumEnd { tolerance, settled: Some(SETTLED * tolerance) };
    let limits = &mut TrainingLimits {
        epochs: Some(epochs),
        seed,
        interrupted,
        any_stops: &|stop| stop,
        report: &mut |_, _| {},
    };
    let (d, stiefel) = (mean.len(), Box::new(Stiefel::new(mean.len(), k)?));
    let (Trained { weights, epochs, end, .. }, _) = solved(&mut f, stiefel, start, &[d, k], batch, end, limits)?;
    Ok(ArrayFrame { frame: orthonormal(MatRef::from_column_major_slice(&weights.flat, d, k)), epochs, end })
}

/// A subspace that is learned from rows as they come: the state of `Auto`.
///
/// The minimum of f over all W is that over orthonormal W, so it needs no constraint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubspaceStream(AutoState<Mat<f64>>);

impl SubspaceStream {
    /// An orthonormal basis.
    #[must_use]
    pub fn frame(&self) -> Mat<f64> {
        orthonormal(self.0.point().as_ref())
    }
}

/// Continues a stream with one pass over some rows; it starts at the frame `start`, or anew. `call` is the number of
/// earlier calls.
pub fn stream_subspace(
    rows: &ArrayRows<'_>,
    mean: &[f64],
    options: SubspaceOptions,
    stream: Option<SubspaceStream>,
    start: Option<Mat<f64>>,
    call: u64,
    interrupted: &WatchStep<'_>,
) -> Result<SubspaceStream, Error> {
    let mut f = ArraySubspace::new(rows, mean, options.components)?;
    let state = match stream {
        Some(SubspaceStream(state)) => Ok(state),
        None => Err(start.unwrap_or_else(|| f.start(options.seed))),
    };
    let pass = OnePass { most: 64, seed: options.seed.wrapping_add(call), interrupted };
    Ok(SubspaceStream(pass.over(&mut f, state)?))
}
