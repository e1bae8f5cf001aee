//! Models in safetensors files, under PyTorch's names.

use crate::{Component, Error, Parameters};
use std::{collections::BTreeMap, fs, path::Path};
use tch::{Device, Tensor, no_grad};

/// A count that PyTorch's batch-norm keeps and the arithmetic never reads.
const UNUSED: &str = "num_batches_tracked";

impl<T: Component> Parameters<T> {
    /// Writes parameters and buffers, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let error = |why: String| Error::ModelFile { path: path.into(), why };
        let tensors: Vec<(&str, Tensor)> =
            self.named().map(|(name, tensor)| (name, tensor.detach().to_device(Device::Cpu).contiguous())).collect();
        // Beside the file, under a name that nobody has; through a link to the file itself.
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

    /// Reads parameters and buffers. Nothing changes unless every name and every shape fits.
    pub fn load(&mut self, path: &Path) -> Result<(), Error> {
        let error = |why: String| Error::ModelFile { path: path.into(), why };
        let read = |e: std::io::Error| error(format!("cannot be read: {e}"));
        if fs::File::open(path).and_then(|file| file.metadata()).map_err(read)?.is_dir() {
            return Err(error("this is a folder".into()));
        }
        // What it says are names of variants, and the path once more.
        let mut found: BTreeMap<String, Tensor> = Tensor::read_safetensors(path)
            .map_err(|_| error("is not a safetensors file, or is truncated".into()))?
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
            if !saved.is_floating_point() || saved.isfinite().all().int64_value(&[]) == 0 {
                let kind = saved.kind();
                return Err(error(format!("`{name}` ({kind:?}) does not hold finite numbers of floating point")));
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
