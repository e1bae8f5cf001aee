//! Waits for a collective, but not forever.

use mpi::{
    request::{Request, Scope, StaticScope},
    topology::SimpleCommunicator,
    traits::{Communicator, Destination, MatchedReceiveVec, Source},
};
use std::{
    cell::Cell,
    io::Write,
    time::{Duration, Instant},
};

/// The exit code of a run that a rank has ended.
const FAILED: i32 = 1;

/// The tag of the message "I wait too long".
const WAITING: i32 = 7_700;

/// Tests between two looks at the clock. A test takes well below a microsecond.
const TESTS: u32 = 256;

/// How long a waiting rank stays on its core: longer than most sums take, because only tests make them progress.
const SPIN: Duration = Duration::from_millis(50);

/// The time between two rounds of tests after that.
const NAP: Duration = Duration::from_micros(50);

/// How often a waiting rank looks for the messages of others.
const LISTEN_EVERY: Duration = Duration::from_millis(20);

/// How long the ranks that wait collect each other's messages.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// How long `mpirun` may take to print what a rank has written. 0.3 s is much more than it needs on two busy cores.
const PASSED_ON_WITHIN: Duration = Duration::from_millis(300);

/// The limit on waiting, and the number of collectives so far.
pub struct Patience {
    limit: Duration,
    collectives: Cell<u64>,
}

impl Patience {
    pub fn new(limit: Duration) -> Self {
        Self { limit, collectives: Cell::new(0) }
    }

    /// Waits until the request is complete. After the limit, or when another rank has reached its limit, ends all ranks.
    pub fn wait<'a, D: ?Sized, S: Scope<'a>>(&self, world: &SimpleCommunicator, mut request: Request<'a, D, S>) {
        self.collectives.set(self.collectives.get() + 1);
        let began = Instant::now();
        let mut listened = began;
        loop {
            for _ in 0..TESTS {
                match request.test() {
                    Ok(_) => return,
                    Err(unfinished) => request = unfinished,
                }
            }
            let now = Instant::now();
            if now - listened > LISTEN_EVERY {
                listened = now;
                // The message stays in the queue, to be counted.
                let another_waits = world.any_process().immediate_probe_with_tag(WAITING).is_some();
                if another_waits || now - began > self.limit {
                    self.give_up(world);
                }
            }
            // Several ranks may share a core, and a rank may have threads that work.
            if now - began < SPIN { std::thread::yield_now() } else { std::thread::sleep(NAP) }
        }
    }

    /// Finds out which ranks wait. The first of them names those that do not, and ends all.
    fn give_up(&self, world: &SimpleCommunicator) -> ! {
        let (me, size) = (world.rank(), world.size());
        // The messages must outlive this function, because nobody waits until they are received.
        let message: &'static [u64] = Box::leak(Box::new([self.collectives.get()]));
        for other in (0..size).filter(|&other| other != me) {
            std::mem::forget(world.process_at_rank(other).immediate_send_with_tag(StaticScope, message, WAITING));
        }
        let mut waits = vec![false; size as usize];
        waits[me as usize] = true;
        let ends = Instant::now() + ANSWERS_WITHIN;
        while Instant::now() < ends {
            if let Some(message) = world.any_process().immediate_matched_probe_with_tag(WAITING) {
                let (_, status) = message.matched_receive_vec::<u64>();
                waits[status.source_rank() as usize] = true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let first = waits.iter().position(|&waits| waits);
        if first == Some(me as usize) {
            let missing: Vec<String> = (0..waits.len()).filter(|&r| !waits[r]).map(|r| r.to_string()).collect();
            let who = if missing.is_empty() { "all ranks".into() } else { format!("rank {}", missing.join(", ")) };
            let (number, limit) = (self.collectives.get(), self.limit);
            let why = format!("did not arrive at collective {number} within {limit:?}: stopped, stuck or lost");
            end_all(world, &format!("{who}: {why}. Rank {me} ends all ranks."))
        }
        std::thread::sleep(ANSWERS_WITHIN);
        abort(world, FAILED)
    }
}

/// Prints a message and ends the processes of all ranks.
pub fn end_all(world: &SimpleCommunicator, message: &str) -> ! {
    // In one piece, because the ranks share the stream. If it cannot be written, the exit code still tells.
    let _ = std::io::stderr().write_all(format!("{message}\n").as_bytes());
    abort(world, FAILED)
}

/// Ends the processes of all ranks. `mpirun` then prints nothing more, so it first gets time to pass on what was written.
pub fn abort(world: &SimpleCommunicator, code: i32) -> ! {
    std::thread::sleep(PASSED_ON_WITHIN);
    world.abort(code)
}
