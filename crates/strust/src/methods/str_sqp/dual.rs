//! The dual of the step's problem: a small quadratic problem with bounds.

use faer::{Mat, Side, prelude::Solve};

/// min ½yᵀKy + bᵀy with lower ≤ y ≤ upper, for a symmetric K without negative eigenvalues.
#[derive(Debug)]
pub(super) struct BoxProblem<'a> {
    pub k: &'a Mat<f64>,
    pub b: &'a [f64],
    pub lower: &'a [f64],
    pub upper: &'a [f64],
}

/// Rounds until the solver gives up. It needs a few; the number grows slowly with the changes of the active set.
const ROUNDS: usize = 200;
/// The gradient's relative error in the solution.
const TOLERANCE: f64 = 1e-13;

impl BoxProblem<'_> {
    /// Improves y: one pass of coordinate descent finds the active bounds, then a Newton step solves for the others.
    /// Each part decreases the objective, so that even dependent rows of K do no harm.
    pub fn solve(&self, y: &mut [f64]) {
        for (y, (&lower, &upper)) in y.iter_mut().zip(self.lower.iter().zip(self.upper)) {
            *y = y.clamp(lower, upper);
        }
        let mut gradient = vec![0.0; y.len()];
        for _ in 0..ROUNDS {
            self.descend_by_coordinates(y);
            self.gradient(y, &mut gradient);
            let size = |i: usize| {
                let row = (0..y.len()).map(|j| (self.k[(i, j)] * y[j]).abs()).fold(0.0, f64::max);
                self.b[i].abs().max(row)
            };
            let open = |i: usize| !self.is_held(i, y[i], gradient[i]);
            if (0..y.len()).all(|i| !open(i) || gradient[i].abs() <= TOLERANCE * size(i)) {
                return;
            }
            let free: Vec<usize> = (0..y.len()).filter(|&i| open(i)).collect();
            let Some(direction) = self.newton(&free, &gradient) else { return };
            if !self.search(y, &free, &direction, &gradient) {
                return;
            }
        }
    }

    fn gradient(&self, y: &[f64], gradient: &mut [f64]) {
        for (i, g) in gradient.iter_mut().enumerate() {
            *g = self.b[i] + y.iter().enumerate().map(|(j, y)| self.k[(i, j)] * y).sum::<f64>();
        }
    }
    /// Whether yᵢ is at a bound that the gradient pushes against.
    fn is_held(&self, i: usize, y: f64, gradient: f64) -> bool {
        (y <= self.lower[i] && gradient >= 0.0) || (y >= self.upper[i] && gradient <= 0.0)
    }
    fn descend_by_coordinates(&self, y: &mut [f64]) {
        for i in 0..y.len() {
            let slope = self.b[i] + (0..y.len()).map(|j| self.k[(i, j)] * y[j]).sum::<f64>();
            if self.k[(i, i)] > 0.0 {
                y[i] = (y[i] - slope / self.k[(i, i)]).clamp(self.lower[i], self.upper[i]);
            }
        }
    }
    /// −K⁻¹·gradient over the free components. A small multiple of the diagonal makes dependent rows independent.
    fn newton(&self, free: &[usize], gradient: &[f64]) -> Option<Vec<f64>> {
        let largest = free.iter().map(|&i| self.k[(i, i)]).fold(0.0, f64::max);
        let mut ridge = 1e-14 * largest;
        for _ in 0..8 {
            let part = Mat::from_fn(free.len(), free.len(), |i, j| {
                self.k[(free[i], free[j])] + if i == j { ridge } else { 0.0 }
            });
            if let Ok(factor) = part.llt(Side::Lower) {
                let solved = factor.solve(Mat::from_fn(free.len(), 1, |i, _| -gradient[free[i]]));
                return Some((0..free.len()).map(|i| solved[(i, 0)]).collect());
            }
            ridge *= 10.0;
        }
        None
    }
    /// Moves along the direction, bent at the bounds, until the objective decreases enough. Returns whether it moved.
    fn search(&self, y: &mut [f64], free: &[usize], direction: &[f64], gradient: &[f64]) -> bool {
        let mut share = 1.0;
        for _ in 0..40 {
            let mut moved = y.to_vec();
            for (&i, d) in free.iter().zip(direction) {
                moved[i] = (y[i] + share * d).clamp(self.lower[i], self.upper[i]);
            }
            let step: Vec<f64> = moved.iter().zip(&*y).map(|(new, old)| new - old).collect();
            let slope: f64 = step.iter().zip(gradient).map(|(s, g)| s * g).sum();
            let curvature: f64 =
                (0..y.len()).map(|i| step[i] * (0..y.len()).map(|j| self.k[(i, j)] * step[j]).sum::<f64>()).sum();
            if slope + 0.5 * curvature <= 1e-4 * slope && slope < 0.0 {
                y.copy_from_slice(&moved);
                return true;
            }
            share *= 0.5;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solve(k: &[&[f64]], b: &[f64], lower: &[f64], upper: &[f64]) -> Vec<f64> {
        let k = Mat::from_fn(b.len(), b.len(), |i, j| k[i][j]);
        let mut y = vec![0.0; b.len()];
        BoxProblem { k: &k, b, lower, upper }.solve(&mut y);
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
        assert!((y[0] - 0.125).abs() < 1e-14 && y[1] == 0.5, "{y:?}");
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
