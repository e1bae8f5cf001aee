//! The trust-region problem in few dimensions, solved exactly through the eigenvalues of the matrix.

use super::Exit;

/// A symmetric matrix of a few rows, and its eigenvectors. All space is made once, for the largest size.
#[derive(Debug, Clone)]
pub(super) struct DenseRegion {
    /// The columns that the space was made for.
    most: usize,
    /// The matrix; after [`Self::minimize`], its eigenvalues on the diagonal.
    pub(super) matrix: Vec<f64>,
    /// One eigenvector in each column.
    vectors: Vec<f64>,
    /// The minimizer.
    pub(super) solution: Vec<f64>,
    /// The gradient in the basis of the eigenvectors, and the minimizer there.
    rotated: Vec<[f64; 2]>,
}

/// The minimizer's length, its reduction of the model, and where it lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ExactStep {
    pub(super) length: f64,
    pub(super) predicted: f64,
    pub(super) exit: Exit,
}

impl DenseRegion {
    /// Space for up to `most` rows.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            matrix: vec![0.0; most * most],
            vectors: vec![0.0; most * most],
            solution: vec![0.0; most],
            rotated: vec![[0.0; 2]; most],
        }
    }
    /// The place of an element in [`Self::matrix`].
    pub(super) fn place(&self, i: usize, j: usize) -> usize {
        i * self.most + j
    }

    /// Minimizes ‖g‖z₁ + ½zᵀBz over ‖z‖ ≤ `radius`, where B is the first n rows and columns of [`Self::matrix`].
    ///
    /// With the eigenvalues λ and the gradient a in the basis of the eigenvectors, zᵢ = −aᵢ/(λᵢ + σ). The shift σ ≥ 0 is 0
    /// inside, else the root of ‖z(σ)‖ = Δ, which Newton's method on 1/‖z‖ approaches from the left (Moré and Sorensen
    /// 1983). In the hard case the step is completed along the eigenvector of the least eigenvalue.
    pub(super) fn minimize(&mut self, n: usize, gradient: f64, radius: f64) -> ExactStep {
        self.diagonalize(n);
        let eigenvalue = |region: &Self, i: usize| region.matrix[region.place(i, i)];
        for i in 0..n {
            self.rotated[i] = [gradient * self.vectors[i], 0.0]; // the first row
        }
        let least = (0..n).min_by(|&i, &j| eigenvalue(self, i).total_cmp(&eigenvalue(self, j))).unwrap_or(0);
        let lowest = eigenvalue(self, least);
        // Every shift below this one leaves some |zᵢ| > Δ.
        let outside = |i: usize| self.rotated[i][0].abs() / radius - eigenvalue(self, i);
        let mut sigma = (0..n).map(outside).fold((-lowest).max(0.0), f64::max);
        let mut exit = Exit::Boundary;
        if lowest > 0.0 && self.shift(n, 0.0)[0] <= radius * radius {
            (sigma, exit) = (0.0, Exit::Interior);
        }
        let mut squared = 0.0;
        for _ in 0..50 {
            let [length_squared, slope] = self.shift(n, sigma);
            squared = length_squared;
            let excess = squared.sqrt() / radius - 1.0;
            let next = sigma + excess * squared / slope;
            if exit == Exit::Interior || !(excess > 1e-10 && next > sigma) {
                break;
            }
            sigma = next;
        }
        let mut predicted: f64 = (0..n)
            .map(|i| {
                let [a, z] = self.rotated[i];
                -0.5 * a * z + 0.5 * sigma * z * z
            })
            .sum();
        if exit == Exit::Boundary && squared < (1.0 - 1e-6) * radius * radius {
            let rest = (radius * radius - squared).max(0.0);
            let [a, z] = self.rotated[least];
            let sign = if a > 0.0 { -1.0 } else { 1.0 };
            let longer = sign * (z * z + rest).sqrt();
            // m(z) along this eigenvector: az + ½λz².
            predicted += a * (z - longer) + 0.5 * lowest * (z * z - longer * longer);
            self.rotated[least][1] = longer;
            squared = radius * radius;
        }
        for row in 0..n {
            let part = |i: usize| self.vectors[row * self.most + i] * self.rotated[i][1];
            self.solution[row] = (0..n).map(part).sum();
        }
        ExactStep { length: squared.sqrt(), predicted, exit }
    }

    /// z(σ); returns ‖z‖² and Σ zᵢ²/(λᵢ + σ). A component without gradient stays 0.
    fn shift(&mut self, n: usize, sigma: f64) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for i in 0..n {
            let shifted = self.matrix[i * self.most + i] + sigma;
            let [a, z] = &mut self.rotated[i];
            *z = if *a == 0.0 || shifted <= 0.0 { 0.0 } else { -*a / shifted };
            sums[0] += *z * *z;
            sums[1] += if *z == 0.0 { 0.0 } else { *z * *z / shifted };
        }
        sums
    }

    /// Jacobi's rotations, until the rest beside the diagonal is below rounding.
    fn diagonalize(&mut self, n: usize) {
        let most = self.most;
        for i in 0..n {
            (0..n).for_each(|j| self.vectors[i * most + j] = f64::from(u8::from(i == j)));
        }
        for _ in 0..30 {
            let mut turned = false;
            for p in 0..n {
                for q in p + 1..n {
                    turned |= self.rotate(n, p, q);
                }
            }
            if !turned {
                break;
            }
        }
    }

    /// Makes the element (p, q) zero. Returns false if it is zero beside the diagonal.
    fn rotate(&mut self, n: usize, p: usize, q: usize) -> bool {
        let (most, b) = (self.most, &mut self.matrix);
        let (off, pp, qq) = (b[p * most + q], b[p * most + p], b[q * most + q]);
        if off.abs() <= f64::EPSILON * 0.1 * (pp.abs() * qq.abs()).sqrt() || off.abs() < f64::MIN_POSITIVE {
            b[p * most + q] = 0.0;
            b[q * most + p] = 0.0;
            return false;
        }
        let theta = 0.5 * (qq - pp) / off;
        let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
        let c = (t * t + 1.0).sqrt().recip();
        let s = t * c;
        for i in 0..n {
            let (x, y) = (b[i * most + p], b[i * most + q]);
            (b[i * most + p], b[i * most + q]) = (c * x - s * y, s * x + c * y);
            let v = &mut self.vectors;
            let (x, y) = (v[i * most + p], v[i * most + q]);
            (v[i * most + p], v[i * most + q]) = (c * x - s * y, s * x + c * y);
        }
        for i in 0..n {
            let (x, y) = (b[p * most + i], b[q * most + i]);
            (b[p * most + i], b[q * most + i]) = (c * x - s * y, s * x + c * y);
        }
        b[p * most + q] = 0.0;
        b[q * most + p] = 0.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const N: usize = 5;

    /// m(z) = g·z₁ + ½zᵀBz.
    fn model(b: &[f64], g: f64, z: &[f64]) -> f64 {
        let quadratic: f64 = (0..N * N).map(|k| z[k / N] * b[k] * z[k % N]).sum();
        g * z[0] + 0.5 * quadratic
    }

    proptest! {
        #[test]
        fn no_point_of_the_region_is_better(
            a in prop::collection::vec(-2.0..2.0_f64, N * N), g in 0.0..5.0_f64, radius in 1e-3..10.0_f64,
            others in prop::collection::vec(prop::collection::vec(-1.0..1.0_f64, N), 50),
        ) {
            let b: Vec<f64> = (0..N * N).map(|k| 0.5 * (a[k] + a[k % N * N + k / N])).collect();
            let mut region = DenseRegion::new(N);
            region.matrix.copy_from_slice(&b);
            let step = region.minimize(N, g, radius);
            let z = region.solution.clone();
            let length = z.iter().map(|z| z * z).sum::<f64>().sqrt();
            prop_assert!(length <= radius * (1.0 + 1e-9) && (length - step.length).abs() <= 1e-6 * radius);
            let found = model(&b, g, &z);
            prop_assert!((found + step.predicted).abs() <= 1e-6 * (1.0 + found.abs()), "{found} is not {}", -step.predicted);
            for other in others {
                let size = other.iter().map(|z| z * z).sum::<f64>().sqrt().max(1e-3);
                for share in [0.3, 1.0] {
                    let other: Vec<f64> = other.iter().map(|z| z * share * radius / size).collect();
                    prop_assert!(model(&b, g, &other) >= found - 1e-6 * (1.0 + found.abs()));
                }
            }
        }
    }

    #[test]
    fn the_hard_case_and_a_region_that_contains_the_minimizer() {
        let mut region = DenseRegion::new(2);
        region.matrix.copy_from_slice(&[2.0, 0.0, 0.0, 4.0]);
        let step = region.minimize(2, 4.0, 10.0);
        assert_eq!((step.exit, step.length, step.predicted), (Exit::Interior, 2.0, 4.0));
        assert_eq!(region.solution, [-2.0, 0.0]);
        // The gradient has no part along the eigenvector of −1.
        region.matrix.copy_from_slice(&[2.0, 0.0, 0.0, -1.0]);
        let step = region.minimize(2, 3.0, 2.0);
        assert_eq!(step.exit, Exit::Boundary);
        assert!((region.solution[0] + 1.0).abs() < 1e-9 && (region.solution[1].abs() - 3_f64.sqrt()).abs() < 1e-9);
        assert!((step.predicted - (3.0 - 1.0 + 1.5)).abs() < 1e-9);
    }
}
