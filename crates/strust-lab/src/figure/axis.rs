//! Maps values to positions on an axis, and chooses the ticks.

use super::scene::Label;
use crate::format::thousands;

/// Values above this, and on a logarithmic axis below its inverse, are not drawn, so that no calculation overflows.
const HUGE: f64 = 1e300;

/// An axis with its range in drawn units: the value, or its decimal logarithm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    /// Whether all values are integers. Then ticks are integers too.
    whole: bool,
    /// Whether the low end of a logarithmic axis stands for all values that are not positive.
    floor: bool,
}

/// The share of an axis between its floor and the smallest positive value.
const FLOOR: f64 = 0.08;

/// The ticks of an axis; positions are shares of its length.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    /// Ticks with a label, in increasing order.
    pub major: Vec<(f64, Label)>,
    /// Ticks without one.
    pub minor: Vec<f64>,
}

/// A value in drawn units; `None` if it cannot be drawn.
pub(super) fn drawn(value: f64, log: bool) -> Option<f64> {
    if log {
        (value > HUGE.recip() && value < HUGE).then(|| value.log10())
    } else {
        (value.abs() < HUGE).then_some(value)
    }
}

impl Scale {
    /// The range of all values that can be drawn, with a `margin` (a share of it) at both ends; `None` without values.
    pub fn fit(values: impl Iterator<Item = f64>, log: bool, margin: f64) -> Option<Self> {
        let (mut low, mut high, mut whole) = (f64::INFINITY, f64::NEG_INFINITY, true);
        for value in values {
            if let Some(unit) = drawn(value, log) {
                (low, high) = (low.min(unit), high.max(unit));
                whole &= value.fract() == 0.0;
            }
        }
        if low > high {
            return None;
        }
        let size = low.abs().max(high.abs());
        let pad = if log {
            if high - low < 1e-6 { 1.0 } else { (high - low) * margin }
        } else if high - low > 1e-9 * size && high - low > 1e-290 {
            (high - low) * margin
        } else if size > 1e-290 {
            size * 0.1
        } else {
            1.0
        };
        Some(Self { low: low - pad, high: high + pad, log, whole, floor: false })
    }

    /// A logarithmic axis with a floor below its range, for values that are not positive. Without positive values its
    /// range is a decade.
    pub fn with_floor(scale: Option<Self>) -> Self {
        let scale = scale.unwrap_or(Self { low: -1.0, high: 0.0, log: true, whole: false, floor: false });
        let room = FLOOR / (1.0 - FLOOR) * (scale.high - scale.low);
        Self { low: scale.low - room, floor: true, ..scale }
    }

    /// Whether the axis is logarithmic.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// The position of a value: 0 at the low end, 1 at the high end, outside [0, 1] if it is out of range.
    pub fn place(&self, value: f64) -> Option<f64> {
        if self.floor && value <= 0.0 {
            return Some(0.0);
        }
        drawn(value, self.log).map(|unit| self.share(unit))
    }

    fn share(&self, unit: f64) -> f64 {
        (unit - self.low) / (self.high - self.low)
    }

    /// At most `most` labeled ticks.
    pub fn ticks(&self, most: usize) -> Ticks {
        let most = most.max(2);
        let units =
            if self.log { self.log_ticks(most) } else { (linear_ticks(self.low, self.high, self.whole, most), vec![]) };
        let within = |share: &f64| !self.floor || *share >= FLOOR;
        let major = units.0.into_iter().map(|(unit, label)| (self.share(unit).clamp(0.0, 1.0), label));
        let minor = units.1.into_iter().filter(|u| (self.low..=self.high).contains(u)).map(|u| self.share(u));
        let floor = self.floor.then(|| (0.0, Label::plain("≤ 0")));
        Ticks {
            major: floor.into_iter().chain(major.filter(|(share, _)| within(share))).collect(),
            minor: minor.filter(within).collect(),
        }
    }

    fn log_ticks(&self, most: usize) -> (Vec<(f64, Label)>, Vec<f64>) {
        let (first, last) = (self.low.ceil() as i32, self.high.floor() as i32);
        let digits = || (first - 1..=last).flat_map(|n| (2..10).map(move |d| f64::from(n) + f64::from(d).log10()));
        if last > first {
            let count = |step: i32| (last.div_euclid(step) - (first - 1).div_euclid(step)) as usize;
            let step = [1, 2, 3, 5, 10, 20, 30, 50, 100, 200].into_iter().find(|&s| count(s) <= most).unwrap_or(500);
            let major = (first..=last)
                .filter(|n| n.rem_euclid(step) == 0)
                .map(|n| (f64::from(n), Label::power(String::from("10"), n)))
                .collect();
            let minor = match last - first {
                0..=6 if step == 1 => digits().collect(),
                0..=40 => (first..=last).filter(|n| n.rem_euclid(step) != 0).map(f64::from).collect(),
                _ => vec![],
            };
            return (major, minor);
        }
        // Less than two decades: add the digits 1, 2 and 5. In a still narrower range, use plain numbers.
        let between: Vec<_> = (first - 1..=last)
            .flat_map(|n| [1_u8, 2, 5].map(|d| (f64::from(n) + f64::from(d).log10(), d, n)))
            .filter(|(unit, ..)| (self.low..=self.high).contains(unit))
            .map(|(unit, d, n)| (unit, digit(d, n, (-3..=4).contains(&last))))
            .collect();
        if (3..=most).contains(&between.len()) {
            return (between, digits().collect());
        }
        let major = linear_ticks(10_f64.powf(self.low), 10_f64.powf(self.high), false, most)
            .into_iter()
            .map(|(value, label)| (value.log10(), label))
            .filter(|(unit, _)| (self.low..=self.high).contains(unit))
            .collect();
        (major, vec![])
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64, whole: bool, most: usize) -> Vec<(f64, Label)> {
    // The tolerance keeps a tick at an end of the range despite rounding.
    let bounds = |step: f64| ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    let exponent = ((high - low) / most as f64).log10().floor().max(if whole { 0.0 } else { f64::MIN }) as i32;
    let step = [1.0, 2.0, 5.0, 10.0, 20.0].into_iter().map(|digit| digit * 10_f64.powi(exponent)).find(|&step| {
        let (first, last) = bounds(step);
        last - first < most as f64
    });
    let Some(step) = step.filter(|step| *step > 0.0) else { return vec![] };
    let (first, last) = bounds(step);
    let count = (last - first + 1.0).max(0.0) as usize;
    let size = low.abs().max(high.abs());
    (0..count).map(|i| first + i as f64).map(|i| ((i * step).clamp(low, high), label(i * step, step, size))).collect()
}

/// A digit times a power of ten, as a plain number if that is short.
fn digit(digit: u8, exponent: i32, plain: bool) -> Label {
    if plain {
        let decimals = (-exponent).max(0) as usize;
        return Label::plain(&grouped(f64::from(digit) * 10_f64.powi(exponent), decimals));
    }
    Label::power(format!("{digit}×10"), exponent)
}

/// One format for all ticks of an axis: plain numbers, or a common power of ten if they would be long.
fn label(value: f64, step: f64, size: f64) -> Label {
    let digits = |unit: f64| (-(step / unit * 1.000_001).log10().floor()).clamp(0.0, 15.0) as usize;
    if value == 0.0 {
        return Label::plain("0");
    }
    if (1e-3..1e6).contains(&size) {
        return Label::plain(&grouped(value, digits(1.0)));
    }
    let exponent = size.log10().floor() as i32;
    let unit = 10_f64.powi(exponent);
    Label::power(format!("{}×10", signed(&format!("{:.*}", digits(unit), value / unit))), exponent)
}

/// A number with a typographic minus sign and separated thousands.
fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let digits = whole.trim_start_matches('-');
    // Four digits need no separator.
    let mut out = if digits.len() > 4 { thousands(digits, '\u{2009}') } else { digits.to_owned() };
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    if whole.starts_with('-') { format!("−{out}") } else { out }
}

fn signed(number: &str) -> String {
    number.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(values: &[f64], log: bool, most: usize) -> Vec<String> {
        let scale = Scale::fit(values.iter().copied(), log, 0.0).expect("drawable values");
        scale.ticks(most).major.into_iter().map(|(_, label)| label.to_string()).collect()
    }

    #[test]
    fn epochs_get_round_numbers() {
        assert_eq!(labels(&[0.0, 50.0], false, 6), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(labels(&[0.0, 2.0], false, 6), ["0", "1", "2"]);
        assert_eq!(
            labels(&[0.0, 0.31], false, 6),
            ["0.0", "0.1", "0.2", "0.3"].map(|l| if l == "0.0" { "0" } else { l })
        );
    }

    #[test]
    fn long_numbers_are_grouped_or_share_a_power_of_ten() {
        assert_eq!(labels(&[0.0, 60_000.0], false, 4), ["0", "20\u{2009}000", "40\u{2009}000", "60\u{2009}000"]);
        assert_eq!(labels(&[0.0, 2e6], false, 6), ["0", "0.5×10^6", "1.0×10^6", "1.5×10^6", "2.0×10^6"]);
        assert_eq!(labels(&[-2e-8, 0.0], false, 3), ["−2×10^−8", "−1×10^−8", "0"]);
    }

    #[test]
    fn decades_are_powers_of_ten() {
        assert_eq!(
            labels(&[1e-30, 1.0], true, 8),
            ["−30", "−25", "−20", "−15", "−10", "−5", "0"].map(|n| format!("10^{n}"))
        );
        assert_eq!(labels(&[0.01, 1.0], true, 8), ["10^−2", "10^−1", "10^0"]);
        assert_eq!(labels(&[0.4, 9.0], true, 8), ["0.5", "1", "2", "5"]);
        assert_eq!(labels(&[1e-9, 9e-9], true, 8), ["1×10^−9", "2×10^−9", "5×10^−9"]);
        assert_eq!(labels(&[3.1, 3.9], true, 5), ["3.2", "3.4", "3.6", "3.8"]);
    }

    #[test]
    fn equal_values_lie_in_the_middle() {
        for (value, log) in [(0.0, false), (7.0, false), (-1e-300, false), (7.0, true), (1e-299, true)] {
            let scale = Scale::fit([value, value].into_iter(), log, 0.05).expect("a drawable value");
            let place = scale.place(value).expect("a drawable value");
            assert!((place - 0.5).abs() < 1e-9, "{value} lies at {place}");
            assert!(log || !scale.ticks(6).major.is_empty());
        }
    }

    #[test]
    fn values_that_cannot_be_drawn_have_no_position() {
        assert!(Scale::fit([0.0, -1.0, f64::NAN, f64::INFINITY].into_iter(), true, 0.0).is_none());
        assert!(Scale::fit([f64::NAN, f64::NEG_INFINITY].into_iter(), false, 0.0).is_none());
    }

    proptest! {
        #[test]
        fn ticks_are_few_increasing_and_inside(
            values in prop::collection::vec(any::<f64>(), 1..6),
            exponents in prop::collection::vec(-40.0..3.0_f64, 1..6),
            log: bool,
            most in 2_usize..12,
        ) {
            for values in [values, exponents.iter().map(|e| 10_f64.powf(*e)).collect()] {
                let Some(scale) = Scale::fit(values.into_iter(), log, 0.03) else { continue };
                let ticks = scale.ticks(most);
                prop_assert!(ticks.major.len() <= most, "{} ticks", ticks.major.len());
                let places: Vec<f64> = ticks.major.iter().map(|(place, _)| *place).collect();
                prop_assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
                prop_assert!(places.iter().chain(&ticks.minor).all(|place| (0.0..=1.0).contains(place)));
                let mut labels: Vec<String> = ticks.major.iter().map(|(_, label)| label.to_string()).collect();
                labels.dedup();
                prop_assert_eq!(labels.len(), places.len(), "a label appears twice");
            }
        }
    }
}
