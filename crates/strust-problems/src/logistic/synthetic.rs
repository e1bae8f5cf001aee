//! Synthetic data for logistic regression.

use super::{Logistic, OWNER};
use crate::{
    classified::shuffled,
    features::Csr,
    numerics::{DATA, at_least_one, dot, fill, normals, out_of_range},
    rows::Rows,
};
use faer::Mat;
use strust::{Error, sample::generator, vector::Vector};

/// The stream that decides in which rows a rare feature occurs.
const RARE: u64 = DATA + 18;

impl Logistic {
    /// n points in ℝᵈ that the hyperplane wᵀa = 0 separates, with yᵢwᵀaᵢ ≥ `margin` > 0 for a random unit vector w. The
    /// labels alternate, and λ = 0.
    ///
    /// The infimum of f is 0. f approaches it along t·w as t → ∞ but does not attain it: f interpolates in the limit.
    ///
    /// ```
    /// use strust_problems::{Logistic, Problem};
    /// let problem = Logistic::separable(100, 5, 0.5, 0)?;
    /// assert_eq!(problem.optimum(), Some(0.0));
    /// assert_eq!(problem.with_regularization(1e-3)?.optimum(), None);
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn separable(n: usize, d: usize, margin: f64, seed: u64) -> Result<Self, Error> {
        at_least_one(OWNER, "n", n)?;
        at_least_one(OWNER, "d", d)?;
        if !(margin.is_finite() && margin > 0.0) {
            return Err(out_of_range(OWNER, "margin", margin, "finite and > 0"));
        }
        let mut next = normals(seed, DATA);
        let mut w: Vec<f64> = (0..d).map(|_| next()).collect();
        let norm = w.norm();
        for v in &mut w {
            *v /= norm;
        }
        let signs: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let mut rows: Mat<f64> = fill(d, n, next);
        for (i, sign) in signs.iter().enumerate() {
            // Move the component along w to the right side of the margin, and keep the others.
            let row = rows.col_as_slice_mut(i);
            let along = dot(row, &w);
            let shift = sign * (along.abs() + margin) - along;
            row.iter_mut().zip(&w).for_each(|(a, w)| *a += shift * w);
        }
        Ok(Self::separated(Rows::Dense(rows), signs, w))
    }

    /// Sparse data with rare features, as in text: feature j = 1, …, d is 1 in n·j⁻ˢ rows, rounded but at least one, and
    /// 0 in all others. s = `exponent`. So with s = 1 feature 1000 occurs in one of 1000 rows. The first feature occurs
    /// in every row: it is the intercept.
    ///
    /// A model w with weights N(0, 1) gives the labels, yᵢ = sign wᵀaᵢ, with the intercept that makes both classes
    /// about equally large. So the classes are separable, and the infimum of f is 0 with λ = 0.
    ///
    /// ```
    /// use strust_problems::{Logistic, Problem};
    /// let problem = Logistic::rare(1000, 200, 1.0, 0)?;
    /// assert_eq!((problem.parameters(), problem.optimum()), (200, Some(0.0)));
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn rare(n: usize, d: usize, exponent: f64, seed: u64) -> Result<Self, Error> {
        at_least_one(OWNER, "n", n)?;
        at_least_one(OWNER, "d", d)?;
        if !(exponent.is_finite() && exponent > 0.0) {
            return Err(out_of_range(OWNER, "exponent", exponent, "finite and > 0"));
        }
        let mut rng = generator(seed, RARE);
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); n];
        for j in 0..d {
            let count = (n as f64 * ((j + 1) as f64).powf(-exponent)).round().max(1.0) as usize;
            let column = u32::try_from(j).map_err(|_| out_of_range(OWNER, "d", d, "below 2³²"))?;
            shuffled(n, &mut rng)[..count].iter().for_each(|&i| rows[i].push(column));
        }
        let mut next = normals(seed, DATA);
        let mut w: Vec<f64> = (0..d).map(|_| next()).collect();
        let scores: Vec<f64> = rows.iter().map(|row| row.iter().map(|&j| w[j as usize]).sum()).collect();
        let cut = middle_gap(&scores).ok_or_else(|| {
            out_of_range(OWNER, "n and d", format!("{n} and {d}"), "large enough that rows differ: use more of both")
        })?;
        let signs = scores.iter().map(|&score| if score > cut { 1.0 } else { -1.0 }).collect();
        w[0] -= cut;
        w.scale(1.0 / w.norm());
        let starts = std::iter::once(0).chain(rows.iter().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        }));
        let (starts, indices) = (starts.collect(), rows.concat());
        let values = vec![1.0; indices.len()];
        Ok(Self::separated(Rows::Sparse(Csr::new(d, starts, indices, values)?), signs, w))
    }

    /// Data that the hyperplane wᵀa = 0 separates.
    fn separated(rows: Rows, signs: Vec<f64>, w: Vec<f64>) -> Self {
        Self { separator: Some(w), ..Self::of(rows, signs, [-1.0, 1.0], 0.0) }
    }
}

/// The center of a gap between two different numbers, as close to the median as possible; `None` if all are equal.
fn middle_gap(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gaps = (1..sorted.len()).filter(|&i| sorted[i - 1] < sorted[i]);
    let i = gaps.min_by_key(|&i| (2 * i).abs_diff(sorted.len()))?;
    Some(0.5 * (sorted[i - 1] + sorted[i]))
}
