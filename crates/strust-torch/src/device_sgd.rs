//! SGD on the device. The host reads only the records, in bulk.

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
use strust_baselines::{SgdConfig, SgdState};
use tch::no_grad;

/// SGD on the device, at the model's own parameters. It makes the steps of [`strust_baselines::Sgd`], up to rounding.
///
/// ```
/// use strust::prelude::*;
/// use strust_baselines::{SgdConfig};
/// use strust_torch::{DeviceMethod, DeviceSgd, TorchObjective};
/// use tch::{Device, nn::{Init, VarStore}};
///
/// let store = VarStore::new(Device::Cpu);
/// let x = store.root().var("x", &[2], Init::Const(3.0));
/// let mut f = TorchObjective::<f32, _>::new(&store, 1, |_: &Sample| x.square().sum(tch::Kind::Float))?;
/// let mut method = DeviceSgd::start(SgdConfig::default(), &f, 100)?;
/// for _ in 0..50 {
///     method.step(&mut f, &Sample::range(0..1))?;
/// }
/// assert!(method.records()?.last().unwrap().value < 1e-6);
/// # Ok::<(), strust_torch::Error>(())
/// ```
#[derive(Debug)]
pub struct DeviceSgd<T> {
    config: Checked<SgdConfig>,
    rate: DeviceRate,
    gradient: Flat<T>,
    velocity: Flat<T>,
    progress: DeviceProgress,
}

impl<T> DeviceSgd<T> {
    /// Multiplies η by the factor of a schedule. The device counts the steps.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.rate.schedule = schedule;
        self
    }
}

impl<T: Component> DeviceMethod<T> for DeviceSgd<T> {
    type Config = SgdConfig;
    type State = SgdState<Flat<T>>;

    fn at<L: BatchLoss>(
        config: SgdConfig,
        f: &TorchObjective<T, L>,
        state: Option<&Self::State>,
        read_every: usize,
    ) -> Result<Self, Error> {
        let (device, k) = (f.parameters().device(), state.map_or(0, |state| state.k));
        let config = config.check()?;
        Ok(Self {
            rate: DeviceRate::new(config.learning_rate, k, device),
            config,
            gradient: vector(f, None),
            velocity: vector(f, state.map(|state| &state.velocity)),
            progress: DeviceProgress::new(k, read_every, PLAIN_COLUMNS, device, plain),
        })
    }
    fn state<L: BatchLoss>(&mut self, f: &TorchObjective<T, L>) -> SgdState<Flat<T>> {
        SgdState { x: f.point(), velocity: self.velocity.clone(), k: self.progress.k() }
    }
}

impl<T: Component> DeviceStep<T> for DeviceSgd<T> {
    fn progress(&mut self) -> &mut DeviceProgress {
        &mut self.progress
    }
    fn advance<L: BatchLoss>(&mut self, f: &mut TorchObjective<T, L>, on: &impl BatchSource<L>) {
        let Self { config, rate, gradient: g, velocity: v, progress } = self;
        let plain = config.momentum == 0.0 && config.weight_decay == 0.0;
        let value = f.value_and_gradient_here(on, g);
        no_grad(|| {
            let squared_norm = g.dot_tensor(g);
            let finite = progress.check_finite(&value, &squared_norm);
            let rate = rate.next();
            let x = f.parameters_mut().flat_mut();
            // v ← βv + (g + w·x) and x ← x − η·v. If a number is not finite, both stay unchanged; v is always finite.
            if !plain {
                let _ = g.tensor_mut().g_add_(&(x.tensor() * config.weight_decay));
                let _ = g.tensor_mut().g_add_(&(v.tensor() * config.momentum));
            }
            v.set_choice(finite, g, &v.share());
            x.set_sum_tensor(&x.share(), &(-&rate).where_scalarother(finite, 0.0), v);
            let norm = if plain { squared_norm.sqrt() } else { v.dot_tensor(v).sqrt() };
            progress.write(&[&value, &squared_norm, &rate, &(norm * &rate)]);
        });
    }
}
