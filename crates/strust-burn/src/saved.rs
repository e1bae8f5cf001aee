//! States in Burn's own files.

use crate::{Error, parameters::Slot};
use burn::tensor::Bytes;
use burn_pack::{DType, Reader, Shape, Tensor, Writer};
use serde::{Deserialize, Serialize};
use std::path::Path;
use strust::saved::Saved;

/// The name of the one tensor of a file.
const NAME: &str = "strust";

/// Everything on which the next step depends, except the module's other tensors and the batch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedOptimizer {
    /// The state of the method.
    pub state: Saved,
    /// The parameters to which it belongs.
    pub slots: Vec<Slot>,
    /// The seed of the numbers that layers draw.
    pub seed: u64,
    /// Steps made so far.
    pub steps: u64,
}

impl SavedOptimizer {
    fn writer(&self) -> Writer {
        let bytes = rmp_serde::to_vec_named(self).expect("numbers and names in memory");
        let shape = Shape::from(vec![bytes.len()]);
        Writer::new(vec![Tensor::new(NAME.into(), DType::U8, shape, None, Bytes::from_bytes_vec(bytes))])
    }
    fn read(reader: &Reader) -> Result<Self, String> {
        let bytes = reader.tensor_data(NAME).map_err(|_| "is a file of Burn, but not a state of strust".to_string())?;
        rmp_serde::from_slice(&bytes).map_err(|error| format!("is damaged: {error}"))
    }
    pub fn to_bytes(&self) -> Result<Bytes, Error> {
        self.writer().into_bytes().map_err(|error| problem(None, error.to_string()))
    }
    pub fn from_bytes(bytes: Bytes) -> Result<Self, Error> {
        let reader = Reader::from_bytes(bytes).map_err(|error| error.to_string());
        reader.and_then(|reader| Self::read(&reader)).map_err(|why| problem(None, why))
    }
    /// Writes a new file beside the old one and renames it, so the file is complete or unchanged.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let written = self.writer().auto_extension(false).overwrite(true).write_to_file(path);
        written.map_err(|error| problem(Some(path), format!("cannot be written: {error}")))
    }
    pub fn load(path: &Path) -> Result<Self, Error> {
        let reader = Reader::from_file_exact(path).map_err(|error| format!("cannot be read: {error}"));
        reader.and_then(|reader| Self::read(&reader)).map_err(|why| problem(Some(path), why))
    }
}

fn problem(path: Option<&Path>, why: String) -> Error {
    Error::State { path: path.map(Into::into), why }
}
