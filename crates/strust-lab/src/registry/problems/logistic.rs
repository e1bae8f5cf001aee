//! Logistic regression.

use super::{
    AnySetup, Assembler, Metrics, Names, ProblemEntry, SPLIT_SEED, check_size,
    from_file::{FileSize, HeldOut, accuracies, effect, labeled, with_optimum},
    number, text,
};
use crate::{
    Error,
    data::parameters::Parameters,
    registry::entry::{Switch, field_words},
};
use serde::{Deserialize, Serialize};
use strust_problems::Logistic;

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
        /// The test set: random, a part of each class; or last, the last points.
        pub split: HeldOut = HeldOut::Random, OneOf(&["random", "last"]);
        /// Share of the training labels replaced by the other class; the labels of the test set stay right.
        pub wrong_labels: f64 = 0.0, Number(Range::from_to(0.0, 1.0));
        /// Weight λ of (λ/2)‖x‖², without the intercept.
        pub regularization: f64 = 0.0, Number(Range::at_least(0.0));
        /// On: every feature gets mean 0 and standard deviation 1 over the training set.
        pub standardize: Switch = Switch::Off, OneOf(&["off", "on"]);
        /// With rbf, the features of a point are its kernel values exp(−‖a − aⱼ‖²/(2σ²)) with all n training points aⱼ: 8n² bytes.
        pub kernel: FeatureKernel = FeatureKernel::None, OneOf(&["none", "rbf"]);
        /// Bandwidth σ of the kernel.
        pub bandwidth: f64 = 1.0, Number(Range::above(0.0));
        /// On: a last feature that is always 1.
        pub intercept: Switch = Switch::Off, OneOf(&["off", "on"]);
        /// On: the accuracy on the training set is measured, too.
        pub train_accuracy: Switch = Switch::Off, OneOf(&["off", "on"]);
        /// On: f* is computed before the run, and the metric is the gap f(x) − f*.
        pub optimum: Switch = Switch::Off, OneOf(&["off", "on"]);
        /// A file with two classes: LIBSVM text, or .csv or .npy with the label last (also .gz and .xz).
        pub data: String = String::new(), Text("a file, or empty");
        /// The label's column in a .csv or .npy file: its name in the header, or its number from 1; empty is the last one.
        pub label: String = String::new(), Text("a column's name or number in quotes, or empty");
        /// Number of rows of the file to use, spaced evenly; 0 is all.
        pub rows: u64 = 0, Whole(Range::closed(0.0, 1e9));
    }
}

/// The features of a kernel method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeatureKernel {
    /// The features as they are.
    None,
    /// Values of the Gaussian kernel.
    Rbf,
}

field_words!(FeatureKernel);

impl ProblemEntry for LogisticConfig {
    const TITLE: &'static str = "Logistic regression, synthetic and separable, also with rare features, or from a file";
    const OPTIONAL: Names = &[
        "rare",
        "test_share",
        "split",
        "wrong_labels",
        "standardize",
        "kernel",
        "intercept",
        "train_accuracy",
        "optimum",
        "label",
        "rows",
    ];
    const SYNTHETIC: Names = &["n", "d", "margin", "rare"];

    fn metrics(parameters: &Parameters) -> Metrics {
        accuracies(parameters, number(parameters, "test_share") > 0.0)
    }

    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        let possible = match parameter {
            "margin" => number(parameters, "rare") == 0.0,
            "bandwidth" => text(parameters, "kernel") == "rbf",
            _ => true,
        };
        possible && effect::<Self>(parameter, parameters)
    }

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        let f = changed(split(data(&c, seed)?, &c)?.with_wrong_labels(c.wrong_labels, seed)?, &c)?;
        let is_random = c.data.is_empty() || c.wrong_labels > 0.0;
        Ok(assembler.finish(with_optimum(f, c.optimum, &c, is_random.then_some(seed))?))
    }
}

fn data(c: &LogisticConfig, seed: u64) -> Result<Logistic, Error> {
    if !c.data.is_empty() {
        let data = labeled(&c.data, &c.label, c.rows)?;
        if c.standardize == Switch::On {
            let size = FileSize::of(&c.data, &data);
            size.check_dense((size.rows, "rows"))?;
        }
        return Ok(Logistic::new(data, c.regularization)?);
    }
    check_size(c.n, c.d)?;
    let (n, d) = (c.n as usize, c.d as usize);
    let f = match c.rare {
        0.0 => Logistic::separable(n, d, c.margin, seed)?,
        exponent => Logistic::rare(n, d, exponent, seed)?,
    };
    Ok(f.with_regularization(c.regularization)?)
}

fn split(f: Logistic, c: &LogisticConfig) -> Result<Logistic, Error> {
    Ok(match (c.test_share, c.split) {
        (0.0, _) => f,
        (share, HeldOut::Random) => f.with_test_share(share, SPLIT_SEED)?,
        (share, HeldOut::Last) => f.with_last_rows_as_test(share)?,
    })
}

/// The problem with other features.
fn changed(mut f: Logistic, c: &LogisticConfig) -> Result<Logistic, Error> {
    if c.standardize == Switch::On {
        f = f.standardized()?;
    }
    if c.kernel == FeatureKernel::Rbf {
        f = f.with_kernel(c.bandwidth)?;
    }
    if c.intercept == Switch::On {
        f = f.with_intercept()?;
    }
    Ok(f)
}
