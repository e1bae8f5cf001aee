//! A method on the GPU whose steps are captured once and replayed.

use crate::{
    Error,
    device::torch::network_error,
    io::checkpoint::Checkpoint,
    registry::SharedProblem,
    stepper::{Position, STARTED, Stepper},
};
use std::marker::PhantomData;
use strust::{
    objective::Objective,
    record::StepRecord,
    samplers::Sampler,
    saved::{Load, Save, Saved},
};
use strust_torch::{
    DeviceMethod, DeviceRun, Flat, ImageClassification, LanguageModel, Launch, QueuedLoss, TorchObjective,
};

/// The number of steps on the device between two chances for the caller to stop.
const AT_A_TIME: u64 = 32;

/// A network as a stepper gets it.
type Network = SharedProblem<Flat<f32>>;

/// A network whose steps can run on the device.
pub(super) trait OnDevice: Objective<Point = Flat<f32>> + 'static {
    type Loss: QueuedLoss;
    fn objective(&mut self) -> &mut TorchObjective<f32, Self::Loss>;
}

impl OnDevice for ImageClassification {
    type Loss = strust_torch::ImageLoss;
    fn objective(&mut self) -> &mut TorchObjective<f32, Self::Loss> {
        self.objective()
    }
}

impl OnDevice for LanguageModel<f32> {
    type Loss = strust_torch::TextLoss;
    fn objective(&mut self) -> &mut TorchObjective<f32, Self::Loss> {
        self.objective()
    }
}

/// The network itself.
pub(super) fn network<N: OnDevice>(f: &mut Network) -> &mut N {
    f.inner_mut().inner_mut()
}

/// A method on the GPU that runs up to an epoch per call, for a rank that is alone. Its records are read at the end of each call.
pub(super) struct Captured<M: DeviceMethod<f32>, N> {
    config: M::Config,
    batch: usize,
    steps_per_epoch: usize,
    launch: Launch,
    /// Sets what is not part of the configuration.
    with: Box<dyn Fn(M) -> M>,
    run: Option<DeviceRun<M>>,
    state: Option<M::State>,
    network: PhantomData<fn(N)>,
}

impl<M: DeviceMethod<f32>, N: OnDevice> Captured<M, N> {
    pub fn new(config: M::Config, batch: usize, terms: usize, launch: Launch) -> Self {
        let (steps_per_epoch, with) = (terms.div_ceil(batch), Box::new(|method| method));
        Self { config, batch, steps_per_epoch, launch, with, run: None, state: None, network: PhantomData }
    }
    /// Changes the method before it runs, for example to give it a schedule.
    pub fn with(self, change: impl Fn(M) -> M + 'static) -> Self {
        Self { with: Box::new(change), ..self }
    }
    fn begin(&mut self, f: &mut N, method: M) {
        let method = (self.with)(method);
        self.run = Some(DeviceRun::new(f.objective(), method, self.batch, AT_A_TIME as usize, self.launch));
    }
    fn read_state(&mut self, f: &mut N) -> &M::State {
        let run = self.run.as_mut().expect(STARTED);
        self.state.insert(run.method().state(f.objective()))
    }
}

impl<M: DeviceMethod<f32>, N: OnDevice> Stepper<Network> for Captured<M, N> {
    fn start(&mut self, f: &mut Network, x: Flat<f32>) -> Result<(), Error> {
        let f = network::<N>(f);
        f.check_point(&x)?;
        f.objective().set(&x);
        let method = M::start(self.config.clone(), f.objective(), self.steps_per_epoch)?;
        self.begin(f, method);
        Ok(())
    }
    fn resume(&mut self, f: &mut Network, saved: &Checkpoint) -> Result<(), Error> {
        let f = network::<N>(f);
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
        let (f, run) = (network::<N>(f), self.run.as_mut().expect(STARTED));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::totals::Totals, stepper::StepByStep, team::Team};
    use strust::{methods::StrState, prelude::*, ranks::Sharded, schedule::Schedule};
    use strust_baselines::{Sgd, SgdConfig};
    use strust_problems::{AnyProblem, Problem};
    use strust_torch::{DeviceSgd, DeviceStr, GptShape, device::Device, images::ImageBytes};

    /// Twenty images of made-up bytes, 3×32×32.
    fn problem() -> Network {
        // With several threads, the sums of libtorch differ in the last bits.
        strust_torch::device::set_threads(1);
        let pixels: Vec<u8> = (0..20 * 3072_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let labels: Vec<u8> = (0..20).map(|i| i % 10).collect();
        let images = ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 32, 32] };
        let network = ImageClassification::resnet20(&images, None, 10, Device::Cpu).unwrap();
        Sharded::new(AnyProblem::new(network), Team::alone())
    }
    fn captured() -> Captured<DeviceStr<f32>, ImageClassification> {
        Captured::new(StrConfig::default(), 8, 20, Launch::Graph)
    }
    /// Runs up to step `end` as a job does: each call stays within an epoch of three steps.
    fn run_to(stepper: &mut dyn Stepper<Network>, f: &mut Network, end: u64) -> Vec<StepRecord> {
        let (mut sampler, mut records) = (Epochs::new(20, 8, 3).unwrap(), Vec::new());
        loop {
            let k = stepper.current(f).steps;
            if k == end {
                return records;
            }
            let most = (3 - k % 3).min(end - k);
            stepper.advance(f, &mut sampler, most, &mut |_| true, &mut records).unwrap();
        }
    }

    #[test]
    fn networks_give_the_same_steps_by_epoch_and_step_by_step() {
        let mut f = problem();
        let start = f.start(1);
        let mut plain = StepByStep::new(Str::new(StrConfig::default()).unwrap());
        Stepper::start(&mut plain, &mut f, start).unwrap();
        let expected = run_to(&mut plain, &mut f, 7);

        let mut f = problem();
        let start = f.start(1);
        let mut stepper = captured();
        stepper.start(&mut f, start).unwrap();
        let records = run_to(&mut stepper, &mut f, 7);
        assert_eq!(records.iter().map(|r| r.k).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
        for (a, b) in records.iter().zip(&expected) {
            assert_eq!((a.verdict, a.evaluations), (b.verdict, b.evaluations));
            assert!((a.value - b.value).abs() < 1e-3 * b.value.abs(), "step {}: {} and {}", a.k, a.value, b.value);
        }
    }

    #[test]
    fn captured_steps_follow_a_schedule() {
        let (config, schedule) = (SgdConfig { learning_rate: 0.1, ..Default::default() }, Schedule::cosine(7));
        let mut f = problem();
        let start = f.start(1);
        let mut plain = StepByStep::new(Sgd::new(config.clone()).unwrap().schedule(schedule));
        Stepper::start(&mut plain, &mut f, start.clone()).unwrap();
        let expected = run_to(&mut plain, &mut f, 7);
        f.start(1);
        let mut stepper = Captured::<DeviceSgd<f32>, ImageClassification>::new(config, 8, 20, Launch::Graph)
            .with(move |method| method.schedule(schedule));
        stepper.start(&mut f, start).unwrap();
        for (a, b) in run_to(&mut stepper, &mut f, 7).iter().zip(&expected) {
            assert!((a.step_size - b.step_size).abs() < 1e-15, "step {}: {} and {}", a.k, a.step_size, b.step_size);
            assert!((a.value - b.value).abs() < 1e-3 * b.value.abs(), "step {}: {} and {}", a.k, a.value, b.value);
        }
        assert!(expected[6].step_size < 0.1 * expected[0].step_size);
    }

    #[test]
    fn a_language_model_gives_the_same_steps_by_epoch_and_step_by_step() {
        strust_torch::device::set_threads(1);
        let text = strust_data::text::Characters::new(&"to be or not to be, ".repeat(30)).unwrap();
        let shape = GptShape { layers: 1, width: 16, heads: 2, context: 19 };
        let problem = || {
            let model = LanguageModel::<f32>::new(&text, shape, Device::Cpu).unwrap();
            Sharded::new(AnyProblem::new(model), Team::alone())
        };
        let (mut f, mut records) = (problem(), Vec::new());
        let (start, terms) = (f.start(1), f.terms());
        let mut plain = StepByStep::new(Str::new(StrConfig::default()).unwrap());
        Stepper::start(&mut plain, &mut f, start.clone()).unwrap();
        let mut sampler = Epochs::new(terms, 9, 3).unwrap();
        for _ in 0..3 {
            plain.advance(&mut f, &mut sampler, 1, &mut |_| true, &mut records).unwrap();
        }
        let x = plain.current(&mut f).x.clone();
        let expected = (f.test_metric(&x), std::mem::take(&mut records));

        let mut f = problem();
        let mut stepper =
            Captured::<DeviceStr<f32>, LanguageModel<f32>>::new(StrConfig::default(), 9, terms, Launch::Graph);
        stepper.start(&mut f, start).unwrap();
        let mut sampler = Epochs::new(terms, 9, 3).unwrap();
        stepper.advance(&mut f, &mut sampler, 2, &mut |_| true, &mut records).unwrap();
        // A measurement does not move the parameters from which the next step continues.
        let elsewhere = f.start(2);
        f.value(&elsewhere, &Sample::range(0..terms));
        f.test_metric(&elsewhere);
        stepper.advance(&mut f, &mut sampler, 1, &mut |_| true, &mut records).unwrap();
        for (a, b) in records.iter().zip(&expected.1) {
            assert_eq!(a.verdict, b.verdict);
            assert!((a.value - b.value).abs() < 1e-3 * b.value, "step {}: {} and {}", a.k, a.value, b.value);
        }
        assert_eq!((records.len(), expected.1.len()), (3, 3));
        let x = stepper.current(&mut f).x.clone();
        assert!((f.test_metric(&x).unwrap() - expected.0.unwrap()).abs() < 1e-3);
    }

    /// The checkpoint of a stepper, through a file.
    fn saved(stepper: &mut dyn Stepper<Network>, f: &mut Network, done: bool) -> Checkpoint {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = Checkpoint {
            path: folder.path().join("checkpoint.bin"),
            version: env!("CARGO_PKG_VERSION").into(),
            job: 1,
            records: 0,
            timings: 0,
            checksums: None,
            totals: Totals::default(),
            done,
            extra_state: f.extra_state(),
            state: stepper.state(f),
        };
        checkpoint.save().unwrap();
        Checkpoint::load(&checkpoint.path, 1).unwrap().unwrap()
    }

    #[test]
    fn networks_stopped_within_an_epoch_resume_bit_for_bit() {
        let bits = |saved: &Checkpoint| {
            let state: StrState<Flat<f32>> = Load::load(&saved.state).unwrap();
            (state.steps(), state.radius().to_bits(), state.point().to_vec(), saved.extra_state.clone())
        };
        let whole = {
            let mut f = problem();
            let (start, mut stepper) = (f.start(1), captured());
            stepper.start(&mut f, start).unwrap();
            let records = run_to(&mut stepper, &mut f, 5);
            (records[4..].to_vec(), bits(&saved(&mut stepper, &mut f, true)))
        };
        let checkpoint = {
            let mut f = problem();
            let (start, mut stepper) = (f.start(1), captured());
            stepper.start(&mut f, start).unwrap();
            run_to(&mut stepper, &mut f, 4);
            saved(&mut stepper, &mut f, false)
        };
        let mut f = problem();
        let mut stepper = captured();
        f.restore_extra_state(&checkpoint.extra_state).unwrap();
        stepper.resume(&mut f, &checkpoint).unwrap();
        let records = run_to(&mut stepper, &mut f, 5);
        assert_eq!((records, bits(&saved(&mut stepper, &mut f, true))), whole);
    }
}
