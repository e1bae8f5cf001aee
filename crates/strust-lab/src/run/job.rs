//! One job: it makes steps, writes records, measures at the end of each epoch and saves checkpoints.

use super::{
    measure::Measure,
    orders::Order,
    prepare::{Prepared, Purpose, prepare_shared},
    progress::{JobEvent, RunProgress, Silent},
    workers::{Halt, Pace, caught},
};
use crate::{
    Error,
    data::{
        experiment::{Experiment, Records},
        plan::{Job, Plan},
        record::{ALL_EPOCHS, EpochRecord, Line, Timing, is_recorded},
        summary::Failure,
        totals::{EpochTotals, Totals},
    },
    io::{
        atomic,
        checkpoint::Checkpoint,
        data_file,
        jsonl::Logs,
        results::{checkpoint_file, job_folder, job_folder_to_write, load_failure, save_failure},
    },
    registry::PointType,
    stepper::Stepper,
    team::{Sharing, Team},
};
use std::{
    cell::Cell,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use strust::{
    ErrorKind,
    objective::{Consensus, Peers},
    prelude::*,
    radius::Verdict,
    samplers::Sampler,
};
use strust_problems::Problem;

/// Who watches a job, and how often it is saved.
#[derive(Clone, Copy)]
pub(crate) struct JobWatch<'a> {
    pub progress: &'a dyn RunProgress,
    pub save_every: Duration,
}

/// All ranks run the item of a pool together.
#[derive(Clone, Copy)]
pub(crate) struct Together<'a> {
    pub team: &'a Team,
    pub item: usize,
}

/// Runs a job of a plan to its end, from its last checkpoint if it has one. A method that fails is a result and
/// is saved; every other failure is an error.
pub(crate) fn run(
    folder: &Path,
    plan: &Plan,
    job: &Job,
    together: Option<Together>,
    halt: Halt,
    watch: JobWatch,
) -> Result<(), Error> {
    let (results, folder) = (folder, job_folder(folder, job));
    let mut pace = Pace::new(watch.progress, &job.name);
    // In a grid search some settings are expected to diverge, so their errors are not shown.
    let shown = |failure: &Failure| (!job.tuning).then(|| failure.error.clone());
    let id = job.checksum(&plan.experiment);
    if let Some(failure) = load_failure(&folder, id)? {
        pace.show(&JobEvent::End(shown(&failure)));
        return Ok(());
    }
    let done = plan.is_done(job, &folder).and_then(|done| {
        // Only an unfinished job writes.
        if done { Ok(true) } else { job_folder_to_write(results, job).map(|_| false) }
    });
    let outcome = match (done, together) {
        (Ok(true), _) => {
            pace.now(1, 1);
            Ok(())
        }
        (Ok(false), None) => run_on(&Team::alone(), plan, job, &folder, halt, watch, &mut pace),
        (Ok(false), Some(Together { team, item })) => {
            let begun = team.round(Order::Together(item));
            begun.and_then(|_| run_on(team, plan, job, &folder, halt, watch, &mut pace))
        }
        (Err(error), _) => Err(error),
    };
    match outcome {
        Ok(()) => pace.show(&JobEvent::End(None)),
        Err(Error::Method(error)) if !matches!(error.kind(), ErrorKind::Setup | ErrorKind::Ranks) => {
            let failure = Failure { seed: job.seed, error: error.to_string() };
            save_failure(&folder, id, &failure)?;
            pace.show(&JobEvent::End(shown(&failure)));
        }
        Err(error) => {
            pace.show(&JobEvent::Stop);
            return Err(error);
        }
    }
    Ok(())
}

/// Runs a job together with rank 0, which alone writes. `folder` is the job's folder, for messages.
pub(crate) fn join(team: &Team, plan: &Plan, job: &Job, folder: &Path, halt: Halt) -> Result<(), Error> {
    let watch = JobWatch { progress: &Silent, save_every: Duration::MAX };
    run_on(team, plan, job, folder, halt, watch, &mut Pace::new(&Silent, &job.name))
}

/// Constructs and runs a job on the ranks of a team. All ranks return the same result, unless the team is broken then.
fn run_on(
    team: &Team,
    plan: &Plan,
    job: &Job,
    folder: &Path,
    halt: Halt,
    watch: JobWatch,
    pace: &mut Pace,
) -> Result<(), Error> {
    let Plan { experiment, .. } = plan;
    let (ready, sharing) = (Cell::new(false), Sharing::among(team.clone(), experiment.block));
    let id = job.checksum(experiment);
    let run = RunJob {
        job,
        experiment,
        id,
        folder,
        team: team.clone(),
        ready: &ready,
        halt,
        save_every: watch.save_every,
        pace,
    };
    let outcome = caught(|| {
        if !team.leads() {
            data_file::check_same_as_rank_0(&job.problem)?;
        }
        prepare_shared(job, experiment, folder, sharing, run)
    });
    if !ready.get() {
        // The others ask whether this rank is ready.
        return team.agreed(outcome);
    }
    if matches!(&outcome, Err(error) if !matches!(error, Error::Method(_) | Error::Interrupted)) {
        team.set_broken();
    }
    outcome
}

struct RunJob<'a, 'p> {
    job: &'a Job,
    experiment: &'a Experiment,
    id: u64,
    folder: &'a Path,
    team: Team,
    /// Set when the ranks have asked each other whether they are ready.
    ready: &'a Cell<bool>,
    halt: Halt<'a>,
    save_every: Duration,
    pace: &'a mut Pace<'p>,
}

impl RunJob<'_, '_> {
    /// The last checkpoint and the logs of the job, on the rank that writes.
    fn open(&self) -> Result<(Option<Checkpoint>, Option<Logs>), Error> {
        if !self.team.leads() {
            return Ok((None, None));
        }
        atomic::make_folder(self.folder)?;
        let saved = Checkpoint::load(&checkpoint_file(self.folder), self.id)?;
        let logs = Logs::open(self.folder, saved.as_ref().map(Checkpoint::logs).unwrap_or_default())?;
        Ok((saved, Some(logs)))
    }
}

impl Purpose for RunJob<'_, '_> {
    type Output = ();

    fn with<P: PointType>(mut self, mut prepared: Prepared<P>) -> Result<(), Error> {
        let mut measure = Measure::new(&self.job.problem, &prepared.f, self.team.clone());
        let (path, opened) = (checkpoint_file(self.folder), self.open());
        self.ready.set(true);
        let (own, logs) = self.team.agreed(opened)?;
        let saved = Checkpoint::shared(own, &path, &mut self.team)?;
        let saved = saved.map(|saved| prepared.resume_from(saved)).transpose()?;
        if saved.is_none() {
            prepared.start(self.job.seed)?;
        }
        let totals = saved.as_ref().map(|saved| saved.totals).unwrap_or_default();
        self.pace.warn();
        let Prepared { f, stepper, sampler, held, .. } = prepared;
        let mut journal = Journal { f, stepper, totals, logs, id: self.id, path };
        let epoch_steps = sampler.steps_per_epoch();
        if saved.is_none() {
            journal.write_epoch(epoch_steps, &mut measure, self.halt)?;
        }
        let outcome = self.run_steps(journal, sampler, &mut measure);
        drop(held);
        outcome
    }
}

impl RunJob<'_, '_> {
    /// Makes all remaining steps.
    fn run_steps<F: Problem>(
        self,
        mut journal: Journal<F>,
        mut sampler: Box<dyn Sampler>,
        measure: &mut Measure<F::Point>,
    ) -> Result<(), Error> {
        let Self { job, experiment, halt, save_every, pace, .. } = self;
        let epoch_steps = sampler.steps_per_epoch();
        let last_step = job.epochs * epoch_steps;
        let mut k = journal.stepper.current(&mut journal.f).steps;
        let mut records = Vec::new();
        let mut saved_at = Instant::now();
        loop {
            let settled = journal.stepper.is_settled();
            let done = settled || k >= last_step;
            if settled {
                let recorded = |&epoch: &u64| is_recorded(epoch, job.epochs, experiment.measure_every);
                journal.write_remaining_epochs(epoch_steps, job.epochs, recorded, measure, halt)?;
            }
            let (stop, unsaved) = journal.agree(k, halt.requested(), saved_at.elapsed())?;
            if done || stop || unsaved > save_every {
                journal.save(done)?;
                saved_at = Instant::now();
            }
            if done {
                pace.now(last_step, last_step);
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
                let wanted = experiment.records == Records::Steps && (k - 1) / epoch_steps < ALL_EPOCHS;
                journal.write_step(record, wanted)?;
            }
            if outcome.is_err() || k.is_multiple_of(epoch_steps) {
                // Failed captures and missing kernels become known only during the first steps.
                pace.warn();
            }
            outcome.map_err(|error| journal.f.peers().and_then(Peers::failure).map_or(error, Error::Method))?;
            if k.is_multiple_of(epoch_steps) {
                let (epoch, every) = (k / epoch_steps, experiment.measure_every);
                if is_recorded(epoch, job.epochs, every) {
                    journal.write_epoch(epoch_steps, measure, halt)?;
                } else if !epoch.is_multiple_of(every.get()) {
                    // A record is the same whether the epochs before it were measured or not.
                    journal.totals.epoch = EpochTotals::default();
                }
            }
        }
    }
}

/// A running job and its output files.
struct Journal<F: Objective> {
    f: F,
    stepper: Box<dyn Stepper<F>>,
    totals: Totals,
    /// Only rank 0 writes.
    logs: Option<Logs>,
    /// The checksum of the job.
    id: u64,
    /// The checkpoint file.
    path: PathBuf,
}

impl<F: Problem> Journal<F> {
    /// Agrees with the other ranks on whether to stop and on the time since the last checkpoint, and compares the states.
    fn agree(&mut self, steps: u64, stop: bool, elapsed: Duration) -> Result<(bool, Duration), Error> {
        let fingerprint = || self.stepper.fingerprint();
        let mut consensus = Consensus { steps, elapsed, stop, fingerprint: &fingerprint };
        if let Some(peers) = self.f.peers() {
            peers.agree(&mut consensus)?;
        }
        Ok((consensus.stop, consensus.elapsed))
    }

    fn log(&mut self, line: &Line) -> Result<(), Error> {
        self.logs.as_mut().map_or(Ok(()), |logs| logs.record(line))
    }

    fn write_step(&mut self, record: StepRecord, wanted: bool) -> Result<(), Error> {
        self.totals.evaluations += record.evaluations;
        self.totals.accepted += u64::from(record.verdict == Verdict::Accepted);
        self.totals.skipped += u64::from(record.verdict == Verdict::Skipped);
        self.totals.epoch.add(&record);
        if wanted { self.log(&Line::Step(record)) } else { Ok(()) }
    }

    /// The record of the current point as the end of an epoch.
    fn measured(&mut self, epoch: u64, measure: &mut Measure<F::Point>, halt: Halt) -> Result<EpochRecord, Error> {
        let position = self.stepper.current(&mut self.f);
        let steps = position.steps;
        let metrics = measure.at(&mut self.f, &position, self.totals.evaluations, halt)?;
        if let Some(bad) = metrics.values().find(|v| !v.is_finite()) {
            return Err(Error::Method(strust::Error::NonFiniteValue { step: steps, value: *bad }));
        }
        let Totals { accepted, skipped, evaluations, .. } = self.totals;
        let trust_region = std::mem::take(&mut self.totals.epoch).numbers();
        Ok(EpochRecord { epoch, steps, accepted, skipped, evaluations, trust_region, metrics })
    }

    fn write_epoch(&mut self, epoch_steps: u64, measure: &mut Measure<F::Point>, halt: Halt) -> Result<(), Error> {
        let epoch = self.stepper.current(&mut self.f).steps / epoch_steps;
        let record = self.measured(epoch, measure, halt)?;
        self.log_epoch(record)
    }

    /// Records all epochs to come of a method that has settled: its answer does not change any more.
    fn write_remaining_epochs(
        &mut self,
        epoch_steps: u64,
        last: u64,
        recorded: impl Fn(&u64) -> bool,
        measure: &mut Measure<F::Point>,
        halt: Halt,
    ) -> Result<(), Error> {
        let steps = self.stepper.current(&mut self.f).steps;
        let next = self.totals.settled.unwrap_or(steps / epoch_steps) + 1;
        if next <= last {
            let record = self.measured(next, measure, halt)?;
            for epoch in (next..=last).filter(recorded) {
                self.log_epoch(EpochRecord { epoch, ..record.clone() })?;
            }
        }
        self.totals.settled = Some(last.max(next - 1));
        Ok(())
    }

    fn log_epoch(&mut self, record: EpochRecord) -> Result<(), Error> {
        let timing = Timing { epoch: record.epoch, seconds: self.totals.seconds };
        self.log(&Line::Epoch(record))?;
        self.logs.as_mut().map_or(Ok(()), |logs| logs.timing(&timing))
    }

    /// Syncs the logs, then writes the checkpoint: a checkpoint never refers to lines that are not on the disk.
    fn save(&mut self, done: bool) -> Result<(), Error> {
        let Some(logs) = &mut self.logs else { return Ok(()) };
        let [(records, of_records), (timings, of_timings)] = logs.sync()?;
        let checksums = Some([of_records, of_timings]);
        let (path, version) = (self.path.clone(), env!("CARGO_PKG_VERSION").into());
        let (extra_state, state) = (self.f.extra_state(), self.stepper.state(&mut self.f));
        let (job, totals) = (self.id, self.totals);
        Checkpoint { path, version, job, records, timings, checksums, totals, done, extra_state, state }.save()
    }
}
