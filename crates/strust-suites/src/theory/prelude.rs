//! What the files of the claims begin with.

pub(super) use super::{
    check_list, each,
    problems::{LOSSES, Linear, Loss, normal, normals},
};
pub(super) use crate::prelude::*;
pub(super) use strust::{
    constraints::{Manifold, Sphere, Stiefel},
    diagnostics::{Interpolation, Iterations, bounds, probe},
    methods::StrNewtonConfig,
    objective::full_value_and_gradient,
    prelude::*,
    radius::{RegionConfig, Verdict},
    sample::Draws,
    samplers::Sampler,
};
pub(super) use strust_lab::Error;
pub(super) use strust_problems::{Factorization, LeastSquares, Problem};
