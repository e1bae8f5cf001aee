//! Problems with any number n of variables.

#![allow(clippy::unreadable_literal, reason = "a table of numbers")]

use super::{Residuals, TapeNumber, UnconstrainedProblem};

type Numbers<'t> = Vec<TapeNumber<'t>>;

/// The problems 20 to 31 and 35 of the paper, and the chained function of Rosenbrock. The name ends with n.
#[must_use]
pub fn sized_problems() -> Vec<UnconstrainedProblem> {
    let mut problems = Vec::new();
    let mut add = |name: &str, start: fn(usize, usize) -> f64, residuals: Residuals, sizes: &[(usize, &[f64])]| {
        problems.extend(sizes.iter().map(|&(n, minima)| {
            let start = (1..=n).map(|j| start(j, n)).collect();
            UnconstrainedProblem::new(format!("{name}-{n}"), start, minima, residuals)
        }));
    };
    let zero: &[f64] = &[0.0];
    add(
        "watson",
        |_, _| 0.0,
        watson,
        &[(6, &[2.287670053552e-3]), (9, &[1.399760138101e-6]), (12, &[4.722381107519e-10])],
    );
    let pairs = |j: usize, _| if j % 2 == 1 { -1.2 } else { 1.0 };
    add("extended-rosenbrock", pairs, extended_rosenbrock, &[(10, zero), (100, zero)]);
    // The second minimum is near (−1, 1, …, 1).
    add(
        "chained-rosenbrock",
        pairs,
        chained_rosenbrock,
        &[(10, &[0.0, 3.986579112347]), (100, &[0.0, 3.986623854301])],
    );
    let fours = |j: usize, _| [3.0, -1.0, 0.0, 1.0][(j - 1) % 4];
    add("extended-powell-singular", fours, extended_powell_singular, &[(40, zero), (100, zero)]);
    add("penalty-1", |j, _| j as f64, penalty_1, &[(4, &[2.2499775009e-5]), (10, &[7.08765146709e-5])]);
    add("penalty-2", |_, _| 0.5, penalty_2, &[(4, &[9.376293007355e-6]), (10, &[2.936605374567e-4])]);
    add("variably-dimensioned", |j, n| 1.0 - j as f64 / n as f64, variably_dimensioned, &[(10, zero), (100, zero)]);
    add("trigonometric", |_, n| 1.0 / n as f64, trigonometric, &[(10, &[0.0, 2.795056121881e-5])]);
    add("brown-almost-linear", |_, _| 0.5, brown_almost_linear, &[(10, &[0.0, 1.0])]);
    let parabola = |j: usize, n: usize| {
        let t = j as f64 / (n + 1) as f64;
        t * (t - 1.0)
    };
    add("discrete-boundary-value", parabola, discrete_boundary_value, &[(10, zero), (100, zero)]);
    add("discrete-integral-equation", parabola, discrete_integral_equation, &[(10, zero), (100, zero)]);
    add("broyden-tridiagonal", |_, _| -1.0, broyden_tridiagonal, &[(10, zero), (100, zero)]);
    add("broyden-banded", |_, _| -1.0, broyden_banded, &[(10, zero), (100, zero)]);
    let inside = |j: usize, n: usize| j as f64 / (n + 1) as f64;
    add(
        "chebyquad",
        inside,
        chebyquad,
        &[(7, zero), (8, &[3.516873725678e-3]), (10, &[4.772713696375e-3, 6.503954800882e-3])],
    );
    problems
}

fn sum<'t>(numbers: impl IntoIterator<Item = TapeNumber<'t>>) -> TapeNumber<'t> {
    numbers.into_iter().reduce(|a, b| a + b).expect("a problem has variables")
}

/// Σ j·xⱼ from j = 1, or Σ weight(j)·xⱼ.
fn weighted<'t>(x: &[TapeNumber<'t>], weight: impl Fn(f64) -> f64) -> TapeNumber<'t> {
    sum(x.iter().enumerate().map(|(j, &x)| weight((j + 1) as f64) * x))
}

fn watson<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    let fit = |i: usize| {
        let t = i as f64 / 29.0;
        let series = weighted(x, |j| t.powf(j - 1.0));
        let slope = weighted(&x[1..], |j| j * t.powf(j - 1.0));
        slope - series * series - 1.0
    };
    (1..=29).map(fit).chain([x[0], x[1] - x[0] * x[0] - 1.0]).collect()
}

fn extended_rosenbrock<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    x.chunks(2).flat_map(|x| [10.0 * (x[1] - x[0] * x[0]), 1.0 - x[0]]).collect()
}

fn chained_rosenbrock<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    x.windows(2).flat_map(|x| [10.0 * (x[1] - x[0] * x[0]), 1.0 - x[0]]).collect()
}

fn extended_powell_singular<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    let part = |x: &[TapeNumber<'t>]| {
        [
            x[0] + 10.0 * x[1],
            5_f64.sqrt() * (x[2] - x[3]),
            (x[1] - 2.0 * x[2]).powi(2),
            10_f64.sqrt() * (x[0] - x[3]).powi(2),
        ]
    };
    x.chunks(4).flat_map(part).collect()
}

/// The weight a = 1e-5 of the penalty functions.
const PENALTY: f64 = 1e-5;

fn penalty_1<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    let near_one = x.iter().map(|&x| PENALTY.sqrt() * (x - 1.0));
    near_one.chain([sum(x.iter().map(|&x| x * x)) - 0.25]).collect()
}

fn penalty_2<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    let n = x.len();
    let e = |i: usize| (i as f64 / 10.0).exp();
    let grown: Numbers = x.iter().map(|&x| (x / 10.0).exp()).collect();
    let neighbors = (1..n).map(|i| PENALTY.sqrt() * (grown[i] + grown[i - 1] - (e(i + 1) + e(i))));
    let alone = (1..n).map(|i| PENALTY.sqrt() * (grown[i] - (-0.1_f64).exp()));
    let squares: Numbers = x.iter().map(|&x| x * x).collect();
    let last = weighted(&squares, |j| n as f64 + 1.0 - j) - 1.0;
    [x[0] - 0.2].into_iter().chain(neighbors).chain(alone).chain([last]).collect()
}

fn variably_dimensioned<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    let off: Numbers = x.iter().map(|&x| x - 1.0).collect();
    let total = weighted(&off, |j| j);
    off.into_iter().chain([total, total * total]).collect()
}

fn trigonometric<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    let n = x.len() as f64;
    let all = n - sum(x.iter().map(|x| x.cos()));
    x.iter().enumerate().map(|(i, x)| all + (i + 1) as f64 * (1.0 - x.cos()) - x.sin()).collect()
}

fn brown_almost_linear<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    let n = x.len();
    let all = sum(x.iter().copied()) - (n + 1) as f64;
    let product = x.iter().copied().reduce(|a, b| a * b).expect("a problem has variables");
    x[..n - 1].iter().map(|&x| x + all).chain([product - 1.0]).collect()
}

/// The grid of a differential equation: h and tᵢ, from i = 0.
fn grid(n: usize) -> (f64, impl Fn(usize) -> f64) {
    let h = 1.0 / (n + 1) as f64;
    (h, move |i| (i + 1) as f64 * h)
}

fn discrete_boundary_value<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    let (n, (h, t)) = (x.len(), grid(x.len()));
    let row = |i: usize| {
        let mut r = 2.0 * x[i] + 0.5 * h * h * (x[i] + (t(i) + 1.0)).powi(3);
        if i > 0 {
            r = r - x[i - 1];
        }
        if i + 1 < n { r - x[i + 1] } else { r }
    };
    (0..n).map(row).collect()
}

fn discrete_integral_equation<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    let (n, (h, t)) = (x.len(), grid(x.len()));
    let cubes: Numbers = (0..n).map(|j| (x[j] + (t(j) + 1.0)).powi(3)).collect();
    let row = |i: usize| {
        let kernel = |j: usize| if j <= i { (1.0 - t(i)) * t(j) } else { t(i) * (1.0 - t(j)) };
        x[i] + 0.5 * h * sum((0..n).map(|j| kernel(j) * cubes[j]))
    };
    (0..n).map(row).collect()
}

fn broyden_tridiagonal<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    let row = |i: usize| {
        let mut r = (3.0 - 2.0 * x[i]) * x[i] + 1.0;
        if i > 0 {
            r = r - x[i - 1];
        }
        if i + 1 < x.len() { r - 2.0 * x[i + 1] } else { r }
    };
    (0..x.len()).map(row).collect()
}

fn broyden_banded<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    let row = |i: usize| {
        let own = x[i] * (2.0 + 5.0 * x[i].powi(2)) + 1.0;
        let band = (i.saturating_sub(5)..(i + 2).min(x.len())).filter(|&j| j != i);
        band.fold(own, |r, j| r - x[j] * (1.0 + x[j]))
    };
    (0..x.len()).map(row).collect()
}

/// rᵢ = (1/n) Σ Tᵢ(xⱼ) − ∫ Tᵢ with the shifted Chebyshev polynomials.
fn chebyquad<'t>(x: &[TapeNumber<'t>]) -> Numbers<'t> {
    let n = x.len();
    let mut residuals = Vec::new();
    let argument: Numbers = x.iter().map(|&x| 2.0 * x - 1.0).collect();
    let (mut before, mut now): (Option<Numbers>, Numbers) = (None, argument.clone());
    for i in 1..=n {
        let mean = sum(now.iter().copied()) / n as f64;
        let integral = if i % 2 == 0 { -1.0 / ((i * i - 1) as f64) } else { 0.0 };
        residuals.push(mean - integral);
        // Tᵢ₊₁ = 2yTᵢ − Tᵢ₋₁ with T₀ = 1
        let next = (0..n).map(|j| {
            let twice = 2.0 * argument[j] * now[j];
            before.as_ref().map_or(twice - 1.0, |before| twice - before[j])
        });
        let next = next.collect();
        before = Some(std::mem::replace(&mut now, next));
    }
    residuals
}
