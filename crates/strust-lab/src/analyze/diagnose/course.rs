//! The course of an error over the epochs of a run: how much remains, and how fast it falls.

use crate::statistics::quantile;

/// What remains counts as nothing at this share of the start. ‖c‖ counts as 0 below this share of σ_max(J)‖x‖, the
/// change of c over a step of length ‖x‖.
pub(super) const TOLERANCE: f64 = 1e-3;

/// The course of a number ≥ 0 that should tend to 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Course {
    /// At the start.
    pub first: f64,
    /// After the last epoch.
    pub last: f64,
    /// What it is judged by: the last value of a falling course, the median of its last epochs otherwise.
    pub level: f64,
    /// The number of epochs of the level.
    pub averaged: usize,
    /// The decrease of its logarithm per epoch over the window: the median of all slopes between two epochs (Theil and
    /// Sen), which a few outliers do not change.
    pub rate: f64,
    /// Epochs of the window, and of the run.
    pub window: f64,
    pub epochs: f64,
    /// The power p of a course like 1/kᵖ, if it slows down as such a course does.
    pub power: Option<f64>,
    /// Whether it falls: more pairs of epochs fall than chance explains, by two standard deviations of Kendall's τ; and
    /// with noise, it does not stay on a plateau.
    pub falls: bool,
    /// The share of epochs in the window at which it changes its direction.
    pub reversals: f64,
    /// The largest value over the smallest one in the window.
    pub swing: f64,
}

/// With fewer epochs in the second half, the whole course is the window: a few epochs do not show that it has stopped.
const RESOLVED: usize = 10;
/// The largest number of epochs in the window; more are thinned out.
const MOST: usize = 100;
/// On a plateau it changes over a resolved window by less than this factor: with noise, a slower fall cannot be told
/// from none.
pub(super) const PLATEAU: f64 = 1.25;

impl Course {
    /// The course of these values, one per epoch from the start; NaN counts as infinite. The window is the second half, or
    /// the whole course. `noisy`: whether noise hides a slow fall. `None` without an epoch.
    pub fn new(values: &[f64], whole: bool, noisy: bool) -> Option<Self> {
        let values: Vec<f64> = values.iter().map(|v| if v.is_nan() { f64::INFINITY } else { *v }).collect();
        let n = values.len();
        let &first = values.first().filter(|_| n > 1)?;
        let from = if whole || n < 2 * RESOLVED { 0 } else { n / 2 };
        let stride = (n - from).div_ceil(MOST);
        let floor = (1e-16 * first.min(f64::MAX)).max(f64::MIN_POSITIVE);
        // Counted from the end, so that the last epoch is always one of them.
        let mut points: Vec<(f64, f64)> =
            (from..n).rev().step_by(stride).map(|i| (i as f64, values[i].clamp(floor, f64::MAX).ln())).collect();
        points.reverse();
        let m = points.len() as f64;
        let slopes = slopes(&points);
        let falling = slopes.iter().filter(|slope| **slope > 0.0).count() as f64 / slopes.len() as f64;
        let deviation = (2.0 * (2.0 * m + 5.0) / (9.0 * m * (m - 1.0))).sqrt();
        let (rate, window) = (quantile(&slopes, 0.5), (n - 1 - from) as f64);
        let flat = noisy && window >= RESOLVED as f64 && rate.abs() * window < PLATEAU.ln();
        let falls = falling >= (0.5 + deviation).min(1.0) && !flat;
        let ups: Vec<bool> = points.windows(2).map(|pair| pair[1].1 > pair[0].1).collect();
        let turns = ups.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
        let logarithms = || points.iter().map(|point| point.1);
        let swing = logarithms().fold(f64::NEG_INFINITY, f64::max) - logarithms().fold(f64::INFINITY, f64::min);
        // A run that ends above the tolerance has not converged, whatever its median.
        let hovers = |median: f64| median <= TOLERANCE * first && values[n - 1] > TOLERANCE * first;
        let fifth = (n / 5).max(1);
        let averaged = if falls || hovers(quantile(&values[n - fifth..], 0.5)) { 1 } else { fifth };
        Some(Self {
            first,
            last: values[n - 1],
            level: quantile(&values[n - averaged..], 0.5),
            averaged,
            rate,
            window,
            epochs: (n - 1) as f64,
            power: power(&points),
            falls,
            reversals: turns / (m - 2.0).max(1.0),
            swing: swing.exp(),
        })
    }

    /// The same course, if a value is one of every so many epochs.
    pub fn every(self, epochs: f64) -> Self {
        Self { rate: self.rate / epochs, window: epochs * self.window, epochs: epochs * self.epochs, ..self }
    }

    /// The level as a share of the first value; NaN if that is 0 or infinite.
    pub fn remaining(&self) -> f64 {
        self.level / self.first
    }

    /// The epochs from the end until the value is `target`, at the speed of the window; infinite if it does not fall.
    pub fn epochs_to(&self, target: f64) -> f64 {
        if self.level <= target {
            return 0.0;
        }
        match self.power {
            _ if !self.falls || self.rate <= 0.0 => f64::INFINITY,
            Some(power) => self.epochs * ((self.level / target).powf(1.0 / power) - 1.0),
            None => (self.level / target).ln() / self.rate,
        }
    }
}

/// The decrease between any two points, over their distance.
fn slopes(points: &[(f64, f64)]) -> Vec<f64> {
    let from = |(i, a): (usize, &(f64, f64))| {
        let a = *a;
        points[i + 1..].iter().map(move |b| (a.1 - b.1) / (b.0 - a.0)).collect::<Vec<_>>()
    };
    points.iter().enumerate().flat_map(from).collect()
}

/// The fewest points from which a change of speed is measured.
const ENOUGH: usize = 6;
/// A geometric course is as fast in the second half of the window as in the first. One like 1/kᵖ has 0.71 of the speed:
/// ln(4/3)/ln(3/2). This is in the middle.
const SLOWER: f64 = 0.84;

/// p, if the logarithms of the course fall more slowly in the second half of the window, as those of 1/kᵖ do.
fn power(points: &[(f64, f64)]) -> Option<f64> {
    // From the start on, every course slows down at first.
    if points.len() < ENOUGH || points[0].0 <= 0.0 {
        return None;
    }
    let (early, late) = points.split_at(points.len() / 2);
    let speed = |half: &[(f64, f64)]| quantile(&slopes(half), 0.5);
    if speed(late) >= SLOWER * speed(early) {
        return None;
    }
    let logarithmic: Vec<(f64, f64)> = points.iter().map(|(k, value)| (k.ln(), *value)).collect();
    Some(quantile(&slopes(&logarithmic), 0.5)).filter(|power| *power > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(value: impl Fn(f64) -> f64) -> Course {
        let values: Vec<f64> = (0..=40).map(|epoch| value(f64::from(epoch))).collect();
        Course::new(&values, false, false).unwrap()
    }

    /// Numbers in [0, 1) without order.
    fn noise(epoch: f64) -> f64 {
        (epoch * 12.9898).sin().mul_add(43758.5453, 0.0).rem_euclid(1.0)
    }

    #[test]
    fn a_geometric_course_has_its_rate_and_its_end() {
        let c = course(|k| 8.0 * 0.5_f64.powf(k));
        assert!(c.falls && (c.rate - 2.0_f64.ln()).abs() < 1e-12 && c.reversals == 0.0);
        assert!((c.epochs_to(8.0 * 0.5_f64.powi(43)) - 3.0).abs() < 1e-9);
        assert!((c.remaining() - 0.5_f64.powi(40)).abs() < 1e-15);
    }

    #[test]
    fn a_course_without_a_trend_does_not_fall_and_a_small_trend_under_noise_does() {
        let flat = course(|k| 1.0 + 0.5 * noise(k));
        assert!(!flat.falls && flat.reversals > 0.3 && flat.epochs_to(0.1).is_infinite(), "{flat:?}");
        assert!(!course(|_| 1.0).falls && !course(|k| 1.0 + k).falls);
        assert!(course(|k| (-0.05 * k).exp() * (1.0 + 0.1 * noise(k))).falls);
        // Monotone, however slow.
        assert!(course(|k| 1.0 - 1e-9 * k).falls);
    }

    #[test]
    fn a_course_that_slows_down_is_extrapolated_as_a_power() {
        let c = course(|k| 1.0 / (1.0 + k * k));
        assert!((c.power.unwrap() - 2.0).abs() < 0.05, "{c:?}");
        // 1/k² falls to a hundredth of its value at 40 after 10 times as many epochs.
        let needed = c.epochs_to(0.01 * c.last);
        assert!((needed / 360.0 - 1.0).abs() < 0.1, "{needed}");
        assert_eq!(course(|k| 0.5_f64.powf(k)).power, None);
    }

    #[test]
    fn short_courses_fall_only_if_every_epoch_falls() {
        let falls = |values: &[f64]| Course::new(values, false, false).unwrap().falls;
        assert!(falls(&[2.0, 1.0]) && !falls(&[1.0, 1.0]) && falls(&[3.0, 2.0, 1.0]) && !falls(&[3.0, 1.0, 2.0]));
        assert_eq!(Course::new(&[1.0], false, false), None);
    }

    #[test]
    fn of_nothing_and_of_infinity_no_share_remains() {
        for first in [0.0, f64::INFINITY, f64::NAN] {
            let c = Course::new(&[first, first, first], false, false).unwrap();
            assert!(c.remaining().is_nan() && !c.falls, "{c:?}");
        }
        let c = Course::new(&[1.0, 2.0, f64::NAN], false, false).unwrap();
        assert!(c.last.is_infinite() && c.level.is_infinite() && !c.falls, "{c:?}");
    }

    #[test]
    fn the_last_value_is_that_of_the_last_epoch_and_the_level_of_a_plateau_is_a_median() {
        let flat = course(|k| if k < 40.0 { 1.0 + 0.5 * noise(k) } else { 0.1 });
        assert!(flat.averaged == 8 && flat.level > 0.9 && (flat.last - 0.1).abs() < 1e-15, "{flat:?}");
        // A course that ends above the tolerance is not judged by a median below it.
        let hovering =
            course(|k| if k == 0.0 { 1.0 } else { 1e-3 * (0.5 + noise(k) * if k < 40.0 { 0.4 } else { 9.0 }) });
        assert!(hovering.averaged == 1 && hovering.level > 1e-3, "{hovering:?}");
        let falling = course(|k| 0.5_f64.powf(k));
        assert_eq!((falling.averaged, falling.level.to_bits()), (1, falling.last.to_bits()));
    }

    #[test]
    fn noise_hides_a_slow_fall_only_over_many_epochs() {
        let slow = |epochs: i32, noisy: bool| {
            let values: Vec<f64> = (0..=epochs).map(|k| 0.94_f64.powi(k)).collect();
            Course::new(&values, false, noisy).unwrap().falls
        };
        // Six per cent an epoch is a fall, also if the run is short.
        assert!((3..60).all(|epochs| slow(epochs, true)));
        let crawling: Vec<f64> = (0..=40).map(|k| 0.999_f64.powi(k)).collect();
        assert!(
            !Course::new(&crawling, false, true).unwrap().falls && Course::new(&crawling, false, false).unwrap().falls
        );
    }
}
