//! Stochastic trust-region optimization from mini-batches: no learning rate, hard constraints.
//!
//! A method proposes a step inside a radius. It judges the step by the ratio of actual to predicted reduction **on the
//! same mini-batch**. This ratio sets the next radius. [`Str`](methods::Str) is Algorithm 1 of *Stochastic Trust-Region
//! Methods for Over-parameterized Models*. [`StrP`](methods::StrP) is its Algorithm 2, for constraints c(x) = 0.
//!
//! The parts, in the order data flows through them:
//!
//! | module | contents |
//! |---|---|
//! | [`schedule`] | how a step size changes during a run |
//! | [`vector`] | types of x: `Vec`, faer columns and matrices, in `f32` and `f64` |
//! | [`mod@saved`] | states as data, for files and other programs |
//! | [`sample`] | a mini-batch as a value that can be replayed |
//! | [`constraints`] | c(x) = 0 by value and Jacobian products; Stiefel, sphere, affine, closures |
//! | [`objective`] | a finite sum evaluated on samples; objectives from closures |
//! | [`expectation`] | constraints that are expectations: rows over the means of groups of terms |
//! | [`ranks`] | one run on several threads or machines: shares of a sample, and sums over all of them |
//! | [`samplers`] | draw the mini-batches |
//! | [`models`] | propose a step, predict its reduction and learn from the trial |
//! | [`radius`] | the trust region: verdict and next radius, as pure functions |
//! | [`kkt`] | measurements of a point on the full sum; multipliers |
//! | [`methods`] | one file per method: configuration, state, `init`, `step` |
//! | [`run`], [`stop`] | `minimize`, stopping rules, observers, the report |
//! | [`diagnostics`] | strong growth, curvature, LICQ, progress against the bounds; derivative checks |
//!
//! # Your own function, without a constraint
//!
//! ```
//! use strust::prelude::*;
//!
//! // f(x) = mean over i of (x₀ + ix₁ − yᵢ)², the line through (0,1), (1,3), (2,5), (3,7).
//! let y = [1.0, 3.0, 5.0, 7.0];
//! let mut f = from_terms(4, |i, x: &Vec<f64>, g| {
//!     let r = x[0] + x[1] * i as f64 - y[i];
//!     g[0] += 2.0 * r;
//!     g[1] += 2.0 * r * i as f64;
//!     r * r
//! });
//! let report = minimize(&mut f)
//!     .batch(2)
//!     .stop(Stop::gradient_norm(1e-8).or(Stop::epochs(2000)))
//!     .start(vec![0.0, 0.0])?;
//! assert!(report.reason.converged());
//! assert!((report.point()[0] - 1.0).abs() < 1e-6 && (report.point()[1] - 2.0).abs() < 1e-6);
//! # Ok::<(), strust::Error>(())
//! ```
//!
//! # With a constraint, over a matrix
//!
//! ```
//! use faer::Mat;
//! use strust::{constraints::Stiefel, prelude::*};
//!
//! // The 3×2 orthonormal frame nearest to A: minimize ‖W − A‖² subject to WᵀW = I.
//! let a = Mat::from_fn(3, 2, |i, j| if i == j { 2.0 } else { 0.0 });
//! let mut f = from_terms(1, |_, w: &Mat<f64>, g| {
//!     let r = w - &a;
//!     *g += 2.0 * &r;
//!     r.squared_norm_l2()
//! });
//! let method = StrP::new(StrPConfig { penalty: 1e4, ..Default::default() }, Stiefel::new(3, 2)?)?;
//! let start = Mat::from_fn(3, 2, |i, j| if i == j { 1.0 } else { 0.1 });
//! let report = minimize(&mut f).method(method).stop(Stop::steps(20_000)).start(start)?;
//! assert!(report.last.constraint_norm < 1e-3); // a fixed penalty μ leaves ‖c‖ = O(1/μ)
//! # Ok::<(), strust::Error>(())
//! ```

pub mod config;
pub mod constraints;
pub mod diagnostics;
mod error;
pub mod expectation;
pub mod kkt;
pub mod methods;
pub mod models;
pub mod objective;
#[doc(hidden)]
pub mod products;
pub mod radius;
#[cfg(feature = "ranks")]
pub mod ranks;
pub mod record;
pub mod run;
pub mod sample;
pub mod samplers;
pub mod saved;
pub mod schedule;
pub mod statistics;
pub mod stop;
pub mod vector;

pub use error::{Error, ErrorKind};
pub use run::minimize;

/// The names that most programs need. Everything else is imported from its module.
pub mod prelude {
    pub use crate::Error;
    pub use crate::constraints::{Bounds, Constraint, at_most, both, constraint_from_fn};
    pub use crate::methods::{Auto, AutoConfig, Method, State, Str, StrConfig, StrP, StrPConfig, StrSqp, StrSqpConfig};
    pub use crate::objective::{Objective, from_fn, from_residuals, from_terms};
    pub use crate::record::StepRecord;
    pub use crate::run::{Report, minimize};
    pub use crate::sample::Sample;
    pub use crate::samplers::{Epochs, FullBatch, WithReplacement};
    pub use crate::stop::{Stop, StopReason};
    pub use crate::vector::Vector;
}

/// The examples of both READMEs and of the guide, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/start/rust.md")]
#[doc = include_str!("../../../docs/guides/objective.md")]
#[doc = include_str!("../../../docs/guides/run.md")]
#[doc = include_str!("../../../docs/guides/constraints.md")]
#[doc = include_str!("../../../docs/guides/expectation.md")]
#[doc = include_str!("../../../docs/guides/second-order.md")]
#[doc = include_str!("../../../docs/guides/cluster.md")]
#[doc = include_str!("../../../docs/how/auto.md")]
struct Pages;
