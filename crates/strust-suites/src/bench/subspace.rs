//! `strust bench subspace`: a step of STR-P beside its matrix products, and beside NumPy.

use super::{BenchBlock, BenchResults, table};
use faer::{Accum, Mat, Par, linalg::matmul::matmul};
use serde::Serialize;
use std::{
    hint::black_box,
    process::Command,
    time::{Duration, Instant},
};
use strust::{prelude::*, samplers::Sampler};
use strust_problems::{Problem, subspace::SubspaceFit};

/// The variants take turns, in this many rounds. The shortest time of each counts, because other programs can only make
/// it longer.
const ROUNDS: u32 = 4;
/// The duration of one turn.
const TURN: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct SubspaceSpeed {
    d: usize,
    k: usize,
    batch: usize,
    step_us: f64,
    products_us: f64,
    ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    numpy_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numpy_ratio: Option<f64>,
    /// The same with column-major arrays in NumPy: faster for this step, but unusual in NumPy code.
    #[serde(skip_serializing_if = "Option::is_none")]
    numpy_columns_us: Option<f64>,
    /// The time of a step at several sizes.
    scaling: Vec<Scaling>,
}

#[derive(Serialize)]
struct Scaling {
    d: usize,
    k: usize,
    batch: usize,
    step_us: f64,
    /// Step time divided by d·k·batch.
    ns_per_unit: f64,
}

/// A step of STR-P on subspace fitting, compared with its matrix products and with NumPy.
pub fn subspace() -> Result<BenchResults, strust_lab::Error> {
    let (d, k, n, batch) = (500, 10, 1000, 32);
    let (mut step_us, mut products_us, mut numpy_us, mut numpy_columns_us) = (f64::INFINITY, f64::INFINITY, None, None);
    for _ in 0..ROUNDS {
        let (step, products) = step_and_products(d, k, n, batch)?;
        (step_us, products_us) = (step_us.min(step), products_us.min(products));
        for (order, least) in [("C", &mut numpy_us), ("F", &mut numpy_columns_us)] {
            if let Some(numpy) = numpy(d, k, n, batch, order) {
                *least = Some(numpy.min(least.unwrap_or(f64::INFINITY)));
            }
        }
    }
    let mut scaling = Vec::new();
    for (d, k) in [(500, 10), (2_000, 10), (2_000, 50), (20_000, 10), (20_000, 50)] {
        let step_us = step_and_products(d, k, 2 * batch, batch)?.0;
        scaling.push(Scaling { d, k, batch, step_us, ns_per_unit: 1e3 * step_us / (d * k * batch) as f64 });
    }
    let numpy_ratio = numpy_us.map(|numpy| numpy / step_us);
    let ratio = step_us / products_us;
    let result =
        SubspaceSpeed { d, k, batch, step_us, products_us, ratio, numpy_us, numpy_ratio, numpy_columns_us, scaling };
    Ok(BenchResults::new(&result, blocks(&result)))
}

fn blocks(r: &SubspaceSpeed) -> Vec<BenchBlock> {
    let us = |value: f64| format!("{value:.1} µs");
    let mut rows = vec![
        vec!["a step of STR-P".into(), us(r.step_us), String::new()],
        vec!["its matrix products alone".into(), us(r.products_us), format!("the step takes {:.2}× as long", r.ratio)],
    ];
    for (name, time) in [("the same step in NumPy", r.numpy_us), ("… with column-major arrays", r.numpy_columns_us)] {
        rows.push(match time {
            Some(numpy) => vec![name.into(), us(numpy), format!("{:.1}× as long as the step", numpy / r.step_us)],
            None => vec![name.into(), "NumPy not found".into(), String::new()],
        });
    }
    let scaling = table(["d", "k", "step", "per d·k·batch"], &r.scaling, |s| {
        [s.d.to_string(), s.k.to_string(), us(s.step_us), format!("{:.3} ns", s.ns_per_unit)]
    });
    let title = format!("Subspace fitting, d = {}, k = {}, batch {}, f64, one thread", r.d, r.k, r.batch);
    vec![BenchBlock::new(title, rows), BenchBlock::new("Cost with size", scaling)]
}

/// Microseconds of a step of STR-P, and of its matrix products. The two take turns.
fn step_and_products(d: usize, k: usize, n: usize, batch: usize) -> Result<(f64, f64), Error> {
    let mut f = SubspaceFit::<f64>::spiked(d, k, n, 0.0, 0)?;
    let mut sampler = Epochs::new(n, batch, 0)?;
    let mut method = StrP::new(StrPConfig::default(), f.constraint())?;
    let x = f.start(0);
    let start = method.init(&mut f, x)?;
    let samples: Vec<Sample> = (0..n as u64 / batch as u64)
        .map(|k| {
            let mut sample = Sample::default();
            sampler.draw(k, &mut sample);
            sample
        })
        .collect();
    let mut products = Products::new(d, k, batch);
    let (mut best_step, mut best_products) = (f64::INFINITY, f64::INFINITY);
    let all = Instant::now();
    while all.elapsed() < TURN {
        // Start again each time, so that every round does the same steps.
        let mut state = start.clone();
        let began = Instant::now();
        for sample in &samples {
            black_box(method.step(&mut f, &mut state, sample)?);
        }
        best_step = best_step.min(began.elapsed().as_secs_f64() / samples.len() as f64);
        let began = Instant::now();
        for _ in &samples {
            products.run();
        }
        best_products = best_products.min(began.elapsed().as_secs_f64() / samples.len() as f64);
    }
    Ok((1e6 * best_step, 1e6 * best_products))
}

/// The matrix products of one step, computed by faer on one thread. At x: WᵀX, WA, WᵀR, RAᵀ and X(WᵀR)ᵀ for f and its gradient,
/// WᵀW and WC for the penalty, WᵀG for the curvature. At the trial point: WᵀX, WA and WᵀW.
struct Products {
    w: Mat<f64>,
    x: Mat<f64>,
    g: Mat<f64>,
    a: Mat<f64>,
    r: Mat<f64>,
    c: Mat<f64>,
}

impl Products {
    fn new(d: usize, k: usize, batch: usize) -> Self {
        let some = |rows, columns| Mat::from_fn(rows, columns, |i, j| ((7 * i + 3 * j) % 11) as f64 - 5.0);
        Self { w: some(d, k), x: some(d, batch), g: some(d, k), a: some(k, batch), r: some(d, batch), c: some(k, k) }
    }
    fn run(&mut self) {
        let Self { w, x, g, a, r, c } = self;
        let set = Accum::Replace;
        for at_trial in [false, true] {
            matmul(&mut *a, set, w.transpose(), &*x, 1.0, Par::Seq);
            matmul(&mut *r, set, &*w, &*a, 1.0, Par::Seq);
            matmul(&mut *c, set, w.transpose(), &*w, 1.0, Par::Seq);
            if !at_trial {
                matmul(&mut *a, set, w.transpose(), &*r, 1.0, Par::Seq);
                matmul(&mut *g, set, &*r, a.transpose(), 1.0, Par::Seq);
                matmul(&mut *g, Accum::Add, &*x, a.transpose(), 1.0, Par::Seq);
                matmul(&mut *g, Accum::Add, &*w, &*c, 1.0, Par::Seq);
                matmul(&mut *c, set, w.transpose(), &*g, 1.0, Par::Seq);
            }
        }
        black_box((g, a, r, c));
    }
}

/// Microseconds of the same step in NumPy, on one thread. `None` if there is no Python with NumPy.
fn numpy(d: usize, k: usize, n: usize, batch: usize, order: &str) -> Option<f64> {
    let python = std::env::var_os("STRUST_PYTHON").unwrap_or_else(|| "python3".into());
    let sizes = [d, k, n, batch].map(|size| size.to_string());
    let seconds = TURN.as_secs_f64().to_string();
    let script = include_str!("../../scripts/numpy_step.py");
    let output = Command::new(python).args(["-c", script]).args(sizes).args([seconds.as_str(), order]).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
