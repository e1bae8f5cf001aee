//! ResNet-20 gives the same numbers as in PyTorch; see golden_resnet20.py of strust-suites.

mod common;

use common::{store, waves};
use std::path::Path;
use strust::{objective::Objective, sample::Sample, vector::Vector};
use strust_torch::{Component, Flat, ModelParameters, ResNet20, cross_entropy, resnet, seeded, supervised};
use tch::{
    Device, Kind, Tensor,
    nn::{ModuleT, VarStore},
};

/// The weights of the golden file.
fn fill(store: &VarStore) {
    store.root().set_kind(store.kind());
    let mut parameters: Vec<(String, Tensor)> =
        store.variables().into_iter().filter(|(_, t)| t.requires_grad()).collect();
    parameters.sort_by(|a, b| a.0.cmp(&b.0));
    tch::no_grad(|| {
        for (i, (name, tensor)) in parameters.iter_mut().enumerate() {
            let (shape, wave) = (tensor.size(), waves(&tensor.size(), i as f64, Kind::Double));
            let values = if shape.len() > 1 {
                wave * (8.0 * shape[0] as f64 / tensor.numel() as f64).sqrt()
            } else {
                wave * 0.1 + if name.ends_with("weight") { 1.0 } else { 0.0 }
            };
            tensor.copy_(&values);
        }
    });
}

fn assert_digest(what: &str, tensor: &Tensor, digest: &serde_json::Value, tolerance: f64) {
    let flat = Flat::<f64>::from_tensor(tensor);
    let number = |v: &serde_json::Value| v.as_f64().unwrap();
    let norm = number(&digest["norm"]);
    let close = |name: &str, a: f64, b: f64| {
        assert!((a - b).abs() <= tolerance * norm, "{what}, {name}: {a} against {b}, norm {norm}");
    };
    close("norm", flat.norm(), norm);
    for (phase, expected) in [0.5, 1.5].into_iter().zip(digest["waves"].as_array().unwrap()) {
        let wave = Flat::<f64>::from_tensor(&waves(&[flat.len()], phase, Kind::Double));
        close("a product with a wave", flat.dot(&wave) / wave.norm().max(1.0), number(expected) / wave.norm().max(1.0));
    }
    for (i, expected) in digest["first"].as_array().unwrap().iter().enumerate() {
        close("a component", flat.to_vec()[i], number(expected));
    }
}

fn agrees_with_pytorch<T: Component>(tolerance: f64) {
    let golden: serde_json::Value = serde_json::from_str(include_str!("golden/resnet20.json")).unwrap();
    let store = store::<T>();
    let net = seeded(0, || ResNet20::new(&store.root(), 10));
    fill(&store);
    let images = waves(&[8, 3, 32, 32], 0.3, T::KIND);
    let labels = (Tensor::arange(8, (Kind::Int64, Device::Cpu)) * 7).remainder(10);
    let batch = |_: &Sample| (images.shallow_clone(), labels.shallow_clone());
    let mut f = supervised::<T>(&store, 8, batch, |x| net.forward_t(x, true), cross_entropy).unwrap();
    let (x, mut g) = (f.point(), f.point().zeros_like());
    let loss = f.value_and_gradient(&x, &Sample::new((0..8).collect(), 1), &mut g).value;

    let expected = golden["loss"].as_f64().unwrap();
    assert!((loss - expected).abs() <= tolerance * expected, "{loss} against {expected}");
    let gradients = golden["gradients"].as_object().unwrap();
    assert_eq!(gradients.len(), f.parameters().slots().len());
    for slot in f.parameters().slots() {
        assert_digest(&slot.name, &slot.of(&g), &gradients[&slot.name], tolerance);
    }
    let buffers = golden["buffers"].as_object().unwrap();
    let variables = store.variables();
    assert_eq!(variables.len(), gradients.len() + buffers.len());
    for (name, digest) in buffers {
        assert_digest(name, &variables[name], digest, tolerance);
    }
}

#[test]
fn a_wide_network_has_more_channels_of_the_same_layers() {
    let store = store::<f32>();
    let net = seeded(0, || ResNet20::wide(&store.root(), 40, 2));
    let variables = store.variables();
    assert_eq!(variables["conv1.weight"].size(), [32, 3, 3, 3]);
    assert_eq!(variables["layer3.0.conv1.weight"].size(), [128, 64, 3, 3]);
    assert_eq!(net.forward_t(&waves(&[2, 3, 32, 32], 0.3, Kind::Float), true).size(), [2, 40]);
}

#[test]
fn loss_gradients_and_running_statistics_agree_with_pytorch() {
    agrees_with_pytorch::<f64>(1e-10);
    agrees_with_pytorch::<f32>(1e-5);
}

#[test]
fn there_are_exactly_269_722_parameters_and_kaiming_initialization() {
    let store = store::<f32>();
    let _net = seeded(3, || ResNet20::new(&store.root(), 10));
    let parameters = ModelParameters::<f32>::new(&store).unwrap();
    assert_eq!((parameters.flat().len(), resnet::PARAMETERS), (269_722, 269_722));
    let spread = |name: &str| parameters.slot(name).unwrap().of(parameters.flat()).std(true).double_value(&[]);
    // √(2 / fan-in)
    for (name, fan_in) in [("layer1.0.conv1.weight", 144.0), ("layer3.2.conv2.weight", 576.0), ("linear.weight", 64.0)]
    {
        let expected = (2.0_f64 / fan_in).sqrt();
        assert!((spread(name) / expected - 1.0).abs() < 0.1, "{name}: {} against {expected}", spread(name));
    }
    let again = common::store::<f32>();
    let _net = seeded(3, || ResNet20::new(&again.root(), 10));
    assert!(
        ModelParameters::<f32>::new(&again).unwrap().flat() == parameters.flat(),
        "the same seed is the same model"
    );
}

#[test]
fn a_saved_model_has_pytorchs_names_and_is_loaded_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let (one, other) = (store::<f32>(), store::<f32>());
    let _nets = seeded(1, || (ResNet20::new(&one.root(), 10), ResNet20::new(&other.root(), 10)));
    let saved = ModelParameters::<f32>::new(&one).unwrap();
    let mut loaded = ModelParameters::<f32>::new(&other).unwrap();
    assert!(loaded.flat() != saved.flat());
    saved.save(&path).unwrap();
    loaded.load(&path).unwrap();
    assert!(loaded.flat() == saved.flat() && loaded.buffers() == saved.buffers());

    let golden: serde_json::Value = serde_json::from_str(include_str!("golden/resnet20.json")).unwrap();
    let file: Vec<String> = Tensor::read_safetensors(&path).unwrap().into_iter().map(|(name, _)| name).collect();
    for group in ["gradients", "buffers"] {
        assert!(golden[group].as_object().unwrap().keys().all(|name| file.contains(name)));
    }
    // A tensor that PyTorch adds and does not use is ignored.
    let mut tensors: Vec<(String, Tensor)> = Tensor::read_safetensors(&path).unwrap();
    tensors.push(("bn1.num_batches_tracked".into(), Tensor::from(7_i64)));
    Tensor::write_safetensors(&tensors, &path).unwrap();
    loaded.load(&path).unwrap();
}

#[test]
fn a_file_that_does_not_fit_is_refused_with_a_message_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (ten, hundred) = (store::<f32>(), store::<f32>());
    let _nets = seeded(1, || (ResNet20::new(&ten.root(), 10), ResNet20::new(&hundred.root(), 100)));
    let other = ModelParameters::<f32>::new(&hundred).unwrap();
    let mut model = ModelParameters::<f32>::new(&ten).unwrap();
    let before = model.flat().clone();
    let path = |name: &str| folder.path().join(name);
    let mut error = |path: &Path| model.load(path).unwrap_err().to_string();

    other.save(&path("hundred")).unwrap();
    let text = error(&path("hundred"));
    assert!(
        text.contains("`linear.bias` has shape [100], but the model's is [10]: the file has another architecture"),
        "{text}"
    );
    let bytes = std::fs::read(path("hundred")).unwrap();
    std::fs::write(path("short"), &bytes[..bytes.len() / 2]).unwrap();
    assert!(error(&path("short")).contains("is not a safetensors file, or is truncated"));
    assert!(error(&path("missing")).contains("cannot be read: "));
    Tensor::write_safetensors(&[("w", Tensor::zeros([2], (Kind::Float, Device::Cpu)))], path("tiny")).unwrap();
    assert!(error(&path("tiny")).contains("there is no `"));
    assert!(other.save(&path("no/such/folder")).unwrap_err().to_string().contains("cannot be written: "));
    assert!(model.flat() == &before);
}
