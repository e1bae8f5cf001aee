//! A method on the GPU whose steps are captured once and replayed.

use super::{Position, STARTED, Stepper};
use crate::{Error, any_problem::SharedProblem, device::network_error, io::checkpoint::Checkpoint};
use strust::{
    objective::Objective,
    record::StepRecord,
    samplers::Sampler,
    saved::{Load, Save, Saved},
};
use strust_torch::{DeviceMethod, DeviceRun, Flat, ImageClassification, Launch};

/// The number of steps on the device between two chances for the caller to stop.
const AT_A_TIME: u64 = 32;

/// A network as a stepper gets it.
type Network = SharedProblem<Flat<f32>>;

/// The network itself.
fn network(f: &mut Network) -> &mut ImageClassification {
    f.inner_mut().inner_mut()
}

/// A method on the GPU that runs up to an epoch per call, for a rank that is alone. Its records are read at the end of each call.
pub(crate) struct Captured<M: DeviceMethod<f32>> {
    config: M::Config,
    batch: usize,
    steps_per_epoch: usize,
    launch: Launch,
    /// Sets what is not part of the configuration.
    with: Box<dyn Fn(M) -> M>,
    run: Option<DeviceRun<M>>,
    state: Option<M::State>,
}

impl<M: DeviceMethod<f32>> Captured<M> {
    pub fn new(config: M::Config, batch: usize, terms: usize, launch: Launch) -> Self {
        let (steps_per_epoch, with) = (terms.div_ceil(batch), Box::new(|method| method));
        Self { config, batch, steps_per_epoch, launch, with, run: None, state: None }
    }
    /// Changes the method before it runs, for example to give it a schedule.
    pub fn with(self, change: impl Fn(M) -> M + 'static) -> Self {
        Self { with: Box::new(change), ..self }
    }
    fn begin(&mut self, f: &mut ImageClassification, method: M) {
        let method = (self.with)(method);
        self.run = Some(DeviceRun::new(f.objective(), method, self.batch, AT_A_TIME as usize, self.launch));
    }
    fn read_state(&mut self, f: &mut ImageClassification) -> &M::State {
        let run = self.run.as_mut().expect(STARTED);
        self.state.insert(run.method().state(f.objective()))
    }
}

impl<M: DeviceMethod<f32>> Stepper<Network> for Captured<M> {
    fn start(&mut self, f: &mut Network, x: Flat<f32>) -> Result<(), Error> {
        let f = network(f);
        f.check_point(&x)?;
        f.objective().set(&x);
        let method = M::start(self.config.clone(), f.objective(), self.steps_per_epoch)?;
        self.begin(f, method);
        Ok(())
    }
    fn resume(&mut self, f: &mut Network, saved: &Checkpoint) -> Result<(), Error> {
        let f = network(f);
        let state = Load::load(&saved.state).map_err(|error| saved.refuse(error))?;
        let method = M::resume(self.config.clone(), f.objective(), &state, self.steps_per_epoch)?;
        self.begin(f, method);
        Ok(())
    }
    fn advance(
        &mut self,
        f: &mut Network,
        sampler: &mut dyn Sampler,
        most: u64,
        proceed: &mut dyn FnMut(u64) -> bool,
        records: &mut Vec<StepRecord>,
    ) -> Result<(), Error> {
        let (f, run) = (network(f), self.run.as_mut().expect(STARTED));
        let (mut made, mut outcome) = (0, Ok(()));
        while outcome.is_ok() && made < most && (made == 0 || proceed(made)) {
            let count = AT_A_TIME.min(most - made);
            outcome = run.steps(f.objective(), sampler, count);
            made += count;
        }
        // Add the records before the failure first, then report the error.
        records.extend(run.method().records()?);
        outcome.map_err(network_error)
    }
    fn is_settled(&self) -> bool {
        // No method on the device looks for such a reason.
        false
    }
    fn current(&mut self, f: &mut Network) -> Position<'_, Flat<f32>> {
        Position::of(self.read_state(network(f)))
    }
    fn state(&mut self, f: &mut Network) -> Saved {
        self.read_state(network(f)).save()
    }
}
