//! A multilayer perceptron with orthonormal hidden layers.

use super::{
    AnySetup, Assembler, Metrics, ProblemEntry, Quantity, TEST_SHARE,
    mlp::{HiddenActivation, widths},
    train_and_test,
};
use crate::Error;
use strust_problems::{Mlp, OrthonormalMlp};

strust::config! {
    /// A multilayer perceptron that classifies, with orthonormal hidden layers.
    pub struct OrthonormalMlpConfig for "orthonormal-mlp" {
        /// Widths of the hidden layers, such as 16 or 16-8.
        pub hidden: String = "8".into(), Text("whole numbers with - between them");
        /// Activation of the hidden layers: relu, tanh or linear.
        pub activation: HiddenActivation = HiddenActivation::Tanh, OneOf(&["relu", "tanh", "linear"]);
        /// A file with classes, whole numbers or words: .csv with the label last, or LIBSVM text (also .gz and .xz); one fifth becomes the test set. Or a folder with the four files of MNIST or Fashion-MNIST, which include a test set. If empty, the built-in UCI digits are used.
        pub data: String = String::new(), Text("a file, a folder, or empty");
    }
}

impl ProblemEntry for OrthonormalMlpConfig {
    const TITLE: &'static str =
        "A multilayer perceptron with orthonormal hidden layers, on the built-in digits or from a file";
    const CONSTRAINED: bool = true;
    const METRICS: Metrics = &[
        (Quantity::TrainLoss, "training loss"),
        (Quantity::ConstraintNorm, "constraint violation ‖WᵀW − I‖"),
        (Quantity::TestAccuracy, "test accuracy"),
    ];

    fn check_more(c: &Self) -> Result<(), String> {
        widths::<Self>(&c.hidden, "").map(|_| ())
    }

    fn setup(c: Self, _: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        let hidden = widths::<Self>(&c.hidden, "").map_err(Error::Misfit)?;
        let layers = |features, classes| ([&[features], &*hidden, &[classes]].concat(), size_of::<f64>());
        let (train, test) = train_and_test(&c.data, "", TEST_SHARE, layers)?;
        let mlp = Mlp::<f64>::new(&train, Some(&test), &hidden, c.activation.into())?;
        Ok(assembler.finish(OrthonormalMlp::new(mlp)?))
    }
}
