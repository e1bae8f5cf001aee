//! Runs steps on the device from samples that are queued there: operation by operation, or captured once as a CUDA
//! graph and replayed.

use crate::{
    Component, DeviceMethod, Error, QueuedLoss, TorchObjective,
    cuda::{AlgorithmSearch, Graph, OwnStream, hold_off_capture, warn},
    objective::Queued,
    sample_queue::SampleQueue,
};
use serde::{Deserialize, Serialize};
use strust::{sample::Sample, samplers::Sampler};
use tch::Device;

/// Steps before the capture. In them libtorch creates its handles and workspaces and chooses its algorithms, which is
/// not possible during a capture.
const WARM_UP: usize = 12;

/// How a step is launched on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Launch {
    /// Operation by operation.
    Eager,
    /// As one CUDA graph. It is captured after a few steps.
    #[default]
    Graph,
}

/// A run of a [`DeviceMethod`] whose samples are queued on the device. The host launches work and reads no number.
///
/// With [`Launch::Graph`] the first steps run operation by operation. Then one step is captured, and all later steps of
/// the same batch size replay it: forward pass, backward pass, trial, verdict, update and radius are one launch. Both
/// ways make the same steps, up to rounding. If a step cannot be captured, the run continues operation by operation;
/// [`why_eager`](Self::why_eager) and [`take_warnings`](crate::cuda::take_warnings) report the reason.
///
/// A model can be captured if its forward pass launches the same operations each time, with the same shapes, on tensors
/// that stay in the same memory. Values that are kept from step to step must be written in place (`copy_`, `g_add_`),
/// as batch-norm does. The forward pass must not read a number from the device (`double_value`, `nonzero`, a boolean
/// mask as an index), branch on one, copy from the host, or draw random numbers. [`TableLoss`](crate::TableLoss) takes
/// such a model; implement [`QueuedLoss`] for other data.
///
/// Each call takes the objective as an argument, so that the caller can evaluate or save the model between calls. A
/// graph refers to the memory on which it was captured, so every call needs the same objective. A new run on the same
/// objective ends the run before it.
///
/// While a run lives on a GPU, the work of its thread goes to a stream of its own ([`OwnStream`]).
#[derive(Debug)]
pub struct DeviceRun<M> {
    method: M,
    batch: usize,
    /// The number of samples that are copied to the device at a time.
    room: usize,
    k: u64,
    /// Queued steps that are left before the capture.
    warm_up: usize,
    algorithm_search: Option<AlgorithmSearch>,
    why_eager: Option<String>,
    /// Identifies this run to the objective.
    id: u64,
    queue: Option<SampleQueue>,
    // Declared before `stream`, so that it is freed before the stream is returned.
    graph: Option<Graph>,
    stream: Option<OwnStream>,
}

impl<M> DeviceRun<M> {
    /// Starts a run. Samples of `batch` terms are copied to the device `room` at a time, for example those of an epoch.
    /// A sample of another size, such as the last one of an epoch, is prepared on the host.
    pub fn new<T: Component, L: QueuedLoss>(
        f: &mut TorchObjective<T, L>,
        mut method: M,
        batch: usize,
        room: usize,
        launch: Launch,
    ) -> Self
    where
        M: DeviceMethod<T>,
    {
        let device = f.parameters().device();
        let room = room.max(1);
        let stream = match launch {
            Launch::Eager => Err(Error::Graph("none was asked for".into())),
            Launch::Graph if f.loss().draws() => {
                Err(Error::Graph("the loss draws random numbers, which a replay would not repeat for its trial".into()))
            }
            Launch::Graph => OwnStream::on(device),
        };
        let why_eager = stream.as_ref().err().map(ToString::to_string);
        let (k, id) = (method.progress().k(), f.begin_run());
        let algorithm_search = matches!(device, Device::Cuda(_)).then(AlgorithmSearch::start);
        Self {
            method,
            batch,
            room,
            k,
            warm_up: WARM_UP,
            algorithm_search,
            why_eager,
            id,
            queue: None,
            graph: None,
            stream: stream.ok(),
        }
    }

    /// Makes `count` steps on the sampler's next samples. The host waits only when it reads the method's records.
    pub fn steps<T: Component, L: QueuedLoss>(
        &mut self,
        f: &mut TorchObjective<T, L>,
        sampler: &mut (impl Sampler + ?Sized),
        count: u64,
    ) -> Result<(), Error>
    where
        M: DeviceMethod<T>,
    {
        if f.run() != self.id {
            return Err(Error::Graph("another run was started on this objective, or it is another objective".into()));
        }
        let draw = |k| {
            let mut sample = Sample::default();
            sampler.draw(k, &mut sample);
            sample
        };
        let samples: Vec<Sample> = (self.k..self.k + count).map(draw).collect();
        for same in samples.chunk_by(|a, b| a.len() == b.len()) {
            if same[0].len() == self.batch {
                same.chunks(self.room).try_for_each(|samples| self.queued(f, samples))?;
            } else {
                same.iter().try_for_each(|sample| self.method.step(f, sample))?;
            }
            self.k += same.len() as u64;
        }
        Ok(())
    }

    fn queued<T, L>(&mut self, f: &mut TorchObjective<T, L>, samples: &[Sample]) -> Result<(), Error>
    where
        T: Component,
        L: QueuedLoss,
        M: DeviceMethod<T>,
    {
        let plans: Vec<i64> = samples.iter().flat_map(|sample| f.loss().plan(sample)).collect();
        let new = || SampleQueue::new(self.room, plans.len() / samples.len(), f.parameters().device());
        let queue = &*self.queue.get_or_insert_with(new);
        queue.fill(&plans);
        for _ in samples {
            if self.graph.is_none()
                && self.warm_up == 0
                && let Some(stream) = &self.stream
            {
                match stream.capture(|| self.method.advance(f, &Queued::new(queue))) {
                    Ok(graph) => self.graph = Some(graph),
                    Err(why) => {
                        warn(format!("a step cannot be captured, so it runs operation by operation: {why}"));
                        (self.why_eager, self.stream) = (Some(why.to_string()), None);
                    }
                }
            }
            if let Some(graph) = &mut self.graph {
                graph.replay()?;
            } else {
                let _held = hold_off_capture();
                self.method.advance(f, &Queued::new(queue));
            }
            match self.warm_up {
                0 => self.algorithm_search = None,
                left => self.warm_up = left - 1,
            }
            self.method.progress().count()?;
        }
        Ok(())
    }

    /// The method, for example to read its records.
    pub fn method(&mut self) -> &mut M {
        &mut self.method
    }
    /// Ends the run and returns the method, for example to get its state.
    #[must_use]
    pub fn into_method(self) -> M {
        self.method
    }
    /// Whether a graph has been captured, so that steps are replayed from it.
    #[must_use]
    pub fn is_captured(&self) -> bool {
        self.graph.is_some()
    }
    /// Why the steps run operation by operation. `None` if they are captured or will be. The answer may change in
    /// [`steps`](Self::steps): the first steps run before the capture, and the capture may fail.
    #[must_use]
    pub fn why_eager(&self) -> Option<&str> {
        self.why_eager.as_deref()
    }
}
