use super::*;
use crate::{
    contract::{self, random_data},
    features::Features,
};
use faer::Mat;
use strust::{objective::full_value, prelude::*};

fn sparse(data: &Labeled) -> Labeled {
    Labeled { features: data.features.to_sparse(), labels: data.labels.clone() }
}

#[test]
fn the_products_are_those_of_the_gradients() {
    for data in [
        Logistic::separable(30, 5, 0.1, 0).unwrap(),
        Logistic::new(contract::random_data(20, 4, &[0.0, 1.0], 1), 0.1).unwrap(),
    ] {
        contract::has_products(&mut data.clone(), ProductKind::Hessian, true, 1e-13);
        contract::has_products(&mut data.clone(), ProductKind::GaussNewton, true, 1e-13);
    }
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
        assert!(f.data.targets[i] * f.data.rows.dot(i, &w) >= 0.25 - 1e-12);
    }
    let far: Vec<f64> = w.iter().map(|w| 400.0 * w).collect();
    assert!(full_value(&mut f, &far) < 1e-40);
    assert_eq!(f.optimum(), Some(0.0));
}

/// The number of rows in which each feature occurs.
fn counts(f: &Logistic) -> Vec<usize> {
    let Rows::Sparse(matrix) = &f.data.rows else { panic!("rare features are sparse") };
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
    let positive = f.data.targets.iter().filter(|&&sign| sign > 0.0).count();
    assert!((900..=1100).contains(&positive), "{positive} labels are +1");
    let w = f.separator().unwrap().to_vec();
    assert!((w.norm() - 1.0).abs() < 1e-12);
    assert!((0..2000).all(|i| f.data.targets[i] * f.data.rows.dot(i, &w) > 0.0));
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
    assert!(message(5, 5, 0.0).contains("`exponent` is 0") && message(5, 5, f64::NAN).contains("`exponent` is NaN"));
}

#[test]
fn wrong_labels_are_an_exact_share_and_a_test_set_keeps_the_right_ones() {
    let all = Logistic::separable(200, 5, 0.3, 1).unwrap();
    let w = all.separator().unwrap().to_vec();
    let held = all.clone().with_test_share(0.2, 0).unwrap();
    assert_eq!((held.terms(), held.optimum()), (160, Some(0.0)));
    let mut wrong = held.clone().with_wrong_labels(0.25, 9).unwrap();
    assert_eq!(held.data.targets.iter().zip(&wrong.data.targets).filter(|(a, b)| *a * *b < 0.0).count(), 40);
    assert_eq!(wrong.optimum(), None, "the classes are not separable any more");
    assert_eq!(wrong.test_metric(&w), Some(1.0));
    let opposite: Vec<f64> = w.iter().map(|w| -w).collect();
    assert_eq!((wrong.test_metric(&opposite), wrong.test_metric(&vec![f64::NAN; 5])), (Some(0.0), Some(0.0)));
    assert_eq!(wrong.test_metric(&vec![0.0; 5]), Some(0.5), "in a tie the smaller label is predicted");
    assert_eq!(held.clone().with_wrong_labels(0.25, 9).unwrap().data.targets, wrong.data.targets);
    assert_ne!(held.clone().with_wrong_labels(0.25, 8).unwrap().data.targets, wrong.data.targets);
    let mut none = all.clone().with_wrong_labels(0.0, 0).unwrap();
    assert_eq!((none.data.targets.clone(), none.optimum(), none.test_metric(&w)), (all.data.targets, Some(0.0), None));
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

/// A problem with a test set.
fn held(regularization: f64) -> Logistic {
    Logistic::new(random_data(40, 4, &[0.0, 1.0], 5), regularization).unwrap().with_test_share(0.25, 0).unwrap()
}

#[test]
fn the_contract_holds_with_an_intercept_a_kernel_and_standardized_features() {
    for regularization in [0.0, 0.3] {
        contract::holds(&mut held(regularization).with_intercept().unwrap(), 1.95..2.05, 1e-14);
        contract::holds(&mut held(regularization).standardized().unwrap(), 1.95..2.05, 1e-14);
        let mut all = held(regularization).standardized().unwrap().with_kernel(1.5).unwrap().with_intercept().unwrap();
        assert_eq!((all.parameters(), all.terms()), (31, 30));
        contract::holds(&mut all, 1.95..2.05, 1e-14);
        let x = all.start(1);
        contract::is_curved(&mut all, &x);
    }
}

#[test]
fn an_intercept_is_not_penalized() {
    let features = Features::Dense(Mat::from_fn(2, 1, |i, _| [2.0, -2.0][i]));
    let f = Logistic::new(Labeled { features, labels: vec![1.0, 0.0] }, 0.5).unwrap();
    let mut f = f.with_intercept().unwrap();
    let mut g = vec![0.0; 2];
    // The margins are 2x + x₀ = 3 and 2x − x₀ = 1 at x = 1, x₀ = 1.
    let loss = |margin: f64| (1.0 + (-margin).exp()).ln();
    let slope = |margin: f64| -1.0 / (1.0 + margin.exp());
    let value = f.value_and_gradient(&vec![1.0, 1.0], &Sample::range(0..2), &mut g).value;
    assert!((value - (0.5 * (loss(3.0) + loss(1.0)) + 0.25)).abs() < 1e-15);
    assert!((g[0] - (slope(3.0) + slope(1.0) + 0.5)).abs() < 1e-15);
    assert!((g[1] - 0.5 * (slope(3.0) - slope(1.0))).abs() < 1e-15);
    for message in [f.clone().standardized(), f.clone().with_kernel(1.0), f.with_intercept()].map(Result::unwrap_err) {
        assert!(message.to_string().contains("after an intercept was added, but must be changed before"));
    }
}

#[test]
fn accuracies_count_training_and_test_rows() {
    let features = Features::Dense(Mat::from_fn(5, 1, |i, _| [1.0, -1.0, 2.0, 3.0, -4.0][i]));
    let f = Logistic::new(Labeled { features, labels: vec![1.0, 0.0, 0.0, 1.0, 1.0] }, 0.0).unwrap();
    let mut f = f.with_last_rows_as_test(0.4).unwrap();
    assert_eq!(f.terms(), 3);
    let x = vec![1.0];
    assert_eq!((f.train_accuracy(&x), f.test_metric(&x)), (Some(2.0 / 3.0), Some(0.5)));
}

#[test]
fn a_training_set_of_one_class_is_an_error() {
    let features = Features::Dense(Mat::zeros(4, 1));
    let f = Logistic::new(Labeled { features, labels: vec![1.0, 1.0, 1.0, 0.0] }, 0.0).unwrap();
    let message = f.clone().with_last_rows_as_test(0.25).unwrap_err().to_string();
    assert!(message.contains("`test set` is the last rows of data whose first rows have one class"), "{message}");
    assert!(f.with_last_rows_as_test(1.0).unwrap_err().to_string().contains("`test_share` is 1"));
}

#[test]
fn the_minimum_is_below_every_point_and_right_where_it_is_known() {
    for f in [held(0.1), held(0.0).with_intercept().unwrap(), held(1e-3).with_kernel(1.0).unwrap()] {
        let optimum = f.minimum().unwrap();
        let mut f = f.with_optimum(optimum);
        assert_eq!(f.optimum(), Some(optimum));
        for seed in 0..20 {
            let mut x = f.start(seed);
            assert!(full_value(&mut f, &x) > optimum);
            x.scale(1e-3);
            assert!(full_value(&mut f, &x) > optimum);
        }
    }
    // One feature and an odd label out: f(x) = ¾ log(1 + e⁻ˣ) + ¼ log(1 + eˣ) is smallest at x = log 3.
    let features = Features::Dense(Mat::from_fn(4, 1, |i, _| [1.0, 1.0, -1.0, -1.0][i]));
    let f = Logistic::new(Labeled { features, labels: vec![1.0, 1.0, 0.0, 1.0] }, 0.0).unwrap();
    let expected = 0.75 * (4.0_f64 / 3.0).ln() + 0.25 * 4.0_f64.ln();
    assert!((f.minimum().unwrap() - expected).abs() < 1e-15);
}

#[test]
fn separable_classes_have_the_infimum_0_without_a_regularizer() {
    let f = Logistic::separable(60, 4, 0.3, 2).unwrap().standardized().unwrap().with_intercept().unwrap();
    assert_eq!((f.optimum(), f.minimum().unwrap()), (None, 0.0));
    assert!(f.with_regularization(0.01).unwrap().minimum().unwrap() > 0.0);
    let f = Logistic::separable(60, 4, 0.3, 2).unwrap().with_intercept().unwrap();
    assert_eq!((f.optimum(), f.separator().unwrap().len()), (Some(0.0), 5));
}
