//! Auto on the device. On a GPU the step has its own kernels around the two evaluations: curvature, noise and verdict stay
//! on the device, which chooses between the old and the new points. The host reads only the records, in bulk.
//!
//! Where the kernels cannot be compiled, the library's own method makes the step.

use crate::{
    BatchLoss, Component, DeviceMethod, Flat, ModelParameters, TorchObjective, cuda,
    device_method::{sealed::DeviceStep, vector},
    device_records::{DeviceProgress, JUDGED_COLUMNS, judged},
    objective::BatchSource,
};
use strust::{
    Error,
    config::{Checked, Config},
    methods::{Auto, AutoConfig, AutoParts, AutoState, Learned, Method, State},
    objective::{Evaluation, Objective},
    radius::Verdict,
    sample::Sample,
};
use tch::{Tensor, no_grad};

/// [`strust::methods::Auto`] on the device. It makes the same steps, up to rounding. The model's own parameters are y,
/// where gradients are taken; the answer is the average in [`state`](DeviceMethod::state).
///
/// Without kernels, as on a CPU, a step waits for the device, and no graph can be captured.
///
/// ```
/// use strust::prelude::*;
/// use strust_torch::{DeviceAuto, DeviceMethod, TorchObjective};
/// use tch::{Device, nn::{Init, VarStore}};
///
/// let store = VarStore::new(Device::Cpu);
/// let x = store.root().var("x", &[2], Init::Const(3.0));
/// let mut f = TorchObjective::<f32, _>::new(&store, 1, |_: &Sample| x.square().sum(tch::Kind::Float))?;
/// let mut method = DeviceAuto::start(AutoConfig::default(), &f, 100)?;
/// for _ in 0..100 {
///     method.step(&mut f, &Sample::range(0..1))?;
/// }
/// assert!(method.records()?.last().unwrap().value < 1e-4);
/// # Ok::<(), strust_torch::Error>(())
/// ```
#[derive(Debug)]
pub struct DeviceAuto<T> {
    config: Checked<AutoConfig>,
    /// With kernels, its numbers are in them, and k is in `progress`.
    state: AutoState<Flat<T>>,
    gradient: Flat<T>,
    kernels: Option<AutoKernels>,
    /// The method without kernels.
    library: Auto<Flat<T>>,
    /// The record of the step at which the library's method broke down.
    failed: Option<[f64; JUDGED_COLUMNS]>,
    progress: DeviceProgress,
}

/// What the kernels read and write beside the vectors. `auto.cu` has the order of the numbers.
#[derive(Debug)]
struct AutoKernels {
    blocks: usize,
    settings: Tensor,
    decay: Tensor,
    /// [`Learned`], the number of steps, and of those after a breakdown.
    numbers: Tensor,
    proposal: Tensor,
    /// The sums of each block.
    shares: [Tensor; 3],
}

/// The numbers in `Learned` and in `Numbers` of `auto.cu`.
const LEARNED: usize = Learned::NAMES.len();
const NUMBERS: usize = LEARNED + 2;
/// The numbers in a `Proposal` of `auto.cu`.
const PROPOSAL: usize = 2 * NUMBERS + 6;
/// The sums of the first three kernels.
const SUMS: [usize; 3] = [2, 4, 3];

impl AutoKernels {
    /// `None` if there are no kernels for these vectors.
    fn new<T: Component>(config: &AutoConfig, state: &AutoState<Flat<T>>) -> Option<Self> {
        let AutoParts { x, learned, .. } = state.parts();
        let device = x.tensor().device();
        let blocks = cuda::auto_blocks(x.tensor())?;
        let doubles = |numbers: &[f64]| Tensor::from_slice(numbers).to_device(device);
        let AutoConfig { gamma, noise, momentum, power, beta2, epsilon, weight_decay } = *config;
        let rounding = Evaluation::new(1.0, T::EPSILON).rounding;
        let [scaled, stops, decay_stride] = [0.0, 1.0, 0.0];
        Some(Self {
            blocks,
            settings: doubles(&[gamma, noise, momentum, power, beta2, epsilon, rounding, scaled, stops, decay_stride]),
            decay: doubles(&[weight_decay]).to_kind(T::KIND),
            numbers: doubles(&[&learned.numbers()[..], &[0.0; NUMBERS - LEARNED]].concat()),
            proposal: doubles(&[0.0; PROPOSAL]),
            shares: SUMS.map(|sums| doubles(&vec![0.0; sums * blocks])),
        })
    }
    /// Writes the trial to y.
    fn propose<T: Component>(&self, state: &AutoState<Flat<T>>, y: &Tensor, gradient: &Tensor, value: &Tensor) {
        let Self { blocks, settings: s, decay, numbers: n, proposal, shares: [one, two, three] } = self;
        let AutoParts { x, z, start, gradient: last, root, .. } = state.parts();
        let [x, z, start, last, root] = [x, z, start, last, root].map(Flat::tensor);
        let g = gradient;
        cuda::auto_launch(c"auto_gradient", *blocks, [g, root, s, one]);
        cuda::auto_launch(c"auto_metric", *blocks, [g, root, x, z, start, last, s, n, one, two, proposal]);
        let arguments = [y, g, root, x, z, decay, s, n, value, two, three, proposal];
        cuda::auto_launch(c"auto_propose", *blocks, arguments);
    }
    /// Accepts or rejects the trial, and writes the next row of the table of records.
    fn judge<T: Component>(
        &self,
        state: &AutoState<Flat<T>>,
        gradient: &Tensor,
        [value, trial]: [&Tensor; 2],
        [table, next]: [&Tensor; 2],
    ) {
        let Self { blocks, settings: s, decay, numbers: n, proposal, shares: [_, _, three], .. } = self;
        let AutoParts { x, z, gradient: last, root, .. } = state.parts();
        let [x, z, last, root] = [x, z, last, root].map(Flat::tensor);
        let arguments = [gradient, root, x, z, last, decay, s, n, value, trial, three, proposal, table, next];
        cuda::auto_launch(c"auto_judge", *blocks, arguments);
    }
    fn learned(&self) -> Learned {
        let numbers = Vec::<f64>::try_from(&self.numbers).expect("a row of doubles");
        Learned::from_numbers(numbers[..LEARNED].try_into().expect("the numbers of `new`"))
    }
}

impl<T: Component> DeviceAuto<T> {
    /// The model's parameters ← y.
    fn set_point(&self, parameters: &mut ModelParameters<T>) {
        let AutoParts { x, z, .. } = self.state.parts();
        no_grad(|| parameters.flat_mut().set_lerp(z, self.config.momentum, x));
    }
    /// The step of the library's method, as a record.
    fn advance_on_host<L: BatchLoss>(&mut self, f: &mut TorchObjective<T, L>, on: &impl BatchSource<L>) {
        let row = self.failed.unwrap_or_else(|| {
            match self.library.step(&mut OnBatch { f, on }, &mut self.state, &Sample::default()) {
                Ok(record) => {
                    let [accepted, finite] = [record.verdict == Verdict::Accepted, record.gradient_norm.is_finite()]
                        .map(|flag| f64::from(u8::from(flag)));
                    let squared_norm = record.gradient_norm.powi(2);
                    [record.value, squared_norm, record.step_size, record.step_length, accepted, finite, 0.0]
                }
                Err(error) => {
                    let (value, squared_norm) = match error {
                        Error::NonFiniteValue { value, .. } => (value, 0.0),
                        _ => (0.0, f64::INFINITY),
                    };
                    *self.failed.insert([value, squared_norm, 0.0, 0.0, 0.0, 0.0, 1.0])
                }
            }
        });
        self.progress.write_row(&Tensor::from_slice(&row).to_device(self.state.point().tensor().device()));
    }
}

/// The model on the batch of one step, as an objective of the library's method. The model keeps the last point.
struct OnBatch<'a, T, L, B> {
    f: &'a mut TorchObjective<T, L>,
    on: &'a B,
}

impl<T: Component, L: BatchLoss, B: BatchSource<L>> Objective for OnBatch<'_, T, L, B> {
    type Point = Flat<T>;

    fn terms(&self) -> usize {
        self.f.terms()
    }
    fn value(&mut self, x: &Flat<T>, _: &Sample) -> Evaluation {
        self.f.set(x);
        Evaluation::new(self.f.value_here(self.on).double_value(&[]), T::EPSILON)
    }
    fn value_and_gradient(&mut self, x: &Flat<T>, _: &Sample, gradient: &mut Flat<T>) -> Evaluation {
        self.f.set(x);
        Evaluation::new(self.f.value_and_gradient_here(self.on, gradient).double_value(&[]), T::EPSILON)
    }
}

impl<T: Component> DeviceMethod<T> for DeviceAuto<T> {
    type Config = AutoConfig;
    type State = AutoState<Flat<T>>;

    fn at<L: BatchLoss>(
        config: AutoConfig,
        f: &TorchObjective<T, L>,
        state: Option<&Self::State>,
        read_every: usize,
    ) -> Result<Self, Error> {
        let config = config.check()?;
        let saved = state.map(AutoState::parts);
        let point = |saved: Option<&Flat<T>>| saved.map_or_else(|| f.point(), |saved| vector(f, Some(saved)));
        let state = AutoState::from_parts(AutoParts {
            x: f.point(),
            z: point(saved.as_ref().map(|saved| saved.z)),
            start: point(saved.as_ref().map(|saved| saved.start)),
            gradient: vector(f, saved.as_ref().map(|saved| saved.gradient)),
            root: vector(f, saved.as_ref().map(|saved| saved.root)),
            learned: saved.as_ref().map_or_else(Learned::default, |saved| saved.learned),
            k: saved.as_ref().map_or(0, |saved| saved.k),
        });
        let this = Self {
            kernels: AutoKernels::new(&config, &state),
            gradient: vector(f, None),
            progress: DeviceProgress::new(state.steps(), read_every, JUDGED_COLUMNS, f.parameters().device(), judged),
            library: Auto::new((*config).clone())?,
            config,
            failed: None,
            state,
        };
        this.set_point(&mut f.parameters().share());
        Ok(this)
    }
    fn state<L: BatchLoss>(&mut self, _: &TorchObjective<T, L>) -> AutoState<Flat<T>> {
        let AutoParts { x, z, start, gradient, root, learned, .. } = self.state.parts();
        let [x, z, start, gradient, root] = [x, z, start, gradient, root].map(Clone::clone);
        let learned = self.kernels.as_ref().map_or(learned, AutoKernels::learned);
        AutoState::from_parts(AutoParts { x, z, start, gradient, root, learned, k: self.progress.k() })
    }
}

impl<T: Component> DeviceStep<T> for DeviceAuto<T> {
    fn progress(&mut self) -> &mut DeviceProgress {
        &mut self.progress
    }
    fn advance<L: BatchLoss>(&mut self, f: &mut TorchObjective<T, L>, on: &impl BatchSource<L>) {
        if let Some(kernels) = &self.kernels {
            let value = f.value_and_gradient_here(on, &mut self.gradient);
            kernels.propose(&self.state, f.parameters().flat().tensor(), self.gradient.tensor(), &value);
            let trial = f.value_here(on);
            kernels.judge(&self.state, self.gradient.tensor(), [&value, &trial], self.progress.table());
        } else {
            self.advance_on_host(f, on);
        }
        self.set_point(f.parameters_mut());
    }
}
