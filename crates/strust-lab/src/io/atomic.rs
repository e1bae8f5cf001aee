//! Atomic writes: a file is complete or absent.

use crate::Error;
use serde::Serialize;
use std::{ffi::OsStr, fs, io::Write, path::Path};

const PREFIX: &str = ".strust-";
const SUFFIX: &str = ".tmp";

/// Removes temporary files that killed writers left in a folder.
pub(crate) fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if is_temporary(&entry.file_name()) {
            // An unused file does no harm, so errors are ignored.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a file has the name of a temporary file of [`write()`].
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

/// Writes the file completely or not at all: writes a temporary file in the same folder, syncs it and renames it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    // Follow a link, and keep the permissions of the file.
    let real = path.canonicalize().unwrap_or_else(|_| path.into());
    let path = real.as_path();
    let existing = replaceable(path)?;
    let (mut file, folder) = temporary(path)?;
    // The errors of its own `Write` would name the temporary file, which the user does not know.
    file.as_file_mut().write_all(bytes).map_err(Error::io("write", path))?;
    file.as_file().sync_all().map_err(Error::io("write", path))?;
    let file = file.persist(path).map_err(|e| Error::Io { doing: "write", path: path.into(), source: e.error })?;
    match existing {
        Some(permissions) => file.set_permissions(permissions),
        None => readable(&file),
    }
    .map_err(Error::io("write", path))?;
    // Sync the folder, because it stores the rename.
    fs::File::open(folder).and_then(|f| f.sync_all()).map_err(Error::io("sync", folder))
}

/// Checks that [`write()`] can write the file: it may be replaced, and its folder is writable.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    replaceable(path)?;
    temporary(path).map(|_| ())
}

/// The permissions of an existing file. It must be a regular, writable file, because a rename would replace anything.
fn replaceable(path: &Path) -> Result<Option<fs::Permissions>, Error> {
    let Ok(data) = fs::metadata(path) else { return Ok(None) };
    if !data.is_file() {
        let what = if data.is_dir() { "a folder" } else { "not a regular file" };
        return Err(Error::saved(path, format!("cannot be written: this is {what}; choose another name")));
    }
    if data.permissions().readonly() {
        return Err(Error::io("write", path)(std::io::ErrorKind::PermissionDenied.into()));
    }
    Ok(Some(data.permissions()))
}

/// A new temporary file in the folder of `path`, and that folder.
fn temporary(path: &Path) -> Result<(tempfile::NamedTempFile, &Path), Error> {
    // The parent of a bare file name is empty, which cannot be opened as a folder.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(folder);
    let file = made.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::saved(path, format!("cannot be written: there is no folder {}", folder.display()))
        }
        // Do not name the temporary file, as above.
        kind => Error::io("write", path)(kind.into()),
    })?;
    Ok((file, folder))
}

/// Temporary files are private to their owner; results should be readable as usual.
#[cfg(unix)]
fn readable(file: &fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_: &fs::File) -> std::io::Result<()> {
    Ok(())
}

/// Writes a value as indented JSON.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| Error::saved(path, e.to_string()))?;
    text.push(b'\n');
    write(path, &text)
}

/// Creates a folder and its parents.
pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("create the folder", path))
}
