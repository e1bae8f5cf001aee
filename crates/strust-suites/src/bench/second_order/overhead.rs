//! What a step of STR-Newton in a million unknowns adds to its evaluations.

use crate::bench::table;
use serde::Serialize;
use std::{hint::black_box, time::Instant};
use strust::{
    methods::{StrNewton, StrNewtonConfig},
    objective::{Evaluations, ProductKind},
    prelude::*,
    radius::RegionConfig,
};
use strust_problems::{Activation, Csr, Features, Labeled, Logistic, Mlp, Problem, digits};

/// The step and its evaluations take turns. The shortest time of each counts, because other programs can only make it
/// longer.
const TURNS: usize = 5;

/// The time of a step and of what it evaluates.
#[derive(Serialize)]
pub struct NewtonCost {
    problem: &'static str,
    unknowns: usize,
    products: u64,
    step_ms: f64,
    evaluations_ms: f64,
    ratio: f64,
}

pub fn measure() -> Result<Vec<NewtonCost>, Error> {
    let (train, _) = digits::load().expect("the digits are part of the program");
    let network = Mlp::<f64>::new(&train, None, &[1000, 926], Activation::Tanh)?;
    Ok(vec![
        // The Hessian of a network is indefinite, which would end the steps early.
        cost("network, batch 64, Gauss–Newton", ProductKind::GaussNewton, network.clone(), 64)?,
        cost("network, batch 512, Gauss–Newton", ProductKind::GaussNewton, network, 512)?,
        cost("logistic, 10⁵ sparse rows, Hessian", ProductKind::Hessian, sparse_logistic()?, 100_000)?,
    ])
}

/// Logistic regression with a million unknowns, 10⁵ rows and 100 entries in each.
fn sparse_logistic() -> Result<Logistic, Error> {
    let (rows, columns, per_row) = (100_000, 1_000_000_usize, 100);
    let width = columns / per_row;
    // One entry in each block of columns, somewhere.
    let indices = (0..rows * per_row).map(|k| (k % per_row * width + k.wrapping_mul(2_654_435_761) % width) as u32);
    let indices: Vec<u32> = indices.collect();
    let values = indices.iter().map(|&j| f64::from(j).sin()).collect();
    let starts = (0..=rows).map(|i| i * per_row).collect();
    let features = Features::Sparse(Csr::new(columns, starts, indices, values)?);
    Logistic::new(Labeled { features, labels: (0..rows).map(|i| (i % 2) as f64).collect() }, 1e-6)
}

/// STR-Newton with steps of ten products.
fn method<V: Vector>(kind: ProductKind) -> Result<StrNewton<V>, Error> {
    // Neither the tolerance nor the radius ends the inner iteration.
    let region = RegionConfig { initial_radius: 1e6, ..RegionConfig::with_curvature() };
    let config = StrNewtonConfig { products: 10, at_boundary: 0, forcing: 1e-12, region, ..Default::default() };
    match kind {
        ProductKind::Hessian => StrNewton::new(config),
        ProductKind::GaussNewton => StrNewton::gauss_newton(config),
    }
}

fn cost<P: Problem>(problem: &'static str, kind: ProductKind, mut f: P, batch: usize) -> Result<NewtonCost, Error> {
    let (mut method, x) = (method(kind)?, f.start(0));
    let start = method.init(&mut f, x)?;
    let sample = Sample::range(0..batch);
    let (mut gradient, mut product) = (start.point().zeros_like(), start.point().zeros_like());
    let (mut step, mut alone, mut made) = (f64::INFINITY, f64::INFINITY, Evaluations::default());
    for _ in 0..TURNS {
        // Every turn makes the same step.
        let mut state = start.clone();
        let began = Instant::now();
        made = method.step(&mut f, &mut state, &sample)?.evaluations;
        step = began.elapsed().as_secs_f64().min(step);

        let began = Instant::now();
        for _ in 0..made.gradients {
            black_box(f.value_and_gradient(start.point(), &sample, &mut gradient));
        }
        for _ in 0..made.products {
            black_box(f.curvature_product(kind, start.point(), &sample, &gradient, &mut product));
        }
        for _ in 0..made.values {
            black_box(f.value(state.point(), &sample));
        }
        alone = began.elapsed().as_secs_f64().min(alone);
    }
    let unknowns = start.point().dimension();
    let (step_ms, evaluations_ms) = (1e3 * step, 1e3 * alone);
    Ok(NewtonCost { problem, unknowns, products: made.products, step_ms, evaluations_ms, ratio: step / alone })
}

/// The table.
pub fn rows(costs: &[NewtonCost]) -> Vec<Vec<String>> {
    table(["", "unknowns", "products", "step", "evaluations", "ratio"], costs, |cost| {
        let [step, evaluations] = [cost.step_ms, cost.evaluations_ms].map(|ms| format!("{ms:.0} ms"));
        let (unknowns, products) = (cost.unknowns.to_string(), cost.products.to_string());
        [cost.problem.into(), unknowns, products, step, evaluations, format!("{:.3}", cost.ratio)]
    })
}
