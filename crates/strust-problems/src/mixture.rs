//! The weights of a mixture of known distributions, on the simplex.

use crate::{
    Problem,
    any_constraint::any_constraint,
    numerics::{
        DATA, Evaluate, START, at_least_one, axpy, dot, evaluated, finite, gaussian, minimum, normals, not_negative,
        shape,
    },
};
use faer::Mat;
use std::f64::consts::TAU;
use strust::{
    Error,
    constraints::{AnyConstraint, Retraction, Simplex},
    objective::ProductKind,
    sample::Sample,
    vector::Vector,
};

const OWNER: &str = "mixture";
/// The stream of the centers.
const CENTERS: u64 = DATA + 36;

/// f(w) = −(1/n) Σᵢ log Σₖ wₖpₖ(xᵢ) with known densities pₖ, subject to w ≥ 0 and Σwₖ = 1.
///
/// f is the negative log-likelihood of the weights per point. It is convex. Components that the data do not need have
/// the weight 0 in the solution.
///
/// ```
/// use strust::prelude::*;
/// use strust_problems::{Mixture, Problem};
///
/// let mut f = Mixture::gaussians(2, 6, 300, 2.0, 0)?;
/// let (method, start) = (StrSqp::new(StrSqpConfig::default(), f.constraint())?, f.start(0));
/// let report = minimize(&mut f).method(method).full_batch().start(start)?;
/// assert!(report.reason.converged());
/// assert!((report.last.value - f.optimum().unwrap()).abs() < 1e-9);
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Mixture {
    /// pₖ(xᵢ) divided by the largest of them: a column for each point.
    densities: Mat<f64>,
    /// The logarithm of that largest density.
    logarithms: Vec<f64>,
}

impl Mixture {
    /// The problem for the K×n matrix of log pₖ(xᵢ).
    pub fn new(log_densities: &Mat<f64>) -> Result<Self, Error> {
        let (k, n) = (log_densities.nrows(), log_densities.ncols());
        at_least_one(OWNER, "components", k)?;
        at_least_one(OWNER, "n", n)?;
        finite(OWNER, "log_densities", log_densities)?;
        let largest = |i| log_densities.col_as_slice(i).iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let logarithms: Vec<f64> = (0..n).map(largest).collect();
        let densities = Mat::from_fn(k, n, |j, i| (log_densities[(j, i)] - logarithms[i]).exp());
        Ok(Self { densities, logarithms })
    }

    /// K Gaussian components N(μₖ, I) in ℝᵈ with centers μₖ ~ N(0, `spread`²·I), and n points of the first ⌈K/2⌉ of
    /// them with weights proportional to 1, ½, ⅓, … The other components have no points.
    pub fn gaussians(d: usize, components: usize, n: usize, spread: f64, seed: u64) -> Result<Self, Error> {
        at_least_one(OWNER, "d", d)?;
        at_least_one(OWNER, "components", components)?;
        at_least_one(OWNER, "n", n)?;
        not_negative(OWNER, "spread", spread)?;
        let centers = spread * gaussian(d, components, seed, CENTERS);
        let mut points = gaussian(d, n, seed, DATA);
        let weights: Vec<f64> = (0..components.div_ceil(2)).map(|k| 1.0 / (k + 1) as f64).collect();
        let total: f64 = weights.iter().sum();
        let (mut k, mut below) = (0, 0.0);
        for i in 0..n {
            while k + 1 < weights.len() && (i as f64 + 0.5) / n as f64 > (below + weights[k]) / total {
                below += weights[k];
                k += 1;
            }
            axpy(1.0, centers.col_as_slice(k), points.col_as_slice_mut(i));
        }
        let normalizer = 0.5 * d as f64 * TAU.ln();
        Self::new(&Mat::from_fn(components, n, |k, i| {
            let pairs = points.col_as_slice(i).iter().zip(centers.col_as_slice(k));
            -0.5 * pairs.map(|(x, center)| (x - center).powi(2)).sum::<f64>() - normalizer
        }))
    }

    /// The constraint w ≥ 0, Σwₖ = 1 of this problem.
    #[must_use]
    pub fn constraint(&self) -> Simplex<Vec<f64>> {
        Simplex::new(&vec![0.0; self.densities.nrows()], 1.0).expect("there is a component")
    }
}

impl Evaluate for Mixture {
    type Point = Vec<f64>;

    fn count(&self) -> usize {
        self.logarithms.len()
    }
    fn check(&self, w: &Vec<f64>) -> Result<(), Error> {
        shape("weights of a mixture", vec![self.densities.nrows()], vec![w.len()])
    }
    #[inline(always)]
    fn evaluate(&mut self, w: &Vec<f64>, sample: &Sample, mut gradient: Option<&mut Vec<f64>>) -> f64 {
        let scale = 1.0 / sample.len() as f64;
        let mut sum = 0.0;
        for &i in sample.indices() {
            let densities = self.densities.col_as_slice(i);
            let density = dot(densities, w);
            sum -= self.logarithms[i] + density.ln();
            if let Some(gradient) = gradient.as_deref_mut() {
                axpy(-scale / density, densities, gradient);
            }
        }
        scale * sum
    }
    /// (1/b) Σ pᵢpᵢᵀv/(pᵢᵀw)², for both kinds.
    #[inline(always)]
    fn add_product(&mut self, _: ProductKind, w: &Vec<f64>, sample: &Sample, v: &Vec<f64>, out: &mut Vec<f64>) {
        let scale = 1.0 / sample.len() as f64;
        for &i in sample.indices() {
            let densities = self.densities.col_as_slice(i);
            let density = dot(densities, w);
            axpy(scale * dot(densities, v) / (density * density), densities, out);
        }
    }
}

evaluated!([] Mixture, Vec<f64>);

impl Problem for Mixture {
    /// Weights that differ by about a tenth, with the sum 1.
    fn start(&self, seed: u64) -> Vec<f64> {
        let mut next = normals(seed, START);
        let mut w: Vec<f64> = (0..self.densities.nrows()).map(|_| (0.1 * next()).exp()).collect();
        let total: f64 = w.iter().sum();
        w.scale(1.0 / total);
        w
    }
    /// The minimum that [`StrSqp`](strust::methods::StrSqp) finds on the full sum. f is convex.
    fn optimum(&self) -> Option<f64> {
        minimum(self.clone(), &self.constraint(), self.start(0))
    }
    fn any_constraint(&self, _: Retraction) -> Option<AnyConstraint<Vec<f64>>> {
        Some(any_constraint(self.constraint()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;
    use strust::{objective::full_value, prelude::*};

    /// Expectation maximization: wₖ ← wₖ·mean pₖ/Σwp.
    fn by_expectation_maximization(f: &mut Mixture, steps: usize) -> Vec<f64> {
        let (mut w, mut g) = (f.start(0), f.start(0));
        for _ in 0..steps {
            strust::objective::full_value_and_gradient(f, &w, &mut g);
            w.iter_mut().zip(&g).for_each(|(w, g)| *w *= -g);
        }
        w
    }

    #[test]
    fn the_contract_of_a_problem_holds() {
        let mut f = Mixture::gaussians(2, 4, 30, 2.0, 0).unwrap();
        contract::holds(&mut f, 1.95..2.05, 1e-13);
        contract::has_products(&mut f, ProductKind::Hessian, true, 1e-13);
        contract::has_products(&mut f, ProductKind::GaussNewton, true, 1e-13);
    }

    #[test]
    fn the_optimum_agrees_with_expectation_maximization_and_some_weights_are_zero() {
        for seed in 0..5 {
            let mut f = Mixture::gaussians(2, 8, 400, 2.0, seed).unwrap();
            let w = by_expectation_maximization(&mut f, 20_000);
            let (value, optimum) = (full_value(&mut f, &w), f.optimum().unwrap());
            // Expectation maximization is slow where a weight tends to 0.
            assert!(value > optimum - 1e-12 && value < optimum + 1e-6, "{value} {optimum}");
            let method = StrSqp::new(StrSqpConfig::default(), f.constraint()).unwrap();
            let start = f.start(1);
            let report = minimize(&mut f).method(method).full_batch().start(start).unwrap();
            assert!(report.reason.converged() && (report.last.value - optimum).abs() < 1e-9);
            assert!(report.point().iter().any(|&w| w < 1e-12), "{:?}", report.point());
        }
    }

    #[test]
    fn a_mixture_without_components_or_with_a_density_of_zero_is_an_error() {
        assert!(Mixture::gaussians(2, 0, 10, 1.0, 0).is_err());
        assert!(Mixture::gaussians(2, 3, 10, -1.0, 0).is_err());
        let error = Mixture::new(&Mat::from_fn(2, 2, |_, _| f64::NEG_INFINITY)).unwrap_err().to_string();
        assert!(error.contains("`log_densities` is -inf at row 0, column 0"), "{error}");
    }
}
