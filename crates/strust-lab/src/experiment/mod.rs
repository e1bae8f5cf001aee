//! Reads experiment files, and contains the built-in ones.

pub mod built_in;
mod networks;
mod parse;
mod set;
mod source;

pub use crate::data::experiment::Experiment;
use crate::{Error, io::stream};
pub use set::{Setting, folder_with};
pub use source::Source;
use std::path::{Path, PathBuf};

/// The most bytes of an experiment file.
const MOST_BYTES: u64 = 64 << 20;

/// The text of an experiment file, or of a built-in experiment. A command reads it once, because it may come from a pipe.
#[derive(Debug, Clone)]
pub struct ExperimentText {
    /// The file, or the name of the built-in experiment.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
}

impl ExperimentText {
    /// Reads an experiment file, or the built-in experiment of that name.
    pub fn open(file: &Path) -> Result<Self, Error> {
        Self::open_among(file, &[])
    }

    /// The same with more built-in texts, each with its name.
    pub fn open_among(file: &Path, more: &[(&str, &str)]) -> Result<Self, Error> {
        let e = match stream::read_text(file, MOST_BYTES) {
            Ok(text) => return Ok(Self { file: file.into(), text }),
            Err(e) => e,
        };
        let all = || built_in::EXPERIMENTS.iter().chain(more);
        match all().find(|(name, _)| Path::new(name) == file) {
            Some((_, text)) => Ok(Self { file: file.into(), text: (*text).into() }),
            None if e.kind() == std::io::ErrorKind::NotFound => {
                let names: Vec<_> = all().map(|(name, _)| *name).collect();
                let why = format!("no such file, and no built-in experiment has this name ({})", names.join(", "));
                Err(Error::Experiment { file: file.into(), line: None, why })
            }
            None => Err(Error::io("read", file)(e)),
        }
    }

    /// Whether its table has a key.
    #[must_use]
    pub fn has_key(&self, key: &str) -> bool {
        toml::from_str(&self.text).is_ok_and(|table: toml::Table| table.contains_key(key))
    }
}

impl Experiment {
    /// Reads an experiment file, or the built-in experiment of that name.
    pub fn open(file: &Path) -> Result<Self, Error> {
        Self::open_with(file, &[])
    }

    /// The same with settings of the command line, which replace those of the file.
    pub fn open_with(file: &Path, settings: &[Setting]) -> Result<Self, Error> {
        Self::from_text(&ExperimentText::open(file)?, settings)
    }

    /// The experiment of a text, with settings of the command line.
    pub fn from_text(text: &ExperimentText, settings: &[Setting]) -> Result<Self, Error> {
        Self::parse_with(&text.file, &text.text, settings)
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
