//! Logistic regression on the unit sphere, with linear equations.

use super::{
    AnySetup, Assembler, Metrics, Names, ProblemEntry, Quantity, check_size,
    from_file::{FileSize, labeled},
};
use crate::Error;
use strust_problems::{ConstrainedLogistic, Logistic};

strust::config! {
    /// Logistic regression with constraints.
    pub struct ConstrainedLogisticConfig for "constrained-logistic" {
        /// Number of synthetic points, if there is no data file.
        pub n: u64 = 1000, Whole(Range::closed(2.0, 1e7));
        /// Number of synthetic features, if there is no data file.
        pub d: u64 = 50, Whole(Range::closed(2.0, 1e7));
        /// Number of random linear equations, below the number of features.
        pub rows: u64 = 10, Whole(Range::closed(1.0, 1e5));
        /// Share of the labels replaced by the other class.
        pub wrong_labels: f64 = 0.1, Number(Range::from_to(0.0, 1.0));
        /// A file with two classes: LIBSVM text, or .csv with the label last (also .gz and .xz).
        pub data: String = String::new(), Text("a file, or empty");
    }
}

/// Distance of the synthetic points from the separating plane, before some labels are replaced.
const MARGIN: f64 = 0.1;

impl ProblemEntry for ConstrainedLogisticConfig {
    const TITLE: &'static str = "Logistic regression, synthetic or from a file, with ‖x‖² = 1 and Ax = b";
    const CONSTRAINED: bool = true;
    const METRICS: Metrics = &[
        (Quantity::ObjectiveError, "objective error |f(x) − f*|"),
        (Quantity::ConstraintNorm, "constraint violation ‖c(x)‖"),
    ];
    const SYNTHETIC: Names = &["n", "d"];

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        let loss = if c.data.is_empty() {
            check_size(c.n, c.d)?;
            check_size(c.rows, c.d)?;
            Logistic::separable(c.n as usize, c.d as usize, MARGIN, seed)?
        } else {
            let data = labeled(&c.data, "", 0)?;
            FileSize::of(&c.data, &data).check_dense((c.rows as usize, "equations"))?;
            Logistic::new(data, 0.0)?
        };
        let f = ConstrainedLogistic::new(loss.with_wrong_labels(c.wrong_labels, seed)?, c.rows as usize, seed)?;
        Ok(assembler.finish(f))
    }
}
