//! KKT residuals, multipliers, the Jacobian's singular values and the feasibility bound.

use crate::{
    Error,
    config::out_of_range,
    constraints::Constraint,
    methods::Measurement,
    objective::{Objective, full_value_and_gradient},
    vector::Vector,
};
use faer::{Mat, Side};
use serde::{Deserialize, Serialize};

/// How near x is to a KKT point with multipliers λ: ‖∇f(x) + J(x)ᵀλ‖ and ‖c(x)‖, on the full sum (the paper's
/// Definition 4.10). The merit is f(x).
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

/// The multipliers λ that make ‖∇f(x) + J(x)ᵀλ‖ least, by conjugate gradients on JJᵀλ = −J∇f: as many products with J and Jᵀ
/// as J has different singular values, at most 2m. Of all such λ it is the smallest.
///
/// ```
/// use strust::{diagnostics::least_squares_multipliers, prelude::*};
/// let mut sphere = Sphere::<Vec<f64>>::new(1.0)?;
/// // ∇f = (−4, 3) at x = (1, 0), where J = (2, 0): λ = 2 leaves (0, 3).
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
    // The residual of the problem, −∇f − Jᵀλ, and that of its normal equations, J(−∇f − Jᵀλ).
    let mut left = x.zeros_like();
    left.add(-1.0, gradient);
    let mut normal = multipliers.zeros_like();
    constraint.jvp(x, &left, &mut normal);
    let mut direction = normal.clone();
    let mut pull = x.zeros_like();
    let mut squared = normal.norm_squared();
    let floor = C::Point::EPSILON * C::Point::EPSILON * squared;
    for _ in 0..2 * size(&multipliers) {
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

fn size<R: Vector>(residual: &R) -> usize {
    residual.shape().iter().product()
}

/// The singular values of J(x), as far as the qualification of the constraints depends on them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Jacobian {
    /// σ_min, over the rows that [do not repeat others](Constraint::redundant).
    pub smallest: f64,
    /// σ_max.
    pub largest: f64,
    /// m, the rows that count.
    pub rows: usize,
    /// Whether LICQ holds at x as far as rounding tells: σ_min is no rounding error of σ_max. The singular values are roots of
    /// eigenvalues of JJᵀ, so what is below √ε·σ_max cannot be told from 0. A J that vanishes as a whole, as that of (‖x‖² − 1)² does
    /// on the sphere, keeps its rank until it is 0: there it is σ_min itself, along the run, that tells.
    pub licq: bool,
}

/// Rows up to which JJᵀ is formed: its eigenvalues take m³ operations.
const MOST_ROWS: usize = 2000;

/// The extreme singular values of J(x), from the m×m matrix JJᵀ: m products with J and Jᵀ, and an eigenvalue problem.
///
/// ```
/// use strust::{diagnostics::jacobian, prelude::*};
/// let mut sphere = Sphere::<Vec<f64>>::new(1.0)?;
/// let j = jacobian(&mut sphere, &vec![0.6, 0.8])?; // J = 2xᵀ
/// assert!((j.smallest - 2.0).abs() < 1e-12 && j.licq);
/// assert!(!jacobian(&mut sphere, &vec![0.0, 0.0])?.licq);
/// # Ok::<(), Error>(())
/// ```
pub fn jacobian<C: Constraint + ?Sized>(constraint: &mut C, x: &C::Point) -> Result<Jacobian, Error> {
    let zero = constraint.new_residual();
    let m = size(&zero);
    if m > MOST_ROWS {
        return Err(out_of_range("Jacobian", "rows of c", m, format_args!("at most {MOST_ROWS}")));
    }
    let basis = (0..m).map(|i| unit(&zero, i)).collect::<Result<Vec<_>, _>>()?;
    let (mut pull, mut column) = (x.zeros_like(), zero.zeros_like());
    let mut square = Mat::<f64>::zeros(m, m);
    for j in 0..m {
        pull.set_zero();
        constraint.add_vjp(x, 1.0, &basis[j], &mut pull);
        constraint.jvp(x, &pull, &mut column);
        (0..m).for_each(|i| square[(i, j)] = column.dot(&basis[i]));
    }
    let mut values = square.self_adjoint_eigenvalues(Side::Lower).map_err(|_| {
        out_of_range("Jacobian", "JJᵀ", "a matrix whose eigenvalues did not converge", "finite and better scaled")
    })?;
    values.sort_by(f64::total_cmp);
    let root = |value: f64| value.max(0.0).sqrt();
    let redundant = constraint.redundant().min(m.saturating_sub(1));
    let (smallest, largest) =
        (values.get(redundant).copied().map_or(0.0, root), values.last().copied().map_or(0.0, root));
    let floor = C::Point::EPSILON.max(C::Residual::EPSILON).sqrt() * (m as f64).sqrt();
    Ok(Jacobian { smallest, largest, rows: m - redundant, licq: smallest > floor * largest })
}

/// The i-th unit vector of the shape of `like`, through the form in which vectors are saved: a [`Vector`] has no other door.
fn unit<R: Vector>(like: &R, i: usize) -> Result<R, Error> {
    let mut bytes = Vec::new();
    like.write(&mut bytes);
    let width = bytes.len() / size(like).max(1);
    let one = if width == 4 { 1.0_f32.to_le_bytes().to_vec() } else { 1.0_f64.to_le_bytes().to_vec() };
    bytes.fill(0);
    bytes[i * width..(i + 1) * width].copy_from_slice(&one);
    R::read(R::scalar(), &like.shape(), &bytes)
}

/// How near x is to a KKT point, and what the penalty does to ‖c‖.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KktReport {
    /// ‖∇f(x)‖.
    pub gradient_norm: f64,
    /// ‖c(x)‖.
    pub constraint_norm: f64,
    /// ‖∇f + Jᵀλ‖ with the penalty's multipliers λ = μc(x): ‖∇φ(x)‖, the paper's Corollary 4.13.
    pub penalty_residual: f64,
    /// ‖∇f + Jᵀλ‖ with the least-squares multipliers, which no other λ can better.
    pub least_residual: f64,
    /// ‖λ‖ of the least-squares multipliers. At a minimum of φ it is μ‖c‖, so that ‖c‖ ≤ η needs μ ≥ ‖λ‖/η.
    pub multiplier_norm: f64,
    /// ‖μc − λ‖ with the same: 0 at a minimum of φ. Where it is not small against ‖λ‖, x is not near one, and ‖c‖ is not yet what μ leaves.
    pub multiplier_gap: f64,
    /// ‖J(x)ᵀc(x)‖/‖c(x)‖: all that the proof of the feasibility bound uses of σ_min. NaN at a feasible point.
    pub pull: f64,
    /// The singular values of J(x).
    pub jacobian: Jacobian,
    /// (‖∇φ‖ + ‖∇f‖)/(μσ_min): no feasibility can be worse at this point (Lemma 4.12, before ε and G are put in). Infinite without LICQ.
    pub feasibility_bound: f64,
}

/// Measures all of it on the full sum, for the penalty μ.
///
/// *Differs*: the paper's ε(ε + G)/σ_min asks for LICQ at feasible points, but its proof uses σ_min(J(x)) at the iterate, which is
/// not feasible. Here everything is taken at x.
///
/// ```
/// use strust::{diagnostics::kkt_report, prelude::*};
/// // Nearest to (2, 0) on the circle: at x = (1.1, 0), ∇f = −0.9, c = 0.21, J = 2.2.
/// let mut f = from_fn(1, |x: &Vec<f64>, _: &Sample, g: Option<&mut Vec<f64>>| {
///     if let Some(g) = g {
///         (g[0], g[1]) = (x[0] - 2.0, x[1]);
///     }
///     0.5 * ((x[0] - 2.0).powi(2) + x[1] * x[1])
/// });
/// let report = kkt_report(&mut f, &mut Sphere::new(1.0)?, &vec![1.1, 0.0], 1.0)?;
/// assert!((report.penalty_residual - (0.9 - 0.21 * 2.2)).abs() < 1e-12);
/// assert!(report.least_residual < 1e-12 && report.constraint_norm <= report.feasibility_bound);
/// // λ = 0.9/2.2 would hold x there, and the penalty pulls with μc = 0.21 only: φ is still falling.
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
