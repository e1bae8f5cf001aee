//! Problems that need libtorch: the devices they run on, training, and what a trained network is worth.
//!
//! Without the feature `torch` nothing here can run, and says what to do.

use crate::{
    Error,
    experiment::{Experiment, ProblemSpec},
};
use serde::Serialize;
#[cfg(feature = "torch")]
pub(crate) use with_torch::{cifar10, error, launch, own_stream};
#[cfg(feature = "torch")]
pub use with_torch::{evaluate, export};

/// What a program that was built without libtorch says.
pub const WITHOUT_TORCH: &str =
    "this needs libtorch, and this program was built without it. In the folder of its source:
  eval \"$(scripts/torch-env)\"
  cargo install --path crates/strust-cli --features torch";

/// What to do without images.
pub const WITHOUT_DATA: &str = "there are no images: get them with `strust data cifar10 --to DIR`, then say `--data DIR`, or \
                                `data = \"DIR\"` in the experiment file";

/// Whether a problem is a network that libtorch runs.
#[must_use]
pub fn is_network(problem: &ProblemSpec) -> bool {
    problem.kind == "cifar10"
}

/// Opens the devices that the networks of an experiment ask for and writes their names into it. Returns what they are, for
/// the report; nothing without networks.
pub fn open_devices(experiment: &mut Experiment) -> Result<Option<String>, Error> {
    let mut devices: Vec<String> = Vec::new();
    check_precision(experiment)?;
    for problem in experiment.problems.iter_mut().filter(|p| is_network(p)) {
        let asked = problem.parameters.get("device").and_then(toml::Value::as_str).unwrap_or("auto");
        let threads = problem.parameters.get("threads").and_then(toml::Value::as_integer).unwrap_or(1);
        let (name, device) = open(asked, threads as usize)?;
        problem.parameters.insert("device".into(), name.into());
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    Ok((!devices.is_empty()).then(|| devices.join(" and ")))
}

/// Whether libtorch rounds the factors of products is one switch for the whole program, and jobs run side by side.
fn check_precision(experiment: &Experiment) -> Result<(), Error> {
    let networks = experiment.problems.iter().filter(|p| is_network(p));
    let single: Vec<bool> =
        networks.map(|p| p.parameters.get("precision").and_then(toml::Value::as_str) == Some("single")).collect();
    if single.iter().any(|&s| s != single[0]) {
        let why = "the networks of one experiment calculate alike: `precision` is single for all of them or for none; \
                   make two experiments";
        return Err(Error::Network(why.into()));
    }
    Ok(())
}

/// What a failure of the GPU in the middle of a run means to the user, if `text`, of an error or a panic, tells of one.
///
/// libtorch throws, tch panics with what was thrown, stack and all.
#[must_use]
pub fn gpu_failure(text: &str) -> Option<String> {
    let signs =
        ["CUDA out of memory", "CUDA error", "CUDA driver error", "cuDNN error", "CUBLAS_STATUS", "CUDNN_STATUS"];
    let begin = signs.iter().filter_map(|sign| text.find(sign)).min()?;
    let what = text[begin..].split(['\n', '"']).next().unwrap_or_default();
    let what = what.split("\\n").next().unwrap_or_default().trim_end_matches('.');
    let saved = "What was saved is whole";
    Some(if ["out of memory", "ALLOC_FAILED"].iter().any(|sign| what.contains(sign)) {
        format!(
            "the GPU's memory is full: {what}. {saved}: let fewer jobs run side by side (--jobs 1), or see what else \
             uses the GPU (nvidia-smi), and go on with `strust resume`. A smaller `batch` in the experiment needs less"
        )
    } else {
        format!("the GPU failed: {what}. {saved}: when the GPU works again (nvidia-smi), go on with `strust resume`")
    })
}

/// The device's name, and what it is.
#[cfg(feature = "torch")]
fn open(name: &str, threads: usize) -> Result<(String, String), Error> {
    strust_torch::device::set_threads(threads);
    let device = strust_torch::device::open(name).and_then(strust_torch::device::report).map_err(with_torch::error)?;
    Ok((device.name(), device.to_string()))
}

#[cfg(not(feature = "torch"))]
fn open(_name: &str, _threads: usize) -> Result<(String, String), Error> {
    Err(Error::Network(WITHOUT_TORCH.into()))
}

/// How a network does on images it was not trained on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Where it ran.
    pub device: String,
    /// How many images.
    pub images: usize,
    /// Share of them put into the right class.
    pub accuracy: f64,
    /// Class by class.
    pub classes: Vec<ClassScore>,
    /// Images of class i that were taken for class j.
    pub confusion: Vec<Vec<usize>>,
}

/// How a network does on one class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassScore {
    /// The class.
    pub name: String,
    /// Its images.
    pub images: usize,
    /// Share of them that were recognized; absent without images.
    pub accuracy: Option<f64>,
    /// Share of the images taken for this class that are of it; absent if there are none.
    pub precision: Option<f64>,
}

impl Evaluation {
    /// Counts predictions against the truth; both are below the number of classes.
    #[must_use]
    pub fn new(device: String, names: &[String], truth: &[u8], predicted: &[u8]) -> Self {
        let mut confusion = vec![vec![0; names.len()]; names.len()];
        for (&t, &p) in truth.iter().zip(predicted) {
            confusion[usize::from(t)][usize::from(p)] += 1;
        }
        let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
        let classes = names.iter().enumerate().map(|(i, name)| {
            let (images, taken) = (confusion[i].iter().sum(), confusion.iter().map(|row| row[i]).sum());
            let right = confusion[i][i];
            ClassScore { name: name.clone(), images, accuracy: share(right, images), precision: share(right, taken) }
        });
        let classes = classes.collect();
        let right = (0..names.len()).map(|i| confusion[i][i]).sum::<usize>();
        Self { device, images: truth.len(), accuracy: right as f64 / truth.len() as f64, classes, confusion }
    }
}

#[cfg(feature = "torch")]
mod with_torch {
    use super::Evaluation;
    use crate::{
        Error,
        catalog::{self, Arithmetic, Cifar10Config, Files, Switch},
        checkpoint::Checkpoint,
        conduct::job_folder,
        files,
        plan::Plan,
    };
    use serde::{Deserialize, Serialize};
    use std::path::Path;
    use strust::vector::{Vector, saved};
    use strust_problems::{
        Problem,
        images::{self, Checksums, ImageSet, Images},
    };
    use strust_torch::{
        Flat, ImageClassification, Launch, cuda, device,
        images::{ImageBytes, Normalization},
    };

    #[allow(clippy::needless_pass_by_value)] // for `map_err`
    pub(crate) fn error(error: strust_torch::Error) -> Error {
        match error {
            strust_torch::Error::Method(error) => Error::Method(error),
            error => Error::Network(super::gpu_failure(&error.to_string()).unwrap_or_else(|| error.to_string())),
        }
    }

    fn bytes(images: &Images) -> ImageBytes<'_> {
        ImageBytes { pixels: &images.pixels, labels: &images.labels, shape: images.shape }
    }

    fn read(data: &str, files: Files) -> Result<ImageSet, Error> {
        if data.is_empty() {
            return Err(Error::Network(super::WITHOUT_DATA.into()));
        }
        let checksums = match files {
            Files::Official => Checksums::Official,
            Files::None => Checksums::Unchecked,
        };
        Ok(images::cifar10(Path::new(data), checksums)?)
    }

    /// On a GPU, a stream for this job, so that those of other jobs need not wait for it.
    pub(crate) fn own_stream(config: &Cifar10Config) -> Result<Option<cuda::OwnStream>, Error> {
        let device = device::open(&config.device).map_err(error)?;
        Ok(cuda::OwnStream::on(device).ok())
    }
    pub(crate) fn launch(config: &Cifar10Config) -> Launch {
        match config.launch {
            catalog::Launch::Graph => Launch::Graph,
            catalog::Launch::Eager => Launch::Eager,
        }
    }

    /// The problem that a configuration describes, and the number of threads for all that this thread does.
    pub(crate) fn cifar10(config: &Cifar10Config) -> Result<ImageClassification, Error> {
        device::set_threads(config.threads as usize);
        let ImageSet { train, test, classes } = read(&config.data, config.checksums)?;
        let train = first(train, "train_images", config.train_images)?;
        let test = first(test, "test_images", config.test_images)?;
        let set = ImageSet { train, test, classes };
        let problem = network(&set, device::open(&config.device).map_err(error)?)?;
        cuda::set_tf32(config.precision != Arithmetic::Single);
        let problem = if config.precision == Arithmetic::Bf16 { problem.in_bf16() } else { problem };
        Ok(match config.augment {
            Switch::On => problem,
            Switch::Off => problem.without_augmentation(),
        })
    }

    /// So many of the images, or all if that is 0.
    fn first(images: Images, field: &'static str, count: u64) -> Result<Images, Error> {
        let there = images.len() as u64;
        if count > there {
            let (value, allowed) = (count.to_string(), format!("at most {there}, the images there are, or 0 for all"));
            return Err(strust::Error::OutOfRange { owner: "cifar10", field, value, allowed }.into());
        }
        Ok(if count == 0 { images } else { images.take(count as usize) })
    }

    /// All images are normalized by CIFAR-10's constants: what was trained on some can be used on others.
    fn network(set: &ImageSet, device: device::Device) -> Result<ImageClassification, Error> {
        let (train, test) = (bytes(&set.train), bytes(&set.test));
        ImageClassification::resnet20(&train, Some(&test), set.classes.len(), device)
            .and_then(|network| network.normalized(&Normalization::cifar10()))
            .map_err(error)
    }

    /// A method's state, of which only the point matters here.
    #[derive(Serialize, Deserialize)]
    #[serde(bound = "V: Vector")]
    struct Point<V> {
        #[serde(with = "saved")]
        x: V,
    }

    /// Writes the network that the first job of a finished plan has trained as a safetensors file, under PyTorch's names.
    pub fn export(folder: &Path, plan: &Plan, model: &Path) -> Result<(), Error> {
        let job = &plan.jobs[0];
        let path = job_folder(folder, job).join("checkpoint.bin");
        let missing = || Error::saved(&path, "there is no checkpoint: nothing was trained");
        let checkpoint =
            Checkpoint::<Point<Flat<f32>>>::load(&path, job.checksum(&plan.experiment))?.ok_or_else(missing)?;
        let config: Cifar10Config =
            catalog::config(&job.problem.parameters).map_err(|why| Error::saved(folder, why))?;
        let mut network = cifar10(&config)?;
        network.restore_extra_state(&checkpoint.extra_state)?;
        let device = device::open(&config.device).map_err(error)?;
        // Where the file is to be there may be anything; what is there is replaced with the same care as all files.
        let space = tempfile::tempdir().map_err(Error::io("write", &std::env::temp_dir()))?;
        let path = space.path().join("model.safetensors");
        network.save(&path, &checkpoint.state.x.to_device(device)).map_err(error)?;
        files::write(model, &std::fs::read(&path).map_err(Error::io("read", &path))?)
    }

    /// What a network in a safetensors file makes of the test images in a folder.
    pub fn evaluate(model: &Path, data: &Path, files: Files, device: &str) -> Result<Evaluation, Error> {
        let device = device::open(device).map_err(error)?;
        let set = read(&data.to_string_lossy(), files)?;
        cuda::set_tf32(false);
        let mut network = network(&set, device)?;
        let x = network.load(model).map_err(error)?;
        let predicted = network.predict(&x, &bytes(&set.test)).map_err(error)?;
        let device = device::report(device).map_err(error)?.to_string();
        Ok(Evaluation::new(device, &set.classes, &set.test.labels, &predicted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As tch panics.
    #[test]
    fn a_failure_of_the_gpu_is_told_in_words() {
        let told = |text: &str| gpu_failure(&format!("called `Result::unwrap()` on an `Err` value: Torch({text:?})"));
        let full =
            told("CUDA out of memory. Tried to allocate 2.00 MiB.\nException raised from malloc (frames)").unwrap();
        assert!(
            full.starts_with("the GPU's memory is full: CUDA out of memory. Tried to allocate 2.00 MiB. What"),
            "{full}"
        );
        assert!(full.contains("--jobs 1") && full.contains("strust resume") && !full.contains("frames"));
        let lost = told("CUDA error: unspecified launch failure\nCUDA kernel errors might be reported later").unwrap();
        assert!(lost.starts_with("the GPU failed: CUDA error: unspecified launch failure. What was saved"), "{lost}");
        assert!(told("cuDNN error: CUDNN_STATUS_ALLOC_FAILED").unwrap().contains("memory is full"));
        assert_eq!(told("The size of tensor a (3) must match"), None);
    }

    #[test]
    fn networks_that_calculate_differently_do_not_run_together() {
        let experiment = |precisions: [&str; 2]| {
            let problem = |p: &str| format!("[[problem]]\nkind = \"cifar10\"\nname = \"{p}\"\nprecision = \"{p}\"\n");
            let text = format!(
                "name = \"two\"\nepochs = 1\nbatch = 2\nseeds = 1\n{}{}[[method]]\nname = \"str\"\n",
                problem(precisions[0]),
                problem(precisions[1])
            );
            Experiment::parse(std::path::Path::new("two.toml"), &text).unwrap()
        };
        let error = check_precision(&experiment(["single", "tf32"])).unwrap_err().to_string();
        assert!(error.contains("`precision` is single for all of them or for none"), "{error}");
        assert!(check_precision(&experiment(["bf16", "tf32"])).is_ok());
    }

    #[test]
    fn an_evaluation_counts_class_by_class() {
        let names = ["cat", "dog", "owl"].map(String::from);
        let e = Evaluation::new("cpu".into(), &names, &[0, 0, 0, 1], &[0, 0, 1, 1]);
        assert_eq!((e.images, e.accuracy), (4, 0.75));
        assert_eq!(e.confusion, [[2, 1, 0], [0, 1, 0], [0, 0, 0]]);
        assert_eq!((e.classes[0].accuracy, e.classes[0].precision), (Some(2.0 / 3.0), Some(1.0)));
        assert_eq!((e.classes[1].accuracy, e.classes[1].precision), (Some(1.0), Some(0.5)));
        assert_eq!((e.classes[2].accuracy, e.classes[2].precision), (None, None));
    }
}
