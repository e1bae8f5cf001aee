//! Logistic regression with two classes.

use crate::{
    Problem,
    features::{Labeled, Rows},
    numerics::{DATA, Evaluate, START, at_least_one, dot, evaluate, fill, normals, not_negative, out_of_range, shape},
};
use faer::Mat;
use strust::{
    Error,
    objective::{Evaluation, Objective},
    sample::Sample,
    vector::Vector,
};

const OWNER: &str = "logistic regression";

/// f(x) = (1/n) Σ log(1 + exp(−yᵢaᵢᵀx)) + (λ/2)‖x‖², with labels yᵢ = ±1.
///
/// Labels can be any two numbers; the smaller one becomes −1. There is no intercept; for an intercept, add a column of
/// ones.
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
    rows: Rows,
    signs: Vec<f64>,
    classes: [f64; 2],
    regularization: f64,
    separator: Option<Vec<f64>>,
}

impl Logistic {
    /// The problem for a data set with exactly two distinct labels, and λ = `regularization` ≥ 0.
    pub fn new(data: Labeled, regularization: f64) -> Result<Self, Error> {
        let Labeled { features, labels } = data;
        let rows = Rows::new(OWNER, features, labels.len())?;
        not_negative(OWNER, "regularization", regularization)?;
        let classes = two_classes(&labels)?;
        // The comparison is exact: the labels are these two numbers.
        #[allow(clippy::float_cmp)]
        let signs = labels.iter().map(|&label| if label == classes[1] { 1.0 } else { -1.0 }).collect();
        Ok(Self { rows, signs, classes, regularization, separator: None })
    }

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
        Ok(Self { rows: Rows::Dense(rows), signs, classes: [-1.0, 1.0], regularization: 0.0, separator: Some(w) })
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

    #[inline(always)]
    fn evaluate(&mut self, x: &Vec<f64>, sample: &Sample, mut gradient: Option<&mut Vec<f64>>) -> f64 {
        let scale = 1.0 / sample.len() as f64;
        let mut sum = 0.0;
        for &i in sample.indices() {
            let sign = self.signs[i];
            let margin = sign * self.rows.dot(i, x);
            // Use exp only of negative numbers, so nothing overflows and small losses keep their digits.
            let e = (-margin.abs()).exp();
            sum += (-margin).max(0.0) + e.ln_1p();
            if let Some(gradient) = gradient.as_deref_mut() {
                let probability_of_error = if margin > 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) };
                self.rows.add_to(i, -scale * sign * probability_of_error, gradient);
            }
        }
        if let Some(gradient) = gradient {
            gradient.iter_mut().zip(x).for_each(|(g, x)| *g += self.regularization * x);
        }
        scale * sum + 0.5 * self.regularization * dot(x, x)
    }
}

impl Objective for Logistic {
    type Point = Vec<f64>;

    fn terms(&self) -> usize {
        self.rows.rows()
    }
    fn value(&mut self, x: &Vec<f64>, sample: &Sample) -> Evaluation {
        evaluate(self, x, sample, None)
    }
    fn value_and_gradient(&mut self, x: &Vec<f64>, sample: &Sample, gradient: &mut Vec<f64>) -> Evaluation {
        evaluate(self, x, sample, Some(gradient))
    }
    fn check_point(&self, x: &Vec<f64>) -> Result<(), Error> {
        shape("point of logistic regression", vec![self.rows.columns()], vec![x.len()])
    }
}

impl Problem for Logistic {
    /// Independent components N(0, 1/d).
    fn start(&self, seed: u64) -> Vec<f64> {
        let mut next = normals(seed, START);
        let d = self.rows.columns();
        let scale = 1.0 / (d as f64).sqrt();
        (0..d).map(|_| scale * next()).collect()
    }
    /// The infimum 0 of a [separable](Logistic::separable) problem with λ = 0; it is not attained.
    fn optimum(&self) -> Option<f64> {
        (self.separator.is_some() && self.regularization == 0.0).then_some(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        contract::{self, random_data},
        features::Features,
    };
    use strust::{objective::full_value, prelude::*};

    fn sparse(data: &Labeled) -> Labeled {
        Labeled { features: data.features.converted(), labels: data.labels.clone() }
    }

    #[test]
    fn the_contract_of_a_problem_holds_dense_and_sparse() {
        for regularization in [0.0, 0.3] {
            let data = random_data(30, 6, &[1.0, 2.0], 0);
            contract::holds(&mut Logistic::new(sparse(&data), regularization).unwrap(), 1.95..2.05, 1e-14);
            contract::holds(&mut Logistic::new(data, regularization).unwrap(), 1.95..2.05, 1e-14);
        }
        contract::holds(&mut Logistic::separable(30, 6, 0.2, 0).unwrap(), 1.95..2.05, 1e-14);
    }

    #[test]
    fn dense_and_sparse_features_are_the_same_function() {
        let data = random_data(20, 5, &[0.0, 1.0], 3);
        let (mut a, mut b) = (Logistic::new(sparse(&data), 0.1).unwrap(), Logistic::new(data, 0.1).unwrap());
        let x = a.start(0);
        assert!((full_value(&mut a, &x) - full_value(&mut b, &x)).abs() < 1e-15);
    }

    #[test]
    fn the_values_of_the_two_labels_do_not_matter() {
        let value = |classes: &[f64]| {
            let mut f = Logistic::new(random_data(20, 5, classes, 1), 0.0).unwrap();
            let x = f.start(0);
            (f.classes().to_vec(), full_value(&mut f, &x).to_bits())
        };
        let (classes, bits) = value(&[-1.0, 1.0]);
        assert_eq!(classes, [-1.0, 1.0]);
        assert_eq!(value(&[0.0, 1.0]), (vec![0.0, 1.0], bits));
        assert_eq!(value(&[1.0, 2.0]), (vec![1.0, 2.0], bits));
    }

    #[test]
    fn large_margins_do_not_overflow_and_small_losses_keep_their_digits() {
        let features = Features::Dense(Mat::from_fn(2, 1, |i, _| if i == 0 { -1.0 } else { 1.0 }));
        let mut f = Logistic::new(Labeled { features, labels: vec![0.0, 1.0] }, 0.0).unwrap();
        let one = Sample::range(0..1);
        let mut g = vec![0.0];
        for (x, value, slope) in [(1e6, 0.0, 0.0), (-1e6, 1e6, -1.0), (-800.0, 800.0, -1.0)] {
            assert!((f.value_and_gradient(&vec![x], &one, &mut g).value - value).abs() <= 1e-12 * value);
            assert!((g[0] - slope).abs() < 1e-300);
        }
        // log(1 + e⁻⁵⁰) = e⁻⁵⁰ to sixteen digits. It is far below ε.
        let value = f.value_and_gradient(&vec![50.0], &one, &mut g).value;
        let expected = (-50.0_f64).exp();
        assert!((value / expected - 1.0).abs() < 1e-15 && (g[0] / -expected - 1.0).abs() < 1e-15);
        assert!(f.value(&vec![700.0], &one).value > 0.0);
    }

    #[test]
    fn a_separable_set_has_its_margin_and_its_infimum() {
        let mut f = Logistic::separable(101, 7, 0.25, 4).unwrap();
        let w = f.separator().unwrap().to_vec();
        for i in 0..101 {
            assert!(f.signs[i] * f.rows.dot(i, &w) >= 0.25 - 1e-12);
        }
        let far: Vec<f64> = w.iter().map(|w| 400.0 * w).collect();
        assert!(full_value(&mut f, &far) < 1e-40);
        assert_eq!(f.optimum(), Some(0.0));
    }

    #[test]
    fn str_drives_a_separable_set_towards_its_infimum() {
        let mut f = Logistic::separable(200, 10, 0.5, 0).unwrap();
        let start = f.start(0);
        let mut method = Str::new(StrConfig::default()).unwrap();
        let report = minimize(&mut f)
            .method(&mut method)
            .sampler(Epochs::new(200, 20, 0).unwrap())
            .stop(Stop::epochs(200))
            .start(start)
            .unwrap();
        assert_eq!(report.reason, StopReason::Epochs);
        assert!(report.last.value < 1e-2, "{}", report.last.value);
    }

    #[test]
    fn data_without_exactly_two_classes_are_an_error() {
        let message = |labels: &[f64], rows, columns, regularization| {
            let features = Features::Dense(Mat::zeros(rows, columns));
            Logistic::new(Labeled { features, labels: labels.to_vec() }, regularization).unwrap_err().to_string()
        };
        assert_eq!(message(&[], 0, 2, 0.0), "logistic regression: `rows` is 0, but must be ≥ 1");
        assert_eq!(message(&[1.0], 1, 0, 0.0), "logistic regression: `columns` is 0, but must be ≥ 1");
        assert_eq!(message(&[1.0], 2, 1, 0.0), "labels of a data set: expected shape [2], found [1]");
        assert_eq!(
            message(&[1.0, 1.0], 2, 1, 0.0),
            "logistic regression: `labels` is 1 everywhere, but must be exactly two distinct values"
        );
        assert_eq!(
            message(&[1.0, 2.0, 3.0], 3, 1, 0.0),
            "logistic regression: `labels` is 1, 2, 3 and possibly more, but must be exactly two distinct values; for more use softmax"
        );
        assert!(message(&[1.0, f64::NAN], 2, 1, 0.0).contains("`labels` is NaN"));
        assert!(message(&[1.0, 2.0], 2, 1, f64::NAN).contains("`regularization` is NaN"));
        assert!(Logistic::separable(3, 2, 0.0, 0).unwrap_err().to_string().contains("`margin` is 0"));
    }
}
