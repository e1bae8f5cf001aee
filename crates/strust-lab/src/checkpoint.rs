//! The state of a job in the middle, versioned, with named leaves and a checksum.
//!
//! Layout: the line `strust-checkpoint 1 <checksum>\n`, then a MessagePack map.

use crate::{Error, files};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{collections::BTreeMap, path::Path};
use strust::{
    objective::Evaluations,
    record::{StepRecord, Verdict},
};

const FORMAT: &str = "1";
const MAGIC: &str = "strust-checkpoint";

/// Everything a job needs to go on as if it had never stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint<S> {
    /// The version of strust that wrote it.
    pub version: String,
    /// The checksum of the job it belongs to.
    pub job: u64,
    /// Length of `records.jsonl` at this point; what follows it is of a future that is run again.
    pub records: u64,
    /// Length of `timings.jsonl` at this point.
    pub timings: u64,
    /// Totals so far.
    pub totals: Totals,
    /// Whether the job is done.
    pub done: bool,
    /// What the problem keeps besides the point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_state: Vec<u8>,
    /// The method's state.
    pub state: S,
}

/// Totals of a job so far.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Evaluations.
    pub evaluations: Evaluations,
    /// Steps accepted.
    pub accepted: u64,
    /// Seconds spent in steps.
    pub seconds: f64,
    /// The trust region in the epoch that is running.
    pub epoch: EpochTotals,
}

/// What a trust region did since the last epoch ended.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct EpochTotals {
    steps: u64,
    accepted: u64,
    radius: f64,
    step_length: f64,
    ratio: f64,
    ratios: u64,
}

impl EpochTotals {
    /// Counts a step; those of other methods are not of interest here.
    pub fn add(&mut self, record: &StepRecord) {
        let Some(region) = &record.region else { return };
        self.steps += 1;
        self.accepted += u64::from(record.verdict == Verdict::Accepted);
        self.radius = region.radius;
        self.step_length += record.step_length;
        if let Some(ratio) = region.ratio {
            self.ratio += ratio;
            self.ratios += 1;
        }
    }

    /// The epoch's numbers by the keys of [`TRUST_REGION`](crate::record::TRUST_REGION); nothing without steps.
    pub fn numbers(&self) -> BTreeMap<String, f64> {
        let steps = self.steps as f64;
        let numbers = [
            ("radius", (self.steps > 0).then_some(self.radius)),
            ("step_length", (self.steps > 0).then_some(self.step_length / steps)),
            ("ratio", (self.ratios > 0).then_some(self.ratio / self.ratios as f64)),
            ("acceptance", (self.steps > 0).then_some(self.accepted as f64 / steps)),
        ];
        numbers.into_iter().filter_map(|(key, number)| Some((key.to_string(), number?))).collect()
    }
}

impl<S: Serialize> Checkpoint<S> {
    /// Writes it, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let body = rmp_serde::to_vec_named(self).map_err(|e| Error::saved(path, e.to_string()))?;
        let mut bytes = format!("{MAGIC} {FORMAT} {:016x}\n", files::checksum(&body)).into_bytes();
        bytes.extend(body);
        files::write(path, &bytes)
    }
}

impl<S: DeserializeOwned> Checkpoint<S> {
    /// Reads it back, for the job with that checksum; `None` if there is no such file.
    pub fn load(path: &Path, job: u64) -> Result<Option<Self>, Error> {
        let Some(body) = body(path, job)? else { return Ok(None) };
        rmp_serde::from_slice(&body).map(Some).map_err(|e| damaged(path, &format!("cannot be read: {e}")))
    }
}

/// Whether the job with that checksum is done, and how long its records and timings are then.
pub fn done(path: &Path, job: u64) -> Result<Option<(u64, u64)>, Error> {
    let Some(body) = body(path, job)? else { return Ok(None) };
    let head: Head = rmp_serde::from_slice(&body).map_err(|e| damaged(path, &format!("cannot be read: {e}")))?;
    Ok(head.done.then_some((head.records, head.timings)))
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::saved(path, format!("the checkpoint {what}; remove the job's folder and resume: this job then starts again"))
}

/// The checkpoint's map, if there is one and it is whole, of this version and of this job.
fn body(path: &Path, job: u64) -> Result<Option<Vec<u8>>, Error> {
    let mut bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("read", path)(e)),
    };
    let damaged = |what: &str| damaged(path, what);

    let end = bytes.iter().position(|&b| b == b'\n').ok_or_else(|| damaged("is truncated"))?;
    let header = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged("is damaged"))?;
    let [MAGIC, format, sum] = header.split(' ').collect::<Vec<_>>()[..] else {
        return Err(damaged("is damaged: it does not begin like one"));
    };
    if format != FORMAT {
        return Err(damaged(&format!("has format {format}, but this program reads format {FORMAT}")));
    }
    let body = &bytes[end + 1..];
    if format!("{:016x}", files::checksum(body)) != sum {
        return Err(damaged("is truncated or damaged: its checksum does not match"));
    }
    // Version and job first: the state of another job need not even parse.
    let head: Head = rmp_serde::from_slice(body).map_err(|e| damaged(&format!("cannot be read: {e}")))?;
    let version = env!("CARGO_PKG_VERSION");
    if head.version != version {
        let why =
            format!("is of strust {}, but this is {version}: results may differ in the last digits", head.version);
        return Err(damaged(&why));
    }
    if head.job != job {
        return Err(damaged("belongs to another experiment or other settings"));
    }
    bytes.drain(..=end);
    Ok(Some(bytes))
}

#[derive(Deserialize)]
struct Head {
    version: String,
    job: u64,
    records: u64,
    timings: u64,
    done: bool,
}
