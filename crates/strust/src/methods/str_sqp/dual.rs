//! The dual of the step's problem: a quadratic problem with bounds.

use super::constants::{NEGLIGIBLE, ROUNDING, ROUNDS, SMALL};
use faer::{Mat, Side, linalg::solvers::Llt};

/// K of a [`BoxProblem`].
#[derive(Clone, Copy)]
pub(super) enum Matrix<'a> {
    /// Its entries.
    Formed(&'a Mat<f64>),
    /// G of K = GᵀG.
    Gram(&'a Mat<f64>),
    /// y ↦ Ky.
    Products(&'a dyn Fn(&[f64]) -> Vec<f64>),
}

impl Matrix<'_> {
    /// Kᵢⱼ of a matrix that is known by its entries.
    pub fn entry(&self, i: usize, j: usize) -> f64 {
        match self {
            Self::Formed(k) => k[(i, j)],
            Self::Gram(g) => dot(column(g, i), column(g, j)),
            Self::Products(_) => f64::NAN,
        }
    }
    /// Ky.
    pub fn product(&self, y: &[f64]) -> Vec<f64> {
        match self {
            Self::Formed(k) => (0..y.len()).map(|i| dot(column(k, i), y)).collect(),
            Self::Gram(g) => {
                let gy = combined(g, y);
                (0..y.len()).map(|i| dot(column(g, i), &gy)).collect()
            }
            Self::Products(product) => product(y),
        }
    }
}

/// Gy.
pub(super) fn combined(g: &Mat<f64>, y: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; g.nrows()];
    for (j, &y) in y.iter().enumerate().filter(|(_, y)| **y != 0.0) {
        sum.iter_mut().zip(column(g, j)).for_each(|(sum, g)| *sum += y * g);
    }
    sum
}

/// A column of a matrix.
pub(super) fn column(g: &Mat<f64>, j: usize) -> &[f64] {
    g.col_as_slice(j)
}

/// min ½yᵀKy + bᵀy with lower ≤ y ≤ upper, for a symmetric K without negative eigenvalues.
pub(super) struct BoxProblem<'a> {
    pub k: Matrix<'a>,
    pub b: &'a [f64],
    pub lower: &'a [f64],
    pub upper: &'a [f64],
    /// The relative error of a solution by products. A matrix that is formed is solved to rounding.
    pub accuracy: f64,
}

impl BoxProblem<'_> {
    /// Improves y, never increasing the objective, and returns Ky.
    pub fn solve(&self, y: &mut [f64]) -> Vec<f64> {
        for (y, (&lower, &upper)) in y.iter_mut().zip(self.lower.iter().zip(self.upper)) {
            *y = y.clamp(lower, upper);
        }
        match self.k {
            Matrix::Products(product) => self.solve_by_products(product, y),
            Matrix::Formed(_) | Matrix::Gram(_) => self.solve_by_rows(y),
        }
    }

    /// Conjugate gradients over the components that no bound holds, then the longest part of the step that decreases the
    /// objective after it is clipped to the bounds; again until no free component has a slope.
    fn solve_by_products(&self, product: &dyn Fn(&[f64]) -> Vec<f64>, y: &mut [f64]) -> Vec<f64> {
        let mut ky = if y.iter().any(|&y| y != 0.0) { product(y) } else { vec![0.0; y.len()] };
        let size = norm(self.b).max(norm(&ky));
        for _ in 0..ROUNDS {
            let gradient: Vec<f64> = ky.iter().zip(self.b).map(|(ky, b)| ky + b).collect();
            let held = |i: usize| {
                self.lower[i] >= self.upper[i]
                    || (y[i] <= self.lower[i] && gradient[i] >= 0.0)
                    || (y[i] >= self.upper[i] && gradient[i] <= 0.0)
            };
            let free: Vec<bool> = (0..y.len()).map(|i| !held(i)).collect();
            let descent: Vec<f64> = free.iter().zip(&gradient).map(|(&free, g)| if free { -g } else { 0.0 }).collect();
            if norm(&descent) <= self.accuracy * size {
                break;
            }
            let (direction, of_direction) = self.on_face(product, &free, descent, self.accuracy * size);
            let mut share = 1.0;
            loop {
                let clipped = |i: usize| (y[i] + share * direction[i]).clamp(self.lower[i], self.upper[i]);
                let step: Vec<f64> = (0..y.len()).map(|i| clipped(i) - y[i]).collect();
                let inside = (0..y.len()).all(|i| clipped(i).to_bits() == (y[i] + share * direction[i]).to_bits());
                let of_step = if inside { of_direction.iter().map(|k| share * k).collect() } else { product(&step) };
                let change = dot(&gradient, &step) + 0.5 * dot(&step, &of_step);
                if change <= 0.0 {
                    y.iter_mut().zip(&step).for_each(|(y, step)| *y += step);
                    ky.iter_mut().zip(&of_step).for_each(|(ky, step)| *ky += step);
                    break;
                }
                share *= 0.5;
                if share < f64::EPSILON {
                    return ky;
                }
            }
        }
        ky
    }

    /// Solves Kd = r over the free components to the accuracy `enough`. Returns d and Kd.
    fn on_face(
        &self,
        product: &dyn Fn(&[f64]) -> Vec<f64>,
        free: &[bool],
        mut r: Vec<f64>,
        enough: f64,
    ) -> (Vec<f64>, Vec<f64>) {
        let (mut d, mut kd) = (vec![0.0; r.len()], vec![0.0; r.len()]);
        let (mut q, mut square) = (r.clone(), dot(&r, &r));
        let mut largest = 0.0_f64;
        // Without rounding, as many products as rows suffice.
        for _ in 0..ROUNDS.min(2 * r.len()) {
            let kq = product(&q);
            let curvature = dot(&q, &kq);
            largest = largest.max(curvature / dot(&q, &q));
            // Rows that contradict each other have no curvature along q: only a bound ends the descent there.
            let flat = curvature <= ZERO * largest * dot(&q, &q);
            let room = || (0..q.len()).filter(|&i| q[i] != 0.0).map(|i| (self.upper[i] - self.lower[i]) / q[i].abs());
            let length = if flat { room().fold(0.0, f64::max) } else { square / curvature };
            if !length.is_finite() {
                break;
            }
            for i in 0..q.len() {
                d[i] += length * q[i];
                kd[i] += length * kq[i];
                r[i] -= if free[i] { length * kq[i] } else { 0.0 };
            }
            let next = dot(&r, &r);
            if flat || next.sqrt() <= enough {
                break;
            }
            q.iter_mut().zip(&r).for_each(|(q, r)| *q = r + next / square * *q);
            square = next;
        }
        (d, kd)
    }
}

/// Relative to the sum of which it is a part, this is 0.
pub(super) const ZERO: f64 = ROUNDING * f64::EPSILON;

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Several sums at once, which the compiler can do in parallel.
    let (mut sums, n) = ([0.0; 8], a.len().min(b.len()));
    let (a, b) = (a[..n].chunks_exact(8), b[..n].chunks_exact(8));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for k in 0..8 {
            sums[k] += a[k] * b[k];
        }
    }
    sums.iter().sum::<f64>() + rest
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// The Cholesky factor of a symmetric matrix without negative eigenvalues. The first multiple of its largest entry that
/// suffices makes dependent rows independent.
pub(super) fn factor(n: usize, entry: impl Fn(usize, usize) -> f64) -> Option<Llt<f64>> {
    let largest = (0..n).map(|i| entry(i, i)).fold(0.0, f64::max);
    let ridges = std::iter::successors(Some(f64::EPSILON), |ridge| Some(ridge / SMALL));
    ridges.take_while(|ridge| *ridge < NEGLIGIBLE).find_map(|ridge| {
        let ridged = Mat::from_fn(n, n, |i, j| entry(i, j) + if i == j { ridge * largest } else { 0.0 });
        ridged.llt(Side::Lower).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solve(k: &[&[f64]], b: &[f64], lower: &[f64], upper: &[f64]) -> Vec<f64> {
        let k = Mat::from_fn(b.len(), b.len(), |i, j| k[i][j]);
        let mut y = vec![0.0; b.len()];
        BoxProblem { k: Matrix::Formed(&k), b, lower, upper, accuracy: 0.0 }.solve(&mut y);
        // The same by products.
        let products = |y: &[f64]| (0..b.len()).map(|i| (0..b.len()).map(|j| k[(i, j)] * y[j]).sum()).collect();
        let mut again = vec![0.0; b.len()];
        let kz = BoxProblem { k: Matrix::Products(&products), b, lower, upper, accuracy: 1e-11 }.solve(&mut again);
        let ky: Vec<f64> = products(&y);
        assert!(ky.iter().zip(kz).all(|(y, z)| (y - z).abs() < 1e-9), "{y:?} {again:?}");
        y
    }

    #[test]
    fn without_active_bounds_it_solves_the_equations() {
        let y = solve(&[&[4.0, 1.0], &[1.0, 3.0]], &[-1.0, -2.0], &[-9.0; 2], &[9.0; 2]);
        assert!((y[0] - 1.0 / 11.0).abs() < 1e-14 && (y[1] - 7.0 / 11.0).abs() < 1e-14, "{y:?}");
    }
    #[test]
    fn bounds_hold_exactly() {
        let y = solve(&[&[4.0, 1.0], &[1.0, 3.0]], &[-1.0, -2.0], &[0.0; 2], &[1.0, 0.5]);
        assert!((y[0] - 0.125).abs() < 1e-14 && y[1].to_bits() == 0.5_f64.to_bits(), "{y:?}");
    }
    #[test]
    fn dependent_rows_that_agree_share_their_multiplier() {
        let y = solve(&[&[1.0, 1.0], &[1.0, 1.0]], &[-1.0, -1.0], &[-9.0; 2], &[9.0; 2]);
        assert!((y[0] + y[1] - 1.0).abs() < 1e-12, "{y:?}");
    }
    #[test]
    fn dependent_rows_that_contradict_each_other_end_at_their_bounds() {
        let y = solve(&[&[1.0, 1.0], &[1.0, 1.0]], &[-1.0, 1.0], &[-9.0; 2], &[9.0; 2]);
        assert_eq!(y, [9.0, -9.0]);
    }
    #[test]
    fn no_row_has_no_multiplier() {
        assert!(solve(&[], &[], &[], &[]).is_empty());
    }
}
