//! STR-SQP with and without products of the Lagrangian's Hessian.

use crate::sqp::str_sqp;
use serde::Serialize;
use strust::{
    constraints::{Affine, Sphere},
    methods::StrSqpState,
    objective::{ProductKind, with_products},
    prelude::*,
    vector::Elementwise,
};
use strust_lab::statistics::upper_median;
use strust_problems::{
    ConstrainedProblem, GeneralizedEigenvalues, Mixture, Nmf, Pca, Problem, Procrustes,
    constrained::{KINDS, all_problems},
};

/// The most products of a step.
pub(super) const PRODUCTS: u64 = 1000;
/// The most steps of a run on a small problem, and on a large one.
const STEPS: (u64, u64) = (300, 3000);
/// Two runs end at the same point if their values of f differ by at most this, relative to 1 + |f|.
const SAME: f64 = 1e-5;

/// A run to the default tolerance.
#[derive(Clone, Copy, Serialize)]
pub(super) struct LagrangianRun {
    /// Whether it ended with a verdict that the problem permits: converged, or infeasible where nothing is feasible.
    pub ended: bool,
    pub steps: u64,
    pub products: u64,
    /// Price of all evaluations: 1 for a value, 3 for a gradient, 4 for a product.
    pub price: f64,
    pub value: f64,
}

/// The same problem without products and with them.
#[derive(Clone, Serialize)]
pub(super) struct LagrangianPair {
    pub name: String,
    pub without: LagrangianRun,
    pub with: LagrangianRun,
}

/// The small problems of one kind.
#[derive(Serialize)]
pub(super) struct LagrangianKind {
    pub kind: &'static str,
    /// How many runs ended well, without products and with them.
    pub ended: (usize, usize),
    /// How many pairs ended at the same point.
    pub same: usize,
    /// The medians of their ratios of steps and of prices.
    pub steps: f64,
    pub price: f64,
    pub problems: Vec<LagrangianPair>,
}

fn pair<F, C>(name: &str, mut f: F, constraint: &C, start: &F::Point, most: u64) -> Result<LagrangianPair, Error>
where
    F: Objective<Point: Elementwise>,
    C: Constraint<Point = F::Point> + Clone,
{
    let mut run = |products| {
        let config = StrSqpConfig { products, ..StrSqpConfig::default() };
        str_sqp(&mut f, &mut constraint.clone(), config, None, most, start.clone()).map(|report| outcome(&report))
    };
    Ok(LagrangianPair { name: name.into(), without: run(0)?, with: run(PRODUCTS)? })
}

fn outcome<V: Vector>(report: &Report<StrSqpState<V>>) -> LagrangianRun {
    LagrangianRun {
        ended: matches!(report.reason, StopReason::Kkt | StopReason::Infeasible | StopReason::NoQualification),
        steps: report.steps,
        products: report.evaluations.products,
        price: report.evaluations.price(),
        value: report.last.value,
    }
}

pub(super) fn small() -> Result<Vec<LagrangianKind>, Error> {
    let of_kind = |kind: &'static str| {
        let chosen = all_problems().into_iter().filter(|(of, _)| *of == kind);
        let pairs = chosen
            .map(|(_, p): (_, ConstrainedProblem)| pair(p.name, p.objective(), &p.constraint(), &p.start, STEPS.0));
        let problems = pairs.collect::<Result<Vec<LagrangianPair>, Error>>()?;
        let is_same = |pair: &&LagrangianPair| {
            let (a, b) = (pair.without, pair.with);
            a.ended && b.ended && (a.value - b.value).abs() <= SAME * (1.0 + a.value.abs())
        };
        let same: Vec<&LagrangianPair> = problems.iter().filter(is_same).collect();
        let ratio = |of: fn(&LagrangianRun) -> f64| {
            upper_median(&same.iter().map(|p| of(&p.with) / of(&p.without)).collect::<Vec<_>>())
        };
        let ended = |of: fn(&LagrangianPair) -> bool| problems.iter().filter(|pair| of(pair)).count();
        Ok(LagrangianKind {
            kind,
            ended: (ended(|pair| pair.without.ended), ended(|pair| pair.with.ended)),
            same: same.len(),
            steps: ratio(|run| run.steps as f64),
            price: ratio(|run| run.price),
            problems,
        })
    };
    KINDS.into_iter().map(of_kind).collect()
}

/// ½Σ wⱼ(xⱼ − sin j)² with weights from 1 to 1/condition.
fn quadratic(d: usize, condition: f64) -> impl Objective<Point = Vec<f64>> {
    let weight = move |j: usize| condition.powf(-(j as f64) / (d - 1) as f64);
    let f = from_terms(1, move |_, x: &Vec<f64>, g: &mut Vec<f64>| {
        let residual = |j: usize| x[j] - (j as f64).sin();
        (0..d).for_each(|j| g[j] += weight(j) * residual(j));
        (0..d).map(|j| 0.5 * weight(j) * residual(j).powi(2)).sum()
    });
    with_products(f, ProductKind::Hessian, move |_: &Vec<f64>, _: &Sample, v: &Vec<f64>, out: &mut Vec<f64>| {
        (0..d).for_each(|j| out[j] = weight(j) * v[j]);
    })
}

/// Rows without order.
fn rows(m: usize, d: usize) -> Result<Affine<Vec<f64>>, Error> {
    let entry = |i: usize, j: usize| (((i * d + j) as f64).powi(2) * 0.739).sin();
    let row = |i: usize| (0..d).map(|j| entry(i, j)).collect::<Vec<f64>>();
    Affine::new((0..m).map(row).collect(), (0..m).map(|i| (i as f64).cos()).collect())
}

pub(super) fn large() -> Result<Vec<LagrangianPair>, Error> {
    let d = 1000;
    let zero = vec![0.0; d];
    let mut all = Vec::new();
    for (condition, m) in [(1e2, 10), (1e4, 10), (1e4, 100), (1e6, 10)] {
        let name = format!("quadratic, condition {condition:e}, {m} rows");
        all.push(pair(&name, quadratic(d, condition), &rows(m, d)?, &zero, STEPS.1)?);
    }
    let bounded = both(rows(10, d)?, Bounds::nonnegative(&zero))?;
    all.push(pair("quadratic, condition 1e4, 10 rows, x ≥ 0", quadratic(d, 1e4), &bounded, &zero, STEPS.1)?);
    let sphere = Sphere::new(5.0)?;
    all.push(pair("quadratic, condition 1e4, sphere", quadratic(d, 1e4), &sphere, &vec![0.1; d], STEPS.1)?);
    for decay in [0.9, 0.98] {
        let f = Pca::decaying(100, 5, 500, decay, 0)?;
        let (c, start) = (f.constraint(), f.start(1));
        all.push(pair(&format!("principal components, 100 × 5, decay {decay}"), f, &c, &start, STEPS.1)?);
    }
    for condition in [10.0, 1000.0] {
        let f = GeneralizedEigenvalues::new(Pca::decaying(100, 5, 500, 0.9, 0)?, condition, 1)?;
        let (c, start) = (f.constraint(), f.start(1));
        all.push(pair(&format!("generalized eigenvalues, condition {condition}"), f, &c, &start, STEPS.1)?);
    }
    let f = Procrustes::random(60, 10, 300, 0.1, 0)?;
    let (c, start) = (f.constraint(), f.start(1));
    all.push(pair("Procrustes, 60 × 10", f, &c, &start, STEPS.1)?);
    let f = Mixture::gaussians(5, 50, 1000, 1.0, 0)?;
    let (c, start) = (f.constraint(), f.start(1));
    all.push(pair("mixture of 50 on the simplex", f, &c, &start, STEPS.1)?);
    let f = Nmf::random(40, 30, 4, 4, 0.01, 0)?;
    let (c, start) = (f.constraint(), f.start(1));
    all.push(pair("nonnegative factors, 40 × 30, rank 4", f, &c, &start, STEPS.1)?);
    Ok(all)
}
