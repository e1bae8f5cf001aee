//! The one function that opens files.

use std::{
    fs::{File, Metadata},
    io,
    path::Path,
};

/// Opens a regular file, to read it. A folder, a pipe or a device is refused: opening a pipe may wait forever, and a
/// device may never end.
///
/// ```
/// # #[cfg(unix)]
/// assert_eq!(strust_data::read::open_plain("/dev/zero".as_ref()).unwrap_err().to_string(), "it is not a regular file");
/// ```
pub fn open_plain(path: &Path) -> io::Result<File> {
    // First, because opening a pipe waits for its other end.
    check(&std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    // The name may have changed its meaning in between.
    check(&file.metadata()?)?;
    Ok(file)
}

fn check(about: &Metadata) -> io::Result<()> {
    if about.is_file() {
        return Ok(());
    }
    let what = if about.is_dir() { "it is a folder" } else { "it is not a regular file" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}
