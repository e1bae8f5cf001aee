//! Softmax regression with many classes.

use crate::{
    Convex, Problem,
    classified::{distinct, is_right, replace_labels, split_last, split_rows, targets},
    convex::{Curved, minimum_by_newton},
    features::Labeled,
    numerics::{Evaluate, START, axpy, dot, evaluated, fill, normals, not_negative, out_of_range, shape},
    rows::Rows,
    split::SplitRows,
};
use faer::Mat;
use strust::{Error, objective::ProductKind, sample::Sample, vector::Vector};
use strust_data::loss::OutputLoss;

const OWNER: &str = "softmax regression";

/// f(W) = (1/n) Σ (log Σ_c exp(aᵢᵀw_c) − aᵢᵀw_{yᵢ}) + (λ/2)‖W‖², the mean cross-entropy. W is d×classes; column w_c
/// belongs to class c.
///
/// Labels can be any whole numbers. In increasing order they become the classes 0, 1, …. [`Self::with_intercept`] adds a
/// constant feature, which the regularizer leaves out.
///
/// ```
/// use faer::Mat;
/// use strust::prelude::*;
/// use strust_problems::{Features, Labeled, Softmax};
///
/// let features = Features::Dense(Mat::from_fn(3, 2, |i, j| (i + j) as f64));
/// let mut f = Softmax::new(Labeled { features, labels: vec![7.0, -1.0, 3.0] }, 0.0)?;
/// assert_eq!(f.classes(), [-1, 3, 7]);
/// // At 0 all classes are equally likely.
/// assert!((f.value(&Mat::zeros(2, 3), &Sample::range(0..3)).value - 3.0_f64.ln()).abs() < 1e-15);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Softmax {
    /// The rows and their classes.
    data: SplitRows<usize>,
    classes: Vec<i64>,
    regularization: f64,
    /// f*, if it was computed.
    optimum: Option<f64>,
    /// The scores of one data point, later their derivatives.
    scratch: Vec<f64>,
    /// Their derivatives along a direction.
    along: Vec<f64>,
}

impl Softmax {
    /// The number of parameters of a point.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.data.rows.columns() * self.classes.len()
    }

    /// The problem for a data set with at least two distinct whole numbers as labels, and λ = `regularization` ≥ 0.
    pub fn new(data: Labeled, regularization: f64) -> Result<Self, Error> {
        let Labeled { features, labels } = data;
        let rows = Rows::new(OWNER, features, labels.len())?;
        not_negative(OWNER, "regularization", regularization)?;
        let classes = distinct(OWNER, &labels)?;
        let data = SplitRows::new(OWNER, rows, targets(OWNER, &labels, &classes)?);
        let (scratch, along) = (vec![0.0; classes.len()], vec![0.0; classes.len()]);
        Ok(Self { data, classes, regularization, optimum: None, scratch, along })
    }

    /// Adds a test set for [`Problem::test_metric`]. It must have the same features and labels as the training
    /// set.
    pub fn with_test(mut self, test: Labeled) -> Result<Self, Error> {
        let Labeled { features, labels } = test;
        let rows = Rows::new(OWNER, features, labels.len())?;
        if rows.columns() != self.data.rows.columns() {
            let allowed = format!("{}, as in the training set", self.data.rows.columns());
            return Err(out_of_range(OWNER, "columns of the test set", rows.columns(), allowed));
        }
        self.data.test = Some((rows, targets(OWNER, &labels, &self.classes)?));
        Ok(self)
    }

    /// Holds out a test set: a fraction of each class, rounded to whole rows, drawn at random with the seed.
    pub fn with_test_share(mut self, share: f64, seed: u64) -> Result<Self, Error> {
        self.data.hold_out(split_rows(OWNER, &self.data.targets, self.classes.len(), share, seed)?)?;
        Ok(self)
    }

    /// Holds out the last rows as a test set: a fraction of all rows, rounded to whole rows.
    pub fn with_last_rows_as_test(mut self, share: f64) -> Result<Self, Error> {
        self.data.hold_out(split_last(OWNER, self.data.targets.len(), share)?)?;
        Ok(self)
    }

    /// Gives every feature mean 0 and standard deviation 1 over the training set; a feature that is constant there
    /// becomes 0. The test set changes in the same way, so hold it out first.
    pub fn standardized(mut self) -> Result<Self, Error> {
        self.data.standardize()?;
        Ok(self)
    }

    /// Adds a last feature that is always 1. The regularizer leaves its row of W out.
    pub fn with_intercept(mut self) -> Result<Self, Error> {
        self.data.add_intercept()?;
        Ok(self)
    }

    /// (λ/2)‖W‖² without the intercepts. Its gradient is added to `gradient`.
    #[inline(always)]
    fn penalty(&self, w: &Mat<f64>, gradient: Option<&mut Mat<f64>>) -> f64 {
        if !self.data.intercept {
            if let Some(gradient) = gradient {
                gradient.add(self.regularization, w);
            }
            return 0.5 * self.regularization * w.norm_squared();
        }
        let penalized = w.nrows() - 1;
        let column = |c| &w.col_as_slice(c)[..penalized];
        if let Some(gradient) = gradient {
            for c in 0..w.ncols() {
                axpy(self.regularization, column(c), &mut gradient.col_as_slice_mut(c)[..penalized]);
            }
        }
        0.5 * self.regularization * (0..w.ncols()).map(|c| dot(column(c), column(c))).sum::<f64>()
    }

    /// The share of rows that W classifies correctly.
    fn accuracy(w: &Mat<f64>, rows: &Rows, targets: &[usize], scores: &mut [f64]) -> f64 {
        let mut right = 0;
        for (i, &target) in targets.iter().enumerate() {
            for (c, score) in scores.iter_mut().enumerate() {
                *score = rows.dot(i, w.col_as_slice(c));
            }
            right += usize::from(is_right(scores, target));
        }
        right as f64 / targets.len() as f64
    }

    /// Replaces a share of the training labels, each by another class; see [`Classified::with_wrong_labels`]. Hold out a
    /// test set first: its labels stay right.
    ///
    /// [`Classified::with_wrong_labels`]: crate::Classified::with_wrong_labels
    pub fn with_wrong_labels(mut self, share: f64, seed: u64) -> Result<Self, Error> {
        replace_labels(OWNER, &mut self.data.targets, self.classes.len(), share, seed)?;
        Ok(self)
    }

    /// The label of each class.
    #[must_use]
    pub fn classes(&self) -> &[i64] {
        &self.classes
    }
}

impl Evaluate for Softmax {
    type Point = Mat<f64>;

    fn count(&self) -> usize {
        self.data.rows.rows()
    }
    fn check(&self, w: &Mat<f64>) -> Result<(), Error> {
        shape(
            "point of softmax regression",
            vec![self.data.rows.columns(), self.classes.len()],
            vec![w.nrows(), w.ncols()],
        )
    }
    #[inline(always)]
    fn evaluate(&mut self, w: &Mat<f64>, sample: &Sample, mut gradient: Option<&mut Mat<f64>>) -> f64 {
        let scale = 1.0 / sample.len() as f64;
        let mut sum = 0.0;
        for &i in sample.indices() {
            for (c, score) in self.scratch.iter_mut().enumerate() {
                *score = self.data.rows.dot(i, w.col_as_slice(c));
            }
            OutputLoss::Softmax.add(&mut self.scratch, self.data.targets[i] as f64, scale, &mut sum);
            if let Some(gradient) = gradient.as_deref_mut() {
                for (c, &weight) in self.scratch.iter().enumerate() {
                    self.data.rows.add_to(i, weight, gradient.col_as_slice_mut(c));
                }
            }
        }
        scale * sum + self.penalty(w, gradient)
    }
    /// (1/b) Σ aᵢ(p∘(t − pᵀt))ᵀ + λV with the probabilities p of a row and t = Vᵀaᵢ, for both kinds.
    #[inline(always)]
    fn add_product(&mut self, _: ProductKind, w: &Mat<f64>, sample: &Sample, v: &Mat<f64>, out: &mut Mat<f64>) {
        let scale = 1.0 / sample.len() as f64;
        for &i in sample.indices() {
            for (c, (score, along)) in self.scratch.iter_mut().zip(&mut self.along).enumerate() {
                *score = self.data.rows.dot(i, w.col_as_slice(c));
                *along = self.data.rows.dot(i, v.col_as_slice(c));
            }
            let peak = self.scratch.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            self.scratch.iter_mut().for_each(|score| *score = (*score - peak).exp());
            let sum: f64 = self.scratch.iter().sum();
            // Relative to the target, whose p is near 1 if the row is fitted: then pᵀt keeps its digits.
            let origin = self.along[self.data.targets[i]];
            self.along.iter_mut().for_each(|along| *along -= origin);
            let mean = dot(&self.scratch, &self.along) / sum;
            for (c, (weight, along)) in self.scratch.iter().zip(&self.along).enumerate() {
                self.data.rows.add_to(i, scale * weight / sum * (along - mean), out.col_as_slice_mut(c));
            }
        }
        self.penalty(v, Some(out));
    }
}

evaluated!([] Softmax, Mat<f64>);

impl Problem for Softmax {
    /// Independent entries N(0, 1/d).
    fn start(&self, seed: u64) -> Mat<f64> {
        let mut next = normals(seed, START);
        let d = self.data.rows.columns();
        let scale = 1.0 / (d as f64).sqrt();
        fill(d, self.classes.len(), || scale * next())
    }
    fn feature_scales(&self) -> Option<Vec<f64>> {
        Some(self.data.rows.scales())
    }
    /// f* from [`Convex::minimum`], if it was [given](Convex::with_optimum).
    fn optimum(&self) -> Option<f64> {
        self.optimum
    }
    fn test_metric(&mut self, w: &Mat<f64>) -> Option<f64> {
        let (rows, targets) = self.data.test.as_ref()?;
        Some(Self::accuracy(w, rows, targets, &mut self.scratch))
    }
    fn train_accuracy(&mut self, w: &Mat<f64>) -> Option<f64> {
        Some(Self::accuracy(w, &self.data.rows, &self.data.targets, &mut self.scratch))
    }
}

impl Convex for Softmax {
    /// With λ = 0 and scores that are largest for the right class in every row, f has no minimum, and this is its
    /// infimum 0.
    fn minimum(&self) -> Result<f64, Error> {
        minimum_by_newton(OWNER, self.clone(), Mat::zeros(self.data.rows.columns(), self.classes.len()))
    }
    fn with_optimum(self, optimum: f64) -> Self {
        Self { optimum: Some(optimum), ..self }
    }
}

impl Curved for Softmax {
    /// The probability of every class in every row.
    fn curvature(&self, w: &Mat<f64>) -> Vec<f64> {
        let mut probabilities = Vec::with_capacity(self.data.targets.len() * self.classes.len());
        for i in 0..self.data.targets.len() {
            let scores: Vec<f64> = (0..self.classes.len()).map(|c| self.data.rows.dot(i, w.col_as_slice(c))).collect();
            let peak = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = scores.iter().map(|score| (score - peak).exp()).sum();
            probabilities.extend(scores.iter().map(|score| (score - peak).exp() / sum));
        }
        probabilities
    }
    fn add_product(&self, curvature: &[f64], v: &Mat<f64>, out: &mut Mat<f64>) {
        let scale = 1.0 / self.data.targets.len() as f64;
        let mut along = self.scratch.clone();
        for (i, probabilities) in curvature.chunks_exact(self.classes.len()).enumerate() {
            along.iter_mut().enumerate().for_each(|(c, along)| *along = self.data.rows.dot(i, v.col_as_slice(c)));
            let mean = dot(probabilities, &along);
            for (c, probability) in probabilities.iter().enumerate() {
                self.data.rows.add_to(i, scale * probability * (along[c] - mean), out.col_as_slice_mut(c));
            }
        }
        self.penalty(v, Some(out));
    }
    fn falls_to_zero(&self, w: &Mat<f64>) -> bool {
        let is_right = |(i, &target): (usize, &usize)| {
            let score = |c| self.data.rows.dot(i, w.col_as_slice(c));
            let right = score(target);
            (0..self.classes.len()).all(|c| c == target || score(c) < right)
        };
        self.regularization == 0.0 && self.data.targets.iter().enumerate().all(is_right)
    }
}

#[cfg(test)]
mod tests;
