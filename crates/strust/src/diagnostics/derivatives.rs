//! Slope checks of a user's derivatives.

use crate::{constraints::Constraint, objective::Objective, sample::Sample, vector::Vector};

/// The order at which the error of a first-order expansion decreases with the step: 2 if the derivative is right, 1 if
/// it is wrong.
///
/// For an affine function there is no error, and the result is infinite.
fn slope(mut error: impl FnMut(f64) -> f64, floor: f64) -> f64 {
    // Only the limit t → 0 matters, so use the shortest steps above the rounding floor. Take the median of their
    // slopes, not the largest: where a wrong first-order term and the second-order term cancel, a single slope can be
    // arbitrarily large.
    let mut errors: Vec<f64> = (4..28).map(|i| error(0.5_f64.powi(i))).collect();
    if errors.iter().any(|e| e.is_nan()) {
        return f64::NAN;
    }
    let Some(last) = errors.iter().rposition(|&e| e > floor) else {
        return f64::INFINITY;
    };
    errors.truncate(last + 1);
    let mut local: Vec<f64> = errors.windows(2).rev().take(5).map(|w| (w[0] / w[1]).log2()).collect();
    local.sort_by(f64::total_cmp);
    // Only one error is above the floor. The next one decreased at least by this factor.
    local.get(local.len() / 2).copied().unwrap_or_else(|| (errors[0] / floor).log2())
}

/// Slope check of an objective's gradient at x along `direction`: near 2 (or infinite, for an affine function)
/// if the gradient is right, near 1 if it is wrong.
///
/// ```
/// use strust::{diagnostics::gradient_slope, prelude::*};
/// let mut wrong = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
///     if let Some(g) = g {
///         g[0] = 2.0 * x[0]; // should be 3x²
///     }
///     x[0].powi(3)
/// });
/// let slope = gradient_slope(&mut wrong, &vec![2.0], &vec![1.0], &Sample::range(0..1));
/// assert!(slope < 1.5);
/// ```
pub fn gradient_slope<F: Objective>(f: &mut F, x: &F::Point, direction: &F::Point, sample: &Sample) -> f64 {
    let mut gradient = x.zeros_like();
    let value = f.value_and_gradient(x, sample, &mut gradient).value;
    let along = gradient.dot(direction);
    let mut moved = x.zeros_like();
    let floor = 64.0 * F::Point::EPSILON * (value.abs() + along.abs());
    slope(
        |t| {
            moved.set_sum(x, t, direction);
            (f.value(&moved, sample).value - value - t * along).abs()
        },
        floor,
    )
}

/// Slope check of a constraint's Jacobian-vector product, and the mismatch |⟨y, Jv⟩ − ⟨Jᵀy, v⟩| of its
/// vector-Jacobian product, relative to the size of both.
pub fn jacobian_slope<C: Constraint>(constraint: &mut C, x: &C::Point, v: &C::Point, y: &C::Residual) -> (f64, f64) {
    let mut c = constraint.new_residual();
    constraint.residual(x, &mut c);
    let mut jv = c.zeros_like();
    constraint.jvp(x, v, &mut jv);
    let mut transposed = x.zeros_like();
    constraint.add_vjp(x, 1.0, y, &mut transposed);
    let (left, right) = (y.dot(&jv), transposed.dot(v));
    let mismatch = (left - right).abs() / (left.abs() + right.abs()).max(f64::MIN_POSITIVE);

    let (mut moved, mut at_moved) = (x.zeros_like(), c.zeros_like());
    let epsilon = C::Point::EPSILON.max(C::Residual::EPSILON);
    let floor = 64.0 * epsilon * (c.norm() + jv.norm() + 1.0);
    let slope = slope(
        |t| {
            moved.set_sum(x, t, v);
            constraint.residual(&moved, &mut at_moved);
            at_moved.add(-1.0, &c);
            at_moved.add(-t, &jv);
            at_moved.norm()
        },
        floor,
    );
    (slope, mismatch)
}
