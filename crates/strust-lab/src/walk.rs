//! How a job gets from one point to the next: a step at a time, or many at a time on a GPU.

use crate::Error;
use strust::{
    methods::{Method, State},
    objective::Objective,
    record::StepRecord,
    sample::{Sample, Sampler},
};

/// A method on its way over `F`.
pub(crate) trait Walk<F: Objective> {
    /// What is saved of it.
    type State: State<Point = F::Point>;

    /// Begins at x.
    fn start(&mut self, f: &mut F, x: F::Point) -> Result<(), Error>;
    /// Goes on where a saved one was left.
    fn resume(&mut self, f: &mut F, state: Self::State) -> Result<(), Error>;
    /// Makes at least one step and at most `most`, asking now and then, with the number made, whether to go on. Adds their
    /// records, also those before an error.
    fn advance(
        &mut self,
        f: &mut F,
        sampler: &mut dyn Sampler,
        most: u64,
        go_on: &mut dyn FnMut(u64) -> bool,
        records: &mut Vec<StepRecord>,
    ) -> Result<(), Error>;
    /// Where it is; there is such a place once it was started.
    fn state(&mut self, f: &mut F) -> &Self::State;
}

/// A method of the library, a step at a time.
pub(crate) struct StepByStep<M, S> {
    method: M,
    state: Option<S>,
    sample: Sample,
    /// Brings a loaded state to where the problem is.
    bring: Box<dyn Fn(S) -> S>,
}

impl<M, S> StepByStep<M, S> {
    pub fn new(method: M) -> Self {
        Self { method, state: None, sample: Sample::default(), bring: Box::new(|state| state) }
    }
    /// Over a network: a loaded state is on the CPU.
    #[cfg(feature = "torch")]
    pub fn on(method: M, device: strust_torch::device::Device) -> Self
    where
        S: strust_torch::OnDevice,
    {
        Self { bring: Box::new(move |state: S| state.on(device)), ..Self::new(method) }
    }
}

const STARTED: &str = "a walk is started before it goes on";

impl<F: Objective, M: Method<F>> Walk<F> for StepByStep<M, M::State> {
    type State = M::State;

    fn start(&mut self, f: &mut F, x: F::Point) -> Result<(), Error> {
        self.state = Some(self.method.init(f, x)?);
        Ok(())
    }
    fn resume(&mut self, _: &mut F, state: M::State) -> Result<(), Error> {
        self.state = Some((self.bring)(state));
        Ok(())
    }
    fn advance(
        &mut self,
        f: &mut F,
        sampler: &mut dyn Sampler,
        _: u64,
        _: &mut dyn FnMut(u64) -> bool,
        records: &mut Vec<StepRecord>,
    ) -> Result<(), Error> {
        let state = self.state.as_mut().expect(STARTED);
        sampler.draw(state.steps(), &mut self.sample);
        records.push(self.method.step(f, state, &self.sample)?);
        Ok(())
    }
    fn state(&mut self, _: &mut F) -> &M::State {
        self.state.as_ref().expect(STARTED)
    }
}

#[cfg(feature = "torch")]
pub(crate) use on_gpu::Captured;

#[cfg(feature = "torch")]
mod on_gpu {
    use super::{Error, Objective, STARTED, Sampler, StepRecord, Walk};
    use std::sync::Once;
    use strust_torch::{DeviceMethod, DeviceRun, ImageClassification, Launch};

    /// Steps that are given to the device before it is asked whether to go on.
    const AT_A_TIME: u64 = 32;

    /// A method that stays on the GPU, an epoch at a time; its records are read then.
    pub(crate) struct Captured<M: DeviceMethod<f32>> {
        config: M::Config,
        batch: usize,
        steps_per_epoch: usize,
        launch: Launch,
        run: Option<DeviceRun<M>>,
        state: Option<M::State>,
    }

    impl<M: DeviceMethod<f32>> Captured<M> {
        pub fn new(config: M::Config, batch: usize, terms: usize, launch: Launch) -> Self {
            Self { config, batch, steps_per_epoch: terms.div_ceil(batch), launch, run: None, state: None }
        }
        fn begin(&mut self, f: &mut ImageClassification, method: M) {
            static TOLD: Once = Once::new();
            let run = DeviceRun::new(f.objective(), method, self.batch, AT_A_TIME as usize, self.launch);
            if let (Launch::Graph, Some(why)) = (self.launch, run.why_eager()) {
                TOLD.call_once(|| eprintln!("strust: steps run operation by operation: {why}"));
            }
            self.run = Some(run);
        }
    }

    impl<M: DeviceMethod<f32>> Walk<ImageClassification> for Captured<M> {
        type State = M::State;

        fn start(&mut self, f: &mut ImageClassification, x: strust_torch::Flat<f32>) -> Result<(), Error> {
            f.check_point(&x)?;
            f.objective().set(&x);
            let method = M::start(self.config.clone(), f.objective(), self.steps_per_epoch)?;
            self.begin(f, method);
            Ok(())
        }
        fn resume(&mut self, f: &mut ImageClassification, state: M::State) -> Result<(), Error> {
            let method = M::resume(self.config.clone(), f.objective(), &state, self.steps_per_epoch)?;
            self.begin(f, method);
            Ok(())
        }
        fn advance(
            &mut self,
            f: &mut ImageClassification,
            sampler: &mut dyn Sampler,
            most: u64,
            go_on: &mut dyn FnMut(u64) -> bool,
            records: &mut Vec<StepRecord>,
        ) -> Result<(), Error> {
            let run = self.run.as_mut().expect(STARTED);
            let (mut made, mut outcome) = (0, Ok(()));
            while outcome.is_ok() && made < most && (made == 0 || go_on(made)) {
                let count = AT_A_TIME.min(most - made);
                outcome = run.steps(f.objective(), sampler, count);
                made += count;
            }
            // Those before a breakdown come first; it is told when they have been taken.
            records.extend(run.method().records()?);
            outcome.map_err(crate::network::error)
        }
        fn state(&mut self, f: &mut ImageClassification) -> &M::State {
            let run = self.run.as_mut().expect(STARTED);
            self.state.insert(run.method().state(f.objective()))
        }
    }
}

#[cfg(all(test, feature = "torch"))]
mod tests {
    use super::*;
    use strust::{methods::StrState, prelude::*};
    use strust_problems::Problem;
    use strust_torch::{DeviceStr, Flat, ImageClassification, Launch, device::Device, images::ImageBytes};

    /// Twenty images of made-up bytes, 3×32×32.
    fn problem() -> ImageClassification {
        // Of several threads' sums libtorch promises no bits.
        strust_torch::device::set_threads(1);
        let pixels: Vec<u8> = (0..20 * 3072_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let labels: Vec<u8> = (0..20).map(|i| i % 10).collect();
        let images = ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 32, 32] };
        ImageClassification::resnet20(&images, None, 10, Device::Cpu).unwrap()
    }
    fn captured() -> Captured<DeviceStr<f32>> {
        Captured::new(StrConfig::default(), 8, 20, Launch::Graph)
    }
    /// Up to step `end`, as a job does it: never beyond the end of an epoch of three steps.
    fn walk_to<W: Walk<ImageClassification>>(walk: &mut W, f: &mut ImageClassification, end: u64) -> Vec<StepRecord> {
        let (mut sampler, mut records) = (Epochs::new(20, 8, 3).unwrap(), Vec::new());
        loop {
            let k = walk.state(f).steps();
            if k == end {
                return records;
            }
            let most = (3 - k % 3).min(end - k);
            walk.advance(f, &mut sampler, most, &mut |_| true, &mut records).unwrap();
        }
    }

    #[test]
    fn networks_walk_an_epoch_at_a_time_as_they_do_step_by_step() {
        let mut f = problem();
        let start = f.start(1);
        let mut plain = StepByStep::new(Str::new(StrConfig::default()).unwrap());
        plain.start(&mut f, start).unwrap();
        let expected = walk_to(&mut plain, &mut f, 7);

        let mut f = problem();
        let start = f.start(1);
        let mut walk = captured();
        walk.start(&mut f, start).unwrap();
        let records = walk_to(&mut walk, &mut f, 7);
        assert_eq!(records.iter().map(|r| r.k).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
        for (a, b) in records.iter().zip(&expected) {
            assert_eq!((a.verdict, a.evaluations), (b.verdict, b.evaluations));
            assert!((a.value - b.value).abs() < 1e-3 * b.value.abs(), "step {}: {} against {}", a.k, a.value, b.value);
        }
    }

    #[test]
    fn networks_that_stop_in_an_epoch_go_on_bit_for_bit() {
        let bits = |state: &StrState<Flat<f32>>| (state.k, state.radius.to_bits(), state.x.to_vec());
        let whole = {
            let mut f = problem();
            let (start, mut walk) = (f.start(1), captured());
            walk.start(&mut f, start).unwrap();
            let records = walk_to(&mut walk, &mut f, 5);
            (records[4..].to_vec(), bits(walk.state(&mut f)), f.extra_state())
        };
        let (saved, extra_state) = {
            let mut f = problem();
            let (start, mut walk) = (f.start(1), captured());
            walk.start(&mut f, start).unwrap();
            walk_to(&mut walk, &mut f, 4);
            (walk.state(&mut f).clone(), f.extra_state())
        };
        let mut f = problem();
        let mut walk = captured();
        f.restore_extra_state(&extra_state).unwrap();
        walk.resume(&mut f, saved).unwrap();
        let records = walk_to(&mut walk, &mut f, 5);
        assert_eq!((records, bits(walk.state(&mut f)), f.extra_state()), whole);
    }
}
