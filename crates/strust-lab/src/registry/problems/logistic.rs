//! Logistic regression.

use super::{ProblemEntry, Quantity, SPLIT_SEED, Setup, Visitor, WITH_TEST, check_size, default_effect, number, text};
use crate::{Error, data::parameters::Parameters};
use std::path::Path;
use strust_problems::{Logistic, read};

strust::config! {
    /// Logistic regression.
    pub struct LogisticConfig for "logistic" {
        /// Number of synthetic points, if there is no data file.
        pub n: u64 = 500, Whole(Range::closed(2.0, 1e7));
        /// Number of synthetic features, if there is no data file.
        pub d: u64 = 50, Whole(Range::closed(1.0, 1e7));
        /// Distance of the synthetic points from the separating plane.
        pub margin: f64 = 0.1, Number(Range::above(0.0));
        /// Exponent s of sparse synthetic data: feature j = 1, …, d is 1 in a share j⁻ˢ of the points and 0 in the others, so the last ones are rare and the margin has no effect; 0 is dense Gaussian data.
        pub rare: f64 = 0.0, Number(Range::at_least(0.0));
        /// Share of the points held out as a test set, a part of each class; 0 is none.
        pub test_share: f64 = 0.0, Number(Range::from_to(0.0, 1.0));
        /// Share of the training labels replaced by the other class; the labels of the test set stay right.
        pub wrong_labels: f64 = 0.0, Number(Range::from_to(0.0, 1.0));
        /// Weight λ of (λ/2)‖x‖².
        pub regularization: f64 = 0.0, Number(Range::at_least(0.0));
        /// A file with two classes: LIBSVM text, or .csv with the label last (also .gz and .xz).
        pub data: String = String::new(), Text("a file, or empty");
    }
}

pub(crate) struct Problem;

impl ProblemEntry for Problem {
    type Config = LogisticConfig;
    const TITLE: &'static str = "Logistic regression, synthetic and separable, also with rare features, or from a file";
    const OPTIONAL: &'static [&'static str] = &["rare", "test_share", "wrong_labels"];
    const SYNTHETIC: &'static [&'static str] = &["n", "d", "margin", "rare"];

    fn metrics(parameters: &Parameters) -> &'static [(Quantity, &'static str)] {
        if number(parameters, "test_share") > 0.0 { WITH_TEST } else { Self::METRICS }
    }

    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        let is_rare = number(parameters, "rare") > 0.0 && text(parameters, "data").is_empty();
        default_effect::<Self>(parameter, parameters) && !(parameter == "margin" && is_rare)
    }

    fn visit<V: Visitor>(c: Self::Config, seed: u64, visitor: V) -> Result<V::Output, Error> {
        let (n, d) = (c.n as usize, c.d as usize);
        let f = if c.data.is_empty() {
            check_size(c.n, c.d)?;
            let f = match c.rare {
                0.0 => Logistic::separable(n, d, c.margin, seed)?,
                exponent => Logistic::rare(n, d, exponent, seed)?,
            };
            f.with_regularization(c.regularization)?
        } else {
            Logistic::new(read::read_labeled(Path::new(&c.data))?, c.regularization)?
        };
        if c.test_share == 0.0 {
            return visitor.visit(Setup::unconstrained(f.with_wrong_labels(c.wrong_labels, seed)?));
        }
        let f = f.with_test_share(c.test_share, SPLIT_SEED)?.with_wrong_labels(c.wrong_labels, seed)?;
        visitor.visit(Setup::classifier(f))
    }
}
