//! Softmax regression with many classes.

use crate::{
    Classifier, Problem,
    classified::{distinct, is_right, replace_labels, split_rows, targets},
    features::{Labeled, Rows},
    numerics::{Evaluate, START, evaluate, fill, normals, not_negative, out_of_range, shape},
};
use faer::Mat;
use strust::{
    Error,
    objective::{Evaluation, Objective},
    sample::Sample,
    vector::Vector,
};

const OWNER: &str = "softmax regression";

/// f(W) = (1/n) Σ (log Σ_c exp(aᵢᵀw_c) − aᵢᵀw_{yᵢ}) + (λ/2)‖W‖², the mean cross-entropy. W is d×classes; column w_c
/// belongs to class c.
///
/// Labels can be any whole numbers. In increasing order they become the classes 0, 1, ….
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
    rows: Rows,
    targets: Vec<usize>,
    classes: Vec<i64>,
    regularization: f64,
    test: Option<(Rows, Vec<usize>)>,
    /// The scores of one data point, later exp(score − largest).
    scratch: Vec<f64>,
}

impl Softmax {
    /// The problem for a data set with at least two distinct whole numbers as labels, and λ = `regularization` ≥ 0.
    pub fn new(data: Labeled, regularization: f64) -> Result<Self, Error> {
        let Labeled { features, labels } = data;
        let rows = Rows::new(OWNER, features, labels.len())?;
        not_negative(OWNER, "regularization", regularization)?;
        let classes = distinct(OWNER, &labels)?;
        let targets = targets(OWNER, &labels, &classes)?;
        let scratch = vec![0.0; classes.len()];
        Ok(Self { rows, targets, classes, regularization, test: None, scratch })
    }

    /// Adds a test set for [`Classifier::test_accuracy`]. It must have the same features and labels as the training
    /// set.
    pub fn with_test(mut self, test: Labeled) -> Result<Self, Error> {
        let Labeled { features, labels } = test;
        let rows = Rows::new(OWNER, features, labels.len())?;
        if rows.columns() != self.rows.columns() {
            let allowed = format!("{}, as in the training set", self.rows.columns());
            return Err(out_of_range(OWNER, "columns of the test set", rows.columns(), allowed));
        }
        self.test = Some((rows, targets(OWNER, &labels, &self.classes)?));
        Ok(self)
    }

    /// Holds out a test set: a fraction of each class, rounded to whole rows, drawn at random with the seed.
    pub fn with_test_share(mut self, share: f64, seed: u64) -> Result<Self, Error> {
        let (train, test) = split_rows(OWNER, &self.targets, self.classes.len(), share, seed)?;
        let part = |rows: &[usize]| -> Result<_, Error> {
            Ok((self.rows.only(OWNER, rows)?, rows.iter().map(|&i| self.targets[i]).collect::<Vec<_>>()))
        };
        let (test, (rows, targets)) = (part(&test)?, part(&train)?);
        (self.rows, self.targets, self.test) = (rows, targets, Some(test));
        Ok(self)
    }

    /// Replaces a share of the training labels, each by another class; see [`Classified::with_wrong_labels`]. Hold out a
    /// test set first: its labels stay right.
    ///
    /// [`Classified::with_wrong_labels`]: crate::Classified::with_wrong_labels
    pub fn with_wrong_labels(mut self, share: f64, seed: u64) -> Result<Self, Error> {
        replace_labels(OWNER, &mut self.targets, self.classes.len(), share, seed)?;
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

    #[inline(always)]
    fn evaluate(&mut self, w: &Mat<f64>, sample: &Sample, mut gradient: Option<&mut Mat<f64>>) -> f64 {
        let scale = 1.0 / sample.len() as f64;
        let mut sum = 0.0;
        for &i in sample.indices() {
            let target = self.targets[i];
            for (c, score) in self.scratch.iter_mut().enumerate() {
                *score = self.rows.dot(i, w.col_as_slice(c));
            }
            let (largest, peak) = self
                .scratch
                .iter()
                .enumerate()
                .fold((0, f64::NEG_INFINITY), |best, (c, &score)| if score > best.1 { (c, score) } else { best });
            // log Σ exp(z) − z_y = (z_max − z_y) + log(1 + Σ_{others} exp(z − z_max)). Both parts are ≥ 0, so a small
            // loss keeps its digits, and nothing overflows.
            sum += peak - self.scratch[target];
            let mut others = 0.0;
            for (c, score) in self.scratch.iter_mut().enumerate() {
                *score = (*score - peak).exp();
                others += if c == largest { 0.0 } else { *score };
            }
            sum += others.ln_1p();
            if let Some(gradient) = gradient.as_deref_mut() {
                let scale = scale / (1.0 + others);
                // p_y − 1 is minus the sum of the others. This form does not cancel where p_y ≈ 1.
                let mut rest = 0.0;
                for (c, &weight) in self.scratch.iter().enumerate().filter(|&(c, _)| c != target) {
                    rest += weight;
                    self.rows.add_to(i, scale * weight, gradient.col_as_slice_mut(c));
                }
                self.rows.add_to(i, -scale * rest, gradient.col_as_slice_mut(target));
            }
        }
        if let Some(gradient) = gradient {
            gradient.add(self.regularization, w);
        }
        scale * sum + 0.5 * self.regularization * w.norm_squared()
    }
}

impl Objective for Softmax {
    type Point = Mat<f64>;

    fn terms(&self) -> usize {
        self.rows.rows()
    }
    fn value(&mut self, w: &Mat<f64>, sample: &Sample) -> Evaluation {
        evaluate(self, w, sample, None)
    }
    fn value_and_gradient(&mut self, w: &Mat<f64>, sample: &Sample, gradient: &mut Mat<f64>) -> Evaluation {
        evaluate(self, w, sample, Some(gradient))
    }
    fn check_point(&self, w: &Mat<f64>) -> Result<(), Error> {
        shape("point of softmax regression", vec![self.rows.columns(), self.classes.len()], vec![w.nrows(), w.ncols()])
    }
}

impl Problem for Softmax {
    /// Independent entries N(0, 1/d).
    fn start(&self, seed: u64) -> Mat<f64> {
        let mut next = normals(seed, START);
        let d = self.rows.columns();
        let scale = 1.0 / (d as f64).sqrt();
        fill(d, self.classes.len(), || scale * next())
    }
    fn feature_scales(&self) -> Option<Vec<f64>> {
        Some(self.rows.scales())
    }
    /// Unknown.
    fn optimum(&self) -> Option<f64> {
        None
    }
}

impl Classifier for Softmax {
    fn test_accuracy(&mut self, w: &Mat<f64>) -> Option<f64> {
        let (rows, targets) = self.test.as_ref()?;
        let mut right = 0;
        for (i, &target) in targets.iter().enumerate() {
            for (c, score) in self.scratch.iter_mut().enumerate() {
                *score = rows.dot(i, w.col_as_slice(c));
            }
            right += usize::from(is_right(&self.scratch, target));
        }
        Some(right as f64 / targets.len() as f64)
    }
    fn parameters(&self) -> usize {
        self.rows.columns() * self.classes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        contract::{self, random_data},
        features::Features,
        logistic::Logistic,
    };
    use strust::{objective::full_value, prelude::*};

    #[test]
    fn the_contract_of_a_problem_holds_dense_and_sparse() {
        for regularization in [0.0, 0.3] {
            let data = random_data(30, 6, &[3.0, -2.0, 0.0, 9.0], 0);
            let sparse = Labeled { features: data.features.converted(), labels: data.labels.clone() };
            let mut dense = Softmax::new(data, regularization).unwrap();
            let mut sparse = Softmax::new(sparse, regularization).unwrap();
            assert_eq!(dense.classes(), [-2, 0, 3, 9]);
            let w = dense.start(1);
            assert!((full_value(&mut dense, &w) - full_value(&mut sparse, &w)).abs() < 1e-14);
            contract::holds(&mut dense, 1.95..2.05, 1e-14);
            contract::holds(&mut sparse, 1.95..2.05, 1e-14);
        }
    }

    #[test]
    fn two_classes_give_logistic_regression_in_the_difference() {
        let data = random_data(25, 4, &[0.0, 1.0], 2);
        let mut softmax = Softmax::new(data.clone(), 0.0).unwrap();
        let mut logistic = Logistic::new(data, 0.0).unwrap();
        let w = softmax.start(0);
        let x: Vec<f64> = (0..4).map(|i| w[(i, 1)] - w[(i, 0)]).collect();
        assert!((full_value(&mut softmax, &w) - full_value(&mut logistic, &x)).abs() < 1e-15);
    }

    #[test]
    fn large_scores_do_not_overflow_and_small_losses_keep_their_digits() {
        let features = Features::Dense(Mat::from_fn(3, 1, |_, _| 1.0));
        let mut f = Softmax::new(Labeled { features, labels: vec![0.0, 1.0, 2.0] }, 0.0).unwrap();
        let mut g = Mat::zeros(1, 3);
        let first = Sample::range(0..1);
        let scores = |z: [f64; 3]| Mat::from_fn(1, 3, move |_, c| z[c]);
        assert!(f.value_and_gradient(&scores([1e5, 0.0, -1e5]), &first, &mut g).value.abs() < 1e-300);
        assert!((f.value_and_gradient(&scores([-1e5, 0.0, 1e5]), &first, &mut g).value - 2e5).abs() < 1e-9);
        assert_eq!(g, scores([-1.0, 0.0, 1.0]));
        let value = f.value_and_gradient(&scores([1050.0, 1000.0, 0.0]), &first, &mut g).value;
        let expected = (-50.0_f64).exp();
        assert!((value / expected - 1.0).abs() < 1e-15);
        assert!((g[(0, 0)] / -expected - 1.0).abs() < 1e-15 && (g[(0, 1)] / expected - 1.0).abs() < 1e-15);
    }

    #[test]
    fn str_converges_on_a_regularized_problem() {
        let mut f = Softmax::new(random_data(60, 5, &[0.0, 1.0, 2.0], 7), 0.1).unwrap();
        let start = f.start(0);
        let stop = Stop::gradient_norm(1e-8).or(Stop::epochs(2000));
        let mut method = Str::new(StrConfig::default()).unwrap();
        let report = minimize(&mut f)
            .method(&mut method)
            .sampler(Epochs::new(60, 60, 0).unwrap())
            .stop(&stop)
            .start(start)
            .unwrap();
        assert_eq!(report.reason, StopReason::GradientNorm);
        // A convex function has the same value at all stationary points.
        let other = f.start(1);
        let again = minimize(&mut f)
            .method(&mut method)
            .sampler(Epochs::new(60, 60, 0).unwrap())
            .stop(&stop)
            .start(other)
            .unwrap();
        assert!((report.last.value - again.last.value).abs() < 1e-12);
    }

    #[test]
    fn test_accuracy_counts_correct_largest_scores() {
        let features = |n| Features::Dense(Mat::from_fn(n, 2, |i, j| f64::from(u8::from(i % 2 == j))));
        let train = Labeled { features: features(2), labels: vec![5.0, 8.0] };
        let test = Labeled { features: features(4), labels: vec![5.0, 8.0, 8.0, 8.0] };
        let mut f = Softmax::new(train, 0.0).unwrap();
        assert_eq!((f.test_accuracy(&Mat::identity(2, 2)), f.parameters()), (None, 4));
        let mut f = f.with_test(test.clone()).unwrap();
        assert_eq!(f.test_accuracy(&Mat::identity(2, 2)), Some(0.75));
        assert_eq!(
            f.test_accuracy(&Mat::zeros(2, 2)),
            Some(0.25),
            "all scores are equal, so the first class is predicted"
        );

        let foreign = Labeled { labels: vec![5.0, 6.0, 8.0, 8.0], ..test };
        let message = f.clone().with_test(foreign).unwrap_err().to_string();
        assert!(message.contains("`labels` is 6 at row 1, but must be one of the classes [5, 8]"), "{message}");
        let wide = Labeled { features: Features::Dense(Mat::zeros(1, 3)), labels: vec![5.0] };
        let message = f.with_test(wide).unwrap_err().to_string();
        assert!(message.contains("`columns of the test set` is 3, but must be 2, as in the training set"), "{message}");
    }

    #[test]
    fn a_held_out_test_set_keeps_its_labels_dense_and_sparse() {
        // Feature c is 1 in class c, so the identity classifies everything correctly.
        let classes = [0.0, 1.0, 2.0];
        let features = Features::Dense(Mat::from_fn(60, 3, |i, j| f64::from(u8::from(i % 3 == j))));
        let labels: Vec<f64> = (0..60).map(|i| classes[i % 3]).collect();
        for features in [features.clone(), features.converted()] {
            let all = Softmax::new(Labeled { features, labels: labels.clone() }, 0.0).unwrap();
            let held = all.clone().with_test_share(0.25, 0).unwrap();
            let mut wrong = held.clone().with_wrong_labels(0.4, 7).unwrap();
            assert_eq!((held.terms(), wrong.terms()), (45, 45));
            assert_eq!(held.targets.iter().zip(&wrong.targets).filter(|(a, b)| a != b).count(), 18);
            assert_eq!(wrong.test_accuracy(&Mat::identity(3, 3)), Some(1.0));
            let mut again = all.with_test_share(0.25, 0).unwrap().with_wrong_labels(0.4, 7).unwrap();
            let w = wrong.start(0);
            assert_eq!(full_value(&mut wrong, &w).to_bits(), full_value(&mut again, &w).to_bits());
        }
        let f = Softmax::new(random_data(9, 2, &classes, 0), 0.0).unwrap();
        let message = |share| f.clone().with_test_share(share, 0).unwrap_err().to_string();
        assert_eq!(message(1.0), "softmax regression: `test_share` is 1, but must be in (0, 1)");
        assert_eq!(message(0.1), "softmax regression: `rows` is 0, but must be ≥ 1");
        assert!(f.with_wrong_labels(1.0, 0).unwrap_err().to_string().contains("`wrong_labels` is 1"));
    }

    #[test]
    fn invalid_class_labels_are_an_error() {
        let message = |labels: &[f64]| {
            let features = Features::Dense(Mat::zeros(labels.len(), 1));
            Softmax::new(Labeled { features, labels: labels.to_vec() }, 0.0).unwrap_err().to_string()
        };
        assert_eq!(message(&[1.0, 2.5]), "softmax regression: `labels` is 2.5, but must be whole numbers");
        assert!(message(&[1.0, f64::NAN]).contains("`labels` is NaN"));
        assert!(message(&[1.0, f64::INFINITY]).contains("`labels` is inf"));
        assert!(message(&[4.0, 4.0]).contains("`labels` is 4 everywhere, but must be at least two distinct values"));
        assert!(message(&[]).contains("`rows` is 0"));
        let f = Softmax::new(random_data(6, 4, &[0.0, 1.0], 0), 0.0).unwrap();
        assert_eq!(
            f.check_point(&Mat::zeros(2, 4)).unwrap_err().to_string(),
            "point of softmax regression: expected shape [4, 2], found [2, 4]"
        );
    }
}
