//! The trust region on the device. Radius, ratio and verdict are tensors, and the device chooses between the old and the
//! new point.

use crate::{
    BatchLoss, Component, Flat, TorchObjective,
    device_method::{number, vector},
    device_records::DeviceProgress,
    objective::BatchSource,
};
use strust::{config::Checked, objective::Evaluation, radius::RegionConfig, vector::Vector};
use tch::{Kind, Tensor};

/// The region of one run.
#[derive(Debug)]
pub(crate) struct DeviceRegion<T> {
    rule: Checked<RegionConfig>,
    /// Δ.
    pub radius: Tensor,
    /// The point before the step.
    old: Flat<T>,
}

/// The step −a·d from a point, and what its model says.
pub(crate) struct DeviceTrial<'a, T> {
    /// f and ‖g‖² at the point.
    pub value: &'a Tensor,
    pub squared_norm: &'a Tensor,
    /// a, d and the length of the step.
    pub size: &'a Tensor,
    pub direction: &'a Flat<T>,
    pub length: &'a Tensor,
    pub predicted: &'a Tensor,
    /// Whether the step ends at the boundary, if the model has a minimum inside. Then the radius grows only there, and
    /// shrinks from the length of the step; and a step without length is a breakdown.
    pub bounded: Option<&'a Tensor>,
}

impl<T: Component> DeviceRegion<T> {
    /// A region with this radius, or with that of the first step.
    pub fn new<L: BatchLoss>(rule: Checked<RegionConfig>, f: &TorchObjective<T, L>, radius: Option<f64>) -> Self {
        let radius = number(radius.unwrap_or(rule.initial_radius), f.parameters().device());
        Self { rule, radius, old: vector(f, None) }
    }

    /// Makes the step, accepts or rejects it, and writes its record, which ends with `more`. Returns whether all numbers
    /// so far were finite.
    pub fn step<L: BatchLoss>(
        &mut self,
        f: &mut TorchObjective<T, L>,
        on: &impl BatchSource<L>,
        progress: &mut DeviceProgress,
        step: &DeviceTrial<T>,
        more: &[&Tensor],
    ) -> Tensor {
        let Self { rule, radius, old } = self;
        let &DeviceTrial { value, squared_norm, size, direction, length, predicted, bounded } = step;
        let x = f.parameters_mut().flat_mut();
        old.copy_from(x);
        x.set_sum_tensor(old, &(-size), direction);
        let trial = f.value_here(on);

        // r, on the same sample; accept or reject; the next radius
        let (moves, still) = (squared_norm.gt(0.0), squared_norm.eq(0.0));
        let rounding = Evaluation::new(1.0, T::EPSILON).rounding * value.abs();
        let actual = value - &trial;
        // If a number is not finite, the ratio is NaN. Every comparison with NaN is false: the step is rejected and the
        // radius shrinks.
        let ratio = (&actual + &rounding) / (predicted + &rounding) + &actual * 0.0;
        let mut finite = progress.check_finite(value, squared_norm);
        if bounded.is_some() {
            finite = progress.check(&length.gt(0.0).logical_or(&still));
        }
        let accepted = ratio.gt(rule.accept_above).logical_or(&still).logical_and(finite);
        let grows = ratio.gt(rule.grow_above).logical_and(&moves);
        let keeps = ratio.ge(rule.shrink_below).logical_and(&accepted).logical_or(&still);
        let x = f.parameters_mut().flat_mut();
        x.set_choice(&accepted, &x.share(), old);
        let mut grown = (&*radius * rule.grow).clamp_max(rule.max_radius);
        let mut shrunk = (&*radius / rule.shrink).clamp_min(f64::MIN_POSITIVE);
        if let Some(bounded) = bounded {
            grown = grown.where_self(bounded, radius);
            shrunk = (shrunk * (length / &*radius).clamp_max(1.0)).clamp_min(f64::MIN_POSITIVE);
        }
        let next = grown.where_self(&grows, &radius.where_self(&keeps, &shrunk)).where_self(finite, radius);

        let finite = finite.shallow_clone();
        let flags = [Some(&accepted), Some(&grows), Some(&keeps), bounded];
        let flags: Vec<Tensor> = flags.into_iter().flatten().map(|flag| flag.to_kind(Kind::Double)).collect();
        let numbers = [value, squared_norm, size, length, &*radius, predicted, &trial, &ratio];
        progress.write(&numbers.into_iter().chain(&flags).chain(more.iter().copied()).collect::<Vec<_>>());
        radius.copy_(&next);
        finite
    }
}
