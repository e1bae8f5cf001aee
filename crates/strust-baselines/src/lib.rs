//! The methods that strust is compared with, one file each: configuration, state, `init`, `step`.
//!
//! | method | source | problem |
//! |---|---|---|
//! | [`Sgd`], [`Adam`], [`LineSearch`] | baselines of section 5.1 of the paper | min f(x) |
//! | [`Prodigy`], [`DoG`], [`ScheduleFreeSgd`], [`ScheduleFreeAdamW`], [`ScheduleFreePlus`], [`Ponos`] | baselines that need little or no tuning | min f(x) |
//! | [`ProjectedSgd`], [`Riemannian`] | baselines of section 5.2 | min f(x) on a manifold |
//! | [`AugLag`] | baseline of section 5.2 | min f(x), c(x) = 0 |
//! | [`Landing`] | baseline without retractions | min f(x), c(x) = 0 |
//!
//! [`by_name`] has these and the methods of strust by the names of experiment files.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod adam;
mod augmented_lagrangian;
pub mod by_name;
mod dog;
mod landing;
mod line_search;
mod ponos;
mod prelude;
mod prodigy;
mod projected_sgd;
mod riemannian;
mod schedule_free_adamw;
mod schedule_free_plus;
mod schedule_free_sgd;
mod sgd;

pub use adam::{Adam, AdamConfig, AdamState};
pub use augmented_lagrangian::{AugLag, AugLagConfig, AugLagState};
pub use dog::{DoG, DoGConfig, DoGState};
pub use landing::{Landing, LandingConfig};
pub use line_search::{LineSearch, LineSearchConfig, LineSearchState, Reset};
pub use ponos::{Ponos, PonosConfig, PonosState};
pub use prelude::{Baseline, BaselineOnManifold, HasRate};
pub use prodigy::{Prodigy, ProdigyConfig, ProdigyState};
pub use projected_sgd::{ProjectedSgd, ProjectedSgdConfig};
pub use riemannian::{Riemannian, RiemannianConfig};
pub use schedule_free_adamw::{ScheduleFreeAdamW, ScheduleFreeAdamWConfig, ScheduleFreeAdamWState};
pub use schedule_free_plus::{ScheduleFreePlus, ScheduleFreePlusConfig, ScheduleFreePlusState};
pub use schedule_free_sgd::{AverageWeights, ScheduleFreeSgd, ScheduleFreeSgdConfig, ScheduleFreeSgdState};
pub use sgd::{Sgd, SgdConfig, SgdState};
