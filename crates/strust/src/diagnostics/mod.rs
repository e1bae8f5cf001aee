//! Diagnostics of a run, and checks of a user's derivatives.
//!
//! The paper's analysis uses quantities that an optimizer does not show. These instruments measure them, for any
//! problem and any run:
//!
//! | instrument | measures | cost |
//! |---|---|---|
//! | [`Curvature`] | curvature along every trial; L, a_min and M from it | none |
//! | [`Iterations`] | accepted and rejected steps, radius, and the bounds of the lemmas | none |
//! | [`Reached`] | oracle calls until each ε | none if the run measures anyway |
//! | [`SplitBatch`] | ρ without bias, with its interval; τ over a [`Penalized`](crate::objective::Penalized) | two half batches instead of one, two inner products |
//! | [`Consecutive`] | ρ, biased because x moves between two steps | an inner product and a copy every second step |
//! | [`strong_growth()`] | ρ exactly | one gradient per term |
//! | [`probe`] | whether interpolation holds near x | full gradients, and two of every term |
//! | [`lipschitz`] | the largest curvature of a sample at x | two gradients per iteration |
//! | [`kkt_report`] | KKT residuals, σ_min(J), LICQ, the feasibility bound | a full gradient and 2m products with J |
//!
//! [`Curvature`], [`Iterations`] and [`Reached`] are observers of a [`Run`](crate::run::Run). [`SplitBatch`] and
//! [`Consecutive`] wrap an objective. Their memory does not grow with the run; only [`History`] keeps every step.
//! [`bounds`] contains the constants and bounds of the lemmas as functions.

pub mod bounds;
mod constraints;
mod curvature;
mod derivatives;
mod gradient_pairs;
mod history;
mod interpolation;
mod iterations;
mod pair_sampling;
mod probe;
mod strong_growth;

pub use constraints::{Jacobian, KktReport, jacobian, kkt_report};
pub use curvature::{Curvature, lipschitz};
pub use derivatives::{gradient_slope, jacobian_slope};
pub use gradient_pairs::{Interval, Pair, Pairs};
pub use history::History;
pub use interpolation::{Evidence, Interpolation};
pub use iterations::{Iterations, Reached};
pub use pair_sampling::{Consecutive, SplitBatch};
pub use probe::{Probe, probe};
pub use strong_growth::{StrongGrowth, strong_growth, strong_growth_of_lagrangian};
