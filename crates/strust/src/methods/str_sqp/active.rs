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
