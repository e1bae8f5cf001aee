//! Logistic regression with two classes.

use crate::{
    Convex, Problem,
    classified::{replace_labels, split_last, split_rows},
    convex::{Curved, minimum_by_newton},
    features::Labeled,
    numerics::{Evaluate, START, axpy, dot, evaluated, normals, not_negative, out_of_range, shape},
    rows::Rows,
    split::SplitRows,
};
use strust::{Error, objective::ProductKind, sample::Sample};
use strust_data::loss::OutputLoss;

mod synthetic;

const OWNER: &str = "logistic regression";

/// f(x) = (1/n) Σ log(1 + exp(−yᵢaᵢᵀx)) + (λ/2)‖x‖², with labels yᵢ = ±1.
///
/// Labels can be any two numbers; the smaller one becomes −1. [`Self::with_intercept`] adds a constant feature, which the
/// regularizer leaves out, and [`Self::with_kernel`] replaces the features by kernel values.
///
/// ```
/// use faer::Mat;
/// use strust::prelude::*;
/// use strust_problems::{Features, Labeled, Logistic};
///
/// let features = Features::Dense(Mat::from_fn(4, 1, |i, _| [-2.0, -1.0, 1.0, 2.0][i]));
/// let mut f = Logistic::new(Labeled { features, labels: vec![0.0, 0.0, 1.0, 1.0] }, 0.1)?;
/// assert_eq!(f.classes(), [0.0, 1.0]);
/// // At 0 every term is log 2.
/// assert!((f.value(&vec![0.0], &Sample::range(0..4)).value - 2.0_f64.ln()).abs() < 1e-15);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Logistic {
    /// The rows and their signs.
    data: SplitRows<f64>,
    classes: [f64; 2],
    regularization: f64,
    separator: Option<Vec<f64>>,
    /// f*, if it was computed.
    optimum: Option<f64>,
}

impl Logistic {
    /// The number of parameters of a point.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.data.rows.columns()
    }

    /// The problem for a data set with exactly two distinct labels, and λ = `regularization` ≥ 0.
    pub fn new(data: Labeled, regularization: f64) -> Result<Self, Error> {
        let Labeled { features, labels } = data;
        let rows = Rows::new(OWNER, features, labels.len())?;
        not_negative(OWNER, "regularization", regularization)?;
        let classes = two_classes(&labels)?;
        // The comparison is exact: the labels are these two numbers.
        #[allow(clippy::float_cmp)]
        let signs = labels.iter().map(|&label| if label == classes[1] { 1.0 } else { -1.0 }).collect();
        Ok(Self::of(rows, signs, classes, regularization))
    }

    fn of(rows: Rows, signs: Vec<f64>, classes: [f64; 2], regularization: f64) -> Self {
        let data = SplitRows::new(OWNER, rows, signs);
        Self { data, classes, regularization, separator: None, optimum: None }
    }

    /// Holds out a test set: a fraction of each class, rounded to whole rows, drawn at random with the seed.
    pub fn with_test_share(mut self, share: f64, seed: u64) -> Result<Self, Error> {
        self.data.hold_out(split_rows(OWNER, &self.targets(), 2, share, seed)?)?;
        Ok(self)
    }

    /// Holds out the last rows as a test set: a fraction of all rows, rounded to whole rows.
    pub fn with_last_rows_as_test(mut self, share: f64) -> Result<Self, Error> {
        self.data.hold_out(split_last(OWNER, self.data.targets.len(), share)?)?;
        let signs = &self.data.targets;
        if signs.iter().all(|&sign| sign > 0.0) || signs.iter().all(|&sign| sign < 0.0) {
            let found = "the last rows of data whose first rows have one class";
            return Err(out_of_range(OWNER, "test set", found, "drawn at random, or the rows in another order"));
        }
        Ok(self)
    }

    /// Gives every feature mean 0 and standard deviation 1 over the training set; a feature that is constant there
    /// becomes 0. The test set changes in the same way, so hold it out first.
    pub fn standardized(mut self) -> Result<Self, Error> {
        self.data.standardize()?;
        self.separator = None;
        Ok(self)
    }

    /// Replaces the features of a point a by its Gaussian kernel values with all n training points:
    /// K(a, aⱼ) = exp(−‖a − aⱼ‖²/(2σ²)) with σ = `bandwidth` > 0. Hold out a test set first.
    ///
    /// Needs 8n² bytes, and 8n more for each point of the test set; more than 4 GiB are refused.
    ///
    /// ```
    /// use strust_problems::{Logistic};
    /// let f = Logistic::separable(100, 5, 0.5, 0)?.with_test_share(0.2, 0)?.with_kernel(1.0)?;
    /// assert_eq!(f.parameters(), 80);
    /// # Ok::<(), strust::Error>(())
    /// ```
    pub fn with_kernel(mut self, bandwidth: f64) -> Result<Self, Error> {
        self.data.take_kernel(bandwidth)?;
        self.separator = None;
        Ok(self)
    }

    /// Adds a last feature that is always 1. The regularizer leaves its component out:
    /// f(x) = (1/n) Σ log(1 + exp(−yᵢ(aᵢᵀx + x₀))) + (λ/2)‖x‖², where x₀ is the last component of the point.
    pub fn with_intercept(mut self) -> Result<Self, Error> {
        self.data.add_intercept()?;
        self.separator.iter_mut().for_each(|w| w.push(0.0));
        Ok(self)
    }

    /// The share of rows that x classifies correctly.
    fn accuracy(x: &[f64], rows: &Rows, signs: &[f64]) -> f64 {
        let right = |(i, &sign): (usize, &f64)| {
            let score = rows.dot(i, x);
            if sign > 0.0 { score > 0.0 } else { score <= 0.0 }
        };
        signs.iter().enumerate().filter(|&term| right(term)).count() as f64 / signs.len() as f64
    }

    /// Gives a share of the training data the label of the other class; see [`Classified::with_wrong_labels`]. Hold out
    /// a test set first: its labels stay right.
    ///
    /// [`Classified::with_wrong_labels`]: crate::Classified::with_wrong_labels
    pub fn with_wrong_labels(mut self, share: f64, seed: u64) -> Result<Self, Error> {
        let right = self.targets();
        let mut targets = right.clone();
        replace_labels(OWNER, &mut targets, 2, share, seed)?;
        if targets != right {
            // The classes need not be separable any more.
            self.separator = None;
        }
        self.data.targets = targets.iter().map(|&target| if target == 1 { 1.0 } else { -1.0 }).collect();
        Ok(self)
    }

    /// The class 0 or 1 of each row.
    fn targets(&self) -> Vec<usize> {
        self.data.targets.iter().map(|&sign| usize::from(sign > 0.0)).collect()
    }

    /// The same data with another λ.
    pub fn with_regularization(self, regularization: f64) -> Result<Self, Error> {
        not_negative(OWNER, "regularization", regularization)?;
        Ok(Self { regularization, ..self })
    }

    /// The labels that became −1 and +1.
    #[must_use]
    pub fn classes(&self) -> [f64; 2] {
        self.classes
    }

    /// The unit vector w that separates the classes, if it is known.
    #[must_use]
    pub fn separator(&self) -> Option<&[f64]> {
        self.separator.as_deref()
    }
}

/// The two distinct labels, the smaller one first.
fn two_classes(labels: &[f64]) -> Result<[f64; 2], Error> {
    let mut classes: Vec<f64> = Vec::with_capacity(3);
    for &label in labels {
        if !label.is_finite() {
            return Err(out_of_range(OWNER, "labels", label, "finite numbers"));
        }
        if !classes.contains(&label) {
            classes.push(label);
        }
        if classes.len() > 2 {
            let found = format!("{}, {}, {} and possibly more", classes[0], classes[1], classes[2]);
            return Err(out_of_range(OWNER, "labels", found, "exactly two distinct values; for more use softmax"));
        }
    }
    match classes[..] {
        [a, b] => Ok([a.min(b), a.max(b)]),
        _ => Err(out_of_range(OWNER, "labels", format!("{} everywhere", labels[0]), "exactly two distinct values")),
    }
}

impl Evaluate for Logistic {
    type Point = Vec<f64>;

    fn count(&self) -> usize {
        self.data.rows.rows()
    }
    fn check(&self, x: &Vec<f64>) -> Result<(), Error> {
        shape("point of logistic regression", vec![self.data.rows.columns()], vec![x.len()])
    }
    #[inline(always)]
    fn evaluate(&mut self, x: &Vec<f64>, sample: &Sample, mut gradient: Option<&mut Vec<f64>>) -> f64 {
        let scale = 1.0 / sample.len() as f64;
        let mut sum = 0.0;
        for &i in sample.indices() {
            let mut z = [self.data.rows.dot(i, x)];
            OutputLoss::Logistic.add(&mut z, 0.5 + 0.5 * self.data.targets[i], scale, &mut sum);
            if let Some(gradient) = gradient.as_deref_mut() {
                self.data.rows.add_to(i, z[0], gradient);
            }
        }
        if let Some(gradient) = gradient {
            gradient.iter_mut().zip(x).take(self.data.penalized()).for_each(|(g, x)| *g += self.regularization * x);
        }
        let x = &x[..self.data.penalized()];
        scale * sum + 0.5 * self.regularization * dot(x, x)
    }
    /// (1/b) Σ pᵢ(1 − pᵢ)aᵢaᵢᵀv + λv, for both kinds.
    #[inline(always)]
    fn add_product(&mut self, _: ProductKind, x: &Vec<f64>, sample: &Sample, v: &Vec<f64>, out: &mut Vec<f64>) {
        let scale = 1.0 / sample.len() as f64;
        for &i in sample.indices() {
            let e = (-self.data.rows.dot(i, x).abs()).exp();
            let weight = e / ((1.0 + e) * (1.0 + e));
            self.data.rows.add_to(i, scale * weight * self.data.rows.dot(i, v), out);
        }
        out.iter_mut().zip(v).take(self.data.penalized()).for_each(|(p, v)| *p += self.regularization * v);
    }
}

evaluated!([] Logistic, Vec<f64>);

impl Problem for Logistic {
    /// Independent components N(0, 1/d).
    fn start(&self, seed: u64) -> Vec<f64> {
        let mut next = normals(seed, START);
        let d = self.data.rows.columns();
        let scale = 1.0 / (d as f64).sqrt();
        (0..d).map(|_| scale * next()).collect()
    }
    /// The infimum 0 of a [separable](Logistic::separable) problem with λ = 0, which is not attained; or f* from
    /// [`Convex::minimum`], if it was [given](Convex::with_optimum).
    fn optimum(&self) -> Option<f64> {
        self.optimum.or((self.separator.is_some() && self.regularization == 0.0).then_some(0.0))
    }
    fn feature_scales(&self) -> Option<Vec<f64>> {
        Some(self.data.rows.scales())
    }
    /// The predicted class is that of the larger label where aᵀx > 0. A NaN is never correct.
    fn test_metric(&mut self, x: &Vec<f64>) -> Option<f64> {
        self.data.test.as_ref().map(|(rows, signs)| Self::accuracy(x, rows, signs))
    }
    fn train_accuracy(&mut self, x: &Vec<f64>) -> Option<f64> {
        Some(Self::accuracy(x, &self.data.rows, &self.data.targets))
    }
}

impl Convex for Logistic {
    /// With λ = 0 and classes that a hyperplane separates, f has no minimum, and this is its infimum 0.
    fn minimum(&self) -> Result<f64, Error> {
        minimum_by_newton(OWNER, self.clone(), vec![0.0; self.data.rows.columns()])
    }
    fn with_optimum(self, optimum: f64) -> Self {
        Self { optimum: Some(optimum), ..self }
    }
}

impl Curved for Logistic {
    /// pᵢ(1 − pᵢ)/n, where pᵢ is the probability of an error.
    fn curvature(&self, x: &Vec<f64>) -> Vec<f64> {
        let n = self.data.targets.len();
        let weight = |i: usize| {
            let e = (-self.data.rows.dot(i, x).abs()).exp();
            e / ((1.0 + e) * (1.0 + e)) / n as f64
        };
        (0..n).map(weight).collect()
    }
    fn add_product(&self, curvature: &[f64], v: &Vec<f64>, out: &mut Vec<f64>) {
        for (i, weight) in curvature.iter().enumerate() {
            self.data.rows.add_to(i, weight * self.data.rows.dot(i, v), out);
        }
        axpy(self.regularization, &v[..self.data.penalized()], &mut out[..self.data.penalized()]);
    }
    fn falls_to_zero(&self, x: &Vec<f64>) -> bool {
        let is_right = |(i, sign): (usize, &f64)| sign * self.data.rows.dot(i, x) > 0.0;
        self.regularization == 0.0 && self.data.targets.iter().enumerate().all(is_right)
    }
}

#[cfg(test)]
mod tests;
