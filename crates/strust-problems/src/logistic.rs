//! Logistic regression with two classes.

use crate::{
    Classifier, Problem,
    classified::{replace_labels, shuffled, split_rows},
    features::{Csr, Labeled, Rows},
    numerics::{DATA, Evaluate, START, at_least_one, dot, evaluate, fill, normals, not_negative, out_of_range, shape},
};
use faer::Mat;
use strust::{
    Error,
    objective::{Evaluation, Objective},
    sample::{Sample, generator},
    vector::Vector,
};

/// The stream that decides in which rows a rare feature occurs.
const RARE: u64 = DATA + 18;
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
    /// The rows and signs of the test set.
    test: Option<(Rows, Vec<f64>)>,
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
        Ok(Self { rows, signs, classes, regularization, separator: None, test: None })
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
    /// use strust_problems::{Classifier, Logistic, Problem};
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
        Self { rows, signs, classes: [-1.0, 1.0], regularization: 0.0, separator: Some(w), test: None }
    }

    /// Holds out a test set: a fraction of each class, rounded to whole rows, drawn at random with the seed.
    pub fn with_test_share(mut self, share: f64, seed: u64) -> Result<Self, Error> {
        let (train, test) = split_rows(OWNER, &self.targets(), 2, share, seed)?;
        let part = |rows: &[usize]| -> Result<_, Error> {
            Ok((self.rows.only(OWNER, rows)?, rows.iter().map(|&i| self.signs[i]).collect::<Vec<_>>()))
        };
        let (test, (rows, signs)) = (part(&test)?, part(&train)?);
        (self.rows, self.signs, self.test) = (rows, signs, Some(test));
        Ok(self)
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
        self.signs = targets.iter().map(|&target| if target == 1 { 1.0 } else { -1.0 }).collect();
        Ok(self)
    }

    /// The class 0 or 1 of each row.
    fn targets(&self) -> Vec<usize> {
        self.signs.iter().map(|&sign| usize::from(sign > 0.0)).collect()
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

/// The center of a gap between two different numbers, as close to the median as possible; `None` if all are equal.
fn middle_gap(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gaps = (1..sorted.len()).filter(|&i| sorted[i - 1] < sorted[i]);
    let i = gaps.min_by_key(|&i| (2 * i).abs_diff(sorted.len()))?;
    Some(0.5 * (sorted[i - 1] + sorted[i]))
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
    fn feature_scales(&self) -> Option<Vec<f64>> {
        Some(self.rows.scales())
    }
}

impl Classifier for Logistic {
    /// The predicted class is that of the larger label where aᵀx > 0. A NaN is never correct.
    fn test_accuracy(&mut self, x: &Vec<f64>) -> Option<f64> {
        let (rows, signs) = self.test.as_ref()?;
        let right = |(i, &sign): (usize, &f64)| {
            let score = rows.dot(i, x);
            if sign > 0.0 { score > 0.0 } else { score <= 0.0 }
        };
        Some(signs.iter().enumerate().filter(|&term| right(term)).count() as f64 / signs.len() as f64)
    }
    fn parameters(&self) -> usize {
        self.rows.columns()
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

    /// The number of rows in which each feature occurs.
    fn counts(f: &Logistic) -> Vec<usize> {
        let Rows::Sparse(matrix) = &f.rows else { panic!("rare features are sparse") };
        let mut counts = vec![0; matrix.columns()];
        for i in 0..matrix.rows() {
            let (columns, values) = matrix.row(i);
            for &j in columns {
                counts[j as usize] += 1;
            }
            assert_eq!(values, vec![1.0; values.len()]);
        }
        counts
    }

    #[test]
    fn rare_features_have_their_frequencies_and_their_infimum() {
        let mut f = Logistic::rare(2000, 1000, 1.0, 3).unwrap();
        let found = counts(&f);
        assert_eq!((found[0], found[1], found[9], found[99], found[999]), (2000, 1000, 200, 20, 2));
        assert_eq!(*counts(&Logistic::rare(100, 1000, 2.0, 3).unwrap()).last().unwrap(), 1);
        let positive = f.signs.iter().filter(|&&sign| sign > 0.0).count();
        assert!((900..=1100).contains(&positive), "{positive} labels are +1");
        let w = f.separator().unwrap().to_vec();
        assert!((w.norm() - 1.0).abs() < 1e-12);
        assert!((0..2000).all(|i| f.signs[i] * f.rows.dot(i, &w) > 0.0));
        assert_eq!(f.optimum(), Some(0.0));
        let far: Vec<f64> = w.iter().map(|w| 1e9 * w).collect();
        assert!(full_value(&mut f, &far) < 1e-3);
        let x = f.start(0);
        let value = |seed| full_value(&mut Logistic::rare(2000, 1000, 1.0, seed).unwrap(), &x).to_bits();
        assert_eq!(value(3), full_value(&mut f, &x).to_bits());
        assert_ne!(value(3), value(4));
        contract::holds(&mut Logistic::rare(60, 20, 0.7, 0).unwrap(), 1.95..2.05, 1e-14);
    }

    #[test]
    fn rare_features_that_cannot_make_two_classes_are_an_error() {
        let message = |n, d, exponent| Logistic::rare(n, d, exponent, 0).unwrap_err().to_string();
        assert_eq!(
            message(50, 1, 1.0),
            "logistic regression: `n and d` is 50 and 1, but must be large enough that rows differ: use more of both"
        );
        assert!(message(1, 50, 1.0).contains("`n and d` is 1 and 50"));
        assert!(message(0, 5, 1.0).contains("`n` is 0") && message(5, 0, 1.0).contains("`d` is 0"));
        assert!(
            message(5, 5, 0.0).contains("`exponent` is 0") && message(5, 5, f64::NAN).contains("`exponent` is NaN")
        );
    }

    #[test]
    fn wrong_labels_are_an_exact_share_and_a_test_set_keeps_the_right_ones() {
        let all = Logistic::separable(200, 5, 0.3, 1).unwrap();
        let w = all.separator().unwrap().to_vec();
        let held = all.clone().with_test_share(0.2, 0).unwrap();
        assert_eq!((held.terms(), held.optimum()), (160, Some(0.0)));
        let mut wrong = held.clone().with_wrong_labels(0.25, 9).unwrap();
        assert_eq!(held.signs.iter().zip(&wrong.signs).filter(|(a, b)| *a * *b < 0.0).count(), 40);
        assert_eq!(wrong.optimum(), None, "the classes are not separable any more");
        assert_eq!(wrong.test_accuracy(&w), Some(1.0));
        let opposite: Vec<f64> = w.iter().map(|w| -w).collect();
        assert_eq!((wrong.test_accuracy(&opposite), wrong.test_accuracy(&vec![f64::NAN; 5])), (Some(0.0), Some(0.0)));
        assert_eq!(wrong.test_accuracy(&vec![0.0; 5]), Some(0.5), "in a tie the smaller label is predicted");
        assert_eq!(held.clone().with_wrong_labels(0.25, 9).unwrap().signs, wrong.signs);
        assert_ne!(held.clone().with_wrong_labels(0.25, 8).unwrap().signs, wrong.signs);
        let mut none = all.clone().with_wrong_labels(0.0, 0).unwrap();
        assert_eq!((none.signs.clone(), none.optimum(), none.test_accuracy(&w)), (all.signs, Some(0.0), None));
        let message = held.with_wrong_labels(-0.1, 0).unwrap_err().to_string();
        assert_eq!(message, "logistic regression: `wrong_labels` is -0.1, but must be in [0, 1)");
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
