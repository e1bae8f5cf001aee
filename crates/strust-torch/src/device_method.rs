//! The common part of the methods on the device.

use crate::{BatchLoss, Component, Flat, TorchObjective};
use strust::{
    Error, config::Config, methods::State, objective::Objective, record::StepRecord, sample::Sample, saved::Load,
    vector::Vector,
};
use tch::{Device, Kind, Tensor};

/// A method whose step consists only of operations on tensors, so that no number returns to the host: [`DeviceAuto`],
/// [`DeviceStr`], [`DeviceNewton`], [`DeviceSgd`] and [`DeviceAdam`]. Each makes the steps of the library's method of the same name.
///
/// A step writes its results in place, so that it can be captured once and replayed ([`DeviceRun`](crate::DeviceRun)).
/// If a value or a gradient is not finite, the point stays as it was before that step. The error is returned when the
/// records are read.
///
/// [`DeviceAuto`]: crate::DeviceAuto
/// [`DeviceStr`]: crate::DeviceStr
/// [`DeviceNewton`]: crate::DeviceNewton
/// [`DeviceSgd`]: crate::DeviceSgd
/// [`DeviceAdam`]: crate::DeviceAdam
pub trait DeviceMethod<T: Component>: sealed::DeviceStep<T> + Sized {
    /// The configuration of the library's method.
    type Config: Config;
    /// The state of the library's method, so that a run can switch between the two.
    type State: State<Point = Flat<T>> + Load;

    /// Starts at the model's parameters. Records are read every `read_every` steps.
    fn start<L>(config: Self::Config, f: &TorchObjective<T, L>, read_every: usize) -> Result<Self, Error>
    where
        L: BatchLoss,
    {
        Self::at(config, f, None, read_every)
    }
    /// Resumes from a state and sets the model's parameters to its point.
    fn resume<L: BatchLoss>(
        config: Self::Config,
        f: &mut TorchObjective<T, L>,
        state: &Self::State,
        read_every: usize,
    ) -> Result<Self, Error> {
        f.check_point(state.point())?;
        f.set(state.point());
        Self::at(config, f, Some(state), read_every)
    }
    /// The method at a state whose point the model has, or at the start.
    #[doc(hidden)]
    fn at<L: BatchLoss>(
        config: Self::Config,
        f: &TorchObjective<T, L>,
        state: Option<&Self::State>,
        read_every: usize,
    ) -> Result<Self, Error>;
    /// Everything that the next step depends on, except the model's buffers. Waits for the device.
    fn state<L: BatchLoss>(&mut self, f: &TorchObjective<T, L>) -> Self::State;

    /// Makes one step on one sample.
    fn step<L: BatchLoss>(&mut self, f: &mut TorchObjective<T, L>, sample: &Sample) -> Result<(), Error> {
        self.advance(f, sample);
        self.progress().count()
    }
    /// The records that were not taken yet. Waits for the device. If the run broke down, the next call returns the
    /// error.
    fn records(&mut self) -> Result<Vec<StepRecord>, Error> {
        self.progress().take()
    }
    /// How often the host has waited for the device to read records.
    fn reads(&mut self) -> u64 {
        self.progress().reads()
    }
}

pub(crate) mod sealed {
    use crate::{BatchLoss, Component, TorchObjective, device_records::DeviceProgress, objective::BatchSource};

    /// The two halves of a step.
    pub trait DeviceStep<T: Component> {
        /// The device's half. It reads no number and writes in place all that is kept.
        fn advance<L: BatchLoss>(&mut self, f: &mut TorchObjective<T, L>, on: &impl BatchSource<L>);
        /// The host's half: the counters.
        fn progress(&mut self) -> &mut DeviceProgress;
    }
}

/// A number on the device, in double precision.
pub(crate) fn number(value: f64, device: Device) -> Tensor {
    Tensor::full([0_i64; 0], value, (Kind::Double, device))
}

/// A copy of a state's vector on the model's device, or zeros at the start.
pub(crate) fn vector<T: Component, L: BatchLoss>(f: &TorchObjective<T, L>, saved: Option<&Flat<T>>) -> Flat<T> {
    let mut vector = f.parameters().flat().zeros_like();
    if let Some(saved) = saved {
        vector.copy_from(saved);
    }
    vector
}
