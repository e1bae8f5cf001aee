//! The networks over libtorch: their construction, and how methods run on a GPU.

mod captured;

use super::network_config::{
    Cifar10Config, ConvnetConfig, GptConfig, ImageClasses, ImageFiles, NetworkPrecision, Predictions, StepLaunch,
};
use crate::{
    Error,
    data::paths::{path_of, text_of},
    device::{WITHOUT_DATA, torch::network_error},
    registry::{AnySetup, AnyStepper, Assembler, PointType, entry::Switch, keys::Keys, setup::OwnStepper},
};
use captured::{Captured, OnDevice};
use std::{borrow::Cow, path::Path};
use strust::{objective::Objective, ranks::Group};
use strust_baselines::by_name::MethodOptions;
use strust_data::{
    digits,
    images::{self, Checksums, ImageSet, Images},
    text::{self, Characters},
};
use strust_problems::AnyProblem;
use strust_torch::{
    DeviceAdam, DeviceAuto, DeviceSgd, DeviceStr, Flat, GptShape, ImageClassification, LanguageModel, Launch, LoadsTo,
    cuda,
    device::{self, Device},
    images::{ImageBytes, Normalization},
};

/// ResNet-20 on CIFAR-10.
pub(super) fn cifar10(c: &Cifar10Config, assembler: Assembler) -> Result<AnySetup, Error> {
    let on = OpenDevice::open(&c.device, c.threads, c.precision)?;
    Ok(image_setup(resnet20_on_cifar10(c, on.device)?, c.precision, c.launch, on, assembler))
}

/// A small convolutional network on digits.
pub(super) fn convnet(c: &ConvnetConfig, assembler: Assembler) -> Result<AnySetup, Error> {
    let on = OpenDevice::open(&c.device, c.threads, c.precision)?;
    let set = if c.data.is_empty() { digits::images()? } else { images::mnist(&path_of(&c.data))? };
    let (train, test) = (bytes(&set.train), bytes(&set.test));
    let norm = c.batch_norm == Switch::On;
    let problem = ImageClassification::convnet(&train, Some(&test), set.classes.len(), norm, on.device);
    Ok(image_setup(problem.map_err(network_error)?, c.precision, c.launch, on, assembler))
}

/// A transformer over the characters of a text.
pub(super) fn gpt(c: &GptConfig, assembler: Assembler) -> Result<AnySetup, Error> {
    type Model = LanguageModel<f32>;
    let on = OpenDevice::open(&c.device, c.threads, c.precision)?;
    let text =
        if c.data.is_empty() { Cow::Borrowed(text::built_in()) } else { Cow::Owned(text::read(&path_of(&c.data))?) };
    let [layers, width, heads, context] = [c.layers, c.width, c.heads, c.context].map(|size| size as usize);
    let shape = GptShape { layers, width, heads, context };
    let model = Model::new(&Characters::new(&text)?, shape, on.device).map_err(network_error)?;
    let model = if c.precision == NetworkPrecision::Bf16 { model.in_bf16() } else { model };
    // A captured step knows no scale.
    #[expect(clippy::float_cmp, reason = "a scale of 1 is exact")]
    let (terms, alone) = (model.terms(), assembler.scale == 1.0 && assembler.sharing.team.size() == 1);
    let model = AnyProblem::new(model).scaled(assembler.scale);
    let mut setup = assembler.shared(model);
    setup.own_stepper = own_stepper::<Model>(on.device, alone, c.launch, terms);
    setup.save = Some(Box::new(|f, path, x| f.inner_mut().inner_mut::<Model>().save(path, x).map_err(network_error)));
    setup.held = Some(Box::new(on));
    Ok(PointType::hidden(setup))
}

/// The device of a network while the network lives. On a GPU it has a separate stream, so that other jobs do not wait for
/// it, and loaded states go to the GPU.
struct OpenDevice {
    device: Device,
    _stream: Option<cuda::OwnStream>,
    _loads: LoadsTo,
}

impl OpenDevice {
    /// Opens a device. This also sets the number of libtorch threads for the current thread.
    fn open(device: &str, threads: u64, precision: NetworkPrecision) -> Result<Self, Error> {
        let device = device::open(device).map_err(network_error)?;
        device::set_threads(threads as usize);
        cuda::set_tf32(precision != NetworkPrecision::Single);
        Ok(Self { device, _stream: cuda::OwnStream::on(device).ok(), _loads: LoadsTo::device(device) })
    }
}

/// A network over images, with steppers of its own on a GPU.
fn image_setup(
    problem: ImageClassification,
    precision: NetworkPrecision,
    launch: StepLaunch,
    on: OpenDevice,
    assembler: Assembler,
) -> AnySetup {
    let problem = problem.scaled(assembler.scale);
    let problem = if precision == NetworkPrecision::Bf16 { problem.in_bf16() } else { problem };
    let (terms, alone) = (problem.terms(), assembler.sharing.team.size() == 1);
    // The problem scales its loss itself, because it has special steppers.
    let mut setup = assembler.shared(AnyProblem::new(problem));
    setup.save =
        Some(Box::new(|f, path, x| captured::network::<ImageClassification>(f).save(path, x).map_err(network_error)));
    setup.own_stepper = own_stepper::<ImageClassification>(on.device, alone, launch, terms);
    setup.held = Some(Box::new(on));
    PointType::hidden(setup)
}

/// The steppers of a network on a GPU, for a rank that is alone.
fn own_stepper<N: OnDevice>(
    device: Device,
    alone: bool,
    launch: StepLaunch,
    terms: usize,
) -> Option<OwnStepper<Flat<f32>>> {
    let launch = match launch {
        StepLaunch::Graph => Launch::Graph,
        StepLaunch::Eager => Launch::Eager,
    };
    if !device.is_cuda() || !alone {
        return None;
    }
    // A captured step has no average.
    Some(Box::new(
        move |keys, batch, steps| {
            if keys.average() { None } else { captured::<N>(keys, launch, batch, terms, steps).transpose() }
        },
    ))
}

/// A method on a network on a GPU; `None` if it has no such version.
fn captured<N: OnDevice>(
    keys: &Keys,
    launch: Launch,
    batch: usize,
    terms: usize,
    steps: u64,
) -> Result<Option<AnyStepper<Flat<f32>>>, Error> {
    let schedule = keys.schedule(steps);
    Ok(Some(match keys.name {
        "auto" => Box::new(Captured::<DeviceAuto<f32>, N>::new(keys.config()?, batch, terms, launch)),
        "str" => Box::new(Captured::<DeviceStr<f32>, N>::new(keys.config()?, batch, terms, launch)),
        "sgd" => Box::new(
            Captured::<DeviceSgd<f32>, N>::new(keys.config()?, batch, terms, launch)
                .with(move |method| method.schedule(schedule)),
        ),
        "adam" => Box::new(
            Captured::<DeviceAdam<f32>, N>::new(keys.config()?, batch, terms, launch)
                .with(move |method| method.schedule(schedule)),
        ),
        _ => return Ok(None),
    }))
}

fn resnet20_on_cifar10(config: &Cifar10Config, device: Device) -> Result<ImageClassification, Error> {
    let ImageSet { train, test, classes } = read(&config.data, config.checksums)?;
    let train = first(train, "train_images", config.train_images)?;
    let test = first(test, "test_images", config.test_images)?;
    let set = ImageSet { train, test, classes };
    let problem = match config.classes {
        ImageClasses::Objects => resnet20(&set, config.width, device)?,
        // The mirror image of an object that was turned left was turned right.
        ImageClasses::ObjectsAndRotations => resnet20(&set.turned()?, config.width, device)?.without_mirroring(),
    };
    Ok(match config.augment {
        Switch::On => problem,
        Switch::Off => problem.without_augmentation(),
    })
}

/// Reads the images in a folder or an archive.
fn read(data: &str, files: ImageFiles) -> Result<ImageSet, Error> {
    if data.is_empty() {
        return Err(Error::Network(WITHOUT_DATA.into()));
    }
    let checksums = match files {
        ImageFiles::Official => Checksums::Official,
        ImageFiles::None => Checksums::Unchecked,
    };
    Ok(images::cifar10(&path_of(data), checksums)?)
}

fn bytes(images: &Images) -> ImageBytes<'_> {
    ImageBytes { pixels: &images.pixels, labels: &images.labels, shape: images.shape }
}

/// The first `count` images, or all if that is 0.
fn first(images: Images, field: &'static str, count: u64) -> Result<Images, Error> {
    let there = images.len() as u64;
    if count > there {
        let (value, allowed) = (count.to_string(), format!("at most {there}, the number of images, or 0 for all"));
        return Err(strust::Error::OutOfRange { owner: "cifar10", field, value, allowed }.into());
    }
    Ok(if count == 0 { images } else { images.take(count as usize) })
}

/// All images are normalized with CIFAR-10's constants, so that a network trained on some images works on others.
fn resnet20(set: &ImageSet, width: u64, device: Device) -> Result<ImageClassification, Error> {
    let (train, test) = (bytes(&set.train), bytes(&set.test));
    ImageClassification::wide_resnet20(&train, Some(&test), set.classes.len(), width as usize, device)
        .and_then(|network| network.normalized(&Normalization::cifar10()))
        .map_err(network_error)
}

/// The predictions of a network in a safetensors file for the test images in a folder. The images must be CIFAR-10's
/// unless `unchecked` is set.
pub(crate) fn predictions(model: &Path, data: &Path, unchecked: bool, device: &str) -> Result<Predictions, Error> {
    let device = device::open(device).map_err(network_error)?;
    let files = if unchecked { ImageFiles::None } else { ImageFiles::Official };
    let set = read(&text_of(data), files)?;
    cuda::set_tf32(false);
    let mut network = resnet20(&set, 1, device)?;
    let x = network.load(model).map_err(network_error)?;
    let predicted = network.predict(&x, &bytes(&set.test)).map_err(network_error)?;
    let device = device::report(device).map_err(network_error)?.to_string();
    Ok(Predictions { device, classes: set.classes, labels: set.test.labels, predicted })
}
