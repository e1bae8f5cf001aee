//! Constructs a job: its problem, its method and its mini-batches. Running, checking and diagnosing a job all start here.

use crate::{
    Error,
    data::{
        experiment::{Experiment, Sampling},
        plan::Job,
    },
    io::{checkpoint::Checkpoint, data_file::DataReading, results::checkpoint_file},
    registry::{AnyStepper, PointType, SaveModel, Setup, SharedProblem, Visitor, methods, problems},
    team::Sharing,
};
use std::{any::Any, path::Path};
use strust::{prelude::*, samplers::Sampler};
use strust_problems::Problem;

/// A job that can start or resume.
pub(crate) struct Prepared<P: PointType> {
    pub f: SharedProblem<P>,
    pub save: Option<SaveModel<P>>,
    pub stepper: AnyStepper<P>,
    pub sampler: Box<dyn Sampler>,
    /// What must live as long as the problem. It is dropped last.
    pub held: Option<Box<dyn Any>>,
}

/// What to do with a prepared job, for any type of problem.
pub(crate) trait Purpose {
    type Output;
    fn with<P: PointType>(self, prepared: Prepared<P>) -> Result<Self::Output, Error>;
}

/// Constructs a job and passes it to `purpose`. `folder` is the job's folder, for messages.
pub(crate) fn prepare<P: Purpose>(
    job: &Job,
    experiment: &Experiment,
    folder: &Path,
    purpose: P,
) -> Result<P::Output, Error> {
    prepare_shared(job, experiment, folder, Sharing::alone(experiment.block), purpose)
}

/// The same for a job whose samples are shared out.
pub(crate) fn prepare_shared<P: Purpose>(
    job: &Job,
    experiment: &Experiment,
    folder: &Path,
    sharing: Sharing,
    purpose: P,
) -> Result<P::Output, Error> {
    let reading = DataReading::begin(&job.problem)?;
    let visitor = Constructed { job, experiment, reading, purpose };
    problems::setup(&job.problem, job.seed, sharing).and_then(|setup| setup.visit(visitor)).map_err(|error| match error
    {
        // The settings of a plan were checked. If they do not fit, the plan was edited or is of another version.
        Error::Misfit(why) => Error::saved(folder, format!("the plan does not fit this program: {why}")),
        error => error,
    })
}

struct Constructed<'a, Q> {
    job: &'a Job,
    experiment: &'a Experiment,
    reading: DataReading,
    purpose: Q,
}

impl<Q: Purpose> Visitor for Constructed<'_, Q> {
    type Output = Q::Output;

    fn visit<P: PointType>(self, setup: Setup<P>) -> Result<Q::Output, Error> {
        self.reading.end()?;
        let sampler = sampler(self.experiment, setup.f.terms(), self.job.seed)?;
        let steps = self.job.epochs * sampler.steps_per_epoch();
        let stepper = methods::stepper(&self.job.method, &setup, self.experiment.batch as usize, steps)?;
        let Setup { f, save, held, .. } = setup;
        self.purpose.with(Prepared { f, save, stepper, sampler, held })
    }
}

fn sampler(experiment: &Experiment, terms: usize, seed: u64) -> Result<Box<dyn Sampler>, Error> {
    let batch = experiment.batch as usize;
    if experiment.sampling == Sampling::Epochs && batch > terms {
        let allowed = format!("at most {terms}, the number of terms: set `batch` in the experiment");
        let (owner, field, value) = ("mini-batches", "batch", batch.to_string());
        return Err(strust::Error::OutOfRange { owner, field, value, allowed }.into());
    }
    Ok(match experiment.sampling {
        Sampling::Epochs => Box::new(Epochs::new(terms, batch, seed)?),
        Sampling::Replacement => Box::new(WithReplacement::new(terms, batch, seed)?),
    })
}

impl<P: PointType> Prepared<P> {
    /// Starts at the starting point of the seed.
    pub fn start(&mut self, seed: u64) -> Result<(), Error> {
        let start = self.f.start(seed);
        self.stepper.start(&mut self.f, start)
    }

    /// Resumes from the last checkpoint in the job's folder and returns it. Without a checkpoint it does nothing and returns
    /// `None`.
    pub fn resume(&mut self, folder: &Path, id: u64) -> Result<Option<Checkpoint>, Error> {
        let saved = Checkpoint::load(&checkpoint_file(folder), id)?;
        saved.map(|saved| self.resume_from(saved)).transpose()
    }

    /// Resumes from a checkpoint and returns it.
    pub fn resume_from(&mut self, saved: Checkpoint) -> Result<Checkpoint, Error> {
        self.f.restore_extra_state(&saved.extra_state).map_err(|e| saved.refuse(e))?;
        self.stepper.resume(&mut self.f, &saved)?;
        Ok(saved)
    }
}
