//! A multilayer perceptron.

use super::{
    AnySetup, Assembler, Metrics, Names, ProblemEntry, Quantity, TEST_SHARE,
    from_file::{effect, is_on},
    text, train_and_test,
};
use crate::{
    Error,
    data::parameters::Parameters,
    registry::entry::{Switch, field_words},
};
use serde::{Deserialize, Serialize};
use strust::vector::Real;
use strust_data::Activation;
use strust_problems::Mlp;

strust::config! {
    /// A multilayer perceptron that classifies.
    pub struct MlpConfig for "mlp" {
        /// Widths of the hidden layers, such as 128 or 256-128; none is softmax regression.
        pub hidden: String = "256".into(), Text("whole numbers with - between them, or none");
        /// Activation of the hidden layers: relu, tanh or linear.
        pub activation: HiddenActivation = HiddenActivation::Relu, OneOf(&["relu", "tanh", "linear"]);
        /// Precision of the arithmetic: f32 or f64.
        pub precision: Precision = Precision::F32, OneOf(&["f32", "f64"]);
        /// Share of the training labels replaced by another class; the labels of the test set stay right.
        pub wrong_labels: f64 = 0.0, Number(Range::from_to(0.0, 1.0));
        /// A file with classes, whole numbers or words: .csv with the label last, or LIBSVM text (also .gz and .xz); `test_share` of it becomes the test set. Or a folder with the four files of MNIST or Fashion-MNIST, which include a test set. If empty, the built-in UCI digits are used.
        pub data: String = String::new(), Text("a file, a folder, or empty");
        /// The label's column in a .csv or .npy file: its name in the header, or its number from 1; empty is the last one.
        pub label: String = String::new(), Text("a column's name or number in quotes, or empty");
        /// Share of the rows of a file held out as a test set, a part of each class.
        pub test_share: f64 = TEST_SHARE, Number(Range::open(0.0, 1.0));
        /// On: every feature gets mean 0 and standard deviation 1 over the training set.
        pub standardize: Switch = Switch::Off, OneOf(&["off", "on"]);
        /// On: the accuracy on the training set is measured, too.
        pub train_accuracy: Switch = Switch::Off, OneOf(&["off", "on"]);
    }
}

/// Activation of the hidden layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HiddenActivation {
    /// max(0, x).
    Relu,
    /// tanh x.
    Tanh,
    /// x.
    Linear,
}

/// Precision of the arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single.
    F32,
    /// Double.
    F64,
}

field_words!(HiddenActivation, Precision);

impl ProblemEntry for MlpConfig {
    const TITLE: &'static str = "A multilayer perceptron, on the built-in digits or from a file";
    const METRICS: Metrics = &[(Quantity::TrainLoss, "training loss"), (Quantity::TestAccuracy, "test accuracy")];

    const OPTIONAL: Names = &["wrong_labels", "label", "test_share", "standardize", "train_accuracy"];

    fn metrics(parameters: &Parameters) -> Metrics {
        const WITH_TRAIN: &[(Quantity, &str)] = &[
            (Quantity::TrainLoss, "training loss"),
            (Quantity::TrainAccuracy, "training accuracy"),
            (Quantity::TestAccuracy, "test accuracy"),
        ];
        if is_on(parameters, "train_accuracy") { WITH_TRAIN } else { Self::METRICS }
    }

    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        let is_idle = parameter == "test_share" && text(parameters, "data").is_empty();
        effect::<Self>(parameter, parameters) && !is_idle
    }

    fn check_more(c: &Self) -> Result<(), String> {
        widths_or_none::<Self>(&c.hidden).map(drop)
    }

    fn is_single(c: &Self) -> bool {
        c.precision == Precision::F32
    }

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        Ok(match c.precision {
            Precision::F32 => assembler.finish(network::<f32>(&c, seed)?),
            Precision::F64 => assembler.finish(network::<f64>(&c, seed)?),
        })
    }
}

/// The widths of the hidden layers; empty for none.
pub(super) fn widths_or_none<P: ProblemEntry>(hidden: &str) -> Result<Vec<usize>, String> {
    if hidden == "none" { Ok(Vec::new()) } else { widths::<P>(hidden, ", or none") }
}

/// The parameter `hidden` of a problem: whole numbers ≥ 1 with - between them. `or` is what else it may be, for messages.
pub(super) fn widths<P: ProblemEntry>(hidden: &str, or: &str) -> Result<Vec<usize>, String> {
    let width = |width: &str| width.parse().ok().filter(|&width: &usize| width > 0);
    let must = "but must be whole numbers ≥ 1 with - between them";
    let wrong = || format!("{}: `hidden` is {hidden:?}, {must}{or}", P::NAME);
    hidden.split('-').map(width).collect::<Option<_>>().ok_or_else(wrong)
}

impl From<HiddenActivation> for Activation {
    fn from(activation: HiddenActivation) -> Self {
        match activation {
            HiddenActivation::Relu => Self::Relu,
            HiddenActivation::Tanh => Self::Tanh,
            HiddenActivation::Linear => Self::Linear,
        }
    }
}

fn network<T: Real>(c: &MlpConfig, seed: u64) -> Result<Mlp<T>, Error> {
    let hidden = widths_or_none::<MlpConfig>(&c.hidden).map_err(Error::Misfit)?;
    let layers = |features, classes| ([&[features], &*hidden, &[classes]].concat(), size_of::<T>());
    let (mut train, mut test) = train_and_test(&c.data, &c.label, c.test_share, layers)?;
    if c.standardize == Switch::On {
        (train, test) = train.standardized(&test)?;
    }
    let train = train.with_wrong_labels(c.wrong_labels, seed)?;
    Ok(Mlp::new(&train, Some(&test), &hidden, c.activation.into())?)
}
