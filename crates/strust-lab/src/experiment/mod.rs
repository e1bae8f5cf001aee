//! Reads experiment files, and contains the built-in ones.

pub mod built_in;
mod networks;
mod parse;
mod set;
pub(crate) mod source;

use crate::Error;
pub use crate::data::experiment::Experiment;
pub use set::{Setting, folder_with};
use std::path::Path;

impl Experiment {
    /// Reads an experiment file, or the built-in experiment of that name.
    pub fn open(file: &Path) -> Result<Self, Error> {
        Self::open_with(file, &[])
    }

    /// The same with settings of the command line, which replace those of the file.
    pub fn open_with(file: &Path, settings: &[Setting]) -> Result<Self, Error> {
        match std::fs::read_to_string(file) {
            Ok(text) => Self::parse_with(file, &text, settings),
            Err(e) => match built_in::EXPERIMENTS.iter().find(|(name, _)| Path::new(name) == file) {
                Some((name, text)) => Self::parse_with(Path::new(name), text, settings),
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

    /// Both built-in experiments of section 5.2, combined, with settings of the command line.
    pub fn subspace(settings: &[Setting]) -> Result<Self, Error> {
        let mut both = Self::open_with(Path::new("subspace-small"), settings)?;
        let large = Self::open_with(Path::new("subspace-large"), settings)?;
        both.problems.extend(large.problems);
        both.name = "subspace".into();
        both.title = "Orthogonal subspace fitting: Figures 2 and 3 of the paper".into();
        Ok(both)
    }
}
