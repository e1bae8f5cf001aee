//! ResNet-20 on images as a problem of the library.

use strust::{
    objective::full_value,
    prelude::*,
    radius::{RegionConfig, Verdict},
    samplers::Sampler,
};
use strust_problems::Problem;
use strust_torch::{
    DeviceMethod, DeviceStr, Flat, ImageClassification,
    images::{DeviceImages, ImageBytes, Normalization},
};
use tch::{
    Device, Kind,
    nn::{self, Module},
};

const TERMS: usize = 24;
const BATCH: usize = 8;

/// Images whose brightness depends on their class, with a pattern added.
struct Data(Vec<u8>, Vec<u8>);

impl Data {
    fn new(count: usize, shape: [usize; 3]) -> Self {
        tch::set_num_threads(1);
        let size: usize = shape.iter().product();
        let labels: Vec<u8> = (0..count).map(|i| (i % 3) as u8).collect();
        let noise = |i: usize| ((i as u32).wrapping_mul(2_654_435_761) >> 26) as u8;
        let pixels = (0..count * size).map(|i| 60 * labels[i / size] + noise(i)).collect();
        Self(pixels, labels)
    }
    fn bytes(&self, shape: [usize; 3]) -> ImageBytes<'_> {
        ImageBytes { pixels: &self.0, labels: &self.1, shape }
    }
}

const CIFAR: [usize; 3] = [3, 32, 32];

fn resnet() -> ImageClassification {
    let data = Data::new(TERMS, CIFAR);
    let images = data.bytes(CIFAR);
    ImageClassification::resnet20(&images, Some(&images), 3, Device::Cpu).unwrap()
}

/// A linear map with batch-norm on small images: fast, and with running statistics.
fn small() -> ImageClassification {
    let shape = [3, 4, 4];
    let (train, test) = (Data::new(96, shape), Data::new(30, shape));
    ImageClassification::new(&train.bytes(shape), Some(&test.bytes(shape)), 3, Device::Cpu, |path| {
        let config = nn::BatchNormConfig { ws_init: nn::Init::Const(1.0), ..Default::default() };
        let norm = nn::batch_norm2d(path / "norm", 3, config);
        let linear = nn::linear(path / "linear", 48, 3, nn::LinearConfig::default());
        Box::new(move |x, training| linear.forward(&x.apply_t(&norm, training).flatten(1, -1)))
    })
    .unwrap()
}

fn bits(x: &Flat<f32>) -> Vec<u8> {
    let mut out = Vec::new();
    x.write(&mut out);
    out
}

#[test]
fn a_start_depends_only_on_the_seed_and_resets_the_statistics() {
    let mut f = resnet();
    assert_eq!((f.parameters(), f.terms(), f.optimum()), (269_722 - 7 * 65, TERMS, None));
    let (start, fresh) = (f.start(3), f.extra_state());
    let mut g = start.zeros_like();
    f.value_and_gradient(&start, &Sample::new((0..BATCH).collect(), 0), &mut g);
    assert!(f.extra_state() != fresh, "seed 0 is a seed as any other, and the statistics move");
    assert!(f.start(4) != start);
    assert!(bits(&f.start(3)) == bits(&start) && f.extra_state() == fresh);
}

#[test]
fn a_measurement_changes_no_statistics_and_does_not_augment() {
    let mut f = small();
    let x = f.start(0);
    let before = f.extra_state();
    let (value, accuracy) = (full_value(&mut f, &x), f.test_metric(&x));
    let mut g = x.zeros_like();
    let with_gradient = strust::objective::full_value_and_gradient(&mut f, &x, &mut g);
    assert_eq!((value.to_bits(), f.extra_state()), (with_gradient.to_bits(), before));
    assert_eq!(f.test_metric(&x), accuracy);
    let mut plain = small().without_augmentation();
    let all: Vec<usize> = (0..96).collect();
    assert_eq!(plain.value(&x, &Sample::new(all.clone(), 5)).value.to_bits(), value.to_bits());
    assert_ne!(f.value(&x, &Sample::new(all, 5)).value.to_bits(), value.to_bits());
}

#[test]
fn a_trial_that_is_not_finite_is_rejected_and_does_not_change_the_statistics() {
    let mut f = resnet();
    let start = f.start(0);
    let config = StrConfig { region: RegionConfig { initial_radius: 8.0, ..Default::default() } };
    let mut method = Str::new(config).unwrap();
    let mut state = method.init(&mut f, start.clone()).unwrap();
    let sample = |k: u64| Sample::new((0..BATCH).map(|i| (i * 3 + k as usize) % TERMS).collect(), k);
    method.step(&mut f, &mut state, &sample(0)).unwrap();

    // The gradient is finite, but the step is so long that the trial overflows.
    let (x, mut g) = (state.point().clone(), start.zeros_like());
    f.value_and_gradient(&x, &sample(1), &mut g);
    let (statistics, mut trial) = (f.extra_state(), x.clone());
    trial.add(-1e38 / g.norm(), &g);
    assert!(!f.value(&trial, &sample(1)).value.is_finite());
    assert!(f.extra_state() == statistics, "a value");
    assert!(!f.value_and_gradient(&trial, &sample(1), &mut g).value.is_finite());
    assert!(f.extra_state() == statistics, "a gradient that is not finite");
}

#[test]
fn a_loss_that_is_nan_at_the_trial_is_recorded_as_a_rejected_step() {
    // log(1 − w) is not defined for w > 1. A step of length ½ ends there.
    let data = Data::new(4, [1, 2, 2]);
    let mut f = ImageClassification::new(&data.bytes([1, 2, 2]), None, 3, Device::Cpu, |path| {
        let w = path.var("w", &[3], nn::Init::Const(0.9));
        let norm = nn::batch_norm2d(path / "norm", 1, nn::BatchNormConfig::default());
        Box::new(move |x, training| {
            let logits = x.apply_t(&norm, training).flatten(1, -1).narrow(1, 0, 3) * 0.0;
            logits + (1.0_f64 - &w).log() * tch::Tensor::from_slice(&[1.0_f32, 0.0, 0.0])
        })
    })
    .unwrap();
    let start = f.start(0);
    let mut method =
        Str::new(StrConfig { region: RegionConfig { initial_radius: 8.0, ..Default::default() } }).unwrap();
    let mut state = method.init(&mut f, start.clone()).unwrap();
    // Classes 1 and 2 decrease the logit of class 0, which moves w toward 1 and beyond.
    let record = method.step(&mut f, &mut state, &Sample::new(vec![1, 2], 1)).unwrap();
    let region = record.region.unwrap();
    assert_eq!((record.verdict, region.trial, region.ratio), (Verdict::Rejected, None, None));
    assert!(state.radius() < 8.0 && bits(state.point()) == bits(&start));
    assert!(f.extra_state().chunks(4).all(|b| f32::from_le_bytes(b.try_into().unwrap()).is_finite()));
}

#[test]
fn every_step_is_a_function_of_the_seed_and_a_run_resumes_from_saved_buffers() {
    let run = |f: &mut ImageClassification, x: Flat<f32>, steps: std::ops::Range<u64>| {
        let (mut sampler, mut sample) = (Epochs::new(TERMS, BATCH, 1).unwrap(), Sample::default());
        let mut method = Str::new(StrConfig::default()).unwrap();
        let mut state = method.init(f, x).unwrap();
        let mut values = Vec::new();
        for k in steps {
            sampler.draw(k, &mut sample);
            values.push(method.step(f, &mut state, &sample).unwrap().value.to_bits());
        }
        (state.into_point(), values)
    };
    let mut f = resnet();
    let start = f.start(0);
    let (middle, _) = run(&mut f, start.clone(), 0..2);
    let buffers = f.extra_state();
    let (end, values) = run(&mut f, middle.clone(), 2..4);
    let mut other = resnet();
    other.restore_extra_state(&buffers).unwrap();
    let (same, again) = run(&mut other, middle, 2..4);
    assert!(values == again && bits(&end) == bits(&same) && f.extra_state() == other.extra_state());
    let error = other.restore_extra_state(&buffers[1..]).unwrap_err().to_string();
    let length = buffers.len();
    assert_eq!(
        error,
        format!(
            "saved state: {} bytes of running statistics, but the model has {length}: they belong to another model",
            length - 1
        )
    );
}

#[test]
fn training_learns_and_a_saved_model_gives_the_same_predictions() {
    // Crops of such small images are mostly black.
    let mut f = small().without_augmentation();
    let start = f.start(0);
    let mut sampler = Epochs::new(f.terms(), 32, 0).unwrap();
    let report = minimize(&mut f)
        .method(Str::new(StrConfig::default()).unwrap())
        .sampler(&mut sampler)
        .stop(Stop::epochs(20))
        .start(start)
        .unwrap();
    let x = report.point();
    let accuracy = f.test_metric(x).unwrap();
    assert!(accuracy > 0.9, "{accuracy}");
    let test = Data::new(30, [3, 4, 4]);
    let classes = f.predict(x, &test.bytes([3, 4, 4])).unwrap();
    let right = classes.iter().zip(&test.1).filter(|(a, b)| a == b).count();
    assert_eq!((classes.len(), right as f64 / 30.0), (30, accuracy));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    f.save(&path, x).unwrap();
    let mut other = small();
    let loaded = other.load(&path).unwrap();
    assert!(bits(&loaded) == bits(x) && other.test_metric(&loaded) == Some(accuracy));
    let error = resnet().load(&path).unwrap_err().to_string();
    assert!(error.contains("the file has another architecture"), "{error}");
}

#[test]
fn str_on_the_device_makes_the_same_steps() {
    let (mut f, mut g) = (small(), small());
    let start = f.start(1);
    g.start(1);
    g.objective().set(&start);
    let mut library = Str::new(StrConfig::default()).unwrap();
    let mut state = library.init(&mut f, start).unwrap();
    let mut device = DeviceStr::start(StrConfig::default(), g.objective(), 10).unwrap();
    for k in 0..10 {
        let sample = Sample::new((0..16).map(|i| (i * 5 + k) % 96).collect(), k as u64);
        library.step(&mut f, &mut state, &sample).unwrap();
        device.step(g.objective(), &sample).unwrap();
    }
    let mut difference = device.state(g.objective()).into_point();
    difference.add(-1.0, state.point());
    assert!(difference.norm() < 1e-4 * state.point().norm());
}

#[test]
fn a_power_of_two_scales_the_loss_and_its_gradient_exactly_also_for_methods_on_the_device() {
    let mut plain = small().without_random_numbers();
    let (x, sample) = (plain.start(1), Sample::new(vec![5, 0, 40, 95], 7));
    let mut g = x.zeros_like();
    let f = plain.value_and_gradient(&x, &sample, &mut g);
    for scale in [2.0_f64.powi(20), 2.0_f64.powi(-20)] {
        let mut scaled = small().without_random_numbers().scaled(scale);
        assert_eq!(bits(&scaled.start(1)), bits(&x));
        let mut h = x.zeros_like();
        let found = scaled.value_and_gradient(&x, &sample, &mut h);
        assert_eq!((found.value, found.rounding, scaled.scale()), (scale * f.value, scale * f.rounding, scale));
        h.scale(1.0 / scale);
        assert_eq!(bits(&h), bits(&g));
        // Methods on the device use this objective.
        assert_eq!(scaled.objective().value(&x, &sample).value.to_bits(), found.value.to_bits());
    }
}

#[test]
fn images_that_do_not_fit_are_refused_with_a_message() {
    let (cifar, small) = (Data::new(6, CIFAR), Data::new(6, [3, 4, 4]));
    let error = |train: &ImageBytes, test: Option<&ImageBytes>, classes| {
        ImageClassification::resnet20(train, test, classes, Device::Cpu).unwrap_err().to_string()
    };
    assert_eq!(error(&small.bytes([3, 4, 4]), None, 3), "images: they are 3×4×4, but ResNet-20 is made for 3×32×32");
    assert_eq!(
        error(&cifar.bytes(CIFAR), Some(&small.bytes([3, 4, 4])), 3),
        "images: the test images have shape [3, 4, 4], but the training images [3, 32, 32]"
    );
    let none = ImageBytes { pixels: &[], labels: &[], shape: CIFAR };
    assert_eq!(error(&none, None, 3), "images: there is no image");
    assert!(error(&cifar.bytes(CIFAR), None, 2).contains("image 2 has class 2, but there are 2 classes"));
    // The sampler refuses a batch that is larger than the training set.
    assert!(Epochs::new(6, BATCH, 0).is_err());
    let wrong = ImageClassification::new(&small.bytes([3, 4, 4]), None, 3, Device::Cpu, |path| {
        let linear = nn::linear(path / "linear", 48, 4, nn::LinearConfig::default());
        Box::new(move |x, _| linear.forward(&x.flatten(1, -1)))
    });
    assert!(wrong.unwrap_err().to_string().starts_with("images: there are 3 classes, but for one image"));
}

/// The mean over fixed batches of each channel's mean and unbiased variance, computed from the images themselves.
fn statistics_of_images(f: &mut ImageClassification, images: &DeviceImages, batch: usize) -> Vec<f64> {
    let mut sampler = Epochs::over(f).batch(batch);
    let mut sums = vec![0.0; 6];
    let batches = f.terms() / batch;
    for k in 0..batches as u64 {
        let mut sample = Sample::default();
        sampler.draw(k, &mut sample);
        let channels = images.batch(&sample).0.to_kind(Kind::Double).transpose(0, 1).reshape([3, -1]);
        for c in 0..3 {
            let numbers = Vec::<f64>::try_from(channels.get(c)).unwrap();
            let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
            let squares = numbers.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
            sums[c as usize] += mean / batches as f64;
            sums[3 + c as usize] += squares / (numbers.len() - 1) as f64 / batches as f64;
        }
    }
    sums
}

#[test]
fn recomputed_statistics_are_the_mean_over_training_batches_and_depend_on_nothing_else() {
    // 600 images: two batches of 256, and a rest that is left out.
    let shape = [3, 4, 4];
    let train = Data::new(600, shape);
    let network = |momentum| {
        ImageClassification::new(&train.bytes(shape), None, 3, Device::Cpu, move |path| {
            let norm = nn::batch_norm2d(path / "norm", 3, nn::BatchNormConfig { momentum, ..Default::default() });
            let linear = nn::linear(path / "linear", 48, 3, nn::LinearConfig::default());
            Box::new(move |x, training| linear.forward(&x.apply_t(&norm, training).flatten(1, -1)))
        })
        .unwrap()
    };
    let bytes = train.bytes(shape);
    let images = DeviceImages::new(&bytes, 3, &Normalization::of(&bytes), Device::Cpu).unwrap().augmented();
    for momentum in [0.1, 0.3, 1.0] {
        let mut f = network(momentum);
        let x = f.start(0);
        let expected = statistics_of_images(&mut f, &images, 256);
        f.objective().set(&x);
        f.recompute_extra_state(&x);
        let fresh = f.extra_state();
        let found: Vec<f64> = fresh.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()).into()).collect();
        for (a, b) in found.iter().zip(&expected) {
            assert!((a - b).abs() < 1e-5, "momentum {momentum}: {found:?} and {expected:?}");
        }
        // After other statistics and at another place of the model, the same bytes.
        let mut g = x.zeros_like();
        let elsewhere = f.start(1);
        f.value_and_gradient(&elsewhere, &Sample::new((0..8).collect(), 3), &mut g);
        assert!(f.extra_state() != fresh);
        f.recompute_extra_state(&x);
        assert!(f.extra_state() == fresh);
        assert!(bits(f.objective().parameters().flat()) == bits(&elsewhere), "the parameters stay");
    }
    let mut still = network(0.0);
    let x = still.start(0);
    let before = still.extra_state();
    still.recompute_extra_state(&x);
    assert!(still.extra_state() == before, "statistics that never move");
}

#[test]
fn recomputed_statistics_of_the_last_point_predict_as_well_as_the_running_ones() {
    let mut f = small().without_augmentation();
    let start = f.start(0);
    let mut sampler = Epochs::new(f.terms(), 32, 0).unwrap();
    let method = Str::new(StrConfig::default()).unwrap();
    let stop = Stop::epochs(20);
    let report = minimize(&mut f).method(method).sampler(&mut sampler).stop(stop).start(start.clone()).unwrap();
    // The statistics of the start do not fit the end.
    let x = report.point();
    f.start(0);
    let unfit = f.test_metric(x).unwrap();
    f.recompute_extra_state(x);
    let accuracy = f.test_metric(x).unwrap();
    assert!(accuracy > 0.9 && accuracy >= unfit, "{accuracy} and {unfit}");
}

#[test]
fn a_measurement_leaves_the_parameters_of_the_model_unchanged() {
    let mut f = small();
    let (own, x) = (f.start(0), f.start(1));
    f.objective().set(&own);
    let mut g = x.zeros_like();
    full_value(&mut f, &x);
    strust::objective::full_value_and_gradient(&mut f, &x, &mut g);
    f.test_metric(&x);
    let folder = tempfile::tempdir().unwrap();
    f.save(&folder.path().join("model.safetensors"), &x).unwrap();
    assert!(bits(f.objective().parameters().flat()) == bits(&own));
}

#[test]
fn the_convolutional_network_learns_and_has_the_stated_size() {
    let shape = [1, 8, 8];
    let (train, test) = (Data::new(96, shape), Data::new(30, shape));
    for batch_norm in [false, true] {
        let network = |test: Option<&ImageBytes>, classes| {
            ImageClassification::convnet(&train.bytes(shape), test, classes, batch_norm, Device::Cpu).unwrap()
        };
        // With batch-norm, a weight and a bias of the norm replace a bias.
        assert_eq!(network(None, 10).parameters(), 23_946 + usize::from(batch_norm) * (16 + 32 + 64));
        let mut f = network(Some(&test.bytes(shape)), 3);
        assert_eq!(f.extra_state().is_empty(), !batch_norm);
        let start = f.start(0);
        let stop = Stop::epochs(15);
        let report = minimize(&mut f).method(Str::new(StrConfig::default()).unwrap()).batch(16).stop(stop);
        let report = report.start(start.clone()).unwrap();
        let losses = [full_value(&mut f, &start), full_value(&mut f, report.point())];
        assert!(losses[1] < 0.3 * losses[0], "{losses:?}");
        assert!(f.test_metric(report.point()).unwrap() > 0.9);
        // Without augmentation the seed of a sample has no effect.
        let value = |f: &mut ImageClassification, seed| f.value(&start, &Sample::new(vec![3, 4, 5], seed)).value;
        assert_eq!(value(&mut f, 1).to_bits(), value(&mut f, 2).to_bits());
    }
    let small = Data::new(6, [3, 3, 9]);
    let error = ImageClassification::convnet(&small.bytes([3, 3, 9]), None, 3, false, Device::Cpu).unwrap_err();
    assert_eq!(error.to_string(), "images: they are 3×9, but the network needs 4×4 or more");
}

#[test]
fn gradients_of_the_convolutional_network_are_the_slopes_of_its_loss() {
    let shape = [1, 8, 8];
    let train = Data::new(12, shape);
    let mut f = ImageClassification::convnet(&train.bytes(shape), None, 3, false, Device::Cpu).unwrap();
    let x = f.start(2);
    let (sample, mut g) = (Sample::range(0..12), x.zeros_like());
    f.value_and_gradient(&x, &sample, &mut g);
    // In single precision: a difference over a step along the gradient.
    let h = 1e-2 / g.norm();
    let at = |f: &mut ImageClassification, h: f64| {
        let mut y = x.clone();
        y.add(h, &g);
        f.value(&y, &sample).value
    };
    let (slope, exact) = ((at(&mut f, h) - at(&mut f, -h)) / (2.0 * h), g.norm_squared());
    assert!((slope / exact - 1.0).abs() < 1e-2, "{slope} and {exact}");
}
