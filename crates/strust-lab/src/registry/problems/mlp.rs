//! A multilayer perceptron.

use super::{ProblemEntry, Quantity, Setup, Visitor, train_and_test, words};
use crate::Error;
use serde::{Deserialize, Serialize};
use strust::vector::Real;
use strust_problems::{Activation, Mlp};

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
        /// A file with whole-number classes: .csv with the label last, or LIBSVM text (also .gz and .xz); one fifth becomes the test set. Or a folder with the four files of MNIST or Fashion-MNIST, which include a test set. If empty, the built-in UCI digits are used.
        pub data: String = String::new(), Text("a file, a folder, or empty");
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

words!(HiddenActivation, Precision);

pub(crate) struct Problem;

impl ProblemEntry for Problem {
    type Config = MlpConfig;
    const TITLE: &'static str = "A multilayer perceptron, on the built-in digits or from a file";
    const METRICS: &'static [(Quantity, &'static str)] =
        &[(Quantity::TrainLoss, "training loss"), (Quantity::TestAccuracy, "test accuracy")];

    const OPTIONAL: &'static [&'static str] = &["wrong_labels"];

    fn check(c: &MlpConfig) -> Result<(), String> {
        hidden(c).map(|_| ())
    }

    fn is_single(c: &MlpConfig) -> bool {
        c.precision == Precision::F32
    }

    fn visit<V: Visitor>(c: Self::Config, seed: u64, visitor: V) -> Result<V::Output, Error> {
        match c.precision {
            Precision::F32 => visitor.visit(Setup::classifier(network::<f32>(&c, seed)?)),
            Precision::F64 => visitor.visit(Setup::classifier(network::<f64>(&c, seed)?)),
        }
    }
}

/// The widths of the hidden layers.
fn hidden(c: &MlpConfig) -> Result<Vec<usize>, String> {
    if c.hidden == "none" {
        return Ok(Vec::new());
    }
    widths(&c.hidden).ok_or_else(|| {
        format!("mlp: `hidden` is {:?}, but must be whole numbers ≥ 1 with - between them, or none", c.hidden)
    })
}

/// Whole numbers ≥ 1 with - between them.
pub(super) fn widths(text: &str) -> Option<Vec<usize>> {
    text.split('-').map(|width| width.parse().ok().filter(|&width: &usize| width > 0)).collect()
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
    let (train, test) = train_and_test(&c.data)?;
    let train = train.with_wrong_labels(c.wrong_labels, seed)?;
    Ok(Mlp::new(&train, Some(&test), &hidden(c).map_err(Error::Misfit)?, c.activation.into())?)
}
