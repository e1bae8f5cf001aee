//! Problems with a fixed number of variables.

#![allow(clippy::too_many_lines, clippy::unreadable_literal, reason = "a table of formulas and numbers")]

use super::UnconstrainedProblem;
use std::f64::consts::TAU;

/// Problems as in the literature: the name, the variables and their start, the minima, best first, and the residuals.
macro_rules! problems {
    ($($name:literal, [$($x:ident),+] = $start:expr, minima = $minima:expr, $residuals:expr;)+) => {
        vec![$(UnconstrainedProblem::new($name, $start.to_vec(), &$minima, |x| {
            let &[$($x),+] = x else { unreachable!("the number of variables was checked") };
            $residuals.to_vec()
        })),+]
    };
}

/// f(t) for the i-th of `count` measurements, from i = 1.
fn measured<T>(count: usize, residual: impl Fn(f64) -> T) -> Vec<T> {
    (1..=count).map(|i| residual(i as f64)).collect()
}

/// The same with data y.
fn fitted<T>(data: &[f64], residual: impl Fn(f64, f64) -> T) -> Vec<T> {
    data.iter().enumerate().map(|(i, &y)| residual((i + 1) as f64, y)).collect()
}

const BARD: [f64; 15] = [0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39];
const GAUSSIAN: [f64; 15] = [
    0.0009, 0.0044, 0.0175, 0.0540, 0.1295, 0.2420, 0.3521, 0.3989, 0.3521, 0.2420, 0.1295, 0.0540, 0.0175, 0.0044,
    0.0009,
];
const MEYER: [f64; 16] = [
    34780.0, 28610.0, 23650.0, 19630.0, 16370.0, 13720.0, 11540.0, 9744.0, 8261.0, 7030.0, 6005.0, 5147.0, 4427.0,
    3820.0, 3307.0, 2872.0,
];
const KOWALIK: [[f64; 2]; 11] = [
    [4.0, 0.1957],
    [2.0, 0.1947],
    [1.0, 0.1735],
    [0.5, 0.1600],
    [0.25, 0.0844],
    [0.167, 0.0627],
    [0.125, 0.0456],
    [0.1, 0.0342],
    [0.0833, 0.0323],
    [0.0714, 0.0235],
    [0.0625, 0.0246],
];
const OSBORNE_1: [f64; 33] = [
    0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.850, 0.818, 0.784, 0.751, 0.718, 0.685, 0.658, 0.628, 0.603,
    0.580, 0.558, 0.538, 0.522, 0.506, 0.490, 0.478, 0.467, 0.457, 0.448, 0.438, 0.431, 0.424, 0.420, 0.414, 0.411,
    0.406,
];
const OSBORNE_2: [f64; 65] = [
    1.366, 1.191, 1.112, 1.013, 0.991, 0.885, 0.831, 0.847, 0.786, 0.725, 0.746, 0.679, 0.608, 0.655, 0.616, 0.606,
    0.602, 0.626, 0.651, 0.724, 0.649, 0.649, 0.694, 0.644, 0.624, 0.661, 0.612, 0.558, 0.533, 0.495, 0.500, 0.423,
    0.395, 0.375, 0.372, 0.391, 0.396, 0.405, 0.428, 0.429, 0.523, 0.562, 0.607, 0.653, 0.672, 0.708, 0.633, 0.668,
    0.645, 0.632, 0.591, 0.559, 0.597, 0.625, 0.739, 0.710, 0.729, 0.720, 0.636, 0.581, 0.428, 0.292, 0.162, 0.098,
    0.054,
];

/// The problems 1 to 19 of the paper.
#[must_use]
pub fn fixed_problems() -> Vec<UnconstrainedProblem> {
    problems! {
        "rosenbrock", [x1, x2] = [-1.2, 1.0], minima = [0.0], [10.0 * (x2 - x1 * x1), 1.0 - x1];
        "freudenstein-roth", [x1, x2] = [0.5, -2.0], minima = [0.0, 48.98425367924],
            [x1 + ((5.0 - x2) * x2 - 2.0) * x2 - 13.0, x1 + ((x2 + 1.0) * x2 - 14.0) * x2 - 29.0];
        "powell-badly-scaled", [x1, x2] = [0.0, 1.0], minima = [0.0],
            [1e4 * x1 * x2 - 1.0, (-x1).exp() + (-x2).exp() - 1.0001];
        "brown-badly-scaled", [x1, x2] = [1.0, 1.0], minima = [0.0], [x1 - 1e6, x2 - 2e-6, x1 * x2 - 2.0];
        "beale", [x1, x2] = [1.0, 1.0], minima = [0.0],
            [1.5 - x1 * (1.0 - x2), 2.25 - x1 * (1.0 - x2.powi(2)), 2.625 - x1 * (1.0 - x2.powi(3))];
        "jennrich-sampson", [x1, x2] = [0.3, 0.4], minima = [124.3621823556],
            measured(10, |i| 2.0 + 2.0 * i - ((i * x1).exp() + (i * x2).exp()));
        "helical-valley", [x1, x2, x3] = [-1.0, 0.0, 0.0], minima = [0.0],
            {
                let turn = (x2 / x1).atan() / TAU + if x1.value < 0.0 { 0.5 } else { 0.0 };
                [10.0 * (x3 - 10.0 * turn), 10.0 * ((x1 * x1 + x2 * x2).sqrt() - 1.0), x3]
            };
        "bard", [x1, x2, x3] = [1.0; 3], minima = [8.214877306579e-3, 17.42869333],
            fitted(&BARD, |u, y| y - (x1 + u / ((16.0 - u) * x2 + u.min(16.0 - u) * x3)));
        "gaussian", [x1, x2, x3] = [0.4, 1.0, 0.0], minima = [1.127932769619e-8],
            fitted(&GAUSSIAN, |i, y| x1 * (-0.5 * x2 * ((8.0 - i) / 2.0 - x3).powi(2)).exp() - y);
        "meyer", [x1, x2, x3] = [0.02, 4000.0, 250.0], minima = [87.94585517084],
            fitted(&MEYER, |i, y| x1 * (x2 / (45.0 + 5.0 * i + x3)).exp() - y);
        "gulf", [x1, x2, x3] = [5.0, 2.5, 0.15], minima = [0.0],
            measured(99, |i| {
                let y = 25.0 + (-50.0 * (i / 100.0).ln()).powf(2.0 / 3.0);
                (-((y - x2).abs().ln() * x3).exp() / x1).exp() - i / 100.0
            });
        "box-3d", [x1, x2, x3] = [0.0, 10.0, 20.0], minima = [0.0],
            measured(10, |i| {
                let t = 0.1 * i;
                (-t * x1).exp() - (-t * x2).exp() - x3 * ((-t).exp() - (-10.0 * t).exp())
            });
        "powell-singular", [x1, x2, x3, x4] = [3.0, -1.0, 0.0, 1.0], minima = [0.0],
            [x1 + 10.0 * x2, 5_f64.sqrt() * (x3 - x4), (x2 - 2.0 * x3).powi(2), 10_f64.sqrt() * (x1 - x4).powi(2)];
        "wood", [x1, x2, x3, x4] = [-3.0, -1.0, -3.0, -1.0], minima = [0.0],
            [
                10.0 * (x2 - x1 * x1),
                1.0 - x1,
                90_f64.sqrt() * (x4 - x3 * x3),
                1.0 - x3,
                10_f64.sqrt() * (x2 + x4 - 2.0),
                (x2 - x4) / 10_f64.sqrt()
            ];
        "kowalik-osborne", [x1, x2, x3, x4] = [0.25, 0.39, 0.415, 0.39], minima = [3.075056038492e-4, 1.02734e-3],
            KOWALIK.map(|[u, y]| y - x1 * (u * u + u * x2) / (u * u + u * x3 + x4));
        "brown-dennis", [x1, x2, x3, x4] = [25.0, 5.0, -5.0, -1.0], minima = [85822.20162636],
            measured(20, |i| {
                let t = i / 5.0;
                (x1 + t * x2 - t.exp()).powi(2) + (x3 + t.sin() * x4 - t.cos()).powi(2)
            });
        "osborne-1", [x1, x2, x3, x4, x5] = [0.5, 1.5, -1.0, 0.01, 0.02], minima = [5.464894697483e-5],
            fitted(&OSBORNE_1, |i, y| {
                let t = 10.0 * (i - 1.0);
                y - (x1 + x2 * (-t * x4).exp() + x3 * (-t * x5).exp())
            });
        "biggs-exp6", [x1, x2, x3, x4, x5, x6] = [1.0, 2.0, 1.0, 1.0, 1.0, 1.0],
            minima = [0.0, 5.6556499255e-3, 0.306367],
            measured(13, |i| {
                let t = 0.1 * i;
                let y = (-t).exp() - 5.0 * (-10.0 * t).exp() + 3.0 * (-4.0 * t).exp();
                x3 * (-t * x1).exp() - x4 * (-t * x2).exp() + x6 * (-t * x5).exp() - y
            });
        "osborne-2", [x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11] = [1.3, 0.65, 0.65, 0.7, 0.6, 3.0, 5.0, 7.0, 2.0, 4.5, 5.5],
            minima = [4.013773629355e-2],
            fitted(&OSBORNE_2, |i, y| {
                let t = (i - 1.0) / 10.0;
                let peaks = [(x2, x9, x6), (x3, x10, x7), (x4, x11, x8)];
                peaks.into_iter().fold(y - x1 * (-t * x5).exp(), |rest, (height, place, width)| {
                    rest - height * (-(t - place).powi(2) * width).exp()
                })
            });
    }
}
