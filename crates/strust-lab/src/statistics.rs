//! Statistics: spreads over seeds, slopes, intervals and medians.

use crate::data::summary::Spread;
use strust::statistics::student_quantile;

/// Mean, sample standard deviation, median and quartiles of at least one number.
#[must_use]
pub fn spread(values: &[f64]) -> Spread {
    let mean = mean(values);
    let std = if values.len() > 1 { variance(values, mean).sqrt() } else { 0.0 };
    let quartiles = Some((quantile(values, 0.25), quantile(values, 0.75)));
    Spread { mean, std, median: median(values), quartiles }
}

/// The mean; NaN without numbers.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample variance around the mean.
fn variance(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// The least-squares slope of y over x; NaN for fewer than two points.
#[must_use]
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (mx, my) = points.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
    let (xy, xx) = points.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + (x - mx) * (y - my), b + (x - mx).powi(2)));
    if points.len() < 2 { f64::NAN } else { xy / xx }
}

/// The slope of log y over log x, over the points where both are positive.
#[must_use]
pub fn power(points: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let logs: Vec<(f64, f64)> =
        points.into_iter().filter(|(x, y)| *x > 0.0 && *y > 0.0).map(|(x, y)| (x.ln(), y.ln())).collect();
    slope(&logs)
}

/// The mean and the half-width of its 95 % interval, by Student's distribution; infinite for a single value.
#[must_use]
pub fn mean_interval(values: &[f64]) -> (f64, f64) {
    let mean = mean(values);
    if values.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let n = values.len() as f64;
    (mean, student_quantile(n - 1.0) * (variance(values, mean) / n).sqrt())
}

/// The largest value. NaN without numbers, or if one of them is NaN: a missing measurement must not count as a small one.
#[must_use]
pub fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    let larger = |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) };
    values.into_iter().reduce(larger).unwrap_or(f64::NAN)
}

/// The smallest value; NaN as for the largest.
#[must_use]
pub fn least(values: impl IntoIterator<Item = f64>) -> f64 {
    -largest(values.into_iter().map(|value| -value))
}

/// The median: the value in the middle, or the mean of the two in the middle; NaN without numbers.
fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => 0.5 * (sorted[middle - 1] + sorted[middle]),
    }
}

/// The quantile of a share in [0, 1], interpolated between neighbors; NaN without numbers.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let sorted = sorted(values);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[(place.ceil() as usize).min(last)]);
    // Equal ends also if both are infinite.
    if low.total_cmp(&high).is_eq() { low } else { low + (place - place.floor()) * (high - low) }
}

/// The upper median: the value in the middle, or the larger of the two in the middle; NaN without numbers. It is
/// infinite only if at least half of the values are.
#[must_use]
pub fn upper_median(values: &[f64]) -> f64 {
    sorted(values).get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Increasing step counts from 1 to the last, with `each` of them per decade.
#[must_use]
pub fn ladder(last: u64, each: u32) -> Vec<u64> {
    // A count has fewer decades.
    let all = (0..20 * each).map(|i| 10_f64.powf(f64::from(i) / f64::from(each)).round() as u64);
    let mut counts: Vec<u64> = all.take_while(|&k| k < last).chain([last]).collect();
    counts.dedup();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_powers_and_intervals_match_known_data() {
        assert!((slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) - 2.0).abs() < 1e-15);
        assert!((power([(1.0, 3.0), (10.0, 0.3), (100.0, 0.03), (5.0, -1.0)]) + 1.0).abs() < 1e-12);
        let (middle, half) = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        // Student's quantile for 4 degrees of freedom is 2.776.
        assert!((middle - 3.0).abs() < 1e-15 && (half - 2.776 * (2.5_f64 / 5.0).sqrt()).abs() < 0.02, "{half}");
        assert!((largest([1.0, 3.0, 2.0]) - 3.0).abs() < 1e-15 && (least([1.0, 3.0]) - 1.0).abs() < 1e-15);
        assert!(largest([]).is_nan() && largest([f64::NAN, 1.0]).is_nan() && least([1.0, f64::NAN]).is_nan());
        assert_eq!(ladder(100, 1), [1, 10, 100]);
        assert!(slope(&[(1.0, 1.0)]).is_nan() && mean_interval(&[1.0]).1.is_infinite());
    }

    #[test]
    fn the_spread_is_mean_sample_deviation_and_median() {
        let s = spread(&[1.0, 2.0, 6.0]);
        assert_eq!((s.mean, s.median), (3.0, 2.0));
        assert!((s.std - 7.0_f64.sqrt()).abs() < 1e-15);
        assert_eq!(spread(&[4.0]), Spread { mean: 4.0, std: 0.0, median: 4.0, quartiles: Some((4.0, 4.0)) });
        let expected = Spread { mean: 2.0, std: 2.0_f64.sqrt(), median: 2.0, quartiles: Some((1.5, 2.5)) };
        assert_eq!(spread(&[1.0, 3.0]), expected);
    }

    #[test]
    fn quantiles_interpolate_between_neighbors() {
        let values = [4.0, 1.0, 2.0, 3.0];
        for (share, expected) in [(0.0, 1.0), (0.25, 1.75), (0.5, 2.5), (1.0, 4.0)] {
            assert!((quantile(&values, share) - expected).abs() < 1e-15, "{share}");
        }
        assert!(quantile(&[], 0.5).is_nan() && quantile(&[f64::INFINITY; 2], 0.5).is_infinite());
    }

    #[test]
    fn the_upper_median_is_always_one_of_the_values() {
        for (values, middle) in
            [(vec![3.0, 1.0, 2.0], 2.0), (vec![4.0, 1.0, 3.0, 2.0], 3.0), (vec![1.0, 2.0, f64::INFINITY], 2.0)]
        {
            assert_eq!(upper_median(&values).to_bits(), f64::to_bits(middle), "{values:?}");
        }
        assert!(upper_median(&[1.0, f64::INFINITY]).is_infinite() && upper_median(&[]).is_nan());
    }
}
