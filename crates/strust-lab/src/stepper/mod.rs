//! Runs the steps of a method: one at a time, or many at a time on a GPU.

#[cfg(feature = "torch")]
mod captured;
mod on_inner;
mod step_by_step;

#[cfg(feature = "torch")]
pub(crate) use captured::Captured;
pub(crate) use on_inner::OnInner;
pub(crate) use step_by_step::StepByStep;

use crate::{
    Error,
    io::checkpoint::{Checkpoint, Head},
};
use std::path::Path;
use strust::{methods::State, objective::Objective, record::StepRecord, samplers::Sampler};

/// Where a method is.
pub(crate) struct Position<'a, P> {
    /// The number of steps made.
    pub steps: u64,
    /// The method's answer.
    pub x: &'a P,
    /// Whether x is an average ([`State::is_averaged`]). What a problem keeps from step to step does not belong to x then.
    pub averaged: bool,
}

impl<'a, P> Position<'a, P> {
    fn of(state: &'a impl State<Point = P>) -> Self {
        Self { steps: state.steps(), x: state.point(), averaged: state.is_averaged() }
    }
}

/// A method on `F`. It owns the method's state and hides its type.
pub(crate) trait Stepper<F: Objective> {
    /// Starts at x.
    fn start(&mut self, f: &mut F, x: F::Point) -> Result<(), Error>;
    /// Resumes from a checkpoint.
    fn resume(&mut self, f: &mut F, saved: &Checkpoint) -> Result<(), Error>;
    /// Makes at least one step and at most `most`. It stops when the method has settled. It calls `proceed` from time to time with the number of steps made, and stops if that returns false. It adds the records of all steps, even if an error follows.
    fn advance(
        &mut self,
        f: &mut F,
        sampler: &mut dyn Sampler,
        most: u64,
        proceed: &mut dyn FnMut(u64) -> bool,
        records: &mut Vec<StepRecord>,
    ) -> Result<(), Error>;
    /// Whether the method has found a reason to stop ([`State::settled`]). Call it only after a start.
    fn is_settled(&self) -> bool;
    /// A hash of the method's state, which must be the same on every rank. A stepper that runs on one rank has none.
    fn fingerprint(&self) -> u64 {
        0
    }
    /// The current position. Call it only after a start.
    fn current(&mut self, f: &mut F) -> Position<'_, F::Point>;
    /// Writes a checkpoint with the method's state. Call it only after a start.
    fn save(&mut self, f: &mut F, head: &Head, path: &Path) -> Result<(), Error>;
}

const STARTED: &str = "a stepper is started before it is used";

#[cfg(all(test, feature = "torch"))]
mod tests {
    use super::*;
    use crate::data::totals::Totals;
    use strust::{methods::StrState, prelude::*, saved::Load, schedule::Schedule};
    use strust_baselines::{Sgd, SgdConfig};
    use strust_problems::Problem;
    use strust_torch::{DeviceSgd, DeviceStr, Flat, ImageClassification, Launch, device::Device, images::ImageBytes};

    /// Twenty images of made-up bytes, 3×32×32.
    fn problem() -> ImageClassification {
        // With several threads, the sums of libtorch differ in the last bits.
        strust_torch::device::set_threads(1);
        let pixels: Vec<u8> = (0..20 * 3072_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let labels: Vec<u8> = (0..20).map(|i| i % 10).collect();
        let images = ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 32, 32] };
        ImageClassification::resnet20(&images, None, 10, Device::Cpu).unwrap()
    }
    fn captured() -> Captured<DeviceStr<f32>> {
        Captured::new(StrConfig::default(), 8, 20, Launch::Graph)
    }
    /// Runs up to step `end` as a job does: each call stays within an epoch of three steps.
    fn run_to(
        stepper: &mut dyn Stepper<ImageClassification>,
        f: &mut ImageClassification,
        end: u64,
    ) -> Vec<StepRecord> {
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
        let mut stepper =
            Captured::<DeviceSgd<f32>>::new(config, 8, 20, Launch::Graph).with(move |method| method.schedule(schedule));
        stepper.start(&mut f, start).unwrap();
        for (a, b) in run_to(&mut stepper, &mut f, 7).iter().zip(&expected) {
            assert!((a.step_size - b.step_size).abs() < 1e-15, "step {}: {} and {}", a.k, a.step_size, b.step_size);
            assert!((a.value - b.value).abs() < 1e-3 * b.value.abs(), "step {}: {} and {}", a.k, a.value, b.value);
        }
        assert!(expected[6].step_size < 0.1 * expected[0].step_size);
    }

    /// The checkpoint of a stepper, through a file.
    fn saved(stepper: &mut dyn Stepper<ImageClassification>, f: &mut ImageClassification, done: bool) -> Checkpoint {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint.bin");
        let (version, extra_state) = (env!("CARGO_PKG_VERSION").into(), f.extra_state());
        let head = Head {
            version,
            job: 1,
            records: 0,
            timings: 0,
            checksums: None,
            totals: Totals::default(),
            done,
            extra_state,
        };
        stepper.save(f, &head, &path).unwrap();
        Checkpoint::load(&path, 1).unwrap().unwrap()
    }

    #[test]
    fn networks_stopped_within_an_epoch_resume_bit_for_bit() {
        let bits = |saved: &Checkpoint| {
            let state: StrState<Flat<f32>> = Load::load(&saved.state).unwrap();
            (state.steps(), state.radius().to_bits(), state.point().to_vec(), saved.head.extra_state.clone())
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
        f.restore_extra_state(&checkpoint.head.extra_state).unwrap();
        stepper.resume(&mut f, &checkpoint).unwrap();
        let records = run_to(&mut stepper, &mut f, 5);
        assert_eq!((records, bits(&saved(&mut stepper, &mut f, true))), whole);
    }
}
