//! Models in safetensors files, under PyTorch's names.

use crate::{Component, Error, Parameters};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use tch::{Device, Tensor, no_grad};

/// A count that PyTorch's batch-norm keeps and the arithmetic never reads.
const UNUSED: &str = "num_batches_tracked";

impl<T: Component> Parameters<T> {
    /// Writes parameters and buffers, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let error = |why: String| Error::ModelFile { path: path.into(), why };
        let tensors: Vec<(&str, Tensor)> =
            self.named().map(|(name, tensor)| (name, tensor.detach().to_device(Device::Cpu).contiguous())).collect();
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".part");
        let unfinished = PathBuf::from(unfinished);
        let written = Tensor::write_safetensors(&tensors, &unfinished)
            .map_err(|e| e.to_string())
            .and_then(|()| fs::File::open(&unfinished).and_then(|f| f.sync_all()).map_err(|e| e.to_string()))
            .and_then(|()| fs::rename(&unfinished, path).map_err(|e| e.to_string()));
        written.map_err(|e| {
            let _ = fs::remove_file(&unfinished);
            error(format!("cannot be written: {e}"))
        })
    }

    /// Reads parameters and buffers. Nothing changes unless every name and every shape fits.
    pub fn load(&mut self, path: &Path) -> Result<(), Error> {
        let error = |why: String| Error::ModelFile { path: path.into(), why };
        fs::File::open(path).map_err(|e| error(format!("cannot be read: {e}")))?;
        let mut found: BTreeMap<String, Tensor> = Tensor::read_safetensors(path)
            .map_err(|e| error(format!("is not a safetensors file, or is truncated: {e}")))?
            .into_iter()
            .filter(|(name, _)| !name.ends_with(UNUSED))
            .collect();
        let mut pairs = Vec::new();
        for (name, tensor) in self.named() {
            let Some(saved) = found.remove(name) else {
                return Err(error(format!("there is no `{name}`: it is of another architecture")));
            };
            if saved.size() != tensor.size() {
                let (found, wanted) = (saved.size(), tensor.size());
                return Err(error(format!(
                    "`{name}` has shape {found:?}, but the model's is {wanted:?}: it is of another architecture"
                )));
            }
            pairs.push((tensor.shallow_clone(), saved));
        }
        if let Some(name) = found.keys().next() {
            return Err(error(format!("the model has no `{name}`: it is of another architecture")));
        }
        no_grad(|| pairs.iter_mut().for_each(|(tensor, saved)| tensor.copy_(saved)));
        Ok(())
    }
}
