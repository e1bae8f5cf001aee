use super::*;
use crate::{
    Softmax,
    contract::{self, random_data},
    features::{Features, Labeled},
};
use strust::prelude::*;

const CLASSES: [f64; 3] = [0.0, 1.0, 2.0];

fn data(n: usize, d: usize, seed: u64) -> Classified {
    Classified::from_labeled(&random_data(n, d, &CLASSES, seed)).unwrap()
}

fn mlp<T: Real>(hidden: &[usize], activation: Activation) -> Mlp<T> {
    Mlp::new(&data(30, 4, 0), Some(&data(9, 4, 1)), hidden, activation).unwrap()
}

#[test]
fn the_contract_of_a_problem_holds_at_every_depth_in_both_precisions() {
    for activation in [Activation::Relu, Activation::Tanh] {
        for hidden in [&[][..], &[7], &[8, 5], &[12, 10, 9]] {
            contract::holds(&mut mlp::<f64>(hidden, activation), 1.95..2.05, 1e-13);
            // In f32 only long steps are above the rounding floor. They cross kinks of ReLU, where the slope is
            // meaningless. The next test compares the gradient in f32 with the gradient in f64.
            let slope = if activation == Activation::Relu { 0.5..9.0 } else { 1.4..2.6 };
            contract::holds(&mut mlp::<f32>(hidden, activation), slope, 1e-5);
        }
    }
}

#[test]
fn the_products_are_those_of_the_gradients_at_every_depth_in_both_precisions() {
    for activation in [Activation::Relu, Activation::Tanh, Activation::Linear] {
        for hidden in [&[][..], &[7], &[8, 5], &[12, 10, 9]] {
            let mut f = mlp::<f64>(hidden, activation);
            contract::has_products(&mut f, ProductKind::Hessian, false, 1e-13);
            contract::has_products(&mut f, ProductKind::GaussNewton, true, 1e-13);
            let mut f = mlp::<f32>(hidden, activation);
            contract::has_products(&mut f, ProductKind::GaussNewton, true, 1e-5);
            // In f32 the differences cross kinks of ReLU. The next test compares the products with those in f64.
            if activation != Activation::Relu {
                contract::has_products(&mut f, ProductKind::Hessian, false, 1e-5);
            }
        }
    }
}

#[test]
fn products_in_single_precision_agree_with_double() {
    for activation in [Activation::Relu, Activation::Tanh] {
        let (mut single, mut double) = (mlp::<f32>(&[16, 8], activation), mlp::<f64>(&[16, 8], activation));
        let (x, v, sample) = (single.start(1), single.start(2), Sample::new(vec![3, 0, 29, 3, 17], 0));
        let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        for kind in [ProductKind::Hessian, ProductKind::GaussNewton] {
            let (mut g, mut h) = (x.zeros_like(), wide(&x));
            assert!(single.curvature_product(kind, &x, &sample, &v, &mut g));
            assert!(double.curvature_product(kind, &wide(&x), &sample, &wide(&v), &mut h));
            let off = wide(&g).iter().zip(&h).map(|(g, h)| (g - h).powi(2)).sum::<f64>().sqrt();
            assert!(off < 3e-6 * h.norm(), "{off:e} of {:e}", h.norm());
        }
    }
}

/// vᵀJᵀBJu from central differences of the scores, with B = (1/b)(diag(p) − ppᵀ).
#[test]
fn the_gauss_newton_form_is_that_of_the_change_of_the_scores() {
    for activation in [Activation::Relu, Activation::Tanh] {
        let mut f = mlp::<f64>(&[8, 5], activation);
        let (x, sample, h) = (f.start(3), Sample::range(0..30), 1e-6);
        let [u, v] = [1, 2].map(|seed| contract::direction(&x, seed));
        let mut scores = |t: f64, v: &Vec<f64>| {
            let mut point = x.clone();
            point.add(t, v);
            f.network.forward(&point, &f.train.columns, 0..30).outputs.to_vec()
        };
        let z = scores(0.0, &u);
        let mut change = |v: &Vec<f64>| -> Vec<f64> {
            scores(h, v).iter().zip(scores(-h, v)).map(|(a, b)| (a - b) / (2.0 * h)).collect()
        };
        let (ju, jv) = (change(&u), change(&v));
        let expected: f64 = z
            .chunks(3)
            .zip(ju.chunks(3).zip(jv.chunks(3)))
            .map(|(z, (s, t))| {
                let sum: f64 = z.iter().map(|z| z.exp()).sum();
                let mean = |t: &dyn Fn(usize) -> f64| (0..3).map(|c| z[c].exp() / sum * t(c)).sum::<f64>();
                (mean(&|c| s[c] * t[c]) - mean(&|c| s[c]) * mean(&|c| t[c])) / 30.0
            })
            .sum();
        let mut product = x.zeros_like();
        assert!(f.curvature_product(ProductKind::GaussNewton, &x, &sample, &v, &mut product));
        assert!((u.dot(&product) / expected - 1.0).abs() < 1e-7, "{} is {expected}", u.dot(&product));
    }
}

#[test]
fn products_keep_their_digits_where_every_point_is_fitted_and_stay_positive_where_none_is() {
    // One feature that is 1, two classes: at the scores (s, −s) B is p(1 − p)(1, −1)(1, −1)ᵀ.
    let data = Classified::new(Mat::from_fn(2, 1, |_, _| 1.0), vec![0, 1], 2).unwrap();
    let mut f = Mlp::<f32>::new(&data, None, &[], Activation::Relu).unwrap();
    let (v, mut product) = (vec![1.0_f32, 0.5, 0.0, 0.0], vec![0.0_f32; 4]);
    for s in [-20.0_f32, 3.0, 10.0, 20.0] {
        assert!(f.curvature_product(
            ProductKind::Hessian,
            &vec![s, -s, 0.0, 0.0],
            &Sample::range(0..1),
            &v,
            &mut product
        ));
        let e = (-2.0 * f64::from(s).abs()).exp();
        let expected = 0.5 * e / ((1.0 + e) * (1.0 + e));
        // Where the point is not fitted, p of the target is only known to a rounding error.
        assert!(s < 0.0 || (f64::from(product[0]) / expected - 1.0).abs() < 1e-6, "{} is {expected}", product[0]);
        assert!(v.dot(&product) >= 0.0);
    }
}

#[test]
fn without_hidden_layers_it_is_softmax_regression_with_a_constant_feature() {
    let labeled = random_data(30, 4, &CLASSES, 0);
    let Features::Dense(features) = &labeled.features else { panic!("random data are dense") };
    let with_one = Mat::from_fn(30, 5, |i, j| if j < 4 { features[(i, j)] } else { 1.0 });
    let mut softmax =
        Softmax::new(Labeled { features: Features::Dense(with_one), labels: labeled.labels.clone() }, 0.0).unwrap();
    let mut f = mlp::<f64>(&[], Activation::Relu);
    assert_eq!(f.parameters(), softmax.parameters());
    let w = softmax.start(3);
    // The columns of [W b] are the rows of the other matrix.
    let x: Vec<f64> = (0..15).map(|k| w[(k / 3, k % 3)]).collect();
    let (mut g, mut expected) = (vec![0.0; 15], Mat::zeros(5, 3));
    for sample in [Sample::range(0..30), Sample::new(vec![7, 1, 7], 0)] {
        let value = f.value_and_gradient(&x, &sample, &mut g).value;
        assert!((value - softmax.value_and_gradient(&w, &sample, &mut expected).value).abs() < 1e-14);
        assert!((0..15).all(|k| (g[k] - expected[(k / 3, k % 3)]).abs() < 1e-15));
    }
}

#[test]
fn single_precision_agrees_with_double() {
    for activation in [Activation::Relu, Activation::Tanh] {
        for hidden in [&[][..], &[7], &[16, 8]] {
            let (mut single, mut double) = (mlp::<f32>(hidden, activation), mlp::<f64>(hidden, activation));
            let (x, y) = (single.start(1), double.start(1));
            let (mut g, mut h) = (x.zeros_like(), y.zeros_like());
            let sample = Sample::new(vec![3, 0, 29, 3, 17], 0);
            let (a, b) = (
                single.value_and_gradient(&x, &sample, &mut g).value,
                double.value_and_gradient(&y, &sample, &mut h).value,
            );
            assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
            let off: f64 = g.iter().zip(&h).map(|(&g, h)| (f64::from(g) - h).powi(2)).sum::<f64>().sqrt();
            assert!(off < 1e-6 * h.norm(), "{off}");
        }
    }
}

/// Two inputs, three hidden units and three classes. Class c has a large score where unit c is active. The data
/// determine which unit is active.
fn sorter(hidden: bool) -> (Mlp<f64>, Vec<f64>) {
    let corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]];
    let n = 2 * PIECE + 3;
    let data = Classified::new(Mat::from_fn(n, 2, |i, j| corners[i % 3][j]), (0..n).map(|i| i % 3).collect(), 3);
    let data = data.unwrap();
    let first = [-1.0, 1.0, 0.0, -1.0, 0.0, 1.0, 0.5, 0.0, 0.0];
    let second = [4.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0];
    let x = if hidden { [&first[..], &second].concat() } else { first.to_vec() };
    let widths: &[usize] = if hidden { &[3] } else { &[] };
    (Mlp::new(&data, Some(&data), widths, Activation::Relu).unwrap(), x)
}

#[test]
fn a_perfect_classifier_is_always_right_and_a_zero_one_is_right_on_the_first_class() {
    for hidden in [false, true] {
        let (mut f, x) = sorter(hidden);
        assert_eq!(f.accuracy(&x, Split::Train), Some(1.0));
        assert_eq!(f.test_metric(&x), Some(1.0));
        let n = f.terms();
        let first = n.div_ceil(3) as f64 / n as f64;
        assert_eq!(f.accuracy(&vec![0.0; x.len()], Split::Train), Some(first));
        assert_eq!(f.accuracy(&vec![f64::NAN; x.len()], Split::Train), Some(0.0));
    }
    let mut without = Mlp::<f64>::new(&data(9, 4, 0), None, &[], Activation::Relu).unwrap();
    let x = without.start(0);
    assert_eq!(without.test_metric(&x), None);
}

#[test]
fn the_loss_of_a_small_network_agrees_with_the_loss_computed_by_hand() {
    let (mut f, x) = sorter(true);
    // At the origin only the first unit is active, with ½: scores (2, 0, 0). At a corner the scores are 4, 0, 0.
    let log = |score: f64| (2.0 * (-score).exp()).ln_1p();
    for (i, expected) in [(0, log(2.0)), (1, log(4.0)), (2, log(4.0))] {
        assert!((f.value(&x, &Sample::range(i..i + 1)).value - expected).abs() < 1e-15);
    }
}

#[test]
fn huge_scores_do_not_overflow_and_small_losses_keep_their_digits() {
    fn check<T: Real>(large: f64, tolerance: f64) {
        let data = Classified::new(Mat::from_fn(2, 1, |_, _| 1.0), vec![0, 2], 3).unwrap();
        let mut f = Mlp::<T>::new(&data, None, &[], Activation::Relu).unwrap();
        let (first, mut g) = (Sample::range(0..1), vec![T::default(); 6]);
        let scores = |z: [f64; 3]| z.iter().chain(&[0.0; 3]).map(|&z| T::from_f64(z)).collect::<Vec<T>>();
        assert!(f.value_and_gradient(&scores([large, 0.0, -large]), &first, &mut g).value < 1e-300);
        assert!(g.iter().all(|&g| g == T::default()));
        let value = f.value_and_gradient(&scores([-large, 0.0, large]), &first, &mut g).value;
        assert!((value / (2.0 * large) - 1.0).abs() < tolerance);
        assert_eq!(g, [-1.0, 0.0, 1.0, -1.0, 0.0, 1.0].map(T::from_f64));
        let value = f.value_and_gradient(&scores([1050.0, 1000.0, 0.0]), &first, &mut g).value;
        let expected = (-50.0_f64).exp();
        assert!((value / expected - 1.0).abs() < tolerance);
        assert!((g[0].into() / -expected - 1.0).abs() < tolerance && (g[1].into() / expected - 1.0).abs() < tolerance);
    }
    check::<f64>(1e300, 1e-15);
    check::<f32>(1e38, 1e-7);
}

#[test]
fn the_value_of_a_network_that_overflows_is_not_finite() {
    // NaN or infinity in a hidden unit must reach the value, because the value rejects the trial.
    for activation in [Activation::Relu, Activation::Tanh] {
        let mut f = mlp::<f32>(&[6, 5], activation);
        let mut x = f.start(0);
        for bad in [f32::NAN, f32::INFINITY] {
            let at = x.len() - 1;
            let kept = std::mem::replace(&mut x[at], bad);
            assert!(!f.value(&x, &Sample::range(0..30)).value.is_finite());
            x[at] = kept;
        }
        x[0] = f32::NAN;
        assert!(f.value(&x, &Sample::range(0..30)).value.is_nan());
        x.fill(f32::MAX);
        if activation == Activation::Relu {
            assert!(!f.value(&x, &Sample::range(0..30)).value.is_finite());
        }
    }
}

#[test]
fn the_start_has_the_variance_of_he_or_glorot_and_zero_biases() {
    for (activation, variances) in
        [(Activation::Relu, [2.0 / 50.0, 2.0 / 400.0]), (Activation::Tanh, [2.0 / 450.0, 2.0 / 403.0])]
    {
        let f = Mlp::<f64>::new(&data(9, 50, 0), None, &[400], activation).unwrap();
        let x = f.start(2);
        let (first, second) = x.split_at(51 * 400);
        for (layer, (units, variance)) in [first, second].iter().zip([400, 3].iter().zip(variances)) {
            let (weights, biases) = layer.split_at(layer.len() - units);
            let found = weights.iter().map(|w| w * w).sum::<f64>() / weights.len() as f64;
            assert!((found / variance - 1.0).abs() < 0.1, "{found} {variance}");
            assert!(biases.iter().all(|&b| b == 0.0));
        }
    }
}

#[test]
fn layers_are_announced_from_the_last_to_the_first_with_their_final_bits() {
    let mut f = mlp::<f32>(&[8, 5], Activation::Tanh);
    let (x, sample) = (f.start(3), Sample::range(4..20));
    let (mut expected, mut found) = (x.zeros_like(), x.zeros_like());
    let value = f.value_and_gradient(&x, &sample, &mut expected);
    let mut announced = Vec::new();
    let in_slices = f.value_and_gradient_in_slices(&x, &sample, &mut found, &mut |gradient, place| {
        assert_eq!(gradient[place..], expected[place..], "ready from {place} on");
        announced.push(place);
    });
    assert_eq!((in_slices, found), (value, expected.clone()));
    // 8 units of 4 inputs and a bias, 5 of 8, 3 of 5.
    assert_eq!(announced, [8 * 5 + 5 * 9, 8 * 5]);
    assert_eq!(f.slices(), announced);
    assert!(mlp::<f64>(&[], Activation::Relu).slices().is_empty());
}

#[test]
fn wrong_sizes_are_errors() {
    let train = data(9, 4, 0);
    let message = |test: Option<&Classified>, hidden: &[usize]| {
        Mlp::<f32>::new(&train, test, hidden, Activation::Relu).unwrap_err().to_string()
    };
    assert_eq!(message(None, &[5, 0]), "multilayer perceptron: `hidden` is 0, but must be ≥ 1");
    assert!(
        message(None, &[usize::MAX])
            .contains("but must be widths of at most 2147483648 parameters, with 4 features and 3 outputs")
    );
    assert!(
        message(None, &[usize::MAX / 16, 2])
            .contains("but must be widths of at most 2147483648 parameters, with 4 features and 3 outputs")
    );
    assert_eq!(
        message(Some(&data(9, 5, 0)), &[]),
        "[features, classes] of the test set: expected shape [4, 3], found [5, 3]"
    );
    let large = Classified::new(Mat::from_fn(2, 1, |_, _| 1e300), vec![0, 1], 2).unwrap();
    let error = Mlp::<f32>::new(&large, None, &[], Activation::Relu).unwrap_err().to_string();
    assert!(error.contains("`features` is inf at row 0, column 0"), "{error}");
    assert!(Mlp::<f64>::new(&large, None, &[], Activation::Relu).is_ok());
    let f = mlp::<f64>(&[2], Activation::Tanh);
    assert_eq!(
        f.check_point(&vec![0.0; 18]).unwrap_err().to_string(),
        "point of a multilayer perceptron: expected shape [19], found [18]"
    );
}
