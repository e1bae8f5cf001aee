//! The quality of a point: its measurement on the full sum, KKT residuals and multipliers.

use crate::{
    constraints::Constraint,
    objective::{Objective, full_value_and_gradient},
    vector::Vector,
};
use serde::{Deserialize, Serialize};

/// The measurement of a point on the full sum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// f(x).
    pub value: f64,
    /// The function that the method minimizes: f(x), or φ(x) = f(x) + (μ/2)‖c(x)‖² for a penalty method. An augmented
    /// Lagrangian changes its function during the run, so its merit is the KKT residual.
    pub merit: f64,
    /// ‖∇f(x)‖. With constraints it is the norm of the Lagrangian's gradient ‖∇f(x) + J(x)ᵀλ‖ with the method's
    /// multipliers. On a manifold it is the norm of the Riemannian gradient.
    pub gradient_norm: f64,
    /// ‖c(x)‖; zero for a method without constraints.
    pub constraint_norm: f64,
}

impl Measurement {
    /// A measurement that failed.
    pub(crate) const UNKNOWN: Self =
        Self { value: f64::NAN, merit: f64::NAN, gradient_norm: f64::NAN, constraint_norm: f64::NAN };

    /// Whether all numbers are finite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        [self.value, self.merit, self.gradient_norm, self.constraint_norm].iter().all(|number| number.is_finite())
    }
    /// The ε for which x is an ε-KKT point: the larger of both norms; NaN if one of them is NaN.
    #[must_use]
    pub fn kkt(&self) -> f64 {
        // `f64::max` ignores NaN.
        if self.gradient_norm >= self.constraint_norm {
            self.gradient_norm
        } else {
            self.constraint_norm + 0.0 * self.gradient_norm
        }
    }
}

/// Measures f(x) and ‖∇f(x)‖ on the full sum, and ‖c(x)‖ of a constraint inside the objective. The merit is f(x).
pub fn measure<F: Objective + ?Sized>(f: &mut F, x: &F::Point) -> Measurement {
    let mut gradient = x.zeros_like();
    let value = full_value_and_gradient(f, x, &mut gradient);
    Measurement { value, merit: value, gradient_norm: gradient.norm(), constraint_norm: f.constraint_norm(x) }
}

/// Measures ‖∇f(x) + J(x)ᵀλ‖ and ‖c(x)‖ on the full sum; both are 0 at a KKT point (the paper's Definition 4.10). The
/// merit is f(x).
pub fn kkt<F, C>(f: &mut F, constraint: &mut C, x: &F::Point, multipliers: &C::Residual) -> Measurement
where
    F: Objective + ?Sized,
    C: Constraint<Point = F::Point> + ?Sized,
{
    let mut gradient = x.zeros_like();
    let value = full_value_and_gradient(f, x, &mut gradient);
    constraint.add_vjp(x, 1.0, multipliers, &mut gradient);
    let mut c = constraint.new_residual();
    constraint.residual(x, &mut c);
    Measurement { value, merit: value, gradient_norm: gradient.norm(), constraint_norm: c.norm() }
}

/// The multipliers λ that minimize ‖∇f(x) + J(x)ᵀλ‖, by conjugate gradients on JJᵀλ = −J∇f. If λ is not unique, it is
/// the one with the smallest norm. The number of products with J and Jᵀ is the number of different singular values of
/// J, and at most 2m.
///
/// ```
/// use strust::{kkt::least_squares_multipliers, prelude::*};
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
    let mut pull = x.zeros_like();
    let mut squared = normal.norm_squared();
    let floor = C::Point::EPSILON * C::Point::EPSILON * squared;
    for _ in 0..2 * multipliers.dimension() {
        if squared <= floor || !squared.is_finite() {
            break;
        }
        pull.set_zero();
        constraint.add_vjp(x, 1.0, &direction, &mut pull);
        let curvature = pull.norm_squared();
        if curvature <= 0.0 {
            break;
        }
        let step = squared / curvature;
        multipliers.add(step, &direction);
        left.add(-step, &pull);
        constraint.jvp(x, &left, &mut normal);
        let next = normal.norm_squared();
        direction.scale_add(next / squared, 1.0, &normal);
        squared = next;
    }
    multipliers
}
