//! A step size that follows a schedule on the device.

use crate::device_method::number;
use strust::schedule::Schedule;
use tch::{Device, Tensor};

/// η·factor(k), where the device counts k. The same operations run at each step, so that a captured step follows the
/// schedule when it is replayed.
#[derive(Debug)]
pub(crate) struct DeviceRate {
    /// η.
    rate: Tensor,
    /// The next step.
    k: Tensor,
    pub schedule: Schedule,
}

impl DeviceRate {
    /// The rate from step k of a run on.
    pub fn new(rate: f64, k: u64, device: Device) -> Self {
        Self { rate: number(rate, device), k: number(k as f64, device), schedule: Schedule::Constant }
    }
    /// The step size of the next step; see [`Schedule::factor`].
    pub fn next(&mut self) -> Tensor {
        let Schedule::Cosine { steps } = self.schedule else { return self.rate.shallow_clone() };
        let steps = steps as f64;
        let factor = ((&self.k / steps) * std::f64::consts::PI).cos_().g_add_scalar_(1.0).g_mul_scalar_(0.5);
        let rate = factor.masked_fill(&self.k.ge(steps), 0.0) * &self.rate;
        let _ = self.k.g_add_scalar_(1.0);
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rates_are_those_of_the_librarys_schedule() {
        for schedule in [Schedule::Constant, Schedule::cosine(7), Schedule::cosine(0)] {
            let from = |k: u64| DeviceRate { schedule, ..DeviceRate::new(0.3, k, Device::Cpu) };
            let mut rate = from(0);
            for k in 0..10 {
                let (found, expected) = (rate.next().double_value(&[]), 0.3 * schedule.factor(k));
                assert!((found - expected).abs() < 1e-16, "{schedule:?} at {k}: {found} and {expected}");
            }
            assert!((from(3).next().double_value(&[]) - 0.3 * schedule.factor(3)).abs() < 1e-16);
        }
    }
}
