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
        let sparse = Labeled { features: data.features.to_sparse(), labels: data.labels.clone() };
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
fn the_products_are_those_of_the_gradients() {
    let data = || random_data(30, 6, &[3.0, -2.0, 0.0, 9.0], 0);
    let sparse = Labeled { features: data().features.to_sparse(), labels: data().labels };
    let penalized = Softmax::new(sparse, 0.3).unwrap().with_intercept().unwrap();
    for mut f in [Softmax::new(data(), 0.0).unwrap(), penalized] {
        contract::has_products(&mut f, ProductKind::Hessian, true, 1e-13);
        contract::has_products(&mut f, ProductKind::GaussNewton, true, 1e-13);
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
    let report =
        minimize(&mut f).method(&mut method).sampler(Epochs::new(60, 60, 0).unwrap()).stop(&stop).start(start).unwrap();
    assert_eq!(report.reason, StopReason::GradientNorm);
    // A convex function has the same value at all stationary points.
    let other = f.start(1);
    let again =
        minimize(&mut f).method(&mut method).sampler(Epochs::new(60, 60, 0).unwrap()).stop(&stop).start(other).unwrap();
    assert!((report.last.value - again.last.value).abs() < 1e-12);
}

#[test]
fn test_accuracy_counts_correct_largest_scores() {
    let features = |n| Features::Dense(Mat::from_fn(n, 2, |i, j| f64::from(u8::from(i % 2 == j))));
    let train = Labeled { features: features(2), labels: vec![5.0, 8.0] };
    let test = Labeled { features: features(4), labels: vec![5.0, 8.0, 8.0, 8.0] };
    let mut f = Softmax::new(train, 0.0).unwrap();
    assert_eq!((f.test_metric(&Mat::identity(2, 2)), f.parameters()), (None, 4));
    let mut f = f.with_test(test.clone()).unwrap();
    assert_eq!(f.test_metric(&Mat::identity(2, 2)), Some(0.75));
    assert_eq!(f.test_metric(&Mat::zeros(2, 2)), Some(0.25), "all scores are equal, so the first class is predicted");

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
    for features in [features.clone(), features.to_sparse()] {
        let all = Softmax::new(Labeled { features, labels: labels.clone() }, 0.0).unwrap();
        let held = all.clone().with_test_share(0.25, 0).unwrap();
        let mut wrong = held.clone().with_wrong_labels(0.4, 7).unwrap();
        assert_eq!((held.terms(), wrong.terms()), (45, 45));
        assert_eq!(held.data.targets.iter().zip(&wrong.data.targets).filter(|(a, b)| a != b).count(), 18);
        assert_eq!(wrong.test_metric(&Mat::identity(3, 3)), Some(1.0));
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

#[test]
fn the_contract_holds_with_an_intercept_and_standardized_features() {
    for regularization in [0.0, 0.3] {
        let f = Softmax::new(random_data(40, 4, &[0.0, 1.0, 2.0], 5), regularization).unwrap();
        let f = f.with_last_rows_as_test(0.25).unwrap().standardized().unwrap();
        let mut f = f.with_intercept().unwrap();
        assert_eq!((f.parameters(), f.terms()), (15, 30));
        contract::holds(&mut f, 1.95..2.05, 1e-14);
        let w = f.start(1);
        contract::is_curved(&mut f, &w);
        assert!(f.clone().standardized().is_err() && f.with_intercept().is_err());
    }
}

#[test]
fn an_intercept_is_not_penalized_and_accuracies_count_both_sets() {
    let features = Features::Dense(Mat::from_fn(4, 1, |i, _| [1.0, -1.0, 2.0, -2.0][i]));
    let f = Softmax::new(Labeled { features, labels: vec![0.0, 1.0, 0.0, 0.0] }, 2.0).unwrap();
    let mut f = f.with_last_rows_as_test(0.5).unwrap().with_intercept().unwrap();
    // Scores of a are (a + 3, 3): the intercepts cancel in the loss.
    let w = Mat::from_fn(2, 2, |i, c| if i == 1 { 3.0 } else { [1.0, 0.0][c] });
    let (mut g, loss) = (Mat::zeros(2, 2), (1.0 + (-1.0_f64).exp()).ln());
    let value = f.value_and_gradient(&w, &Sample::range(0..2), &mut g).value;
    assert!((value - (loss + 1.0)).abs() < 1e-15);
    let pull = 1.0 / (1.0 + 1.0_f64.exp());
    let expected = [[2.0 - pull, pull], [0.0, 0.0]];
    assert!((0..2).all(|i| (0..2).all(|c| (g[(i, c)] - expected[i][c]).abs() < 1e-15)), "{g:?}");
    assert_eq!((f.train_accuracy(&w), f.test_metric(&w)), (Some(1.0), Some(0.5)));
}

#[test]
fn the_minimum_is_that_of_logistic_regression_and_0_for_separable_classes() {
    // With x = w₁ − w₀ the smallest penalty has w₁ = −w₀ = x/2, so λ‖W‖²/2 = λ‖x‖²/4.
    let data = random_data(30, 3, &[0.0, 1.0], 4);
    let softmax = Softmax::new(data.clone(), 0.2).unwrap();
    let logistic = Logistic::new(data, 0.1).unwrap();
    let optimum = softmax.minimum().unwrap();
    assert!((optimum - logistic.minimum().unwrap()).abs() < 1e-14);
    assert_eq!((softmax.optimum(), softmax.with_optimum(optimum).optimum()), (None, Some(optimum)));
    let features = Features::Dense(Mat::from_fn(9, 3, |i, j| f64::from(u8::from(i % 3 == j))));
    let labels = (0..9).map(|i| f64::from(i % 3)).collect();
    assert_eq!(Softmax::new(Labeled { features, labels }, 0.0).unwrap().minimum().ok(), Some(0.0));
}
