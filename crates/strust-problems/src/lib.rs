//! Objectives with known answers, for [strust].
//!
//! | module | contents | f* |
//! |---|---|---|
//! | [`least_squares`] | linear least squares, interpolating or noisy, of any condition, `f32` and `f64` | 0, or computed |
//! | [`logistic`] | two classes, dense or sparse features or kernels | 0 if separable and λ = 0; computed on demand |
//! | [`softmax`] | many classes, dense or sparse features | computed on demand |
//! | [`mlp`] | multilayer perceptrons, `f32` and `f64` | unknown |
//! | [`regression`] | squares, Huber's loss or Poisson counts, linear or a network | unknown |
//! | [`autoencoder`] | auto-encoders, `f32` and `f64` | that of PCA for linear ones |
//! | [`factorization`] | X ≈ UVᵀ, with any over-parameterization | from the smallest singular values |
//! | [`subspace`] | the best-fitting subspace, with WᵀW = I | from the smallest eigenvalues |
//! | [`pca`] | principal components, with WᵀW = I | from the largest eigenvalues |
//! | [`generalized_eigenvalues`] | the same with WᵀBW = I | from generalized eigenvalues |
//! | [`procrustes`] | the best rotation or projection, with WᵀW = I | 0, from singular values, or computed |
//! | [`constrained_logistic`] | two classes, with ‖x‖ = 1 and Ax = b | computed |
//! | [`grouped`] | two classes, with bounds between groups of rows | computed without hidden units |
//! | [`mixture`] | the weights of a mixture, on the simplex | computed |
//! | [`nmf`] | X ≈ UVᵀ with U, V ≥ 0 | 0 for exact data |
//! | [`orthonormal_mlp`] | multilayer perceptrons with orthonormal hidden layers | unknown |
//! | [`convex`] | computes f* of convex problems | |
//! | [`constrained`] | small problems with equalities, inequalities and bounds; infeasible ones | known, with multipliers |
//! | [`unconstrained`] | small sums of squares without constraints, those of Moré, Garbow and Hillstrom | known |
//! | [`second_order`] | the problems on which second-order methods are compared with other programs | |
//!
//! Every problem is an [`Objective`] with a start and, if known, an optimum ([`Problem`]). So a test, a benchmark or an
//! experiment can be written once for all problems:
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
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
// An evaluation is compiled as one piece with the widest instructions of the machine, so all functions that it calls
// must be inlined.
#![allow(clippy::inline_always)]

use strust::{
    Error,
    constraints::{AnyConstraint, Retraction},
    expectation::AnyExpectation,
    objective::{Objective, PIECE, Scaled},
    ranks::{Group, Sharded},
    vector::Elementwise,
};
use strust_data::{classified, features, network, rows, simd_math};

mod any_constraint;
pub mod any_problem;
pub mod autoencoder;
mod columns;
pub mod constrained;
pub mod constrained_logistic;
#[cfg(test)]
mod contract;
pub mod convex;
pub mod factorization;
pub mod generalized_eigenvalues;
pub mod grouped;
pub mod least_squares;
pub mod logistic;
pub mod mixture;
pub mod mlp;
pub mod nmf;
mod numerics;
pub mod orthonormal_mlp;
pub mod pca;
pub mod procrustes;
pub mod regression;
pub mod second_order;
pub mod softmax;
mod split;
pub mod subspace;
pub mod unconstrained;

pub use any_problem::AnyProblem;
pub use autoencoder::Autoencoder;
pub use constrained::ConstrainedProblem;
pub use constrained_logistic::ConstrainedLogistic;
pub use convex::Convex;
pub use factorization::Factorization;
pub use generalized_eigenvalues::GeneralizedEigenvalues;
pub use grouped::Grouped;
pub use least_squares::LeastSquares;
pub use logistic::Logistic;
pub use mixture::Mixture;
pub use mlp::{Mlp, Split};
pub use nmf::Nmf;
pub use orthonormal_mlp::OrthonormalMlp;
pub use pca::Pca;
pub use procrustes::Procrustes;
pub use regression::Regression;
pub use softmax::Softmax;
// What the problems are made from.
pub use strust_data::{Activation, Classified, Csr, Features, Labeled, digits};
pub use subspace::SubspaceFit;
pub use unconstrained::UnconstrainedProblem;

/// An objective with a start and, if known, an optimum.
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
    /// A start that depends only on the seed.
    fn start(&self, seed: u64) -> Self::Point;
    /// f*, the minimum of the full sum, if it is known.
    fn optimum(&self) -> Option<f64>;
    /// The number that the loss was multiplied by; 1 by default. A value divided by it can be compared with values of
    /// other scales.
    fn scale(&self) -> f64 {
        1.0
    }
    /// Its constraint, made with a retraction where it has several; `None` without one.
    fn any_constraint(&self, _retraction: Retraction) -> Option<AnyConstraint<Self::Point>> {
        None
    }
    /// Its constraint as rows over the means of groups of terms, which mini-batches know up to noise; `None` without such
    /// rows.
    fn any_expectation(&self) -> Option<AnyExpectation<Self::Point>> {
        None
    }
    /// The metric of x on the test set: the share that a classifier x predicts correctly, otherwise the loss. `None`
    /// without a test set.
    fn test_metric(&mut self, _x: &Self::Point) -> Option<f64> {
        None
    }
    /// Terms per evaluation when the full sum is measured on one rank.
    fn piece(&self) -> usize {
        PIECE
    }
    /// The share of the training set that a classifier x predicts correctly; `None` for other problems.
    fn train_accuracy(&mut self, _x: &Self::Point) -> Option<f64> {
        None
    }
    /// The root mean square of every feature of the data, for a problem that multiplies them with unknowns. If they
    /// differ much, first-order steps are slow along the small ones. `None` for other problems.
    fn feature_scales(&self) -> Option<Vec<f64>> {
        None
    }
    /// Values that the problem keeps from step to step, such as the running statistics of batch-norm; none by default.
    /// A checkpoint must contain them.
    fn extra_state(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Restores the bytes from [`extra_state`](Self::extra_state).
    fn restore_extra_state(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        Err(Error::Saved(format!("the saved state has {} bytes, but this problem has no state", bytes.len())))
    }
    /// Computes what [`extra_state`](Self::extra_state) holds anew at x, from training terms. Needed for a point at
    /// which no gradient was taken, such as an average of iterates ([`State::is_averaged`]). By default there is
    /// nothing to compute.
    ///
    /// [`State::is_averaged`]: strust::methods::State::is_averaged
    fn recompute_extra_state(&mut self, _x: &Self::Point) {}
}

/// Implements [`Problem`] for a wrapper of one. `factor(wrapper)` multiplies the loss.
macro_rules! wrapped_problem {
    ([$($parameters:tt)*] $wrapper:ty, $factor:expr) => {
        #[deny(clippy::missing_trait_methods, reason = "a wrapper must not lose a part of the problem")]
        impl<P: Problem, $($parameters)*> Problem for $wrapper {
            fn start(&self, seed: u64) -> P::Point {
                self.inner().start(seed)
            }
            fn optimum(&self) -> Option<f64> {
                self.inner().optimum().map(|optimum| $factor(self) * optimum)
            }
            fn scale(&self) -> f64 {
                $factor(self) * self.inner().scale()
            }
            fn any_constraint(&self, retraction: Retraction) -> Option<AnyConstraint<P::Point>> {
                self.inner().any_constraint(retraction)
            }
            fn any_expectation(&self) -> Option<AnyExpectation<P::Point>> {
                self.inner().any_expectation()
            }
            fn test_metric(&mut self, x: &P::Point) -> Option<f64> {
                self.inner_mut().test_metric(x)
            }
            fn piece(&self) -> usize {
                self.inner().piece()
            }
            fn train_accuracy(&mut self, x: &P::Point) -> Option<f64> {
                self.inner_mut().train_accuracy(x)
            }
            fn feature_scales(&self) -> Option<Vec<f64>> {
                self.inner().feature_scales()
            }
            fn extra_state(&self) -> Vec<u8> {
                self.inner().extra_state()
            }
            fn restore_extra_state(&mut self, bytes: &[u8]) -> Result<(), Error> {
                self.inner_mut().restore_extra_state(bytes)
            }
            fn recompute_extra_state(&mut self, x: &P::Point) {
                self.inner_mut().recompute_extra_state(x);
            }
        }
    };
}
wrapped_problem!([] Scaled<P>, Scaled::scale);
// Every rank has its own extra state.
wrapped_problem!([G: Group] Sharded<P, G>, |_: &Self| 1.0);
