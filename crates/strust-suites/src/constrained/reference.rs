//! Results of other programs on the same problems, from the file of `scripts/constrained-reference.py`.

use serde::{Deserialize, Serialize};
use std::path::Path;
use strust_lab::{Error, data::summary::Solution, io::stream};
use strust_problems::constrained::all_problems;

/// The contents of a reference file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceFile {
    /// One entry per problem, as in `summary.json`.
    pub problems: Vec<ReferenceProblem>,
}

/// The results of other programs on a problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceProblem {
    /// The problem's name.
    pub name: String,
    /// The programs.
    pub methods: Vec<ReferenceResult>,
}

/// The result of another program on a problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceResult {
    /// The program's name.
    pub name: String,
    /// How it ended.
    #[serde(flatten)]
    pub solution: Solution,
}

impl ReferenceFile {
    /// Reads a reference file.
    pub fn open(file: &Path) -> Result<Self, Error> {
        let text = stream::read_saved(file).map_err(Error::io("read", file))?;
        let read: Self = serde_json::from_slice(&text)
            .map_err(|e| Error::saved(file, format!("this is not a file of scripts/constrained-reference.py: {e}")))?;
        let small = all_problems();
        match read.problems.iter().find(|problem| small.iter().all(|(_, known)| known.name != problem.name)) {
            Some(unknown) => Err(Error::saved(file, format!("there is no problem `{}`", unknown.name))),
            None => Ok(read),
        }
    }
}
