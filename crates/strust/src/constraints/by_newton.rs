use super::{
    Constraint, ConstraintWrapper, Manifold, check_equations,
    least_squares::{least_norm_step, least_squares_multipliers},
};
use crate::{Error, vector::Vector};

/// Newton steps until [`Manifold::restore`] gives up. From a point where it converges at all, a few are enough.
const MOST_STEPS: usize = 50;

/// Makes a [`Manifold`] of equations c(x) = 0, so that methods such as `Riemannian` of `strust-baselines` work
/// on them. Inequalities and bounds are an error.
///
/// The projection of v onto the tangent space is v + Jᵀλ with the [multipliers
/// λ](crate::kkt::least_squares_multipliers) that minimize its norm. A point is moved back by Newton steps
/// x ← x − Jᵀ(JJᵀ)⁻¹c until c is a rounding error. Both need only products with J and Jᵀ.
///
/// ```
/// use strust::{constraints::{by_newton, Affine, Manifold, Sphere}, prelude::*};
/// // The circle of points of the unit sphere with x₀ + x₁ + x₂ = 1.
/// let plane = Affine::new(vec![vec![1.0; 3]], vec![1.0])?;
/// let mut circle = by_newton(both(Sphere::new(1.0)?, plane)?)?;
/// let mut x = vec![0.9_f64, 0.4, -0.1];
/// circle.restore(&mut x)?;
/// assert!((x.norm() - 1.0).abs() < 1e-14 && (x[0] + x[1] + x[2] - 1.0).abs() < 1e-14);
/// # Ok::<(), strust::Error>(())
/// ```
pub fn by_newton<C: Constraint>(constraint: C) -> Result<ByNewton<C>, Error> {
    check_equations("manifold by Newton steps", &constraint)?;
    Ok(ByNewton(constraint))
}

/// See [`by_newton`].
#[derive(Debug, Clone)]
pub struct ByNewton<C>(C);

impl<C: Constraint> ConstraintWrapper for ByNewton<C> {
    type Inner = C;
    fn wrapped(&self) -> &C {
        &self.0
    }
    fn wrapped_mut(&mut self) -> &mut C {
        &mut self.0
    }
}

impl<C: Constraint> Manifold for ByNewton<C> {
    fn project_tangent(&mut self, x: &C::Point, v: &mut C::Point) -> Result<(), Error> {
        let multipliers = least_squares_multipliers(&mut self.0, x, v);
        self.0.add_vjp(x, 1.0, &multipliers, v);
        Ok(())
    }

    fn restore(&mut self, x: &mut C::Point) -> Result<(), Error> {
        let mut c = self.0.new_residual();
        let (mut before, mut is_close) = (f64::INFINITY, false);
        for _ in 0..MOST_STEPS {
            self.0.residual(x, &mut c);
            let norm = c.norm();
            if !norm.is_finite() {
                return Err(failed("c(x) is not finite"));
            }
            // The rounding error that a constraint reports may be too small. Newton's method converges quadratically,
            // so a short step that does not halve ‖c‖ met the rounding error too.
            if norm <= self.0.rounding(x, norm) || (is_close && norm > 0.5 * before) {
                return Ok(());
            }
            let step = least_norm_step(&mut self.0, x, &c);
            let length = step.norm();
            if length == 0.0 {
                return Err(failed("no direction reduces c(x)"));
            }
            is_close = length <= C::Point::EPSILON.sqrt() * x.norm();
            x.add(-1.0, &step);
            before = norm;
        }
        Err(failed("Newton's method did not converge"))
    }
}

fn failed(why: &str) -> Error {
    Error::Retraction {
        set: "manifold by Newton steps",
        why: format!("{why}: the point is too far from the set, use a smaller step"),
    }
}
