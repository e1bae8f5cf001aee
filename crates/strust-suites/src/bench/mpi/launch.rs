//! Processes that wait for requests: one without MPI, or the ranks of one `mpirun`.

use super::worker::{RankAnswer, RankRequest};
use std::{
    io::{BufRead, BufReader, ErrorKind, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};
use strust_lab::Error;

/// A started program that answers one request after another. It waits without using a core in between.
pub struct Launched {
    name: String,
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Launched {
    /// This program without MPI.
    pub fn alone() -> Result<Self, Error> {
        let mut command = Command::new(this_program()?);
        command.args(["bench", "mpi", "--as-rank", "alone"]);
        Self::start("a process without MPI".into(), command)
    }

    /// So many ranks of this program, started by `mpirun`.
    pub fn ranks(ranks: usize) -> Result<Self, Error> {
        let mut command = Command::new("mpirun");
        // The ranks of this machine may be more than its cores, and the launcher must not tie two to one core.
        command.args(["--oversubscribe", "--bind-to", "none", "-n", &ranks.to_string()]);
        // Open MPI refuses to run as root without these.
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        command.arg(this_program()?).args(["bench", "mpi", "--as-rank", "mpi"]);
        Self::start(format!("mpirun -n {ranks}"), command)
    }

    fn start(name: String, mut command: Command) -> Result<Self, Error> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|e| {
            Error::Ranks(if e.kind() == ErrorKind::NotFound {
                "`mpirun` was not found: install it (Debian: apt-get install openmpi-bin), or add its folder to PATH"
                    .into()
            } else {
                format!("cannot start {name}: {e}")
            })
        })?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("the output is a pipe"));
        Ok(Self { name, child, requests, answers })
    }

    pub fn ask(&mut self, request: &RankRequest) -> Result<RankAnswer, Error> {
        let text = serde_json::to_string(request).map_err(|e| Error::Ranks(e.to_string()))? + "\n";
        let sent = self.requests.as_mut().map(|pipe| pipe.write_all(text.as_bytes()));
        let mut line = String::new();
        let received = self.answers.read_line(&mut line);
        match (sent, received) {
            (Some(Ok(())), Ok(1..)) => serde_json::from_str(&line).map_err(|_| self.ended(&line)),
            _ => Err(self.ended("")),
        }
    }

    fn ended(&mut self, output: &str) -> Error {
        let output = if output.is_empty() { String::new() } else { format!("; it printed: {}", output.trim_end()) };
        Error::Ranks(format!("{} ended before it answered; see its messages above{output}", self.name))
    }
}

impl Drop for Launched {
    /// The program ends when its input does.
    fn drop(&mut self) {
        self.requests = None;
        // A program that failed has ended already.
        let _ = self.child.wait();
    }
}

fn this_program() -> Result<std::path::PathBuf, Error> {
    std::env::current_exe().map_err(|e| Error::Ranks(format!("cannot find the program itself: {e}")))
}
