//! Logs with one JSON value per line. When a job resumes, its logs are cut back to the last checkpoint.

use super::{atomic, stream};
use crate::{
    Error,
    data::{
        Checksum,
        record::{Line, Timing},
    },
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};
use strust_data::read::open_plain;

pub(crate) const RECORDS: &str = "records.jsonl";
pub(crate) const TIMINGS: &str = "timings.jsonl";

/// Passes the number and the value of each line that `keep` accepts to `each`; other lines are not parsed. A log that is
/// `growing` may still be written: a last line that is not complete is left out, and one that does not exist yet has no
/// lines.
pub(crate) fn for_each<T: DeserializeOwned>(
    path: &Path,
    growing: bool,
    keep: impl Fn(&str) -> bool,
    mut each: impl FnMut(usize, T) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut file = match open_plain(path) {
        Ok(file) => BufReader::new(file),
        Err(e) if growing && e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io("read", path)(e)),
    };
    let (mut line, mut number) = (String::new(), 0);
    loop {
        line.clear();
        number += 1;
        if file.read_line(&mut line).map_err(Error::io("read", path))? == 0 || growing && !line.ends_with('\n') {
            return Ok(());
        }
        if keep(&line) {
            let value = serde_json::from_slice(line.as_bytes());
            each(number, value.map_err(|e| Error::saved(path, format!("line {number}: {e}")))?)?;
        }
    }
}

/// The values of these lines.
pub(crate) fn read<T: DeserializeOwned>(
    path: &Path,
    growing: bool,
    keep: impl Fn(&str) -> bool,
) -> Result<Vec<T>, Error> {
    let mut values = Vec::new();
    for_each(path, growing, keep, |_, value| {
        values.push(value);
        Ok(())
    })?;
    Ok(values)
}

/// The state of a log at a checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LogMark {
    /// Its length in bytes.
    pub length: u64,
    /// The checksum of these bytes; `None` if an earlier program wrote the checkpoint.
    pub checksum: Option<u64>,
}

impl LogMark {
    /// Checks that a log ends here, with the same contents.
    pub fn check_end(self, path: &Path) -> Result<(), Error> {
        let found = std::fs::metadata(path).map_or(0, |data| data.len());
        if found != self.length {
            return Err(self.wrong_length(path, found));
        }
        if self.checksum.is_some() {
            self.check(path, open_plain(path).map_err(Error::io("read", path))?)?;
        }
        Ok(())
    }

    /// The checksum of the log up to this point. It must have the same contents.
    fn check(self, path: &Path, file: impl Read) -> Result<Checksum, Error> {
        let (sum, found) = stream::checksum_of(file.take(self.length)).map_err(Error::io("read", path))?;
        if found < self.length {
            return Err(self.wrong_length(path, found));
        }
        if self.checksum.is_some_and(|expected| expected != sum.value()) {
            let why = "the contents were changed: they do not match their checksum; remove the job's folder and resume; \
                       this job then starts again";
            return Err(Error::saved(path, why));
        }
        Ok(sum)
    }

    fn wrong_length(self, path: &Path, found: u64) -> Error {
        let why = format!(
            "{found} bytes, but the checkpoint expects {}: remove the job's folder and resume; this job then starts again",
            self.length
        );
        Error::saved(path, why)
    }
}

/// `records.jsonl`, which depends only on the seed, and `timings.jsonl`.
pub(crate) struct Logs {
    records: Log,
    timings: Log,
}

impl Logs {
    /// Opens both logs and cuts them back to these marks. The run writes all later lines again.
    pub fn open(folder: &Path, [records, timings]: [LogMark; 2]) -> Result<Self, Error> {
        Ok(Self {
            records: Log::open(folder.join(RECORDS), records)?,
            timings: Log::open(folder.join(TIMINGS), timings)?,
        })
    }
    pub fn record(&mut self, line: &Line) -> Result<(), Error> {
        self.records.line(line)
    }
    pub fn timing(&mut self, timing: &Timing) -> Result<(), Error> {
        self.timings.line(timing)
    }
    /// Syncs both logs. Returns their lengths and their checksums for the checkpoint.
    pub fn sync(&mut self) -> Result<[(u64, u64); 2], Error> {
        Ok([self.records.sync()?, self.timings.sync()?])
    }
}

struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    length: u64,
    sum: Checksum,
}

impl Log {
    fn open(path: PathBuf, mark: LogMark) -> Result<Self, Error> {
        atomic::check_own(&path)?;
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(Error::io("write", &path))?;
        let sum = mark.check(&path, &file)?;
        file.set_len(mark.length).map_err(Error::io("write", &path))?;
        file.seek(SeekFrom::End(0)).map_err(Error::io("write", &path))?;
        Ok(Self { path, file: BufWriter::with_capacity(1 << 16, file), length: mark.length, sum })
    }
    fn line(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_vec(value).map_err(|e| Error::saved(&self.path, e.to_string()))?;
        line.push(b'\n');
        self.length += line.len() as u64;
        self.sum.add(&line);
        self.file.write_all(&line).map_err(Error::io("write", &self.path))
    }
    fn sync(&mut self) -> Result<(u64, u64), Error> {
        self.file.flush().and_then(|()| self.file.get_ref().sync_data()).map_err(Error::io("write", &self.path))?;
        Ok((self.length, self.sum.value()))
    }
}
