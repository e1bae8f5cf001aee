//! Stochastic trust-region optimization from mini-batches: no learning rate, hard equality constraints.
//!
//! A step is proposed inside a radius, judged by actual over predicted reduction **on the same
//! mini-batch**, and the verdict sets the next radius. [`Str`](methods::Str) is Algorithm 1 of
//! *Stochastic Trust-Region Methods for Over-parameterized Models*, [`StrP`](methods::StrP) is its
//! Algorithm 2 for problems with constraints c(x) = 0.
//!
//! The pieces, in the order data flows through them:
//!
//! | module | what |
//! |---|---|
//! | [`vector`] | the space x lives in: slices, faer columns and matrices, `f32` and `f64` |
//! | [`sample`] | a mini-batch as a value that can be replayed, and the samplers that draw it |
//! | [`objective`] | a finite sum seen through samples |
//! | [`constraints`] | c(x) = 0 by value and Jacobian products; Stiefel, sphere, affine |
//! | [`products`] | fast products of tall, narrow matrices |
//! | [`model`], [`radius`] | the quadratic model and the trust region, as pure functions |
//! | [`methods`] | one file a method: configuration, state, `init`, `step` |
//! | [`run`], [`stop`] | `minimize`, stopping rules, observers, the report |
//! | [`diagnostics`] | strong growth, curvature, KKT residuals, progress against the bounds; derivative checks |
//!
//! # Your own function, without a constraint
//!
//! ```
//! use strust::prelude::*;
//!
//! // f(x) = mean over i of (x₀ + tᵢx₁ − yᵢ)², the line through (0,1), (1,3), (2,5), (3,7).
//! let y = [1.0, 3.0, 5.0, 7.0];
//! let mut f = from_fn(y.len(), |x: &Vec<f64>, sample: &Sample, mut gradient: Option<&mut Vec<f64>>| {
//!     let mut sum = 0.0;
//!     for &i in sample.indices() {
//!         let (t, scale) = (i as f64, 1.0 / sample.len() as f64);
//!         let r = x[0] + t * x[1] - y[i];
//!         sum += scale * r * r;
//!         if let Some(g) = gradient.as_deref_mut() {
//!             g[0] += scale * 2.0 * r;
//!             g[1] += scale * 2.0 * r * t;
//!         }
//!     }
//!     sum
//! });
//! let mut sampler = Epochs::new(y.len(), 2, 0)?;
//! let report = minimize(&mut f, &mut Str::new(StrConfig::default())?, &mut sampler, vec![0.0, 0.0],
//!     &Stop::gradient_norm(1e-8).or(Stop::epochs(2000)))?;
//! assert!(report.reason.converged());
//! assert!((report.point()[0] - 1.0).abs() < 1e-6 && (report.point()[1] - 2.0).abs() < 1e-6);
//! # Ok::<(), strust::Error>(())
//! ```
//!
//! # With a constraint, over a matrix
//!
//! ```
//! use faer::Mat;
//! use strust::prelude::*;
//!
//! // The 3×2 orthonormal frame nearest to A: minimize ‖W − A‖² subject to WᵀW = I.
//! let a = Mat::from_fn(3, 2, |i, j| if i == j { 2.0 } else { 0.0 });
//! let mut f = from_fn(1, |w: &Mat<f64>, _: &Sample, gradient: Option<&mut Mat<f64>>| {
//!     let r = w - &a;
//!     if let Some(g) = gradient {
//!         *g = 2.0 * &r;
//!     }
//!     r.squared_norm_l2()
//! });
//! let mut method = StrP::new(StrPConfig { penalty: 1e4, ..Default::default() }, Stiefel::new(3, 2)?)?;
//! let start = Mat::from_fn(3, 2, |i, j| if i == j { 1.0 } else { 0.1 });
//! let report = minimize(&mut f, &mut method, &mut Epochs::new(1, 1, 0)?, start, &Stop::steps(20_000))?;
//! assert!(report.last.constraint_norm < 1e-3); // a fixed penalty μ leaves ‖c‖ = O(1/μ)
//! # Ok::<(), strust::Error>(())
//! ```

pub mod config;
pub mod constraints;
pub mod diagnostics;
mod error;
pub mod methods;
pub mod model;
pub mod objective;
pub mod products;
pub mod radius;
pub mod record;
pub mod run;
pub mod sample;
pub mod stop;
pub mod vector;

pub use error::Error;
pub use run::minimize;

/// Everything a program that minimizes something needs, in one `use`.
pub mod prelude {
    pub use crate::Error;
    pub use crate::config::Config;
    pub use crate::constraints::{Affine, Constraint, Manifold, Retraction, Sphere, Stiefel, constraint_from_fn};
    pub use crate::methods::{
        Adam, AdamConfig, AugLag, AugLagConfig, LineSearch, LineSearchConfig, Method, ProjectedSgd, ProjectedSgdConfig,
        Reset, Riemannian, RiemannianConfig, Sgd, SgdConfig, State, Str, StrConfig, StrP, StrPConfig,
    };
    pub use crate::objective::{Counted, Evaluations, Objective, Penalized, from_fn};
    pub use crate::record::{StepRecord, Verdict};
    pub use crate::run::{Report, Run, minimize};
    pub use crate::sample::{Epochs, Sample, Sampler, WithReplacement};
    pub use crate::stop::{Stop, StopReason};
    pub use crate::vector::Vector;
}
