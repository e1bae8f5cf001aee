//! A dual active-set method for small convex problems, in the way of Goldfarb and Idnani (1983): rows enter one by one,
//! and the factor of the active ones is updated. Differs: a multiplier that reaches its limit leaves its row violated.

use super::{
    constants::ROUNDS,
    dual::{BoxProblem, Matrix, ZERO, dot},
};

/// The free components of y, for which K_FF = LLᵀ.
struct ActiveSet<'a> {
    k: Matrix<'a>,
    free: Vec<usize>,
    /// L, row by row.
    factor: Vec<Vec<f64>>,
}

impl ActiveSet<'_> {
    /// Adds a component, and returns whether its row depends on those before. Then its pivot is 0.
    fn add(&mut self, i: usize, diagonal: f64) -> bool {
        let mut row: Vec<f64> = Vec::with_capacity(self.free.len() + 1);
        for (known, &j) in self.factor.iter().zip(&self.free) {
            let entry = self.k.entry(i, j) - dot(known, &row);
            row.push(entry / known[row.len()]);
        }
        let pivot = diagonal - dot(&row, &row);
        let depends = pivot <= ZERO * diagonal;
        row.push(if depends { 0.0 } else { pivot.sqrt() });
        self.factor.push(row);
        self.free.push(i);
        depends
    }
    /// Removes the component at this place. Rotations make L triangular again.
    fn remove(&mut self, place: usize) {
        self.free.remove(place);
        self.factor.remove(place);
        for k in place..self.free.len() {
            let (a, b) = (self.factor[k][k], self.factor[k][k + 1]);
            let length = a.hypot(b);
            let (c, s) = if length > 0.0 { (a / length, b / length) } else { (1.0, 0.0) };
            for row in &mut self.factor[k..] {
                (row[k], row[k + 1]) = (c * row[k] + s * row[k + 1], c * row[k + 1] - s * row[k]);
            }
            self.factor[k].truncate(k + 1);
        }
    }
    /// −K_FF⁻¹ times the gradient, and whether it is a minimum along this direction. If the last row depends on the others,
    /// no curvature ends the descent along its direction.
    fn direction(&self, gradient: &[f64]) -> (Vec<f64>, bool) {
        let count = self.free.len();
        let last = count.saturating_sub(1);
        let is_flat = count > 0 && self.factor[last][last] == 0.0;
        let mut d: Vec<f64> = Vec::with_capacity(count);
        if is_flat {
            d.extend(self.factor[last][..last].iter().map(|l| l * gradient[self.free[last]].signum()));
            d.push(-gradient[self.free[last]].signum());
        } else {
            for (row, &i) in self.factor.iter().zip(&self.free) {
                d.push((-gradient[i] - dot(row, &d)) / row[d.len()]);
            }
        }
        for k in (0..if is_flat { last } else { count }).rev() {
            d[k] /= self.factor[k][k];
            let (before, after) = d.split_at_mut(k);
            before.iter_mut().zip(&self.factor[k]).for_each(|(d, l)| *d -= l * after[0]);
        }
        (d, !is_flat)
    }
}

impl BoxProblem<'_> {
    /// Improves y to rounding, never increasing the objective. Returns Ky.
    pub(super) fn solve_by_rows(&self, y: &mut [f64]) -> Vec<f64> {
        let m = y.len();
        let diagonal: Vec<f64> = (0..m).map(|i| self.k.entry(i, i)).collect();
        let mut set = ActiveSet { k: self.k, free: Vec::new(), factor: Vec::new() };
        for i in (0..m).filter(|&i| self.lower[i] < y[i] && y[i] < self.upper[i] && y[i] != 0.0) {
            if set.add(i, diagonal[i]) {
                set.remove(set.free.len() - 1);
            }
        }
        let mut useless = vec![false; m];
        let mut ky = self.k.product(y);
        for _ in 0..ROUNDS + 10 * m {
            let gradient: Vec<f64> = ky.iter().zip(self.b).map(|(ky, b)| ky + b).collect();
            // What a rounding error of y or K can contribute to the gradient, without √Kᵢᵢ.
            let noise: f64 = ZERO * y.iter().zip(&diagonal).map(|(y, k)| y.abs() * k.sqrt()).sum::<f64>();
            let noise = |i: usize| noise * diagonal[i].sqrt() + ZERO * self.b[i].abs();
            if set.free.iter().all(|&i| gradient[i].abs() <= noise(i)) {
                let held = |i: usize| {
                    (y[i] <= self.lower[i] && gradient[i] >= 0.0) || (y[i] >= self.upper[i] && gradient[i] <= 0.0)
                };
                // The decrease per length of y, in the norm of K's diagonal.
                let steepness = |i: usize| gradient[i].abs() / diagonal[i].max(f64::MIN_POSITIVE).sqrt();
                let worst = (0..m).filter(|&i| !useless[i] && gradient[i].abs() > noise(i) && !held(i));
                let Some(i) = worst.max_by(|&i, &j| steepness(i).total_cmp(&steepness(j))) else { break };
                set.add(i, diagonal[i]);
            }
            let (direction, curved) = set.direction(&gradient);
            // The longest part of the step within the limits.
            let (mut share, mut blocked) = (if curved { 1.0 } else { f64::INFINITY }, None);
            for (place, (&i, &d)) in set.free.iter().zip(&direction).enumerate() {
                let limit = if d > 0.0 { self.upper[i] } else { self.lower[i] };
                if d != 0.0 && (limit - y[i]) / d < share {
                    (share, blocked) = (((limit - y[i]) / d).max(0.0), Some((place, limit)));
                }
            }
            if !share.is_finite() {
                // Rounding alone makes rows contradict each other without a limit.
                useless[set.free[set.free.len() - 1]] = true;
                set.remove(set.free.len() - 1);
                continue;
            }
            for (&i, d) in set.free.iter().zip(&direction) {
                y[i] = (y[i] + share * d).clamp(self.lower[i], self.upper[i]);
            }
            if let Some((place, limit)) = blocked {
                y[set.free[place]] = limit;
                set.remove(place);
            }
            ky = self.k.product(y);
        }
        ky
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    /// Numbers without order, between −1 and 1.
    fn numbers(count: usize, seed: usize) -> impl Fn(usize, usize) -> f64 {
        // Sines of a linear function alone would be a matrix of rank 2. Their last digits have no order.
        move |i, j| {
            2.0 * (1e5 * ((i * count + j + 1) as f64 * 12.9898 + seed as f64 * 78.233).sin()).rem_euclid(1.0) - 1.0
        }
    }

    /// ½‖Gy‖² + bᵀy
    fn objective(g: &Mat<f64>, b: &[f64], y: &[f64]) -> f64 {
        let gy = crate::methods::str_sqp::dual::combined(g, y);
        0.5 * dot(&gy, &gy) + dot(b, y)
    }

    fn solve(g: &Mat<f64>, b: &[f64], lower: &[f64], upper: &[f64], start: &[f64]) -> Vec<f64> {
        let mut y = start.to_vec();
        let ky = BoxProblem { k: Matrix::Gram(g), b, lower, upper, accuracy: 0.0 }.solve(&mut y);
        let k = g.transpose() * g;
        let again = Matrix::Formed(&k).product(&y);
        assert!(ky.iter().zip(again).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + b.abs())));
        for i in 0..y.len() {
            let slope = ky[i] + b[i];
            assert!((lower[i]..=upper[i]).contains(&y[i]));
            let rounding = 1e-11 * (1.0 + b[i].abs() + y.iter().map(|y| y.abs()).sum::<f64>());
            assert!(y[i] <= lower[i] || slope <= rounding, "slope {slope:e} at {i}");
            assert!(y[i] >= upper[i] || slope >= -rounding, "slope {slope:e} at {i}");
        }
        y
    }

    #[test]
    fn no_choice_of_active_limits_is_better() {
        for seed in 0..40 {
            // With two unknowns every third row depends on the others.
            let (m, n) = (5, 2 + seed % 4);
            let entry = numbers(m, seed);
            let g = Mat::from_fn(n, m, &entry);
            let b: Vec<f64> = (0..m).map(|i| 3.0 * entry(n, i)).collect();
            let lower: Vec<f64> = (0..m).map(|i| if i % 2 == 0 { -1.5 } else { 0.0 }).collect();
            let y = solve(&g, &b, &lower, &[1.5; 5], &[0.0; 5]);
            let best = objective(&g, &b, &y);
            // Every component is at a limit or free, on a grid: none is lower.
            for choice in 0..5_usize.pow(5) {
                let at = |i: usize| (choice / 5_usize.pow(i as u32)) % 5;
                let other: Vec<f64> = (0..m).map(|i| lower[i] + (1.5 - lower[i]) * at(i) as f64 / 4.0).collect();
                assert!(objective(&g, &b, &other) >= best - 1e-12, "seed {seed}: {other:?} beats {y:?}");
            }
        }
    }

    #[test]
    fn any_start_leads_to_the_same_minimum() {
        let (m, n) = (60, 25);
        for seed in 0..20 {
            let entry = numbers(m, seed);
            let g = Mat::from_fn(n, m, &entry);
            let b: Vec<f64> = (0..m).map(|i| entry(n, i)).collect();
            let (lower, upper) = (vec![0.0; m], vec![0.4; m]);
            let cold = solve(&g, &b, &lower, &upper, &vec![0.0; m]);
            let start: Vec<f64> = (0..m).map(|i| entry(n + 1, i).abs() * 0.4).collect();
            let warm = solve(&g, &b, &lower, &upper, &start);
            let difference = objective(&g, &b, &cold) - objective(&g, &b, &warm);
            assert!(difference.abs() < 1e-12, "{difference:e}");
        }
    }

    #[test]
    fn rows_that_meet_in_one_vertex_do_not_cycle() {
        // Forty half-spaces through one point of three dimensions: most are degenerate there.
        let (m, n) = (40, 3);
        let entry = numbers(m, 3);
        let g = Mat::from_fn(n, m, |i, j| if i == 0 { 1.0 } else { entry(i, j) });
        let y = solve(&g, &vec![-1.0; m], &vec![0.0; m], &vec![f64::INFINITY; m], &vec![0.0; m]);
        let step = crate::methods::str_sqp::dual::combined(&g, &y);
        assert!((0..m).all(|j| dot(g.col_as_slice(j), &step) >= 1.0 - 1e-12), "{step:?}");
    }

    #[test]
    fn rows_that_repeat_or_contradict_others_end_at_their_limits() {
        let g = Mat::from_fn(2, 4, |i, j| if i == j % 2 { 1.0 } else { 0.0 });
        let y = solve(&g, &[-1.0, -1.0, -1.0, 2.0], &[-9.0; 4], &[9.0; 4], &[0.0; 4]);
        assert!((y[0] + y[2] - 1.0).abs() < 1e-12, "{y:?}");
        assert_eq!((y[1], y[3]), (9.0, -9.0), "{y:?}");
    }

    #[test]
    fn removed_rows_leave_the_factor_of_the_others() {
        let entry = numbers(8, 1);
        let g = Mat::from_fn(9, 8, &entry);
        let mut set = ActiveSet { k: Matrix::Gram(&g), free: Vec::new(), factor: Vec::new() };
        for i in 0..8 {
            assert!(!set.add(i, set.k.entry(i, i)));
        }
        for place in [0, 3, 5] {
            set.remove(place);
        }
        assert_eq!(set.free, [1, 2, 3, 5, 6]);
        for (a, &i) in set.free.iter().enumerate() {
            for (b, &j) in set.free.iter().enumerate().take(a + 1) {
                let product = dot(&set.factor[a][..=b], &set.factor[b]);
                assert!((product - set.k.entry(i, j)).abs() < 1e-12);
            }
        }
    }
}
