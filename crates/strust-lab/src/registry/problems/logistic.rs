//! Logistic regression.

use super::{ProblemEntry, Setup, Visitor, check_size};
use crate::Error;
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
        /// Weight λ of (λ/2)‖x‖².
        pub regularization: f64 = 0.0, Number(Range::at_least(0.0));
        /// A file with two classes: LIBSVM text, or .csv with the label last (also .gz and .xz).
        pub data: String = String::new(), Text("a file, or empty");
    }
}

pub(crate) struct Problem;

impl ProblemEntry for Problem {
    type Config = LogisticConfig;
    const TITLE: &'static str = "Logistic regression, synthetic and separable or from a file";
    const SYNTHETIC: &'static [&'static str] = &["n", "d", "margin"];

    fn visit<V: Visitor>(c: Self::Config, seed: u64, visitor: V) -> Result<V::Output, Error> {
        let f = if c.data.is_empty() {
            check_size(c.n, c.d)?;
            Logistic::separable(c.n as usize, c.d as usize, c.margin, seed)?.with_regularization(c.regularization)?
        } else {
            Logistic::new(read::read_labeled(Path::new(&c.data))?, c.regularization)?
        };
        visitor.visit(Setup::unconstrained(f))
    }
}
