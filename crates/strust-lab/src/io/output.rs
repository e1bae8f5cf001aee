//! Files that the user names, to be written.

use super::atomic;
use crate::Error;
use std::path::{Path, PathBuf};

/// A file that the user names, to be written. A command gets it only if it writes over none of its inputs and to no file
/// twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFile {
    /// Where it is written: if the name is a link, the file that it leads to.
    place: PathBuf,
}

impl OutputFile {
    /// The files that a command will write. Each must be writable, and none may be one of the `inputs` or another one of
    /// them, whatever the names.
    pub fn prepare<const N: usize>(outputs: [&Path; N], inputs: &[PathBuf]) -> Result<[Self; N], Error> {
        for (i, output) in outputs.iter().enumerate() {
            if inputs.iter().any(|input| is_same(input, output)) {
                return Err(Error::Overwrite(format!(
                    "{}: the command reads this file and would replace it: choose another file to write",
                    output.display()
                )));
            }
            if outputs[..i].iter().any(|other| is_same(other, output)) {
                return Err(Error::Overwrite(format!(
                    "{}: the command would write two files to this place: choose different ones",
                    output.display()
                )));
            }
        }
        let files = outputs.map(|path| Self { place: path.canonicalize().unwrap_or_else(|_| path.into()) });
        files.iter().try_for_each(|file| atomic::prepare(&file.place))?;
        Ok(files)
    }

    /// Writes the file completely or not at all.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        atomic::write(&self.place, bytes)
    }
}

/// Whether two names stand for the same file. It need not exist yet.
#[must_use]
pub fn is_same(a: &Path, b: &Path) -> bool {
    match (identity(a), identity(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => place(a) == place(b),
        _ => false,
    }
}

/// Device and inode of a file, which all its names share.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().map(|data| (data.dev(), data.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// Where a file that does not exist will be.
fn place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.into());
    path.file_name().map_or(folder.clone(), |name| folder.join(name))
}
