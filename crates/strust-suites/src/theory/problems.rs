//! Problems for the checks, with known constants or known solutions.

use rand_core::Rng;
use strust::{
    diagnostics::StrongGrowth,
    objective::{Evaluation, ProductKind},
    prelude::*,
    sample::generator,
};

/// Independent standard normal numbers of a seed.
pub(crate) fn normals(seed: u64) -> impl FnMut() -> f64 {
    // Neither samplers nor problems use this stream.
    let mut rng = generator(seed, 1 << 61);
    let mut uniform = move || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    move || {
        let (u, v) = (1.0 - uniform(), uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

/// A vector of independent normal numbers.
pub(super) fn normal(d: usize, next: &mut impl FnMut() -> f64) -> Vec<f64> {
    (0..d).map(|_| next()).collect()
}

/// The loss ψ of a residual r: value and derivative.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Loss {
    /// ½r², with |ψ″| ≤ 1.
    Square,
    /// log(1 + e^{−r}), with |ψ″| ≤ ¼.
    Logistic,
    /// ½r²/(1 + r²), not convex, with |ψ″| ≤ 1.
    Bounded,
}

/// All losses, with names for people.
pub(super) const LOSSES: [(&str, Loss); 3] =
    [("least squares", Loss::Square), ("logistic", Loss::Logistic), ("bounded loss, not convex", Loss::Bounded)];

impl Loss {
    /// The largest |ψ″|.
    pub(super) fn curvature(self) -> f64 {
        if self == Self::Logistic { 0.25 } else { 1.0 }
    }
    fn at(self, r: f64) -> (f64, f64) {
        match self {
            Self::Square => (0.5 * r * r, r),
            // This form does not overflow.
            Self::Logistic => ((-r.abs()).exp().ln_1p() + (-r).max(0.0), -1.0 / (1.0 + r.exp())),
            Self::Bounded => (0.5 * r * r / (1.0 + r * r), r / (1.0 + r * r).powi(2)),
        }
    }
    /// ψ″, or its part without the second derivative of the residual that is squared: of ½s² with s = r/√(1 + r²) the
    /// Gauss–Newton matrix keeps s′².
    fn second(self, kind: ProductKind, r: f64) -> f64 {
        match (self, kind) {
            (Self::Square, _) => 1.0,
            // s(1 − s) with the logistic function s, in a form that does not overflow.
            (Self::Logistic, _) => 0.25 / (0.5 * r).cosh().powi(2),
            (Self::Bounded, ProductKind::Hessian) => (1.0 - 3.0 * r * r) / (1.0 + r * r).powi(3),
            (Self::Bounded, ProductKind::GaussNewton) => (1.0 + r * r).powi(-3),
        }
    }
}

/// f(x) = mean of ψ(⟨aᵢ, x⟩ − bᵢ) + ⟨q, x⟩. Every Lᵢ = max|ψ″|·‖aᵢ‖² is known.
#[derive(Clone)]
pub(super) struct Linear<V> {
    pub rows: Vec<V>,
    pub right: Vec<f64>,
    pub loss: Loss,
    /// A slope that all terms share.
    pub slope: Option<V>,
}

impl Linear<Vec<f64>> {
    /// n rows N(0, scaleᵢ²/d). The scales are spaced evenly on a logarithmic scale, from the first to the second of `scales`.
    /// b = Ax* for a normal x*, so that every term can be satisfied; b = 0 for the logistic loss.
    pub(super) fn random(n: usize, d: usize, scales: [f64; 2], loss: Loss, seed: u64) -> Self {
        let mut next = normals(seed);
        let answer = normal(d, &mut next);
        let scale = |i: usize| scales[0] * (scales[1] / scales[0]).powf(i as f64 / (n.max(2) - 1) as f64);
        let row = |i: usize| (0..d).map(|_| scale(i) * next() / (d as f64).sqrt()).collect();
        let rows: Vec<Vec<f64>> = (0..n).map(row).collect();
        let target = |row: &Vec<f64>| if loss == Loss::Logistic { 0.0 } else { row.dot(&answer) };
        Self { right: rows.iter().map(target).collect(), rows, loss, slope: None }
    }
}

impl<V: Vector> Linear<V> {
    /// Lᵢ of every term.
    pub(super) fn lipschitz(&self) -> Vec<f64> {
        self.rows.iter().map(|row| self.loss.curvature() * row.norm_squared()).collect()
    }

    /// L of the mean over a sample: max|ψ″| times the largest eigenvalue of (1/b) Σ aᵢaᵢᵀ. Exact for the squares; an upper bound
    /// for the other losses.
    pub(super) fn sample_lipschitz(&self, sample: &[usize]) -> f64 {
        self.loss.curvature() * largest_eigenvalue(&sample.iter().map(|&i| &self.rows[i]).collect::<Vec<_>>())
    }

    /// The result of [`strong_growth`](strust::diagnostics::strong_growth), computed in one pass: the gradient of a term is
    /// ψ′(r)·aᵢ, and a slope shared by all terms does not change their variance.
    pub(super) fn strong_growth(&self, x: &V) -> StrongGrowth {
        let scale = 1.0 / self.rows.len() as f64;
        let (mut gradient, mut squares) = (x.zeros_like(), 0.0);
        for (row, right) in self.rows.iter().zip(&self.right) {
            let (_, derivative) = self.loss.at(row.dot(x) - right);
            gradient.add(scale * derivative, row);
            squares += scale * derivative * derivative * row.norm_squared();
        }
        let variance = (squares - gradient.norm_squared()).max(0.0);
        if let Some(q) = &self.slope {
            gradient.add(1.0, q);
        }
        StrongGrowth { gradient_squared: gradient.norm_squared(), variance, terms: self.rows.len() }
    }

    /// The value with its rounding error: residuals are differences of numbers of the size of b.
    fn rounded(&self, value: f64) -> Evaluation {
        let size = (self.right.iter().map(|b| b * b).sum::<f64>() / self.right.len() as f64).sqrt();
        Evaluation::of_squares(value, f64::EPSILON, 2.0 * size)
    }

    fn evaluate(&self, x: &V, sample: &Sample, mut gradient: Option<&mut V>) -> f64 {
        let scale = 1.0 / sample.len() as f64;
        let mut sum = 0.0;
        for &i in sample.indices() {
            let (value, derivative) = self.loss.at(self.rows[i].dot(x) - self.right[i]);
            sum += scale * value;
            if let Some(g) = gradient.as_deref_mut() {
                g.add(scale * derivative, &self.rows[i]);
            }
        }
        if let Some(q) = &self.slope {
            sum += q.dot(x);
            if let Some(g) = gradient {
                g.add(1.0, q);
            }
        }
        sum
    }
}

impl<V: Vector> Objective for Linear<V> {
    type Point = V;
    fn terms(&self) -> usize {
        self.rows.len()
    }
    fn value(&mut self, x: &V, sample: &Sample) -> Evaluation {
        self.rounded(self.evaluate(x, sample, None))
    }
    fn value_and_gradient(&mut self, x: &V, sample: &Sample, gradient: &mut V) -> Evaluation {
        gradient.set_zero();
        self.rounded(self.evaluate(x, sample, Some(gradient)))
    }
    fn curvature_product(&mut self, kind: ProductKind, x: &V, sample: &Sample, v: &V, product: &mut V) -> bool {
        let scale = 1.0 / sample.len() as f64;
        product.set_zero();
        for &i in sample.indices() {
            let row = &self.rows[i];
            let second = self.loss.second(kind, row.dot(x) - self.right[i]);
            product.add(scale * second * row.dot(v), row);
        }
        true
    }
}

/// The largest eigenvalue of (1/n) Σ aᵢaᵢᵀ, by the power method until it converges.
pub(super) fn largest_eigenvalue<V: Vector>(rows: &[&V]) -> f64 {
    let Some(steepest) = rows.iter().max_by(|a, b| a.norm().total_cmp(&b.norm())) else { return 0.0 };
    let (mut v, mut next, mut estimate) = ((*steepest).clone(), steepest.zeros_like(), 0.0);
    for _ in 0..20_000 {
        let norm = v.norm();
        if norm == 0.0 {
            return 0.0;
        }
        next.set_zero();
        for row in rows {
            next.add(row.dot(&v) / (norm * rows.len() as f64), row);
        }
        let before = std::mem::replace(&mut estimate, next.norm());
        std::mem::swap(&mut v, &mut next);
        if estimate - before <= 1e-14 * estimate {
            break;
        }
    }
    estimate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strong_growth_in_one_pass_agrees_with_the_instrument() {
        for slope in [None, Some(vec![0.3; 7])] {
            let mut f = Linear { slope, ..Linear::random(12, 7, [0.5, 3.0], Loss::Bounded, 3) };
            let x = normal(7, &mut normals(5));
            let (fast, exact) = (f.strong_growth(&x), strust::diagnostics::strong_growth(&mut f, &x));
            assert!((fast.gradient_squared / exact.gradient_squared - 1.0).abs() < 1e-12);
            assert!((fast.variance / exact.variance - 1.0).abs() < 1e-12 && fast.terms == exact.terms);
        }
    }

    #[test]
    fn products_are_differences_of_gradients() {
        for loss in [Loss::Square, Loss::Logistic, Loss::Bounded] {
            let mut f = Linear::random(12, 7, [0.5, 3.0], loss, 3);
            let mut next = normals(5);
            let (x, v, sample) = (normal(7, &mut next), normal(7, &mut next), Sample::range(2..9));
            let (mut up, mut down, mut moved, h) = (vec![0.0; 7], vec![0.0; 7], vec![0.0; 7], 1e-5);
            moved.set_sum(&x, h, &v);
            f.value_and_gradient(&moved, &sample, &mut up);
            moved.set_sum(&x, -h, &v);
            f.value_and_gradient(&moved, &sample, &mut down);
            up.add(-1.0, &down);
            up.scale(0.5 / h);
            let mut product = vec![0.0; 7];
            assert!(f.curvature_product(ProductKind::Hessian, &x, &sample, &v, &mut product));
            let size = product.norm();
            product.add(-1.0, &up);
            assert!(product.norm() <= 1e-8 * (1.0 + size), "{} of {size}", product.norm());
            // The Gauss–Newton matrix is never indefinite, and is the Hessian where the residuals vanish.
            assert!(f.curvature_product(ProductKind::GaussNewton, &x, &sample, &v, &mut product));
            assert!(product.dot(&v) > 0.0);
            let both = [ProductKind::Hessian, ProductKind::GaussNewton].map(|kind| loss.second(kind, 0.0));
            assert_eq!(both[0].to_bits(), both[1].to_bits());
        }
    }

    #[test]
    fn the_lipschitz_constant_of_a_sample_belongs_to_its_mean() {
        let f = Linear {
            rows: vec![vec![3.0, 0.0], vec![0.0, 2.0], vec![3.0, 0.0]],
            ..Linear::random(3, 2, [1.0; 2], Loss::Square, 0)
        };
        // One term: ‖a‖². Orthogonal terms: half of the larger one. The same term twice: itself.
        for (sample, exact) in [(vec![1], 4.0), (vec![0, 1], 4.5), (vec![0, 2], 9.0)] {
            assert!((f.sample_lipschitz(&sample) - exact).abs() < 1e-12, "{sample:?}");
        }
        // Never above the largest of its terms, never below their mean curvature along any direction.
        let f = Linear::random(20, 6, [0.5, 3.0], Loss::Square, 1);
        let all: Vec<usize> = (0..20).collect();
        let mean = f.lipschitz().iter().sum::<f64>() / 20.0;
        let top = f.sample_lipschitz(&all);
        assert!(top <= mean && top >= mean / 6.0, "{top} and {mean}: a mean of rank 6 has this trace");
    }
}
