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
}

impl<M, S> StepByStep<M, S> {
    pub fn new(method: M) -> Self {
        Self { method, state: None, sample: Sample::default() }
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
        self.state = Some(state);
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
            self.run = Some(DeviceRun::new(f.objective(), method, self.batch, AT_A_TIME as usize, self.launch));
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
