//! Files for readers that take a path, and a finished run whose files can be replaced.

use std::{
    path::{Path, PathBuf},
    sync::{OnceLock, atomic::AtomicBool},
    time::Duration,
};
use strust_lab::{
    data::plan::Plan,
    experiment::Experiment,
    io::results::job_folder,
    pipeline,
    run::{Options, Silent},
    team::Team,
    this_machine,
};

/// A folder in memory. Each process has its own, because targets run in parallel.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let shared = Path::new("/dev/shm");
        let parent = if shared.is_dir() { shared.into() } else { std::env::temp_dir() };
        let folder = parent.join(format!("strust-fuzz-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder in memory");
        folder
    })
}

/// Writes a file of the folder.
pub fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, bytes).expect("a file in memory");
    path
}

/// A finished run: its folder and its plan.
pub fn run() -> &'static (PathBuf, Plan) {
    static RUN: OnceLock<(PathBuf, Plan)> = OnceLock::new();
    RUN.get_or_init(|| {
        let folder = folder().join("run");
        let text = include_str!("../experiment.toml");
        let experiment = Experiment::parse("experiment.toml".as_ref(), text).expect("the experiment of the targets");
        let mut plan = Plan::new(experiment, String::new(), this_machine(1, None));
        let options = Options {
            jobs: 1,
            save_every: Duration::from_secs(1),
            interrupt: &AtomicBool::new(false),
            progress: &Silent,
            team: &Team::alone(),
        };
        pipeline::start(&folder, &mut plan, &options).expect("a run");
        (folder, plan)
    })
}

/// The folder of the job that the first byte selects, and the other bytes.
pub fn job(data: &[u8]) -> Option<(PathBuf, &[u8])> {
    let (&selected, rest) = data.split_first()?;
    let (folder, plan) = run();
    let job = &plan.jobs[usize::from(selected) % plan.jobs.len()];
    Some((job_folder(folder, job), rest))
}
