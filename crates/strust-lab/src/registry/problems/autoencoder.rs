//! An auto-encoder.

use super::{
    AnySetup, Assembler, Metrics, ProblemEntry, Quantity, TEST_SHARE,
    mlp::{HiddenActivation, Precision, widths},
    train_and_test,
};
use crate::Error;
use strust::vector::Real;
use strust_problems::Autoencoder;

strust::config! {
    /// An auto-encoder that reproduces its data.
    pub struct AutoencoderConfig for "autoencoder" {
        /// Widths of the encoder, such as 128-32. The decoder has them in reverse: 64-128-32-128-64 on the digits.
        pub hidden: String = "128-32".into(), Text("whole numbers with - between them");
        /// Activation of the hidden layers: relu, tanh or linear. The output is always linear.
        pub activation: HiddenActivation = HiddenActivation::Tanh, OneOf(&["relu", "tanh", "linear"]);
        /// Precision of the arithmetic: f32 or f64.
        pub precision: Precision = Precision::F32, OneOf(&["f32", "f64"]);
        /// A file: .csv with a label last, or LIBSVM text (also .gz and .xz); the labels have no effect, and one fifth becomes the test set. Or a folder with the four files of MNIST or Fashion-MNIST, which include a test set. If empty, the built-in UCI digits are used.
        pub data: String = String::new(), Text("a file, a folder, or empty");
    }
}

impl ProblemEntry for AutoencoderConfig {
    const TITLE: &'static str = "An auto-encoder: mean squared error, on the built-in digits or from a file";
    const METRICS: Metrics = &[(Quantity::TrainLoss, "training loss"), (Quantity::TestLoss, "test loss")];

    fn check_more(c: &Self) -> Result<(), String> {
        widths::<Self>(&c.hidden, "").map(|_| ())
    }

    fn is_single(c: &Self) -> bool {
        c.precision == Precision::F32
    }

    fn setup(c: Self, _: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        match c.precision {
            Precision::F32 => Ok(assembler.finish(network::<f32>(&c)?)),
            Precision::F64 => Ok(assembler.finish(network::<f64>(&c)?)),
        }
    }
}

fn network<T: Real>(c: &AutoencoderConfig) -> Result<Autoencoder<T>, Error> {
    let encoder = widths::<AutoencoderConfig>(&c.hidden, "").map_err(Error::Misfit)?;
    let decoder: Vec<usize> = encoder.iter().rev().skip(1).copied().collect();
    let layers = |d, _| ([&[d], &*encoder, &*decoder, &[d]].concat(), size_of::<T>());
    let (train, test) = train_and_test(&c.data, "", TEST_SHARE, layers)?;
    Ok(Autoencoder::new(train.features(), Some(test.features()), &encoder, c.activation.into())?)
}
