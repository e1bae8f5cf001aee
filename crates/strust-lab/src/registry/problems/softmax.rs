//! Softmax regression.

use super::{ProblemEntry, Quantity, SPLIT_SEED, Setup, Visitor, WITH_TEST, default_effect, number, text};
use crate::{Error, data::parameters::Parameters};
use std::path::Path;
use strust_problems::{Softmax, digits, read};

strust::config! {
    /// Softmax regression.
    pub struct SoftmaxConfig for "softmax" {
        /// Weight λ of (λ/2)‖W‖².
        pub regularization: f64 = 0.0, Number(Range::at_least(0.0));
        /// Share of the rows of a file held out as a test set, a part of each class; 0 is none.
        pub test_share: f64 = 0.0, Number(Range::from_to(0.0, 1.0));
        /// Share of the training labels replaced by another class; the labels of the test set stay right.
        pub wrong_labels: f64 = 0.0, Number(Range::from_to(0.0, 1.0));
        /// A file with whole-number classes: LIBSVM text, or .csv with the label last (also .gz and .xz). If empty, the built-in UCI digits are used, with their test set.
        pub data: String = String::new(), Text("a file, or empty");
    }
}

pub(crate) struct Problem;

impl ProblemEntry for Problem {
    type Config = SoftmaxConfig;
    const TITLE: &'static str = "Softmax regression, on the built-in digits or from a file";
    const OPTIONAL: &'static [&'static str] = &["test_share", "wrong_labels"];

    fn metrics(parameters: &Parameters) -> &'static [(Quantity, &'static str)] {
        let has_test = text(parameters, "data").is_empty() || number(parameters, "test_share") > 0.0;
        if has_test { WITH_TEST } else { Self::METRICS }
    }

    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        // The digits have a test set of their own.
        let is_idle = parameter == "test_share" && text(parameters, "data").is_empty();
        default_effect::<Self>(parameter, parameters) && !is_idle
    }

    fn visit<V: Visitor>(c: Self::Config, seed: u64, visitor: V) -> Result<V::Output, Error> {
        if c.data.is_empty() {
            let (train, test) = digits::load()?;
            let f = Softmax::new(train.into(), c.regularization)?.with_test(test.into())?;
            return visitor.visit(Setup::classifier(f.with_wrong_labels(c.wrong_labels, seed)?));
        }
        let f = Softmax::new(read::read_labeled(Path::new(&c.data))?, c.regularization)?;
        if c.test_share == 0.0 {
            return visitor.visit(Setup::unconstrained(f.with_wrong_labels(c.wrong_labels, seed)?));
        }
        let f = f.with_test_share(c.test_share, SPLIT_SEED)?.with_wrong_labels(c.wrong_labels, seed)?;
        visitor.visit(Setup::classifier(f))
    }
}
