//! Linear least squares.

use super::{
    AnySetup, Assembler, Metrics, Names, ProblemEntry, Quantity, SPLIT_SEED, check_size,
    from_file::{FileSize, HeldOut, effect, is_on, with_numbers, with_optimum},
    number, text,
};
use crate::{Error, data::parameters::Parameters, registry::entry::Switch};
use strust_problems::LeastSquares;

strust::config! {
    /// Linear least squares, with Gaussian rows or from a file.
    pub struct LeastSquaresConfig for "least-squares" {
        /// Number of equations.
        pub n: u64 = 200, Whole(Range::closed(1.0, 1e7));
        /// Number of unknowns; with d ≥ n every equation can be satisfied.
        pub d: u64 = 300, Whole(Range::closed(1.0, 1e7));
        /// Standard deviation of the noise on the right-hand side; 0 is exact interpolation.
        pub noise: f64 = 0.0, Number(Range::at_least(0.0));
        /// Condition number of the Hessian: the ratio of its largest to its smallest positive eigenvalue, which are spaced evenly on a logarithmic scale; 0 keeps the Gaussian rows as they are.
        pub condition: f64 = 0.0, Number(Range::at_least(0.0));
        /// A file with numbers to predict: .csv or .npy with the label last, or LIBSVM text (also .gz and .xz). The other keys are for files.
        pub data: String = String::new(), Text("a file, or empty");
        /// The label's column in a .csv or .npy file: its name in the header, or its number from 1; empty is the last one.
        pub label: String = String::new(), Text("a column's name or number in quotes, or empty");
        /// Number of rows of the file to use, spaced evenly; 0 is all.
        pub rows: u64 = 0, Whole(Range::closed(0.0, 1e9));
        /// Share of the rows held out as a test set; 0 is none.
        pub test_share: f64 = 0.0, Number(Range::from_to(0.0, 1.0));
        /// The test set: random, or last, the last rows.
        pub split: HeldOut = HeldOut::Random, OneOf(&["random", "last"]);
        /// On: every feature gets mean 0 and standard deviation 1 over the training set.
        pub standardize: Switch = Switch::Off, OneOf(&["off", "on"]);
        /// On: a last feature that is always 1.
        pub intercept: Switch = Switch::Off, OneOf(&["off", "on"]);
        /// On: f* is computed before the run, and the metric is the gap f(x) − f*. Synthetic data always have it.
        pub optimum: Switch = Switch::Off, OneOf(&["off", "on"]);
    }
}

impl ProblemEntry for LeastSquaresConfig {
    const TITLE: &'static str = "Linear least squares, with Gaussian rows or from a file";
    const METRICS: Metrics = &[(Quantity::ObjectiveGap, "objective gap f(x) − f*")];
    const OPTIONAL: Names =
        &["condition", "label", "rows", "test_share", "split", "standardize", "intercept", "optimum"];
    const SYNTHETIC: Names = &["n", "d", "noise", "condition"];

    fn metrics(parameters: &Parameters) -> Metrics {
        const OBJECTIVE: (Quantity, &str) = (Quantity::Objective, "objective f(x)");
        const GAP: (Quantity, &str) = (Quantity::ObjectiveGap, "objective gap f(x) − f*");
        const TEST: (Quantity, &str) = (Quantity::TestLoss, "test mean squared error");
        if text(parameters, "data").is_empty() {
            return Self::METRICS;
        }
        match (is_on(parameters, "optimum"), number(parameters, "test_share") > 0.0) {
            (false, false) => &[OBJECTIVE],
            (false, true) => &[OBJECTIVE, TEST],
            (true, false) => &[GAP],
            (true, true) => &[GAP, TEST],
        }
    }

    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        let possible = Self::SYNTHETIC.contains(&parameter) || !text(parameters, "data").is_empty();
        possible && effect::<Self>(parameter, parameters)
    }

    fn check_more(c: &Self) -> Result<(), String> {
        if c.condition == 0.0 || c.condition >= 1.0 {
            return Ok(());
        }
        Err(format!("least-squares: `condition` is {}, but must be ≥ 1, or 0 for Gaussian rows", c.condition))
    }

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        if !c.data.is_empty() {
            return Ok(assembler.finish(with_optimum(regression(&c)?, c.optimum, &c, None)?));
        }
        check_size(c.n, c.d)?;
        let (n, d) = (c.n as usize, c.d as usize);
        let f = match (c.condition, c.noise) {
            (0.0, 0.0) => LeastSquares::<f64>::interpolating(n, d, seed)?,
            (0.0, noise) => LeastSquares::noisy(n, d, noise, seed)?,
            (condition, noise) => LeastSquares::conditioned(n, d, condition, noise, seed)?,
        };
        Ok(assembler.finish(f))
    }
}

/// The problem of a data file.
fn regression(c: &LeastSquaresConfig) -> Result<LeastSquares<f64>, Error> {
    let data = with_numbers(&c.data, &c.label, c.rows)?;
    let size = FileSize::of(&c.data, &data);
    size.check_dense((size.rows, "rows"))?;
    let mut f = LeastSquares::from_labeled(data)?;
    f = match (c.test_share, c.split) {
        (0.0, _) => f,
        (share, HeldOut::Random) => f.with_test_share(share, SPLIT_SEED)?,
        (share, HeldOut::Last) => f.with_last_rows_as_test(share)?,
    };
    if c.standardize == Switch::On {
        f = f.standardized()?;
    }
    if c.intercept == Switch::On {
        f = f.with_intercept()?;
    }
    Ok(f)
}
