//! The program on many ranks: rank 0 runs the command, the others work for it.

use crate::{
    args::{Args, Command},
    execute,
};

/// How to get a program that runs under MPI.
#[cfg(not(feature = "mpi"))]
pub const WITHOUT_MPI: &str = "was built without MPI. Install an MPI library (Debian: apt-get install libopenmpi-dev \
                               openmpi-bin libclang-dev) and run: cargo build --release -p strust-cli --features mpi";

/// The place of this process among those that a launcher started: the rank, and the number of ranks where it is known.
struct LaunchedRank {
    rank: usize,
    size: Option<usize>,
}

/// The variables of `mpirun` and `srun`: Open MPI, MPICH and Intel MPI, PMIx.
const RANK_AND_SIZE: [[&str; 2]; 3] =
    [["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"], ["PMI_RANK", "PMI_SIZE"], ["PMIX_RANK", "SLURM_STEP_NUM_TASKS"]];

/// Whether an MPI launcher has started this process.
fn launched() -> Option<LaunchedRank> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    RANK_AND_SIZE.iter().find_map(|[rank, size]| Some(LaunchedRank { rank: number(rank)?, size: number(size) }))
}

/// Ends a process with wrong arguments, or one that shall show its help. Only rank 0 prints.
pub fn exit_for(error: &clap::Error) -> ! {
    if launched().is_some_and(|launched| launched.rank > 0) {
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// Runs a command on this process, or on all ranks.
pub fn run(args: Args) -> u8 {
    match launched() {
        // A benchmark starts ranks of its own.
        Some(_) if matches!(args.command, Command::Bench { .. }) => execute(args),
        None | Some(LaunchedRank { size: Some(1), .. }) => execute(args),
        Some(launched) => on_ranks(args, &launched),
    }
}

#[cfg(not(feature = "mpi"))]
#[allow(clippy::needless_pass_by_value, reason = "with MPI they are consumed")]
fn on_ranks(args: Args, launched: &LaunchedRank) -> u8 {
    if launched.rank == 0 {
        let why = format!("every rank would run the whole command, because this program {WITHOUT_MPI}");
        crate::show::error(&why, &args.shared);
    }
    1
}

#[cfg(feature = "mpi")]
fn on_ranks(args: Args, _: &LaunchedRank) -> u8 {
    with_mpi::run(args)
}

#[cfg(feature = "mpi")]
mod with_mpi {
    use super::{Args, Command, execute};
    use crate::session;
    use strust_lab::{Error, member, team::Team};
    use strust_mpi::{MpiRank, on_ranks};

    pub fn run(args: Args) -> u8 {
        on_ranks(args.shared.rank_limit, |rank| {
            let team = Team::new(rank.clone());
            team.check_program()?;
            session::set_team(team.clone());
            match args.command {
                // All ranks fit the model together, each with its rows.
                Command::Fit(_) => Ok(execute(args)),
                _ if team.leads() => lead(args, &team, rank),
                _ => follow(&team),
            }
        })
    }

    /// Runs the command, and then ends the other ranks with its exit code.
    fn lead(args: Args, team: &Team, rank: &MpiRank) -> Result<u8, Error> {
        let code = execute(args);
        if team.is_broken() {
            rank.abort(code);
        }
        team.dismiss(code)?;
        Ok(code)
    }

    fn follow(team: &Team) -> Result<u8, Error> {
        let interrupt = session::interrupt().map_err(|_| Error::Ranks("cannot handle signals".into()))?;
        member::serve(team, &interrupt, &crate::suites::SUITES)
    }
}
