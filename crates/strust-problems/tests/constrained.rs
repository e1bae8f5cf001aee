//! The constrained problems: their derivatives, their known solutions, and the contradictions of the infeasible ones.

use std::collections::BTreeSet;
use strust_problems::constrained::{
    ConstrainedProblem, Expected, degenerate_problems, equality_problems, inequality_problems,
};

fn all() -> Vec<ConstrainedProblem> {
    [equality_problems(), inequality_problems(), degenerate_problems()].concat()
}

/// x + size·d, where the components of d are in [−1, 1] and depend only on the seed.
fn perturbed(x: &[f64], size: f64, seed: usize) -> Vec<f64> {
    let component = |j: usize| (1e4 * ((seed * 31 + j * 7 + 1) as f64).sin()).sin();
    x.iter().enumerate().map(|(j, x)| x + size * component(j)).collect()
}

/// Whether x[j] is at a bound: −1 at the lower, 1 at the upper, else 0.
fn at_bound(p: &ConstrainedProblem, x: &[f64], j: usize) -> i32 {
    i32::from((p.upper[j] - x[j]).abs() < 1e-9) - i32::from((x[j] - p.lower[j]).abs() < 1e-9)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

#[test]
fn names_are_unique_and_each_list_is_complete() {
    let (equality, inequality, degenerate) = (equality_problems(), inequality_problems(), degenerate_problems());
    assert_eq!((equality.len(), inequality.len(), degenerate.len()), (20, 46, 14));
    assert_eq!(all().iter().map(|p| p.name).collect::<BTreeSet<_>>().len(), 80);
    assert!(equality.iter().all(|p| p.equalities > 0 && p.inequalities == 0));
    let is_bounded = |p: &ConstrainedProblem| p.lower.iter().chain(&p.upper).any(|bound| bound.is_finite());
    assert!(!equality.iter().any(is_bounded));
    assert!(inequality.iter().all(|p| p.inequalities > 0 || is_bounded(p)));
    assert!(equality.iter().chain(&inequality).all(|p| p.expected == Expected::Solvable));
    let infeasible = degenerate.iter().filter(|p| matches!(p.expected, Expected::Infeasible { .. })).count();
    let unqualified = degenerate.iter().filter(|p| p.expected == Expected::NoQualification).count();
    assert_eq!((infeasible, unqualified), (7, 3));
}

#[test]
fn sizes_agree_and_bounds_are_consistent() {
    for p in all() {
        let n = p.start.len();
        assert_eq!((p.lower.len(), p.upper.len()), (n, n), "{}", p.name);
        assert!(p.lower.iter().zip(&p.upper).all(|(lower, upper)| lower < upper), "{}", p.name);
        assert_eq!(p.rows(&p.start).len(), p.equalities + p.inequalities, "{}", p.name);
        for known in &p.solutions {
            assert_eq!(known.x.len(), n, "{}", p.name);
            if let Some(y) = &known.multipliers {
                assert_eq!((y.rows.len(), y.bounds.len()), (p.equalities + p.inequalities, n), "{}", p.name);
            }
        }
    }
}

#[test]
fn second_derivatives_agree_with_central_differences() {
    for p in all() {
        for x in [p.start.clone(), perturbed(&p.start, 0.4, 0), perturbed(&p.start, 0.4, 1)] {
            let v = perturbed(&vec![0.0; x.len()], 1.0, 7);
            let products = [vec![p.hessian_product(&x, &v)], p.row_hessian_products(&x, &v)].concat();
            let step = 1e-5 * (1.0 + norm(&x));
            let gradients_at = |side: f64| {
                let x: Vec<f64> = x.iter().zip(&v).map(|(x, v)| x + side * step * v).collect();
                [vec![p.gradient(&x)], p.jacobian(&x)].concat()
            };
            for (i, (after, before)) in gradients_at(1.0).iter().zip(gradients_at(-1.0)).enumerate() {
                for j in 0..x.len() {
                    let (difference, exact) = ((after[j] - before[j]) / (2.0 * step), products[i][j]);
                    let size = 1.0 + norm(&products[i]) + norm(after) / norm(&x).max(1.0);
                    assert!((difference - exact).abs() < 1e-6 * size, "{} {i} {j}: {difference} {exact}", p.name);
                }
            }
        }
    }
}

#[test]
fn derivatives_agree_with_central_differences() {
    for p in all() {
        for x in [p.start.clone(), perturbed(&p.start, 0.4, 0), perturbed(&p.start, 0.4, 1)] {
            let derivatives = [vec![p.gradient(&x)], p.jacobian(&x)].concat();
            for j in 0..x.len() {
                let values_at = |step: f64| {
                    let mut x = x.clone();
                    x[j] += step;
                    [vec![p.value(&x)], p.rows(&x)].concat()
                };
                let step = 1e-5 * (1.0 + x[j].abs());
                for (i, (after, before)) in values_at(step).iter().zip(values_at(-step)).enumerate() {
                    let (difference, exact) = ((after - before) / (2.0 * step), derivatives[i][j]);
                    let error = (difference - exact).abs();
                    assert!(error < 1e-7 * (1.0 + norm(&derivatives[i])), "{} {i} {j}: {difference} {exact}", p.name);
                }
            }
        }
    }
}

#[test]
fn known_solutions_satisfy_the_optimality_conditions() {
    for p in all() {
        for known in &p.solutions {
            let (x, name) = (&known.x, p.name);
            assert!(p.violation(x) <= 1e-9, "{name}: {}", p.violation(x));
            assert!((p.value(x) - known.value).abs() <= 1e-10 * (1.0 + known.value.abs()), "{name}: {}", p.value(x));
            let Some(y) = &known.multipliers else { continue };

            let mut residual = p.gradient(x);
            let scale = 1.0 + norm(&residual);
            for (j, r) in residual.iter_mut().enumerate() {
                *r += y.bounds[j] + p.jacobian(x).iter().zip(&y.rows).map(|(row, y)| row[j] * y).sum::<f64>();
            }
            assert!(norm(&residual) <= 1e-9 * scale, "{name}: {residual:?}");
            for (i, (c, y)) in p.rows(x).iter().zip(&y.rows).enumerate().skip(p.equalities) {
                assert!(*y >= 0.0 && (y * c).abs() <= 1e-9 * scale, "{name} row {i}: {c} {y}");
            }
            for (j, z) in y.bounds.iter().enumerate() {
                let sign = at_bound(&p, x, j);
                assert!(*z == 0.0 || z * f64::from(sign) > 0.0, "{name} bound {j}: {z} {sign}");
            }
        }
    }
}

/// Near a solution, no point within the bounds has a lower f + π‖v‖₁, where v is the violation of the rows and
/// π exceeds the multipliers.
#[test]
fn known_solutions_minimize_the_exact_penalty_nearby() {
    for p in all() {
        for known in &p.solutions {
            let Some(y) = &known.multipliers else { continue };
            let weight = 2.0 * y.rows.iter().fold(1.0, |largest: f64, y| largest.max(y.abs()));
            let penalty = |x: &[f64]| {
                let violation = |(i, c): (usize, &f64)| if i < p.equalities { c.abs() } else { c.max(0.0) };
                p.value(x) + weight * p.rows(x).iter().enumerate().map(violation).sum::<f64>()
            };
            for seed in 0..500 {
                let size = 0.01 / f64::from(1 << (seed % 8));
                let mut x = perturbed(&known.x, size, seed);
                x.iter_mut().enumerate().for_each(|(j, x)| *x = x.clamp(p.lower[j], p.upper[j]));
                let gain = known.value - penalty(&x);
                assert!(gain <= 1e-10 * (1.0 + known.value.abs()), "{} at {x:?}: lower by {gain}", p.name);
            }
        }
    }
}

#[test]
fn every_feasible_problem_has_its_solutions_best_first() {
    for p in all() {
        let infeasible = matches!(p.expected, Expected::Infeasible { .. });
        assert_eq!(p.solutions.is_empty(), infeasible, "{}", p.name);
        assert!(p.solutions.is_sorted_by_key(|known| known.value), "{}", p.name);
        let unqualified = p.solutions.iter().any(|known| known.multipliers.is_none());
        assert_eq!(unqualified, p.expected == Expected::NoQualification, "{}", p.name);
    }
}

/// ∇f ≠ 0 is orthogonal to the gradients of all active rows and bounds, so no combination of them is −∇f.
#[test]
fn solutions_without_multipliers_have_none() {
    for p in degenerate_problems().iter().filter(|p| p.expected == Expected::NoQualification) {
        let x = &p.solutions[0].x;
        let g = p.gradient(x);
        assert!(norm(&g) >= 1.0, "{}", p.name);
        for (c, row) in p.rows(x).iter().zip(p.jacobian(x)) {
            assert!(c.abs() > 0.1 || dot(&row, &g).abs() < 1e-12, "{}", p.name);
        }
        assert!((0..x.len()).all(|j| at_bound(p, x, j) == 0 || g[j].abs() < 1e-12), "{}", p.name);
    }
}

/// A weighted sum of the rows is at least a positive number wherever the named bounds hold. Feasible points would make
/// it at most 0, because the weights of inequalities are positive.
#[test]
fn contradictory_rows_have_a_positive_combination() {
    let certificates: [(&str, &[f64], f64); 7] = [
        ("parallel-planes", &[1.0, -1.0, 0.0], 1.0),
        ("three-planes", &[1.0, 1.0, -1.0], 1.0),
        ("circle-and-line", &[1.0, -3.0], 3.5), // (x₁ − 3/2)² + (x₂ − 3/2)² + 7/2
        ("row-and-bounds", &[1.0, 0.0], 1.0),
        ("two-disks", &[1.0, 1.0], 6.0), // 2x₁² + 2x₂² + 6
        ("two-wells", &[1.0], 0.39),
        ("four-parabolas", &[1.0, 1.0, 1.0, 1.0], 4.0), // 2x₁² + 2x₂² + 4
    ];
    let mut found = 0;
    for p in degenerate_problems() {
        let Expected::Infeasible { rows, bounds } = &p.expected else { continue };
        let (_, weights, least) = certificates.iter().find(|(name, ..)| *name == p.name).unwrap();
        let weighted: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] != 0.0).collect();
        assert_eq!(*rows, weighted, "{}", p.name);
        assert!(weights[p.equalities..].iter().all(|weight| *weight >= 0.0), "{}", p.name);
        for seed in 0..5000 {
            let mut x = perturbed(&vec![0.0; p.start.len()], 5.0, seed);
            for &j in bounds {
                x[j] = x[j].clamp(p.lower[j], p.upper[j]);
            }
            let sum = dot(weights, &p.rows(&x));
            assert!(sum >= least - 1e-12, "{} at {x:?}: {sum}", p.name);
        }
        found += 1;
    }
    assert_eq!(found, certificates.len());
}
