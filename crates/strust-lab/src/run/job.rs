//! One job: it makes steps, writes records, measures at the end of each epoch and saves checkpoints.

use super::{
    Options,
    measure::Measure,
    prepare::{Prepared, Purpose, prepare},
    workers::{Halt, Pace, caught},
};
use crate::{
    Error,
    data::{
        experiment::{Experiment, Records},
        plan::{Job, Plan},
        record::{EpochRecord, Line, Timing},
        summary::Failure,
        totals::Totals,
    },
    device,
    io::{
        atomic,
        checkpoint::Head,
        jsonl::Logs,
        results::{checkpoint_file, job_folder, load_failure, save_failure},
    },
    stepper::Stepper,
};
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use strust::prelude::*;
use strust_problems::Problem;

/// Runs a job of a plan to its end, from its last checkpoint if it has one. A method that fails is a result and
/// is saved; every other failure is an error.
pub(super) fn run(folder: &Path, plan: &Plan, job: &Job, halt: Halt, options: &Options) -> Result<(), Error> {
    let folder = job_folder(folder, job);
    let mut pace = Pace::new(options.progress.job(&job.name));
    // In a grid search some settings are expected to diverge, so their errors are not shown.
    let shown = |failure: &Failure| (!job.tuning).then(|| failure.error.clone());
    let id = job.checksum(&plan.experiment);
    if let Some(failure) = load_failure(&folder, id)? {
        pace.end(shown(&failure).as_deref());
        return Ok(());
    }
    let run = RunJob {
        job,
        experiment: &plan.experiment,
        id,
        folder: &folder,
        halt,
        save_every: options.save_every,
        pace: &mut pace,
    };
    let outcome = match plan.is_done(job, &folder) {
        Ok(true) => {
            run.pace.now(1, 1);
            Ok(())
        }
        Ok(false) => caught(|| prepare(job, &plan.experiment, &folder, run)),
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => pace.end(None),
        Err(Error::Method(error)) if error.kind() != ErrorKind::Setup => {
            let failure = Failure { seed: job.seed, error: error.to_string() };
            save_failure(&folder, id, &failure)?;
            pace.end(shown(&failure).as_deref());
        }
        Err(error) => {
            pace.stop();
            return Err(error);
        }
    }
    Ok(())
}

struct RunJob<'a, 'p> {
    job: &'a Job,
    experiment: &'a Experiment,
    id: u64,
    folder: &'a Path,
    halt: Halt<'a>,
    save_every: Duration,
    pace: &'a mut Pace<'p>,
}

impl Purpose for RunJob<'_, '_> {
    type Output = ();

    fn with<F, C>(self, mut prepared: Prepared<F, C>) -> Result<(), Error>
    where
        F: Problem + 'static,
        C: Manifold<Point = F::Point> + 'static,
    {
        let mut measure = Measure::new(&self.job.problem, &mut prepared);
        atomic::make_folder(self.folder)?;
        let saved = prepared.resume(self.folder, self.id)?;
        let (totals, logs) = if let Some(saved) = &saved {
            (saved.head.totals, Logs::open(self.folder, saved.head.records, saved.head.timings)?)
        } else {
            prepared.start(self.job.seed)?;
            (Totals::default(), Logs::open(self.folder, 0, 0)?)
        };
        for warning in device::take_warnings() {
            self.pace.warn(&warning);
        }
        let Prepared { f, stepper, sampler, .. } = prepared;
        let mut journal = Journal { f, stepper, totals, logs, id: self.id, path: checkpoint_file(self.folder) };
        let epoch_steps = sampler.steps_per_epoch();
        if saved.is_none() {
            journal.write_epoch(epoch_steps, &mut measure)?;
        }
        self.run_steps(journal, sampler, &mut measure)
    }
}

impl RunJob<'_, '_> {
    /// Makes all remaining steps.
    fn run_steps<F, C>(
        self,
        mut journal: Journal<F>,
        mut sampler: Box<dyn Sampler>,
        measure: &mut Measure<F, C>,
    ) -> Result<(), Error>
    where
        F: Problem,
        C: Manifold<Point = F::Point>,
    {
        let Self { job, experiment, halt, save_every, pace, .. } = self;
        let epoch_steps = sampler.steps_per_epoch();
        let last_step = job.epochs * epoch_steps;
        let mut k = journal.stepper.current(&mut journal.f).steps;
        let mut records = Vec::new();
        let mut saved_at = Instant::now();
        loop {
            let (done, stop) = (k >= last_step, halt.requested());
            if done || stop || saved_at.elapsed() > save_every {
                journal.save(done)?;
                saved_at = Instant::now();
            }
            if done {
                pace.now(k, last_step);
                return Ok(());
            }
            pace.at(k, last_step);
            if stop {
                return Err(Error::Interrupted);
            }

            let began = Instant::now();
            let mut proceed = |made: u64| {
                pace.at(k + made, last_step);
                !halt.requested() && saved_at.elapsed() <= save_every
            };
            let most = epoch_steps - k % epoch_steps;
            let outcome = journal.stepper.advance(&mut journal.f, &mut *sampler, most, &mut proceed, &mut records);
            journal.totals.seconds += began.elapsed().as_secs_f64();
            for record in records.drain(..) {
                k += 1;
                journal.write_step(record, experiment.records)?;
            }
            if outcome.is_err() || k.is_multiple_of(epoch_steps) {
                // Failed captures and missing kernels become known only during the first steps.
                for warning in device::take_warnings() {
                    pace.warn(&warning);
                }
            }
            outcome?;
            if k.is_multiple_of(epoch_steps) {
                journal.write_epoch(epoch_steps, measure)?;
            }
        }
    }
}

/// A running job and its output files.
struct Journal<F: Objective> {
    f: F,
    stepper: Box<dyn Stepper<F>>,
    totals: Totals,
    logs: Logs,
    /// The checksum of the job.
    id: u64,
    /// The checkpoint file.
    path: PathBuf,
}

impl<F: Problem> Journal<F> {
    fn write_step(&mut self, record: StepRecord, records: Records) -> Result<(), Error> {
        self.totals.evaluations += record.evaluations;
        self.totals.accepted += u64::from(record.verdict == Verdict::Accepted);
        self.totals.epoch.add(&record);
        if records == Records::Steps { self.logs.record(&Line::Step(record)) } else { Ok(()) }
    }

    fn write_epoch<C>(&mut self, epoch_steps: u64, measure: &mut Measure<F, C>) -> Result<(), Error>
    where
        C: Constraint<Point = F::Point>,
    {
        let position = self.stepper.current(&mut self.f);
        let steps = position.steps;
        let epoch = steps / epoch_steps;
        let metrics = measure.at(&mut self.f, &position, self.totals.evaluations)?;
        if let Some(bad) = metrics.values().find(|v| !v.is_finite()) {
            return Err(Error::Method(strust::Error::NonFiniteValue { step: steps, value: *bad }));
        }
        self.logs.record(&Line::Epoch(EpochRecord {
            epoch,
            steps,
            accepted: self.totals.accepted,
            evaluations: self.totals.evaluations,
            trust_region: std::mem::take(&mut self.totals.epoch).numbers(),
            metrics,
        }))?;
        self.logs.timing(&Timing { epoch, seconds: self.totals.seconds })
    }

    /// Syncs the logs, then writes the checkpoint: a checkpoint never refers to lines that are not on the disk.
    fn save(&mut self, done: bool) -> Result<(), Error> {
        let (records, timings) = self.logs.sync()?;
        let (version, extra_state) = (env!("CARGO_PKG_VERSION").into(), self.f.extra_state());
        let head = Head { version, job: self.id, records, timings, totals: self.totals, done, extra_state };
        self.stepper.save(&mut self.f, &head, &self.path)
    }
}
