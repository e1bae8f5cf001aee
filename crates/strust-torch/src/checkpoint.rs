//! Everything a run needs to go on as if it had never stopped.

use crate::{BatchLoss, Component, Error, Flat, TorchObjective};
use serde::{Deserialize, Serialize};
use strust::{
    methods::{AdamState, LineSearchState, SgdState, StrState},
    vector::{Vector, saved},
};
use tch::{Device, Kind, Tensor};

/// A method's state, which holds the point, the radius and the step count (and so the next sample), with the model's
/// buffers, such as the running statistics of batch-norm. Plain data: write it in any format of serde.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "S: Serialize + serde::de::DeserializeOwned")]
pub struct Checkpoint<S, T: Component> {
    /// The method's state.
    pub state: S,
    /// Buffers of the component type.
    #[serde(with = "saved")]
    buffers: Flat<T>,
    /// Buffers of other types, such as counts.
    others: Vec<Vec<f64>>,
}

/// A state whose vectors can be moved; a loaded one is on the CPU.
pub trait OnDevice {
    /// The same state on a device.
    #[must_use]
    fn on(self, device: Device) -> Self;
}

macro_rules! on_device {
    ($($state:ident { $($vector:ident),* })*) => {$(
        impl<T: Component> OnDevice for $state<Flat<T>> {
            fn on(self, device: Device) -> Self {
                Self { $($vector: self.$vector.to_device(device),)* ..self }
            }
        }
    )*};
}
on_device! {
    StrState { x }
    SgdState { x, velocity }
    AdamState { x, mean, square }
    LineSearchState { x }
}

impl<T: Component, L: BatchLoss> TorchObjective<T, L> {
    /// The state with the model's buffers as they are now.
    #[must_use]
    pub fn checkpoint<S>(&self, state: S) -> Checkpoint<S, T> {
        let others = self.parameters().other_buffers().iter().map(numbers).collect();
        Checkpoint { state, buffers: self.parameters().buffers().to_device(Device::Cpu), others }
    }
    /// Gives the model its buffers back; the state, on the model's device, goes on from there.
    pub fn restore<S: OnDevice>(&mut self, checkpoint: Checkpoint<S, T>) -> Result<S, Error> {
        let Checkpoint { state, buffers, others } = checkpoint;
        let device = self.parameters().device();
        let own = self.parameters();
        let lengths: Vec<usize> = own.other_buffers().iter().map(Tensor::numel).collect();
        if own.buffers().shape() != buffers.shape() || lengths != others.iter().map(Vec::len).collect::<Vec<_>>() {
            let (found, wanted) = (buffers.len(), own.buffers().len());
            return Err(Error::Checkpoint(format!(
                "it holds {found} numbers in buffers, but the model has {wanted}: it is of another model"
            )));
        }
        self.parameters_mut().set_buffers(&buffers, &others);
        Ok(state.on(device))
    }
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    Vec::try_from(tensor.to_kind(Kind::Double).reshape([-1])).expect("one dimension of double")
}
