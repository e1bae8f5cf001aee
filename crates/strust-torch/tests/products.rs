//! Products with the curvature of a sample against differences of gradients, for every kind of model.

#![allow(clippy::cast_possible_wrap)]

mod common;

use common::{TERMS, bits, fill, indices, problem, store, waves};
use strust::{
    methods::{StrNewton, StrNewtonConfig},
    objective::ProductKind,
    prelude::*,
};
use strust_data::text::Characters;
use strust_problems::Problem;
use strust_torch::{
    AutodiffConstraint, BatchLoss, Component, ConvNet, Flat, GptShape, ImageClassification, LanguageModel,
    ModelParameters, Orthonormal, TorchObjective, cross_entropy, images::ImageBytes, seeded, supervised,
};
use tch::{Device, Kind, Tensor, nn, nn::ModuleT};

const BOTH: [ProductKind; 2] = [ProductKind::Hessian, ProductKind::GaussNewton];

fn sample(seed: u64) -> Sample {
    Sample::new((0..16).map(|i| (i * 5 + seed as usize) % TERMS).collect(), seed)
}

fn direction<T: Component>(x: &Flat<T>, phase: f64) -> Flat<T> {
    Flat::from_tensor(&waves(&[x.len()], phase, T::KIND))
}

/// Hv by a central difference of gradients, and the product.
fn compared<F: Objective>(f: &mut F, x: &F::Point, sample: &Sample, v: &F::Point, h: f64) -> (F::Point, F::Point) {
    let (mut point, mut up, mut down) = (x.zeros_like(), x.zeros_like(), x.zeros_like());
    let mut product = x.clone();
    assert!(f.curvature_product(ProductKind::Hessian, x, sample, v, &mut product));
    point.set_sum(x, h, v);
    f.value_and_gradient(&point, sample, &mut up);
    point.set_sum(x, -h, v);
    f.value_and_gradient(&point, sample, &mut down);
    up.add(-1.0, &down);
    up.scale(0.5 / h);
    (up, product)
}

/// Checks that the Hessian's product is that of differences, that both kinds are symmetric, that the Gauss–Newton matrix
/// is not negative, and that a product has no effect on other evaluations.
fn has_products<T: Component, F: Objective<Point = Flat<T>>>(f: &mut F, x: &Flat<T>, sample: &Sample, tolerance: f64) {
    let (u, v) = (direction(x, 0.3), direction(x, 1.1));
    let value = f.value(x, sample).value;
    // Short, because ReLU has kinks.
    let h = 1e-5;
    let (mut difference, product) = compared(f, x, sample, &v, h);
    let norm = product.norm();
    difference.add(-1.0, &product);
    assert!(difference.norm() <= tolerance * norm, "{:e} off of {norm:e}", difference.norm());
    for kind in BOTH {
        let (mut hu, mut hv) = (x.clone(), x.clone());
        assert!(f.curvature_product(kind, x, sample, &u, &mut hu) && f.curvature_product(kind, x, sample, &v, &mut hv));
        let off = (u.dot(&hv) - v.dot(&hu)).abs();
        assert!(off <= tolerance * u.norm() * hv.norm(), "{kind:?} is not symmetric by {off:e}");
        if kind == ProductKind::GaussNewton {
            assert!(u.dot(&hu) >= 0.0 && v.dot(&hv) > 0.0);
        }
    }
    assert_eq!(f.value(x, sample).value.to_bits(), value.to_bits());
}

#[test]
fn a_network_with_batch_norm_dropout_and_noise() {
    fn check<T: Component>(tolerance: f64) {
        let store = store::<T>();
        let mut f = problem::<T>(&store, 0.4, 0.3);
        let (x, before) = (f.point(), bits(f.parameters().buffers()));
        for kind in BOTH {
            let mut product = x.clone();
            assert!(f.curvature_product(kind, &x, &sample(3), &direction(&x, 0.7), &mut product));
            assert_eq!(bits(f.parameters().buffers()), before, "a product changed the running statistics");
            assert_eq!(bits(f.parameters().flat()), bits(&x), "a product changed the model");
        }
        has_products(&mut f, &x, &sample(3), tolerance);
    }
    check::<f64>(1e-7);
    check::<f32>(1e-2);
}

#[test]
fn the_mask_of_a_product_is_that_of_the_sample() {
    let store = store::<f64>();
    let mut f = problem::<f64>(&store, 0.5, 0.3);
    let (x, v) = (f.point(), direction(&f.point(), 0.7));
    for kind in BOTH {
        let mut product = |sample: &Sample| {
            let mut product = x.clone();
            assert!(f.curvature_product(kind, &x, sample, &v, &mut product));
            bits(&product)
        };
        let first = product(&sample(3));
        let reseeded = product(&Sample::new(sample(3).indices().to_vec(), 99));
        assert!(product(&sample(3)) == first && reseeded != first, "{kind:?}");
    }
}

/// JᵀBJ of a softmax from its definition, number by number.
#[test]
fn the_gauss_newton_form_is_that_of_the_change_of_the_outputs() {
    let store = store::<f64>();
    let mut f = problem::<f64>(&store, 0.0, 0.0);
    let (x, v, h) = (f.point(), direction(&f.point(), 0.7), 1e-6);
    // The same network with its outputs.
    let inputs = waves(&[TERMS as i64, 8], 0.3, Kind::Double).index_select(0, &indices(&sample(3)));
    let other = common::store::<f64>();
    let model = common::Net::new(&other, 0.0);
    let mut parameters = ModelParameters::<f64>::new(&other).unwrap();
    let mut outputs = |t: f64| {
        let mut point = x.zeros_like();
        point.set_sum(&x, t, &v);
        parameters.set(&point);
        tch::no_grad(|| model.forward(&inputs, true))
    };
    let (p, change) = (outputs(0.0).softmax(1, None), (outputs(h) - outputs(-h)) / (2.0 * h));
    let mean = (&p * &change).sum_dim_intlist([1].as_slice(), true, None);
    let expected = (&p * (change - mean).square()).sum(Kind::Double).double_value(&[]) / 16.0;
    let mut product = x.clone();
    assert!(f.curvature_product(ProductKind::GaussNewton, &x, &sample(3), &v, &mut product));
    assert!((v.dot(&product) / expected - 1.0).abs() < 1e-7, "{} is {expected}", v.dot(&product));
}

#[test]
fn a_convnet_with_and_without_batch_norm() {
    for batch_norm in [false, true] {
        let store = store::<f64>();
        let net = seeded(0, || ConvNet::new(&store.root(), 1, 3, batch_norm));
        fill(&store);
        let inputs = waves(&[TERMS as i64, 1, 8, 8], 0.3, Kind::Double);
        let targets = (waves(&[TERMS as i64], 1.7, Kind::Double) * 1e3).remainder(3.0).floor().to_kind(Kind::Int64);
        let batch = |sample: &Sample| {
            let rows = indices(sample);
            (inputs.index_select(0, &rows), targets.index_select(0, &rows))
        };
        let mut f = supervised::<f64>(&store, TERMS, batch, |x| net.forward_t(x, true), cross_entropy).unwrap();
        let x = f.point();
        has_products(&mut f, &x, &sample(5), 1e-6);
    }
}

#[test]
fn images_have_products_in_single_precision() {
    let labels: Vec<u8> = (0..24).map(|i| i % 3).collect();
    let pixels: Vec<u8> =
        (0..24 * 64_u32).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_mul(i | 1) >> 24) as u8).collect();
    let images = ImageBytes { pixels: &pixels, labels: &labels, shape: [1, 8, 8] };
    let mut f = ImageClassification::convnet(&images, None, 3, true, Device::Cpu).unwrap();
    let (x, sample) = (f.start(0), Sample::new((0..12).collect(), 4));
    has_products(&mut f, &x, &sample, 1e-2);
}

#[test]
fn a_transformer_in_both_precisions() {
    let text = Characters::new(&"to be or not to be, that is the question. ".repeat(30)).unwrap();
    let shape = GptShape { layers: 2, width: 12, heads: 3, context: 10 };
    let mut f = LanguageModel::<f64>::new(&text, shape, Device::Cpu).unwrap();
    let x = f.start(0);
    has_products(&mut f, &x, &Sample::new(vec![3, 0, 7, 3], 1), 1e-6);
    let mut f = LanguageModel::<f32>::new(&text, shape, Device::Cpu).unwrap();
    let x = f.start(0);
    has_products(&mut f, &x, &Sample::new(vec![3, 0, 7, 3], 1), 1e-2);
}

#[test]
fn linear_losses_have_products_of_zero_and_unused_parameters_too() {
    let store = store::<f64>();
    let used = store.root().var("used", &[2], nn::Init::Const(1.0));
    let _unused = store.root().var("unused", &[1], nn::Init::Const(1.0));
    let mut f = TorchObjective::<f64, _>::new(&store, 1, |_: &Sample| used.sum(Kind::Double)).unwrap();
    let (x, mut product) = (f.point(), Flat::from_slice(&[7.0; 3]));
    assert!(f.curvature_product(ProductKind::Hessian, &x, &Sample::range(0..1), &x, &mut product));
    assert_eq!(product.to_vec(), [0.0; 3]);
    let mut f =
        TorchObjective::<f64, _>::new(&store, 1, |_: &Sample| used.pow_tensor_scalar(3).sum(Kind::Double)).unwrap();
    assert!(f.curvature_product(ProductKind::Hessian, &x, &Sample::range(0..1), &x, &mut product));
    assert_eq!(product.to_vec(), [6.0, 6.0, 0.0]);
    // A loss without outputs has no Gauss–Newton matrix.
    assert!(!f.curvature_product(ProductKind::GaussNewton, &x, &Sample::range(0..1), &x, &mut product));
}

#[test]
fn a_model_that_cannot_be_differentiated_twice_has_no_products_and_the_method_uses_differences() {
    struct Fused(Tensor);
    impl BatchLoss for Fused {
        fn mean(&mut self, _: &Sample) -> Tensor {
            let x = self.0.view([1, 1, 4, 2]);
            // libtorch's fused attention has a gradient, but not a second one.
            Tensor::scaled_dot_product_attention::<Tensor>(&x, &x, &x, None, 0.0, true, None, false)
                .square()
                .sum(Kind::Float)
        }
    }
    let store = store::<f32>();
    let w = store.root().var("w", &[8], nn::Init::Const(0.5));
    let mut f = TorchObjective::<f32, _>::over(&store, 1, Fused(w)).unwrap();
    let (x, mut product) = (f.point(), f.point());
    for kind in BOTH {
        assert!(!f.curvature_product(kind, &x, &Sample::range(0..1), &x, &mut product));
    }
    let mut method = StrNewton::default();
    let mut state = method.init(&mut f, x).unwrap();
    let record = method.step(&mut f, &mut state, &Sample::range(0..1)).unwrap();
    assert!(record.evaluations.products == 0 && record.evaluations.gradients > 1, "{:?}", record.evaluations);
}

#[test]
fn newton_steps_are_worth_more_than_gradient_steps() {
    let store = store::<f64>();
    let mut f = problem::<f64>(&store, 0.0, 0.0);
    let start = f.point();
    let first_order = Str::new(StrConfig::default()).unwrap();
    let steps = Stop::steps(60);
    let run = minimize(&mut f).method(first_order).full_batch().stop(&steps).start(start.clone()).unwrap();
    for method in [StrNewton::default(), StrNewton::gauss_newton(StrNewtonConfig::default()).unwrap()] {
        let report = minimize(&mut f).method(method).full_batch().stop(&steps).start(start.clone()).unwrap();
        assert!(report.evaluations.products > 60 && report.evaluations.gradients == 60, "{:?}", report.evaluations);
        assert!(report.last.value < 0.95 * run.last.value, "{} against {}", report.last.value, run.last.value);
    }
}

#[test]
fn constraints_of_a_model_have_second_order_products() {
    let store = store::<f64>();
    let w = store.root().var("w", &[4, 2], nn::Init::Const(0.0));
    fill(&store);
    let parameters = ModelParameters::<f64>::new(&store).unwrap();
    let mut orthonormal = Orthonormal::columns(&parameters, &["w"]).unwrap();
    let residual = move || (w.tr().matmul(&w) - Tensor::eye(2, (Kind::Double, Device::Cpu))).reshape([-1]);
    let mut autodiff = AutodiffConstraint::<f64, _>::new(&parameters, residual).unwrap();
    let x = parameters.flat().clone();
    let (y, v) = (Flat::from_tensor(&waves(&[4], 0.2, Kind::Double)), direction(&x, 0.9));
    let (mut exact, mut found) = (x.zeros_like(), x.zeros_like());
    assert!(orthonormal.add_second_order_product(&x, 2.0, &y, &v, &mut exact));
    assert!(autodiff.add_second_order_product(&x, 2.0, &y, &v, &mut found));
    found.add(-1.0, &exact);
    assert!(exact.norm() > 0.1 && found.norm() < 1e-14 * exact.norm(), "{:e}", found.norm());
}

#[test]
#[ignore = "needs a GPU"]
fn on_a_gpu_a_network_of_our_kernels_has_the_products_of_the_cpu() {
    let (gpu, _alone) = common::gpu();
    let labels: Vec<u8> = (0..32).map(|i| i % 4).collect();
    let pixels: Vec<u8> =
        (0..32 * 3 * 1024_u32).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_mul(i | 1) >> 24) as u8).collect();
    let images = ImageBytes { pixels: &pixels, labels: &labels, shape: [3, 32, 32] };
    let sample = Sample::new((0..16).collect(), 4);
    for kind in BOTH {
        let [cpu, gpu] = [Device::Cpu, gpu].map(|device| {
            let mut f = ImageClassification::resnet20(&images, None, 4, device).unwrap();
            let x = f.start(0);
            let v = direction(&x.to_device(Device::Cpu), 0.7).to_device(device);
            let mut product = x.clone();
            assert!(f.curvature_product(kind, &x, &sample, &v, &mut product));
            product.to_vec()
        });
        let off = cpu.iter().zip(&gpu).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        let norm = cpu.iter().map(|a| a * a).sum::<f64>().sqrt();
        assert!(off < 0.02 * norm, "{kind:?}: {off:e} off of {norm:e}");
    }
}
