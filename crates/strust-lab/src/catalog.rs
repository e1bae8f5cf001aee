//! The methods and problems that experiment files may name, with every parameter.

use crate::summary::Parameters;
use serde::{Deserialize, Serialize};
use std::path::Path;
use strust::{
    config::{Allowed, Config, Field, FieldValue},
    prelude::*,
};

strust::config! {
    /// Orthogonal subspace fitting.
    pub struct SubspaceConfig for "subspace" {
        /// Dimension of the space.
        pub d: u64 = 100, Whole(Range::closed(1.0, 1e7));
        /// Dimension of the subspace, at most d.
        pub k: u64 = 5, Whole(Range::closed(1.0, 1e7));
        /// Number of points.
        pub n: u64 = 500, Whole(Range::closed(1.0, 1e7));
        /// Standard deviation σ of the noise on every coordinate; 0 is exact interpolation.
        pub noise: f64 = 0.0, Number(Range::at_least(0.0));
        /// A file (.npy or .csv, also .gz and .xz) with one point a row, instead of the spiked model; d, n and noise then do not count.
        pub data: String = String::new(), Text("a file, or empty");
    }
}

strust::config! {
    /// Linear least squares with Gaussian rows.
    pub struct LeastSquaresConfig for "least-squares" {
        /// Number of equations.
        pub n: u64 = 200, Whole(Range::closed(1.0, 1e7));
        /// Number of unknowns; with d ≥ n every equation can be met.
        pub d: u64 = 300, Whole(Range::closed(1.0, 1e7));
        /// Standard deviation of the noise on the right-hand side; 0 is exact interpolation.
        pub noise: f64 = 0.0, Number(Range::at_least(0.0));
    }
}

strust::config! {
    /// Logistic regression.
    pub struct LogisticConfig for "logistic" {
        /// Number of synthetic points, if there is no data file.
        pub n: u64 = 500, Whole(Range::closed(2.0, 1e7));
        /// Number of synthetic features, if there is no data file.
        pub d: u64 = 50, Whole(Range::closed(1.0, 1e7));
        /// Distance of the synthetic points from the separating plane.
        pub margin: f64 = 0.1, Number(Range::above(0.0));
        /// Weight λ of (λ/2)‖x‖².
        pub regularization: f64 = 0.0, Number(Range::at_least(0.0));
        /// A file with two classes: LIBSVM text, or .csv with the label last (also .gz and .xz).
        pub data: String = String::new(), Text("a file, or empty");
    }
}

strust::config! {
    /// Softmax regression.
    pub struct SoftmaxConfig for "softmax" {
        /// Weight λ of (λ/2)‖W‖².
        pub regularization: f64 = 0.0, Number(Range::at_least(0.0));
        /// A file with whole-number classes: LIBSVM text, or .csv with the label last (also .gz and .xz). Required.
        pub data: String = String::new(), Text("a file");
    }
}

strust::config! {
    /// Low-rank matrix factorization X ≈ UVᵀ.
    pub struct FactorisationConfig for "factorization" {
        /// Rows of X.
        pub m: u64 = 100, Whole(Range::closed(1.0, 1e7));
        /// Columns of X.
        pub n: u64 = 60, Whole(Range::closed(1.0, 1e7));
        /// Rank of X.
        pub rank: u64 = 3, Whole(Range::closed(1.0, 1e7));
        /// Columns of U and V; more than the rank is over-parameterized.
        pub width: u64 = 6, Whole(Range::closed(1.0, 1e7));
        /// A file (.npy or .csv, also .gz and .xz) with X; m, n and rank then do not count.
        pub data: String = String::new(), Text("a file, or empty");
    }
}

strust::config! {
    /// A multilayer perceptron that classifies.
    pub struct MlpConfig for "mlp" {
        /// Widths of the hidden layers, such as 128 or 256-128; none is softmax regression.
        pub hidden: String = "256".into(), Text("whole numbers with - between them, or none");
        /// Activation of the hidden layers: relu or tanh.
        pub activation: Activation = Activation::Relu, OneOf(&["relu", "tanh"]);
        /// Precision of the arithmetic: f32 or f64.
        pub precision: Precision = Precision::F32, OneOf(&["f32", "f64"]);
        /// A file with whole-number classes: .csv with the label last, or LIBSVM text (also .gz and .xz); a fifth is kept for the test. Or a folder with the four files of MNIST or Fashion-MNIST, which have a test set. Empty is the UCI digits, which are built in.
        pub data: String = String::new(), Text("a file, a folder, or empty");
    }
}

strust::config! {
    /// ResNet-20 on CIFAR-10.
    pub struct Cifar10Config for "cifar10" {
        /// The folder with the binary files, or cifar-10-binary.tar.gz itself; `strust data cifar10` gets it. Required.
        pub data: String = String::new(), Text("a folder or a file");
        /// Training images, the first of all there are; 0 is all.
        pub train_images: u64 = 0, Whole(Range::closed(0.0, 1e7));
        /// Test images, the first of all there are; 0 is all.
        pub test_images: u64 = 0, Whole(Range::closed(0.0, 1e7));
        /// Whether training images are cropped and mirrored at random: on or off.
        pub augment: Switch = Switch::On, OneOf(&["on", "off"]);
        /// Whether the files must be those of CIFAR-10; none is for images of your own in the same format.
        pub checksums: Files = Files::Official, OneOf(&["official", "none"]);
        /// Where the network runs: cpu, cuda, cuda:1 and so on; auto is the first GPU, or else the CPU.
        pub device: String = "auto".into(), Text("cpu, cuda, cuda:N or auto");
        /// Arithmetic of convolutions and products on a GPU: single; tf32, whose factors are rounded to ten bits; bf16, the network in bfloat16 and the loss, from which STR's ratio comes, in single. On the CPU it is single.
        pub precision: Arithmetic = Arithmetic::Tf32, OneOf(&["single", "tf32", "bf16"]);
        /// How SGD, Adam and STR give a step to a GPU: graph, captured once and replayed; eager, operation by operation.
        pub launch: Launch = Launch::Graph, OneOf(&["graph", "eager"]);
        /// Threads of an operation on the CPU. The last digits depend on it, so that it belongs to the experiment and not to the machine; other cores are for other jobs.
        pub threads: u64 = 1, Whole(Range::closed(1.0, 1024.0));
    }
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// Arithmetic of a [`Cifar10Config`] on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arithmetic {
    /// Single precision.
    Single,
    /// Single precision with the factors of products rounded to TF32.
    Tf32,
    /// bfloat16 in the network, single precision in its parameters and its loss.
    Bf16,
}

/// How a step of a [`Cifar10Config`] is given to a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Launch {
    /// As one CUDA graph.
    Graph,
    /// Operation by operation.
    Eager,
}

/// Which files a [`Cifar10Config`] takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Files {
    /// Those of CIFAR-10, by their checksums.
    Official,
    /// Any of the same format.
    None,
}

/// Activation of an [`MlpConfig`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// max(0, x).
    Relu,
    /// tanh x.
    Tanh,
}

/// Precision of an [`MlpConfig`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single.
    F32,
    /// Double.
    F64,
}

macro_rules! words {
    ($($word:ident),*) => {$(
        impl FieldValue for $word {
            fn number(&self) -> Option<f64> {
                None
            }
        }
    )*};
}
words!(Activation, Precision, Switch, Files, Arithmetic, Launch);

impl MlpConfig {
    /// The widths of the hidden layers.
    pub fn widths(&self) -> Result<Vec<usize>, String> {
        if self.hidden == "none" {
            return Ok(Vec::new());
        }
        let width = |text: &str| text.parse::<usize>().ok().filter(|&width| width > 0);
        self.hidden.split('-').map(width).collect::<Option<_>>().ok_or_else(|| {
            format!("mlp: `hidden` is {:?}, but must be whole numbers ≥ 1 with - between them, or none", self.hidden)
        })
    }
}

/// A method or a problem that an experiment file may name.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// Its name in experiment files.
    pub name: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// For a method: it needs a constraint. For a problem: it has one.
    pub constrained: bool,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
}

/// One parameter of an [`Entry`].
#[derive(Debug, Clone, Serialize)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its default.
    pub default: toml::Value,
    /// The values allowed, in words.
    pub allowed: String,
    /// What it means.
    pub meaning: &'static str,
    /// The values allowed.
    #[serde(skip)]
    pub kind: Allowed,
}

impl Parameter {
    /// What it must be instead of `value`.
    #[must_use]
    pub fn wanted(&self, value: &toml::Value) -> String {
        match (self.kind, value) {
            (Allowed::Number(range), toml::Value::Float(_)) if value.as_float().is_some_and(f64::is_finite) => {
                range.to_string()
            }
            (Allowed::Number(range), toml::Value::Integer(_)) => range.to_string(),
            (Allowed::Number(range), toml::Value::Float(_)) => format!("a finite number {range}"),
            (Allowed::Number(range), _) => format!("a number {range}"),
            (kind, _) => kind.to_string(),
        }
    }
    /// Whether the value has the right type and, for a number or a word, is one that is allowed.
    #[must_use]
    pub fn accepts(&self, value: &toml::Value) -> bool {
        let number = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
        match self.kind {
            Allowed::Number(range) => number.is_some_and(|n| range.contains(n)),
            Allowed::Whole(range) => value.is_integer() && number.is_some_and(|n| range.contains(n)),
            Allowed::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Allowed::Text(_) => value.is_str(),
        }
    }
}

fn entry<C: Config>(title: &'static str, constrained: bool, name: Option<&'static str>) -> Entry {
    let defaults = parameters(&C::default());
    let parameters = C::FIELDS
        .iter()
        .map(|&Field { name, allowed, meaning }| Parameter {
            name,
            default: defaults[name].clone(),
            allowed: allowed.to_string(),
            meaning,
            kind: allowed,
        })
        .collect();
    Entry { name: name.unwrap_or(C::NAME), title, constrained, parameters }
}

/// A configuration as named values.
pub fn parameters(config: &impl Serialize) -> Parameters {
    toml::Table::try_from(config).expect("configurations are flat tables of numbers and words").into_iter().collect()
}

/// All methods.
#[must_use]
pub fn methods() -> Vec<Entry> {
    vec![
        entry::<StrConfig>("Stochastic trust region, Algorithm 1", false, Some("str")),
        entry::<StrPConfig>("Stochastic trust region with a quadratic penalty, Algorithm 2", true, None),
        entry::<SgdConfig>("Stochastic gradient descent", false, None),
        entry::<AdamConfig>("Adam", false, None),
        entry::<LineSearchConfig>("SGD with a stochastic Armijo line search", false, None),
        entry::<ProjectedSgdConfig>("SGD, projected back by QR", true, None),
        entry::<RiemannianConfig>("Riemannian gradient descent", true, None),
        entry::<AugLagConfig>("Stochastic augmented Lagrangian", true, None),
    ]
}

/// All problems.
#[must_use]
pub fn problems() -> Vec<Entry> {
    vec![
        entry::<SubspaceConfig>("Orthogonal subspace fitting: min mean ‖(I − WWᵀ)x‖², WᵀW = I", true, None),
        entry::<LeastSquaresConfig>("Linear least squares with Gaussian rows", false, None),
        entry::<LogisticConfig>("Logistic regression, synthetic and separable or from a file", false, None),
        entry::<SoftmaxConfig>("Softmax regression, from a file", false, None),
        entry::<FactorisationConfig>("Low-rank matrix factorization X ≈ UVᵀ", false, None),
        entry::<MlpConfig>("A multilayer perceptron, on the built-in digits or from a file", false, None),
        entry::<Cifar10Config>("ResNet-20 on CIFAR-10, by libtorch", false, None),
    ]
}

/// The configuration that named values describe, checked.
pub fn config<C: Config>(values: &Parameters) -> Result<C, String> {
    let table: toml::Table = values.clone().into_iter().collect();
    let config: C = table.try_into().map_err(|e: toml::de::Error| e.message().to_string())?;
    config.clone().check().map_err(|e| e.to_string())?;
    Ok(config)
}

/// Checks named values for the method or problem `name` and completes them with the defaults.
pub fn complete(kind: Kind, name: &str, values: &Parameters) -> Result<Parameters, String> {
    fn with<C: Config>(values: &Parameters) -> Result<Parameters, String> {
        Ok(parameters(&config::<C>(values)?))
    }
    match (kind, name) {
        (Kind::Method, "str") => with::<StrConfig>(values),
        (Kind::Method, "str-p") => with::<StrPConfig>(values),
        (Kind::Method, "sgd") => with::<SgdConfig>(values),
        (Kind::Method, "adam") => with::<AdamConfig>(values),
        (Kind::Method, "sls") => with::<LineSearchConfig>(values),
        (Kind::Method, "sgd-proj") => with::<ProjectedSgdConfig>(values),
        (Kind::Method, "riemannian") => with::<RiemannianConfig>(values),
        (Kind::Method, "auglag") => with::<AugLagConfig>(values),
        (Kind::Problem, "subspace") => with::<SubspaceConfig>(values),
        (Kind::Problem, "least-squares") => with::<LeastSquaresConfig>(values),
        (Kind::Problem, "logistic") => with::<LogisticConfig>(values),
        (Kind::Problem, "softmax") => with::<SoftmaxConfig>(values),
        (Kind::Problem, "factorization") => with::<FactorisationConfig>(values),
        (Kind::Problem, "mlp") => {
            config::<MlpConfig>(values)?.widths()?;
            with::<MlpConfig>(values)
        }
        (Kind::Problem, "cifar10") => with::<Cifar10Config>(values),
        (kind, name) => Err(format!("there is no {kind:?} `{name}`")),
    }
}

/// What an entry describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A method.
    Method,
    /// A problem.
    Problem,
}

/// The parameters of a problem that count: with a data file, those of the synthetic data do not.
#[must_use]
pub fn that_count(kind: &str, parameters: &Parameters) -> Parameters {
    let data = parameters.get("data").and_then(toml::Value::as_str).unwrap_or_default();
    let synthetic: &[&str] = match kind {
        _ if data.is_empty() => &["data"],
        "subspace" => &["d", "n", "noise"],
        "logistic" => &["n", "d", "margin"],
        "factorization" => &["m", "n", "rank"],
        // The machine's description says on which device it ran, and with how many threads; and CIFAR-10 is CIFAR-10 wherever its files lie.
        "cifar10" if parameters.get("checksums").and_then(toml::Value::as_str) == Some("official") => {
            &["checksums", "data", "device", "threads"]
        }
        "cifar10" => &["device", "threads"],
        _ => &[],
    };
    let on_cpu = kind == "cifar10" && parameters.get("device").and_then(toml::Value::as_str) == Some("cpu");
    let mut counting = parameters.clone();
    counting.retain(|name, value| {
        let all = kind == "cifar10" && name.ends_with("_images") && value.as_integer() == Some(0);
        let of_gpus = on_cpu && ["precision", "launch"].contains(&name.as_str());
        !all && !of_gpus && !synthetic.contains(&name.as_str())
    });
    if let Some(toml::Value::String(data)) = counting.get_mut("data") {
        // The name says which file; where it lies on this machine is nobody's business.
        *data = Path::new(data).file_name().unwrap_or_default().to_string_lossy().into_owned();
    }
    counting
}

/// The candidate most like `word`, if any is near enough to be meant.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The one likes a common beginning, the other letters that changed places.
    let likeness = |c: &str| [strsim::jaro_winkler(word, c), strsim::normalized_damerau_levenshtein(word, c)];
    candidates
        .into_iter()
        .map(|c| (likeness(c), c))
        .filter(|([beginning, letters], _)| *beginning > 0.75 || *letters > 0.6)
        .max_by(|(a, _), (b, _)| a.iter().sum::<f64>().total_cmp(&b.iter().sum()))
        .map(|(_, c)| c)
}
