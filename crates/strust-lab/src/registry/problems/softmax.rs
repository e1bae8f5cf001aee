//! Softmax regression.

use super::{
    AnySetup, Assembler, Metrics, Names, ProblemEntry, SPLIT_SEED,
    from_file::{FileSize, HeldOut, accuracies, effect, labeled, with_optimum},
    number, text,
};
use crate::{Error, data::parameters::Parameters, registry::entry::Switch};
use strust_data::digits;
use strust_problems::Softmax;

strust::config! {
    /// Softmax regression.
    pub struct SoftmaxConfig for "softmax" {
        /// Weight λ of (λ/2)‖W‖², without the intercepts.
        pub regularization: f64 = 0.0, Number(Range::at_least(0.0));
        /// Share of the rows of a file held out as a test set, a part of each class; 0 is none.
        pub test_share: f64 = 0.0, Number(Range::from_to(0.0, 1.0));
        /// The test set of a file: random, a part of each class; or last, the last rows.
        pub split: HeldOut = HeldOut::Random, OneOf(&["random", "last"]);
        /// Share of the training labels replaced by another class; the labels of the test set stay right.
        pub wrong_labels: f64 = 0.0, Number(Range::from_to(0.0, 1.0));
        /// On: every feature gets mean 0 and standard deviation 1 over the training set.
        pub standardize: Switch = Switch::Off, OneOf(&["off", "on"]);
        /// On: a last feature that is always 1.
        pub intercept: Switch = Switch::Off, OneOf(&["off", "on"]);
        /// On: the accuracy on the training set is measured, too.
        pub train_accuracy: Switch = Switch::Off, OneOf(&["off", "on"]);
        /// On: f* is computed before the run, and the metric is the gap f(x) − f*.
        pub optimum: Switch = Switch::Off, OneOf(&["off", "on"]);
        /// A file with classes, whole numbers or words: LIBSVM text, or .csv or .npy with the label last (also .gz and .xz). If empty, the built-in UCI digits are used, with their test set.
        pub data: String = String::new(), Text("a file, or empty");
        /// The label's column in a .csv or .npy file: its name in the header, or its number from 1; empty is the last one.
        pub label: String = String::new(), Text("a column's name or number in quotes, or empty");
        /// Number of rows of the file to use, spaced evenly; 0 is all.
        pub rows: u64 = 0, Whole(Range::closed(0.0, 1e9));
    }
}

impl ProblemEntry for SoftmaxConfig {
    const TITLE: &'static str = "Softmax regression, on the built-in digits or from a file";
    const OPTIONAL: Names = &[
        "test_share",
        "split",
        "wrong_labels",
        "standardize",
        "intercept",
        "train_accuracy",
        "optimum",
        "label",
        "rows",
    ];

    fn metrics(parameters: &Parameters) -> Metrics {
        accuracies(parameters, text(parameters, "data").is_empty() || number(parameters, "test_share") > 0.0)
    }

    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        // The digits have a test set of their own.
        let is_idle = ["test_share", "split"].contains(&parameter) && text(parameters, "data").is_empty();
        effect::<Self>(parameter, parameters) && !is_idle
    }

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        let mut f = data(&c)?.with_wrong_labels(c.wrong_labels, seed)?;
        if c.standardize == Switch::On {
            f = f.standardized()?;
        }
        if c.intercept == Switch::On {
            f = f.with_intercept()?;
        }
        Ok(assembler.finish(with_optimum(f, c.optimum, &c, (c.wrong_labels > 0.0).then_some(seed))?))
    }
}

/// The digits with their test set, or the data of a file with the wanted one.
fn data(c: &SoftmaxConfig) -> Result<Softmax, Error> {
    if c.data.is_empty() {
        let (train, test) = digits::load()?;
        return Ok(Softmax::new(train.into(), c.regularization)?.with_test(test.into())?);
    }
    let data = labeled(&c.data, &c.label, c.rows)?;
    let size = FileSize::of(&c.data, &data);
    if c.standardize == Switch::On {
        size.check_dense((size.rows, "rows"))?;
    }
    let f = Softmax::new(data, c.regularization)?;
    size.check_weights(f.classes().len())?;
    Ok(match (c.test_share, c.split) {
        (0.0, _) => f,
        (share, HeldOut::Random) => f.with_test_share(share, SPLIT_SEED)?,
        (share, HeldOut::Last) => f.with_last_rows_as_test(share)?,
    })
}
