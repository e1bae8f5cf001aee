//! The arguments of `strust fit` and `strust predict`.

use super::{Words, one_of};
use std::path::PathBuf;
use strust_fit::{
    fair::{FairRule, RateLimit},
    saved::ModelFamily,
    task::TaskChoice,
};

/// What to predict, and what to write.
#[derive(clap::Args)]
pub struct PredictArgs {
    /// The model file
    pub model: PathBuf,
    /// The rows: a file with the columns of the model, or - for standard input; the target is not needed
    pub new: PathBuf,
    /// The file to write: the prediction and, for classes, the probability of each [default: print it]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Copy a column of the rows in front of the prediction, as it is in the file; can be repeated
    #[arg(long, value_name = "COLUMN")]
    pub keep: Vec<String>,
    /// Write only the probabilities of the classes; of two classes, only that of the second
    #[arg(long)]
    pub proba: bool,
    /// Write JSON lines instead of CSV; the default if the name of the file ends with .jsonl
    #[arg(long)]
    pub jsonl: bool,
}

/// What to fit, and what to write.
#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub struct FitArgs {
    /// The rows: .csv, .tsv, .jsonl, .npy, LIBSVM text, each also .gz or .xz, several by a pattern such as 'part-*.csv'; a
    /// folder with the files of MNIST; or - for CSV or JSON lines from standard input
    pub data: PathBuf,
    /// The column to predict: its name, or its number from 1; LIBSVM text and MNIST have only one
    #[arg(long, value_name = "COLUMN")]
    pub target: Option<String>,
    /// What to predict [default: classes for words and for few whole numbers, otherwise regression]
    #[arg(long, value_name = "TASK", value_parser = one_of(TASKS))]
    pub task: Option<TaskChoice>,
    /// The kind of model [default: linear, logistic or softmax, whichever fits the task]
    #[arg(long, value_name = "KIND", value_parser = one_of(MODELS))]
    pub model: Option<ModelChoice>,
    /// How a number is judged while learning [default: squares]
    #[arg(long, value_name = "LOSS", value_parser = one_of(LOSSES))]
    pub loss: Option<LossChoice>,
    /// Learn the logarithm of the target, for numbers above 0; predictions are in the units of the file
    #[arg(long)]
    pub log_target: bool,
    /// mlp, auto: the widths of the hidden layers [default: 100]
    #[arg(long, value_name = "WIDTHS", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub hidden: Vec<u64>,
    /// Rows to hold out: a share below 1, or a file with the same columns [default: 0.2, or MNIST's own test
    /// images; fewer than 200 rows are scored by cross-validation]
    #[arg(long, value_name = "SHARE|FILE", allow_negative_numbers = true)]
    pub test: Option<String>,
    /// The seed of the split, the start and the mini-batches
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..1_000_000))]
    pub seed: u64,
    /// The most passes over the rows [default: until the model no longer improves]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub epochs: Option<u64>,
    /// The model file to write: .json or .safetensors [default: model.json, or the next free number]
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// The report to write: one self-contained HTML page [default: the name of the model file with .html]
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Leave out a column; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub drop: Vec<String>,
    /// Treat a column of numbers as categories; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub category: Vec<String>,
    /// Keep a column, also if it only numbers the rows; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub keep: Vec<String>,
    /// The penalty on squared weights, as 1/C and alpha in scikit-learn; auto chooses it by cross-validation
    /// [default: 1, or 0 for a constrained regression]
    #[arg(long, value_name = "NUMBER|auto", allow_negative_numbers = true, value_parser = penalty)]
    pub l2: Option<PenaltyChoice>,
    /// Fit without an intercept
    #[arg(long)]
    pub no_intercept: bool,
    /// Do not standardize the features
    #[arg(long)]
    pub no_standardize: bool,
    /// numbers, two classes: a bound on the difference between groups, such as sex=0.02 for the mean scores; with :rate,
    /// :opportunity or :loss after the bound for positive rates, true-positive rates or losses; may be repeated
    #[arg(long, value_name = "COLUMN=BOUND")]
    pub fair: Vec<FairRule>,
    /// two classes: a limit on a rate of the training rows, such as 'false_positive_rate <= 0.05'; also
    /// false_negative_rate and positive_rate; may be repeated
    #[arg(long, value_name = "RULE")]
    pub limit: Vec<RateLimit>,
    /// linear, logistic: no weight is negative
    #[arg(long)]
    pub nonnegative: bool,
    /// linear, logistic: the weights add up to 1
    #[arg(long)]
    pub sum_to_one: bool,
    /// linear, logistic: the squares of the weights add up to 1
    #[arg(long)]
    pub unit_norm: bool,
    /// linear, logistic: bounds of a weight, such as 'age >= 0' or '0 <= age <= 1'; may be repeated
    #[arg(long, value_name = "RULE")]
    pub bounds: Vec<String>,
    /// linear, logistic: a rule for a sum of weights, such as '2*age - 0.5*hours <= 3'; also >= and =; may be repeated
    #[arg(long, visible_alias = "at-most", value_name = "RULE")]
    pub constraint: Vec<String>,
    /// linear, logistic: the prediction never falls (up) or never rises (down) with a column; may be repeated
    #[arg(long, value_name = "COLUMN=up|down")]
    pub monotone: Vec<String>,
}

/// The kind of model that the user names.
#[derive(Clone, Copy, PartialEq)]
pub enum ModelChoice {
    Auto,
    Family(ModelFamily),
}

/// The loss that the user names.
#[derive(Clone, Copy, PartialEq)]
pub enum LossChoice {
    Squares,
    Huber,
}

/// The penalty that the user names.
#[derive(Clone, Copy, PartialEq)]
pub enum PenaltyChoice {
    Auto,
    Number(f64),
}

fn penalty(text: &str) -> Result<PenaltyChoice, String> {
    match text.parse() {
        _ if text == "auto" => Ok(PenaltyChoice::Auto),
        Ok(number) => Ok(PenaltyChoice::Number(number)),
        Err(_) => Err("it must be a number or auto".into()),
    }
}

const TASKS: Words<TaskChoice> = &[
    ("regression", "A number", TaskChoice::Regression),
    ("classes", "One of two or more classes", TaskChoice::Classes),
];
const MODELS: Words<ModelChoice> = &[
    ("linear", "A number is a weighted sum of the features", ModelChoice::Family(ModelFamily::Linear)),
    (
        "logistic",
        "The logit of the second of two classes is a weighted sum",
        ModelChoice::Family(ModelFamily::Logistic),
    ),
    ("softmax", "The score of each class is a weighted sum", ModelChoice::Family(ModelFamily::Softmax)),
    ("mlp", "A network with hidden layers, for numbers and classes", ModelChoice::Family(ModelFamily::Mlp)),
    ("auto", "The linear one or mlp, whichever is better on a part of the training rows", ModelChoice::Auto),
];
const LOSSES: Words<LossChoice> = &[
    ("squares", "Half of the squared error", LossChoice::Squares),
    ("huber", "The same for small errors, but in proportion to large ones: outliers count little", LossChoice::Huber),
];
