//! Equalities only.

use super::{ConstrainedProblem, Expected, problem};

/// The problems 6, 7, 26 to 28, 39, 40, 42, 46 to 52, 56, 61 and 77 to 79 of Hock and Schittkowski.
#[must_use]
#[allow(clippy::too_many_lines, clippy::unreadable_literal, reason = "a table of formulas and numbers")]
pub fn equality_problems() -> Vec<ConstrainedProblem> {
    vec![
        problem!("hs006", [x1, x2] = [-1.2, 1.0], minimize = (1.0 - x1).powi(2), zero = [10.0 * (x2 - x1.powi(2))],),
        problem!(
            "hs007",
            [x1, x2] = [2.0, 2.0],
            minimize = (1.0 + x1.powi(2)).ln() - x2,
            zero = [(1.0 + x1.powi(2)).powi(2) + x2.powi(2) - 4.0],
        ),
        problem!(
            "hs026",
            [x1, x2, x3] = [-2.6, 2.0, 2.0],
            minimize = (x1 - x2).powi(2) + (x2 - x3).powi(4),
            zero = [(1.0 + x2.powi(2)) * x1 + x3.powi(4) - 3.0],
        ),
        problem!(
            "hs027",
            [x1, x2, x3] = [2.0; 3],
            minimize = 0.01 * (x1 - 1.0).powi(2) + (x2 - x1.powi(2)).powi(2),
            zero = [x1 + x3.powi(2) + 1.0],
        ),
        problem!(
            "hs028",
            [x1, x2, x3] = [-4.0, 1.0, 1.0],
            minimize = (x1 + x2).powi(2) + (x2 + x3).powi(2),
            zero = [x1 + 2.0 * x2 + 3.0 * x3 - 1.0],
        ),
        problem!(
            "hs039",
            [x1, x2, x3, x4] = [2.0; 4],
            minimize = -x1,
            zero = [x2 - x1.powi(3) - x3.powi(2), x1.powi(2) - x2 - x4.powi(2)],
        ),
        problem!(
            "hs040",
            [x1, x2, x3, x4] = [0.8; 4],
            minimize = -x1 * x2 * x3 * x4,
            zero = [x1.powi(3) + x2.powi(2) - 1.0, x1.powi(2) * x4 - x3, x4.powi(2) - x2],
        ),
        problem!(
            "hs042",
            [x1, x2, x3, x4] = [1.0; 4],
            minimize = (x1 - 1.0).powi(2) + (x2 - 2.0).powi(2) + (x3 - 3.0).powi(2) + (x4 - 4.0).powi(2),
            zero = [x1 - 2.0, x3.powi(2) + x4.powi(2) - 2.0],
        ),
        problem!(
            "hs046",
            [x1, x2, x3, x4, x5] = [0.5f64.sqrt(), 1.75, 0.5, 2.0, 2.0],
            minimize = (x1 - x2).powi(2) + (x3 - 1.0).powi(2) + (x4 - 1.0).powi(4) + (x5 - 1.0).powi(6),
            zero = [x1.powi(2) * x4 + (x4 - x5).sin() - 1.0, x2 + x3.powi(4) * x4.powi(2) - 2.0],
        ),
        problem!(
            "hs047",
            [x1, x2, x3, x4, x5] = [2.0, 2f64.sqrt(), -1.0, 2.0 - 2f64.sqrt(), 0.5],
            minimize = (x1 - x2).powi(2) + (x2 - x3).powi(3) + (x3 - x4).powi(4) + (x4 - x5).powi(4),
            zero = [x1 + x2.powi(2) + x3.powi(3) - 3.0, x2 - x3.powi(2) + x4 - 1.0, x1 * x5 - 1.0],
        ),
        problem!(
            "hs048",
            [x1, x2, x3, x4, x5] = [3.0, 5.0, -3.0, 2.0, -2.0],
            minimize = (x1 - 1.0).powi(2) + (x2 - x3).powi(2) + (x4 - x5).powi(2),
            zero = [x1 + x2 + x3 + x4 + x5 - 5.0, x3 - 2.0 * (x4 + x5) + 3.0],
        ),
        problem!(
            "hs049",
            [x1, x2, x3, x4, x5] = [10.0, 7.0, 2.0, -3.0, 0.8],
            minimize = (x1 - x2).powi(2) + (x3 - 1.0).powi(2) + (x4 - 1.0).powi(4) + (x5 - 1.0).powi(6),
            zero = [x1 + x2 + x3 + 4.0 * x4 - 7.0, x3 + 5.0 * x5 - 6.0],
        ),
        problem!(
            "hs050",
            [x1, x2, x3, x4, x5] = [35.0, -31.0, 11.0, 5.0, -5.0],
            minimize = (x1 - x2).powi(2) + (x2 - x3).powi(2) + (x3 - x4).powi(4) + (x4 - x5).powi(2),
            zero = [x1 + 2.0 * x2 + 3.0 * x3 - 6.0, x2 + 2.0 * x3 + 3.0 * x4 - 6.0, x3 + 2.0 * x4 + 3.0 * x5 - 6.0],
        ),
        problem!(
            "hs051",
            [x1, x2, x3, x4, x5] = [2.5, 0.5, 2.0, -1.0, 0.5],
            minimize = (x1 - x2).powi(2) + (x2 + x3 - 2.0).powi(2) + (x4 - 1.0).powi(2) + (x5 - 1.0).powi(2),
            zero = [x1 + 3.0 * x2 - 4.0, x3 + x4 - 2.0 * x5, x2 - x5],
        ),
        problem!(
            "hs052",
            [x1, x2, x3, x4, x5] = [2.0; 5],
            minimize = (4.0 * x1 - x2).powi(2) + (x2 + x3 - 2.0).powi(2) + (x4 - 1.0).powi(2) + (x5 - 1.0).powi(2),
            zero = [x1 + 3.0 * x2, x3 + x4 - 2.0 * x5, x2 - x5],
        ),
        // The start satisfies all rows.
        problem!(
            "hs056",
            [x1, x2, x3, x4, x5, x6, x7] = {
                let (a, b) = ((1.0 / 4.2f64).sqrt().asin(), (5.0 / 7.2f64).sqrt().asin());
                [1.0, 1.0, 1.0, a, a, a, b]
            },
            minimize = -x1 * x2 * x3,
            zero = [
                x1 - 4.2 * x4.sin().powi(2),
                x2 - 4.2 * x5.sin().powi(2),
                x3 - 4.2 * x6.sin().powi(2),
                x1 + 2.0 * x2 + 2.0 * x3 - 7.2 * x7.sin().powi(2),
            ],
        ),
        problem!(
            "hs061",
            [x1, x2, x3] = [0.0; 3],
            minimize = 4.0 * x1.powi(2) + 2.0 * x2.powi(2) + 2.0 * x3.powi(2) - 33.0 * x1 + 16.0 * x2 - 24.0 * x3,
            zero = [3.0 * x1 - 2.0 * x2.powi(2) - 7.0, 4.0 * x1 - x3.powi(2) - 11.0],
        ),
        problem!(
            "hs077",
            [x1, x2, x3, x4, x5] = [2.0; 5],
            minimize =
                (x1 - 1.0).powi(2) + (x1 - x2).powi(2) + (x3 - 1.0).powi(2) + (x4 - 1.0).powi(4) + (x5 - 1.0).powi(6),
            zero = [
                x1.powi(2) * x4 + (x4 - x5).sin() - 2.0 * 2f64.sqrt(),
                x2 + x3.powi(4) * x4.powi(2) - 8.0 - 2f64.sqrt(),
            ],
        ),
        problem!(
            "hs078",
            [x1, x2, x3, x4, x5] = [-2.0, 1.5, 2.0, -1.0, -1.0],
            minimize = x1 * x2 * x3 * x4 * x5,
            zero = [
                x1.powi(2) + x2.powi(2) + x3.powi(2) + x4.powi(2) + x5.powi(2) - 10.0,
                x2 * x3 - 5.0 * x4 * x5,
                x1.powi(3) + x2.powi(3) + 1.0,
            ],
        ),
        problem!(
            "hs079",
            [x1, x2, x3, x4, x5] = [2.0; 5],
            minimize =
                (x1 - 1.0).powi(2) + (x1 - x2).powi(2) + (x2 - x3).powi(2) + (x3 - x4).powi(4) + (x4 - x5).powi(4),
            zero = [
                x1 + x2.powi(2) + x3.powi(3) - 2.0 - 3.0 * 2f64.sqrt(),
                x2 - x3.powi(2) + x4 + 2.0 - 2.0 * 2f64.sqrt(),
                x1 * x5 - 2.0,
            ],
        ),
    ]
}
