//! STR on the device. The host reads only the records, in bulk.

use crate::{
    BatchLoss, Component, DeviceMethod, Flat, TorchObjective,
    device_method::{sealed::DeviceStep, vector},
    device_records::{DeviceProgress, REGION_COLUMNS, region},
    device_region::{DeviceRegion, DeviceTrial},
    objective::BatchSource,
};
use strust::{
    Error,
    config::Config,
    methods::{State, StrConfig, StrState},
};
use tch::no_grad;

/// Algorithm 1 on the device, at the model's own parameters. It makes the steps of [`strust::methods::Str`], up to
/// rounding.
///
/// If a value or a gradient at the current point is not finite, the point stays unchanged. The error is returned when
/// the records are read.
///
/// ```
/// use strust::prelude::*;
/// use strust_torch::{DeviceMethod, DeviceStr, TorchObjective};
/// use tch::{Device, nn::{Init, VarStore}};
///
/// let store = VarStore::new(Device::Cpu);
/// let x = store.root().var("x", &[2], Init::Const(3.0));
/// let mut f = TorchObjective::<f32, _>::new(&store, 1, |_: &Sample| x.square().sum(tch::Kind::Float))?;
/// let mut method = DeviceStr::start(StrConfig::default(), &f, 100)?;
/// for _ in 0..50 {
///     method.step(&mut f, &Sample::range(0..1))?;
/// }
/// assert!(method.records()?.last().unwrap().value < 1e-6);
/// # Ok::<(), strust_torch::Error>(())
/// ```
#[derive(Debug)]
pub struct DeviceStr<T> {
    region: DeviceRegion<T>,
    gradient: Flat<T>,
    progress: DeviceProgress,
}

impl<T: Component> DeviceMethod<T> for DeviceStr<T> {
    type Config = StrConfig;
    type State = StrState<Flat<T>>;

    fn at<L: BatchLoss>(
        config: StrConfig,
        f: &TorchObjective<T, L>,
        state: Option<&Self::State>,
        read_every: usize,
    ) -> Result<Self, Error> {
        let (device, k) = (f.parameters().device(), state.map_or(0, State::steps));
        Ok(Self {
            region: DeviceRegion::new(config.region.check()?, f, state.map(StrState::radius)),
            gradient: vector(f, None),
            progress: DeviceProgress::new(k, read_every, REGION_COLUMNS, device, region),
        })
    }
    fn state<L: BatchLoss>(&mut self, f: &TorchObjective<T, L>) -> StrState<Flat<T>> {
        StrState::from_parts(f.point(), self.region.radius.double_value(&[]), self.progress.k(), ())
    }
}

impl<T: Component> DeviceStep<T> for DeviceStr<T> {
    fn progress(&mut self) -> &mut DeviceProgress {
        &mut self.progress
    }
    fn advance<L: BatchLoss>(&mut self, f: &mut TorchObjective<T, L>, on: &impl BatchSource<L>) {
        let Self { region, gradient: g, progress } = self;
        // fᵢ(x), g = ∇fᵢ(x); H = I
        let value = f.value_and_gradient_here(on, g);
        no_grad(|| {
            let squared_norm = g.dot_tensor(g);
            // p = −a·g with a = min(1, Δ/‖g‖)
            let norm = squared_norm.sqrt();
            let size = (&region.radius / &norm).clamp_max(1.0);
            let length = &size * &norm;
            // a‖g‖² − ½a²‖g‖², in an order without cancellation
            let predicted = &size * (&squared_norm - &size * &squared_norm * 0.5);
            let step = DeviceTrial {
                value: &value,
                squared_norm: &squared_norm,
                size: &size,
                direction: g,
                length: &length,
                predicted: &predicted,
                bounded: None,
            };
            let _finite = region.step(f, on, progress, &step, &[]);
        });
    }
}
