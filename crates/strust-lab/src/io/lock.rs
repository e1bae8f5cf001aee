//! The lock of a folder of results.

use crate::Error;
use std::{
    fs::{File, TryLockError},
    path::Path,
};

/// Locks a folder: only one program at a time works in it. The lock ends with the program, however it ends.
pub(crate) fn lock(folder: &Path) -> Result<File, Error> {
    // On Unix a folder can be locked itself; elsewhere a file in it is.
    let file = if cfg!(unix) { File::open(folder) } else { File::create(folder.join(".lock")) };
    let file = file.map_err(Error::io("open", folder))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(Error::saved(folder, "another strust is working in this folder: wait for it, or stop it first"))
        }
        // On a file system without locks the program works all the same.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}
