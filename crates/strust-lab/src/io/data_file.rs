//! The data file of a problem, and its checksum.

use super::stream;
use crate::{
    Error,
    data::{checksum, experiment::ProblemSpec, parameters::Parameters, paths::path_of},
};
use std::{
    fs::Metadata,
    path::{Path, PathBuf},
};
use strust_data::read::open_plain;

/// The data file or folder that parameters name, if any.
pub(crate) fn path(parameters: &Parameters) -> Option<PathBuf> {
    parameters.get("data").and_then(toml::Value::as_str).filter(|data| !data.is_empty()).map(path_of)
}

/// The checksum of a file, or of the names and contents of a folder's files.
pub(crate) fn checksum_of(path: &Path) -> Result<String, Error> {
    if !path.is_dir() {
        return Ok(format!("{:016x}", file_checksum(path)?));
    }
    let mut sums = Vec::new();
    for file in files(path)? {
        sums.extend(file.file_name().unwrap_or_default().as_encoded_bytes());
        sums.extend(file_checksum(&file)?.to_le_bytes());
    }
    Ok(format!("{:016x}", checksum(&sums)))
}

/// The files of a folder, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let entry = entry.map_err(Error::io("read", folder))?.path();
        if entry.is_file() {
            files.push(entry);
        }
    }
    files.sort();
    Ok(files)
}

fn file_checksum(path: &Path) -> Result<u64, Error> {
    check_readable_again(path)?;
    let sum = open_plain(path).and_then(stream::checksum_of);
    sum.map(|(sum, _)| sum.value()).map_err(Error::io("read", path))
}

/// Refuses data that are neither in a file nor in a folder. Every job reads the data again, so they cannot come from a
/// pipe, and a device may never end.
pub(crate) fn check_readable_again(path: &Path) -> Result<(), Error> {
    if std::fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir()) {
        return Err(Error::saved(
            path,
            "the data must be in a file, because every job reads them: save them to a file",
        ));
    }
    Ok(())
}

/// The data of a problem while a job reads them. They must be the same before and after.
pub(crate) struct DataReading {
    path: Option<PathBuf>,
    before: Vec<FileState>,
}

/// Whatever changes with the contents of a file, without reading it.
type FileState = (PathBuf, u64, Option<std::time::SystemTime>, (u64, u64, i64, i64));

impl DataReading {
    /// Begins to read: the data of the problem are those of its plan.
    pub fn begin(problem: &ProblemSpec) -> Result<Self, Error> {
        let path = path(&problem.parameters);
        // The state comes first, so that a file that is replaced in between is noticed at the end.
        let before = path.as_deref().map_or_else(|| Ok(Vec::new()), states)?;
        check_unchanged(problem)?;
        Ok(Self { path, before })
    }

    /// Checks that nobody has changed the data since the beginning.
    pub fn end(&self) -> Result<(), Error> {
        match &self.path {
            Some(path) if states(path)? != self.before => Err(Error::saved(path, CHANGED)),
            _ => Ok(()),
        }
    }
}

fn states(path: &Path) -> Result<Vec<FileState>, Error> {
    let files = if path.is_dir() { files(path)? } else { vec![path.to_path_buf()] };
    let state = |file: PathBuf| match std::fs::metadata(&file) {
        Ok(data) => (file, data.len(), data.modified().ok(), identity(&data)),
        Err(_) => (file, 0, None, (0, 0, 0, 0)),
    };
    Ok(files.into_iter().map(state).collect())
}

/// Device, inode and the time of the last change. The user cannot set this time.
#[cfg(unix)]
fn identity(data: &Metadata) -> (u64, u64, i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (data.dev(), data.ino(), data.ctime(), data.ctime_nsec())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64, i64, i64) {
    (0, 0, 0, 0)
}

const CHANGED: &str = "the data file has changed since the run was planned: restore it and continue with `strust resume`, \
                       or run the experiment again";

/// Checks that a problem's data file has not changed since the plan.
pub(crate) fn check_unchanged(problem: &ProblemSpec) -> Result<(), Error> {
    let missing = "the data of this run were removed: restore them, or run the experiment again with other data";
    check(problem, missing, CHANGED)
}

/// Checks that a problem's data file is that of rank 0, which has made the plan.
pub(crate) fn check_same_as_rank_0(problem: &ProblemSpec) -> Result<(), Error> {
    let missing = "rank 0 has these data, but this rank does not: put them on a file system that all ranks share";
    check(problem, missing, "the data differ from those of rank 0: give the same file to all ranks")
}

fn check(problem: &ProblemSpec, missing: &str, different: &str) -> Result<(), Error> {
    let Some(path) = path(&problem.parameters) else { return Ok(()) };
    if !path.exists() {
        return Err(Error::saved(&path, missing));
    }
    if problem.checksum.as_deref() == Some(checksum_of(&path)?.as_str()) {
        return Ok(());
    }
    Err(Error::saved(&path, different))
}
