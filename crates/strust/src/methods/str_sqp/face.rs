//! Rows that a step keeps at 0, and the projection onto the steps that do.

use super::{constants::SMALL, dual::factor, linear::Linearized};
use crate::{constraints::Constraint, vector::Vector};
use faer::{Mat, linalg::solvers::Llt, prelude::Solve};

/// The held rows A_w of A.
pub(super) struct Face<'a, C: Constraint> {
    linear: &'a Linearized<'a, C>,
    held: Vec<bool>,
    /// If the rows are formed: those that are held, A_wA_wᵀ and its factor.
    formed: Option<(Vec<usize>, Mat<f64>, Llt<f64>)>,
}

impl<'a, C: Constraint> Face<'a, C> {
    /// `None` if A_wA_wᵀ is not finite.
    pub fn new(linear: &'a Linearized<'a, C>, held: Vec<bool>) -> Option<Self> {
        let formed = match &linear.formed {
            None => None,
            Some(rows) => {
                let held: Vec<usize> = (0..rows.len()).filter(|&i| held[i]).collect();
                let gram = Mat::from_fn(held.len(), held.len(), |i, j| rows[held[i]].dot(&rows[held[j]]));
                let factor = factor(held.len(), |i, j| gram[(i, j)])?;
                Some((held, gram, factor))
            }
        };
        Some(Self { linear, held, formed })
    }
    /// This face with one more row.
    pub fn with(self, row: usize) -> Option<Self> {
        let Self { linear, mut held, .. } = self;
        held[row] = true;
        Self::new(linear, held)
    }
    pub fn holds(&self, row: usize) -> bool {
        self.held[row]
    }
    /// y with A_wA_wᵀy = b over the held rows, and 0 for the others.
    fn solve(&self, b: &[f64]) -> Vec<f64> {
        let Some((held, gram, factor)) = &self.formed else {
            let limit = |held: &bool| if *held { f64::INFINITY } else { 0.0 };
            let upper: Vec<f64> = self.held.iter().map(limit).collect();
            let lower: Vec<f64> = upper.iter().map(|upper| -upper).collect();
            let b: Vec<f64> = self.held.iter().zip(b).map(|(held, b)| if *held { -b } else { 0.0 }).collect();
            return self.linear.least_squares(&b, &lower, &upper);
        };
        let right = Mat::from_fn(held.len(), 1, |i, _| b[held[i]]);
        let mut solved = factor.solve(&right);
        // The ridge and rounding leave an error, which the same factor reduces.
        let left = &right - gram * &solved;
        solved += factor.solve(&left);
        let mut y = vec![0.0; b.len()];
        held.iter().enumerate().for_each(|(i, &row)| y[row] = solved[(i, 0)]);
        y
    }
    /// −A_wᵀ(A_wA_wᵀ)⁻¹c: the shortest step that changes the held rows by −c.
    pub fn normal(&self, c: &[f64]) -> C::Point {
        let mut y = self.solve(c);
        y.scale(-1.0);
        self.linear.transposed(&y)
    }
    /// v ← v + A_wᵀy with A_w(v + A_wᵀy) = 0. Returns y.
    pub fn project(&self, v: &mut C::Point) -> Vec<f64> {
        let mut y = vec![0.0; self.held.len()];
        if !self.held.contains(&true) {
            return y;
        }
        for _ in 0..2 {
            let before = v.norm();
            let mut more = self.solve(&self.linear.product(v));
            more.scale(-1.0);
            self.linear.add_transposed(&more, v);
            y.add(1.0, &more);
            // Where little is left, rounding has spoiled it.
            if v.norm() > SMALL * before {
                break;
            }
        }
        y
    }
}
