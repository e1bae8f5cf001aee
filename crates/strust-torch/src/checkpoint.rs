//! Everything that a run needs to resume with the same bits.

use crate::{BatchLoss, Component, Error, Flat, LoadsTo, TorchObjective};
use serde::{Deserialize, Serialize};
use strust::{
    saved::{Load, vector as saved},
    vector::Vector,
};
use tch::{Device, Kind, Tensor};

/// A method's state and the model's buffers, such as the running statistics of batch-norm. The state holds the point,
/// the radius and the step count, which determines the next sample. It is plain data: write it in any format of serde.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "S: Serialize + serde::de::DeserializeOwned")]
pub struct ModelCheckpoint<S, T: Component> {
    /// The method's state.
    pub state: S,
    /// The buffers of the component type.
    #[serde(with = "saved")]
    buffers: Flat<T>,
    /// The buffers of other types, such as counts.
    others: Vec<Vec<f64>>,
}

impl<T: Component, L: BatchLoss> TorchObjective<T, L> {
    /// The state with the model's current buffers.
    #[must_use]
    pub fn checkpoint<S>(&self, state: S) -> ModelCheckpoint<S, T> {
        let others = self.parameters().other_buffers().iter().map(numbers).collect();
        ModelCheckpoint { state, buffers: self.parameters().buffers().to_device(Device::Cpu), others }
    }
    /// Restores the model's buffers and returns the state on the model's device, from which the run resumes.
    pub fn restore<S: Load>(&mut self, checkpoint: &ModelCheckpoint<S, T>) -> Result<S, Error> {
        let ModelCheckpoint { state, buffers, others } = checkpoint;
        let own = self.parameters();
        let lengths: Vec<usize> = own.other_buffers().iter().map(Tensor::numel).collect();
        if own.buffers().shape() != buffers.shape() || lengths != others.iter().map(Vec::len).collect::<Vec<_>>() {
            let (found, wanted) = (buffers.len(), own.buffers().len());
            return Err(Error::Checkpoint(format!(
                "it holds {found} numbers in buffers, but the model has {wanted}: it belongs to another model"
            )));
        }
        self.parameters_mut().set_buffers(buffers, others);
        let _loads = LoadsTo::device(self.parameters().device());
        Ok(S::load(&state.save())?)
    }
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    Vec::try_from(tensor.to_kind(Kind::Double).reshape([-1])).expect("one dimension of double")
}
