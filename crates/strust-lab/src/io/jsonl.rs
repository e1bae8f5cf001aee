//! Logs with one JSON value per line. When a job resumes, its logs are cut back to the last checkpoint.

use crate::{
    Error,
    data::record::{Line, Timing},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

pub(crate) const RECORDS: &str = "records.jsonl";
pub(crate) const TIMINGS: &str = "timings.jsonl";

/// The values of the lines that `keep` accepts. Other lines are not parsed.
pub(crate) fn read<T: DeserializeOwned>(path: &Path, keep: impl Fn(&str) -> bool) -> Result<Vec<T>, Error> {
    let file = BufReader::new(File::open(path).map_err(Error::io("read", path))?);
    let mut values = Vec::new();
    for (i, line) in file.lines().enumerate() {
        let line = line.map_err(Error::io("read", path))?;
        if keep(&line) {
            let value = serde_json::from_str(&line).map_err(|e| Error::saved(path, format!("line {}: {e}", i + 1)))?;
            values.push(value);
        }
    }
    Ok(values)
}

/// The same for a log that may still be written: a last line that is not complete is left out. A log that does not exist
/// yet has no lines.
pub(crate) fn read_so_far<T: DeserializeOwned>(path: &Path, keep: impl Fn(&str) -> bool) -> Result<Vec<T>, Error> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", path)(e)),
    };
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let parse = |(i, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| Error::saved(path, format!("line {}: {e}", i + 1)))
    };
    whole.lines().enumerate().filter(|(_, line)| keep(line)).map(parse).collect()
}

/// An error for a log whose length does not match its checkpoint.
pub(crate) fn wrong_length(path: &Path, found: u64, expected: u64) -> Error {
    let why = format!("{found} bytes, but the checkpoint expects {expected}: remove the job's folder and resume");
    Error::saved(path, why)
}

/// `records.jsonl`, which depends only on the seed, and `timings.jsonl`.
pub(crate) struct Logs {
    records: Log,
    timings: Log,
}

impl Logs {
    pub fn open(folder: &Path, records: u64, timings: u64) -> Result<Self, Error> {
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
    /// Syncs both logs and returns their lengths for the checkpoint.
    pub fn sync(&mut self) -> Result<(u64, u64), Error> {
        Ok((self.records.sync()?, self.timings.sync()?))
    }
}

struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    length: u64,
}

impl Log {
    /// Opens the log and cuts it back to `length`. The run writes all later lines again.
    fn open(path: PathBuf, length: u64) -> Result<Self, Error> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Error::io("write", &path))?;
        let found = file.metadata().map_err(Error::io("read", &path))?.len();
        if found < length {
            return Err(wrong_length(&path, found, length));
        }
        file.set_len(length).map_err(Error::io("write", &path))?;
        file.seek(SeekFrom::End(0)).map_err(Error::io("write", &path))?;
        Ok(Self { path, file: BufWriter::with_capacity(1 << 16, file), length })
    }
    fn line(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_vec(value).map_err(|e| Error::saved(&self.path, e.to_string()))?;
        line.push(b'\n');
        self.length += line.len() as u64;
        self.file.write_all(&line).map_err(Error::io("write", &self.path))
    }
    fn sync(&mut self) -> Result<u64, Error> {
        self.file.flush().and_then(|()| self.file.get_ref().sync_data()).map_err(Error::io("write", &self.path))?;
        Ok(self.length)
    }
}
