//! Runs experiments on the theory side by side, each written when it is done.

use super::{Theory, Tick};
use crate::{
    Error,
    conduct::{Options, lock, write_report},
    files,
    section::Section,
    summary::{Machine, Summary},
};
use serde::{Deserialize, Serialize};
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// The whole of `theory.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TheoryPlan {
    /// The version of strust that made it.
    pub version: String,
    /// The command that made it.
    pub command: String,
    /// The machine it was made on.
    pub machine: Machine,
    /// Its name, also that of the folder of results.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The experiments.
    pub experiments: Vec<Theory>,
}

impl TheoryPlan {
    /// The plan of some experiments.
    #[must_use]
    pub fn new(name: &str, title: &str, experiments: Vec<Theory>, command: String, machine: Machine) -> Self {
        let version = env!("CARGO_PKG_VERSION").into();
        Self { version, command, machine, name: name.into(), title: title.into(), experiments }
    }

    fn load(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("theory.json");
        let text = std::fs::read(&path).map_err(Error::io("read", &path))?;
        serde_json::from_slice(&text)
            .map_err(|e| Error::saved(&path, format!("this is no plan of this version of strust: {e}")))
    }

    fn summary(&self, sections: Vec<Section>) -> Summary {
        Summary {
            experiment: self.name.clone(),
            title: self.title.clone(),
            description: String::new(),
            version: self.version.clone(),
            command: self.command.clone(),
            machine: self.machine.clone(),
            epochs: 0,
            batch: 0,
            problems: Vec::new(),
            tuning: Vec::new(),
            diagnoses: Vec::new(),
            checks: sections.iter().flat_map(|section| section.checks.clone()).collect(),
            sections,
        }
    }
}

/// What `checks/NAME.json` holds: a section, and the settings it is of.
#[derive(Serialize, Deserialize)]
struct Saved {
    settings: u64,
    section: Section,
}

fn settings(theory: &Theory) -> u64 {
    files::checksum(&serde_json::to_vec(theory).expect("settings are plain data"))
}

fn path(folder: &Path, theory: &Theory) -> PathBuf {
    folder.join("checks").join(format!("{}.json", theory.name))
}

/// Whether a folder holds experiments on the theory.
#[must_use]
pub fn is_theory(folder: &Path) -> bool {
    folder.join("theory.json").is_file()
}

/// Starts a plan in a folder, which must be new or empty.
pub fn start(folder: &Path, plan: &TheoryPlan, options: &Options) -> Result<Summary, Error> {
    files::make_folder(folder)?;
    let _lock = lock(folder)?;
    let mut entries = std::fs::read_dir(folder).map_err(Error::io("read", folder))?;
    if is_theory(folder) {
        let why =
            "the folder already holds a run: go on with it by `strust resume`, or choose another folder with --out";
        return Err(Error::saved(folder, why));
    }
    if entries.next().is_some() {
        return Err(Error::saved(folder, "the folder is not empty: choose another one with --out"));
    }
    files::write_json(&folder.join("theory.json"), plan)?;
    go_on(folder, plan, options)
}

/// Goes on with the plan of a folder: what is done is not done again.
pub fn resume(folder: &Path, options: &Options) -> Result<Summary, Error> {
    let plan = TheoryPlan::load(folder)?;
    let _lock = lock(folder)?;
    for folder in [folder.to_path_buf(), folder.join("checks"), folder.join("figures")] {
        files::sweep(&folder);
    }
    go_on(folder, &plan, options)
}

/// The summary of a finished run.
pub fn load_summary(folder: &Path) -> Result<Summary, Error> {
    let plan = TheoryPlan::load(folder)?;
    let section = |theory: &Theory| {
        load(folder, theory)?.ok_or_else(|| {
            Error::saved(&path(folder, theory), "this experiment is not finished: go on with `strust resume`")
        })
    };
    let sections = plan.experiments.iter().map(section).collect::<Result<Vec<_>, _>>()?;
    Ok(plan.summary(sections))
}

fn load(folder: &Path, theory: &Theory) -> Result<Option<Section>, Error> {
    let path = path(folder, theory);
    match std::fs::read(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", &path)(e)),
        Ok(text) => match serde_json::from_slice::<Saved>(&text) {
            Ok(saved) if saved.settings == settings(theory) => Ok(Some(saved.section)),
            Ok(_) => Err(Error::saved(&path, "belongs to other settings: remove it and resume")),
            Err(e) => Err(Error::saved(&path, format!("{e}: remove it and resume"))),
        },
    }
}

fn go_on(folder: &Path, plan: &TheoryPlan, options: &Options) -> Result<Summary, Error> {
    files::make_folder(&folder.join("checks"))?;
    options.progress.begin("checks", plan.experiments.len());
    let next = AtomicUsize::new(0);
    let (halt, fatal) = (AtomicBool::new(false), Mutex::new(None));
    let worker = || {
        while !options.interrupt.load(Ordering::Relaxed) && !halt.load(Ordering::Relaxed) {
            let Some(theory) = plan.experiments.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            if let Err(error) = run_one(folder, theory, &halt, options) {
                halt.store(true, Ordering::Relaxed);
                fatal.lock().expect("no thread panics while it holds this").get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, plan.experiments.len().max(1)) {
            scope.spawn(worker);
        }
    });
    if let Some(error) = fatal.into_inner().expect("no thread panics while it holds this") {
        return Err(error);
    }
    if options.interrupt.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let summary = load_summary(folder)?;
    files::write_json(&folder.join("summary.json"), &summary)?;
    files::write(&folder.join("summary.csv"), csv(&summary).as_bytes())?;
    write_report(folder, std::slice::from_ref(&summary))?;
    Ok(summary)
}

fn run_one(folder: &Path, theory: &Theory, halt: &AtomicBool, options: &Options) -> Result<(), Error> {
    let mut tick = Tick::new(options.progress.job(&theory.name), [options.interrupt, halt]);
    if load(folder, theory)?.is_none() {
        match theory.run(&mut tick) {
            Ok(section) => {
                files::write_json(&path(folder, theory), &Saved { settings: settings(theory), section })?;
            }
            Err(error) => {
                tick.progress.stop();
                return Err(error);
            }
        }
    }
    tick.progress.at(1, 1);
    tick.progress.end(None);
    Ok(())
}

/// The checks as a table.
fn csv(summary: &Summary) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut text = String::from("experiment,claim,measured,bound,holds,why\n");
    for section in &summary.sections {
        for check in &section.checks {
            let (name, why) = (quoted(&check.name), quoted(&check.why));
            let _ = writeln!(text, "{},{name},{},{},{},{why}", section.name, check.measured, check.bound, check.holds);
        }
    }
    text
}
