//! Softmax regression.

use super::{ProblemEntry, Setup, Visitor};
use crate::Error;
use std::path::Path;
use strust_problems::{Softmax, read};

strust::config! {
    /// Softmax regression.
    pub struct SoftmaxConfig for "softmax" {
        /// Weight λ of (λ/2)‖W‖².
        pub regularization: f64 = 0.0, Number(Range::at_least(0.0));
        /// A file with whole-number classes: LIBSVM text, or .csv with the label last (also .gz and .xz). Required.
        pub data: String = String::new(), Text("a file");
    }
}

pub(crate) struct Problem;

impl ProblemEntry for Problem {
    type Config = SoftmaxConfig;
    const TITLE: &'static str = "Softmax regression, from a file";

    fn visit<V: Visitor>(c: Self::Config, _: u64, visitor: V) -> Result<V::Output, Error> {
        if c.data.is_empty() {
            let (value, allowed) = ("empty".into(), "a file".into());
            return Err(strust::Error::OutOfRange { owner: "softmax", field: "data", value, allowed }.into());
        }
        let data = read::read_labeled(Path::new(&c.data))?;
        visitor.visit(Setup::unconstrained(Softmax::new(data, c.regularization)?))
    }
}
