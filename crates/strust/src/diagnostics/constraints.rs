//! The Jacobian's singular values, LICQ and the feasibility bound.

use crate::{
    Error,
    config::out_of_range,
    constraints::Constraint,
    kkt::least_squares_multipliers,
    objective::{Objective, full_value_and_gradient},
    vector::Vector,
};
use faer::{Mat, Side};

/// The singular values of J(x) that matter for LICQ.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Jacobian {
    /// σ_min, over the rows that [do not repeat others](Constraint::redundant).
    pub smallest: f64,
    /// σ_max.
    pub largest: f64,
    /// m, the number of rows without repetitions.
    pub rows: usize,
    /// Whether LICQ holds at x, up to rounding. The singular values are roots of eigenvalues of JJᵀ, so values below
    /// √ε·σ_max count as 0. If J vanishes as a whole, as for (‖x‖² − 1)² on the sphere, its rank is full until J is
    /// exactly 0. This flag does not detect that case: check whether σ_min tends to 0 along the run.
    pub licq: bool,
}

/// The largest number of rows for which JJᵀ is formed. Its eigenvalues take m³ operations.
const MOST_ROWS: usize = 2000;

/// The extreme singular values of J(x), from the m×m matrix JJᵀ: m products with J and Jᵀ, and an eigenvalue problem.
///
/// ```
/// use strust::{constraints::Sphere, diagnostics::jacobian, prelude::*};
/// let mut sphere = Sphere::<Vec<f64>>::new(1.0)?;
/// let j = jacobian(&mut sphere, &vec![0.6, 0.8])?; // J = 2xᵀ
/// assert!((j.smallest - 2.0).abs() < 1e-12 && j.licq);
/// assert!(!jacobian(&mut sphere, &vec![0.0, 0.0])?.licq);
/// # Ok::<(), Error>(())
/// ```
pub fn jacobian<C: Constraint + ?Sized>(constraint: &mut C, x: &C::Point) -> Result<Jacobian, Error> {
    let zero = constraint.new_residual();
    let m = zero.dimension();
    if m > MOST_ROWS {
        return Err(out_of_range("Jacobian", "rows of c", m, format_args!("at most {MOST_ROWS}")));
    }
    let basis: Vec<_> = (0..m).map(|i| unit(&zero, i)).collect();
    let (mut transposed, mut column) = (x.zeros_like(), zero.zeros_like());
    let mut square = Mat::<f64>::zeros(m, m);
    for j in 0..m {
        transposed.set_zero();
        constraint.add_vjp(x, 1.0, &basis[j], &mut transposed);
        constraint.jvp(x, &transposed, &mut column);
        (0..m).for_each(|i| square[(i, j)] = column.dot(&basis[i]));
    }
    let mut values = square.self_adjoint_eigenvalues(Side::Lower).map_err(|_| Error::Decomposition {
        what: "the eigenvalues of JJᵀ",
        fix: "check that the Jacobian products are finite, and scale the constraint",
    })?;
    values.sort_by(f64::total_cmp);
    let root = |value: f64| value.max(0.0).sqrt();
    let redundant = constraint.redundant().min(m.saturating_sub(1));
    let (smallest, largest) =
        (values.get(redundant).copied().map_or(0.0, root), values.last().copied().map_or(0.0, root));
    let floor = C::Point::EPSILON.max(C::Residual::EPSILON).sqrt() * (m as f64).sqrt();
    Ok(Jacobian { smallest, largest, rows: m - redundant, licq: smallest > floor * largest })
}

/// The i-th unit vector of the shape of `like`.
fn unit<R: Vector>(like: &R, i: usize) -> R {
    let mut unit = like.zeros_like();
    unit.set_component(i, 1.0);
    unit
}

/// KKT residuals at x, and the effect of the penalty on ‖c‖.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KktReport {
    /// ‖∇f(x)‖.
    pub gradient_norm: f64,
    /// ‖c(x)‖.
    pub constraint_norm: f64,
    /// ‖∇f + Jᵀλ‖ with the penalty's multipliers λ = μc(x). This is ‖∇φ(x)‖ (the paper's Corollary 4.13).
    pub penalty_residual: f64,
    /// ‖∇f + Jᵀλ‖ with the least-squares multipliers: the minimum over all λ.
    pub least_residual: f64,
    /// ‖λ‖ of the least-squares multipliers. At a minimum of φ it is μ‖c‖, so ‖c‖ ≤ η needs μ ≥ ‖λ‖/η.
    pub multiplier_norm: f64,
    /// ‖μc − λ‖ with the same λ. It is 0 at a minimum of φ. If it is not small compared with ‖λ‖, x is not near a
    /// minimum, and ‖c‖ has not yet reached its limit for this μ.
    pub multiplier_gap: f64,
    /// ‖J(x)ᵀc(x)‖/‖c(x)‖. The proof of the feasibility bound needs only this number instead of σ_min. NaN at a
    /// feasible point.
    pub pull: f64,
    /// The singular values of J(x).
    pub jacobian: Jacobian,
    /// (‖∇φ‖ + ‖∇f‖)/(μσ_min), an upper bound of ‖c‖ at this point (Lemma 4.12, before ε and G are inserted). Infinite
    /// without LICQ.
    pub feasibility_bound: f64,
}

/// Measures a [`KktReport`] on the full sum, for the penalty μ.
///
/// *Differs*: the paper's ε(ε + G)/σ_min assumes LICQ at feasible points, but the proof uses σ_min(J(x)) at the
/// iterate, which is not feasible. Here everything is measured at x.
///
/// ```
/// use strust::{constraints::Sphere, diagnostics::kkt_report, prelude::*};
/// // The point on the circle nearest to (2, 0). At x = (1.1, 0): ∇f = −0.9, c = 0.21, J = 2.2.
/// let mut f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
///     if let Some(g) = g {
///         (g[0], g[1]) = (x[0] - 2.0, x[1]);
///     }
///     0.5 * ((x[0] - 2.0).powi(2) + x[1] * x[1])
/// });
/// let report = kkt_report(&mut f, &mut Sphere::new(1.0)?, &vec![1.1, 0.0], 1.0)?;
/// assert!((report.penalty_residual - (0.9 - 0.21 * 2.2)).abs() < 1e-12);
/// assert!(report.least_residual < 1e-12 && report.constraint_norm <= report.feasibility_bound);
/// // The multiplier is 0.9/2.2, but μc is only 0.21: x is not yet a minimum of φ.
/// assert!((report.multiplier_gap - (0.9 / 2.2 - 0.21)).abs() < 1e-12);
/// # Ok::<(), Error>(())
/// ```
pub fn kkt_report<F, C>(f: &mut F, constraint: &mut C, x: &F::Point, penalty: f64) -> Result<KktReport, Error>
where
    F: Objective + ?Sized,
    C: Constraint<Point = F::Point> + ?Sized,
{
    let mut gradient = x.zeros_like();
    full_value_and_gradient(f, x, &mut gradient);
    let mut c = constraint.new_residual();
    constraint.residual(x, &mut c);
    let (gradient_norm, constraint_norm) = (gradient.norm(), c.norm());
    let residual = |constraint: &mut C, a: f64, multipliers: &C::Residual, gradient: &F::Point| {
        let mut sum = gradient.clone();
        constraint.add_vjp(x, a, multipliers, &mut sum);
        sum.norm()
    };
    let best = least_squares_multipliers(constraint, x, &gradient);
    let penalty_residual = residual(constraint, penalty, &c, &gradient);
    let jacobian = jacobian(constraint, x)?;
    let bound = (penalty_residual + gradient_norm) / (penalty * jacobian.smallest);
    Ok(KktReport {
        gradient_norm,
        constraint_norm,
        penalty_residual,
        least_residual: residual(constraint, 1.0, &best, &gradient),
        multiplier_norm: best.norm(),
        multiplier_gap: {
            let mut gap = best.clone();
            gap.add(-penalty, &c);
            gap.norm()
        },
        pull: residual(constraint, 1.0, &c, &x.zeros_like()) / constraint_norm,
        jacobian,
        feasibility_bound: if jacobian.licq { bound } else { f64::INFINITY },
    })
}
