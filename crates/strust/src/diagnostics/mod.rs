//! What a run can tell of itself, and checks of a user's derivatives.
//!
//! The paper's analysis speaks of quantities that an optimizer does not show. Here they are, as instruments for any
//! problem and any run:
//!
//! | instrument | what it measures | what it costs |
//! |---|---|---|
//! | [`Curvature`] | curvature along every trial; L, a_min and M from it | nothing: a few numbers of each record |
//! | [`Iterations`] | successes, rejections, radius, against the lemmas | nothing |
//! | [`Reached`] | oracle calls until each ε | nothing where the run measures anyway |
//! | [`SplitBatch`] | ρ without bias, with its interval; τ over a [`Penalized`](crate::objective::Penalized) | two half batches instead of one, two inner products |
//! | [`Consecutive`] | ρ, biased by the way between two steps | an inner product and a copy every second step |
//! | [`strong_growth()`] | ρ exactly | a gradient a term |
//! | [`probe`] | whether interpolation holds near x | full gradients, and two of every term |
//! | [`lipschitz`] | the largest curvature of a sample at x | two gradients an iteration |
//! | [`kkt_report`] | KKT residuals, σ_min(J), LICQ, the feasibility bound | a full gradient and 2m products with J |
//!
//! [`Curvature`], [`Iterations`] and [`Reached`] are observers of a [`Run`](crate::run::Run); [`SplitBatch`] and
//! [`Consecutive`] wrap an objective. All of them keep a fixed number of numbers, whatever the length of the run;
//! [`History`] alone keeps every step. The constants and bounds of the lemmas are functions in [`bounds`].

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
