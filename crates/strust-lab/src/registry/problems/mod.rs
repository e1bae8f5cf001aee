//! The problems, one file each.

mod from_file;
pub(crate) mod network_config;
#[cfg_attr(not(feature = "torch"), path = "networks/absent.rs")]
pub(crate) mod networks;

use self::from_file::{FileSize, labeled};
use super::{
    entry::{Entry, config, values},
    setup::{AnySetup, Assembler, Quantity, metric},
};
use crate::{
    Error,
    data::{
        experiment::ProblemSpec,
        parameters::{self, Parameters},
        paths::path_of,
        summary::Metric,
    },
    format::in_one_line,
    team::Sharing,
};
use strust::config::Config;
use strust_data::{Classified, digits, images};

/// Metrics with their labels, in display order.
pub(crate) type Metrics = &'static [(Quantity, &'static str)];

/// Names of parameters.
pub(crate) type Names = &'static [&'static str];

/// Everything about one problem, in addition to its parameters.
pub(crate) trait ProblemEntry: Config {
    /// One line for people.
    const TITLE: &'static str;
    /// Whether it has a constraint.
    const CONSTRAINED: bool = false;
    /// The method of an experiment that names none.
    const METHOD: &'static str = if Self::CONSTRAINED { "str-sqp" } else { "auto" };
    /// Whether libtorch runs it, on a device that the experiment chooses.
    const NETWORK: bool = false;
    /// Whether it cannot run without a data file or folder.
    const NEEDS_DATA: bool = false;
    /// The metrics after every epoch. A run minimizes the first one.
    const METRICS: Metrics = &[(Quantity::Objective, "objective f(x)")];
    /// The parameters that are off by default. Titles and tables show them only if they are on.
    const OPTIONAL: Names = &[];
    /// The parameters of synthetic data, which have no effect if there is a data file.
    const SYNTHETIC: Names = &[];

    /// Further checks, in addition to ranges and relations.
    fn check_more(_config: &Self) -> Result<(), String> {
        Ok(())
    }

    /// Whether it uses single precision.
    fn is_single(_config: &Self) -> bool {
        Self::NETWORK
    }

    /// The metrics with these parameters.
    fn metrics(_parameters: &Parameters) -> Metrics {
        Self::METRICS
    }

    /// Whether a parameter has an effect, so that titles and tables show it.
    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        default_effect::<Self>(parameter, parameters)
    }

    /// Constructs the problem and gives it to the assembler.
    fn setup(config: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error>;
}

/// Whether a parameter has an effect, by the lists of the entry.
fn default_effect<P: ProblemEntry>(parameter: &str, parameters: &Parameters) -> bool {
    match parameter {
        // The machine's description names the device and the number of threads.
        "device" | "threads" if P::NETWORK => return false,
        "precision" | "launch" if P::NETWORK => return text(parameters, "device") != "cpu",
        _ => {}
    }
    let is_default = |value| values(&P::default()).get(parameter) == Some(value);
    if P::OPTIONAL.contains(&parameter) && parameters.get(parameter).is_none_or(is_default) {
        return false;
    }
    if text(parameters, "data").is_empty() { parameter != "data" } else { !P::SYNTHETIC.contains(&parameter) }
}

/// The metrics of a problem with WᵀW = I. Without the constraint f can be below f*.
const GAP_AND_FRAME: Metrics = &[
    (Quantity::ObjectiveError, "objective error |f(W) − f*|"),
    (Quantity::ConstraintNorm, "constraint violation ‖WᵀW − I‖"),
];

strust::config! {
    /// The parameters that every problem has.
    pub struct ScaleConfig for "problem" {
        /// Factor of the loss, for every method. Metrics are those of the loss without it, so that different factors can be compared.
        pub scale: f64 = 1.0, Number(Range::above(0.0));
    }
}

/// A row of the table of problems.
struct ProblemInfo {
    name: &'static str,
    method: &'static str,
    is_network: bool,
    needs_data: bool,
    synthetic: Names,
    entry: fn() -> Entry,
    metrics: fn(&Parameters) -> Metrics,
    is_single: fn(&Parameters) -> bool,
    has_effect: fn(&str, &Parameters) -> bool,
    setup: fn(&Parameters, u64, Assembler) -> Result<AnySetup, Error>,
}

impl ProblemInfo {
    const fn of<P: ProblemEntry>() -> Self {
        Self {
            name: P::NAME,
            method: P::METHOD,
            is_network: P::NETWORK,
            needs_data: P::NEEDS_DATA,
            synthetic: P::SYNTHETIC,
            entry: entry::<P>,
            metrics: P::metrics,
            is_single: |parameters| parsed::<P>(parameters).is_ok_and(|config| P::is_single(&config)),
            has_effect: P::has_effect,
            setup: |parameters, seed, assembler| {
                P::setup(parsed::<P>(parameters).map_err(Error::Misfit)?, seed, assembler)
            },
        }
    }
}

/// Declares the modules of a list of files, each with the parameters of a problem, and makes their table.
macro_rules! problems {
    ($($module:ident: $config:ident),* $(,)?) => {
        $(pub(crate) mod $module;)*
        static ALL: &[ProblemInfo] = &[$(ProblemInfo::of::<$module::$config>()),*];
    };
}

// One line per problem, in the order of the list.
problems! {
    subspace: SubspaceConfig,
    pca: PcaConfig,
    generalized_eigenvalues: GeneralizedEigenvaluesConfig,
    procrustes: ProcrustesConfig,
    constrained_logistic: ConstrainedLogisticConfig,
    groups: GroupsConfig,
    mixture: MixtureConfig,
    nmf: NmfConfig,
    orthonormal_mlp: OrthonormalMlpConfig,
    least_squares: LeastSquaresConfig,
    logistic: LogisticConfig,
    softmax: SoftmaxConfig,
    factorization: FactorizationConfig,
    mlp: MlpConfig,
    autoencoder: AutoencoderConfig,
    regression: RegressionConfig,
    convnet: ConvnetConfig,
    gpt: GptConfig,
    cifar10: Cifar10Config,
}

fn info(kind: &str) -> Option<&'static ProblemInfo> {
    ALL.iter().find(|info| info.name == kind)
}

/// All problems, in the order of the list.
#[must_use]
pub fn all() -> Vec<Entry> {
    ALL.iter().map(|info| (info.entry)()).collect()
}

/// The method of an experiment with problems of these kinds that names none.
pub(crate) fn default_method<'a>(kinds: impl Iterator<Item = &'a str>) -> &'static str {
    let wanted: Vec<&str> = kinds.filter_map(info).map(|info| info.method).collect();
    match wanted[..] {
        [first, ref others @ ..] if others.iter().all(|other| *other == first) => first,
        // One that every problem with a constraint has.
        _ if wanted.iter().any(|method| *method != "auto") => "str-sqp",
        _ => "auto",
    }
}

/// The metrics of a problem; empty for an unknown one.
pub(crate) fn quantities(problem: &ProblemSpec) -> Metrics {
    info(&problem.kind).map_or(&[], |info| (info.metrics)(&problem.parameters))
}

/// Whether libtorch runs the problem, on a device that the experiment chooses.
#[must_use]
pub fn is_network(problem: &ProblemSpec) -> bool {
    info(&problem.kind).is_some_and(|info| info.is_network)
}

/// Whether the problem cannot run without a data file or folder.
#[must_use]
pub fn needs_data(problem: &ProblemSpec) -> bool {
    info(&problem.kind).is_some_and(|info| info.needs_data)
}

/// Whether the problem uses single precision.
pub(crate) fn is_single(problem: &ProblemSpec) -> bool {
    info(&problem.kind).is_some_and(|info| (info.is_single)(&problem.parameters))
}

/// The parameters of a problem's synthetic data, which have no effect if there is a data file.
pub(crate) fn synthetic(kind: &str) -> Names {
    info(kind).map_or(&[], |info| info.synthetic)
}

/// Constructs a problem from a seed, and shares out its samples.
pub(crate) fn setup(problem: &ProblemSpec, seed: u64, sharing: Sharing) -> Result<AnySetup, Error> {
    let unknown = || Error::Misfit(format!("there is no problem `{}`", problem.kind));
    let info = info(&problem.kind).ok_or_else(unknown)?;
    let ScaleConfig { scale } = common(&problem.parameters).map_err(Error::Misfit)?;
    (info.setup)(&problem.parameters, seed, Assembler { scale, sharing })
}

fn entry<P: ProblemEntry>() -> Entry {
    let complete = |_: &str, given: &Parameters| {
        let mut completed = values(&parsed::<P>(given)?);
        completed.extend(values(&common(given)?));
        Ok(completed)
    };
    Entry::new::<P>(P::NAME, P::TITLE, P::CONSTRAINED, complete).with::<ScaleConfig>(|_| true)
}

/// The checked configuration of some parameters.
fn parsed<P: ProblemEntry>(parameters: &Parameters) -> Result<P, String> {
    let config = config(&split(parameters).0)?;
    P::check_more(&config)?;
    Ok(config)
}

/// The checked common parameters.
fn common(parameters: &Parameters) -> Result<ScaleConfig, String> {
    config(&split(parameters).1)
}

/// The parameters of the problem itself, and the common ones.
fn split(parameters: &Parameters) -> (Parameters, Parameters) {
    let is_common = |name: &str| ScaleConfig::FIELDS.iter().any(|field| field.name == name);
    parameters.clone().into_iter().partition(|(name, _)| !is_common(name))
}

/// The factor of a problem's loss.
#[must_use]
pub fn scale(problem: &ProblemSpec) -> f64 {
    common(&problem.parameters).map_or(1.0, |common| common.scale)
}

/// The metrics of a problem.
#[must_use]
pub fn metrics(problem: &ProblemSpec) -> Vec<Metric> {
    quantities(problem).iter().map(|&(quantity, label)| metric(quantity, label)).collect()
}

/// The parameters of a problem that have an effect, with the name of a data file but not its folder.
#[must_use]
pub fn with_effect(kind: &str, parameters: &Parameters) -> Parameters {
    let mut shown = parameters.clone();
    shown.retain(|name, value| {
        // A factor of 1 changes nothing.
        let has_effect = || info(kind).is_none_or(|info| (info.has_effect)(name, parameters));
        if name == "scale" { value.as_float() != Some(1.0) } else { has_effect() }
    });
    if let Some(toml::Value::String(data)) = shown.get_mut("data") {
        // A report must not depend on the path of the file on this machine.
        *data = in_one_line(&path_of(data).file_name().unwrap_or_default().to_string_lossy());
    }
    shown
}

/// A parameter that is a text; empty if it is missing.
fn text<'a>(parameters: &'a Parameters, name: &str) -> &'a str {
    parameters.get(name).and_then(toml::Value::as_str).unwrap_or_default()
}

/// A parameter that is a number; 0 if it is missing.
fn number(parameters: &Parameters, name: &str) -> f64 {
    parameters.get(name).and_then(parameters::number).unwrap_or(0.0)
}

/// The default share of a file that becomes the test set of a network.
const TEST_SHARE: f64 = 0.2;

/// The training set and the test set of a file, of a folder with the files of MNIST, or, if `data` is empty, of the
/// built-in digits. In a file, `label` is the label's column, and `test_share` of the rows become the test set. `layers` is
/// the network over these data, from the numbers of features and classes: its widths, and the bytes of its numbers.
fn train_and_test(
    data: &str,
    label: &str,
    test_share: f64,
    layers: impl Fn(usize, usize) -> (Vec<usize>, usize),
) -> Result<(Classified, Classified), Error> {
    let check = |size: &FileSize, classes: usize| {
        let (widths, bytes) = layers(size.columns, classes);
        size.check_network(&widths, bytes)
    };
    Ok(if data.is_empty() {
        digits::load()?
    } else if path_of(data).is_dir() {
        let set = images::mnist(&path_of(data))?;
        let classes = set.classes.len();
        let (train, test) = (set.train.classified(classes)?, set.test.classified(classes)?);
        check(&FileSize::of_matrix(data, train.rows(), train.columns()), classes)?;
        (train, test)
    } else {
        let read = labeled(data, label, 0)?;
        let size = FileSize::of(data, &read);
        size.check_dense((size.rows, "rows"))?;
        let all = Classified::from_labeled(&read)?;
        check(&size, all.classes())?;
        all.split(test_share, SPLIT_SEED)?
    })
}

/// The split of a file into training set and test set is the same for every seed of the experiment.
const SPLIT_SEED: u64 = 0;

/// Refuses synthetic data that does not fit into memory.
fn check_size(rows: u64, columns: u64) -> Result<(), Error> {
    const MOST: u64 = 1 << 31;
    if rows.saturating_mul(columns) <= MOST {
        return Ok(());
    }
    let value = format!("{rows} × {columns}");
    let allowed = format!("at most {MOST} numbers, 16 GiB");
    Err(strust::Error::OutOfRange { owner: "synthetic data", field: "size", value, allowed }.into())
}
