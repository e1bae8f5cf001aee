//! STR on the device. Radius, ratio and verdict are tensors, and the device chooses between the old and the new point.
//! The host reads only the records, in bulk.

use crate::{
    BatchLoss, Component, DeviceMethod, Flat, TorchObjective,
    device_method::{DeviceProgress, sealed::DeviceStep},
    device_records::{REGION_COLUMNS, region},
    objective::BatchSource,
};
use strust::{
    Error,
    config::{Checked, Config},
    methods::{State, StrConfig, StrState},
    objective::{Evaluation, Objective},
    radius::RegionConfig,
    vector::Vector,
};
use tch::{Kind, Tensor, no_grad};

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
    region: Checked<RegionConfig>,
    /// Δ.
    radius: Tensor,
    gradient: Flat<T>,
    old: Flat<T>,
    progress: DeviceProgress,
}

impl<T: Component> DeviceStr<T> {
    fn at<L>(config: StrConfig, f: &TorchObjective<T, L>, radius: f64, k: u64, rows: usize) -> Result<Self, Error>
    where
        L: BatchLoss,
    {
        let flat = f.parameters().flat();
        let device = flat.tensor().device();
        Ok(Self {
            region: config.region.check()?,
            radius: Tensor::full([0_i64; 0], radius, (Kind::Double, device)),
            gradient: flat.zeros_like(),
            old: flat.zeros_like(),
            progress: DeviceProgress::new(k, rows, REGION_COLUMNS, device, region),
        })
    }
}

impl<T: Component> DeviceMethod<T> for DeviceStr<T> {
    type Config = StrConfig;
    type State = StrState<Flat<T>>;

    fn start<L>(config: StrConfig, f: &TorchObjective<T, L>, read_every: usize) -> Result<Self, Error>
    where
        L: BatchLoss,
    {
        let radius = config.region.initial_radius;
        Self::at(config, f, radius, 0, read_every)
    }
    fn resume<L: BatchLoss>(
        config: StrConfig,
        f: &mut TorchObjective<T, L>,
        state: &StrState<Flat<T>>,
        read_every: usize,
    ) -> Result<Self, Error> {
        f.check_point(state.point())?;
        f.set(state.point());
        Self::at(config, f, state.radius(), state.steps(), read_every)
    }
    fn state<L: BatchLoss>(&mut self, f: &TorchObjective<T, L>) -> StrState<Flat<T>> {
        StrState::from_parts(f.point(), self.radius.double_value(&[]), self.progress.k(), ())
    }
}

impl<T: Component> DeviceStep<T> for DeviceStr<T> {
    fn progress(&mut self) -> &mut DeviceProgress {
        &mut self.progress
    }
    fn advance<L: BatchLoss>(&mut self, f: &mut TorchObjective<T, L>, on: &impl BatchSource<L>) {
        let Self { region, radius, gradient: g, old, progress } = self;

        // fᵢ(x), g = ∇fᵢ(x); H = I
        let value = f.value_and_gradient_here(on, g);
        no_grad(|| {
            let squared_norm = g.dot_tensor(g);
            // p = −a·g with a = min(1, Δ/‖g‖)
            let (moves, still) = (squared_norm.gt(0.0), squared_norm.eq(0.0));
            let norm = squared_norm.sqrt();
            let size = (&*radius / &norm).clamp_max(1.0);
            let length = &size * &norm;
            // a‖g‖² − ½a²‖g‖², in an order without cancellation
            let predicted = &size * (&squared_norm - &size * &squared_norm * 0.5);

            let x = f.parameters_mut().flat_mut();
            old.copy_from(x);
            x.set_sum_tensor(old, &(-&size), g);
            let trial = f.value_here(on);

            // r, on the same sample; accept or reject; the next radius
            let rounding = Evaluation::new(1.0, T::EPSILON).rounding * value.abs();
            let actual = &value - &trial;
            // If a number is not finite, the ratio is NaN. Every comparison with NaN is false: the step is rejected and
            // the radius shrinks.
            let ratio = (&actual + &rounding) / (&predicted + &rounding) + &actual * 0.0;
            let finite = progress.check_finite(&value, &squared_norm);
            let accepted = ratio.gt(region.accept_above).logical_or(&still).logical_and(finite);
            let grows = ratio.gt(region.grow_above).logical_and(&moves);
            let keeps = ratio.ge(region.shrink_below).logical_and(&accepted).logical_or(&still);
            let x = f.parameters_mut().flat_mut();
            x.set_choice(&accepted, &x.share(), old);
            let grown = (&*radius * region.grow).clamp_max(region.max_radius);
            let shrunk = (&*radius / region.shrink).clamp_min(f64::MIN_POSITIVE);
            let next = grown.where_self(&grows, &radius.where_self(&keeps, &shrunk)).where_self(finite, radius);

            let flags = [accepted, grows, keeps].map(|flag| flag.to_kind(Kind::Double));
            let numbers = [&value, &squared_norm, &size, &length, radius, &predicted, &trial, &ratio];
            progress.write(&numbers.into_iter().chain(&flags).collect::<Vec<_>>());
            radius.copy_(&next);
        });
    }
}
