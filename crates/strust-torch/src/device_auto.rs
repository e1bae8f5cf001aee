//! Auto on the device. Curvature, noise and verdict are tensors, and the device chooses between the old and the new
//! points. The host reads only the records, in bulk.
//!
//! On a GPU the step has its own kernels around the two evaluations (`native/auto.cu`). Elsewhere, and if they cannot be
//! compiled, it runs operation by operation.

mod operations;

use crate::{
    BatchLoss, Component, DeviceMethod, Flat, TorchObjective, cuda,
    device_method::{DeviceProgress, sealed::DeviceStep},
    device_records::{JUDGED_COLUMNS, judged},
    objective::BatchSource,
};
use strust::{
    Error,
    config::{Checked, Config},
    methods::{AutoConfig, AutoState, Learned, Noise, auto, noise},
    objective::{Evaluation, Objective},
    vector::Vector,
};
use tch::{Device, Tensor, no_grad};

/// [`strust::methods::Auto`] on the device. It makes the same steps, up to rounding. The model's own parameters are y,
/// where gradients are taken; the answer is the average in [`state`](DeviceMethod::state).
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
    /// x, the average.
    x: Flat<T>,
    z: Flat<T>,
    start: Flat<T>,
    /// The last gradient of an accepted step.
    last: Flat<T>,
    /// The root of the mean of g∘g.
    root: Flat<T>,
    gradient: Flat<T>,
    /// ‖Δ‖ of the first step.
    first_length: f64,
    learned: DeviceLearned,
    /// Memory of the kernels; `None` if the step runs operation by operation.
    space: Option<Tensor>,
    progress: DeviceProgress,
}

/// [`Learned`] on the device as doubles, in the order of the kernels. An unknown curvature or size is 0.
#[derive(Debug)]
struct DeviceLearned(Tensor);

impl DeviceLearned {
    fn new(learned: &Learned, device: Device) -> Self {
        let Learned { accepted, curvature, noise, distance, size, trust, pull, at_average } = *learned;
        let Noise { mean, recent, least, remembered } = noise;
        let (curvature, size) = (curvature.unwrap_or(0.0), size.unwrap_or(0.0));
        let at_average = f64::from(u8::from(at_average));
        let numbers = [accepted as f64, curvature, mean, recent, least, remembered];
        Self(Tensor::from_slice(&[&numbers[..], &[distance, size, trust, pull, at_average]].concat()).to_device(device))
    }
    fn read(&self) -> Learned {
        let numbers = Vec::try_from(&self.0).expect("a row of doubles");
        let [accepted, curvature, mean, recent, least, remembered, distance, size, trust, pull, at_average] =
            numbers[..]
        else {
            unreachable!("the numbers of `new`")
        };
        let known = |number: f64| Some(number).filter(|&number| number > 0.0);
        Learned {
            accepted: accepted as u64,
            curvature: known(curvature),
            noise: Noise { mean, recent, least, remembered },
            distance,
            size: known(size),
            trust,
            pull,
            at_average: at_average > 0.0,
        }
    }
}

impl<T: Component> DeviceAuto<T> {
    /// The vectors in the order of the kernels.
    fn vectors<'a, L: BatchLoss>(&'a self, f: &'a TorchObjective<T, L>) -> [&'a Tensor; 7] {
        let Self { x, z, start, last, root, gradient, .. } = self;
        [f.parameters().flat(), gradient, x, z, start, last, root].map(Flat::tensor)
    }
    /// The settings in the order of the kernels.
    fn settings(&self) -> [f64; 26] {
        let AutoConfig { gamma, noise, momentum, power, beta2, epsilon, weight_decay } = *self.config;
        let rounding = Evaluation::new(1.0, T::EPSILON).rounding;
        [
            gamma,
            noise,
            momentum,
            power,
            beta2,
            epsilon,
            weight_decay,
            self.first_length,
            rounding,
            auto::GROWTH,
            auto::SHRINK,
            auto::TOLERANCE,
            auto::MOST,
            auto::UPWARDS,
            auto::DOWNWARDS,
            auto::AFTER_REJECTION,
            noise::NOISE_MEMORY,
            noise::RECENT,
            noise::SHORTEST,
            auto::NOISE_KNOWN as f64,
            auto::WINDOW as f64,
            auto::PULL,
            auto::CIRCLES,
            auto::ADVANCES,
            auto::LEAST,
            auto::LENGTHEN,
        ]
    }
}

impl<T: Component> DeviceMethod<T> for DeviceAuto<T> {
    type Config = AutoConfig;
    type State = AutoState<Flat<T>>;

    fn start<L: BatchLoss>(config: AutoConfig, f: &TorchObjective<T, L>, read_every: usize) -> Result<Self, Error> {
        let x = f.point();
        let device = x.tensor().device();
        let mut this = Self {
            config: config.check()?,
            z: x.clone(),
            start: x.clone(),
            last: x.zeros_like(),
            root: x.zeros_like(),
            gradient: x.zeros_like(),
            first_length: auto::FIRST * (1.0 + x.norm()),
            x,
            learned: DeviceLearned::new(&Learned::default(), device),
            space: None,
            progress: DeviceProgress::new(0, read_every, JUDGED_COLUMNS, device, judged),
        };
        this.space = cuda::auto_space(this.vectors(f));
        Ok(this)
    }
    fn resume<L: BatchLoss>(
        config: AutoConfig,
        f: &mut TorchObjective<T, L>,
        state: &AutoState<Flat<T>>,
        read_every: usize,
    ) -> Result<Self, Error> {
        f.check_point(&state.x)?;
        let mut this = Self::start(config, f, read_every)?;
        let to = [&mut this.x, &mut this.z, &mut this.start, &mut this.last, &mut this.root];
        let from = [&state.x, &state.z, &state.start, &state.gradient, &state.root];
        to.into_iter().zip(from).for_each(|(to, from)| to.copy_from(from));
        this.first_length = auto::FIRST * (1.0 + this.start.norm());
        this.learned = DeviceLearned::new(&state.learned, this.x.tensor().device());
        this.progress.resume_at(state.k);
        no_grad(|| f.parameters_mut().flat_mut().set_lerp(&this.z, this.config.momentum, &this.x));
        Ok(this)
    }
    fn state<L: BatchLoss>(&mut self, _: &TorchObjective<T, L>) -> AutoState<Flat<T>> {
        let k = self.progress.k();
        let Self { x, z, start, last, root, learned, .. } = self;
        let [x, z, start, gradient, root] = [x, z, start, last, root].map(|vector| vector.clone());
        AutoState { x, z, start, gradient, root, learned: learned.read(), k }
    }
}

impl<T: Component> DeviceStep<T> for DeviceAuto<T> {
    fn progress(&mut self) -> &mut DeviceProgress {
        &mut self.progress
    }
    fn advance<L: BatchLoss>(&mut self, f: &mut TorchObjective<T, L>, on: &impl BatchSource<L>) {
        let value = f.value_and_gradient_here(on, &mut self.gradient);
        let Some(space) = &self.space else { return no_grad(|| self.advance_by_operations(f, on, &value)) };
        let (settings, memory) = (self.settings(), [&self.learned.0, space, self.progress.whole()]);
        cuda::auto_propose(self.vectors(f), &settings, memory);
        let trial = f.value_here(on);
        let [table, next] = self.progress.table();
        cuda::auto_judge(self.vectors(f), &settings, memory, [&value, &trial, table, next]);
    }
}
