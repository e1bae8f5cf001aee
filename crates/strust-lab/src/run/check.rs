//! Checks a plan before anything is written, so that errors appear at once.

use super::{
    prepare::{Prepared, Purpose, prepare},
    workers::caught,
};
use crate::{Error, data::plan::Plan, io::data_file};
use std::path::Path;
use strust::prelude::*;
use strust_problems::Problem;

/// Constructs every problem of a plan once and starts a method on it.
pub(crate) fn check(plan: &Plan) -> Result<(), Error> {
    for problem in &plan.experiment.problems {
        let Some(job) = plan.jobs.iter().find(|job| job.problem.name == problem.name) else { continue };
        let start = || prepare(job, &plan.experiment, Path::new(""), Start { seed: job.seed });
        caught(start).map_err(|error| match error {
            Error::Read(error) => Error::Read(error),
            error => {
                let data = data_file::path(&problem.parameters);
                let of = data.map(|data| format!("{}: ", data.display())).unwrap_or_default();
                Error::Problem { problem: problem.name.clone(), why: format!("{of}{error}") }
            }
        })?;
    }
    Ok(())
}

struct Start {
    seed: u64,
}

impl Purpose for Start {
    type Output = ();

    fn with<F, C>(self, mut prepared: Prepared<F, C>) -> Result<(), Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        prepared.start(self.seed)
    }
}
