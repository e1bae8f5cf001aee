//! Checkpoints: the state of an unfinished job, with a version, named fields and a checksum.
//!
//! Layout: the line `strust-checkpoint 2 <checksum>\n`, then a MessagePack map.

use super::{atomic, jsonl::LogMark, stream};
use crate::{
    Error,
    data::{checksum, totals::Totals},
    team::Team,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::path::{Path, PathBuf};
use strust::{ranks::Group, saved::Saved};

const FORMAT: &str = "2";
const MAGIC: &str = "strust-checkpoint";

/// Everything that a job needs to resume.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// Its file.
    #[serde(skip)]
    pub path: PathBuf,
    /// The version of strust that wrote it.
    pub version: String,
    /// The checksum of the job it belongs to.
    pub job: u64,
    /// Length of `records.jsonl` at this point. Later lines are cut off and written again.
    pub records: u64,
    /// Length of `timings.jsonl` at this point.
    pub timings: u64,
    /// The checksums of both logs up to these lengths. Checkpoints of earlier programs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksums: Option<[u64; 2]>,
    /// Totals so far.
    pub totals: Totals,
    /// Whether the job is done.
    pub done: bool,
    /// The state of the problem in addition to the point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_state: Vec<u8>,
    /// The method's state.
    pub state: Saved,
}

impl Checkpoint {
    /// The logs at this point: `records.jsonl` and `timings.jsonl`.
    pub fn logs(&self) -> [LogMark; 2] {
        let checksum = |i: usize| self.checksums.map(|sums| sums[i]);
        [
            LogMark { length: self.records, checksum: checksum(0) },
            LogMark { length: self.timings, checksum: checksum(1) },
        ]
    }

    /// Writes its file atomically.
    pub fn save(&self) -> Result<(), Error> {
        let body = self.body()?;
        let mut bytes = format!("{MAGIC} {FORMAT} {:016x}\n", checksum(&body)).into_bytes();
        bytes.extend(body);
        atomic::write(&self.path, &bytes)
    }

    /// Reads the checkpoint of the job with that checksum; `None` if there is no file.
    pub fn load(path: &Path, job: u64) -> Result<Option<Self>, Error> {
        body(path, job)?.map(|body| Self::from_body(path, &body)).transpose()
    }

    fn body(&self) -> Result<Vec<u8>, Error> {
        rmp_serde::to_vec_named(self).map_err(|e| self.refuse(e))
    }

    fn from_body(path: &Path, body: &[u8]) -> Result<Self, Error> {
        Ok(Self { path: path.into(), ..parse(path, body)? })
    }

    /// Gives the checkpoint of rank 0 to all ranks; the others pass `None`.
    pub fn shared(own: Option<Self>, path: &Path, team: &mut Team) -> Result<Option<Self>, Error> {
        if team.size() == 1 {
            return Ok(own);
        }
        let mut body = own.map_or_else(|| Ok(Vec::new()), |own| own.body())?;
        team.broadcast(&mut body)?;
        if body.is_empty() { Ok(None) } else { Self::from_body(path, &body).map(Some) }
    }

    /// An error for a part that cannot be used.
    pub fn refuse(&self, why: impl std::fmt::Display) -> Error {
        Error::saved(&self.path, why.to_string())
    }
}

fn parse<T: DeserializeOwned>(path: &Path, body: &[u8]) -> Result<T, Error> {
    rmp_serde::from_slice(body).map_err(|e| damaged(path, &format!("cannot be read: {e}")))
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::saved(path, format!("the checkpoint {what}; remove the job's folder and resume; this job then starts again"))
}

/// The checkpoint's map. It must be complete and belong to this version and this job. `None` if there is no file.
fn body(path: &Path, job: u64) -> Result<Option<Vec<u8>>, Error> {
    let Some(mut bytes) = stream::read_if_there(path)? else { return Ok(None) };
    let damaged = |what: &str| damaged(path, what);

    let end = bytes.iter().position(|&b| b == b'\n').ok_or_else(|| damaged("is truncated"))?;
    let header = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged("is damaged"))?;
    let [MAGIC, format, sum] = header.split(' ').collect::<Vec<_>>()[..] else {
        return Err(damaged("is damaged: its first line is wrong"));
    };
    if format != FORMAT {
        return Err(damaged(&format!("has format {format}, but this program reads format {FORMAT}")));
    }
    let body = &bytes[end + 1..];
    if format!("{:016x}", checksum(body)) != sum {
        return Err(damaged("is truncated or damaged: its checksum does not match"));
    }
    // Check version and job first, because the state of another job may not parse.
    let head: CheckpointOwner = parse(path, body)?;
    let version = env!("CARGO_PKG_VERSION");
    if head.version != version {
        let why = format!(
            "was written by strust {}, but this is {version}: results may differ in the last digits",
            head.version
        );
        return Err(damaged(&why));
    }
    if head.job != job {
        return Err(damaged("belongs to another experiment or other settings"));
    }
    bytes.drain(..=end);
    Ok(Some(bytes))
}

/// The part that is read first.
#[derive(Deserialize)]
struct CheckpointOwner {
    version: String,
    job: u64,
}
