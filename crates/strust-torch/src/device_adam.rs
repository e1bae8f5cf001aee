//! Adam on the device. The host reads only the records, in bulk.

use crate::{
    BatchLoss, Component, DeviceMethod, Flat, TorchObjective,
    device_method::{sealed::DeviceStep, vector},
    device_rate::DeviceRate,
    device_records::{DeviceProgress, PLAIN_COLUMNS, plain},
    objective::BatchSource,
};
use strust::{
    Error,
    config::{Checked, Config},
    schedule::Schedule,
};
use strust_baselines::{AdamConfig, AdamState};
use tch::{Tensor, no_grad};

/// Adam on the device, at the model's own parameters. It makes the steps of [`strust_baselines::Adam`], up to rounding.
///
/// ```
/// use strust::prelude::*;
/// use strust_baselines::{AdamConfig};
/// use strust_torch::{DeviceAdam, DeviceMethod, TorchObjective};
/// use tch::{Device, nn::{Init, VarStore}};
///
/// let store = VarStore::new(Device::Cpu);
/// let x = store.root().var("x", &[2], Init::Const(3.0));
/// let mut f = TorchObjective::<f32, _>::new(&store, 1, |_: &Sample| x.square().sum(tch::Kind::Float))?;
/// let mut method = DeviceAdam::start(AdamConfig { learning_rate: 0.2, ..Default::default() }, &f, 100)?;
/// for _ in 0..200 {
///     method.step(&mut f, &Sample::range(0..1))?;
/// }
/// assert!(method.records()?.last().unwrap().value < 1e-4);
/// # Ok::<(), strust_torch::Error>(())
/// ```
#[derive(Debug)]
pub struct DeviceAdam<T> {
    config: Checked<AdamConfig>,
    rate: DeviceRate,
    /// β₁, β₂, 1−β₁, 1−β₂ of a step, and their values in a step that changes nothing.
    factors: Tensor,
    frozen: Tensor,
    /// β₁ᵏ and β₂ᵏ.
    powers: Tensor,
    gradient: Flat<T>,
    mean: Flat<T>,
    square: Flat<T>,
    progress: DeviceProgress,
}

impl<T> DeviceAdam<T> {
    /// Multiplies η by the factor of a schedule. The device counts the steps.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.rate.schedule = schedule;
        self
    }
}

impl<T: Component> DeviceMethod<T> for DeviceAdam<T> {
    type Config = AdamConfig;
    type State = AdamState<Flat<T>>;

    fn at<L: BatchLoss>(
        config: AdamConfig,
        f: &TorchObjective<T, L>,
        state: Option<&Self::State>,
        read_every: usize,
    ) -> Result<Self, Error> {
        let (device, k) = (f.parameters().device(), state.map_or(0, |state| state.k));
        let config = config.check()?;
        let AdamConfig { learning_rate, beta1, beta2, .. } = *config;
        let numbers = |numbers: &[f64]| Tensor::from_slice(numbers).to_device(device);
        Ok(Self {
            rate: DeviceRate::new(learning_rate, k, device),
            factors: numbers(&[beta1, beta2, 1.0 - beta1, 1.0 - beta2]),
            frozen: numbers(&[1.0, 1.0, 0.0, 0.0]),
            powers: numbers(&[beta1, beta2].map(|beta| beta.powf(k as f64))),
            config,
            gradient: vector(f, None),
            mean: vector(f, state.map(|state| &state.mean)),
            square: vector(f, state.map(|state| &state.square)),
            progress: DeviceProgress::new(k, read_every, PLAIN_COLUMNS, device, plain),
        })
    }
    fn state<L: BatchLoss>(&mut self, f: &TorchObjective<T, L>) -> AdamState<Flat<T>> {
        AdamState { x: f.point(), mean: self.mean.clone(), square: self.square.clone(), k: self.progress.k() }
    }
}

impl<T: Component> DeviceStep<T> for DeviceAdam<T> {
    fn progress(&mut self) -> &mut DeviceProgress {
        &mut self.progress
    }
    fn advance<L: BatchLoss>(&mut self, f: &mut TorchObjective<T, L>, on: &impl BatchSource<L>) {
        let Self { config, rate, factors, frozen, powers, gradient: g, mean, square, progress } = self;
        let value = f.value_and_gradient_here(on, g);
        no_grad(|| {
            let squared_norm = g.dot_tensor(g);
            let finite = progress.check_finite(&value, &squared_norm);
            // 0·NaN is NaN, so the gradient is masked and not scaled.
            let not_finite = finite.logical_not();
            let _ = g.tensor_mut().masked_fill_(&not_finite, 0.0);
            let now = factors.where_self(finite, frozen);
            let [beta1, beta2, rest1, rest2] = [0, 1, 2, 3].map(|i| now.get(i));
            let rate = rate.next();

            // m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g∘g
            let (m, v) = (mean.tensor_mut(), square.tensor_mut());
            let _ = m.g_mul_(&beta1).g_add_(&(g.tensor() * rest1));
            let _ = v.g_mul_(&beta2).g_add_(&(g.tensor().square() * rest2));
            // x ← x − η·(m̂/(√v̂ + ε) + w·x); the step is written over the gradient, which is not used again
            let _ = powers.g_mul_(&now.narrow(0, 0, 2));
            let correction: Tensor = 1.0 - &*powers;
            let divisor = (&*v / correction.get(1)).sqrt_().g_add_scalar_(config.epsilon);
            let _ = (&*m * (-&rate / correction.get(0))).div_out(g.tensor(), &divisor);
            let x = f.parameters_mut().flat_mut().tensor_mut();
            if config.weight_decay > 0.0 {
                let _ = g.tensor_mut().g_add_(&(&*x * (&rate * -config.weight_decay)));
            }
            let _ = g.tensor_mut().masked_fill_(&not_finite, 0.0);
            let _ = x.g_add_(g.tensor());
            let length = g.dot_tensor(g).sqrt();
            progress.write(&[&value, &squared_norm, &rate, &length]);
        });
    }
}
