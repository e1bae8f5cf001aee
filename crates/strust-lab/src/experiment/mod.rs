//! Reads experiment files, and contains the built-in ones.

pub mod built_in;
mod networks;
mod parse;
pub(crate) mod source;

use crate::Error;
pub use crate::data::experiment::Experiment;
use std::path::Path;

impl Experiment {
    /// Reads an experiment file, or the built-in experiment of that name.
    pub fn open(file: &Path) -> Result<Self, Error> {
        match std::fs::read_to_string(file) {
            Ok(text) => Self::parse(file, &text),
            Err(e) => match built_in::EXPERIMENTS.iter().find(|(name, _)| Path::new(name) == file) {
                Some((name, text)) => Self::parse(Path::new(name), text),
                None if e.kind() == std::io::ErrorKind::NotFound => {
                    let all = built_in::EXPERIMENTS.iter().chain(built_in::THEORY).chain(built_in::BENCHMARKS);
                    let names: Vec<_> = all.map(|(name, _)| *name).collect();
                    let why = format!("no such file, and no built-in experiment has this name ({})", names.join(", "));
                    Err(Error::Experiment { file: file.into(), line: None, why })
                }
                None => Err(Error::io("read", file)(e)),
            },
        }
    }

    /// Both built-in experiments of section 5.2, combined.
    pub fn subspace() -> Result<Self, Error> {
        let mut both = Self::open(Path::new("subspace-small"))?;
        let large = Self::open(Path::new("subspace-large"))?;
        both.problems.extend(large.problems);
        both.name = "subspace".into();
        both.title = "Orthogonal subspace fitting: Figures 2 and 3 of the paper".into();
        Ok(both)
    }
}
