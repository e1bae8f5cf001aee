//! Rank 0 hands out the items of a pool to the other ranks, while its own threads take items too.

use super::{
    Options,
    items::{FirstError, Queue},
    orders::{Order, Pool, between_rounds},
};
use crate::Error;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use strust::ranks::Group;

/// A pool that runs on this rank, and is spread over the others.
pub(super) struct SpreadPool<'a> {
    pub queue: &'a Queue,
    /// Threads of this rank that are not done.
    pub busy: &'a AtomicUsize,
    pub interrupt: &'a AtomicBool,
    pub error: &'a FirstError,
}

impl SpreadPool<'_> {
    /// Hands out items until all ranks are done.
    pub fn run(&self, pool: Pool, options: &Options) -> Result<(), Error> {
        let (team, halt) = (options.team, self.error.halt(self.interrupt));
        let mut given = vec![0; team.size()];
        let mut answers = team.round(Order::Begin(pool))?;
        loop {
            let mut items = Vec::new();
            let mut idle = self.busy.load(Ordering::Acquire) == 0;
            for (rank, answer) in answers.into_iter().enumerate().skip(1) {
                answer.events.iter().for_each(|(job, event)| options.progress.show(job, event));
                if let Some(why) = answer.failed {
                    self.error.put(Error::Ranks(format!("rank {rank}: {why}")));
                }
                if answer.interrupted {
                    self.interrupt.store(true, Ordering::Relaxed);
                }
                for _ in 0..answer.wanted {
                    let Some(item) = (!halt.requested()).then(|| self.queue.take()).flatten() else { break };
                    items.push((rank, item));
                    given[rank] += 1;
                }
                idle &= answer.done == given[rank];
            }
            if idle {
                team.round(Order::End)?;
                return Ok(());
            }
            std::thread::sleep(between_rounds(team.size()));
            answers = team.round(Order::Go { items, halt: halt.requested() })?;
        }
    }
}
