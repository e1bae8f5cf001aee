//! The quadratic model of f as an objective, for a method that minimizes it over a set.

use faer::{Accum, Col, ColRef, Mat, Par, linalg::matmul::matmul};
use strust::{
    objective::{Evaluation, Objective, ProductKind},
    sample::Sample,
};

/// f + gᵀs + ½sᵀHs for s = x − center: one term.
#[derive(Debug, Clone)]
pub(crate) struct QuadraticModel {
    center: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    matrix: Mat<f64>,
}

impl QuadraticModel {
    pub(super) fn new(center: &[f64], value: f64, gradient: &[f64], matrix: Mat<f64>) -> Self {
        Self { center: center.to_vec(), value, gradient: gradient.to_vec(), matrix }
    }

    /// The value at x, and the slope g + Hs.
    fn with_slope(&self, x: &[f64]) -> (f64, Vec<f64>) {
        let s: Vec<f64> = x.iter().zip(&self.center).map(|(x, center)| x - center).collect();
        let mut slope = self.product(&s);
        let value = self.value + super::dot(&s, &self.gradient) + 0.5 * super::dot(&s, &slope);
        super::add(&mut slope, 1.0, &self.gradient);
        (value, slope)
    }
    pub(super) fn at(&self, x: &[f64]) -> f64 {
        self.with_slope(x).0
    }
    fn product(&self, v: &[f64]) -> Vec<f64> {
        let mut out = Col::zeros(v.len());
        matmul(out.as_mat_mut(), Accum::Replace, &self.matrix, ColRef::from_slice(v).as_mat(), 1.0, Par::Seq);
        out.iter().copied().collect()
    }
}

impl Objective for QuadraticModel {
    type Point = Vec<f64>;
    fn terms(&self) -> usize {
        1
    }
    fn value(&mut self, x: &Vec<f64>, _: &Sample) -> Evaluation {
        Evaluation::new(self.at(x), f64::EPSILON)
    }
    fn value_and_gradient(&mut self, x: &Vec<f64>, _: &Sample, gradient: &mut Vec<f64>) -> Evaluation {
        let (value, slope) = self.with_slope(x);
        *gradient = slope;
        Evaluation::new(value, f64::EPSILON)
    }
    fn curvature_product(
        &mut self,
        _: ProductKind,
        _: &Vec<f64>,
        _: &Sample,
        direction: &Vec<f64>,
        product: &mut Vec<f64>,
    ) -> bool {
        *product = self.product(direction);
        true
    }
}
