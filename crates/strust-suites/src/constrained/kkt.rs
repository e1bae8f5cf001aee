//! The KKT conditions of a [`ConstrainedProblem`], from their definition.

use strust::vector::Vector;
use strust_problems::constrained::{ConstrainedProblem, KnownMultipliers};

/// How much a point misses the KKT conditions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Residual {
    /// ‖∇f + Jᵀy + z‖, or a wrong sign of a multiplier −yᵢ of an inequality, if that is larger.
    pub gradient: f64,
    /// The largest violation of a row or a bound.
    pub violation: f64,
    /// The largest of |yᵢcᵢ| of an inequality and |zⱼ|·(distance of xⱼ to its bound).
    pub complementarity: f64,
}

impl Residual {
    /// The largest of all.
    pub fn largest(&self) -> f64 {
        larger(larger(self.gradient, self.violation), self.complementarity)
    }
}

/// The KKT residual of x with multipliers y of the rows and z of the bounds. A bound that does not exist has no
/// distance: |zⱼ| itself counts.
pub(super) fn residual(problem: &ConstrainedProblem, x: &[f64], multipliers: &KnownMultipliers) -> Residual {
    let KnownMultipliers { rows: y, bounds: z } = multipliers;
    let mut lagrangian = problem.gradient(x);
    for (row, y) in problem.jacobian(x).iter().zip(y) {
        lagrangian.add(*y, row);
    }
    lagrangian.add(1.0, z);
    let inequalities = || problem.rows(x).into_iter().zip(y).skip(problem.equalities);
    let signs = inequalities().map(|(_, y)| -y);
    let rows = inequalities().map(|(c, y)| (y * c).abs());
    let bounds = z.iter().enumerate().map(|(j, z)| {
        let gap = if *z < 0.0 { x[j] - problem.lower[j] } else { problem.upper[j] - x[j] };
        z.abs() * if gap.is_finite() { gap.abs() } else { 1.0 }
    });
    Residual {
        gradient: signs.fold(lagrangian.norm(), larger),
        violation: problem.violation(x),
        complementarity: rows.chain(bounds).fold(0.0, larger),
    }
}

/// The larger number; NaN if one of them is NaN.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strust_problems::constrained::{equality_problems, inequality_problems};

    #[test]
    fn known_solutions_are_kkt_points_and_other_points_or_multipliers_are_not() {
        for problem in equality_problems().into_iter().chain(inequality_problems()) {
            for known in &problem.solutions {
                let multipliers = known.multipliers.as_ref().unwrap();
                let size = 1.0 + problem.gradient(&known.x).norm();
                assert!(residual(&problem, &known.x, multipliers).largest() < 1e-6 * size, "{}", problem.name);
                let mut other = multipliers.clone();
                other.bounds[0] += 1.0;
                assert!(residual(&problem, &known.x, &other).largest() > 0.5, "{}", problem.name);
            }
        }
    }

    #[test]
    fn a_wrong_sign_and_a_multiplier_away_from_its_bound_count() {
        let problems = inequality_problems();
        let problem = problems.iter().find(|problem| problem.name == "hs014").unwrap();
        let known = &problem.solutions[0];
        let mut multipliers = known.multipliers.clone().unwrap();
        multipliers.rows[1] = -3.0;
        assert!(residual(problem, &known.x, &multipliers).gradient >= 3.0);
        assert!(residual(problem, &[f64::NAN, 1.0], &multipliers).largest().is_nan());
    }
}
