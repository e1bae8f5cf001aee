//! Problems without a solution, without multipliers, or with more than one choice of multipliers.

use super::{ConstrainedProblem, Expected, problems};

const INF: f64 = f64::INFINITY;

/// Infeasible problems, then problems that are feasible but degenerate.
#[must_use]
pub fn degenerate_problems() -> Vec<ConstrainedProblem> {
    let mut problems = infeasible();
    problems.extend(degenerate());
    problems
}

fn infeasible() -> Vec<ConstrainedProblem> {
    problems! {
        // The last row contradicts nothing.
        "parallel-planes", [x1, x2, x3] = [0.0, 0.0, 1.0], minimize = x1.powi(2) + x2.powi(2) + x3.powi(2),
            zero = [x1 + x2 + x3 - 1.0, x1 + x2 + x3 - 2.0, x1 - x3] =>
            infeasible(&[0, 1], &[]);
        // Every two of the three meet in a line.
        "three-planes", [x1, x2, x3] = [1.0, 2.0, 3.0], minimize = (x1 - 1.0).powi(2) + x2.powi(2) + x3.powi(2),
            zero = [x1 + x2 - 1.0, x2 + x3 - 1.0, x1 + 2.0 * x2 + x3 - 3.0] =>
            infeasible(&[0, 1, 2], &[]);
        // The distance of the line from the origin is 3/√2 > 1.
        "circle-and-line", [x1, x2] = [1.0, 0.5], minimize = x1, zero = [x1.powi(2) + x2.powi(2) - 1.0, x1 + x2 - 3.0] =>
            infeasible(&[0, 1], &[]);
        // The bounds of x3 contradict nothing.
        "row-and-bounds", [x1, x2, x3] = [1.0; 3], minimize = x1.powi(2) + (x2 - 2.0).powi(2) + x3.powi(2),
            at_most_zero = [x1 + x2 + 1.0, x1 - x3] =>
            lower([0.0; 3]) infeasible(&[0], &[0, 1]);
        "two-disks", [x1, x2] = [3.0, 3.0], minimize = x2,
            at_most_zero = [(x1 + 2.0).powi(2) + x2.powi(2) - 1.0, (x1 - 2.0).powi(2) + x2.powi(2) - 1.0] =>
            infeasible(&[0, 1], &[]);
        // c > 0 has two local minima, near x1 = ±1.
        "two-wells", [x1, x2] = [2.0, 1.0], minimize = x1 + x2.powi(2),
            zero = [(x1.powi(2) - 1.0).powi(2) + 0.1 * x1 + 0.5] =>
            infeasible(&[0], &[]);
        // Four parabolas. The first two contradict each other, and so do the last two.
        "four-parabolas", [x1, x2] = [3.0, 2.0], minimize = x1 + x2,
            at_most_zero = [x1.powi(2) - x2 + 1.0, x1.powi(2) + x2 + 1.0, x2.powi(2) - x1 + 1.0, x2.powi(2) + x1 + 1.0] =>
            infeasible(&[0, 1, 2, 3], &[]);
    }
}

fn degenerate() -> Vec<ConstrainedProblem> {
    problems! {
        // A cusp: at the solution the gradients of the row and of the bound of x2 are opposite.
        "hs013", [x1, x2] = [-2.0, -2.0], minimize = (x1 - 2.0).powi(2) + x2.powi(2),
            at_most_zero = [x2 - (1.0 - x1).powi(3)] =>
            lower([0.0, 0.0]) solution_without_multipliers([1.0, 0.0], 1.0);
        "square", [x1] = [1.0], minimize = x1, zero = [x1.powi(2)] =>
            solution_without_multipliers([0.0], 0.0);
        // The disks touch in one point.
        "touching-disks", [x1, x2] = [1.0, 2.0], minimize = x2,
            at_most_zero = [(x1 + 1.0).powi(2) + x2.powi(2) - 1.0, (x1 - 1.0).powi(2) + x2.powi(2) - 1.0] =>
            solution_without_multipliers([0.0, 0.0], 0.0);
        // The sum of the multipliers of the first two rows is −1.
        "repeated-row", [x1, x2, x3] = [3.0, -1.0, 2.0], minimize = x1.powi(2) + x2.powi(2) + x3.powi(2),
            zero = [x1 + x2 - 1.0, x1 + x2 - 1.0, x3 - 1.0] =>
            solution([0.5, 0.5, 1.0], 1.5, [-0.5, -0.5, -2.0]);
        // Four rows and two bounds meet in the solution.
        "crowded-vertex", [x1, x2] = [0.0, 0.0], minimize = (x1 - 2.0).powi(2) + (x2 - 2.0).powi(2),
            at_most_zero = [x1 + x2 - 2.0, 2.0 * x1 + x2 - 3.0, x1 + 2.0 * x2 - 3.0, x1.powi(2) + x2.powi(2) - 2.0] =>
            upper([1.0, 1.0]) solution([1.0, 1.0], 2.0, [2.0, 0.0, 0.0, 0.0]);
        // x1 or x2 is 0: the gradients of the active rows are dependent at every feasible point.
        "complementarity", [x1, x2] = [2.0, 1.0], minimize = (x1 - 1.0).powi(2) + (x2 - 2.0).powi(2),
            at_most_zero = [x1 * x2] =>
            lower([0.0, 0.0]) solution([0.0, 2.0], 1.0, [1.0]) solution([1.0, 0.0], 4.0, [4.0]);
        // Wächter and Biegler (2000): from this start, interior-point steps that stay within the bounds never become
        // feasible.
        "wachter-biegler", [x1, x2, x3] = [-2.0, 3.0, 1.0], minimize = x1,
            zero = [x1.powi(2) - x2 - 1.0, x1 - x3 - 0.5] =>
            lower([-INF, 0.0, 0.0]) solution_at_bounds([1.0, 0.0, 0.5], 1.0, [-0.5, 0.0], [0.0, -0.5, 0.0]);
    }
}
