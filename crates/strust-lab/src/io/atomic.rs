//! Atomic writes: a file is complete or absent.

use crate::Error;
use serde::Serialize;
use std::{
    ffi::OsStr,
    fs::{self, TryLockError},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};
use tempfile::{NamedTempFile, PersistError};

const PREFIX: &str = ".strust-";
const SUFFIX: &str = ".tmp";

/// Removes temporary files that killed writers left in a folder.
///
/// A writer locks its file ([`temporary`]). The system releases the lock when the program ends, however it ends, so a file
/// that can be locked has no writer: in no other container and, if the file system shares its locks, on no other machine. Where
/// files cannot be locked, they stay.
pub(crate) fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        // Nothing else of this name was made here. Opening a pipe could wait forever.
        if is_temporary(&entry.file_name())
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = fs::OpenOptions::new().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
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

/// Writes the file completely or not at all: writes a temporary file in the same folder, syncs it and renames it. The file
/// must not be a link: a folder of results may come from somebody else. The user names an [`OutputFile`](super::output).
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let permissions = replaceable(path)?;
    publish(path, bytes, permissions.as_ref(), |file| file.persist(path).map(|_| true)).map(|_| ())
}

/// Writes a new file as `write` does. Returns `false`, and changes nothing, if the name is taken, even if another program
/// takes it at the last moment.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<bool, Error> {
    // A link that leads nowhere takes the name, too.
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    publish(path, bytes, None, |file| match file.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(e) if e.error.kind() == ErrorKind::AlreadyExists => Ok(false),
        // Some file systems can neither rename without replacing nor make hard links.
        Err(e) if matches!(e.error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
            match fs::File::create_new(path) {
                Ok(_) => {}
                Err(taken) if taken.kind() == ErrorKind::AlreadyExists => return Ok(false),
                Err(error) => return Err(PersistError { error, file: e.file }),
            }
            // If this fails, nobody needs the empty file.
            e.file.persist(path).map(|_| true).inspect_err(|_| drop(fs::remove_file(path)))
        }
        Err(e) => Err(e),
    })
}

/// Writes a temporary file, gives it its name, and syncs the folder, which stores the name. Returns whether it has the name.
fn publish(
    path: &Path,
    bytes: &[u8],
    permissions: Option<&fs::Permissions>,
    rename: impl Fn(NamedTempFile) -> Result<bool, PersistError>,
) -> Result<bool, Error> {
    let mut tries = 3;
    loop {
        let (file, folder) = filled(path, bytes, permissions)?;
        tries -= 1;
        match rename(file) {
            // Another machine that does not see the lock has removed the temporary file.
            Err(e) if e.error.kind() == ErrorKind::NotFound && tries > 0 => {}
            Err(e) => return Err(Error::io("write", path)(e.error)),
            Ok(named) => {
                fs::File::open(folder).and_then(|f| f.sync_all()).map_err(Error::io("sync", folder))?;
                return Ok(named);
            }
        }
    }
}

/// A temporary file with these bytes, synced, and its folder. It has the permissions that the file has or will have.
fn filled<'a>(
    path: &'a Path,
    bytes: &[u8],
    permissions: Option<&fs::Permissions>,
) -> Result<(NamedTempFile, &'a Path), Error> {
    let (mut named, folder) = temporary(path)?;
    // The errors of its own `Write` would name the temporary file, which the user does not know.
    let file = named.as_file_mut();
    file.write_all(bytes)
        .and_then(|()| permissions.map_or_else(|| readable(file), |same| file.set_permissions(same.clone())))
        .and_then(|()| file.sync_all())
        .map_err(Error::io("write", path))?;
    Ok((named, folder))
}

/// Prepares [`write()`]: checks that the file may be replaced and that its folder is writable, and removes temporary files that
/// killed programs left there.
pub(crate) fn prepare(path: &Path) -> Result<(), Error> {
    replaceable(path)?;
    let (_, folder) = temporary(path)?;
    sweep(folder);
    Ok(())
}

/// The permissions of an existing file. It must be a regular, writable file, because a rename would replace anything.
fn replaceable(path: &Path) -> Result<Option<fs::Permissions>, Error> {
    let Ok(data) = fs::symlink_metadata(path) else { return Ok(None) };
    if data.is_symlink() {
        return Err(Error::saved(path, LINK));
    }
    if !data.is_file() {
        let what = if data.is_dir() { "a folder" } else { "not a regular file" };
        return Err(Error::saved(path, format!("cannot be written: this is {what}; choose another name")));
    }
    if data.permissions().readonly() {
        return Err(Error::io("write", path)(ErrorKind::PermissionDenied.into()));
    }
    Ok(Some(data.permissions()))
}

/// A new temporary file in the folder of `path`, and that folder. It is locked, so that nobody takes it for a left one.
fn temporary(path: &Path) -> Result<(NamedTempFile, &Path), Error> {
    // The parent of a bare file name is empty, which cannot be opened as a folder.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    loop {
        let made = tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(folder);
        let file = made.map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                Error::saved(path, format!("cannot be written: there is no folder {}", folder.display()))
            }
            // Do not name the temporary file, as above.
            kind => Error::io("write", path)(kind.into()),
        })?;
        // Another program may have found it before it was locked, and removes it or has done so.
        match file.as_file().try_lock() {
            Err(TryLockError::WouldBlock) => {}
            Ok(()) if !file.path().exists() => {}
            // Some file systems have no locks; nobody removes files there.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok((file, folder)),
        }
    }
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

const LINK: &str = "cannot be written: this is a link; remove it, so that nothing is written to another place";

/// Checks that a file in a folder of results can be written in place: it does not exist, or it is a regular file without
/// another name.
pub(crate) fn check_own(path: &Path) -> Result<(), Error> {
    replaceable(path)?;
    if fs::symlink_metadata(path).is_ok_and(|data| names(&data) > 1) {
        let why = "cannot be written: the file has a second name (a hard link), which would change too; copy the folder \
                   with `cp -r`, and use the copy";
        return Err(Error::saved(path, why));
    }
    Ok(())
}

#[cfg(unix)]
fn names(data: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(data)
}

#[cfg(not(unix))]
fn names(_: &fs::Metadata) -> u64 {
    1
}

/// A folder in a folder of results, to write into it. The user names the folder of results, so it may be a link. A link in
/// it could lead to any other place.
pub(crate) fn inside<N: AsRef<Path>>(folder: &Path, names: impl IntoIterator<Item = N>) -> Result<PathBuf, Error> {
    let mut path = folder.to_path_buf();
    for name in names {
        path.push(name);
        if path.is_symlink() {
            return Err(Error::saved(&path, LINK));
        }
    }
    Ok(path)
}

/// Creates a folder and its parents.
pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("create the folder", path))
}
