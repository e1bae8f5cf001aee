//! Quantiles for confidence intervals.

/// Student's 97.5 % quantile for `v` ≥ 1 degrees of freedom: the half-width of a 95 % interval in standard errors.
///
/// The quantile is exact for one and two degrees of freedom. From three on, its error is below 1 % (Cornish and
/// Fisher's expansion). Weighted samples have fractional degrees of freedom; below three the quantile is interpolated.
///
/// ```
/// use strust::statistics::student_quantile;
/// assert!((student_quantile(1.0) - 12.706).abs() < 1e-3);
/// assert!((student_quantile(1e6) - 1.960).abs() < 1e-3);
/// ```
#[must_use]
pub fn student_quantile(v: f64) -> f64 {
    const ONE: f64 = 12.706_205;
    const TWO: f64 = 4.302_653;
    // The logarithm is convex in v and lies below its chord, so an interpolated interval is never too short.
    let between = |low: f64, high: f64, t: f64| low * (high / low).powf(t);
    if v <= 1.0 {
        ONE
    } else if v < 2.0 {
        between(ONE, TWO, v - 1.0)
    } else if v < 3.0 {
        between(TWO, expansion(3.0), v - 2.0)
    } else {
        expansion(v)
    }
}

/// Cornish and Fisher's expansion around the normal quantile.
fn expansion(v: f64) -> f64 {
    let z = 1.959_964_f64;
    z + (z.powi(3) + z) / (4.0 * v)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v)
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * v.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_table() {
        let table = [(1.0, 12.706), (2.0, 4.303), (3.0, 3.182), (4.0, 2.776), (5.0, 2.571), (19.0, 2.093)];
        for (v, exact) in table {
            assert!((student_quantile(v) / exact - 1.0).abs() < 0.01, "{v}: {}", student_quantile(v));
        }
    }

    #[test]
    fn quantiles_fall_as_the_degrees_of_freedom_grow() {
        let values: Vec<f64> = (0..100).map(|i| student_quantile(1.0 + 0.07 * f64::from(i))).collect();
        assert!(values.windows(2).all(|pair| pair[1] < pair[0]));
    }
}
