//! What rank 0 tells the other ranks, and what they answer. Every order but the last has an answer of every rank, so no
//! rank waits longer than a round takes.

use super::progress::{JobProgress, RunProgress};
use crate::{Error, team::Team};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use strust::ranks::Group;

/// The time between two rounds. A round takes well below a millisecond on a few ranks, and longer on many.
pub(crate) fn between_rounds(ranks: usize) -> Duration {
    Duration::from_millis(20).max(Duration::from_micros(200) * u32::try_from(ranks).unwrap_or(u32::MAX))
}

/// An order of rank 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Nothing to do: rank 0 works alone.
    Wait,
    /// A pool begins.
    Begin(Pool),
    /// Items of the pool for some ranks; with `halt`, running items stop.
    Go { items: Vec<(usize, usize)>, halt: bool },
    /// All ranks run this item together.
    Together(usize),
    /// The pool has ended.
    End,
    /// The program ends with this exit code.
    Bye { code: u8 },
}

/// Items that can run in parallel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pool {
    /// What its items are: [`JOBS`](super::JOBS), or the checks of the suite with this plan file.
    pub kind: String,
    /// The folder of results, which every rank must see.
    pub folder: PathBuf,
    /// The checksum of the plan file in it.
    pub seal: Option<u64>,
    /// The plan of the items.
    pub plan: serde_json::Value,
    /// Whether all ranks run each item together.
    pub together: bool,
    /// Items in parallel on each rank.
    pub jobs: usize,
    /// The time between two checkpoints.
    pub save_every: Duration,
}

/// The answer of a rank.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Items that it could start.
    pub wanted: usize,
    /// Items of this pool that it has finished or given up.
    pub done: usize,
    /// Whether it was asked to stop.
    pub interrupted: bool,
    /// Why an item failed.
    pub failed: Option<String>,
    /// What its items show, since the last answer.
    pub events: Vec<(u64, Event)>,
}

/// Progress of an item.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Event {
    Job(String),
    At(u64, u64),
    Warn(String),
    End(Option<String>),
    Stop,
}

impl Team {
    /// Rank 0 gives an order and receives the answers of all ranks. Its own is empty.
    pub(crate) fn round(&self, order: Order) -> Result<Vec<Answer>, Error> {
        self.of_leader(Some(order))?;
        self.of_all(&Answer::default())
    }

    /// Runs `work` on rank 0, while the others wait.
    pub fn meanwhile<T: Send>(&self, work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
        if self.size() == 1 {
            return work();
        }
        std::thread::scope(|scope| {
            let working = scope.spawn(work);
            while !working.is_finished() {
                self.round(Order::Wait)?;
                std::thread::sleep(between_rounds(self.size()));
            }
            working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Rank 0 ends the program on all ranks.
    pub fn dismiss(&self, code: u8) -> Result<(), Error> {
        self.of_leader(Some(Order::Bye { code })).map(drop)
    }
}

/// Keeps what the items of a rank show, for its next answer.
#[derive(Default)]
pub(crate) struct Relay {
    events: Mutex<(u64, Vec<(u64, Event)>)>,
}

impl Relay {
    pub fn take(&self) -> Vec<(u64, Event)> {
        std::mem::take(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner).1)
    }
    fn push(&self, job: u64, event: Event) {
        let events = &mut self.events.lock().unwrap_or_else(PoisonError::into_inner).1;
        // Only the last step of a job is of interest.
        if let (Event::At(..), Some(last)) = (&event, events.last_mut())
            && matches!(last, (same, Event::At(..)) if *same == job)
        {
            *last = (job, event);
        } else {
            events.push((job, event));
        }
    }
}

impl RunProgress for Relay {
    fn begin(&self, _: &str, _: usize) {}
    fn job<'a>(&'a self, name: &str) -> Box<dyn JobProgress + 'a> {
        let id = {
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            events.0 += 1;
            events.0
        };
        self.push(id, Event::Job(name.into()));
        Box::new(RelayJob { relay: self, id })
    }
}

struct RelayJob<'a> {
    relay: &'a Relay,
    id: u64,
}

impl JobProgress for RelayJob<'_> {
    fn at(&mut self, step: u64, last: u64) {
        self.relay.push(self.id, Event::At(step, last));
    }
    fn warn(&mut self, warning: &str) {
        self.relay.push(self.id, Event::Warn(warning.into()));
    }
    fn end(&mut self, error: Option<&str>) {
        self.relay.push(self.id, Event::End(error.map(Into::into)));
    }
    fn stop(&mut self) {
        self.relay.push(self.id, Event::Stop);
    }
}

/// Shows on rank 0 what the items of other ranks show.
pub(super) struct Replay<'a> {
    progress: &'a dyn RunProgress,
    jobs: BTreeMap<(usize, u64), Box<dyn JobProgress + 'a>>,
}

impl<'a> Replay<'a> {
    pub fn new(progress: &'a dyn RunProgress) -> Self {
        Self { progress, jobs: BTreeMap::new() }
    }
    pub fn show(&mut self, rank: usize, events: Vec<(u64, Event)>) {
        for (id, event) in events {
            if let Event::Job(name) = &event {
                self.jobs.insert((rank, id), self.progress.job(name));
            }
            let Some(job) = self.jobs.get_mut(&(rank, id)) else { continue };
            match event {
                Event::Job(_) => {}
                Event::At(step, last) => job.at(step, last),
                Event::Warn(warning) => job.warn(&warning),
                Event::End(error) => job.end(error.as_deref()),
                Event::Stop => job.stop(),
            }
        }
    }
}
