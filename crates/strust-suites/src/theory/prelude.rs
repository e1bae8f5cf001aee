//! What the files of the claims begin with.

pub(super) use super::{
    check_list, each,
    problems::{LOSSES, Linear, Loss, dots, normal, normals},
};
pub(super) use strust::{
    diagnostics::{Interpolation, Iterations, bounds, probe},
    objective::full_value_and_gradient,
    prelude::*,
    sample::Draws,
};
pub(super) use strust_lab::{
    Error,
    data::section::{Check, Section, Shown, Table},
    figure::{Figure, Point, Series},
    format::{NOTHING, brief, plural},
    statistics::{largest, least, power, upper_median},
    suite::Tick,
};
pub(super) use strust_problems::{Factorization, LeastSquares, Problem};
