//! Conjugate gradients on products with J and Jᵀ: least-squares multipliers and least-norm steps.

use super::Constraint;
use crate::vector::Vector;

/// The multipliers λ that minimize ‖∇f(x) + J(x)ᵀλ‖, by conjugate gradients on JJᵀλ = −J∇f. If λ is not unique, it is
/// the one with the smallest norm. The number of products with J and Jᵀ is the number of different singular values of
/// J, and at most 2m.
///
/// ```
/// use strust::{constraints::Sphere, kkt::least_squares_multipliers, prelude::*};
/// let mut sphere = Sphere::<Vec<f64>>::new(1.0)?;
/// // ∇f = (−4, 3) and J = (2, 0) at x = (1, 0). λ = 2 gives ∇f + Jᵀλ = (0, 3).
/// let lambda = least_squares_multipliers(&mut sphere, &vec![1.0, 0.0], &vec![-4.0, 3.0]);
/// assert!((lambda[0] - 2.0).abs() < 1e-12);
/// # Ok::<(), strust::Error>(())
/// ```
pub fn least_squares_multipliers<C: Constraint + ?Sized>(
    constraint: &mut C,
    x: &C::Point,
    gradient: &C::Point,
) -> C::Residual {
    let mut multipliers = constraint.new_residual();
    // The residual −∇f − Jᵀλ, and the residual of the normal equations J(−∇f − Jᵀλ).
    let mut left = x.zeros_like();
    left.add(-1.0, gradient);
    let mut normal = multipliers.zeros_like();
    constraint.jvp(x, &left, &mut normal);
    let mut direction = normal.clone();
    let mut transposed = x.zeros_like();
    let mut squared = normal.norm_squared();
    let tiny = C::Point::EPSILON * C::Point::EPSILON;
    let floor = tiny * squared;
    // ‖J‖², as far as it is known. The residual has a rounding error of about ε‖J‖‖∇f‖. More steps would follow that
    // error, and in f32 they can diverge.
    let (mut largest, size) = (0.0_f64, left.norm_squared());
    for _ in 0..2 * multipliers.dimension() {
        if squared <= floor || !squared.is_finite() {
            break;
        }
        transposed.set_zero();
        constraint.add_vjp(x, 1.0, &direction, &mut transposed);
        let curvature = transposed.norm_squared();
        if curvature <= 0.0 {
            break;
        }
        largest = largest.max(curvature / direction.norm_squared());
        if squared <= tiny * largest * size {
            break;
        }
        let step = squared / curvature;
        multipliers.add(step, &direction);
        left.add(-step, &transposed);
        constraint.jvp(x, &left, &mut normal);
        let next = normal.norm_squared();
        direction.scale_add(next / squared, 1.0, &normal);
        squared = next;
    }
    multipliers
}

/// The shortest p with J(x)p = c, that is Jᵀ(JJᵀ)⁻¹c, by conjugate gradients on JJᵀλ = c. The number of products with J
/// and Jᵀ is as in [`least_squares_multipliers`].
pub(super) fn least_norm_step<C: Constraint + ?Sized>(constraint: &mut C, x: &C::Point, c: &C::Residual) -> C::Point {
    let mut step = x.zeros_like();
    let (mut left, mut direction) = (c.clone(), c.clone());
    let (mut transposed, mut product) = (x.zeros_like(), c.zeros_like());
    let mut squared = left.norm_squared();
    let floor = C::Point::EPSILON * C::Point::EPSILON * squared;
    for _ in 0..2 * c.dimension() {
        if squared <= floor || !squared.is_finite() {
            break;
        }
        transposed.set_zero();
        constraint.add_vjp(x, 1.0, &direction, &mut transposed);
        let curvature = transposed.norm_squared();
        if curvature <= 0.0 {
            break;
        }
        let length = squared / curvature;
        step.add(length, &transposed);
        constraint.jvp(x, &transposed, &mut product);
        left.add(-length, &product);
        let next = left.norm_squared();
        direction.scale_add(next / squared, 1.0, &left);
        squared = next;
    }
    step
}
