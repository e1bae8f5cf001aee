//! The data file of a problem, and its checksum.

use crate::{
    Error,
    data::{checksum, experiment::ProblemSpec, parameters::Parameters},
};
use std::path::Path;

/// The data file or folder that parameters name, if any.
pub(crate) fn path(parameters: &Parameters) -> Option<&Path> {
    parameters.get("data").and_then(toml::Value::as_str).filter(|data| !data.is_empty()).map(Path::new)
}

/// The checksum of a file, or of the names and contents of a folder's files.
pub(crate) fn checksum_of(path: &Path) -> Result<String, Error> {
    let read = |path: &Path| std::fs::read(path).map_err(Error::io("read", path));
    if !path.is_dir() {
        return Ok(format!("{:016x}", checksum(&read(path)?)));
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(Error::io("read", path))? {
        let entry = entry.map_err(Error::io("read", path))?.path();
        if entry.is_file() {
            files.push(entry);
        }
    }
    files.sort();
    let mut sums = Vec::new();
    for file in files {
        sums.extend(file.file_name().unwrap_or_default().as_encoded_bytes());
        sums.extend(checksum(&read(&file)?).to_le_bytes());
    }
    Ok(format!("{:016x}", checksum(&sums)))
}

/// Checks that a problem's data file has not changed since the plan.
pub(crate) fn check_unchanged(problem: &ProblemSpec) -> Result<(), Error> {
    check(
        problem,
        "the data of this run were removed: restore them, or run the experiment again with other data",
        "the data file has changed since the run was planned: run the experiment again",
    )
}

/// Checks that a problem's data file is that of rank 0, which has made the plan.
pub(crate) fn check_same_as_rank_0(problem: &ProblemSpec) -> Result<(), Error> {
    let missing = "rank 0 has these data, but this rank does not: put them on a file system that all ranks share";
    check(problem, missing, "the data differ from those of rank 0: give the same file to all ranks")
}

fn check(problem: &ProblemSpec, missing: &str, different: &str) -> Result<(), Error> {
    let Some(path) = path(&problem.parameters) else { return Ok(()) };
    if !path.exists() {
        return Err(Error::saved(path, missing));
    }
    if problem.checksum.as_deref() == Some(checksum_of(path)?.as_str()) {
        return Ok(());
    }
    Err(Error::saved(path, different))
}
