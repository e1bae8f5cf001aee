//! Objectives with known answers, and readers for data files, for [strust].
//!
//! | module | what | f* |
//! |---|---|---|
//! | [`least_squares`] | linear least squares, interpolating or noisy, `f32` and `f64` | 0, or by a solve |
//! | [`logistic`] | two classes, dense or sparse features | 0 where the classes are separable and λ = 0 |
//! | [`softmax`] | many classes, dense or sparse features | not known |
//! | [`mlp`] | multilayer perceptrons, `f32` and `f64` | not known |
//! | [`factorization`] | X ≈ UVᵀ, over-parameterized at will | the tail of the singular values |
//! | [`subspace`] | the best-fitting subspace, under WᵀW = I | the tail of the eigenvalues |
//! | [`digits`] | 1797 handwritten digits, in the crate | |
//! | [`images`] | CIFAR-10, MNIST and Fashion-MNIST from their files | |
//! | [`read`] | NPY, idx, CSV and LIBSVM files, plain or compressed | |
//!
//! Every problem is an [`Objective`] that carries its start and, where it is known, its optimum ([`Problem`]),
//! so that a test, a benchmark or an experiment is written once for all of them:
//!
//! ```
//! use strust::{objective::full_value, prelude::*};
//! use strust_problems::{LeastSquares, Problem};
//!
//! fn gap<P: Problem>(problem: &mut P) -> Result<f64, Error> {
//!     let mut sampler = Epochs::new(problem.terms(), 10, 0)?;
//!     let mut method = Str::new(StrConfig::default())?;
//!     let start = problem.start(0);
//!     let report = minimize(problem).method(&mut method).sampler(&mut sampler).stop(Stop::epochs(300)).start(start)?;
//!     Ok(full_value(problem, report.point()) - problem.optimum().unwrap_or(0.0))
//! }
//! assert!(gap(&mut LeastSquares::<f64>::interpolating(100, 10, 0)?)? < 1e-6);
//! # Ok::<(), Error>(())
//! ```

// An evaluation is compiled as one piece for the widest instructions the machine has, so all it calls must be inlined.
#![allow(clippy::inline_always)]

use strust::{Error, objective::Objective, vector::Elementwise};

pub mod classified;
pub mod digits;
pub mod factorization;
pub mod features;
pub mod images;
pub mod least_squares;
pub mod logistic;
pub mod mlp;
mod numerics;
pub mod read;
mod simd_math;
pub mod softmax;
pub mod subspace;

pub use classified::Classified;
pub use factorization::Factorization;
pub use features::{Csr, Features, Labeled};
pub use least_squares::LeastSquares;
pub use logistic::Logistic;
pub use mlp::{Activation, Mlp, Split};
pub use read::{ReadError, read_labeled, read_matrix};
pub use softmax::Softmax;
pub use subspace::SubspaceFit;

/// An objective that brings its own start and, where it is known, its optimum.
///
/// ```
/// use strust_problems::{LeastSquares, Problem};
/// let problem = LeastSquares::<f64>::interpolating(50, 5, 0)?;
/// assert_eq!(problem.start(3), problem.start(3));
/// assert_ne!(problem.start(3), problem.start(4));
/// assert_eq!(problem.optimum(), Some(0.0));
/// # Ok::<(), strust::Error>(())
/// ```
pub trait Problem: Objective<Point: Elementwise> {
    /// A start that depends on the seed only.
    fn start(&self, seed: u64) -> Self::Point;
    /// f* where it is known: the minimum of the full sum.
    fn optimum(&self) -> Option<f64>;
    /// What the problem itself keeps from step to step, as batch-norm keeps running statistics; nothing by default. A
    /// run that is to go on later takes it along.
    fn extra_state(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Gives back what [`extra_state`](Self::extra_state) gave.
    fn restore_extra_state(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        Err(Error::Saved(format!("{} bytes are saved for a problem that keeps nothing", bytes.len())))
    }
}

/// A problem whose point is a classifier, to be judged on data it was not trained on.
///
/// ```
/// use strust_problems::{Activation, Classifier, Mlp, Problem, digits};
/// let (train, test) = digits::load()?;
/// let mut f = Mlp::<f32>::new(&train, Some(&test), &[16], Activation::Relu)?;
/// assert_eq!(f.parameters(), (64 + 1) * 16 + (16 + 1) * 10);
/// let accuracy = f.test_accuracy(&f.start(0)).unwrap_or_default();
/// assert!(accuracy < 0.5); // nothing is learned yet
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Classifier: Problem {
    /// The share of the test set that x puts into the right class; `None` without a test set.
    fn test_accuracy(&mut self, x: &Self::Point) -> Option<f64>;
    /// How many numbers a point holds.
    fn parameters(&self) -> usize;
}
