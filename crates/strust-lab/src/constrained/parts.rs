//! The parts of the study on small problems. Each is computed, saved and shown by itself.

use super::{
    noise, problems, reference::ReferenceProblem, results::PartResults, settings::ConstrainedSettings, starts, units,
};
use crate::{
    Error,
    data::{checksum, summary::Summary},
    io::{atomic, results::CHECKS, stream},
    run::workers::Tick,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A part of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Every problem from its usual start, by several solvers.
    Problems,
    /// STR-SQP from random starts.
    Starts,
    /// STR-SQP in other units.
    Units,
    /// STR-SQP with noisy gradients.
    Noise,
}

/// The contents of `checks/NAME.json`.
#[derive(Serialize, Deserialize)]
struct SavedPart {
    /// The checksum of the settings and the reference.
    settings: u64,
    results: PartResults,
}

/// The input of every part.
#[derive(Clone, Copy)]
pub(super) struct PartInput<'a> {
    pub settings: &'a ConstrainedSettings,
    pub reference: &'a [ReferenceProblem],
}

impl Part {
    /// In the order of the report.
    pub const ALL: [Self; 4] = [Self::Problems, Self::Starts, Self::Units, Self::Noise];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Problems => "problems",
            Self::Starts => "starts",
            Self::Units => "units",
            Self::Noise => "noise",
        }
    }

    fn path(self, folder: &Path) -> PathBuf {
        folder.join(CHECKS).join(format!("{}.json", self.name()))
    }

    fn compute(self, input: PartInput, tick: &mut Tick) -> Result<PartResults, Error> {
        match self {
            Self::Problems => problems::run(input.reference, tick),
            Self::Starts => starts::run(input.settings, tick),
            Self::Units => units::run(tick),
            Self::Noise => noise::run(input.settings, tick),
        }
    }

    /// Computes the part, unless it is already there.
    pub fn run(self, folder: &Path, input: PartInput, tick: &mut Tick) -> Result<(), Error> {
        if self.load(folder, input)?.is_none() {
            let results = self.compute(input, tick)?;
            atomic::write_json(&self.path(folder), &SavedPart { settings: identity(input), results })?;
        }
        Ok(())
    }

    /// The results of a finished part.
    pub fn load(self, folder: &Path, input: PartInput) -> Result<Option<PartResults>, Error> {
        let path = self.path(folder);
        match stream::read_saved(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("read", &path)(e)),
            Ok(text) => match serde_json::from_slice::<SavedPart>(&text) {
                Ok(saved) if saved.settings == identity(input) => Ok(Some(saved.results)),
                Ok(_) => Err(Error::saved(&path, "this file belongs to other settings: remove it and resume")),
                Err(e) => Err(Error::saved(&path, format!("{e}: remove it and resume"))),
            },
        }
    }

    /// Adds the results to a summary.
    pub fn add_to(self, summary: &mut Summary, folder: &Path, input: PartInput) -> Result<(), Error> {
        let results = self.load(folder, input)?.ok_or_else(|| {
            Error::saved(&self.path(folder), "this part is not finished: continue with `strust resume`")
        })?;
        summary.problems.extend(results.problems);
        summary.sections.push(results.section);
        Ok(())
    }
}

fn identity(PartInput { settings, reference }: PartInput) -> u64 {
    checksum(&serde_json::to_vec(&(settings, reference)).expect("settings are plain data"))
}
