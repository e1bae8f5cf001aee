//! Models in safetensors files, under PyTorch's names.

use crate::{Component, Error, ModelParameters};
use std::{collections::BTreeMap, fs, path::Path};
use strust_data::read::open_plain;
use tch::{Device, Tensor, no_grad};

/// A count that PyTorch's batch-norm saves. No computation uses it.
const UNUSED: &str = "num_batches_tracked";

impl<T: Component> ModelParameters<T> {
    /// Writes parameters and buffers. The file is either complete or unchanged.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let error = |why: String| Error::ModelFile { path: path.into(), why };
        let tensors: Vec<(&str, Tensor)> =
            self.named().map(|(name, tensor)| (name, tensor.detach().to_device(Device::Cpu).contiguous())).collect();
        // First to a new temporary folder next to the file. A link is resolved, so that its target is replaced.
        let place = path.canonicalize().unwrap_or_else(|_| path.into());
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let space = tempfile::tempdir_in(folder).map_err(|e| error(format!("cannot be written: {}", e.kind())))?;
        let unfinished = space.path().join("model");
        Tensor::write_safetensors(&tensors, &unfinished)
            .map_err(|e| e.to_string())
            .and_then(|()| fs::File::open(&unfinished).and_then(|f| f.sync_all()).map_err(|e| e.to_string()))
            .and_then(|()| fs::rename(&unfinished, &place).map_err(|e| e.to_string()))
            .map_err(|e| error(format!("cannot be written: {e}")))
    }

    /// Reads parameters and buffers. The model stays unchanged unless every name and every shape fits.
    pub fn load(&mut self, path: &Path) -> Result<(), Error> {
        let error = |why: String| Error::ModelFile { path: path.into(), why };
        let read = |e: std::io::Error| error(format!("cannot be read: {e}"));
        open_plain(path).map_err(read)?;
        // The error of tch has only the names of enum variants and the path, so it is replaced.
        let mut found: BTreeMap<String, Tensor> = Tensor::read_safetensors(path)
            .map_err(|_| error("is not a safetensors file, or is truncated".into()))?
            .into_iter()
            .filter(|(name, _)| !name.ends_with(UNUSED))
            .collect();
        let mut pairs = Vec::new();
        for (name, tensor) in self.named() {
            let Some(saved) = found.remove(name) else {
                return Err(error(format!("there is no `{name}`: the file has another architecture")));
            };
            if saved.size() != tensor.size() {
                let (found, wanted) = (saved.size(), tensor.size());
                return Err(error(format!(
                    "`{name}` has shape {found:?}, but the model's is {wanted:?}: the file has another architecture"
                )));
            }
            if !saved.is_floating_point() || saved.isfinite().all().int64_value(&[]) == 0 {
                let kind = saved.kind();
                return Err(error(format!("`{name}` ({kind:?}) does not hold finite numbers of floating point")));
            }
            pairs.push((tensor.shallow_clone(), saved));
        }
        if let Some(name) = found.keys().next() {
            return Err(error(format!("the model has no `{name}`: the file has another architecture")));
        }
        no_grad(|| pairs.iter_mut().for_each(|(tensor, saved)| tensor.copy_(saved)));
        Ok(())
    }
}
