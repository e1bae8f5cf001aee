//! Steps on the device from samples that wait there: one by one, or captured once as a CUDA graph and replayed.

use crate::{
    Component, DeviceMethod, Error, QueuedLoss, TorchObjective,
    cuda::{Choosing, Graph, OwnStream, beside_no_capture},
    objective::Queued,
};
use serde::{Deserialize, Serialize};
use strust::sample::{Sample, Sampler};
use tch::Device;

/// Steps before the capture: libtorch gets its handles and workspaces and chooses its algorithms, which a capture cannot.
const WARM_UP: usize = 12;

/// How a step is given to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Launch {
    /// Operation by operation.
    Eager,
    /// As one CUDA graph, captured after a few steps.
    #[default]
    Graph,
}

/// A run of a [`DeviceMethod`] whose samples wait on the device, so that the host gives orders and never looks.
///
/// With [`Launch::Graph`] the first steps are made operation by operation, then one is captured, and all later ones of
/// the same batch size are replayed: forward pass, backward pass, trial, verdict, update and radius are one launch. Both
/// ways give the same steps, to rounding. Where a step cannot be captured, the run goes on operation by operation, and
/// [`why_eager`](Self::why_eager) says why.
///
/// Any model can be captured whose forward pass gives the device the same operations each time, with the same shapes, on
/// tensors that stay where they are: what is kept from step to step is written in place (`copy_`, `g_add_`), as
/// batch-norm does. It may not look at a number on the device (`double_value`, `nonzero`, a boolean mask as an index), nor
/// branch on one, nor bring something from the host, nor draw random numbers. [`TableLoss`](crate::TableLoss) takes such
/// a model; for other data there is [`QueuedLoss`].
///
/// The objective is given to each call and stays free in between, to evaluate the model or to save it. A graph knows the
/// memory it was captured on, so it must be the same objective, and a run that is started on it ends the one before.
///
/// While it lives on a GPU, this thread's work goes to a stream of its own ([`OwnStream`]).
#[derive(Debug)]
pub struct DeviceRun<M> {
    method: M,
    batch: usize,
    /// Samples that are brought to the device at a time.
    room: usize,
    k: u64,
    /// Queued steps before the capture.
    warm_up: usize,
    choosing: Option<Choosing>,
    why_eager: Option<String>,
    /// What the objective knows this run by.
    id: u64,
    // Freed before the stream is given back.
    graph: Option<Graph>,
    stream: Option<OwnStream>,
}

impl<M> DeviceRun<M> {
    /// Samples of `batch` terms are brought to the device `room` at a time: an epoch's, say. A sample of another size,
    /// as the last of an epoch may be, is made on the host.
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
        f.loss_mut().reserve(room, batch);
        let (k, id) = (method.progress().k(), f.begin_run());
        let choosing = matches!(device, Device::Cuda(_)).then(Choosing::algorithms);
        Self { method, batch, room, k, warm_up: WARM_UP, choosing, why_eager, id, graph: None, stream: stream.ok() }
    }

    /// Makes `count` steps on the sampler's next samples. The host waits only where the method's records are read.
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
        f.loss_mut().queue(samples);
        for _ in samples {
            if self.graph.is_none()
                && self.warm_up == 0
                && let Some(stream) = &self.stream
            {
                match stream.capture(|| self.method.advance(f, &Queued)) {
                    Ok(graph) => self.graph = Some(graph),
                    Err(why) => {
                        eprintln!("strust: this step cannot be captured, so it runs operation by operation: {why}");
                        (self.why_eager, self.stream) = (Some(why.to_string()), None);
                    }
                }
            }
            if let Some(graph) = &mut self.graph {
                graph.replay()?;
            } else {
                let _held = beside_no_capture();
                self.method.advance(f, &Queued);
            }
            match self.warm_up {
                0 => self.choosing = None,
                left => self.warm_up = left - 1,
            }
            self.method.progress().count()?;
        }
        Ok(())
    }

    /// The method, to read its records.
    pub fn method(&mut self) -> &mut M {
        &mut self.method
    }
    /// Ends the run and gives the method, to ask for its state.
    #[must_use]
    pub fn into_method(self) -> M {
        self.method
    }
    /// Whether steps are replayed from a graph by now.
    #[must_use]
    pub fn is_captured(&self) -> bool {
        self.graph.is_some()
    }
    /// Why the steps are made operation by operation; `None` where they are captured, or will be.
    #[must_use]
    pub fn why_eager(&self) -> Option<&str> {
        self.why_eager.as_deref()
    }
}
