//! The quality of a point: its measurement on the full sum, KKT residuals and multipliers.

use crate::{
    constraints::Constraint,
    objective::{Objective, full_value_and_gradient},
    vector::Vector,
};

pub use crate::constraints::least_squares::least_squares_multipliers;

/// The measurement of a point on the full sum.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
