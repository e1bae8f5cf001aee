//! A step size that follows a schedule on the device.

use strust::schedule::Schedule;
use tch::{Device, Kind, Tensor};

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
    pub fn new(rate: f64, device: Device) -> Self {
        let number = |number: f64| Tensor::full([0_i64; 0], number, (Kind::Double, device));
        Self { rate: number(rate), k: number(0.0), schedule: Schedule::Constant }
    }
    /// Continues at step k of a run.
    pub fn resume_at(&mut self, k: u64) {
        let _ = self.k.fill_(k as f64);
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
            let mut rate = DeviceRate::new(0.3, Device::Cpu);
            rate.schedule = schedule;
            for k in 0..10 {
                let (found, expected) = (rate.next().double_value(&[]), 0.3 * schedule.factor(k));
                assert!((found - expected).abs() < 1e-16, "{schedule:?} at {k}: {found} and {expected}");
            }
            rate.resume_at(3);
            assert!((rate.next().double_value(&[]) - 0.3 * schedule.factor(3)).abs() < 1e-16);
        }
    }
}
