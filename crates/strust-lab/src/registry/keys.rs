//! The keys of a method in an experiment file: its own, and those that all methods have.

use super::entry::{Switch, config, field_words};
use crate::{
    Error,
    data::{experiment::MethodSpec, parameters::Parameters},
};
use serde::{Deserialize, Serialize};
use strust::{config::Config, schedule::Schedule};
use strust_baselines::by_name::{self, MethodInfo, MethodOptions};

strust::config! {
    /// The keys of all methods.
    pub struct CommonConfig for "method" {
        /// The learning rate during a run: constant, or cosine, which falls to 0 at the end of the run.
        pub schedule: ScheduleName = ScheduleName::Constant, OneOf(&["constant", "cosine"]);
        /// Whether the answer is the average of the iterates: off or on.
        pub average: Switch = Switch::Off, OneOf(&["off", "on"]);
    }
}

/// A [`Schedule`] without its number of steps, which is that of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleName {
    /// Always the same rate.
    Constant,
    /// The rate falls to 0 along a cosine.
    Cosine,
}

field_words!(ScheduleName);

impl ScheduleName {
    /// The schedule of a job of `steps` steps.
    pub(crate) fn over(self, steps: u64) -> Schedule {
        match self {
            Self::Constant => Schedule::Constant,
            Self::Cosine => Schedule::cosine(steps),
        }
    }
}

/// Whether a method has a common key: only a method with a rate has a schedule.
pub(super) fn has(info: &MethodInfo, key: &str) -> bool {
    CommonConfig::FIELDS.iter().any(|field| field.name == key) && (key != "schedule" || info.has("learning_rate"))
}

/// The keys of the method itself, and those of all methods.
pub(super) fn split(info: &MethodInfo, parameters: &Parameters) -> (Parameters, Parameters) {
    parameters.clone().into_iter().partition(|(key, _)| !has(info, key))
}

/// The keys of a method in an experiment file.
pub(crate) struct Keys<'a> {
    pub name: &'a str,
    own: Parameters,
    common: CommonConfig,
}

impl<'a> Keys<'a> {
    /// Checks the common keys of a method.
    pub fn of(method: &'a MethodSpec) -> Result<Self, Error> {
        let info = by_name::info(&method.name);
        let info = info.ok_or_else(|| Error::Misfit(format!("there is no method `{}`", method.name)))?;
        let (own, common) = split(info, &method.hyperparameters);
        Ok(Self { name: info.name, own, common: config(&common).map_err(Error::Misfit)? })
    }
    /// The schedule of a job of `steps` steps.
    pub fn schedule(&self, steps: u64) -> Schedule {
        self.common.schedule.over(steps)
    }
    /// Whether the answer is the average of the iterates.
    pub fn average(&self) -> bool {
        self.common.average == Switch::On
    }
}

impl MethodOptions for Keys<'_> {
    type Error = Error;
    fn config<C: Config>(&self) -> Result<C, Error> {
        config(&self.own).map_err(Error::Misfit)
    }
}
