//! The command line.

mod fit;

use clap::{
    ColorChoice, CommandFactory, Parser, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    error::{ContextKind, ContextValue, ErrorKind},
};
use clap_complete::Shell;
pub use fit::{FitArgs, LossChoice, ModelChoice, PenaltyChoice, PredictArgs};
use std::path::PathBuf;
use strust_lab::{
    data::style::{CurveAverage, FigureFormat},
    experiment::Setting,
};

/// Optimization from mini-batches without a learning rate, with hard constraints.
#[derive(Parser)]
#[command(name = "strust", version, max_term_width = 100, propagate_version = true)]
#[command(about = "Optimization from mini-batches without a learning rate, with hard constraints")]
#[command(
    after_help = "Start here:  strust fit DATA.csv --target COLUMN, or strust reproduce subspace\nExit codes:  0 done, 1 failed or stopped, 2 wrong usage"
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub shared: Shared,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run an experiment of the paper with the paper's settings and write the report
    Reproduce {
        /// The experiment
        #[arg(value_enum)]
        what: Reproducible,
        /// cifar10: use 1/20 of the images and a few epochs, for a machine without a GPU. constrained: one seed, one
        /// random start, one epoch and few noisy steps
        #[arg(long)]
        quick: bool,
        /// constrained: add the results of other programs, a file of scripts/constrained-reference.py
        #[arg(long, value_name = "FILE")]
        reference: Option<PathBuf>,
        #[command(flatten)]
        runs: Runs,
    },
    /// Run an experiment file (or a built-in experiment by name) and write the report
    Run {
        /// The TOML file, or one of subspace-small, subspace-large, subspace-noise, subspace-tune, digits, cifar10,
        /// cifar10-quick, cifar10-tune, cifar10-auto, cifar10-cosine-15, cifar10-cosine-40, cifar10-cosine-100,
        /// cifar10-interpolate, cifar10-launch, long-cifar10-auto, long-cifar10-10, long-cifar10-25, long-cifar10-60,
        /// long-gpt-auto, long-gpt-6, long-gpt-12, long-gpt-24, theory-strong-growth, theory-step-length,
        /// theory-rejections, theory-second-order, theory-rate, theory-penalty, theory-failures, zero-tuning, kernels,
        /// second-order
        file: PathBuf,
        #[command(flatten)]
        runs: Runs,
    },
    /// Train the network of an experiment file with one method and save it
    Train {
        /// The TOML file, or the name of a built-in experiment
        file: PathBuf,
        /// The model file to write: safetensors, with PyTorch's parameter names
        #[arg(long, value_name = "FILE")]
        save: PathBuf,
        /// The method to train with, by its name in the file; or any other method, with its defaults
        #[arg(long, value_name = "NAME", default_value = "auto")]
        method: String,
        /// The seed of the starting point and the mini-batches
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..1_000_000))]
        seed: u64,
        #[command(flatten)]
        run: Single,
        #[command(flatten)]
        network: Network,
    },
    /// Fit a model to a data file: from a CSV file to a model and its scores
    #[command(after_help = FIT_EXAMPLES)]
    Fit(Box<FitArgs>),
    /// Predict the target for the rows of a file with a model of `strust fit`
    #[command(
        after_help = "Examples:  strust predict model.json new.csv --out predictions.csv\n           strust predict model.json new.csv --keep id --proba"
    )]
    Predict(PredictArgs),
    /// Evaluate a model on data: accuracy, results by class, confusion matrix; or R² and errors
    #[command(
        after_help = "Examples:  strust evaluate model.json new.csv\n           strust evaluate model.safetensors --data data"
    )]
    Evaluate {
        /// The model: a file of `strust fit`, or the safetensors file of a network of `strust train`
        model: PathBuf,
        /// For a model of `strust fit`: the rows, with the target; - for standard input
        rows: Option<PathBuf>,
        /// Accept your own images in CIFAR-10's format: skip the checksums
        #[arg(long)]
        unchecked: bool,
        #[command(flatten)]
        network: Network,
    },
    /// Show what a model of `strust fit` is made of: task, columns, weights, origin
    Inspect {
        /// The model file
        model: PathBuf,
        /// Show the weights of a linear model per standard deviation of the input, so that they can be compared
        #[arg(long)]
        per_deviation: bool,
    },
    /// Resume a stopped run, or lengthen a finished one
    Resume {
        /// The results folder
        folder: PathBuf,
        /// Lengthen the runs of an experiment to so many epochs; they continue where they ended
        #[arg(long, value_name = "N")]
        epochs: Option<u64>,
        #[command(flatten)]
        jobs: Jobs,
        #[command(flatten)]
        saving: Saving,
    },
    /// Write the report of a run again, also of an unfinished one, or compare several runs in one report
    Report {
        /// The results folders
        #[arg(required = true)]
        folders: Vec<PathBuf>,
        /// Print Markdown tables instead of writing a report
        #[arg(long, conflicts_with = "json", group = "tables")]
        markdown: bool,
        /// Print LaTeX tables for the package booktabs instead of writing a report
        #[arg(long, conflicts_with = "json", group = "tables")]
        latex: bool,
        /// Epochs to show in the tables
        #[arg(long, value_delimiter = ',', value_name = "EPOCHS", default_value = "1,2,5,15", requires = "tables")]
        at: Vec<u64>,
        /// Write the Markdown tables into this file, between `<!-- strust:NAME -->` and `<!-- /strust -->`
        #[arg(long, value_name = "FILE", conflicts_with = "json", group = "tables")]
        into: Option<PathBuf>,
        /// Show mean ± standard deviation in the tables instead of the median
        #[arg(long, requires = "tables")]
        mean: bool,
        /// Write the summary, the report, the figures and one record per job and epoch to this folder
        #[arg(long, value_name = "DIR", conflicts_with_all = ["json", "markdown", "latex", "into", "out"])]
        publish: Option<PathBuf>,
        /// Folder for the report [default: the results folder; for several runs, runs/comparison]
        #[arg(long, value_name = "DIR", conflicts_with = "tables")]
        out: Option<PathBuf>,
        #[command(flatten)]
        figures: Figures,
    },
    /// Judge a finished or unfinished run: a verdict for every method, the evidence, and one change as a command
    Diagnose {
        /// The results folder, or the folder of one of its jobs
        folder: PathBuf,
    },
    /// List the methods and problems, one line each; of one, also its parameters, defaults, ranges and meanings
    List {
        /// The method or problem to show in detail
        name: Option<String>,
    },
    /// Download a data set, or resume an interrupted download
    Data {
        /// The data set
        #[arg(value_enum)]
        set: DataSet,
        /// The folder for the files
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        /// Download from this folder URL instead, such as a mirror
        #[arg(long, value_name = "URL")]
        from: Option<String>,
    },
    /// Measure speed on this machine
    Bench(BenchArgs),
    /// Print the completions of a shell, to be written into the file where it looks for them
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page of the program, or of one of its commands. Packages need it, people have `--help`
    #[command(hide = true)]
    Man {
        /// The command
        name: Option<String>,
    },
}

/// An error about an option that belongs to other commands, with a tip that names them.
pub fn with_place(mut error: clap::Error) -> clap::Error {
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) if error.kind() == ErrorKind::UnknownArgument => option.clone(),
        _ => return error,
    };
    let option = unknown.split('=').next().unwrap_or_default();
    let program = Args::command();
    let has = |command: &&clap::Command| {
        command.get_arguments().filter_map(|known| known.get_long()).any(|long| option.strip_prefix("--") == Some(long))
    };
    let commands: Vec<String> =
        program.get_subcommands().filter(has).map(|command| format!("strust {}", command.get_name())).collect();
    if !commands.is_empty() {
        error.remove(ContextKind::SuggestedArg);
        let tip = format!("'{option}' is an option of {}, after the command", commands.join(", "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

const FIT_EXAMPLES: &str = "\
Examples:  strust fit census.csv --target income
           strust fit houses.csv --target price --test houses-2024.csv --save houses.json
           strust fit digits.csv.gz --target 65 --model mlp --hidden 64,32
           strust fit a9a.xz
           strust fit ads.csv --target sales --monotone price=down --constraint 'tv <= radio'
           strust fit funds.csv --target index --nonnegative --sum-to-one --no-intercept";

/// Words for values: the word, its help and the value.
type Words<T> = &'static [(&'static str, &'static str, T)];

const FORMATS: Words<FigureFormat> =
    &[("svg", "", FigureFormat::Svg), ("png", "", FigureFormat::Png), ("pdf", "", FigureFormat::Pdf)];
const AVERAGES: Words<CurveAverage> = &[("median", "", CurveAverage::Median), ("mean", "", CurveAverage::Mean)];

/// A parser of one of these words.
fn one_of<T: Copy + Send + Sync + 'static>(words: Words<T>) -> impl TypedValueParser<Value = T> {
    let shown = |&(word, help, _): &(&'static str, &'static str, T)| {
        PossibleValue::new(word).help((!help.is_empty()).then_some(help))
    };
    let value = move |word: String| words.iter().find(|(known, ..)| *known == word).expect("it is one of them").2;
    PossibleValuesParser::new(words.iter().map(shown).collect::<Vec<_>>()).map(value)
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Reproducible {
    /// Orthogonal subspace fitting, Figures 2 and 3
    Subspace,
    /// The unconstrained methods on a small network, with the built-in digits
    Digits,
    /// The theory: assumptions, lemmas and theorems, each measured and compared with its bound
    Theory,
    /// The unconstrained methods on ResNet-20 and CIFAR-10, Figure 1; needs a build with libtorch
    Cifar10,
    /// The benchmark: auto with one setting beside baselines that are tuned for each task
    ZeroTuning,
    /// Second-order methods on mini-batches beside auto, at the same price
    SecondOrder,
    /// str-sqp with one setting on 80 small problems with constraints, with noise, and beside tuned baselines
    Constrained,
    /// Bounds between groups from mini-batches, on made data and the tables in --data, beside a tuned Lagrangian
    Fairness,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum DataSet {
    /// 60,000 small photographs of ten classes, 162 MiB
    Cifar10,
    /// 70,000 handwritten digits, 11 MiB
    Mnist,
    /// 70,000 images of clothing in the format of MNIST, 29 MiB
    FashionMnist,
}

/// What to measure.
#[derive(clap::Args)]
pub struct BenchArgs {
    /// What to measure
    #[arg(value_enum, default_value = "subspace")]
    pub what: Benchmark,
    /// cifar10: the device: cpu, cuda, cuda:N or auto [default: auto]
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub device: Option<String>,
    /// cifar10: print only the peak memory of this process with sgd or str
    #[arg(long, value_name = "METHOD", hide = true)]
    pub memory_of: Option<String>,
    #[command(flatten)]
    pub cluster: Cluster,
    #[command(flatten)]
    pub second_order: SecondOrder,
}

/// The files of `strust bench second-order`.
#[derive(clap::Args)]
pub struct SecondOrder {
    /// second-order: the folder of the data sets a9a.xz and mushrooms.xz, or of a folder libsvm with them
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// second-order: add the results of SciPy, a file of scripts/second-order-reference.py
    #[arg(long, value_name = "FILE")]
    pub reference: Option<PathBuf>,
}

/// The cluster of the scaling model of `strust bench mpi`.
#[derive(clap::Args)]
pub struct Cluster {
    /// mpi: the time of a short message between two machines, such as 2us or 0.5ms [default: 2us]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub latency: Option<f64>,
    /// mpi: bytes per second between two machines, such as 12.5GB/s or 800MB/s [default: 12.5GB/s]
    #[arg(long, value_name = "RATE", value_parser = bytes_per_second)]
    pub bandwidth: Option<f64>,
    /// mpi: ranks on each machine of the cluster, each with a core of its own [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub ranks_per_node: Option<u64>,
    /// mpi: small problems and few repetitions; shows that it works, not how fast
    #[arg(long)]
    pub quick: bool,
    /// mpi: draw the scaling curves into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// mpi: answer requests on standard input, alone or as a rank of `mpirun`
    #[arg(long, value_name = "HOW", value_parser = ["alone", "mpi"], hide = true)]
    pub as_rank: Option<String>,
}

/// A positive number with one of these units.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (unit, scale) = units.iter().find(|(unit, _)| text.ends_with(unit))?;
    let number: f64 = text[..text.len() - unit.len()].trim().parse().ok()?;
    (number > 0.0 && number.is_finite()).then_some(number * scale)
}

fn seconds(text: &str) -> Result<f64, String> {
    let units = [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    with_unit(text, &units).ok_or_else(|| "must be a time such as 2us, 0.5ms or 1s".into())
}

fn bytes_per_second(text: &str) -> Result<f64, String> {
    let units = [("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("Gbit/s", 1e9 / 8.0), ("Mbit/s", 1e6 / 8.0)];
    with_unit(text, &units).ok_or_else(|| "must be a rate such as 12.5GB/s, 800MB/s or 100Gbit/s".into())
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Benchmark {
    /// A step of STR-P on subspace fitting, compared with its matrix products and with NumPy
    Subspace,
    /// The cost that each diagnostic instrument adds to a step
    Instruments,
    /// STR-SQP: a step in a million unknowns, what it adds to its products and gradients, and runs with and without
    /// products of the Lagrangian's Hessian; needs 2 GB
    Constraints,
    /// STR-Newton: steps, products and seconds on many problems, beside SciPy, and what a step in a million unknowns adds
    /// to its evaluations
    SecondOrder,
    /// One run on several processes of this machine: speed, cost of the messages, and a model of larger machines; needs a
    /// build with MPI, and 4 GB
    Mpi,
    /// A step of STR on ResNet-20, compared with SGD and with PyTorch; needs a build with libtorch
    Cifar10,
}

/// The data and the device of networks.
#[derive(clap::Args)]
pub struct Network {
    /// The CIFAR-10 folder or archive; `strust data cifar10` downloads it. zero-tuning, kernels, second-order and
    /// constrained: a folder of data sets
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The device for networks: cpu, cuda, cuda:N or auto (the first GPU, otherwise the CPU)
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub device: Option<String>,
    /// The precision of networks on a GPU [default: as in the experiment file, or tf32]
    #[arg(long, value_name = "KIND", value_parser = ["single", "tf32", "bf16"])]
    pub precision: Option<String>,
}

impl Network {
    /// Whether any option is given.
    pub fn is_given(&self) -> bool {
        self.data.is_some() || self.device.is_some() || self.precision.is_some()
    }
}

fn device(name: &str) -> Result<String, String> {
    let number = |index: &str| !index.is_empty() && index.chars().all(|c| c.is_ascii_digit());
    if ["cpu", "cuda", "auto"].contains(&name) || name.strip_prefix("cuda:").is_some_and(number) {
        Ok(name.into())
    } else {
        Err("the device must be cpu, cuda, cuda:N or auto".into())
    }
}

/// What to run, and where to write the results.
#[derive(clap::Args)]
pub struct Runs {
    /// Run the seeds 0, 1, … N−1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seeds: Option<u64>,
    /// Set a key of the experiment, of every method or problem that has it, or of one: NAME.KEY=VALUE. The value is
    /// written as in the file, and a list makes a grid. method=NAME runs only this method. May be repeated, in any order;
    /// a key of one method or problem replaces one of all. The results go to runs/NAME.KEY=VALUE
    #[arg(long, value_name = "KEY=VALUE", value_parser = clap::builder::ValueParser::new(str::parse::<Setting>))]
    pub set: Vec<Setting>,
    #[command(flatten)]
    pub single: Single,
    #[command(flatten)]
    pub jobs: Jobs,
    #[command(flatten)]
    pub network: Network,
}

/// The options of [`Runs`] that a single run also needs.
#[derive(clap::Args)]
pub struct Single {
    /// Passes over the data
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub epochs: Option<u64>,
    /// Folder for the results [default: runs/NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub saving: Saving,
}

#[derive(clap::Args, Clone, Copy)]
pub struct Jobs {
    /// Jobs in parallel [default: the number of cores; 1 on a GPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub jobs: Option<u64>,
}

#[derive(clap::Args, Clone, Copy)]
pub struct Saving {
    /// Seconds between two checkpoints of a running job
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, hide = true)]
    pub save_every: f64,
}

#[derive(clap::Args, Clone)]
#[command(next_help_heading = "Options for all commands")]
pub struct Shared {
    /// Print no progress and no overview
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", value_enum)]
    pub color: ColorChoice,
    /// The longest time that a rank waits for another one before it ends all of them, with MPI
    #[cfg(feature = "mpi")]
    #[arg(long, global = true, value_name = "SECONDS", default_value = "300", value_parser = limit)]
    pub rank_limit: std::time::Duration,
}

/// How the figures of a report look. Without a flag, `[figures]` of the experiment file decides.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Figures")]
pub struct Figures {
    /// Formats of the files: svg, png, pdf
    #[arg(long, value_delimiter = ',', value_name = "FORMATS", value_parser = one_of(FORMATS))]
    pub formats: Option<Vec<FigureFormat>>,
    /// Width of a figure and height of its plot in pixels of 1/96 inch, such as 440x250
    #[arg(long, value_name = "WxH", value_parser = size)]
    pub size: Option<(u32, u32)>,
    /// Leave out the titles
    #[arg(long)]
    pub no_titles: bool,
    /// What lines and bands show: the median with quartiles, or the mean with one standard deviation
    #[arg(long, value_parser = one_of(AVERAGES))]
    pub average: Option<CurveAverage>,
    /// Another name for a method, such as auto=Ours; may be repeated
    #[arg(long = "label", value_name = "METHOD=TEXT", value_parser = renaming)]
    pub labels: Vec<(String, String)>,
    /// The methods to show first
    #[arg(long, value_delimiter = ',', value_name = "METHODS")]
    pub order: Vec<String>,
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once(['x', '×']);
    let number = |text: &str| text.trim().parse().ok();
    parts.and_then(|(w, h)| Some((number(w)?, number(h)?))).ok_or_else(|| "must be two numbers such as 440x250".into())
}

fn renaming(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(from, to)| !from.is_empty() && !to.is_empty());
    let (from, to) = parts.ok_or("must be a method and its new name, such as auto=Ours")?;
    Ok((from.into(), to.into()))
}

#[cfg(feature = "mpi")]
fn limit(text: &str) -> Result<std::time::Duration, String> {
    let seconds = text.parse().ok().filter(|&seconds: &f64| seconds > 0.0);
    let limit = seconds.and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds).ok());
    limit.ok_or_else(|| "must be a number of seconds above 0".into())
}
