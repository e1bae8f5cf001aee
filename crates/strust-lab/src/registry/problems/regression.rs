//! Regression on synthetic data.

use super::{AnySetup, Assembler, ProblemEntry, check_size, mlp::widths_or_none, text};
use crate::{Error, data::parameters::Parameters, registry::entry::field_words};
use serde::{Deserialize, Serialize};
use strust_problems::{Regression, regression::RegressionLoss};

strust::config! {
    /// Regression on synthetic data.
    pub struct RegressionConfig for "regression" {
        /// Number of data points.
        pub n: u64 = 1000, Whole(Range::closed(1.0, 1e7));
        /// Number of features.
        pub d: u64 = 20, Whole(Range::closed(1.0, 1e7));
        /// Loss and noise: squares with normal noise; huber with heavy-tailed noise, Student's t with two degrees of freedom; or poisson, half the deviance of counts whose logarithmic mean the model gives.
        pub loss: LossKind = LossKind::Squares, OneOf(&["squares", "huber", "poisson"]);
        /// Scale of the noise; without effect on counts.
        pub noise: f64 = 0.1, Number(Range::at_least(0.0));
        /// Bound δ of Huber's loss, beyond which a residual counts linearly.
        pub bound: f64 = 0.5, Number(Range::above(0.0));
        /// Widths of hidden layers of tanh units, such as 32-32. The targets then are a smooth function of the features; with none, model and targets are linear.
        pub hidden: String = "none".into(), Text("whole numbers with - between them, or none");
    }
}

/// The loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LossKind {
    /// Squares.
    Squares,
    /// Huber's.
    Huber,
    /// Of counts.
    Poisson,
}

field_words!(LossKind);

impl ProblemEntry for RegressionConfig {
    const TITLE: &'static str = "Robust or Poisson regression, or a deep network of tanh units, on synthetic data";

    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        match parameter {
            "noise" => text(parameters, "loss") != "poisson",
            "bound" => text(parameters, "loss") == "huber",
            _ => true,
        }
    }

    fn check_more(c: &Self) -> Result<(), String> {
        widths_or_none::<Self>(&c.hidden).map(drop)
    }

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        check_size(c.n, c.d)?;
        let loss = match c.loss {
            LossKind::Squares => RegressionLoss::Squares,
            LossKind::Huber => RegressionLoss::Huber(c.bound),
            LossKind::Poisson => RegressionLoss::Poisson,
        };
        let hidden = widths_or_none::<Self>(&c.hidden).map_err(Error::Misfit)?;
        Ok(assembler.finish(Regression::synthetic(c.n as usize, c.d as usize, c.noise, loss, &hidden, seed)?))
    }
}
