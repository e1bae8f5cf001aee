//! What rank 0 tells the other ranks, and what they answer. Every order but the last has an answer of every rank, so no
//! rank waits longer than a round takes.

use super::{
    items::locked,
    progress::{JobEvent, RunProgress},
};
use crate::{Error, team::Team};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, sync::Mutex, time::Duration};
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
    /// The plan of the items, as JSON.
    pub plan: String,
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
    pub events: Vec<(String, JobEvent)>,
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
    events: Mutex<Vec<(String, JobEvent)>>,
}

impl Relay {
    pub fn take(&self) -> Vec<(String, JobEvent)> {
        std::mem::take(&mut *locked(&self.events))
    }
}

impl RunProgress for Relay {
    fn begin(&self, _: &str, _: usize) {}
    fn show(&self, job: &str, event: &JobEvent) {
        let mut events = locked(&self.events);
        match (events.last_mut(), event) {
            // Only the last step of a job is of interest.
            (Some((same, last @ JobEvent::At(..))), JobEvent::At(..)) if same == job => *last = event.clone(),
            _ => events.push((job.into(), event.clone())),
        }
    }
}
