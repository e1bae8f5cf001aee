//! A trial evaluates the same function as the step and changes no state.

mod common;

use common::{bits, fill, problem, store, waves};
use strust::{
    objective::Evaluations,
    prelude::*,
    radius::{RegionConfig, Verdict},
};
use strust_baselines::{Adam, AdamConfig, LineSearch, LineSearchConfig, Sgd, SgdConfig};
use strust_torch::{Flat, ModelParameters, TorchObjective, seeded};
use tch::{Device, Kind, Tensor, nn, nn::VarStore};

fn sample(seed: u64) -> Sample {
    Sample::new((0..16).map(|i| (i * 5 + seed as usize) % common::TERMS).collect(), seed)
}

#[test]
fn parameters_are_views_of_one_buffer_in_the_order_of_their_creation() {
    let store = store::<f32>();
    let net = seeded(0, || nn::linear(store.root() / "layer", 3, 2, nn::LinearConfig::default()));
    let before = Tensor::cat(&[net.bs.as_ref().unwrap().reshape([-1]), net.ws.reshape([-1])], 0);
    let mut parameters = ModelParameters::<f32>::new(&store).unwrap();
    let names: Vec<_> = parameters.slots().iter().map(|s| (s.name.as_str(), s.offset, s.shape.clone())).collect();
    assert_eq!(names, [("layer.bias", 0, vec![2]), ("layer.weight", 2, vec![2, 3])]);
    assert_eq!(parameters.flat().tensor(), &before.detach());

    let x = Flat::from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    parameters.set(&x);
    assert_eq!(Vec::<f32>::try_from(net.ws.reshape([-1])).unwrap(), [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    assert!(net.ws.requires_grad() && net.ws.is_leaf());
    tch::no_grad(|| net.bs.as_ref().unwrap().shallow_clone().fill_(9.0)).size();
    assert_eq!(parameters.flat().to_vec()[..2], [9.0, 9.0]);
}

#[test]
fn gradients_are_correct_in_one_flat_vector() {
    let store = store::<f64>();
    let mut f = problem::<f64>(&store, 0.0, 0.0);
    let x = f.point();
    let (sample, mut g) = (sample(3), x.zeros_like());
    let value = f.value_and_gradient(&x, &sample, &mut g).value;
    assert_eq!(value.to_bits(), f.value(&x, &sample).value.to_bits());
    let direction = Flat::<f64>::from_tensor(&waves(&[x.len()], 0.9, Kind::Double));
    let h = 1e-6;
    let (mut up, mut down) = (x.zeros_like(), x.zeros_like());
    up.set_sum(&x, h, &direction);
    down.set_sum(&x, -h, &direction);
    let slope = (f.value(&up, &sample).value - f.value(&down, &sample).value) / (2.0 * h);
    let exact = g.dot(&direction);
    assert!((slope - exact).abs() < 1e-7 * g.norm() * direction.norm(), "{slope} against {exact}");
}

#[test]
fn a_parameter_that_the_loss_does_not_use_has_gradient_zero() {
    let store = store::<f32>();
    let used = store.root().var("used", &[2], nn::Init::Const(1.0));
    let _unused = store.root().var("unused", &[3], nn::Init::Const(1.0));
    let mut f = TorchObjective::<f32, _>::new(&store, 1, |_: &Sample| used.square().sum(Kind::Float)).unwrap();
    let (x, mut g) = (f.point(), Flat::from_slice(&[7.0; 5]));
    f.value_and_gradient(&x, &Sample::range(0..1), &mut g);
    assert_eq!(g.to_vec(), [2.0, 2.0, 0.0, 0.0, 0.0]);
}

#[test]
fn the_trial_has_the_same_augmentation_and_the_same_dropout_mask() {
    let store = store::<f64>();
    let mut f = problem::<f64>(&store, 0.5, 0.3);
    let x = f.point();
    let mut g = x.zeros_like();
    let first = f.value_and_gradient(&x, &sample(3), &mut g).value;
    // Other uses of the generator in between have no effect, and neither has another sample.
    seeded(5, || Tensor::randn([1000], (Kind::Float, Device::Cpu))).size();
    let other = f.value(&x, &sample(4)).value;
    let again = f.value(&x, &sample(3)).value;
    assert_eq!(first.to_bits(), again.to_bits());
    // Another seed with the same rows gives another function, so the masks are drawn.
    let reseeded = f.value(&x, &Sample::new(sample(3).indices().to_vec(), 99)).value;
    assert!(other.to_bits() != first.to_bits() && reseeded.to_bits() != first.to_bits());
    // The batch is reused between the evaluations of a step. A new batch of the same sample is the same.
    let store = common::store::<f64>();
    let mut fresh = problem::<f64>(&store, 0.5, 0.3);
    assert_eq!(fresh.value(&x, &sample(3)).value.to_bits(), first.to_bits());
}

#[test]
fn the_dropout_masks_of_two_threads_do_not_interact() {
    let run = |seed: u64| {
        let store = store::<f64>();
        let mut f = problem::<f64>(&store, 0.5, 0.3);
        let x = f.point();
        (0..40).map(|k| f.value(&x, &sample(seed + k)).value.to_bits()).collect::<Vec<_>>()
    };
    let alone = (run(1), run(1000));
    let together = std::thread::scope(|s| {
        let (a, b) = (s.spawn(|| run(1)), s.spawn(|| run(1000)));
        (a.join().unwrap(), b.join().unwrap())
    });
    assert_eq!(alone, together);
}

fn statistics(store: &VarStore) -> Vec<f64> {
    let variables = store.variables();
    let read = |name: &str| Vec::<f64>::try_from(variables[name].to_kind(Kind::Double)).unwrap();
    [read("norm.running_mean"), read("norm.running_var")].concat()
}

#[test]
fn running_statistics_are_updated_once_per_step_at_x_and_never_in_a_trial() {
    let store = store::<f64>();
    let mut f = problem::<f64>(&store, 0.2, 0.1);
    let x = f.point();
    let mut g = x.zeros_like();
    let start = statistics(&store);
    f.value(&x, &sample(1));
    assert_eq!(statistics(&store), start, "a trial");
    f.value_and_gradient(&x, &Sample::range(0..64), &mut g);
    assert_eq!(statistics(&store), start, "a measurement on the full sum");
    f.value_and_gradient(&x, &sample(1), &mut g);
    let once = statistics(&store);
    assert_ne!(once, start, "a step's gradient");

    // A whole step changes them by the same amount: the trial, accepted or not, adds nothing.
    for radius in [1e-3, 80.0] {
        let store = common::store::<f64>();
        let mut f = problem::<f64>(&store, 0.2, 0.1);
        let mut method =
            Str::new(StrConfig { region: RegionConfig { initial_radius: radius, ..Default::default() } }).unwrap();
        let mut state = method.init(&mut f, x.clone()).unwrap();
        let record = method.step(&mut f, &mut state, &sample(1)).unwrap();
        assert_eq!(record.evaluations, Evaluations { values: 1, gradients: 1, products: 0 });
        assert_eq!(statistics(&store), once);
    }
}

#[test]
fn batch_norm_uses_the_statistics_of_the_batch_in_the_trial_too() {
    let store = store::<f64>();
    let mut f = problem::<f64>(&store, 0.0, 0.0);
    let x = f.point();
    let before = f.value(&x, &sample(1)).value;
    let variables = store.variables();
    tch::no_grad(|| variables["norm.running_mean"].shallow_clone().fill_(5.0)).size();
    assert_eq!(f.value(&x, &sample(1)).value.to_bits(), before.to_bits());
}

#[test]
fn a_rejected_step_restores_every_parameter_bit_for_bit() {
    let store = store::<f32>();
    let mut f = problem::<f32>(&store, 0.5, 0.1);
    let start = f.point();
    let config = StrConfig { region: RegionConfig { initial_radius: 1e6, max_radius: 1e6, ..Default::default() } };
    // A loss a million times as steep: a step of length ‖g‖ is far too long.
    let steep = common::store::<f32>();
    let w = steep.root().var("w", &[50], nn::Init::Const(0.1));
    fill(&steep);
    let mut g = TorchObjective::<f32, _>::new(&steep, 1, |_: &Sample| w.square().sum(Kind::Float) * 1e6).unwrap();
    let x = g.point();
    let mut method = Str::new(config).unwrap();
    let mut state = method.init(&mut g, x.clone()).unwrap();
    let record = method.step(&mut g, &mut state, &Sample::new(vec![0], 1)).unwrap();
    assert_eq!(record.verdict, Verdict::Rejected);
    assert_eq!((bits(state.point()), bits(g.parameters().flat())), (bits(&x), bits(&x)));
    assert_eq!(bits(&f.point()), bits(&start));
    // An evaluation at another point does not change the model.
    let mut elsewhere = start.clone();
    elsewhere.scale_add(2.0, 0.0, &start);
    f.value(&elsewhere, &sample(1));
    assert_eq!(bits(f.parameters().flat()), bits(&start));
}

#[test]
fn every_method_of_the_library_decreases_the_loss_of_a_model() {
    fn descends<M: Method<F>, F: Objective<Point = Flat<f32>>>(name: &str, mut f: F, x: Flat<f32>, mut method: M) {
        let before = f.value(&x, &Sample::range(0..64)).value;
        let mut sampler = Epochs::new(64, 16, 1).unwrap();
        let report =
            minimize(&mut f).method(&mut method).sampler(&mut sampler).stop(Stop::epochs(30)).start(x).unwrap();
        assert!(report.last.value < 0.7 * before, "{name}: {before} to {}", report.last.value);
    }
    macro_rules! check {
        ($name:literal, $method:expr) => {{
            let store = store::<f32>();
            let f = problem::<f32>(&store, 0.1, 0.05);
            let x = f.point();
            descends($name, f, x, $method.unwrap());
        }};
    }
    check!("STR", Str::new(StrConfig::default()));
    check!("SGD", Sgd::new(SgdConfig { learning_rate: 0.2, ..Default::default() }));
    check!("Adam", Adam::new(AdamConfig { learning_rate: 1e-2, ..Default::default() }));
    check!("line search", LineSearch::new(LineSearchConfig::default()));
}

#[test]
fn wrong_types_and_shapes_are_refused_with_a_message() {
    let store = store::<f64>();
    let empty = ModelParameters::<f32>::new(&store).unwrap_err().to_string();
    assert!(empty.starts_with("the model has no trainable parameter"), "{empty}");
    let w = store.root().var("w", &[2], nn::Init::Const(0.0));
    let kind = ModelParameters::<f32>::new(&store).unwrap_err().to_string();
    assert!(kind.starts_with("parameter `w` is Double, but Float is required"), "{kind}");
    let mut f = TorchObjective::<f64, _>::new(&store, 1, |_: &Sample| w.sum(Kind::Double)).unwrap();
    let shape = Str::new(StrConfig::default()).unwrap().init(&mut f, Flat::from_slice(&[0.0; 3])).unwrap_err();
    assert_eq!(shape.to_string(), "model: expected shape [2], found [3]");
    let unknown = f.parameters().slot("v").unwrap_err().to_string();
    assert_eq!(unknown, "there is no parameter `v`; there are `w`");
}

#[test]
fn a_weight_in_channels_last_order_keeps_it_in_the_vector_and_in_the_gradient() {
    let store = store::<f64>();
    let mut w = store.root().var("w", &[2, 3, 2, 2], nn::Init::Const(0.0));
    let numbers = waves(&[2, 3, 2, 2], 0.4, Kind::Double);
    w.set_data(&numbers.permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2]));
    let factors = waves(&[2, 3, 2, 2], 0.9, Kind::Double);
    let weights = w.shallow_clone();
    let loss = |_: &Sample| (&weights * &factors).sum(Kind::Double);
    let mut f = TorchObjective::<f64, _>::new(&store, 1, loss).unwrap();
    assert!(w.equal(&numbers) && w.permute([0, 2, 3, 1]).is_contiguous());
    let in_memory = Flat::<f64>::from_tensor(&numbers.permute([0, 2, 3, 1]));
    assert_eq!(f.point(), in_memory);
    let mut g = f.point();
    f.value_and_gradient(&in_memory, &Sample::range(0..1), &mut g);
    assert!(f.parameters().slot("w").unwrap().of(&g).equal(&factors));
}
