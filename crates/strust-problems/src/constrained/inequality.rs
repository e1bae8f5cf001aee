//! Inequalities and bounds, some with equalities.

use super::{ConstrainedProblem, Expected, problem};

const INF: f64 = f64::INFINITY;

/// 46 problems of Hock and Schittkowski with bounds, linear or nonlinear inequalities. Their g(x) ≥ 0 is −g(x) ≤ 0 here.
#[must_use]
pub fn inequality_problems() -> Vec<ConstrainedProblem> {
    let mut problems = two_variables();
    problems.extend(three_variables());
    problems.extend(more_variables());
    problems
}

#[allow(clippy::too_many_lines, clippy::unreadable_literal, reason = "a table of formulas and numbers")]
fn two_variables() -> Vec<ConstrainedProblem> {
    vec![
        problem!("hs001", [x1, x2] = [-2.0, 1.0], minimize = 100.0 * (x2 - x1.powi(2)).powi(2) + (1.0 - x1).powi(2))
            .lower([-INF, -1.5]),
        problem!("hs002", [x1, x2] = [-2.0, 1.0], minimize = 100.0 * (x2 - x1.powi(2)).powi(2) + (1.0 - x1).powi(2))
            .lower([-INF, 1.5]),
        problem!("hs003", [x1, x2] = [10.0, 1.0], minimize = x2 + 1e-5 * (x2 - x1).powi(2)).lower([-INF, 0.0]),
        problem!("hs004", [x1, x2] = [1.125, 0.125], minimize = (x1 + 1.0).powi(3) / 3.0 + x2).lower([1.0, 0.0]),
        problem!(
            "hs005",
            [x1, x2] = [0.0, 0.0],
            minimize = (x1 + x2).sin() + (x1 - x2).powi(2) - 1.5 * x1 + 2.5 * x2 + 1.0,
        )
        .lower([-1.5, -3.0])
        .upper([4.0, 3.0]),
        problem!(
            "hs010",
            [x1, x2] = [-10.0, 10.0],
            minimize = x1 - x2,
            at_most_zero = [3.0 * x1.powi(2) - 2.0 * x1 * x2 + x2.powi(2) - 1.0],
        ),
        problem!(
            "hs011",
            [x1, x2] = [4.9, 0.1],
            minimize = (x1 - 5.0).powi(2) + x2.powi(2) - 25.0,
            at_most_zero = [x1.powi(2) - x2],
        ),
        problem!(
            "hs012",
            [x1, x2] = [0.0, 0.0],
            minimize = 0.5 * x1.powi(2) + x2.powi(2) - x1 * x2 - 7.0 * x1 - 7.0 * x2,
            at_most_zero = [4.0 * x1.powi(2) + x2.powi(2) - 25.0],
        ),
        problem!(
            "hs014",
            [x1, x2] = [2.0, 2.0],
            minimize = (x1 - 2.0).powi(2) + (x2 - 1.0).powi(2),
            zero = [x1 - 2.0 * x2 + 1.0],
            at_most_zero = [0.25 * x1.powi(2) + x2.powi(2) - 1.0],
        ),
        problem!(
            "hs015",
            [x1, x2] = [-2.0, 1.0],
            minimize = 100.0 * (x2 - x1.powi(2)).powi(2) + (1.0 - x1).powi(2),
            at_most_zero = [1.0 - x1 * x2, -x1 - x2.powi(2)],
        )
        .upper([0.5, INF]),
        problem!(
            "hs016",
            [x1, x2] = [-2.0, 1.0],
            minimize = 100.0 * (x2 - x1.powi(2)).powi(2) + (1.0 - x1).powi(2),
            at_most_zero = [-x1 - x2.powi(2), -x1.powi(2) - x2],
        )
        .lower([-0.5, -INF])
        .upper([0.5, 1.0]),
        problem!(
            "hs017",
            [x1, x2] = [-2.0, 1.0],
            minimize = 100.0 * (x2 - x1.powi(2)).powi(2) + (1.0 - x1).powi(2),
            at_most_zero = [x1 - x2.powi(2), x2 - x1.powi(2)],
        )
        .lower([-0.5, -INF])
        .upper([0.5, 1.0]),
        problem!(
            "hs018",
            [x1, x2] = [2.0, 2.0],
            minimize = 0.01 * x1.powi(2) + x2.powi(2),
            at_most_zero = [25.0 - x1 * x2, 25.0 - x1.powi(2) - x2.powi(2)],
        )
        .lower([2.0, 0.0])
        .upper([50.0, 50.0]),
        problem!(
            "hs019",
            [x1, x2] = [20.1, 5.84],
            minimize = (x1 - 10.0).powi(3) + (x2 - 20.0).powi(3),
            at_most_zero =
                [100.0 - (x1 - 5.0).powi(2) - (x2 - 5.0).powi(2), (x1 - 6.0).powi(2) + (x2 - 5.0).powi(2) - 82.81,],
        )
        .lower([13.0, 0.0])
        .upper([100.0, 100.0]),
        problem!(
            "hs020",
            [x1, x2] = [-2.0, 1.0],
            minimize = 100.0 * (x2 - x1.powi(2)).powi(2) + (1.0 - x1).powi(2),
            at_most_zero = [-x1 - x2.powi(2), -x1.powi(2) - x2, 1.0 - x1.powi(2) - x2.powi(2)],
        )
        .lower([-0.5, -INF])
        .upper([0.5, INF]),
        problem!(
            "hs021",
            [x1, x2] = [-1.0, -1.0],
            minimize = 0.01 * x1.powi(2) + x2.powi(2) - 100.0,
            at_most_zero = [10.0 - 10.0 * x1 + x2],
        )
        .lower([2.0, -50.0])
        .upper([50.0, 50.0]),
        problem!(
            "hs022",
            [x1, x2] = [2.0, 2.0],
            minimize = (x1 - 2.0).powi(2) + (x2 - 1.0).powi(2),
            at_most_zero = [x1 + x2 - 2.0, x1.powi(2) - x2],
        ),
        problem!(
            "hs023",
            [x1, x2] = [3.0, 1.0],
            minimize = x1.powi(2) + x2.powi(2),
            at_most_zero = [
                1.0 - x1 - x2,
                1.0 - x1.powi(2) - x2.powi(2),
                9.0 - 9.0 * x1.powi(2) - x2.powi(2),
                x2 - x1.powi(2),
                x1 - x2.powi(2),
            ],
        )
        .lower([-50.0, -50.0])
        .upper([50.0, 50.0]),
        problem!(
            "hs024",
            [x1, x2] = [1.0, 0.5],
            minimize = ((x1 - 3.0).powi(2) - 9.0) * x2.powi(3) / (27.0 * 3f64.sqrt()),
            at_most_zero = [x2 - x1 / 3f64.sqrt(), -x1 - 3f64.sqrt() * x2, x1 + 3f64.sqrt() * x2 - 6.0],
        )
        .lower([0.0, 0.0]),
    ]
}

#[allow(clippy::too_many_lines, clippy::unreadable_literal, reason = "a table of formulas and numbers")]
fn three_variables() -> Vec<ConstrainedProblem> {
    vec![
        problem!(
            "hs029",
            [x1, x2, x3] = [1.0; 3],
            minimize = -x1 * x2 * x3,
            at_most_zero = [x1.powi(2) + 2.0 * x2.powi(2) + 4.0 * x3.powi(2) - 48.0],
        ),
        problem!(
            "hs030",
            [x1, x2, x3] = [1.0; 3],
            minimize = x1.powi(2) + x2.powi(2) + x3.powi(2),
            at_most_zero = [1.0 - x1.powi(2) - x2.powi(2)],
        )
        .lower([1.0, -10.0, -10.0])
        .upper([10.0; 3]),
        problem!(
            "hs031",
            [x1, x2, x3] = [1.0; 3],
            minimize = 9.0 * x1.powi(2) + x2.powi(2) + 9.0 * x3.powi(2),
            at_most_zero = [1.0 - x1 * x2],
        )
        .lower([-10.0, 1.0, -10.0])
        .upper([10.0, 10.0, 1.0]),
        problem!(
            "hs032",
            [x1, x2, x3] = [0.1, 0.7, 0.2],
            minimize = (x1 + 3.0 * x2 + x3).powi(2) + 4.0 * (x1 - x2).powi(2),
            zero = [x1 + x2 + x3 - 1.0],
            at_most_zero = [x1.powi(3) - 6.0 * x2 - 4.0 * x3 + 3.0],
        )
        .lower([0.0; 3]),
        problem!(
            "hs033",
            [x1, x2, x3] = [0.0, 0.0, 3.0],
            minimize = (x1 - 1.0) * (x1 - 2.0) * (x1 - 3.0) + x3,
            at_most_zero = [x1.powi(2) + x2.powi(2) - x3.powi(2), 4.0 - x1.powi(2) - x2.powi(2) - x3.powi(2)],
        )
        .lower([0.0; 3])
        .upper([INF, INF, 5.0]),
        problem!(
            "hs034",
            [x1, x2, x3] = [0.0, 1.05, 2.9],
            minimize = -x1,
            at_most_zero = [x1.exp() - x2, x2.exp() - x3],
        )
        .lower([0.0; 3])
        .upper([100.0, 100.0, 10.0]),
        problem!(
            "hs035",
            [x1, x2, x3] = [0.5; 3],
            minimize = 9.0 - 8.0 * x1 - 6.0 * x2 - 4.0 * x3
                + 2.0 * x1.powi(2)
                + 2.0 * x2.powi(2)
                + x3.powi(2)
                + 2.0 * x1 * x2
                + 2.0 * x1 * x3,
            at_most_zero = [x1 + x2 + 2.0 * x3 - 3.0],
        )
        .lower([0.0; 3]),
        problem!(
            "hs036",
            [x1, x2, x3] = [10.0; 3],
            minimize = -x1 * x2 * x3,
            at_most_zero = [x1 + 2.0 * x2 + 2.0 * x3 - 72.0],
        )
        .lower([0.0; 3])
        .upper([20.0, 11.0, 42.0]),
        problem!(
            "hs037",
            [x1, x2, x3] = [10.0; 3],
            minimize = -x1 * x2 * x3,
            at_most_zero = [x1 + 2.0 * x2 + 2.0 * x3 - 72.0, -x1 - 2.0 * x2 - 2.0 * x3],
        )
        .lower([0.0; 3])
        .upper([42.0; 3]),
        problem!(
            "hs060",
            [x1, x2, x3] = [2.0; 3],
            minimize = (x1 - 1.0).powi(2) + (x1 - x2).powi(2) + (x2 - x3).powi(4),
            zero = [x1 * (1.0 + x2.powi(2)) + x3.powi(4) - 4.0 - 3.0 * 2f64.sqrt()],
        )
        .lower([-10.0; 3])
        .upper([10.0; 3]),
        problem!(
            "hs063",
            [x1, x2, x3] = [2.0; 3],
            minimize = 1000.0 - x1.powi(2) - 2.0 * x2.powi(2) - x3.powi(2) - x1 * x2 - x1 * x3,
            zero = [8.0 * x1 + 14.0 * x2 + 7.0 * x3 - 56.0, x1.powi(2) + x2.powi(2) + x3.powi(2) - 25.0],
        )
        .lower([0.0; 3]),
        problem!(
            "hs064",
            [x1, x2, x3] = [1.0; 3],
            minimize = 5.0 * x1 + 50000.0 / x1 + 20.0 * x2 + 72000.0 / x2 + 10.0 * x3 + 144000.0 / x3,
            at_most_zero = [4.0 / x1 + 32.0 / x2 + 120.0 / x3 - 1.0],
        )
        .lower([1e-5; 3]),
        problem!(
            "hs065",
            [x1, x2, x3] = [-5.0, 5.0, 0.0],
            minimize = (x1 - x2).powi(2) + (x1 + x2 - 10.0).powi(2) / 9.0 + (x3 - 5.0).powi(2),
            at_most_zero = [x1.powi(2) + x2.powi(2) + x3.powi(2) - 48.0],
        )
        .lower([-4.5, -4.5, -5.0])
        .upper([4.5, 4.5, 5.0]),
        problem!(
            "hs066",
            [x1, x2, x3] = [0.0, 1.05, 2.9],
            minimize = 0.2 * x3 - 0.8 * x1,
            at_most_zero = [x1.exp() - x2, x2.exp() - x3],
        )
        .lower([0.0; 3])
        .upper([100.0, 100.0, 10.0]),
    ]
}

#[allow(clippy::too_many_lines, clippy::unreadable_literal, reason = "a table of formulas and numbers")]
fn more_variables() -> Vec<ConstrainedProblem> {
    vec![
        problem!(
            "hs038",
            [x1, x2, x3, x4] = [-3.0, -1.0, -3.0, -1.0],
            minimize = 100.0 * (x2 - x1.powi(2)).powi(2)
                + (1.0 - x1).powi(2)
                + 90.0 * (x4 - x3.powi(2)).powi(2)
                + (1.0 - x3).powi(2)
                + 10.1 * ((x2 - 1.0).powi(2) + (x4 - 1.0).powi(2))
                + 19.8 * (x2 - 1.0) * (x4 - 1.0),
        )
        .lower([-10.0; 4])
        .upper([10.0; 4]),
        problem!(
            "hs041",
            [x1, x2, x3, x4] = [2.0; 4],
            minimize = 2.0 - x1 * x2 * x3,
            zero = [x1 + 2.0 * x2 + 2.0 * x3 - x4],
        )
        .lower([0.0; 4])
        .upper([1.0, 1.0, 1.0, 2.0]),
        problem!(
            "hs043",
            [x1, x2, x3, x4] = [0.0; 4],
            minimize =
                x1.powi(2) + x2.powi(2) + 2.0 * x3.powi(2) + x4.powi(2) - 5.0 * x1 - 5.0 * x2 - 21.0 * x3 + 7.0 * x4,
            at_most_zero = [
                x1.powi(2) + x2.powi(2) + x3.powi(2) + x4.powi(2) + x1 - x2 + x3 - x4 - 8.0,
                x1.powi(2) + 2.0 * x2.powi(2) + x3.powi(2) + 2.0 * x4.powi(2) - x1 - x4 - 10.0,
                2.0 * x1.powi(2) + x2.powi(2) + x3.powi(2) + 2.0 * x1 - x2 - x4 - 5.0,
            ],
        ),
        problem!(
            "hs044",
            [x1, x2, x3, x4] = [0.0; 4],
            minimize = x1 - x2 - x3 - x1 * x3 + x1 * x4 + x2 * x3 - x2 * x4,
            at_most_zero = [
                x1 + 2.0 * x2 - 8.0,
                4.0 * x1 + x2 - 12.0,
                3.0 * x1 + 4.0 * x2 - 12.0,
                2.0 * x3 + x4 - 8.0,
                x3 + 2.0 * x4 - 8.0,
                x3 + x4 - 5.0,
            ],
        )
        .lower([0.0; 4]),
        problem!("hs045", [x1, x2, x3, x4, x5] = [2.0; 5], minimize = 2.0 - x1 * x2 * x3 * x4 * x5 / 120.0)
            .lower([0.0; 5])
            .upper([1.0, 2.0, 3.0, 4.0, 5.0]),
        problem!(
            "hs053",
            [x1, x2, x3, x4, x5] = [2.0; 5],
            minimize = (x1 - x2).powi(2) + (x2 + x3 - 2.0).powi(2) + (x4 - 1.0).powi(2) + (x5 - 1.0).powi(2),
            zero = [x1 + 3.0 * x2, x3 + x4 - 2.0 * x5, x2 - x5],
        )
        .lower([-10.0; 5])
        .upper([10.0; 5]),
        problem!(
            "hs071",
            [x1, x2, x3, x4] = [1.0, 5.0, 5.0, 1.0],
            minimize = x1 * x4 * (x1 + x2 + x3) + x3,
            zero = [x1.powi(2) + x2.powi(2) + x3.powi(2) + x4.powi(2) - 40.0],
            at_most_zero = [25.0 - x1 * x2 * x3 * x4],
        )
        .lower([1.0; 4])
        .upper([5.0; 4]),
        problem!(
            "hs072",
            [x1, x2, x3, x4] = [1.0; 4],
            minimize = 1.0 + x1 + x2 + x3 + x4,
            at_most_zero = [
                4.0 / x1 + 2.25 / x2 + 1.0 / x3 + 0.25 / x4 - 0.0401,
                0.16 / x1 + 0.36 / x2 + 0.64 / x3 + 0.64 / x4 - 0.010085,
            ],
        )
        .lower([0.001; 4])
        .upper([4e5, 3e5, 2e5, 1e5]),
        problem!(
            "hs076",
            [x1, x2, x3, x4] = [0.5; 4],
            minimize =
                x1.powi(2) + 0.5 * x2.powi(2) + x3.powi(2) + 0.5 * x4.powi(2) - x1 * x3 + x3 * x4 - x1 - 3.0 * x2 + x3
                    - x4,
            at_most_zero = [x1 + 2.0 * x2 + x3 + x4 - 5.0, 3.0 * x1 + x2 + 2.0 * x3 - x4 - 4.0, 1.5 - x2 - 4.0 * x3,],
        )
        .lower([0.0; 4]),
        problem!(
            "hs080",
            [x1, x2, x3, x4, x5] = [-2.0, 2.0, 2.0, -1.0, -1.0],
            minimize = (x1 * x2 * x3 * x4 * x5).exp(),
            zero = [
                x1.powi(2) + x2.powi(2) + x3.powi(2) + x4.powi(2) + x5.powi(2) - 10.0,
                x2 * x3 - 5.0 * x4 * x5,
                x1.powi(3) + x2.powi(3) + 1.0,
            ],
        )
        .lower([-2.3, -2.3, -3.2, -3.2, -3.2])
        .upper([2.3, 2.3, 3.2, 3.2, 3.2]),
        problem!(
            "hs081",
            [x1, x2, x3, x4, x5] = [-2.0, 2.0, 2.0, -1.0, -1.0],
            minimize = (x1 * x2 * x3 * x4 * x5).exp() - 0.5 * (x1.powi(3) + x2.powi(3) + 1.0).powi(2),
            zero = [
                x1.powi(2) + x2.powi(2) + x3.powi(2) + x4.powi(2) + x5.powi(2) - 10.0,
                x2 * x3 - 5.0 * x4 * x5,
                x1.powi(3) + x2.powi(3) + 1.0,
            ],
        )
        .lower([-2.3, -2.3, -3.2, -3.2, -3.2])
        .upper([2.3, 2.3, 3.2, 3.2, 3.2]),
        problem!(
            "hs100",
            [x1, x2, x3, x4, x5, x6, x7] = [1.0, 2.0, 0.0, 4.0, 0.0, 1.0, 1.0],
            minimize = (x1 - 10.0).powi(2)
                + 5.0 * (x2 - 12.0).powi(2)
                + x3.powi(4)
                + 3.0 * (x4 - 11.0).powi(2)
                + 10.0 * x5.powi(6)
                + 7.0 * x6.powi(2)
                + x7.powi(4)
                - 4.0 * x6 * x7
                - 10.0 * x6
                - 8.0 * x7,
            at_most_zero = [
                2.0 * x1.powi(2) + 3.0 * x2.powi(4) + x3 + 4.0 * x4.powi(2) + 5.0 * x5 - 127.0,
                7.0 * x1 + 3.0 * x2 + 10.0 * x3.powi(2) + x4 - x5 - 282.0,
                23.0 * x1 + x2.powi(2) + 6.0 * x6.powi(2) - 8.0 * x7 - 196.0,
                4.0 * x1.powi(2) + x2.powi(2) - 3.0 * x1 * x2 + 2.0 * x3.powi(2) + 5.0 * x6 - 11.0 * x7,
            ],
        ),
        problem!(
            "hs113",
            [x1, x2, x3, x4, x5, x6, x7, x8, x9, x10] = [2.0, 3.0, 5.0, 5.0, 1.0, 2.0, 7.0, 3.0, 6.0, 10.0],
            minimize = x1.powi(2) + x2.powi(2) + x1 * x2 - 14.0 * x1 - 16.0 * x2
                + (x3 - 10.0).powi(2)
                + 4.0 * (x4 - 5.0).powi(2)
                + (x5 - 3.0).powi(2)
                + 2.0 * (x6 - 1.0).powi(2)
                + 5.0 * x7.powi(2)
                + 7.0 * (x8 - 11.0).powi(2)
                + 2.0 * (x9 - 10.0).powi(2)
                + (x10 - 7.0).powi(2)
                + 45.0,
            at_most_zero = [
                4.0 * x1 + 5.0 * x2 - 3.0 * x7 + 9.0 * x8 - 105.0,
                10.0 * x1 - 8.0 * x2 - 17.0 * x7 + 2.0 * x8,
                -8.0 * x1 + 2.0 * x2 + 5.0 * x9 - 2.0 * x10 - 12.0,
                3.0 * (x1 - 2.0).powi(2) + 4.0 * (x2 - 3.0).powi(2) + 2.0 * x3.powi(2) - 7.0 * x4 - 120.0,
                5.0 * x1.powi(2) + 8.0 * x2 + (x3 - 6.0).powi(2) - 2.0 * x4 - 40.0,
                0.5 * (x1 - 8.0).powi(2) + 2.0 * (x2 - 4.0).powi(2) + 3.0 * x5.powi(2) - x6 - 30.0,
                x1.powi(2) + 2.0 * (x2 - 2.0).powi(2) - 2.0 * x1 * x2 + 14.0 * x5 - 6.0 * x6,
                -3.0 * x1 + 6.0 * x2 + 12.0 * (x9 - 8.0).powi(2) - 7.0 * x10,
            ],
        ),
    ]
}
