//! A multilayer perceptron.

use super::{ProblemEntry, Quantity, Setup, Visitor, words};
use crate::Error;
use serde::{Deserialize, Serialize};
use std::path::Path;
use strust::vector::Real;
use strust_problems::{Activation, Classified, Mlp, digits, images, read};

strust::config! {
    /// A multilayer perceptron that classifies.
    pub struct MlpConfig for "mlp" {
        /// Widths of the hidden layers, such as 128 or 256-128; none is softmax regression.
        pub hidden: String = "256".into(), Text("whole numbers with - between them, or none");
        /// Activation of the hidden layers: relu or tanh.
        pub activation: HiddenActivation = HiddenActivation::Relu, OneOf(&["relu", "tanh"]);
        /// Precision of the arithmetic: f32 or f64.
        pub precision: Precision = Precision::F32, OneOf(&["f32", "f64"]);
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

    fn check(c: &MlpConfig) -> Result<(), String> {
        widths(c).map(|_| ())
    }

    fn is_single(c: &MlpConfig) -> bool {
        c.precision == Precision::F32
    }

    fn visit<V: Visitor>(c: Self::Config, _: u64, visitor: V) -> Result<V::Output, Error> {
        match c.precision {
            Precision::F32 => visitor.visit(Setup::classifier(network::<f32>(&c)?)),
            Precision::F64 => visitor.visit(Setup::classifier(network::<f64>(&c)?)),
        }
    }
}

/// The widths of the hidden layers.
fn widths(c: &MlpConfig) -> Result<Vec<usize>, String> {
    if c.hidden == "none" {
        return Ok(Vec::new());
    }
    let width = |text: &str| text.parse::<usize>().ok().filter(|&width| width > 0);
    c.hidden.split('-').map(width).collect::<Option<_>>().ok_or_else(|| {
        format!("mlp: `hidden` is {:?}, but must be whole numbers ≥ 1 with - between them, or none", c.hidden)
    })
}

fn network<T: Real>(c: &MlpConfig) -> Result<Mlp<T>, Error> {
    let (train, test) = if c.data.is_empty() {
        digits::load()?
    } else if Path::new(&c.data).is_dir() {
        let set = images::mnist(Path::new(&c.data))?;
        let classes = set.classes.len();
        (set.train.classified(classes)?, set.test.classified(classes)?)
    } else {
        Classified::from_labeled(&read::read_labeled(Path::new(&c.data))?)?.split(0.2, 0)?
    };
    let activation = match c.activation {
        HiddenActivation::Relu => Activation::Relu,
        HiddenActivation::Tanh => Activation::Tanh,
    };
    Ok(Mlp::new(&train, Some(&test), &widths(c).map_err(Error::Misfit)?, activation)?)
}
