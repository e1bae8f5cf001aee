//! The numbers of the benchmark, from curves.

/// Values below this share of the start are zero up to rounding: the square of a residual that is as small as the
/// rounding errors of double precision, with a margin.
pub(super) const ZERO: f64 = 1e-28;
/// A loss below this share of the start goes to zero.
const TO_ZERO: f64 = 1e-6;
/// The goal for the steps to a loss that goes to zero, relative to the best tuned baseline.
const STEPS: f64 = 1.1;
/// The share of the start to which the loss must fall on a task that is judged by steps.
pub(super) const GOAL: f64 = 1e-3;
/// The goal for the final objective, relative to the best tuned baseline.
pub(super) const CLOSE: f64 = 1.05;
/// The goal on all tasks.
pub(super) const NEAR: f64 = 1.15;

/// A point of a curve: cost and value.
pub(super) type At = (f64, f64);

/// The value between two points, at a share of the way: on a straight line over a logarithmic axis if both values are
/// positive, otherwise over a linear one.
fn between(a: f64, b: f64, share: f64) -> f64 {
    if a > 0.0 && b > 0.0 { (a.ln() + share * (b.ln() - a.ln())).exp() } else { a + share * (b - a) }
}

/// The inverse of [`between`]: the share of the way at which the value is `target`, which lies between both.
fn share(a: f64, b: f64, target: f64) -> f64 {
    if a > 0.0 && target > 0.0 && b > 0.0 { (a.ln() - target.ln()) / (a.ln() - b.ln()) } else { (a - target) / (a - b) }
}

/// The cost at which a curve first has a value of at most `target`; `None` if it never does.
pub(super) fn reach(curve: &[At], target: f64) -> Option<f64> {
    let i = curve.iter().position(|(_, value)| *value <= target)?;
    let Some(before) = i.checked_sub(1).map(|i| curve[i]).filter(|(_, value)| value.is_finite()) else {
        return Some(curve[i].0);
    };
    let (cost, value) = curve[i];
    Some(before.0 + share(before.1, value, target) * (cost - before.0))
}

/// The steps to [`GOAL`] of the start; `None` if the curve does not get there.
pub(super) fn steps_to_goal(curve: &[At]) -> Option<f64> {
    reach(curve, GOAL * curve.first()?.1)
}

/// What a grid search minimizes on a task that is judged by steps: the [`steps_to_goal`]. A run that does not get there
/// counts as later than all that do, by the factor that is missing at its end.
pub(super) fn steps_score(curve: &[At]) -> f64 {
    let (Some(&(_, start)), Some(&(steps, end))) = (curve.first(), curve.last()) else { return f64::INFINITY };
    steps_to_goal(curve).unwrap_or(steps * (end / (GOAL * start)))
}

/// The value of a curve at a cost; `None` beyond its ends.
pub(super) fn value_at(curve: &[At], cost: f64) -> Option<f64> {
    let i = curve.iter().position(|(at, _)| *at >= cost)?;
    let (after, value) = curve[i];
    if after <= cost {
        return Some(value);
    }
    let (before, earlier) = curve[i.checked_sub(1)?];
    Some(between(earlier, value, (cost - before) / (after - before)))
}

/// One final value over another. Both count as at least [`ZERO`] times the start.
pub(super) fn ratio(value: f64, best: f64, start: f64) -> Option<f64> {
    let floor = ZERO * start;
    let ratio = value.max(floor) / best.max(floor);
    (value.is_finite() && ratio.is_finite()).then_some(ratio)
}

/// The steps to the value of the best tuned baseline, relative to those of that baseline.
pub(super) fn steps_ratio(curve: &[At], best: &[At], target: f64, start: f64) -> Option<f64> {
    let target = target.max(ZERO * start);
    let steps = reach(best, target).filter(|steps| *steps > 0.0)?;
    Some(reach(curve, target)? / steps)
}

/// Whether a loss goes to zero.
pub(super) fn goes_to_zero(best: f64, start: f64) -> bool {
    best < TO_ZERO * start
}

/// Whether a result is as close to the best tuned one as `limit` demands.
pub(super) fn is_within(ratio: Option<f64>, steps_ratio: Option<f64>, to_zero: bool, limit: f64) -> bool {
    ratio.is_some_and(|ratio| ratio <= limit) || (to_zero && steps_ratio.is_some_and(|ratio| ratio <= STEPS))
}

/// The performance profile of Dolan and Moré: for every factor τ from 1 to `last`, the share of the tasks on which a method
/// is within τ of the best one. The points are the corners of this function. `None` is a task without a result.
pub(super) fn profile(ratios: &[Option<f64>], last: f64) -> Vec<At> {
    let mut jumps: Vec<f64> = ratios.iter().flatten().copied().filter(|ratio| *ratio <= last).collect();
    jumps.sort_by(f64::total_cmp);
    let mut corners = vec![(1.0, 0.0)];
    for (i, jump) in jumps.iter().map(|jump| jump.max(1.0)).enumerate() {
        let below = corners.last().map_or(0.0, |(_, share)| *share);
        let above = (i + 1) as f64 / ratios.len() as f64;
        if corners.last().is_some_and(|(at, _)| *at < jump) {
            corners.push((jump, below));
            corners.push((jump, above));
        } else if let Some(corner) = corners.last_mut() {
            corner.1 = above;
        }
    }
    let end = corners.last().map_or(0.0, |(_, share)| *share);
    corners.push((last, end));
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURVE: [At; 4] = [(0.0, 100.0), (10.0, 1.0), (20.0, 0.01), (30.0, 0.02)];

    fn near(a: Option<f64>, b: f64) {
        assert!(a.is_some_and(|a| (a - b).abs() < 1e-12), "{a:?} is not {b}");
    }

    #[test]
    fn a_curve_is_interpolated_on_a_logarithmic_axis() {
        near(reach(&CURVE, 10.0), 5.0);
        near(reach(&CURVE, 0.1), 15.0);
        near(reach(&CURVE, 0.01), 20.0);
        near(reach(&CURVE, 1000.0), 0.0);
        assert_eq!(reach(&CURVE, 0.001), None);
        near(value_at(&CURVE, 5.0), 10.0);
        near(value_at(&CURVE, 15.0), 0.1);
        near(value_at(&CURVE, 30.0), 0.02);
        near(value_at(&CURVE, 0.0), 100.0);
        assert_eq!(value_at(&CURVE, 31.0), None);
        // Values that are not positive have no logarithm.
        near(reach(&[(0.0, 4.0), (8.0, -4.0)], 0.0), 4.0);
        near(value_at(&[(0.0, 4.0), (8.0, 0.0)], 2.0), 3.0);
        // Nothing is known before the first finite value.
        near(reach(&[(0.0, f64::INFINITY), (8.0, 1.0)], 2.0), 8.0);
    }

    #[test]
    fn the_ratio_of_steps_compares_the_first_times_at_the_best_value() {
        let best = [(0.0, 100.0), (10.0, 1.0), (20.0, 1.0)];
        // The best run has its final value after 10 steps; this one after 5.
        let fast = [(0.0, 100.0), (5.0, 1.0), (20.0, 50.0)];
        near(steps_ratio(&fast, &best, 1.0, 100.0), 0.5);
        near(steps_ratio(&best, &fast, 1.0, 100.0), 2.0);
        assert_eq!(steps_ratio(&[(0.0, 100.0), (20.0, 2.0)], &best, 1.0, 100.0), None);
        // A best run that never improved needs no steps, so there is no ratio.
        assert_eq!(steps_ratio(&fast, &[(0.0, 100.0), (20.0, 100.0)], 100.0, 100.0), None);
        // Below rounding errors, the target is the largest value that counts as zero.
        let zero = [(0.0, 1.0), (10.0, 1e-28), (20.0, 1e-40)];
        near(steps_ratio(&zero, &zero, 1e-40, 1.0), 1.0);
        near(steps_ratio(&[(0.0, 1.0), (15.0, 1e-28)], &zero, 1e-40, 1.0), 1.5);
    }

    #[test]
    fn runs_that_do_not_reach_the_goal_are_later_than_those_that_do() {
        // On a logarithmic axis, half of the way from 100 to 1e-4 is 0.1.
        let arrives = [(0.0, 100.0), (20.0, 1e-4)];
        near(steps_to_goal(&arrives), 10.0);
        near(Some(steps_score(&arrives)), 10.0);
        let (close, far) = ([(0.0, 100.0), (20.0, 0.2)], [(0.0, 100.0), (20.0, 50.0)]);
        assert_eq!((steps_to_goal(&close), steps_to_goal(&[])), (None, None));
        near(Some(steps_score(&close)), 40.0);
        near(Some(steps_score(&far)), 10000.0);
        assert!(steps_score(&[]).is_infinite());
    }

    #[test]
    fn ratios_count_rounding_errors_as_zero() {
        near(ratio(3.0, 2.0, 10.0), 1.5);
        near(ratio(1e-31, 1e-29, 1.0), 1.0);
        near(ratio(1e-26, 1e-31, 1.0), 100.0);
        // A value slightly below an optimum of zero, by rounding.
        near(ratio(-1e-32, 1e-32, 1.0), 1.0);
        assert_eq!(ratio(f64::INFINITY, 1.0, 1.0), None);
        assert_eq!(ratio(0.0, 0.0, 0.0), None);
    }

    #[test]
    fn steps_count_only_if_the_loss_goes_to_zero() {
        assert!(is_within(Some(1.05), None, false, CLOSE) && !is_within(Some(1.06), None, false, CLOSE));
        assert!(is_within(Some(1e6), Some(1.1), true, CLOSE) && !is_within(Some(1e6), Some(1.1), false, CLOSE));
        assert!(!is_within(Some(1e6), Some(1.11), true, NEAR) && !is_within(None, None, true, NEAR));
        assert!(goes_to_zero(0.9e-6, 1.0) && !goes_to_zero(1e-6, 1.0));
    }

    #[test]
    fn a_profile_is_the_share_of_tasks_within_each_factor() {
        let corners = profile(&[Some(1.0), Some(2.0), Some(20.0), None], 10.0);
        assert_eq!(corners, [(1.0, 0.25), (2.0, 0.25), (2.0, 0.5), (10.0, 0.5)]);
        assert_eq!(profile(&[Some(1.0), Some(1.0)], 10.0), [(1.0, 1.0), (10.0, 1.0)]);
        assert_eq!(profile(&[None], 10.0), [(1.0, 0.0), (10.0, 0.0)]);
        assert_eq!(profile(&[Some(3.0), Some(3.0)], 10.0), [(1.0, 0.0), (3.0, 0.0), (3.0, 1.0), (10.0, 1.0)]);
    }
}
