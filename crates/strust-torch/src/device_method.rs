//! What the methods on the device have in common.

use crate::{
    BatchLoss, Component, Flat, TorchObjective,
    ledger::{Ledger, Reader},
};
use strust::{Error, config::Config, methods::State, record::StepRecord, sample::Sample};
use tch::{Device, Kind, Tensor};

/// A method whose step is made of operations on tensors alone, with nothing coming back to the host: [`DeviceStr`],
/// [`DeviceSgd`] and [`DeviceAdam`], each making the steps of its namesake in the library.
///
/// What a step changes is written in place, so that a step can be captured once and replayed
/// ([`DeviceRun`](crate::DeviceRun)). A value or a gradient that is not finite freezes the point before it; the error
/// comes when the records are read.
///
/// [`DeviceStr`]: crate::DeviceStr
/// [`DeviceSgd`]: crate::DeviceSgd
/// [`DeviceAdam`]: crate::DeviceAdam
pub trait DeviceMethod<T: Component>: sealed::Step<T> + Sized {
    /// The configuration of its namesake.
    type Config: Config;
    /// The state of its namesake, so that a run may change over.
    type State: State<Point = Flat<T>>;

    /// Starts at the model's parameters; records are read every `read_every` steps.
    fn start<L>(config: Self::Config, f: &TorchObjective<T, L>, read_every: usize) -> Result<Self, Error>
    where
        L: BatchLoss;
    /// Goes on from a state; the model takes its point.
    fn resume<L: BatchLoss>(
        config: Self::Config,
        f: &mut TorchObjective<T, L>,
        state: &Self::State,
        read_every: usize,
    ) -> Result<Self, Error>;
    /// Everything the next step depends on besides the model's buffers; waits for the device.
    fn state<L: BatchLoss>(&mut self, f: &TorchObjective<T, L>) -> Self::State;

    /// One step on one sample.
    fn step<L: BatchLoss>(&mut self, f: &mut TorchObjective<T, L>, sample: &Sample) -> Result<(), Error> {
        self.advance(f, sample);
        self.progress().count()
    }
    /// The records not yet taken; waits for the device. After the records before a breakdown comes its error.
    fn records(&mut self) -> Result<Vec<StepRecord>, Error> {
        self.progress().ledger.take()
    }
    /// How often the host has waited for the device to read records.
    fn reads(&mut self) -> u64 {
        self.progress().ledger.reads()
    }
}

pub(crate) mod sealed {
    use super::Progress;
    use crate::{BatchLoss, Component, TorchObjective, objective::Source};

    /// The step's two halves.
    pub trait Step<T: Component> {
        /// What the device does: no number is looked at, and everything that stays is written in place.
        fn advance<L: BatchLoss>(&mut self, f: &mut TorchObjective<T, L>, on: &impl Source<L>);
        /// What the host counts.
        fn progress(&mut self) -> &mut Progress;
    }
}

/// Steps made, whether all were sound, and their records.
#[derive(Debug)]
pub struct Progress {
    k: u64,
    /// Whether everything was finite so far.
    sound: Tensor,
    ledger: Ledger,
}

impl Progress {
    pub(crate) fn new(k: u64, rows: usize, columns: usize, device: Device, reader: Reader) -> Self {
        let sound = Tensor::ones([0_i64; 0], (Kind::Bool, device));
        Self { k, sound, ledger: Ledger::new(rows, columns, k, device, reader) }
    }
    /// The steps before were made elsewhere.
    pub(crate) fn go_on_at(&mut self, k: u64) {
        self.k = k;
        self.ledger.begin_at(k);
    }
    /// Whether these numbers and all before them are finite, on the device.
    pub(crate) fn is_sound(&mut self, value: &Tensor, squared_norm: &Tensor) -> &Tensor {
        // Nothing times a number is nothing only if that is finite.
        let _ = self.sound.logical_and_(&((value + squared_norm) * 0.0).eq(0.0));
        &self.sound
    }
    pub(crate) fn write(&mut self, row: &[&Tensor]) {
        self.ledger.write(row);
    }
    /// Counts a step whose operations were given to the device.
    pub(crate) fn count(&mut self) -> Result<(), Error> {
        self.k += 1;
        self.ledger.count()
    }
    /// Steps made, up to a breakdown; waits for the device.
    pub(crate) fn k(&mut self) -> u64 {
        self.ledger.read();
        self.ledger.broken_at().unwrap_or(self.k)
    }
}
