//! An experiment file: which problems, which methods, how long, how often.

mod parse;

use crate::{Error, files, network, summary::Parameters};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// An experiment with every list expanded and every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Its name, also that of the folder of results.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// A paragraph for people.
    pub description: String,
    /// Passes over the data.
    pub epochs: u64,
    /// Terms of a mini-batch.
    pub batch: u64,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// How mini-batches are drawn.
    pub sampling: Sampling,
    /// What is recorded.
    pub records: Records,
    /// The problems.
    pub problems: Vec<ProblemSpec>,
    /// The methods.
    pub methods: Vec<MethodSpec>,
    /// How the best setting of each method is chosen; absent if all settings are run.
    pub tune: Option<Tune>,
}

/// How mini-batches are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampling {
    /// Passes over a fresh permutation.
    #[default]
    Epochs,
    /// Independently, with replacement.
    Replacement,
}

/// What `records.jsonl` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Records {
    /// Every step and every epoch.
    #[default]
    Steps,
    /// Every epoch.
    Epochs,
}

/// A problem of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProblemSpec {
    /// Its name in this experiment.
    pub name: String,
    /// Which problem.
    pub kind: String,
    /// Its parameters, defaults included.
    pub parameters: Parameters,
    /// The checksum of its data file, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

impl ProblemSpec {
    /// Whether the data file still is what it was when the plan was made.
    pub fn check_data(&self) -> Result<(), Error> {
        let Some(path) = data_file(&self.parameters) else { return Ok(()) };
        if !path.exists() {
            let why = "the data of this run are not here any more: put them back, or run the experiment anew on others";
            return Err(Error::saved(path, why));
        }
        if self.checksum.as_deref() == Some(checksum(path)?.as_str()) {
            return Ok(());
        }
        Err(Error::saved(path, "the data file has changed since the run was planned: run the experiment anew"))
    }
}

pub(crate) fn data_file(parameters: &Parameters) -> Option<&Path> {
    parameters.get("data").and_then(toml::Value::as_str).filter(|data| !data.is_empty()).map(Path::new)
}

fn checksum(path: &Path) -> Result<String, Error> {
    let read = |path: &Path| std::fs::read(path).map_err(Error::io("read", path));
    if !path.is_dir() {
        return Ok(format!("{:016x}", files::checksum(&read(path)?)));
    }
    // A folder: the names and contents of its files, in order.
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(Error::io("read", path))? {
        let entry = entry.map_err(Error::io("read", path))?.path();
        if entry.is_file() {
            files.push(entry);
        }
    }
    files.sort();
    let mut sums = Vec::new();
    for file in files {
        sums.extend(file.file_name().unwrap_or_default().as_encoded_bytes());
        sums.extend(files::checksum(&read(&file)?).to_le_bytes());
    }
    Ok(format!("{:016x}", files::checksum(&sums)))
}

/// A method of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MethodSpec {
    /// Which method.
    pub name: String,
    /// The name, with the settings that tell it from the others.
    pub label: String,
    /// Its hyperparameters, defaults included.
    pub hyperparameters: Parameters,
    /// The hyperparameters that the grid varies.
    pub varied: Vec<String>,
}

/// A grid search: short runs of every setting, then a full run of the best.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tune {
    /// The metric whose median over the tuning seeds, at the end, is to be small.
    pub metric: String,
    /// Epochs of a tuning run.
    pub epochs: u64,
    /// Number of tuning seeds; they are others than those of the experiment.
    pub seeds: u64,
}

impl Tune {
    /// The tuning seeds: far from those of the experiment, so that nothing is tuned on what is reported.
    pub fn seed_list(&self) -> impl Iterator<Item = u64> {
        MAX_SEEDS..MAX_SEEDS + self.seeds
    }
}

/// Seeds of an experiment, and how many of them, stay below this; those of a grid search begin here.
pub const MAX_SEEDS: u64 = 1_000_000;
/// Jobs of an experiment, and settings of a list of lists, at most: a folder is made for each.
pub const MAX_JOBS: usize = 100_000;
/// More epochs than any run can make, and few enough to count steps with.
pub const MAX_EPOCHS: u64 = 1_000_000_000;

/// The experiments that come with the program.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("subspace-small", include_str!("../../../experiments/subspace-small.toml")),
    ("subspace-large", include_str!("../../../experiments/subspace-large.toml")),
    ("subspace-noise", include_str!("../../../experiments/subspace-noise.toml")),
    ("subspace-tune", include_str!("../../../experiments/subspace-tune.toml")),
    ("digits", include_str!("../../../experiments/digits.toml")),
    ("cifar10", include_str!("../../../experiments/cifar10.toml")),
    ("cifar10-interpolate", include_str!("../../../experiments/cifar10-interpolate.toml")),
    ("cifar10-launch", include_str!("../../../experiments/cifar10-launch.toml")),
    ("cifar10-quick", include_str!("../../../experiments/cifar10-quick.toml")),
    ("cifar10-tune", include_str!("../../../experiments/cifar10-tune.toml")),
];

impl Experiment {
    /// Reads an experiment file, or the built-in experiment of that name.
    pub fn open(file: &Path) -> Result<Self, Error> {
        match std::fs::read_to_string(file) {
            Ok(text) => Self::parse(file, &text),
            Err(e) => match BUILT_IN.iter().find(|(name, _)| Path::new(name) == file) {
                Some((name, text)) => Self::parse(Path::new(name), text),
                None if e.kind() == std::io::ErrorKind::NotFound => {
                    let names: Vec<_> = BUILT_IN.iter().chain(crate::theory::BUILT_IN).map(|(name, _)| *name).collect();
                    let why = format!("no such file, and no built-in experiment of that name ({})", names.join(", "));
                    Err(Error::Experiment { file: file.into(), line: None, why })
                }
                None => Err(Error::io("read", file)(e)),
            },
        }
    }

    /// Both built-in experiments of section 5.2 as one.
    pub fn subspace() -> Result<Self, Error> {
        let mut both = Self::open(Path::new("subspace-small"))?;
        let large = Self::open(Path::new("subspace-large"))?;
        both.problems.extend(large.problems);
        both.name = "subspace".into();
        both.title = "Orthogonal subspace fitting: Figures 2 and 3 of the paper".into();
        Ok(both)
    }

    /// Whether one of its problems is a network that libtorch runs.
    #[must_use]
    pub fn has_network(&self) -> bool {
        self.problems.iter().any(network::is_network)
    }

    /// Whether one of its networks, whose devices were opened, is on a GPU.
    #[must_use]
    pub fn on_gpu(&self) -> bool {
        let device = |p: &ProblemSpec| Some(p.parameters.get("device")?.as_str()?.to_owned());
        self.problems
            .iter()
            .filter(|p| network::is_network(p))
            .filter_map(device)
            .any(|device| device.starts_with("cuda"))
    }

    /// Takes the images of its networks from `data`, a folder or a file.
    pub fn set_data(&mut self, data: &Path) -> Result<(), Error> {
        let missing = "there is no such file or folder; `strust data cifar10 --to DIR` gets the images of CIFAR-10";
        let data = data.canonicalize().map_err(|_| Error::saved(data, missing))?;
        let sum = checksum(&data)?;
        self.set_of_networks("data", &*data.to_string_lossy());
        self.problems.iter_mut().filter(|p| network::is_network(p)).for_each(|p| p.checksum = Some(sum.clone()));
        Ok(())
    }

    /// Sets a parameter of its networks, such as `device`.
    pub fn set_of_networks(&mut self, parameter: &str, value: impl Into<toml::Value>) {
        let value = value.into();
        for problem in self.problems.iter_mut().filter(|p| network::is_network(p)) {
            problem.parameters.insert(parameter.into(), value.clone());
        }
    }
}

/// A value for people: a text without its quotes, a number short and exactly, `1e-8` as well as `0.9`.
#[must_use]
pub fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) if !text.is_empty() => text.clone(),
        toml::Value::Float(number) => format!("{number:?}"),
        toml::Value::Array(values) => format!("[{}]", values.iter().map(plain).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// A value as an experiment file has it, a number as in [`plain`].
#[must_use]
pub fn written(value: &toml::Value) -> String {
    if value.is_float() { plain(value) } else { value.to_string() }
}

/// A name that every file system takes.
pub(crate) fn folder_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.=".contains(c) { c } else { '_' }).collect()
}
