//! Files that are read piece by piece, so that their length does not matter.

use crate::{Error, data::Checksum};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};
use strust_data::read::open_plain;

/// The checksum of everything that a reader gives, and its length.
pub(crate) fn checksum_of(mut reader: impl Read) -> io::Result<(Checksum, u64)> {
    let (mut sum, mut length, mut piece) = (Checksum::EMPTY, 0, vec![0; 1 << 16]);
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok((sum, length)),
            Ok(read) => {
                sum.add(&piece[..read]);
                length += read as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The text of a file of at most `most` bytes that the user names. It may be a pipe, which may never end.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    if read as u64 > most {
        let why = format!("it has more than {most} bytes, which is too long for such a file");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

/// The contents of a file that the program may have written; `None` if there is none.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match read_saved(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", path)(e)),
    }
}

/// The most bytes of a file that the program has written, such as a plan.
const MOST_SAVED: u64 = 1 << 30;

/// The contents of a regular file of at most 1 GiB, such as one that the program has written.
pub fn read_saved(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_plain(path)?;
    if file.metadata()?.len() > MOST_SAVED {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it has more than 1 GiB, which is too long for such a file",
        ));
    }
    let mut bytes = Vec::new();
    file.take(MOST_SAVED).read_to_end(&mut bytes)?;
    Ok(bytes)
}
