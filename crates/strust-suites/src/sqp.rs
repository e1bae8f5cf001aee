//! STR-SQP on objectives and constraints of any type: it is compiled once for each type of point, not for each problem.

use strust::{methods::StrSqpState, prelude::*, vector::Elementwise};

/// Runs STR-SQP from a point. Without a sampler, every step uses all terms.
pub(crate) fn str_sqp<V: Elementwise, R: Vector>(
    mut f: &mut dyn Objective<Point = V>,
    constraint: &mut dyn Constraint<Point = V, Residual = R>,
    config: StrSqpConfig,
    sampler: Option<WithReplacement>,
    steps: u64,
    start: V,
) -> Result<Report<StrSqpState<V>>, Error> {
    let run = minimize(&mut f).method(StrSqp::new(config, constraint)?).stop(Stop::steps(steps));
    match sampler {
        Some(sampler) => run.sampler(sampler).start(start),
        None => run.full_batch().start(start),
    }
}
