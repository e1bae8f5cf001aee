//! The lock of a results folder.

use crate::Error;
use std::{
    fs::{File, TryLockError},
    path::Path,
};

/// Locks a folder, so that only one program uses it. The system releases the lock when the program ends.
pub(crate) fn lock(folder: &Path) -> Result<File, Error> {
    // On Unix the folder itself is locked; on other systems, a file in it.
    let file = if cfg!(unix) { File::open(folder) } else { File::create(folder.join(".lock")) };
    let file = file.map_err(Error::io("open", folder))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(Error::saved(folder, "another strust is running in this folder: wait for it, or stop it"))
        }
        // Some file systems have no locks; the program runs without one.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}
