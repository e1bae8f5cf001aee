//! One run of `strust` on many machines, over MPI.
//!
//! [`on_ranks`] starts MPI and hands over this process's [`MpiRank`], a [`Group`]. Give it to
//! [`Sharded`](strust::ranks::Sharded), and every method runs on all ranks:
//!
//! ```no_run
//! use std::time::Duration;
//! use strust::{prelude::*, ranks::Sharded};
//!
//! strust_mpi::on_ranks(Duration::from_secs(60), |rank| {
//!     let f = from_terms(1000, |i, x: &Vec<f64>, g| {
//!         g[0] += x[0] - i as f64;
//!         0.5 * (x[0] - i as f64).powi(2)
//!     });
//!     let report = minimize(&mut Sharded::new(f, rank)).batch(64).start(vec![0.0])?;
//!     report.breakdown.map_or(Ok(()), Err)
//! });
//! ```
//!
//! Start it with `mpirun -n 4 PROGRAM`.
//!
//! # No rank waits forever
//!
//! A rank that returns an error or panics prints it and ends all ranks. A rank that waits for another one longer than the
//! limit asks who else waits. One of those that wait then names the ranks that do not, and ends all of them. `mpirun`
//! itself ends all ranks if one of them is killed. This crate therefore prints to standard error, unlike the other
//! libraries: no caller is left to do it.

mod patience;

use mpi::{
    Threading,
    collective::SystemOperation,
    request::{Request, scope},
    topology::SimpleCommunicator,
    traits::{Communicator, CommunicatorCollectives, Root},
};
use patience::{Patience, abort, end_all};
use std::{
    fmt::Display,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    rc::Rc,
    time::Duration,
};
use strust::{
    Error,
    ranks::{Group, InSlices},
};

/// If all ranks have the same error, only rank 0 shall print it: its message ends the others in this time.
const AFTER_RANK_0: Duration = Duration::from_secs(1);

/// This process as one of the ranks of `MPI_COMM_WORLD`.
///
/// Its functions do not return errors: if a rank is missing for longer than the limit, all processes end with a message.
/// A clone is another handle of the same rank, for parts of a program that cannot share one.
#[derive(Clone)]
pub struct MpiRank {
    world: Rc<SimpleCommunicator>,
    patience: Rc<Patience>,
    copy: Vec<f64>,
}

/// Starts MPI, runs `work` and waits for the other ranks. An error or a panic of one rank ends the processes of all, with
/// exit code 1.
///
/// A rank waits for the others no longer than `limit`, so it must be longer than any rank may work between two collectives:
/// reading the data, evaluating its share of a sample, or writing a checkpoint.
///
/// # Panics
/// If MPI was started before in this process.
pub fn on_ranks<T, E: Display>(limit: Duration, work: impl FnOnce(&mut MpiRank) -> Result<T, E>) -> T {
    // Other threads may work meanwhile, but only this one calls MPI.
    let started = mpi::initialize_with_threading(Threading::Funneled);
    let (universe, _) = started.expect("MPI is started once in a process");
    let world = Rc::new(universe.world());
    let mut rank = MpiRank { patience: Rc::new(Patience::new(limit)), world, copy: Vec::new() };
    match catch_unwind(AssertUnwindSafe(|| work(&mut rank))) {
        Ok(Ok(result)) => {
            // `MPI_Finalize` would wait for the others without a limit.
            let all_arrived = rank.world.immediate_barrier();
            rank.patience.wait(&rank.world, all_arrived);
            result
        }
        Ok(Err(error)) => rank.end(&error.to_string()),
        Err(panic) if rank.size() == 1 => resume_unwind(panic),
        Err(_) => rank.end(PANICKED),
    }
}

impl MpiRank {
    /// Prints why this rank cannot go on, and ends all ranks.
    pub fn end(&self, why: &str) -> ! {
        end(&self.world, why)
    }

    /// Ends all ranks with this exit code, for a program that has said why.
    pub fn abort(&self, code: u8) -> ! {
        abort(&self.world, code.into())
    }
}

const PANICKED: &str = "it panicked";

fn end(world: &SimpleCommunicator, why: &str) -> ! {
    if world.rank() > 0 {
        std::thread::sleep(AFTER_RANK_0);
    }
    // Some errors name the rank that caused them.
    let name = if why.starts_with("rank ") { String::new() } else { format!("rank {}: ", world.rank()) };
    end_all(world, &format!("{name}{why}"))
}

impl Group for MpiRank {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }
    fn size(&self) -> usize {
        self.world.size() as usize
    }
    fn sum(&mut self, numbers: &mut [f64]) -> Result<(), Error> {
        let Self { world, patience, copy } = self;
        copy.clear();
        copy.extend_from_slice(numbers);
        scope(|scope| {
            let sum = SystemOperation::sum();
            patience.wait(world, world.immediate_all_reduce_into(scope, &copy[..], &mut *numbers, sum));
        });
        Ok(())
    }
    fn sum_in_slices(&mut self, work: &mut InSlices<'_, '_>) -> Result<(), Error> {
        let Self { world, patience, .. } = self;
        scope(|scope| {
            let mut begun = Vec::new();
            let worked = catch_unwind(AssertUnwindSafe(|| {
                work(&mut |mine, all| {
                    // Many MPI libraries send only while they are called.
                    begun = std::mem::take(&mut begun)
                        .into_iter()
                        .filter_map(|request: Request<_, _>| request.test().err())
                        .collect();
                    begun.push(world.immediate_all_reduce_into(scope, mine, all, SystemOperation::sum()));
                });
            }));
            if worked.is_err() {
                // The others wait for the slices that are missing, and those that were begun cannot be taken back.
                end(world, PANICKED);
            }
            for request in begun {
                patience.wait(world, request);
            }
        });
        Ok(())
    }
    fn gather(&mut self, numbers: &[f64], all: &mut Vec<f64>) -> Result<(), Error> {
        all.clear();
        all.resize(numbers.len() * self.size(), 0.0);
        let Self { world, patience, .. } = self;
        scope(|scope| patience.wait(world, world.immediate_all_gather_into(scope, numbers, &mut all[..])));
        Ok(())
    }
    fn broadcast(&mut self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        let Self { world, patience, .. } = self;
        let root = world.process_at_rank(0);
        let mut length = bytes.len() as u64;
        scope(|scope| patience.wait(world, root.immediate_broadcast_into(scope, &mut length)));
        bytes.resize(length as usize, 0);
        // Open MPI refuses an empty message.
        if length > 0 {
            scope(|scope| patience.wait(world, root.immediate_broadcast_into(scope, &mut bytes[..])));
        }
        Ok(())
    }
}
