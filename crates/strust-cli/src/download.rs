//! Downloads files of known length and checksum, and resumes interrupted downloads. The program `curl` talks to the
//! server: it is on every system, and a TLS library of our own would be the heaviest dependency.

mod curl;

pub use curl::Curl;
use md5::{Digest, Md5};
use std::{
    fs::{File, Metadata, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};
use strust_data::read::open_plain;

/// The number of attempts before the download fails.
const ATTEMPTS: u32 = 5;

/// A file to download.
pub struct Wanted {
    pub url: String,
    pub path: PathBuf,
    pub bytes: u64,
    pub md5: u128,
}

#[derive(Debug, PartialEq, Eq)]
pub enum FetchOutcome {
    /// The file was already there.
    Kept,
    Downloaded,
}

/// Why an attempt failed.
enum AttemptError {
    /// Another attempt may succeed.
    Temporary(String),
    /// Another attempt would fail in the same way.
    Final(String),
}

/// Downloads the file unless it already exists. It is written to a `.part` file and renamed when it is complete and
/// its checksum is correct. `report` receives the number of bytes so far.
pub fn fetch(curl: &Curl, wanted: &Wanted, report: &mut dyn FnMut(u64)) -> Result<FetchOutcome, String> {
    let Wanted { path, md5, .. } = wanted;
    let part = path.with_file_name(format!("{}.part", path.file_name().unwrap_or_default().to_string_lossy()));
    let mut file = loop {
        match open_plain(path) {
            Ok(mut file) => {
                let found = checksum(&mut file).map_err(failed("read", path))?;
                return if found == *md5 {
                    Ok(FetchOutcome::Kept)
                } else {
                    let path = path.display();
                    Err(format!(
                        "{path} exists, but it is a different file: its MD5 is {found:032x} instead of {md5:032x}. Move it, or choose another folder with --to"
                    ))
                };
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed("read", path)(e)),
        }
        let file = open_part(&part)?;
        // Some file systems have no locks; the download works without one.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(format!(
                "{}: another program is downloading this file: wait for it, or stop it",
                part.display()
            ));
        }
        // Another program may have finished this part and renamed it before this one had the lock.
        if is_at(&file, &part).map_err(failed("write", &part))? {
            break Locked(file);
        }
    };
    complete(curl, wanted, &part, &mut file.0, report)
}

/// The part of a file while this program downloads it.
///
/// Closing the file is not enough: a child process that another thread is starting holds a copy of it for a moment.
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Nothing is left to do if this fails: the system releases the lock when the program ends.
        let _ = self.0.unlock();
    }
}

/// Downloads the rest of a file into its part, checks it and gives it its name.
fn complete(
    curl: &Curl,
    wanted: &Wanted,
    part: &Path,
    file: &mut File,
    report: &mut dyn FnMut(u64),
) -> Result<FetchOutcome, String> {
    let Wanted { url, path, bytes, md5 } = wanted;
    let manual = || {
        let path = path.display();
        format!(
            "\nTo continue without the network, save the file as {path} ({bytes} bytes, MD5 {md5:032x}); then run the same command to check it"
        )
    };
    let mut attempt = 0;
    while let Err(error) = download_rest(curl, wanted, file, report) {
        attempt += 1;
        let why = match error {
            AttemptError::Temporary(_) if attempt < ATTEMPTS => {
                std::thread::sleep(Duration::from_millis(100) * attempt);
                continue;
            }
            AttemptError::Temporary(why) | AttemptError::Final(why) => why,
        };
        let saved = match file.metadata().map_or(0, |data| data.len()) {
            0 => {
                // The file is empty, so a failure to remove it does no harm.
                let _ = std::fs::remove_file(part);
                String::new()
            }
            saved => format!(". {saved} of {bytes} bytes are saved; run the same command again to resume"),
        };
        return Err(format!("{url}: {why}{saved}{}", manual()));
    }
    let found = checksum(file).map_err(failed("read", part))?;
    if found != *md5 {
        std::fs::remove_file(part).map_err(failed("remove", part))?;
        return Err(format!(
            "{url}: the downloaded file has the MD5 {found:032x} instead of {md5:032x} and was deleted. Try again, or give another URL with --from{}",
            manual()
        ));
    }
    file.sync_all().map_err(failed("write", part))?;
    std::fs::rename(part, path).map_err(failed("write", path))?;
    Ok(FetchOutcome::Downloaded)
}

fn failed(doing: &str, path: &Path) -> impl Fn(std::io::Error) -> String {
    move |e| format!("cannot {doing} {}: {e}", path.display())
}

/// Opens or creates the part of a file. It must be a file of its own: a link would lead the download to another file.
fn open_part(part: &Path) -> Result<File, String> {
    let failed = failed("write", part);
    loop {
        let found = match part.symlink_metadata() {
            Ok(found) if !found.is_file() => {
                return Err(format!("{} is not a regular file: remove it and repeat the command", part.display()));
            }
            Ok(_) => true,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
            Err(e) => return Err(failed(e)),
        };
        // A new file is never created through a link.
        let opened = OpenOptions::new().read(true).write(true).create_new(!found).open(part);
        // Another program may rename or create it at any time.
        let changed = if found { std::io::ErrorKind::NotFound } else { std::io::ErrorKind::AlreadyExists };
        match opened {
            Ok(file) if is_at(&file, part).map_err(&failed)? => return Ok(file),
            Ok(_) => {}
            Err(e) if e.kind() == changed => {}
            Err(e) => return Err(failed(e)),
        }
    }
}

/// Whether a path still leads to an open file, without a link.
fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    match path.symlink_metadata() {
        Ok(found) => Ok(found.is_file() && same_file(&found, &file.metadata()?)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(unix)]
fn same_file(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn same_file(a: &Metadata, b: &Metadata) -> bool {
    a.len() == b.len()
}

/// Requests the missing part of the file and appends it.
fn download_rest(
    curl: &Curl,
    wanted: &Wanted,
    file: &mut File,
    report: &mut dyn FnMut(u64),
) -> Result<(), AttemptError> {
    let writing = |e: std::io::Error| AttemptError::Final(format!("cannot write: {e}"));
    let mut have = file.seek(SeekFrom::End(0)).map_err(writing)?;
    let restart = |file: &mut File| file.set_len(0).and_then(|()| file.rewind()).map_err(writing);
    if have > wanted.bytes {
        restart(file)?;
        have = 0;
    }
    report(have);
    if have == wanted.bytes {
        return Ok(());
    }
    let mut response = curl.get(&wanted.url, have).map_err(AttemptError::Final)?;
    let other = |total: &str| {
        AttemptError::Final(format!(
            "the server's file has {total} bytes instead of {}: it is a different file",
            wanted.bytes
        ))
    };
    match response.code {
        206 if have > 0 => {
            let range = response.header("content-range").unwrap_or_default();
            let (part, total) = range.split_once('/').unwrap_or_default();
            if !part.starts_with(&format!("bytes {have}-")) {
                restart(file)?;
                return Err(AttemptError::Temporary(format!(
                    "the program requested byte {have}, but the server sent {range:?}"
                )));
            }
            if total != wanted.bytes.to_string() {
                return Err(other(total));
            }
        }
        // The server sends the whole file and ignores the range.
        200 => {
            let total = response.header("content-length");
            if let Some(total) = total.filter(|total| *total != wanted.bytes.to_string()) {
                return Err(other(total));
            }
            restart(file)?;
            have = 0;
        }
        416 => {
            restart(file)?;
            return Err(AttemptError::Temporary(format!("the server cannot resume at byte {have}")));
        }
        code => {
            let why = format!("the server returned {}", response.status);
            return Err(if code >= 500 { AttemptError::Temporary(why) } else { AttemptError::Final(why) });
        }
    }
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = match response.body.read(&mut piece) {
            Ok(0) if have < wanted.bytes => {
                let why = response.why_it_ended().unwrap_or_else(|| "it ended early".into());
                return Err(AttemptError::Temporary(format!("the connection broke ({why})")));
            }
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(AttemptError::Temporary(format!("the connection broke ({e})"))),
        };
        have += read as u64;
        if have > wanted.bytes {
            restart(file)?;
            return Err(other("more"));
        }
        file.write_all(&piece[..read]).map_err(writing)?;
        report(have);
    }
}

fn checksum(file: &mut File) -> std::io::Result<u128> {
    let (mut digest, mut piece) = (Md5::new(), vec![0; 1 << 16]);
    file.rewind()?;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(u128::from_be_bytes(digest.finalize().into())),
            Ok(read) => digest.update(&piece[..read]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests;
