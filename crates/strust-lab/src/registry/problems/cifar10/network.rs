//! The network: images, ResNet-20, and how methods run on a GPU.

use super::{Cifar10Config, ImageFiles, NetworkPrecision, StepLaunch};
use crate::{
    Error,
    device::{WITHOUT_DATA, network_error},
    registry::{
        Setup, Visitor,
        entry::Switch,
        methods::{Gpu, on_gpu},
    },
};
use strust::objective::Objective;
use strust_data::images::{self, Checksums, ImageSet, Images};
use strust_torch::{
    ImageClassification, Launch, LoadsTo, cuda,
    device::{self, Device},
    images::{ImageBytes, Normalization},
};

/// Opens the device of a network and constructs and uses the network there. On a GPU it has a separate stream for that
/// time, so that other jobs do not wait for it, and loaded states go to the GPU. This also sets the number of libtorch
/// threads for the current thread.
pub(crate) fn on_device<R>(
    device: &str,
    threads: u64,
    precision: NetworkPrecision,
    run: impl FnOnce(Device) -> Result<R, Error>,
) -> Result<R, Error> {
    let device = device::open(device).map_err(network_error)?;
    device::set_threads(threads as usize);
    cuda::set_tf32(precision != NetworkPrecision::Single);
    let _stream = cuda::OwnStream::on(device).ok();
    let _loads = LoadsTo::device(device);
    run(device)
}

pub(super) fn visit<V: Visitor>(c: &Cifar10Config, scale: f64, visitor: V) -> Result<V::Output, Error> {
    on_device(&c.device, c.threads, c.precision, |device| {
        visit_images(cifar10(c, device)?.scaled(scale), c.precision, c.launch, visitor)
    })
}

/// Passes a network over images to the visitor, with steppers of its own on a GPU.
pub(crate) fn visit_images<V: Visitor>(
    problem: ImageClassification,
    precision: NetworkPrecision,
    launch: StepLaunch,
    visitor: V,
) -> Result<V::Output, Error> {
    let problem = if precision == NetworkPrecision::Bf16 { problem.in_bf16() } else { problem };
    let launch = match launch {
        StepLaunch::Graph => Launch::Graph,
        StepLaunch::Eager => Launch::Eager,
    };
    let (device, terms) = (problem.device(), problem.terms());
    let mut setup = Setup::classifier(problem);
    setup.save = Some(Box::new(|f, path, x| f.save(path, x).map_err(network_error)));
    if device.is_cuda() {
        setup.own_stepper =
            Some(Box::new(move |method, batch, steps| on_gpu(method, &Gpu { launch, batch, terms, steps })));
    }
    visitor.visit(setup)
}

fn cifar10(config: &Cifar10Config, device: Device) -> Result<ImageClassification, Error> {
    let ImageSet { train, test, classes } = read(&config.data, config.checksums)?;
    let train = first(train, "train_images", config.train_images)?;
    let test = first(test, "test_images", config.test_images)?;
    let problem = resnet20(&ImageSet { train, test, classes }, device)?;
    Ok(match config.augment {
        Switch::On => problem,
        Switch::Off => problem.without_augmentation(),
    })
}

/// Reads the images in a folder or an archive.
pub(crate) fn read(data: &str, files: ImageFiles) -> Result<ImageSet, Error> {
    if data.is_empty() {
        return Err(Error::Network(WITHOUT_DATA.into()));
    }
    let checksums = match files {
        ImageFiles::Official => Checksums::Official,
        ImageFiles::None => Checksums::Unchecked,
    };
    Ok(images::cifar10(&crate::data::paths::path_of(data), checksums)?)
}

pub(crate) fn bytes(images: &Images) -> ImageBytes<'_> {
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
pub(crate) fn resnet20(set: &ImageSet, device: Device) -> Result<ImageClassification, Error> {
    let (train, test) = (bytes(&set.train), bytes(&set.test));
    ImageClassification::resnet20(&train, Some(&test), set.classes.len(), device)
        .and_then(|network| network.normalized(&Normalization::cifar10()))
        .map_err(network_error)
}
