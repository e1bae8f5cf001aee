//! Advice about targets with heavy tails, of which a few rows decide a fit by squares.

use crate::task::{FitTask, TargetScale, Targets};

/// The tails are heavy if 99 % of the values span this many times the range of their middle half: 2 for uniform numbers,
/// 4 for normal ones, 5 for exponential ones, 12 for Student's t with two degrees of freedom.
const HEAVY: f64 = 8.0;
/// In n rows, chance adds up to this, divided by n.
const CHANCE: f64 = 600.0;
/// A few wild values are not in the 99 %. Exponential numbers never span this many times the range of their middle half.
const WILD: f64 = 50.0;
/// The values are skewed if the upper tail is this many times as long as the lower one: 1 for symmetric ones, 7 for
/// exponential ones.
const SKEWED: f64 = 3.0;

/// A sentence for a regression whose target has heavy tails, if the options do not handle them already.
pub(crate) fn advice(target: &str, task: &FitTask, targets: &Targets, rows: &[usize]) -> Option<String> {
    let (FitTask::Regression { scale: TargetScale::Plain, huber: None, .. }, Targets::Numbers(values)) =
        (task, targets)
    else {
        return None;
    };
    let option = suggestion(rows.iter().map(|&i| values[i]).collect())?;
    Some(format!("`{target}` has heavy tails, so a few rows decide the fit: try {option}"))
}

fn suggestion(mut values: Vec<f64>) -> Option<&'static str> {
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let at = |share: f64| {
        let place = share * (values.len() - 1) as f64;
        let (low, part) = (place as usize, place.fract());
        values[low] + part * (values[(low + 1).min(values.len() - 1)] - values[low])
    };
    let (low, middle, high) = (at(0.005), at(0.5), at(0.995));
    let half = at(0.75) - at(0.25);
    let heavy = high - low > (HEAVY + CHANCE / values.len() as f64) * half || most - least > WILD * half;
    if half <= 0.0 || !heavy {
        return None;
    }
    let skewed = least >= 0.0 && high - middle > SKEWED * (middle - low);
    Some(if skewed { "--log-target" } else { "--loss huber" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::Rng;
    use strust::sample::generator;

    /// Numbers from pairs of uniform ones in (0, 1).
    fn drawn(n: usize, seed: u64, make: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let mut rng = generator(seed, 7);
        let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        (0..n).map(|_| make(uniform(), uniform())).collect()
    }
    fn normal(u: f64, v: f64) -> f64 {
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    #[test]
    fn light_tails_get_no_advice() {
        for (n, seeds) in [(100, 400), (1000, 100), (10_000, 20), (100_000, 3)] {
            for seed in 0..seeds {
                assert_eq!(suggestion(drawn(n, seed, normal)), None, "normal, {n} rows, seed {seed}");
                assert_eq!(suggestion(drawn(n, seed, |u, _| u)), None, "uniform, {n} rows, seed {seed}");
                assert_eq!(suggestion(drawn(n, seed, |u, _| -u.ln())), None, "exponential, {n} rows, seed {seed}");
            }
        }
    }

    #[test]
    fn heavy_tails_get_the_option_that_helps() {
        for n in [1000, 10_000, 100_000] {
            let count = |make: &dyn Fn(f64, f64) -> f64, option| {
                (0..20).filter(|&seed| suggestion(drawn(n, seed, make)) == Some(option)).count()
            };
            let cauchy = |u: f64, _| (std::f64::consts::PI * (u - 0.5)).tan();
            assert_eq!(count(&cauchy, "--loss huber"), 20);
            assert_eq!(count(&|u, v| (1.5 * normal(u, v)).exp(), "--log-target"), 20);
        }
        let typos = |seed| drawn(2000, seed, |u, v| if u < 2e-3 { 1e6 } else { normal(u, v) });
        assert_eq!((0..20).filter(|&seed| suggestion(typos(seed)) == Some("--loss huber")).count(), 20);
    }
}
