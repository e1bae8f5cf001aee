//! Checks a plan before anything is written, so that errors appear at once.

use super::{
    prepare::{Prepared, Purpose, prepare},
    workers::caught,
};
use crate::{
    Error,
    data::{
        experiment::Experiment,
        plan::{Job, Plan, ProblemSize},
    },
    io::data_file,
    registry::PointType,
};
use std::{collections::BTreeMap, path::Path};
use strust::prelude::*;
use strust_problems::Problem;

/// Constructs every problem of a plan once and starts a method on it. Returns the sizes of the problems with a data
/// file.
pub(crate) fn check(plan: &Plan) -> Result<BTreeMap<String, ProblemSize>, Error> {
    let (mut sizes, mut first) = (BTreeMap::new(), BTreeMap::new());
    for job in &plan.jobs {
        first.entry(job.problem.name.as_str()).or_insert(job);
    }
    for problem in &plan.experiment.problems {
        let Some(&job) = first.get(problem.name.as_str()) else { continue };
        let start = || prepare(job, &plan.experiment, Path::new(""), Start { seed: job.seed });
        let data = data_file::path(&problem.parameters);
        let size = caught(start).map_err(|error| match error {
            // These name the file.
            error @ (Error::Read(_) | Error::Saved { .. }) => error,
            error => {
                let of = data.as_ref().map(|data| format!("{}: ", data.display())).unwrap_or_default();
                Error::Problem { problem: problem.name.clone(), why: format!("{of}{error}") }
            }
        })?;
        if data.is_some() {
            sizes.insert(problem.name.clone(), size);
        }
    }
    Ok(sizes)
}

struct Start {
    seed: u64,
}

impl Purpose for Start {
    type Output = ProblemSize;

    fn with<P: PointType>(self, mut prepared: Prepared<P>) -> Result<ProblemSize, Error> {
        prepared.start(self.seed)?;
        let parameters = prepared.f.start(self.seed).dimension();
        Ok(ProblemSize { terms: prepared.f.terms(), parameters })
    }
}

/// The optimum of a job's problem, if it is known.
pub fn optimum(job: &Job, experiment: &Experiment) -> Result<Option<f64>, Error> {
    prepare(job, experiment, Path::new(""), FindOptimum)
}

struct FindOptimum;

impl Purpose for FindOptimum {
    type Output = Option<f64>;

    fn with<P: PointType>(self, prepared: Prepared<P>) -> Result<Option<f64>, Error> {
        Ok(prepared.f.optimum())
    }
}
