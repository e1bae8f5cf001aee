//! The step as operations on tensors.

use super::DeviceAuto;
use crate::{BatchLoss, Component, TorchObjective, objective::BatchSource};
use strust::{
    methods::{AutoConfig, auto, noise},
    objective::Evaluation,
};
use tch::{Kind, Tensor};

/// The numbers in [`DeviceLearned`](super::DeviceLearned), each a view of its own.
struct Numbers {
    accepted: Tensor,
    curvature: Tensor,
    noise: Tensor,
    recent_noise: Tensor,
    least_noise: Tensor,
    remembered: Tensor,
    distance: Tensor,
    size: Tensor,
    trust: Tensor,
    pull: Tensor,
    at_average: Tensor,
}

impl Numbers {
    fn of(numbers: &Tensor) -> Self {
        let view = |i| numbers.select(0, i);
        Self {
            accepted: view(0),
            curvature: view(1),
            noise: view(2),
            recent_noise: view(3),
            least_noise: view(4),
            remembered: view(5),
            distance: view(6),
            size: view(7),
            trust: view(8),
            pull: view(9),
            at_average: view(10),
        }
    }
    /// The noise, the recent noise, its least value and the steps that the average remembers, after ½‖g − gₗₐₛₜ‖².
    fn hear(&self, difference: &Tensor) -> [Tensor; 4] {
        let Self { accepted: steps, noise, recent_noise, least_noise, remembered, .. } = self;
        let first = steps.eq(0.0);
        let share = ((steps + (noise::NOISE_MEMORY - 1.0)).reciprocal_() * noise::NOISE_MEMORY).clamp_max(1.0);
        let noise = noise.lerp_tensor(difference, &share.where_scalarother(&first.logical_not(), 0.0));
        // 1/0 is infinite, and the first difference is no noise.
        let share = steps.clamp_max(noise::RECENT).reciprocal_().where_scalarother(&first.logical_not(), 0.0);
        let recent = recent_noise.lerp_tensor(difference, &share);
        let early = steps.le(noise::RECENT);
        let fallen = (&recent / least_noise).sqrt_() * remembered;
        let fallen = fallen.maximum(&remembered.clamp_max(noise::SHORTEST));
        let falls = recent.lt_tensor(least_noise).logical_and(&early.logical_not());
        let least = recent.where_self(&early.logical_or(&falls), least_noise);
        [noise, recent, least, fallen.where_self(&falls, remembered)]
    }
    /// a = min(γₖ/κ, q·r̄/√(k·n), 1.5·aₗₐₛₜ), or `first` at the first step. κ = 0 and n = 0 give infinite bounds.
    fn size(&self, config: &AutoConfig, noise: &Tensor, distance: &Tensor, first: &Tensor) -> Tensor {
        let grown = (&self.size * auto::GROWTH).where_self(&self.size.gt(0.0), first);
        let trusted = &self.trust * config.gamma / &self.curvature;
        let steady = distance * config.noise / ((&self.accepted + 1.0) * noise).sqrt();
        let infinite = Tensor::full_like(&steady, f64::INFINITY);
        let known = self.accepted.ge(auto::NOISE_KNOWN as f64).logical_and(&noise.gt(0.0));
        grown.minimum(&trusted).minimum(&steady.where_self(&known, &infinite))
    }
    /// γₖ, after b of an accepted step.
    fn feel(&mut self, b: &Tensor, gamma: f64, accept: &Tensor) {
        let b = b.clamp(-auto::PULL, auto::PULL);
        let pull = (&self.pull + b).where_self(accept, &self.pull);
        let full = self.accepted.remainder(auto::WINDOW as f64).eq(0.0).logical_and(accept);
        let mean = &pull / auto::WINDOW as f64;
        let shorter = (&self.trust * 0.5).clamp_min((auto::LEAST / gamma).min(1.0));
        let longer = (&self.trust * auto::LENGTHEN).clamp_max(1.0);
        let circles = mean.gt(auto::CIRCLES).logical_and(&full);
        let advances = mean.lt(auto::ADVANCES).logical_and(&full);
        let trust = shorter.where_self(&circles, &longer.where_self(&advances, &self.trust));
        self.trust.copy_(&trust);
        self.pull.copy_(&pull.where_scalarother(&full.logical_not(), 0.0));
    }
}

impl<T: Component> DeviceAuto<T> {
    /// The step after value and gradient at y.
    pub(super) fn advance_by_operations<L: BatchLoss>(
        &mut self,
        f: &mut TorchObjective<T, L>,
        on: &impl BatchSource<L>,
        value: &Tensor,
    ) {
        let Self { config, x, z, start, last, root, gradient: g, first_length, learned, progress, .. } = self;
        let AutoConfig { momentum, power, beta2, epsilon, weight_decay, .. } = **config;
        let mut learned = Numbers::of(&learned.0);

        let squared_norm = g.dot_tensor(g);
        let finite = ((value + &squared_norm) * 0.0).eq(0.0);
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
        let b = (g * (z.tensor() - x.tensor())).sum(Kind::Double) / ((g * &d).sum(Kind::Double) * &a);
        let new_z = z.tensor().addcmul(&(-&a).to_kind(T::KIND), &d).g_div_(&(&a * weight_decay + 1.0));
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
        let beyond = &trial - value - slope;
        let sees = beyond.abs().gt_tensor(&(&rounding * 2.0)).logical_and(&square.gt(0.0));
        // Every comparison with NaN is false: a trial that is not finite is rejected and teaches nothing.
        let real = trial.isfinite();
        let seen = beyond * 2.0 / square;
        let known = learned.curvature.gt(0.0);
        let expected = seen.le_tensor(&(&learned.curvature * auto::TOLERANCE)).logical_and(&known).logical_and(&sees);
        let descends = trial.le_tensor(&(value + &rounding));
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
        let at_average = learned.at_average.gt(0.0);
        let broken = retreats.logical_and(&at_average);
        let whole = progress.check(&broken.logical_not());
        let accept = accept.logical_and(whole);
        let shrunk = &a / auto::SHRINK;
        let size = a.where_self(&accept, &shrunk);
        let size = size.where_self(&moves, &learned.size);
        let size = size.where_self(&finite, &(&learned.size / auto::SHRINK));
        learned.size.copy_(&size);
        learned.at_average.copy_(&retreats.logical_or(&at_average.logical_and(&accept.logical_not())));
        let Numbers { noise: n, recent_noise, least_noise, remembered: m, distance: r, .. } = &mut learned;
        let news = [(n, noise), (recent_noise, recent), (least_noise, least), (m, remembered + 1.0), (r, distance)];
        for (kept, new) in news {
            kept.copy_(&new.where_self(&accept, kept));
        }
        let _ = learned.accepted.g_add_(&accept.to_kind(Kind::Double));
        learned.feel(&b, config.gamma, &accept);

        for (kept, new) in [(&mut *x, &new_x), (root, &new_root), (last, g)] {
            let _ = new.where_self_out(kept.tensor(), &accept, &kept.tensor().shallow_clone());
        }
        let old_z = x.tensor().where_self(&retreats, z.tensor());
        let _ = new_z.where_self_out(z.tensor(), &accept, &old_z);
        f.parameters_mut().flat_mut().set_lerp(z, momentum, x);

        let flags = [accept, finite, broken].map(|flag| flag.to_kind(Kind::Double));
        let numbers = [value, &squared_norm, &a, &length.to_kind(Kind::Double)];
        progress.write(&numbers.into_iter().chain(&flags).collect::<Vec<_>>());
    }
}
