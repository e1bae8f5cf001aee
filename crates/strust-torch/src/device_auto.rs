//! Auto on the device. Step size, curvature and verdict are tensors, and the device chooses between the old and the new
//! points. The host reads only the records, in bulk.

use crate::{
    BatchLoss, Component, DeviceMethod, Flat, TorchObjective,
    device_method::{DeviceProgress, sealed::DeviceStep},
    device_records::{JUDGED_COLUMNS, judged},
    objective::BatchSource,
};
use strust::{
    Error,
    config::{Checked, Config},
    methods::{AutoConfig, AutoState, Learned, auto},
    objective::{Evaluation, Objective},
    vector::Vector,
};
use tch::{Device, Kind, Tensor, no_grad};

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
    progress: DeviceProgress,
}

/// [`Learned`] on the device, each number a double. An unknown curvature or size is 0.
#[derive(Debug)]
struct DeviceLearned {
    accepted: Tensor,
    curvature: Tensor,
    noise: Tensor,
    recent_noise: Tensor,
    least_noise: Tensor,
    remembered: Tensor,
    distance: Tensor,
    size: Tensor,
    at_average: Tensor,
}

impl DeviceLearned {
    fn new(learned: &Learned, device: Device) -> Self {
        let number = |value: f64| Tensor::full([0_i64; 0], value, (Kind::Double, device));
        Self {
            accepted: number(learned.accepted as f64),
            curvature: number(learned.curvature.unwrap_or(0.0)),
            noise: number(learned.noise),
            recent_noise: number(learned.recent_noise),
            least_noise: number(learned.least_noise),
            remembered: number(learned.remembered),
            distance: number(learned.distance),
            size: number(learned.size.unwrap_or(0.0)),
            at_average: number(f64::from(u8::from(learned.at_average))).gt(0.0),
        }
    }
    fn read(&self) -> Learned {
        let known = |number: &Tensor| Some(number.double_value(&[])).filter(|&value| value > 0.0);
        Learned {
            accepted: self.accepted.double_value(&[]) as u64,
            curvature: known(&self.curvature),
            noise: self.noise.double_value(&[]),
            recent_noise: self.recent_noise.double_value(&[]),
            least_noise: self.least_noise.double_value(&[]),
            remembered: self.remembered.double_value(&[]),
            distance: self.distance.double_value(&[]),
            size: known(&self.size),
            at_average: self.at_average.int64_value(&[]) != 0,
        }
    }
    /// The noise, the recent noise, its least value and the steps that the average remembers, after ½‖g − gₗₐₛₜ‖².
    fn hear(&self, difference: &Tensor) -> [Tensor; 4] {
        let Self { accepted: steps, noise, recent_noise, least_noise, remembered, .. } = self;
        let first = steps.eq(0.0);
        let share = ((steps + (auto::NOISE_MEMORY - 1.0)).reciprocal_() * auto::NOISE_MEMORY).clamp_max(1.0);
        let noise = noise.lerp_tensor(difference, &share.where_scalarother(&first.logical_not(), 0.0));
        // 1/0 is infinite, and the first difference is no noise.
        let share = steps.clamp_max(auto::RECENT).reciprocal_().where_scalarother(&first.logical_not(), 0.0);
        let recent = recent_noise.lerp_tensor(difference, &share);
        let early = steps.le(auto::RECENT);
        let fallen = (&recent / least_noise).sqrt_() * remembered;
        let fallen = fallen.maximum(&remembered.clamp_max(auto::SHORTEST));
        let falls = recent.lt_tensor(least_noise).logical_and(&early.logical_not());
        let least = recent.where_self(&early.logical_or(&falls), least_noise);
        [noise, recent, least, fallen.where_self(&falls, remembered)]
    }
    /// a = min(γ/κ, q·r̄/√(k·n), 1.5·aₗₐₛₜ), or `first` at the first step. κ = 0 and n = 0 give infinite bounds.
    fn size(&self, config: &AutoConfig, noise: &Tensor, distance: &Tensor, first: &Tensor) -> Tensor {
        let grown = (&self.size * auto::GROWTH).where_self(&self.size.gt(0.0), first);
        let trusted = self.curvature.reciprocal() * config.gamma;
        let steady = distance * config.noise / ((&self.accepted + 1.0) * noise).sqrt();
        let infinite = Tensor::full_like(&steady, f64::INFINITY);
        let known = self.accepted.ge(auto::NOISE_KNOWN as f64).logical_and(&noise.gt(0.0));
        grown.minimum(&trusted).minimum(&steady.where_self(&known, &infinite))
    }
}

impl<T: Component> DeviceMethod<T> for DeviceAuto<T> {
    type Config = AutoConfig;
    type State = AutoState<Flat<T>>;

    fn start<L: BatchLoss>(config: AutoConfig, f: &TorchObjective<T, L>, read_every: usize) -> Result<Self, Error> {
        let x = f.point();
        let device = x.tensor().device();
        Ok(Self {
            config: config.check()?,
            z: x.clone(),
            start: x.clone(),
            last: x.zeros_like(),
            root: x.zeros_like(),
            gradient: x.zeros_like(),
            first_length: auto::FIRST * (1.0 + x.norm()),
            x,
            learned: DeviceLearned::new(&Learned::default(), device),
            progress: DeviceProgress::new(0, read_every, JUDGED_COLUMNS, device, judged),
        })
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
        let Self { config, x, z, start, last, root, gradient: g, first_length, learned, progress } = self;
        let AutoConfig { momentum, power, beta2, epsilon, .. } = **config;

        let value = f.value_and_gradient_here(on, g);
        no_grad(|| {
            let squared_norm = g.dot_tensor(g);
            let finite = ((&value + &squared_norm) * 0.0).eq(0.0);
            let (g, y) = (g.tensor(), f.parameters().flat().tensor().copy());
            let accepted = &learned.accepted;

            // D and d = D⁻¹g
            let correction = ((accepted + 1.0) * beta2.ln()).expm1_().neg_().rsqrt_();
            let new_root = (root.tensor() * beta2.sqrt()).hypot(&(g * (1.0 - beta2).sqrt()));
            let mean = new_root.mean(Kind::Double) * &correction;
            let metric = (&new_root * &correction).g_add_(&(mean * epsilon));
            let d = g / &metric;

            // n and r̄
            let squares = |mut v: Tensor| v.square_().g_mul_(&metric).sum(Kind::Double);
            let distance = learned.distance.maximum(&squares(&y - start.tensor()).sqrt());
            let difference = (g - last.tensor()).square_().g_div_(&metric).sum(Kind::Double) * 0.5;
            let [noise, recent, least, remembered] = learned.hear(&difference);

            let first = d.norm().to_kind(Kind::Double).reciprocal_() * *first_length;
            let a = learned.size(config, &noise, &distance, &first);
            let c = (&remembered + (power + 1.0)).reciprocal_() * (power + 1.0);
            let new_z = z.tensor().addcmul(&(-&a).to_kind(T::KIND), &d);
            let new_x = x.tensor().lerp_tensor(&new_z, &c.to_kind(T::KIND));
            let own = f.parameters_mut().flat_mut().tensor_mut();
            let _ = new_z.lerp_scalar_out(own, &new_x, momentum);
            let trial = f.value_here(on);

            // Accept or reject; κ
            let delta = f.parameters().flat().tensor() - &y;
            let slope = (g * &delta).sum(Kind::Double);
            let length = delta.norm();
            let square = squares(delta);
            let rounding = value.abs() * Evaluation::new(1.0, T::EPSILON).rounding;
            let beyond = &trial - &value - slope;
            let sees = beyond.abs().gt_tensor(&(&rounding * 2.0)).logical_and(&square.gt(0.0));
            // Every comparison with NaN is false: a trial that is not finite is rejected and teaches nothing.
            let real = trial.isfinite();
            let seen = beyond * 2.0 / square;
            let known = learned.curvature.gt(0.0);
            let expected =
                seen.le_tensor(&(&learned.curvature * auto::TOLERANCE)).logical_and(&known).logical_and(&sees);
            let descends = trial.le_tensor(&(&value + &rounding));
            let accept = descends.logical_or(&expected).logical_and(&real).logical_and(&finite);
            let moves = squared_norm.gt(0.0);
            let accept = accept.logical_and(&moves);

            let bounded = seen.clamp_min(0.0).minimum(&(&learned.curvature * auto::MOST));
            let above = bounded.gt_tensor(&learned.curvature);
            let upwards = Tensor::full_like(&a, auto::UPWARDS).where_scalarother(&accept, auto::AFTER_REJECTION);
            let share = upwards.where_scalarother(&above, auto::DOWNWARDS);
            let next = learned.curvature.lerp_tensor(&bounded, &share);
            let next = next.where_self(&known, &seen.clamp_min(0.0));
            let teaches = sees.logical_and(&real).logical_and(&finite).logical_and(&moves);
            learned.curvature.copy_(&next.where_self(&teaches, &learned.curvature));

            // If f is not finite at y, z goes back to the average. If y was there already, the run breaks down.
            let retreats = finite.logical_not();
            let broken = retreats.logical_and(&learned.at_average);
            let whole = progress.check(&broken.logical_not());
            let accept = accept.logical_and(whole);
            let shrunk = &a / auto::SHRINK;
            let size = a.where_self(&accept, &shrunk);
            let size = size.where_self(&moves, &learned.size);
            let size = size.where_self(&finite, &(&learned.size / auto::SHRINK));
            learned.size.copy_(&size);
            learned.at_average.copy_(&retreats.logical_or(&learned.at_average.logical_and(&accept.logical_not())));
            let DeviceLearned { noise: n, recent_noise, least_noise, remembered: m, distance: r, .. } = learned;
            let news = [(n, noise), (recent_noise, recent), (least_noise, least), (m, remembered + 1.0), (r, distance)];
            for (kept, new) in news {
                kept.copy_(&new.where_self(&accept, kept));
            }
            let _ = learned.accepted.g_add_(&accept.to_kind(Kind::Double));

            for (kept, new) in [(&mut *x, &new_x), (root, &new_root), (last, g)] {
                let _ = new.where_self_out(kept.tensor(), &accept, &kept.tensor().shallow_clone());
            }
            let old_z = x.tensor().where_self(&retreats, z.tensor());
            let _ = new_z.where_self_out(z.tensor(), &accept, &old_z);
            f.parameters_mut().flat_mut().set_lerp(z, momentum, x);

            let flags = [accept, finite, broken].map(|flag| flag.to_kind(Kind::Double));
            let numbers = [&value, &squared_norm, &a, &length.to_kind(Kind::Double)];
            progress.write(&numbers.into_iter().chain(&flags).collect::<Vec<_>>());
        });
    }
}
